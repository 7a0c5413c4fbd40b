"""Whether random programs of products and sums compute the same bits on the emulator and on a GPU.

    PYTHONPATH=src:. python3 -m tests.gpu.contraction --evidence

Each program is a straight line of `mul`, `add`, `sub`, `fma`, `neg` and divisions, with and without rounding modifiers,
whose results are stored at its end. ptxas chooses which products and sums it contracts; the emulator reads its choice
from the SASS (`device="both"`, `contract="ptxas"`). `--evidence` writes evidence/contraction_gpu.json.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

import ptxlab
from ptxlab.report import KernelError, PtxError

from .triton import ROOT, in_parallel, keep

THREADS = 128
INPUTS = 6
TYPES: dict[str, tuple[str, Any]] = {
    "f32": ("f32", np.float32),
    "f64": ("f64", np.float64),
    "f16": ("b16", np.float16),
    "bf16": ("b16", ml_dtypes.bfloat16),
    "f16x2": ("b32", np.float16),
}
# What is written for a type, as often as it is listed.
OPERATIONS = {
    "f32": "mul mul mul add add sub mul.ftz add.ftz mul.rn add.rn fma.rn neg div.full div.approx mul.rz sub.rn".split(),
    "f64": "mul mul mul add add sub mul.rn add.rn fma.rn neg mul.rz sub.rm".split(),
    "f16": "mul mul mul add add sub mul.ftz add.ftz mul.rn add.rn fma.rn neg".split(),
    "bf16": "mul mul mul add add sub mul.rn add.rn fma.rn neg".split(),
}
OPERATIONS["f16x2"] = OPERATIONS["f16"]
OPERANDS = {"neg": 1, "fma.rn": 3}


def program(seed: int) -> tuple[str, str]:
    """The type and the PTX of a random program: values `%v0` to `%v5` are loaded, all that nothing reads are stored."""
    random = Random(seed)
    type = random.choice(sorted(TYPES))
    register, kind = TYPES[type]
    size = np.dtype(kind).itemsize * (2 if type == "f16x2" else 1)
    body = [f"ld.global.{register} %v{at}, [%rd1+{at * THREADS * size}];" for at in range(INPUTS)]
    count, read = INPUTS, set()
    for _ in range(random.randint(4, 14)):
        operation = random.choice(OPERATIONS[type])
        # Later values are chosen more often, so that products meet sums.
        chosen = [
            random.randrange(max(0, count - random.randint(2, 8)), count) for _ in range(OPERANDS.get(operation, 2))
        ]
        read.update(chosen)
        body.append(f"{operation}.{type} %v{count}, {', '.join(f'%v{one}' for one in chosen)};")
        count += 1
        if operation == "mul" and random.random() < 0.6:
            factor, other = random.sample((count - 1, random.randrange(count)), 2)
            read.update((factor, other))
            body.append(f"{random.choice(('add', 'sub'))}.{type} %v{count}, %v{factor}, %v{other};")
            count += 1
    stored = [at for at in range(INPUTS, count) if at not in read or random.random() < 0.2]
    body += [f"st.global.{register} [%rd2+{at * THREADS * size}], %v{one};" for at, one in enumerate(stored)]
    lines = "\n    ".join(body)
    return (
        type,
        f"""
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{{
    .reg .{register} %v<{count}>;
    .reg .b32 %r1;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, {size};
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
    {lines}
    ret;
}}
""",
    )


def inputs(seed: int, type: str) -> Any:
    """Numbers of several magnitudes, and a few that are not finite."""
    rng = np.random.default_rng(seed)
    lanes = 2 if type == "f16x2" else 1
    found = rng.standard_normal((INPUTS, THREADS, lanes)) * 2.0 ** rng.integers(-6, 7, (INPUTS, THREADS, lanes))
    found[rng.random(found.shape) < 0.01] = np.inf
    return found.astype(TYPES[type][1])


def run(seed: int, device: str = "both") -> dict[str, Any]:
    """One program: whether both agree, and how many pairs were contracted."""
    type, text = program(seed)
    x = inputs(seed, type)
    y = np.zeros((32, *x.shape[1:]), x.dtype)
    row: dict[str, Any] = {"program": seed, "type": type}
    how: dict[str, Any] = {} if device == "both" else {"gpu": "H200", "contract": "ptxas"}
    kernel = ptxlab.parse(text, name=f"program{seed}.ptx")["k"]
    try:
        result = kernel.launch(
            1, THREADS, [x, y], device=device, detectors=False, on_error="collect", compile="ptxas", **how
        )
    except (KernelError, PtxError) as problem:
        return row | {"equal": False, "problem": problem.diagnostics[0].message}
    assert result.fidelity is not None
    row |= {"pairs": result.fidelity.pairs, "contracted": result.fidelity.contracted}
    found = [[one.message, *one.notes] for one in result.diagnostics]
    return row | {"equal": not found} | ({"differences": found} if found else {})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of them, print what differs, and keep the evidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--device", default="both", help="`cpu` runs the emulator alone")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--evidence", action="store_true", help="write evidence/contraction_gpu.json")
    parser.add_argument("--output", type=Path, default=ROOT / "evidence" / "contraction_gpu.json")
    options = parser.parse_args(arguments)
    rows, seconds = in_parallel(partial(run, device=options.device), range(options.count), options.jobs)
    if options.evidence:
        totals = {"programs": len(rows), "pairs": sum(row.get("pairs", 0) for row in rows)}
        totals["contracted"] = sum(row.get("contracted", 0) for row in rows)
        keep(options.output, "python -m tests.gpu.contraction", seconds, totals, rows)
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
