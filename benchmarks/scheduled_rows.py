"""Kernels that memory limits, by schedules of at most fifteen lines, beside `torch.compile`.

    python benchmarks/scheduled_rows.py FILE [--seconds 300] [--only "row sums"]

needs an H200. Softmax, RMS norm, sums of rows, transpose, matrix times vector and a convolution of 3 x 3, at three
sizes each; of each several schedules, `best` is the fastest of these. Contenders take turns, each captured in a
graph; before each sample, the L2 cache is filled with other data. Every answer is checked first.
"""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from random_sizes import Bench

from ptxlab.measure.data import poison
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.schedule import Schedule, algorithm, bf16, f32, schedule

ROUNDS = 9


@algorithm
def softmax(x: f32["m", "n"], y: f32["m", "n"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        total = sum(exp(x[i, j] - top) for j in range(n))
        for j in range(n):
            y[i, j] = exp(x[i, j] - top) / total


@algorithm
def rms_norm(x: bf16["m", "n"], w: bf16["n"], y: bf16["m", "n"]):
    for i in range(m):
        squares = sum(x[i, j] * x[i, j] for j in range(n))
        factor = rsqrt(squares / n + 1e-5)
        for j in range(n):
            y[i, j] = x[i, j] * factor * w[j]


@algorithm
def row_sum(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        y[i] = sum(x[i, j] for j in range(n))


@algorithm
def transpose(x: f32["m", "n"], y: f32["n", "m"]):
    for i, j in grid(m, n):
        y[j, i] = x[i, j]


@algorithm
def gemv(a: bf16["m", "n"], x: bf16["n"], y: f32["m"]):
    for i in range(m):
        y[i] = sum(a[i, j] * x[j] for j in range(n))


@algorithm
def convolution(x: f32["h+2", "w+2"], f: f32[3, 3], y: f32["h", "w"]):
    for i, j in grid(h, w):
        y[i, j] = sum(x[i + p, j + q] * f[p, q] for p in range(3) for q in range(3))


def by_rows(of: Any, n: int, threads: int, vector: int, *arrays: str) -> Schedule:
    """A block for each row, which is in registers from its first read on."""
    s = schedule(of, n=n)
    s.blocks("i")
    s.tile(j=threads * vector).tile(j=vector).threads("j.1")
    s.stage("x", in_="registers", at="")
    return s.vectorize(*arrays, vector)


def long_rows(of: Any, threads: int, vector: int, *arrays: str) -> Schedule:
    """A block for each row, which it goes along; four accesses are under way."""
    s = schedule(of)
    s.blocks("i")
    s.tile(j=4 * threads * vector).tile(j=threads * vector).tile(j=vector).threads("j.2")
    s.unroll("j.1")
    return s.vectorize(*arrays, vector)


def warps_of_rows(of: Any, rows: int, vector: int, *arrays: str) -> Schedule:
    """A warp for each row, which it goes along; four accesses are under way."""
    s = schedule(of)
    s.tile(i=rows).blocks().threads("i")
    s.tile(j=128 * vector).tile(j=32 * vector).tile(j=vector).threads("j.2")
    s.unroll("j.1")
    return s.vectorize(*arrays, vector)


def warps_in_registers(of: Any, n: int, rows: int, vector: int, *arrays: str) -> Schedule:
    """A warp for each row, all of which is under way at once."""
    s = schedule(of, n=n)
    s.tile(i=rows).blocks().threads("i")
    s.tile(j=32 * vector).tile(j=vector).threads("j.1")
    return s.stage("x", in_="registers", at="").vectorize(*arrays, vector)


def evicting(made: dict[str, Schedule], *arrays: str) -> dict[str, Schedule]:
    """These schedules, and the same with arrays that the L2 cache gives up first."""
    first = {
        f"{name}, {' and '.join(arrays)} evicted first": one.copy().evict_first(*arrays) for name, one in made.items()
    }
    return made | first


def by_tiles(down: int, across: int) -> Schedule:
    """Squares go through shared memory, so that reads and writes are both of whole rows."""
    s = schedule(transpose)
    s.tile(i=across, j=across).blocks()
    s.tile(j=down).threads().threads("i")
    return s.stage("x", in_="shared", at="", pad=1)


def by_vectors(each: int) -> Schedule:
    """The same, and a thread stores four elements at once."""
    s = schedule(transpose)
    s.tile(i=64, j=64).blocks()
    s.tile(i=4, j=each).threads("j.1", "i.1")
    s.unroll("j", "i")
    return s.stage("x", in_="shared", at="", pad=1).vectorize("y", 4)


def by_patches(rows: int, columns: int, each: int) -> Schedule:
    """A thread has some rows of a column: what they share is read once."""
    s = schedule(convolution)
    s.tile(i=rows * each, j=columns).blocks()
    s.tile(i=each).threads("i.1", "j")
    return s.stage("x", "f", in_="registers", at="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", action="append", help="a kernel, in place of all of them")
    given = parser.parse_args()
    torch, end = require_torch(), time.time() + given.seconds
    bench = Bench(torch)
    torch.cuda.set_stream(bench.stream)
    found: dict[str, Any] = {"date": date.today().isoformat(), "commit": commit(), **describe(torch), "rows": []}
    ratios: dict[str, list[float]] = {}
    for name, size, arguments, function, schedules in cases(torch):
        if given.only and name not in given.only:
            continue
        if time.time() > end:
            break
        one = {"what": name, "size": size, **measure(bench, torch, arguments, function, schedules)}
        found["rows"].append(one)
        given.file.write_text(json.dumps(found, indent=1))
        medians = {who: statistics.median(times) for who, times in one["us"].items()}
        for who, median in medians.items():
            print(f"{name} {size} {who:28} {median:9.2f} us, {medians['torch.compile'] / median:.3f}", flush=True)
        if one["wrong"]:
            print("wrong:", one["wrong"], flush=True)
        own = [median for who, median in medians.items() if who != "torch.compile"]
        ratios.setdefault(name, []).append(medians["torch.compile"] / min(own))
    for name, each in ratios.items():
        print(f"{name}: {math.exp(statistics.mean(map(math.log, each))):.3f} of torch.compile, worst {min(each):.3f}")


def cases(torch: Any) -> Any:
    """Each kernel at each size: arguments with the output last, a function of torch, and schedules."""

    def normal(*shape: int, kind: Any = torch.float32) -> Any:
        return torch.randn(shape, device="cuda").to(kind)

    half = torch.bfloat16

    def rms(x: Any, w: Any, y: Any) -> Any:
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(1, keepdim=True) + 1e-5) * w.float()).to(x.dtype)

    def convolve(x: Any, f: Any, y: Any) -> Any:
        return torch.nn.functional.conv2d(x[None, None], f[None, None])[0, 0]

    for m, n in ((4096, 4096), (16384, 1024), (1024, 8192)):
        x = normal(m, n)
        made = {f"{t} threads": by_rows(softmax, n, t, 4, "x", "y") for t in (128, 256, 512) if n % (4 * t) == 0}
        yield "softmax", (m, n), [x, torch.empty_like(x)], lambda x, y: torch.softmax(x, 1), made
        x, w = normal(m, n, kind=half), normal(n, kind=half)
        made = {f"{t} threads": by_rows(rms_norm, n, t, 8, "x", "w", "y") for t in (64, 128, 256) if n % (8 * t) == 0}
        yield "RMS norm", (m, n), [x, w, torch.empty_like(x)], rms, made
        x = normal(m, n)
        made = {f"{t} threads": long_rows(row_sum, t, 4, "x") for t in (128, 256)}
        made |= {
            f"{t} threads, in registers": by_rows(row_sum, n, t, 4, "x") for t in (64, 128, 256) if n % (4 * t) == 0
        }
        made |= {f"{r} warps, in registers": warps_in_registers(row_sum, n, r, 4, "x") for r in (4,) if n <= 4096}
        made = evicting(made, "x")
        yield "row sums", (m, n), [x, torch.empty(m, device="cuda")], lambda x, y: x.sum(1), made
        made = {f"{d} rows, {a} x {a}": by_tiles(d, a) for d, a in ((8, 32), (8, 64), (16, 64))}
        made |= {f"vectors, {e} each": by_vectors(e) for e in (2, 4)}
        made = evicting(made, "x") | evicting(made, "x", "y")
        yield "transpose", (m, n), [x, normal(n, m)], lambda x, y: x.T.contiguous(), made
        a, v = normal(m, n, kind=half), normal(n, kind=half)
        made = {f"{t} threads": long_rows(gemv, t, 8, "a", "x") for t in (64, 128)}
        made |= {f"{rows} warps": warps_of_rows(gemv, rows, 8, "a", "x") for rows in (4, 8)}
        made = evicting(made, "a")
        yield "GEMV", (m, n), [a, v, torch.empty(m, device="cuda")], lambda a, v, y: (a @ v).float(), made
        x, f = normal(m + 2, n + 2), normal(3, 3)
        made = {f"{r} x {c}, {e} rows": by_patches(r, c, e) for r, c, e in ((4, 64, 4), (2, 128, 8), (8, 32, 4))}
        yield "convolution", (m, n), [x, f, torch.empty((m, n), device="cuda")], convolve, made


def measure(
    bench: Bench, torch: Any, arguments: list[Any], function: Callable[..., Any], schedules: dict[str, Schedule]
) -> dict[str, Any]:
    """The times of schedules and of `torch.compile`, in microseconds."""
    expected = function(*arguments).double()
    compiled = torch.compile(function)
    compiled(*arguments)
    runs: dict[str, Any] = {"torch.compile": bench.record(lambda: compiled(*arguments))}
    wrong = {}
    for name, one in schedules.items():
        run = one.launch_of(*arguments).prepare(bench.stream).launch
        poison(torch, arguments[-1])
        run()
        torch.cuda.synchronize()
        error = bench.error(arguments[-1], expected)
        if error <= 1e-2:
            runs[name] = bench.record(run)
        else:
            wrong[name] = error
    samples: dict[str, list[float]] = {}
    bench.turns(runs, 1, {})
    bench.turns(runs, ROUNDS, samples)
    return {"us": samples, "wrong": wrong}


if __name__ == "__main__":
    main()
