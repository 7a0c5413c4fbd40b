"""How fast the SMs' clock is while a large product runs: with random numbers, with small whole numbers, with zeros.

    python benchmarks/product_clock.py [FILE]        writes evidence/product_clock.json, needs an H200, for ten seconds

Each block of `wgmma_gemm` reads `%clock64` and `%globaltimer` when it starts and when it ends. Products follow each
other as fast as they can, in turns with cuBLAS. The same bytes are moved and the same MMAs issued whatever the numbers
are: only the energy differs.
"""

from __future__ import annotations

import json
import statistics
import sys
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.author import Kernel, kernel, pointer, ptx, tensor_map, u32, u64
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.persistent import run
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.tile_stores import CopyBack
from ptxlab.kernels.wgmma_gemm import product
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.kernels.wgmma_gemm.kernel import Product, plan_of
from ptxlab.kernels.wgmma_gemm.measured import arrays
from ptxlab.measure import Launch
from ptxlab.measure.data import Device
from ptxlab.measure.machine import commit, describe, require_torch

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "product_clock.json"
EXTENT, DEPTHS = 4096, (4096, 8192, 16384)
NUMBERS = ("random", "whole", "zeros")
RUNS, ROUNDS = 10, 5


def timed(shape: Shape) -> Kernel:
    """The product, whose blocks write the cycles and the nanoseconds that they took."""
    plan = plan_of(Formats.of("bf16"), shape, Layout())

    @kernel(**plan.directives)
    def timed_gemm(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32, times: pointer[u64]) -> None:
        start, since = ptx.clock64, ptx.globaltimer
        run(plan, [[a.generic], [b.generic]], Product(plan, CopyBack(d.generic), (m, n, k)))
        with ptx.when(ptx.tid.x == 0):
            times[ptx.ctaid.x * 2] = ptx.clock64 - start
            times[ptx.ctaid.x * 2 + 1] = ptx.globaltimer - since

    found: Kernel = timed_gemm
    return found


def microseconds(torch: Any, action: Any) -> float:
    """Of one run, as the mean of several in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(RUNS):
        action()
    start.record()
    for _ in range(RUNS):
        action()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3 / RUNS


def measure(torch: Any, depth: int, numbers: str) -> dict[str, Any]:
    """Times of the product and of cuBLAS, and the clock."""
    data = arrays(Device(torch, 1), "bf16", EXTENT, EXTENT, depth)
    for name in "ab":
        if numbers == "whole":
            data[name].copy_(torch.randint(-1, 2, data[name].shape, device="cuda"))
        if numbers == "zeros":
            data[name].zero_()
    shape = choose(Problem(EXTENT, EXTENT, depth))
    plain = product(**data, shape=shape)
    times = torch.zeros(2 * plain.grid, dtype=torch.int64, device="cuda")  # type: ignore[operator]
    launch = Launch(timed(shape), plain.grid, plain.block, [*plain.args[:6], times], plain.shared, overlap=True)
    own = launch.prepare(torch.cuda.current_stream()).launch
    ours, theirs, clocks = [], [], []
    for _ in range(ROUNDS):
        ours.append(microseconds(torch, own))
        cycles, nanoseconds = times.view(-1, 2).sum(0).tolist()
        clocks.append(cycles / nanoseconds)
        theirs.append(microseconds(torch, lambda: torch.matmul(data["a"], data["b"].T, out=data["d"])))
    return {
        "k": depth, "numbers": numbers, "us": round(statistics.median(ours), 2),
        "cuBLAS, us": round(statistics.median(theirs), 2), "GHz": round(statistics.median(clocks), 3),
    }  # fmt: skip


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else EVIDENCE
    torch = require_torch()
    about = {"command": "python benchmarks/product_clock.py", "date": date.today().isoformat(), "commit": commit()}
    rows = [measure(torch, depth, numbers) for depth in DEPTHS for numbers in NUMBERS]
    found = {**about, "machine": describe(torch), "m and n": EXTENT, "rows": rows}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
