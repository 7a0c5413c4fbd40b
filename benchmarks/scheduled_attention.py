"""Attention by a schedule, beside cuDNN and the kernel written by hand.

    python benchmarks/scheduled_attention.py FILE [--seconds 120]

needs an H200. Heads of 128 elements in bf16, without a mask, of several lengths. Contenders take turns, each captured
in a graph; before each sample, the L2 cache is filled with other data. Every answer is checked first.
"""

# ruff: noqa: B007, F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any

from random_sizes import Bench

from ptxlab import kernels
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.schedule import Schedule, algorithm, bf16, f32, schedule

TOLERANCE = 1e-2  # of the norm of what is expected
ROUNDS = 9


@algorithm
def attention(
    q: bf16["h", "m", 128], k: bf16["h", "n", 128], v: bf16["h", "n", 128], o: bf16["h", "m", 128], scale: f32
):
    for g, i in grid(h, m):
        for j in range(n):
            s = sum(q[g, i, x] * k[g, j, x] for x in range(128))
        top = max(s for j in range(n))
        for j in range(n):
            p = exp((s - top) * scale)
        total = sum(p for j in range(n))
        for c in range(128):
            o[g, i, c] = sum(p * v[g, j, c] for j in range(n)) / total


def one_pass(rows: int = 128, keys: int = 128, stages: int = 2, stored: bool = False) -> Schedule:
    s = schedule(attention)
    s.online("j")  # sums are rescaled as the maximum grows
    s.tile(i=rows).blocks("g", "i")
    s.tile(i=64).threads()  # a warpgroup for each 64 queries
    s.tile(j=keys).tensorize("wgmma")
    s.stage("q", "k", "v", in_="shared", swizzle="128B")
    if stored:
        s.stage("o", in_="shared", swizzle="128B")
    s.vectorize("q", "o", 8)
    s.pipeline(stages=stages, by="tma")
    return s.specialize()


SCHEDULES = {
    "128 queries, 128 keys": one_pass,
    "128 queries, 80 keys": lambda: one_pass(keys=80, stages=3),
    "128 queries, 176 keys": lambda: one_pass(keys=176),
    "192 queries, 80 keys": lambda: one_pass(192, 80, 3),
    "192 queries, 96 keys": lambda: one_pass(192, 96, 3),
    "128 queries, 128 keys, stored by TMA": lambda: one_pass(stored=True),
    "192 queries, 80 keys, stored by TMA": lambda: one_pass(192, 80, 3, stored=True),
}
LENGTHS = ((4, 16, 4096), (2, 16, 8192), (1, 16, 16384), (8, 16, 2048), (16, 16, 1024), (2, 8, 4096), (3, 16, 3000))


def measure(bench: Bench, schedules: dict[str, Schedule], batch: int, heads: int, length: int) -> dict[str, Any]:
    """The times of all, in microseconds."""
    torch = bench.torch
    q, k, v = (torch.randn((batch, heads, length, 128), device="cuda").to(torch.bfloat16) for _ in range(3))
    o = torch.empty_like(q)
    kind = torch.nn.attention.SDPBackend.CUDNN_ATTENTION

    def cudnn() -> Any:
        with torch.nn.attention.sdpa_kernel(kind):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    expected = cudnn().double()
    runs = {"cuDNN": bench.record(cudnn), "by hand": bench.record(lambda: kernels.attention(q, k, v, out=o))}
    flat = [one.view(batch * heads, length, 128) for one in (q, k, v, o)]
    wrong = {}
    for name, one in schedules.items():
        run = one.launch_of(*flat, 128**-0.5).prepare(bench.stream).launch
        o.fill_(math.nan)
        run()
        torch.cuda.synchronize()
        error = bench.error(o, expected)
        if error <= TOLERANCE:
            runs[name] = bench.record(run)
        else:
            wrong[name] = error
    samples: dict[str, list[float]] = {}
    bench.turns(runs, 1, {})
    bench.turns(runs, ROUNDS, samples)
    return {"batch": batch, "heads": heads, "length": length, "us": samples, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    torch = require_torch()
    bench, end = Bench(torch), time.time() + given.seconds
    torch.cuda.set_stream(bench.stream)
    schedules = {name: make() for name, make in SCHEDULES.items()}
    found: dict[str, Any] = {"date": date.today().isoformat(), "commit": commit(), **describe(torch), "rows": []}
    for size in LENGTHS:
        if time.time() > end:
            break
        row = measure(bench, schedules, *size)
        found["rows"].append(row)
        given.file.write_text(json.dumps(found, indent=1))
        medians = {name: statistics.median(times) for name, times in row["us"].items()}
        work = 4 * size[0] * size[1] * size[2] ** 2 * 128
        for name, median in medians.items():
            speed = work / median / 1e6
            print(f"{size} {name:24} {median:9.1f} us {speed:6.0f} TFLOPS, {medians['cuDNN'] / median:.3f} of cuDNN")
        if row["wrong"]:
            print("wrong:", row["wrong"])
    for name in schedules:
        each = [statistics.median(r["us"]["cuDNN"]) / statistics.median(r["us"][name]) for r in found["rows"]
                if name in r["us"]]  # fmt: skip
        if each:
            print(f"{name}: {math.exp(statistics.mean(map(math.log, each))):.3f} of cuDNN, worst {min(each):.3f}")


if __name__ == "__main__":
    main()
