"""What benchmarks of products by schedules share: their options, and how a size is measured beside cuBLAS.

Processes share the GPU: each writes and assembles its kernels beside the others, and has the GPU for itself while it
measures. Contenders take turns, each captured in a graph; before each sample, the L2 cache is filled with other data.
Every answer is checked first.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from random_sizes import Bench

from ptxlab import kernels
from ptxlab.measure.data import poison
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.schedule import Schedule
from ptxlab.schedule.waves import waves

ROUNDS = 9
RANDOM = "random"
BASELINES = ("cuBLAS", "by hand")  # the library, and our kernel that no schedule made


@dataclass(frozen=True)
class Product:
    """What is measured: products whose operands are of a type, of which B is n by k where tensor cores multiply."""

    type: str
    tolerance: float
    """Of the norm of what is expected."""
    multiple: int
    """Of which n and k of random sizes are."""
    tiles: Mapping[str, Schedule]
    """At random sizes."""


@dataclass(frozen=True)
class Row:
    """Schedules at one size; at a random one, the first is the one that `choose` takes."""

    what: str
    schedules: Mapping[str, Schedule]
    size: tuple[int, int, int]

    @property
    def chosen(self) -> str:
        return next(iter(self.schedules)) if self.what == RANDOM else ""


def options(about: str | None) -> argparse.ArgumentParser:
    """The options of all of these benchmarks."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sizes", type=int, default=20, help="random sizes")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, help="the random sizes of a file, in place of others")
    parser.add_argument("--most", type=int, default=99, help="schedules of a random size, those estimated fastest")
    parser.add_argument("--without", help="leave schedules out whose names have this in them")
    parser.add_argument("--processes", type=int, default=1)
    return parser


def random_rows(given: argparse.Namespace, product: Product) -> list[Row]:
    """Sizes m, n and k, drawn log-uniformly from 64 to 8192, or those of a file."""
    chance, step = random.Random(given.seed), product.multiple
    sizes = []
    if given.again:
        found = json.loads(given.again.read_text())["rows"]
        sizes = [(one["m"], one["n"], one["k"]) for one in found if one["what"] == RANDOM]
    for _ in range(given.sizes if not given.again else 0):
        m, n, k = (round(math.exp(chance.uniform(math.log(64), math.log(8192)))) for _ in range(3))
        sizes.append((m, n // step * step, k // step * step))
    rows = []
    names = [name for name in product.tiles if given.without is None or given.without not in name]
    for size in sizes:
        order = sorted(names, key=lambda name: waves(product.tiles[name], dict(zip("mnk", size, strict=True))))
        rows.append(Row(RANDOM, {name: product.tiles[name] for name in order[: given.most]}, size))
    return rows


def measure_all(given: argparse.Namespace, product: Product, rows: list[Row]) -> None:
    """Measure rows while there is time, write them to the file, and print them."""
    end = time.time() + given.seconds
    context = multiprocessing.get_context("fork")  # before CUDA starts, so that schedules need not be sent
    alone, work = context.Lock(), partial(_measured, product, rows, end)
    with context.Pool(given.processes, _start, (alone, work)) as pool:
        torch = require_torch()
        found: dict[str, Any] = {"date": date.today().isoformat(), "commit": commit(), **describe(torch), "rows": []}
        ratios: dict[tuple[str, str], list[float]] = {}
        for number, one in pool.imap_unordered(_work, range(len(rows))):
            if one is None:
                continue
            found["rows"].append(one)
            given.file.write_text(json.dumps(found, indent=1))
            row, medians = rows[number], {name: statistics.median(times) for name, times in one["us"].items()}
            library = medians["cuBLAS"]
            for name, median in medians.items():
                mark = " (chosen)" if name == row.chosen else ""
                print(f"{row.what} {row.size} {name:34} {median:10.1f} us, {library / median:.3f} of cuBLAS{mark}")
            if one["wrong"]:
                print("wrong:", one["wrong"])
            if row.what == RANDOM and row.chosen in medians:
                best = min(time for name, time in medians.items() if name not in BASELINES)
                for base in (name for name in BASELINES if name in medians):
                    ratios.setdefault(("the best schedule", base), []).append(medians[base] / best)
                    ratios.setdefault(("the one that is chosen", base), []).append(medians[base] / medians[row.chosen])
    for (what, base), each in ratios.items():
        mean = math.exp(statistics.mean(map(math.log, each)))
        print(f"{len(each)} random sizes: {what} has {mean:.3f} of {base}, worst {min(each):.3f}")


_own: dict[str, Any] = {}  # what a process has: the bench, and what it does with a number


def _start(alone: Any, work: Callable[..., dict[str, Any] | None]) -> None:
    _own["work"], _own["alone"] = work, alone


def _work(number: int) -> tuple[int, dict[str, Any] | None]:
    if "bench" not in _own:
        torch = require_torch()
        torch.backends.cuda.matmul.allow_tf32 = False
        _own["bench"] = Bench(torch)
        torch.cuda.set_stream(_own["bench"].stream)
    return number, _own["work"](number, _own["bench"], _own["alone"])


def _measured(
    product: Product, rows: list[Row], end: float, number: int, bench: Bench, alone: Any
) -> dict[str, Any] | None:
    """The times of a row, or None where there is no time left."""
    row = rows[number]
    if time.time() > end:
        return None
    return {"what": row.what, "chosen": row.chosen, **measure(bench, product, row, alone)}


def measure(bench: Bench, product: Product, row: Row, alone: Any) -> dict[str, Any]:
    """The times of schedules and of cuBLAS, in microseconds."""
    torch, (m, n, k) = bench.torch, row.size
    kind = {"f32": torch.float32, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn}[product.type]
    a = torch.empty((m, k), device="cuda", dtype=kind)
    b = torch.empty((k, n) if product.type == "f32" else (n, k), device="cuda", dtype=kind)
    c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16 if product.type == "e4m3" else kind)
    prepared = {name: made.launch_of(a, b, c).prepare(bench.stream).launch for name, made in row.schedules.items()}
    right, one, wrong = b if product.type == "f32" else b.T, torch.ones((), device="cuda"), {}
    others: dict[str, Callable[[], Any]] = {}
    if product.type == "bf16" and row.what == RANDOM:
        others["by hand"] = lambda: kernels.matmul(a, right)
        others["by hand"]()

    def library() -> None:
        if product.type == "e4m3":
            torch._scaled_mm(a, right, one, one, out_dtype=torch.bfloat16, use_fast_accum=True, out=c)
        else:
            torch.matmul(a, right, out=c)

    with alone:
        for operand in (a, b):
            operand.copy_(torch.randn(operand.shape, device="cuda"))
        expected = a.float().double() @ right.float().double()
        runs = {name: bench.record(run) for name, run in {"cuBLAS": library, **others}.items()}
        for name, run in prepared.items():
            poison(torch, c)
            run()
            torch.cuda.synchronize()
            error = bench.error(c, expected)
            if error <= product.tolerance:
                runs[name] = bench.record(run)
            else:
                wrong[name] = error
        samples: dict[str, list[float]] = {}
        bench.turns(runs, 1, {})
        bench.turns(runs, ROUNDS, samples)
    return {"m": m, "n": n, "k": k, "us": samples, "wrong": wrong}
