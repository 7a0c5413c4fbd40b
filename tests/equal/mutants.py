"""Mutants of kernels against the kernels themselves: none that gives other numbers may count as the same.

`python -m tests.equal.mutants [COUNT] [SEED] [PROCESSES] [FILE]` changes operations, operands, constants, comparisons
and offsets one at a time, compares each mutant with its kernel, and runs both on random numbers where the answer is
"same". What is the same after that is written to the file with its line, to be judged by a person.
"""

from __future__ import annotations

import json
import platform
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.equal import Launch
from ptxlab.equal.sides import arrays_in
from ptxlab.measure.data import Host
from ptxlab.measure.machine import commit
from ptxlab.syntax import format
from tests.equal.compiled import cuda, triton_kernel
from tests.equal.kernels import NORM, ONLINE, PLAIN, product, rows

_OPERATIONS = {
    "add": "sub", "sub": "add", "mul": "add", "max": "min", "min": "max", "fma": "fma", "div": "mul", "lt": "le",
    "le": "lt", "gt": "ge", "ge": "gt", "ne": "lt", "eq": "ne", "bfly": "down", "row": "col", "lo": "hi",
}  # fmt: skip


def mutate(text: str, generator: random.Random) -> str | None:
    """A text with one change; None where the line that was chosen has nothing to change."""
    lines = text.split("\n")
    body = [n for n, line in enumerate(lines) if line.strip().endswith(";") and not line.strip().startswith(".")]
    at = generator.choice(body)
    line = lines[at]
    match generator.randrange(5):
        case 0:
            words = [word for word in _OPERATIONS if re.search(rf"\b{word}\b", line)]
            if not words:
                return None
            word = generator.choice(words)
            line = re.sub(rf"\b{word}\b", _OPERATIONS[word], line, count=1)
        case 1:
            registers = re.findall(r"%[a-z_]+\d*", line)
            if len(registers) < 3:
                return None
            a, b = generator.sample(registers[1:], 2)
            line = line.replace(a, "\0").replace(b, a).replace("\0", b)
        case 2:
            numbers = re.findall(r"(?<![\w%.])\d+(?=[,;\]])", line)
            if not numbers:
                return None
            chosen = generator.choice(numbers)
            line = re.sub(rf"(?<![\w%.]){chosen}(?=[,;\]])", str(int(chosen) + generator.choice((1, 4))), line, count=1)
        case 3:
            floats = re.findall(r"0f[0-9A-Fa-f]{8}", line)
            if not floats:
                return None
            bits = int(floats[0][2:], 16) ^ 1 << generator.choice((20, 23, 31))
            line = line.replace(floats[0], f"0f{bits:08X}", 1)
        case _:
            if not re.match(r"\s*(add|sub|mul|fma|max|mov|st|bar)\b", line):
                return None
            line = ""
    lines[at] = line
    return "\n".join(lines)


ROW = {"rows": 2, "columns": 40, "type": "f32"}
GALLERY: list[tuple[str, str, dict[str, Any]]] = [
    ("mma_tile", "PTX", {"m": 20, "n": 15, "k": 23}), ("rms_norm", "plain", ROW), ("layer_norm", "plain", ROW),
    ("layer_norm", "read once", ROW), ("softmax", "plain", ROW), ("softmax", "read once", ROW),
    ("cross_entropy", "read once", ROW), ("transpose", "squares", ROW), ("gemv", "rows by blocks",
    {"batch": 1, "m": 3, "k": 40, "type": "bf16"}), ("warp_reduction", "shfl", {**ROW, "rows": 3}),
    ("decode_attention", "plain",
     {"type": "f16", "cache": "f16", "batch": 1, "heads": (2, 1), "length": 20, "size": 64}),
    ("wgmma_steps", "one_tile", {"type": "bf16", "m": 64, "n": 64, "k": 72}),
    ("tcgen05_gemm", "one_tile", {"type": "bf16", "m": 128, "n": 64, "k": 72}),
    ("block_scaled_mma", "mma.sync", {"format": "nvfp4", "m": 16, "n": 8, "k": 64}),
]  # fmt: skip
OTHERS: dict[str, Callable[[], Launch]] = {
    "plain softmax": lambda: rows(PLAIN), "online softmax": lambda: rows(ONLINE), "length of rows": lambda: rows(NORM),
    "naive product": lambda: product("naive"), "product by shared memory": lambda: product("shared"),
    "product by tiles": lambda: product("tiled_1d"), "softmax of Triton": lambda: triton_kernel("softmax"),
    "product of Triton": lambda: triton_kernel("product"), "softmax of nvcc": lambda: cuda("softmax"),
    "product of nvcc": lambda: cuda("product"),
}  # fmt: skip
NAMES = [*OTHERS, *(f"{name}: {variant}" for name, variant, _ in GALLERY)]


def kernel(name: str) -> Launch:
    """What is mutated."""
    if name in OTHERS:
        return OTHERS[name]()
    module, variant, size = GALLERY[NAMES.index(name) - len(OTHERS)]
    entry = import_module(f"ptxlab.kernels.{module}").entry
    found: Launch = entry.launches(variant, entry.arrays(Host(), **size))[0]
    return found


def judge(launch: Launch, text: str) -> tuple[str, str]:
    """What comes of a mutant, and what is wrong with that."""
    try:
        other = replace(launch, kernel=ptxlab.parse(text, name="mutant.ptx")[launch.function.name])
        found = ptxlab.equal(launch, other, timeout=20, assume_paths=True)
    except (ptxlab.PtxError, ptxlab.KernelError):
        return "does not run", ""
    if not found.same:
        return found.level, ""
    if any("before it is written" in note for note in found.notes):
        return "same if unwritten registers are 0, as is noted", ""
    outcomes = [_run(one) for one in (launch, other)]
    for a, b in zip(*outcomes, strict=True):
        if found.level == "same-bits" and a.tobytes() != b.tobytes():
            return found.level, "other bits"
        x, y = a.astype(np.float64), b.astype(np.float64)
        room = (2e-2 if a.itemsize < 4 else 1e-3) * np.abs(x[np.isfinite(x)]).max(initial=1e-3)
        if not np.allclose(x, y, rtol=0, atol=room, equal_nan=True):
            return found.level, "other numbers"
    return found.level, ""


def _run(launch: Launch) -> list[Any]:
    """The arrays of a launch after it ran on other numbers; all are as before afterwards."""
    generator = np.random.default_rng(11)
    arrays = [np.asarray(one) for value in launch.args for one in arrays_in(value)]
    before = [one.copy() for one in arrays]
    try:
        for one in arrays:
            if one.dtype.kind not in "iu":
                one[...] = generator.standard_normal(one.shape)
        launch.run(device="cpu", on_error="collect")
        return [one.copy() for one in arrays]
    finally:
        for one, content in zip(arrays, before, strict=True):
            one[...] = content


def try_some(task: tuple[str, int, int]) -> list[dict[str, str]]:
    """Some mutants of one kernel."""
    name, count, seed = task
    try:
        launch = kernel(name)
    except Exception as problem:  # a compiler that is not installed
        return [{"kernel": name, "level": f"no kernel: {type(problem).__name__}", "wrong": "", "change": ""}]
    text, seen, generator, found = format(launch.module), set[str](), random.Random(f"{name} {seed}"), []
    while len(seen) < count:
        mutant = mutate(text, generator)
        if mutant is None or mutant == text or mutant in seen:
            continue
        seen.add(mutant)
        level, wrong = judge(launch, mutant)
        pairs = zip(text.split("\n"), mutant.split("\n"), strict=True)
        change = next(f"{n}: {a.strip()} -> {b.strip()}" for n, (a, b) in enumerate(pairs, 1) if a != b)
        found.append({"kernel": name, "level": level, "wrong": wrong, "change": change})
    return found


def main(count: int, seed: int, processes: int, file: str) -> int:
    """Try mutants of all kernels; how many are wrong."""
    tasks = [(name, 5, 1000 * seed + part) for part in range(-(-count // 5)) for name in NAMES]
    with ProcessPoolExecutor(processes) as pool:
        found = [one for some in pool.map(try_some, tasks) for one in some]
    tried = [one for one in found if not one["level"].startswith("no kernel")]
    wrong, same = (
        [one for one in tried if one["wrong"]],
        [one for one in tried if one["level"] in ("same-bits", "same-function")],
    )
    tally = {name: dict(Counter(one["level"] for one in tried if one["kernel"] == name)) for name in NAMES}
    missing = sorted({f"{one['kernel']}, {one['level']}" for one in found if one not in tried})
    result = {"commit": commit(), "python": sys.version.split()[0], "processor": platform.machine(), "seed": seed,
              "mutants": len(tried), "levels": dict(Counter(one["level"] for one in tried)), "wrong": wrong,
              "missing": missing, "kernels": tally, "same": [one for one in same if not one["wrong"]]}  # fmt: skip
    Path(file).write_text(json.dumps(result, indent=1) + "\n")
    print(len(tried), "mutants,", len(wrong), "wrongly the same,", len(same), "the same,", result["levels"])
    return len(wrong)


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:4]]
    count, seed, processes = [*numbers, *(25, 0, 2)[len(numbers) :]]
    sys.exit(bool(main(count, seed, processes, sys.argv[4] if len(sys.argv) > 4 else "equal_mutants.json")))
