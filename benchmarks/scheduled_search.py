"""Whether the estimate chooses well: all variants of eleven algorithms, and each step of two, estimated and measured.

    python benchmarks/scheduled_search.py estimate FILE [--processes 16] [--seconds 180]
    python benchmarks/scheduled_search.py measure FILE [--seconds 60]
    python benchmarks/scheduled_search.py judge ESTIMATED MEASURED [--out FILE]

Estimates need no GPU, measurements an H200. Of each algorithm: how much of the speed of its fastest variant the one has
that the estimate takes for the fastest; of each step: whether the estimate and the measurement agree that it is faster
than the one before. FILE is written after each; what is in it already is not estimated again.
"""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import scheduled_attention as attention
import scheduled_gemm as f32_products
import scheduled_rows as rows
import scheduled_tensor_gemm as products
from random_sizes import Bench

from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.schedule import Schedule, algorithm, f32, schedule

ROUNDS = 7
Variants = dict[str, Callable[[], Schedule]]


@algorithm
def log_sum(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        for j in range(n):
            p = exp(x[i, j] - top)
        y[i] = top + log(sum(p for j in range(n)))


@algorithm
def gelu(x: f32["m", "n"], y: f32["m", "n"]):
    for i, j in grid(m, n):
        t = x[i, j]
        y[i, j] = 0.5 * t * (1.0 + tanh(0.7978845608 * (t + 0.044715 * t * t * t)))


def one_pass(threads: int) -> Schedule:
    return schedule(log_sum).online("j").blocks("i").tile(j=4 * threads).tile(j=4).threads().vectorize("x", 4)


def by_elements(threads: int, each: int) -> Schedule:
    s = schedule(gelu).tile(j=threads * each).blocks("i", "j").tile(j=each).threads()
    return s.vectorize("x", "y", each) if each > 1 else s


MATRIX = {"m": 4096, "n": 4096}
PRODUCT = {"m": 2048, "n": 2048, "k": 2048}
SPACES: dict[str, tuple[dict[str, int], Variants]] = {
    "f32 product": (
        PRODUCT,
        {name: f32_products.TILES[name] for name in ("64x256", "64x128", "64x64", "32x64, by 16")},
    ),
    "bf16 product": (
        PRODUCT,
        {
            one.name: one.schedule
            for one in (products.Tile(False, g, 1, n) for g, n in ((2, 256), (2, 128), (2, 192), (1, 64)))
        },
    ),
    "softmax": (
        MATRIX,
        {f"{t} threads": lambda t=t: rows.by_rows(rows.softmax, 4096, t, 4, "x", "y") for t in (128, 256, 512)},
    ),
    "RMS norm": (
        MATRIX,
        {f"{t} threads": lambda t=t: rows.by_rows(rows.rms_norm, 4096, t, 8, "x", "w", "y") for t in (64, 128, 256)},
    ),
    "row sums": (MATRIX, {f"{t} threads": lambda t=t: rows.long_rows(rows.row_sum, t, 4, "x") for t in (64, 128, 256)}),
    "transpose": (
        MATRIX,
        {f"{d} rows, {a}": lambda d=d, a=a: rows.by_tiles(d, a) for d, a in ((1, 32), (4, 32), (8, 32), (8, 64))},
    ),
    "GEMV": (
        MATRIX,
        {f"{t} threads": lambda t=t: rows.long_rows(rows.gemv, t, 8, "a", "x") for t in (64, 128)}
        | {f"{t} warps": lambda t=t: rows.warps_of_rows(rows.gemv, t, 8, "a", "x") for t in (4, 8)},
    ),
    "convolution": (
        {"h": 4096, "w": 4096},
        {
            f"{r} x {c}": lambda r=r, c=c, e=e: rows.by_patches(r, c, e)
            for r, c, e in ((4, 64, 4), (2, 128, 8), (8, 32, 1))
        },
    ),
    "log-sum-exp": (MATRIX, {f"{t} threads": lambda t=t: one_pass(t) for t in (64, 128, 256)}),
    "GELU": (MATRIX, {f"{t} x {e}": lambda t=t, e=e: by_elements(t, e) for t, e in ((256, 1), (256, 4), (64, 4))}),
    "attention": (
        {"h": 32, "m": 2048, "n": 2048},
        {
            name: attention.SCHEDULES[name]
            for name in ("128 queries, 128 keys", "128 queries, 80 keys", "192 queries, 96 keys")
        },
    ),
}
STEPS_OF: dict[str, tuple[dict[str, int], Variants]] = {
    "steps of f32": (PRODUCT, dict(f32_products.STEPS)),
    "steps of bf16": (PRODUCT, dict(products.STEPS)),
}
ALL = {**SPACES, **STEPS_OF}


def estimated(which: tuple[str, str]) -> tuple[str, str, float]:
    """The estimate of a variant, in microseconds."""
    sizes, variants = ALL[which[0]]
    return *which, variants[which[1]]().estimate(**sizes).seconds * 1e6


def measured(bench: Bench, sizes: dict[str, int], variants: Variants) -> dict[str, float]:
    """The medians of all variants, in microseconds."""
    torch, runs, kept = bench.torch, {}, []
    kinds = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    for name, make in variants.items():
        one = make()
        arguments = [
            torch.randn([e.value(sizes) for e in array.extents], device="cuda").to(kinds[array.element])
            if (array := one.algorithm.arrays.get(parameter)) is not None
            else 0.1
            for parameter in one.algorithm.parameters
        ]
        run = one.launch_of(*arguments).prepare(bench.stream).launch
        kept += [arguments, one, run]  # a graph owns neither what it reads nor its kernel
        runs[name] = bench.record(run)
    samples: dict[str, list[float]] = {}
    bench.turns(runs, 1, {})
    bench.turns(runs, ROUNDS, samples)
    return {name: statistics.median(times) for name, times in samples.items()}


def estimate(file: Path, processes: int, end: float) -> None:
    """Estimate what is not in a file yet, while there is time."""
    found: dict[str, dict[str, float]] = json.loads(file.read_text()) if file.exists() else {}
    left = [(what, name) for what, (_, variants) in ALL.items() for name in variants if name not in found.get(what, {})]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        results = pool.imap_unordered(estimated, left)
        for _ in left:
            try:
                what, name, value = results.next(timeout=max(0.1, end - time.time()))
            except multiprocessing.TimeoutError:
                break
            found.setdefault(what, {})[name] = value
            file.write_text(json.dumps(found, indent=1))
            print(f"{what:14} {name:28} {value:10.1f} us", flush=True)


def measure(file: Path, end: float) -> None:
    """Measure all variants, while there is time."""
    torch = require_torch()
    bench = Bench(torch)
    torch.cuda.set_stream(bench.stream)
    record: dict[str, Any] = {"date": date.today().isoformat(), "commit": commit(), **describe(torch), "measured": {}}
    for what, (sizes, variants) in ALL.items():
        if time.time() > end:
            break
        record["measured"][what] = times = measured(bench, sizes, variants)
        file.write_text(json.dumps(record, indent=1))
        for name, value in times.items():
            print(f"{what:14} {name:28} {value:10.1f} us", flush=True)


def judge(estimates: Path, measurements: Path, out: Path | None) -> None:
    """Compare both, of all variants that are in both."""
    guesses, found = json.loads(estimates.read_text()), json.loads(measurements.read_text())
    shares, signs, rows = {}, [], []
    for what, every in found.pop("measured").items():
        times = {name: time for name, time in every.items() if name in guesses.get(what, {})}
        if len(times) < 2:
            continue
        guessed = {name: guesses[what][name] for name in times}
        rows.append({"what": what, "sizes": ALL[what][0], "estimated": guessed, "measured": times})
        if what in SPACES:
            shares[what] = min(times.values()) / times[min(guessed, key=lambda name: guessed[name])]
            print(f"{what}: of {len(times)}, the variant that is chosen has {shares[what]:.3f} of the fastest")
        else:
            signs += [(times[a] > times[b]) == (guessed[a] > guessed[b]) for a, b in pairwise(times)]
    within = sum(share >= 0.9 for share in shares.values())
    print(f"{within} of {len(shares)} algorithms are within 10 % of the fastest variant")
    print(f"{sum(signs)} of {len(signs)} steps are estimated to change the time in the direction that was measured")
    if out is not None:
        out.write_text(json.dumps({**found, "rows": rows}, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("estimate", "measure", "judge"))
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    end = time.time() + given.seconds
    if given.what == "estimate":
        estimate(given.files[0], given.processes, end)
    elif given.what == "measure":
        measure(given.files[0], end)
    else:
        judge(*given.files, given.out)


if __name__ == "__main__":
    main()
