"""Whether Triton's kernels compute the same bits on the emulator and on a GPU, contracted as ptxas does it.

    PYTHONPATH=src:. python3 -m tests.gpu.triton --evidence

The PTX is that of `tests/corpus`, which Triton made for sm_80 and sm_90a. It runs on both with the same arrays; the
emulator takes the GPU's name and what ptxas contracts (`device="both"`). `--evidence` writes evidence/triton_gpu.json.
Kernels whose sums depend on the order of threads, by atomics, are not among them.
"""

import argparse
import json
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import ptxlab
from ptxlab.report import KernelError, PtxError
from tests.corpus import Case, produced

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
SHARED = 160 * 1024  # enough for each of them

# The grid, then the arguments: an integer or a float; `f16[128,64]` random numbers of an array, `=` others; `map(...)`
# a tensor map with its box, after which Triton passes extents and strides. Two scratch pointers follow them all.
MATMUL = "4; f16[128,96] f16[96,128] f16[128,128]=0 128 128 96 96 128 128"
LAUNCHES = {
    "elementwise.add_f32": "5; f32[4099] f32[4099] f32[4099]=0 4099",
    "elementwise.add_f16": "2; f16[4096] f16[4096] f16[4096]=0 4096",
    "elementwise.gelu_bf16": "2; bf16[1024] bf16[1024]=0 1024",
    "elementwise.dropout": "6; f32[3000] f32[3000]=0 3000 0.25 7",
    "elementwise.math_f32": "3; f32[3000]=positive f32[3000]=0 3000",
    "elementwise.math_f64": "4; f64[500]=positive f64[500]=0 500",
    "elementwise.integers": "3; i32[1500]=-99999..99999 i8[1500]=0 1500",
    "elementwise.cast_fp8": "2; f32[2048] e4m3[2048]=0 f16[2048]=0 2048",
    "elementwise.cast_bf16": "2; f32[2048] bf16[2048]=0 f16[2048]=0 2048",
    "elementwise.inline": "1; i32[256]=-99999..99999 i32[256]=0",
    "reductions.softmax": "4; f32[4,1008] f32[4,1008]=0 1008 1000",
    "reductions.softmax_wide": "2; f16[2,16384] f16[2,16384]=0 16384 16000",
    "reductions.layer_norm": "4; f16[4,2048] f16[4,2048]=0 f16[2048] f16[2048] f32[4]=0 f32[4]=0 2048 1e-5",
    "reductions.layer_norm_gradient": (
        "4; bf16[4,1024] bf16[4,1024] bf16[1024] f32[4] f32[4]=positive bf16[4,1024]=0 f32[64,1024]=0 i32[64]=0 1024"
    ),
    "reductions.statistics": "1; f32[32,64] f32[32]=0 i32[32]=0",
    "reductions.scan": "1; f32[16,128] f32[16,128]=0",
    "reductions.recurrence": "1; f32[512] f32[512] f32[512]=0",
    "reductions.sort": "1; i32[4,64]=-999..999 i32[4,64]=0",
    "reductions.histogram": "2; i32[2048]=0..127 i32[128]=0",
    "reductions.cross_entropy": "3; bf16[3,4096] i64[3]=0..4095 f32[3]=0 4096",
    "reductions.transpose": "1,2; f32[64,64] f32[64,64]=0 64 64",
    "reductions.gather": "1; f32[32,64] i32[32,64]=0..31 f32[32,64]=0",
    "matmul.f16": MATMUL,
    "matmul.bf16": "2; bf16[128,96] bf16[96,128] f32[128,128]=0 128 128 96 96 128 128",
    "matmul.tf32": "4; f32[128,96] f32[96,128] f32[128,128]=0 128 128 96 96 128 128",
    "matmul.tf32x3": "4; f32[64,48] f32[48,64] f32[64,64]=0 64 64 48 48 64 64",
    "matmul.ieee": "4; f32[64,48] f32[48,64] f32[64,64]=0 64 64 48 48 64 64",
    "matmul.fp8": "2; e4m3[128,128] e4m3[128,128] f16[128,128]=0 128 128 128 128 128 128",
    "matmul.int8": "4; i8[128,128]=-9..9 i8[128,128]=-9..9 i32[128,128]=0 128 128 128 128 128 128",
    "matmul.f64": "4; f64[64,48] f64[48,64] f64[64,64]=0 64 64 48 48 64 64",
    "matmul.large": "1; f16[128,128] f16[128,256] f16[128,256]=0 128 256 128 128 256 256",
    "matmul.host_descriptor": "1; map(f16[128,128],128,64) map(f16[128,128],64,64) map(f16[128,128]=0,128,64) 128",
    "attention.forward": "2; f16[128,64] f16[128,64] f16[128,64] f16[128,64]=0 64 128 0.18",
    "attention.forward_causal": "2; bf16[128,128] bf16[128,128] bf16[128,128] f16[128,128]=0 128 128 0.12",
    "attention.forward_fp8": "1; e4m3[128,64] e4m3[128,64] e4m3[128,64] f16[128,64]=0 64 128 0.18",
    "attention.gradient": (
        "2; f16[128,64] f16[128,64] f16[128,64] f16[128,64] f32[128]=14 f32[128] f16[128,64]=0 f16[128,64]=0 128 0.1"
    ),
    "attention.decode": "2; f16[2,128] f16[8,16,128] f16[8,16,128] i32[2,64]=0..7 i32[2]=30..63 f16[2,128]=0 0.1",
}
TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "i8": np.int8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
ARRAY = re.compile(r"(\w+)\[([\d,]+)\](?:=([\w.-]+))?")


def array(rng: np.random.Generator, text: str) -> Any:
    """What `i32[2,64]=0..7` describes."""
    found = ARRAY.fullmatch(text)
    assert found, text
    type, init = TYPES[found[1]], found[3] or "normal"
    shape = [int(extent) for extent in found[2].split(",")]
    if ".." in init:
        first, last = (int(number) for number in init.split(".."))
        return rng.integers(first, last + 1, shape).astype(type)
    if init == "positive":
        return (rng.random(shape) * 3 + 1e-3).astype(type)
    return rng.standard_normal(shape).astype(type) if init == "normal" else np.full(shape, float(init)).astype(type)


def arguments(text: str) -> tuple[tuple[int, ...], list[Any]]:
    """The grid and the arguments that a line of `LAUNCHES` describes."""
    grid, _, rest = text.partition("; ")
    rng, found = np.random.default_rng(0), []
    for word in rest.split():
        if word.startswith("map("):
            inner, *box = re.split(r",(?=\d+(?:,|$)(?![^\[]*\]))", word[4:-1])
            matrix = array(rng, inner)
            tensor_map = ptxlab.tensor_map(matrix, box=tuple(map(int, box)), swizzle="128B")
            found += [tensor_map, *matrix.shape, matrix.shape[1], 1]
        else:
            found.append(array(rng, word) if "[" in word else float(word) if re.search("[.e]", word) else int(word))
    return tuple(map(int, grid.split(","))), [*found, 0, 0]


def run(case: Case, device: str = "both") -> dict[str, Any]:
    """One kernel: whether both agree, and what was contracted."""
    # Triton states the newest PTX that its own ptxas reads; none of these kernels needs it.
    text = re.sub(r"\.version 9\.\d", ".version 8.8", case.text(), count=1)
    module = ptxlab.parse(text, name=f"{case.name}.ptx")
    kernel = module[module.entries[0]]
    required = kernel.directive("reqntid")
    assert required is not None
    grid, args = arguments(LAUNCHES[case.name.rpartition(".")[0]])
    row: dict[str, Any] = {"kernel": case.name}
    try:
        threads = int(required.arguments[0])
        how: dict[str, Any] = {} if device == "both" else {"gpu": "H200", "contract": "ptxas"}
        result = kernel.launch(
            grid,
            threads,
            args,
            shared=SHARED,
            device=device,
            detectors=False,
            on_error="collect",
            compile="ptxas",
            **how,
        )
    except (KernelError, PtxError) as problem:
        return row | {"equal": False, "problem": problem.diagnostics[0].message}
    fidelity = result.fidelity
    assert fidelity is not None
    found = [[one.message, *one.notes] for one in result.diagnostics]
    return row | {"equal": not found, "pairs": fidelity.pairs, "contracted": fidelity.contracted, "differences": found}


def cases(only: str = "") -> list[Case]:
    """The kernels of the corpus that an H200 can run."""
    names = [f"{name}.{target}" for name in LAUNCHES for target in ("sm_80", "sm_90a")]
    return [case for case in produced() if case.name in names and "triton" in case.producer and only in case.name]


def main() -> int:
    """Run all of them, print what differs, and keep the evidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kernels whose names contain this")
    parser.add_argument("--device", default="both", help="`cpu` runs the emulator alone")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--evidence", action="store_true", help="write evidence/triton_gpu.json")
    parser.add_argument("--output", type=Path, default=ROOT / "evidence" / "triton_gpu.json")
    options = parser.parse_args()
    rows, seconds = in_parallel(partial(run, device=options.device), cases(options.only), options.jobs)
    if options.evidence:
        keep(options.output, "python -m tests.gpu.triton", seconds, {"kernels": len(rows)}, rows)
    return 0 if all(row["equal"] for row in rows) else 1


def in_parallel(run: Callable[[Any], Row], given: Iterable[Any], jobs: int) -> tuple[list[Row], float]:
    """A row for each of what is given, and the seconds that took; prints the rows of what is not equal."""
    started = time.perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        rows = list(pool.map(run, given))
    seconds = time.perf_counter() - started
    for row in rows:
        if not row["equal"]:
            print(row)
    print(f"{sum(row['equal'] for row in rows)} of {len(rows)} equal, in {seconds:.1f} s")
    return rows, seconds


def keep(output: Path, command: str, seconds: float, totals: Row, rows: Sequence[Row]) -> None:
    """Write the evidence."""
    head = {"command": command, **_machine(), "seconds": round(seconds, 1), **totals}
    text = json.dumps(head | {"equal": sum(row["equal"] for row in rows)}, indent=1)
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    output.write_text(f'{text[:-2]},\n "rows": [\n{lines}\n ]\n}}\n')


def _machine() -> dict[str, str]:
    from ptxlab import gpu
    from ptxlab.gpu.hardware import driver_release
    from ptxlab.measure.machine import commit
    from ptxlab.toolchain import find

    there = gpu.gpu(0)
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return {
        "commit": commit(),
        "gpu": there.name,
        "target": there.target,
        "driver": driver_release() or "unknown",
        "ptxas": find("ptxas").version,
        "platform": system,
        "date": str(date.today()),
    }


if __name__ == "__main__":
    sys.exit(main())
