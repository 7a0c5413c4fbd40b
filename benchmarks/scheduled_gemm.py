"""The product of f32 matrices by schedules: each adds a step to the one before, beside cuBLAS.

    python benchmarks/scheduled_gemm.py FILE [--sizes 20] [--seconds 300] [--seed 1] [--variants]

needs an H200. All schedules at 4096 x 4096 x 4096; the last, with several tiles, at random sizes, of which extents are
drawn log-uniformly from 64 to 8192. cuBLAS is what torch calls, without TF32. Contenders take turns, each captured in
a graph; before each sample, the L2 cache is filled with other data. Every answer is checked first.
"""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from random_sizes import Bench

from ptxlab.measure.data import poison
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.schedule import Schedule, algorithm, f32, schedule
from ptxlab.schedule.waves import waves

TOLERANCE = 1e-5  # of the norm of what is expected
ROUNDS = 9


@algorithm
def matmul(a: f32["m", "k"], b: f32["k", "n"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[x, j] for x in range(k))


def naive() -> Schedule:
    s = schedule(matmul)
    return s.tile(i=32, j=32).blocks().threads("j", "i")


def coalesced() -> Schedule:
    s = schedule(matmul)
    return s.tile(i=32, j=32).blocks().threads("i", "j")


def shared_memory() -> Schedule:
    s = coalesced()
    return s.tile(x=32).stage("a", "b", in_="shared").unroll("x.1")


def rows_of_threads() -> Schedule:
    s = schedule(matmul)
    s.tile(i=64, j=64).blocks()
    s.tile(i=8).threads().threads("j")
    s.tile(x=8).reorder("x", "i").unroll("x.1")
    return s.stage("a", "b", in_="shared").stage("a", "b", in_="registers")


def squares_of_threads() -> Schedule:
    s = schedule(matmul)
    s.tile(i=128, j=128).blocks()
    s.tile(i=8, j=8).threads()
    s.tile(x=8).reorder("x", "i", "j").unroll("x.1")
    return s.stage("a", "b", in_="shared").stage("a", "b", in_="registers")


def vectorized() -> Schedule:
    s = schedule(matmul)
    s.tile(i=128, j=128).blocks()
    s.tile(i=8, j=8).threads()
    s.tile(x=8).reorder("x", "i", "j").unroll("x.1")
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    return s.vectorize("a", "b", "c", 4)


def warp_tiles() -> Schedule:
    s = schedule(matmul)
    tiles_of_warps(s, 128, 128, 8)
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    return s.vectorize("a", "b", "c", 4)


def tiles_of_warps(s: Schedule, m: int, n: int, k: int, blocks: int = 1) -> Schedule:
    """32 x 64 for a warp; lanes that differ in bit 0 read the same of B, such that differ in bits 1 to 3 of A."""
    s.tile(i=m, j=n).blocks()
    s.tile(i=32, j=64).threads()
    s.tile(i=16, j=32)
    s.tile(i=8).threads().tile(j=4).threads().tile(i=4).threads()
    if blocks > 1:
        s.tile(x=k * blocks).tile(x=k).cluster()
    else:
        s.tile(x=k)
    return s.reorder("x", "i.2", "j.2", "i.5", "j.4").unroll(f"x.{2 if blocks > 1 else 1}")


def pipelined(m: int = 64, n: int = 256, k: int = 32, stages: int = 2, group: int = 8, blocks: int = 1) -> Schedule:
    s = tiles_of_warps(schedule(matmul), m, n, k, blocks)
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    s.vectorize("a", "b", "c", 4).pipeline(stages=stages)
    return s.raster(group).resident(max(1, 2 * 256 // s.state.thread_count))


def prefetched(m: int = 64, n: int = 256, k: int = 32, stages: int = 2, group: int = 8, blocks: int = 1) -> Schedule:
    return pipelined(m, n, k, stages, group, blocks).prefetch()


def by_sixteens(m: int, n: int, k: int = 16, stages: int = 4, blocks: int = 1) -> Schedule:
    """More warps for a tile: 16 x 32 for a warp, 4 x 4 for a thread."""
    s = schedule(matmul)
    s.tile(i=m, j=n).blocks()
    s.tile(i=16, j=32).threads()
    s.tile(i=8).threads().tile(j=4).threads().tile(i=4).threads()
    if blocks > 1:
        s.tile(x=k * blocks).tile(x=k).cluster()
    else:
        s.tile(x=k)
    s.reorder("x", "i.4", "j.3").unroll(f"x.{2 if blocks > 1 else 1}")
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    s.vectorize("a", "b", "c", 4).pipeline(stages=stages)
    return s.raster(8).prefetch()


STEPS = {
    "naive": naive,
    "coalesced": coalesced,
    "shared memory": shared_memory,
    "1-D tiling": rows_of_threads,
    "2-D tiling": squares_of_threads,
    "vectorized": vectorized,
    "warp tiling": warp_tiles,
    "pipelined": pipelined,
    "prefetched": prefetched,
}
VARIANTS = {
    "64x256x16, 4 stages": lambda: prefetched(k=16, stages=4),
    "64x256x16, 3 stages": lambda: prefetched(k=16, stages=3),
    "64x256x32, 2 stages": prefetched,
    "64x256x32, 2 stages, raster 16": lambda: prefetched(group=16),
    "128x128x32, 2 stages": lambda: prefetched(128, 128),
    "64x256x32, 2 stages, not prefetched": pipelined,
}
TILES = {
    "64x256": prefetched,
    "64x128": lambda: prefetched(64, 128, 16, 4),
    "64x64": lambda: prefetched(64, 64, 16, 4),
    "64x128, 2 blocks": lambda: prefetched(64, 128, 16, 4, blocks=2),
    "64x64, 2 blocks": lambda: prefetched(64, 64, 16, 4, blocks=2),
    "64x64, 4 blocks": lambda: prefetched(64, 64, 16, 4, blocks=4),
    "64x64, by 16": lambda: by_sixteens(64, 64),
    "32x64, by 16": lambda: by_sixteens(32, 64),
    "32x64, by 16, 2 blocks": lambda: by_sixteens(32, 64, blocks=2),
    "32x64, by 16, 4 blocks": lambda: by_sixteens(32, 64, blocks=4),
    "64x64, by 16, 4 blocks": lambda: by_sixteens(64, 64, blocks=4),
    "64x64, by 16, 8 blocks": lambda: by_sixteens(64, 64, blocks=8),
}
"""Tiles of blocks, which share a sum in clusters; a thread has 64 elements, or 16 where few blocks have a long sum."""


def measure(
    bench: Bench, schedules: dict[str, Schedule], m: int, n: int, k: int, type: str, tolerance: float
) -> dict[str, Any]:
    """The times of schedules and of cuBLAS, in microseconds; B is n by k where tensor cores multiply."""
    torch = bench.torch
    kind = {"f32": torch.float32, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn}[type]
    a = torch.randn((m, k), device="cuda").to(kind)
    b = torch.randn((k, n) if type == "f32" else (n, k), device="cuda").to(kind)
    right = b if type == "f32" else b.T
    c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16 if type == "e4m3" else kind)
    expected = a.float().double() @ right.float().double()
    one = torch.ones((), device="cuda")

    def library() -> None:
        if type == "e4m3":
            torch._scaled_mm(a, right, one, one, out_dtype=torch.bfloat16, use_fast_accum=True, out=c)
        else:
            torch.matmul(a, right, out=c)

    runs = {"cuBLAS": bench.record(library)}
    wrong = {}
    for name, made in schedules.items():
        run = made.launch_of(a, b, c).prepare(bench.stream).launch
        poison(torch, c)
        run()
        torch.cuda.synchronize()
        error = bench.error(c, expected)
        if error <= tolerance:
            runs[name] = bench.record(run)
        else:
            wrong[name] = error
    samples: dict[str, list[float]] = {}
    bench.turns(runs, 1, {})
    bench.turns(runs, ROUNDS, samples)
    return {"m": m, "n": n, "k": k, "us": samples, "wrong": wrong}


def measured(about: str | None, type: str, tolerance: float) -> tuple[argparse.Namespace, Any, Any]:
    """The options of a benchmark, what measures one size and writes the file, and what prints the end."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sizes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--quick", action="store_true", help="only the last two steps")
    parser.add_argument("--most", type=int, default=99, help="schedules of a random size, those estimated fastest")
    given = parser.parse_args()
    torch = require_torch()
    torch.backends.cuda.matmul.allow_tf32 = False
    bench = Bench(torch)
    torch.cuda.set_stream(bench.stream)
    found: dict[str, Any] = {"date": date.today().isoformat(), "commit": commit(), **describe(torch), "rows": []}
    ratios: dict[str, list[float]] = {"the best schedule": [], "the one that is chosen": []}

    def row(name: str, schedules: dict[str, Schedule], *size: int) -> None:
        chosen = ""
        if name == "random":
            named = dict(zip("mnk", size, strict=True))
            order = sorted(schedules, key=lambda name: waves(schedules[name], named))
            schedules = {name: schedules[name] for name in order[: given.most]}
            chosen = order[0]
        one = {"what": name, "chosen": chosen, **measure(bench, schedules, *size, type, tolerance)}
        found["rows"].append(one)
        given.file.write_text(json.dumps(found, indent=1))
        medians = {contender: statistics.median(times) for contender, times in one["us"].items()}
        library = medians["cuBLAS"]
        for contender, median in medians.items():
            mark = " (chosen)" if contender == chosen else ""
            print(f"{name} {size} {contender:34} {median:10.1f} us, {library / median:.3f} of cuBLAS{mark}", flush=True)
        if one["wrong"]:
            print("wrong:", one["wrong"], flush=True)
        if name == "random":
            ratios["the best schedule"].append(library / min(t for n, t in medians.items() if n != "cuBLAS"))
            if chosen:
                ratios["the one that is chosen"].append(library / medians[chosen])

    def finish() -> None:
        for what, each in ratios.items():
            if each:
                mean = math.exp(statistics.mean(map(math.log, each)))
                print(f"{len(each)} random sizes: {what} has {mean:.3f} of cuBLAS, worst {min(each):.3f}")

    return given, row, finish


def random_sizes(given: argparse.Namespace, multiple: int = 1) -> Iterator[list[int]]:
    """Extents m, n and k, drawn log-uniformly, while there is time; n and k are multiples of a number."""
    chance, end = random.Random(given.seed), time.time() + given.seconds
    for _ in range(given.sizes):
        if time.time() > end:
            return
        m, n, k = (round(math.exp(chance.uniform(math.log(64), math.log(8192)))) for _ in range(3))
        yield [m, n // multiple * multiple, k // multiple * multiple]


def main() -> None:
    given, row, finish = measured(__doc__, "f32", TOLERANCE)
    steps = dict(list(STEPS.items())[-2:]) if given.quick else STEPS
    row("steps", {name: make() for name, make in steps.items()}, 4096, 4096, 4096)
    if given.variants:
        row("variants", {name: make() for name, make in VARIANTS.items()}, 4096, 4096, 4096)
    tiles = {name: make() for name, make in TILES.items()}
    for size in random_sizes(given):
        row("random", tiles, *size)
    finish()


if __name__ == "__main__":
    main()
