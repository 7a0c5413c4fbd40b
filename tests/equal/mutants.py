"""Mutants of kernels against the kernels themselves: none that gives other numbers may count as the same.

`python -m tests.equal.mutants [COUNT] [SEED]` changes operations, operands, constants, comparisons and offsets one at a
time, compares each mutant with its kernel, and runs both on random numbers where the answer is "same".
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

import ptxlab
from ptxlab.equal import Launch
from ptxlab.measure.data import Host
from ptxlab.syntax import format
from tests.equal.kernels import ONLINE, PLAIN, product, rows

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


def kernels() -> Iterator[tuple[str, Launch]]:
    """What is mutated."""
    yield "plain softmax", rows(PLAIN)
    yield "online softmax", rows(ONLINE)
    yield "naive product", product("naive")
    yield "product by shared memory", product("shared")
    for name, variant, size in (("mma_tile", "PTX", {"m": 20, "n": 15, "k": 23}),
                                ("rms_norm", "plain", {"rows": 2, "columns": 40, "type": "f32"})):  # fmt: skip
        entry = import_module(f"ptxlab.kernels.{name}").entry
        yield name, entry.launches(variant, entry.arrays(Host(), **size))[0]


def judge(name: str, launch: Launch, text: str) -> tuple[str, str | None]:
    """What comes of a mutant, and what is wrong with that."""
    try:
        other = replace(launch, kernel=ptxlab.parse(text, name="mutant.ptx")[launch.function.name])
        found = ptxlab.equal(launch, other, timeout=20)
    except (ptxlab.PtxError, ptxlab.KernelError):
        return "does not run", None
    if not found.same:
        return found.level, None
    outcomes = [_run(one) for one in (launch, other)]
    exact = found.level == "same-bits"
    for a, b in zip(*outcomes, strict=True):
        if exact and not np.array_equal(a, b, equal_nan=True):
            return found.level, f"{name}: other bits\n{text}"
        if not np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True):
            return found.level, f"{name}: other numbers\n{text}"
    return f"{found.level}, rightly", None


def _run(launch: Launch) -> list[Any]:
    generator = np.random.default_rng(11)
    args = [one.copy() if isinstance(one, np.ndarray) else one for one in launch.args]
    for one in args:
        if isinstance(one, np.ndarray):
            one[...] = generator.standard_normal(one.shape)
    replace(launch, args=args).run(device="cpu")
    return [one for one in args if isinstance(one, np.ndarray)]


def main(count: int, seed: int) -> int:
    """Try mutants of all kernels; how many are wrong."""
    generator, tally, wrong = random.Random(seed), Counter[str](), 0
    for name, launch in kernels():
        text, seen = format(launch.module), set[str]()
        while len(seen) < count:
            mutant = mutate(text, generator)
            if mutant is None or mutant in seen:
                continue
            seen.add(mutant)
            outcome, problem = judge(name, launch, mutant)
            tally[outcome] += 1
            if problem is not None:
                wrong += 1
                print(problem, flush=True)
        print(name, dict(tally), flush=True)
    return wrong


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    sys.exit(bool(main(given[0] if given else 25, given[1] if len(given) > 1 else 0)))
