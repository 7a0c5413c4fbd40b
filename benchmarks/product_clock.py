"""How fast the SMs' clock is while a large product runs, and what energy a product takes.

    python benchmarks/product_clock.py [FILE]        writes evidence/product_clock.json, needs an H200, for 17 seconds

Each block of `wgmma_gemm` reads `%clock64` and `%globaltimer` when it starts and when it ends. Products follow each
other as fast as they can, in turns with cuBLAS: of random numbers, of small whole numbers, of zeros. The same bytes are
moved and the same MMAs issued whatever the numbers are: only the energy differs. 4096 rows are tiles for 128 SMs, 4224
for all 132: were the clock the same, they would take the same time.

The same product runs in clusters of one, two and four blocks, which share the K tiles of A or of B by multicast, and
read less from the L2 cache: how many blocks run at a time, and what that does to time and clock.

Then each product, with and without what is added to it, runs for a second, and the GPU's counter of energy is read
before and after.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.author import Kernel, kernel, pointer, ptx, tensor_map, u32, u64
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.persistent import run
from ptxlab.kernels.parts.shapes import BLOCKS, Layout, Shape
from ptxlab.kernels.parts.tile_stores import CopyBack
from ptxlab.kernels.wgmma_gemm import launch, product
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.kernels.wgmma_gemm.kernel import Product, plan_of
from ptxlab.kernels.wgmma_gemm.measured import arrays, by_cublas
from ptxlab.launch.launches import Launch
from ptxlab.measure.data import Device
from ptxlab.measure.machine import commit, describe, require_torch

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "product_clock.json"
EXTENT, DEPTHS = 4096, (4096, 8192, 16384)
FOR_ALL = 4224  # rows that are tiles for all SMs
NUMBERS = ("random", "whole", "zeros")
EPILOGUES = ("", "bias", "gelu_tanh")
LARGE = Shape(stages=4, raster=16, buffers=2, even=True, keep=("", "evict_first"), early=1)
CLUSTERS = ((1, 1), (2, 2), (2, 1), (4, 4), (4, 2), (4, 1))  # blocks, and how many of them share A
FEWER = 104  # blocks that surely run at a time in clusters of four
RUNS, ROUNDS = 10, 5
SECONDS = 1.0  # for which energy is counted


def timed(shape: Shape) -> Kernel:
    """The product, whose blocks write the cycles and the nanoseconds that they took, and when they started."""
    plan = plan_of(Formats.of("bf16"), shape, Layout())

    @kernel(**plan.directives)
    def timed_gemm(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32, times: pointer[u64]) -> None:
        start, since = ptx.clock64, ptx.globaltimer
        run(plan, [[a.generic], [b.generic]], Product(plan, CopyBack(d.generic), (m, n, k)))
        with ptx.when(ptx.tid.x == 0):
            times[ptx.ctaid.x * 3] = ptx.clock64 - start
            times[ptx.ctaid.x * 3 + 1] = ptx.globaltimer - since
            times[ptx.ctaid.x * 3 + 2] = since

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


def measure(torch: Any, rows: int, depth: int, numbers: str) -> dict[str, Any]:
    """Times of a product of such numbers and of cuBLAS, and the clock."""
    data = arrays(Device(torch, 1), "bf16", rows, EXTENT, depth)
    for name in "ab":
        if numbers == "whole":
            data[name].copy_(torch.randint(-1, 2, data[name].shape, device="cuda"))
        if numbers == "zeros":
            data[name].zero_()
    shape = choose(Problem(EXTENT, EXTENT, depth))  # the same for more rows
    return {"m": rows, "k": depth, "numbers": numbers, **in_turns(torch, data, shape)}


def in_turns(torch: Any, data: Any, shape: Shape, blocks: int = BLOCKS) -> dict[str, Any]:
    """Times of a variant and of cuBLAS in turns, the clock, and how many blocks run at a time."""
    (m, k), (n, _) = data["a"].shape, data["b"].shape
    plain = launch("bf16", (data["a"], data["b"], data["d"]), (m, n, k), shape, blocks=blocks)
    times = torch.zeros(3 * plain.grid, dtype=torch.int64, device="cuda")  # type: ignore[operator]
    one = Launch(timed(shape), plain.grid, plain.block, [*plain.args[:6], times], plain.shared, overlap=True)
    own = one.prepare(torch.cuda.current_stream()).launch
    ours, theirs, clocks = [], [], []
    for _ in range(ROUNDS):
        ours.append(microseconds(torch, own))
        cycles, nanoseconds, started = times.view(-1, 3).unbind(1)
        clocks.append(int(cycles.sum()) / int(nanoseconds.sum()))
        together = int((started < (started + nanoseconds).min()).sum())
        theirs.append(microseconds(torch, lambda: torch.matmul(data["a"], data["b"].T, out=data["d"])))
    return {
        "us": round(statistics.median(ours), 2), "cuBLAS, us": round(statistics.median(theirs), 2),
        "GHz": round(statistics.median(clocks), 3), "blocks": plain.grid, "at a time": together,
    }  # fmt: skip


def clusters(torch: Any) -> list[dict[str, Any]]:
    """The same product in clusters, with as many blocks as there are SMs for, and with fewer."""
    data = arrays(Device(torch, 1), "bf16", EXTENT, EXTENT, EXTENT)
    found = []
    for blocks in (BLOCKS, FEWER):
        for cluster, beside in CLUSTERS:
            shared = [name for name, count in (("A", beside), ("B", cluster // beside)) if count > 1]
            about = {"cluster": cluster, "shares": " and ".join(shared)}
            shape = replace(LARGE, cluster=cluster, beside=beside)
            found.append({**about, **in_turns(torch, data, shape, blocks)})
    return found


class EnergyCounter:
    """What the GPU has taken, in joules, since its driver was loaded."""

    def __init__(self) -> None:
        self.library, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.library.nvmlInit_v2()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def read(self) -> float:
        found = ctypes.c_ulonglong()
        problem = self.library.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(found))
        if problem:
            raise RuntimeError(f"NVML reports error {problem}: this GPU counts no energy")
        return found.value / 1e3


def sustained(torch: Any, counter: EnergyCounter, action: Any) -> dict[str, float]:
    """Time, energy and power of one run, among as many in a row as take a second; the first ones are not counted."""
    count = max(1, round(SECONDS * 1e6 / microseconds(torch, action)))
    for _ in range(count // 4):
        action()
    torch.cuda.synchronize()
    start, since = counter.read(), time.perf_counter()
    for number in range(count):
        action()
        if number % 64 == 63:
            torch.cuda.synchronize()  # few are waiting, so that no queue is full
    torch.cuda.synchronize()
    joules, seconds = counter.read() - start, time.perf_counter() - since
    return {"us": round(seconds * 1e6 / count, 2), "mJ": round(joules * 1e3 / count, 2), "W": round(joules / seconds)}


def energy(torch: Any, counter: EnergyCounter, epilogue: str) -> dict[str, Any]:
    """What a product takes, and the same by cuBLAS."""
    data = arrays(Device(torch, 1), "bf16", EXTENT, EXTENT, EXTENT, epilogue=epilogue)
    own = product(**data).prepare(torch.cuda.current_stream()).launch
    library = by_cublas(torch, **data)
    wgmma = sustained(torch, counter, own)
    return {"k": EXTENT, "epilogue": epilogue, "wgmma": wgmma, "cuBLAS": sustained(torch, counter, library)}


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else EVIDENCE
    torch = require_torch()
    about = {"command": "python benchmarks/product_clock.py", "date": date.today().isoformat(), "commit": commit()}
    rows = [measure(torch, EXTENT, depth, numbers) for depth in DEPTHS for numbers in NUMBERS]
    rows += [measure(torch, FOR_ALL, EXTENT, numbers) for numbers in NUMBERS]
    grouped, counter = clusters(torch), EnergyCounter()
    taken = [energy(torch, counter, epilogue) for epilogue in EPILOGUES]
    found = {**about, "machine": describe(torch), "n": EXTENT, "rows": rows, "clusters": grouped, "energy": taken}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for row in [*rows, *grouped, *taken]:
        print(row)


if __name__ == "__main__":
    main()
