"""Kernels that memory limits, by schedules of at most fifteen lines, beside `torch.compile`.

    python benchmarks/scheduled_rows.py FILE [--seconds 300] [--only "row sums,transpose"] [--sizes 4096x4096]

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
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

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


def shared_rows(of: Any, n: int, rows: int, threads: int, vector: int, *arrays: str) -> Schedule:
    """A block for some rows, which are in registers of so many threads each."""
    s = schedule(of, n=n)
    s.tile(i=rows).blocks()
    s.tile(j=threads * vector).tile(j=vector).threads("i", "j.1")
    return s.stage("x", in_="registers", at="").vectorize(*arrays, vector)


def warps_in_registers(of: Any, n: int, rows: int, vector: int, *arrays: str) -> Schedule:
    """A warp for each row, all of which is under way at once."""
    s = schedule(of, n=n)
    s.tile(i=rows).blocks().threads("i")
    s.tile(j=32 * vector).tile(j=vector).threads("j.1")
    return s.stage("x", in_="registers", at="").vectorize(*arrays, vector)


def evicting(made: dict[str, Schedule], *arrays: str, which: str = "first") -> dict[str, Schedule]:
    """These schedules with arrays that the L2 cache gives up first, or last."""
    named = f"{' and '.join(arrays)} evicted {which}"
    return {f"{name}, {named}": getattr(one.copy(), f"evict_{which}")(*arrays) for name, one in made.items()}


def by_tiles(down: int, across: int, rows: int = 0, order: str = "ij") -> Schedule:
    """Tiles go through shared memory, so that reads and writes are of whole rows; `order` is that of blocks."""
    s = schedule(transpose)
    s.tile(i=rows or across, j=across).blocks(*order)
    s.tile(j=down).threads().threads("i")
    return s.stage("x", in_="shared", at="", pad=1)


def by_vectors(rows: int, columns: int, each: int, order: str = "ij") -> Schedule:
    """Accesses to global memory are of 16 bytes, those to shared memory single elements, without bank conflicts."""
    s = schedule(transpose)
    s.tile(i=rows, j=columns).blocks(*order)
    s.tile(i=32).tile(i=4, j=columns // each)
    s.threads("i.1", "j.2", "i.2").unroll("j.1", "i.3")
    return s.stage("x", in_="shared", at="", pad=1).vectorize("x", "y", 4)


def by_patches(rows: int, columns: int, each: int) -> Schedule:
    """A thread has some rows of a column: what they share is read once."""
    s = schedule(convolution)
    s.tile(i=rows * each, j=columns).blocks()
    s.tile(i=each).threads("i.1", "j")
    return s.stage("x", "f", in_="registers", at="")


def softmaxes(m: int, n: int) -> dict[str, Schedule]:
    """Rows in registers."""
    made = {f"{t} threads": by_rows(softmax, n, t, 4, "x", "y") for t in (128, 256, 512) if n % (4 * t) == 0}
    return made | evicting(made, "x")


def norms(m: int, n: int) -> dict[str, Schedule]:
    """Rows in registers."""
    return {f"{t} threads": by_rows(rms_norm, n, t, 8, "x", "w", "y") for t in (64, 128, 256) if n % (8 * t) == 0}


def row_sums(m: int, n: int) -> dict[str, Schedule]:
    """Rows in registers, of a warp, a block, or several in a block; and as loops, with and without a cache policy."""
    made = {f"{t} threads, in registers": by_rows(row_sum, n, t, 4, "x") for t in (128, 256, 512) if n % (4 * t) == 0}
    if n <= 4096:
        made |= {f"{r} warps, in registers": warps_in_registers(row_sum, n, r, 4, "x") for r in (2, 8)}
    made["2 rows, 128 threads each"] = shared_rows(row_sum, n, 2, 128, 4, "x")
    first = evicting(made, "x")
    first |= evicting({"128 threads": long_rows(row_sum, 128, 4, "x")}, "x")
    return {"128 threads": long_rows(row_sum, 128, 4, "x"), **first}


def transposes(m: int, n: int) -> dict[str, Schedule]:
    """Single elements or 16 bytes; blocks along rows of x or of y, and what stays in the L2 cache."""
    made = {"8 rows, 32 x 32": by_tiles(8, 32), "vectors, 64 x 32": by_vectors(64, 32, 2, "ji")}
    kept = evicting(made, "y", which="last") | evicting(made, "x", which="last")
    return {**made, "vectors, 64 x 64": by_vectors(64, 64, 4, "ji"), **kept}


def gemvs(m: int, n: int) -> dict[str, Schedule]:
    """A block or a warp for each row."""
    made = {f"{t} threads": long_rows(gemv, t, 8, "a", "x") for t in (64, 128)}
    made |= {f"{rows} warps": warps_of_rows(gemv, rows, 8, "a", "x") for rows in (4, 8)}
    return made | evicting(made, "a")


def convolutions(m: int, n: int) -> dict[str, Schedule]:
    """Rows of a column for each thread."""
    return {f"{r} x {c}, {e} rows": by_patches(r, c, e) for r, c, e in ((4, 64, 4), (2, 128, 8), (8, 32, 4))}


class Compared(NamedTuple):
    """Arrays of sizes m and n, the output last; a function of torch and the others; schedules."""

    arrays: Callable[[int, int], list[tuple[tuple[int, ...], str]]]
    theirs: Callable[..., Any]
    schedules: Callable[[int, int], dict[str, Schedule]]


def torch_norm(torch: Any, x: Any, w: Any) -> Any:
    """RMS norm, computed in f32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(1, keepdim=True) + 1e-5) * w.float()).to(x.dtype)


F32, BF16 = "float32", "bfloat16"
SIZES = [(4096, 4096), (16384, 1024), (1024, 8192)]
KERNELS = {
    "softmax": Compared(lambda m, n: [((m, n), F32), ((m, n), F32)], lambda torch, x: torch.softmax(x, 1), softmaxes),
    "RMS norm": Compared(lambda m, n: [((m, n), BF16), ((n,), BF16), ((m, n), BF16)], torch_norm, norms),
    "row sums": Compared(lambda m, n: [((m, n), F32), ((m,), F32)], lambda torch, x: x.sum(1), row_sums),
    "transpose": Compared(lambda m, n: [((m, n), F32), ((n, m), F32)], lambda torch, x: x.T.contiguous(), transposes),
    "GEMV": Compared(
        lambda m, n: [((m, n), BF16), ((n,), BF16), ((m,), F32)], lambda torch, a, x: (a @ x).float(), gemvs
    ),
    "convolution": Compared(
        lambda m, n: [((m + 2, n + 2), F32), ((3, 3), F32), ((m, n), F32)],
        lambda torch, x, f: torch.nn.functional.conv2d(x[None, None], f[None, None])[0, 0],
        convolutions,
    ),
}


def kernels(text: str) -> list[str]:
    """Names of kernels."""
    names = text.split(",")
    if unknown := [name for name in names if name not in KERNELS]:
        raise argparse.ArgumentTypeError(f"no kernel {unknown[0]!r}, expected {', '.join(KERNELS)}")
    return names


def sizes(text: str) -> list[tuple[int, int]]:
    """`4096x4096,1024x8192`: rows and columns."""
    found = [tuple(map(int, one.split("x"))) for one in text.split(",")]
    return [(m, n) for m, n in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", type=kernels, default=[*KERNELS], help="kernels, in place of all of them")
    parser.add_argument("--sizes", type=sizes, default=SIZES, help="`4096x4096,1024x8192`, in place of all of them")
    given = parser.parse_args()
    torch, end = require_torch(), time.time() + given.seconds
    bench = Bench(torch)
    torch.cuda.set_stream(bench.stream)
    found: dict[str, Any] = {"date": date.today().isoformat(), "commit": commit(), **describe(torch), "rows": []}
    ratios: dict[str, list[float]] = {}
    for (m, n), name in product(given.sizes, given.only):
        if time.time() > end:
            break
        one = {"what": name, "size": (m, n), **measure(bench, torch, KERNELS[name], m, n)}
        found["rows"].append(one)
        given.file.write_text(json.dumps(found, indent=1))
        medians = {who: statistics.median(times) for who, times in one["us"].items()}
        for who, median in medians.items():
            print(f"{name} {m} x {n} {who:48} {median:9.2f} us, {medians['torch.compile'] / median:.3f}", flush=True)
        if one["wrong"]:
            print("wrong:", one["wrong"], flush=True)
        own = [median for who, median in medians.items() if who != "torch.compile"]
        ratios.setdefault(name, []).append(medians["torch.compile"] / min(own))
    for name, each in ratios.items():
        print(f"{name}: {math.exp(statistics.mean(map(math.log, each))):.3f} of torch.compile, worst {min(each):.3f}")


def measure(bench: Bench, torch: Any, kernel: Compared, m: int, n: int) -> dict[str, Any]:
    """The times of schedules and of `torch.compile`, in microseconds."""
    arguments = [torch.randn(shape, device="cuda").to(getattr(torch, kind)) for shape, kind in kernel.arrays(m, n)]

    def theirs(*inputs: Any) -> Any:
        return kernel.theirs(torch, *inputs)

    inputs = arguments[:-1]
    expected = theirs(*inputs).double()
    compiled = torch.compile(theirs, dynamic=False)  # for these sizes, as the schedules are
    compiled(*inputs)
    runs: dict[str, Any] = {"torch.compile": bench.record(lambda: compiled(*inputs))}
    wrong = {}
    for name, one in kernel.schedules(m, n).items():
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
