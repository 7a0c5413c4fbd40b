"""Products of random sizes: every variant of ours that may be the fastest, or the chosen one, beside cuBLAS.

    python benchmarks/random_sizes.py collect FILE [--seconds 240] [--seed 1] [--types bf16,e4m3,gated] [--variants 40]
    python benchmarks/random_sizes.py judge FILE [--seconds 120] [--seed 2] [--types bf16,f16,e4m3]
    python benchmarks/random_sizes.py tables FILE [--seconds 60]
    python benchmarks/random_sizes.py prune FILE          deletes entries of the tables, and needs no GPU

needs an H200. Extents are drawn log-uniformly: m from 8 to 16384, n and k from 64 to 16384, in multiples of 8, half of
them with both operands along k; of 8-bit floats all three from 16 to 16384 in multiples of 16. `gated` is a gated
product of bf16, `gated_e4m3` one of 8-bit floats. With `residual` a matrix is added to a product of bf16, by cuBLAS,
too. `grouped` and `grouped_e4m3`, with scales of rows and columns, are `groups` products whose rows of A follow each
other, their numbers at random, against `torch._grouped_mm` and `_scaled_grouped_mm`; `inner` are those whose columns of
A do, as the gradients of weights are. Only `judge` knows `bias` and `gelu` (with a bias).

`collect` measures for each size the variants with the best estimates, and others at random that are estimated to take
a third longer at most, rather those that are estimated to take less; three of four sizes with few tiles, or with many,
are passed over, because estimates of them are good. `--least 128,4096,8192 --most 640,16384,16384` are bounds of m, n
and k, for a region of which little was measured.
`judge` measures what the functions choose, and prints the distribution and the worst sizes. `tables` measures the
products of the tables; `prune` then deletes the entries that are not clearly faster than what is estimated to be.

Processes share the GPU: each draws the next size, builds and assembles its variants, and has the GPU for itself while
it measures. Contenders take turns, each captured in a graph; before each sample, the L2 cache is filled with other
data. Every answer is checked first. The file is written every few seconds, so that a run can be ended at any time.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import math
import multiprocessing
import os
import queue
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tune_gemm import brief, write_table

from ptxlab import kernels
from ptxlab.device.array_types import TORCH_NAMES
from ptxlab.gpu.driver import call
from ptxlab.kernels import wgmma_dual_gemm, wgmma_formats, wgmma_gemm, wgmma_grouped_gemm
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import Problem, estimate, residual_cycles
from ptxlab.kernels.wgmma_gemm.choice import FORMATS_TABLE, TABLE, read_table, tuned
from ptxlab.kernels.wgmma_gemm.correction import best
from ptxlab.kernels.wgmma_grouped_gemm import inner
from ptxlab.kernels.wgmma_grouped_gemm.choice import Grouped, InnerGrouped
from ptxlab.launch.launches import UnsuitedError
from ptxlab.measure.data import poison
from ptxlab.measure.interleaving import order
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.report import KernelError, PtxError

LARGEST = 6e11  # multiplications of a product
LARGEST_WEIGHTS = 2e9  # elements of the matrices of all groups
FLUSHED = 256 << 20  # bytes that are written before each sample
TILES = 132 * 128 * 128 // 8  # elements of a result that are few: an eighth of what SMs have in tiles of 128x128
MANY = 32 * TILES  # that are many: four times as much
PASSED_OVER = 0.75  # of the sizes with few or many
HOPELESS = 1.35  # times the best estimate: what is estimated to take longer is not measured
CLOSE = 1.2  # times the fastest: what takes longer after the first rounds is not measured again
FIRST, MORE, JUDGED = 2, 5, 9  # rounds
ALIKE = 2  # variants of the same tile among those with the best estimates
EVERY = 3.0  # seconds after which the file is written
GRACE = 4.0  # seconds for a size that was started in time
HANGS = 30  # seconds for one size on the GPU: a process that takes longer is ended
STEEP = 10.0  # how much less often a variant is tried that is estimated to take longer
FASTER = 1.02  # than the best estimate: entries of the tables that stay
TOLERANCE = 4e-3  # of the norm of what is expected
ONLY_JUDGED = frozenset(("bias", "gelu"))

Action = Callable[[], Any]


@dataclass(frozen=True)
class Size:
    """A product: `layout` is as in BLAS, for A and the transpose of B."""

    type: str
    m: int
    n: int
    k: int
    layout: str = "NT"
    groups: int = 0

    @staticmethod
    def draw(types: Sequence[str], chance: random.Random) -> Size:
        """The next one."""

        def extent(low: int, step: int) -> int:
            found = math.exp(chance.uniform(math.log(low), math.log(16384)))
            return max(step, round(found / step) * step)

        while True:
            type = chance.choice(types)
            groups = chance.choice((2, 4, 8, 16, 64))
            if type == "grouped_e4m3":
                size = Size(type, extent(16, 16), extent(64, 16), extent(64, 16), "NT", groups)
            elif type.endswith("e4m3"):
                size = Size(type, extent(16, 16), extent(16, 16), extent(16, 16))
            elif type == "inner":
                size = Size(type, extent(64, 8), extent(64, 8), extent(64, 8), "TN", groups)
            elif type == "gated":
                layout = chance.choice(("NT", "NT", "NT", "NN"))
                size = Size(type, extent(16, 16), extent(16, 16), extent(16, 16), layout)
            elif type == "grouped":
                layout = chance.choice(("NT", "NN"))
                size = Size(type, extent(16, 8), extent(64, 8), extent(64, 8), layout, groups)
            else:
                layout = chance.choice(("NT", "NT", "NT", "NN", "TN", "TT"))
                size = Size(type, extent(8, 8), extent(64, 8), extent(64, 8), layout)
            weights = size.groups * size.n * (size.m if type == "inner" else size.k)
            if size.m * size.n * size.k <= LARGEST and weights <= LARGEST_WEIGHTS:
                return size

    @property
    def element(self) -> str:
        """The type of the operands."""
        return "e4m3" if self.type.endswith("e4m3") else "f16" if self.type == "f16" else "bf16"

    @property
    def is_gated(self) -> bool:
        """Whether two matrices B are multiplied, and their products with each other."""
        return self.type.startswith("gated")

    @property
    def problem(self) -> Problem:
        """What a variant is chosen for."""
        if self.is_gated:
            size = 1 if self.element == "e4m3" else 2
            return Problem(self.m, 2 * self.n, self.k, True, self.layout[1] == "T", size, gated=True)
        if self.type == "inner":
            return InnerGrouped.of(self.groups, self.k, self.m, self.n)
        if self.groups:
            size = 1 if self.element == "e4m3" else 2
            return Grouped(self.m, self.n, self.k, True, self.layout[1] == "T", size, groups=self.groups)
        if self.type == "e4m3":
            return wgmma_formats.problem_of(self.type, self.m, self.n, self.k)
        return Problem(self.m, self.n, self.k, self.layout[0] == "N", self.layout[1] == "T")

    def arrays(self, torch: Any) -> dict[str, Any]:
        """Memory for A, for B by columns, or for both of a gated product, and for D; and scales of 8-bit floats."""
        of = getattr(torch, TORCH_NAMES[self.element])

        def matrix(rows: int, columns: int, is_turned: bool, *groups: int) -> Any:
            shape = (columns, rows) if is_turned else (rows, columns)
            found = torch.empty((*groups, *shape), dtype=of, device="cuda")
            return found.mT if is_turned else found

        found = {"a": matrix(self.m, self.k, self.layout[0] == "T")}
        found |= {name: matrix(self.n, self.k, self.layout[1] == "N") for name in ("gu" if self.is_gated else "b")}
        if self.groups:
            is_inner = self.type == "inner"
            found["b"] = matrix(self.n, self.k, self.layout[1] == "N", *(() if is_inner else (self.groups,)))
            extent = self.k if is_inner else self.m
            ends = torch.randint(0, extent + 1, (self.groups - 1,), dtype=torch.int32, device="cuda")
            found["ends"] = torch.cat([ends.sort().values, ends.new_full((1,), extent)])
        elif self.type in ("bias", "gelu", "residual"):
            shape = (self.m, self.n) if self.type == "residual" else (self.n,)
            found[self.type] = torch.empty(shape, dtype=of, device="cuda")
        out = torch.bfloat16 if self.element == "e4m3" else of
        groups = (self.groups,) if self.type == "inner" else ()
        found |= {"d": torch.empty((*groups, self.m, self.n), dtype=out, device="cuda")}
        if self.type == "gated_e4m3":
            found |= {"scales": tuple(torch.full((1,), self.k**-0.25, device="cuda") for _ in range(3))}
        if self.type == "e4m3":
            found |= {name: torch.ones(1, device="cuda") for name in ("scale_a", "scale_b")}
        if self.type == "grouped_e4m3":
            found |= {"scale_a": torch.ones(self.m, device="cuda")}
            found |= {"scale_b": torch.ones(self.groups, self.n, device="cuda")}
        return found

    @property
    def tolerance(self) -> float:
        """How far an answer may be from what is expected, of whose norm."""
        return wgmma_dual_gemm.tolerance(self.element) if self.is_gated else TOLERANCE

    @property
    def product(self) -> Any:
        """What makes a launch of arrays and a variant."""
        if self.is_gated:
            return wgmma_dual_gemm.product
        if self.type == "inner":
            return lambda a, b, ends, d, shape: inner.launch(
                Formats.of("bf16"), (a.T, b.T, d), ends, (self.groups, self.k, self.m, self.n), shape
            )
        if self.groups:
            return lambda a, b, ends, d, shape, scale_a=None, scale_b=None: wgmma_grouped_gemm.product(
                a, b, ends, d, shape, scales=None if scale_a is None else (scale_a, scale_b)
            )
        return wgmma_formats.product if self.type == "e4m3" else wgmma_gemm.product


def fill(torch: Any, arrays: Mapping[str, Any]) -> None:
    """Draw the operands: products of gated ones are around 1."""
    for name in arrays.keys() & {"a", "b", "g", "u", "bias", "gelu", "residual"}:
        scale = arrays[name].shape[1] ** -0.5 if name in "gu" and "scales" not in arrays else 1.0
        arrays[name].copy_(torch.randn(arrays[name].shape, device="cuda") * scale)


def expect(torch: Any, arrays: Mapping[str, Any]) -> Any:
    """The answer in float64."""
    if "ends" in arrays:  # one matrix after the other: all of them are most of the memory, without being doubled
        starts, a = [0, *arrays["ends"].tolist()], arrays["a"].double()
        if arrays["b"].dim() == 2:
            b = arrays["b"].double()
            return torch.stack([a[:, one:end] @ b[:, one:end].T for one, end in itertools.pairwise(starts)])
        return torch.cat([a[starts[at] : starts[at + 1]] @ one.double().T for at, one in enumerate(arrays["b"])])
    exact = {name: array.double() for name, array in arrays.items() if name in "abgu"}
    if "g" in exact:
        return wgmma_dual_gemm.reference(torch, **exact, d=None, scales=arrays.get("scales"))["d"]
    found = exact["a"] @ exact["b"].T
    for name in arrays.keys() & {"bias", "gelu", "residual"}:
        found = found + arrays[name].double()
    return torch.nn.functional.gelu(found, approximate="tanh") if "gelu" in arrays else found


def library(torch: Any, a: Any, d: Any, **others: Any) -> Action:
    """cuBLAS, as torch calls it, with a new result; and what torch does to gate products."""
    if "g" in others:
        return lambda: wgmma_dual_gemm.in_torch(torch, a, others["g"], others["u"], d, others.get("scales"))
    b, scales = others["b"].mT, [others[name] for name in ("scale_a", "scale_b") if name in others]
    if "ends" in others and scales:
        return lambda: torch._scaled_grouped_mm(
            a, b, *scales, offs=others["ends"], out_dtype=d.dtype, use_fast_accum=True
        )
    if "ends" in others:
        return lambda: torch._grouped_mm(a, b, offs=others["ends"])
    if "gelu" in others:
        return lambda: torch._addmm_activation(others["gelu"], a, b, use_gelu=True)
    if added := [others[name] for name in ("bias", "residual") if name in others]:
        return lambda: torch.addmm(added[0], a, b)
    return lambda: torch._scaled_mm(a, b, *scales, out_dtype=d.dtype, use_fast_accum=True) if scales else a @ b


def function(a: Any, d: Any, **others: Any) -> Action:
    """Our function, with a new result."""
    if "g" in others:
        factors = dict(zip(("scale_x", "scale_w1", "scale_w2"), others.get("scales", ()), strict=False))
        return lambda: kernels.gated_matmul(a, others["g"].T, others["u"].T, **factors)
    b, scales = others["b"].mT, [others[name] for name in ("scale_a", "scale_b") if name in others]
    if "ends" in others:
        factors = dict(zip(("scale_a", "scale_b"), scales, strict=False))
        return lambda: kernels.grouped_matmul(a, b, others["ends"], **factors)
    if "gelu" in others:
        return lambda: kernels.matmul(a, b, bias=others["gelu"], activation="gelu_tanh")
    if added := {name: others[name] for name in ("bias", "residual") if name in others}:
        return lambda: kernels.matmul(a, b, **added)
    return lambda: kernels.scaled_matmul(a, b, *scales) if scales else kernels.matmul(a, b)


def of_tables() -> list[Size]:
    """The products of 16-bit and 8-bit floats that the tables have."""
    sizes = []
    for one in tuned():
        if (one.size, one.out_size) in ((1, 2), (2, 2)):
            layout = ("N" if one.a_along_k else "T") + ("T" if one.b_along_k else "N")
            sizes.append(Size("bf16" if one.size == 2 else "e4m3", one.m, one.n, one.k, layout))
    return sizes


def candidates(size: Size, count: int, chance: random.Random) -> list[Shape]:
    """The variants with the best estimates, and as many others at random."""
    problem, residual = size.problem, size.type == "residual"

    def cycles(shape: Shape) -> float:
        return estimate(problem, shape) + (residual_cycles(problem, shape) if residual else 0.0)

    found = best(problem, count // 2, ALIKE, residual)
    least = min(map(cycles, found))
    times = {one: cycles(one) / least for one in problem.shapes() if one not in found}
    order = {one: chance.random() ** math.exp(STEEP * (time - 1)) for one, time in times.items() if time < HOPELESS}
    return found + sorted(order, key=lambda one: -order[one])[: count - len(found)]


class Bench:
    """What measures on a GPU, in the process that has it."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.stream = torch, torch.cuda.Stream()
        self.other = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")

    def record(self, run: Action) -> Action:
        """The replay of a graph."""
        run()
        self.torch.cuda.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        graph.capture_begin()
        run()
        graph.capture_end()
        replay: Action = graph.replay
        return replay

    def sample(self, run: Action) -> float:
        """Microseconds of one run with a cold L2 cache."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        call("cuCtxResetPersistingL2Cache")  # what hints made the L2 cache keep
        self.other.fill_(1)
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    def turns(self, contenders: Mapping[str, Action], rounds: int, into: dict[str, list[float]]) -> None:
        """Each contender once in each round, in an order that changes."""
        for turn in range(rounds):
            for name in order(list(contenders), turn):
                into.setdefault(name, []).append(round(self.sample(contenders[name]), 2))

    def error(self, given: Any, expected: Any) -> float:
        """How far an answer is from what is expected, of whose norm."""
        return float((given.double() - expected).norm() / expected.norm())


def collect(bench: Bench, size: Size, count: int, chance: random.Random, alone: Any) -> dict[str, Any]:
    """The times of all variants and of cuBLAS, and what is wrong with the others."""
    return measure(bench, size, candidates(size, count, chance), alone)


def tables(bench: Bench, size: Size, count: int, chance: random.Random, alone: Any) -> dict[str, Any]:
    """The same of the variant of the tables, and of the one with the best estimate."""
    own = tuned()[size.problem]
    return measure(bench, size, [*dict.fromkeys([own, *best(size.problem, 1)])], alone) | {"table": brief(own)}


def measure(bench: Bench, size: Size, tried: Sequence[Shape], alone: Any) -> dict[str, Any]:
    """The times of these variants and of cuBLAS, and what is wrong with the others."""
    torch = bench.torch
    arrays = size.arrays(torch)
    prepared, wrong = {}, []
    for number, shape in enumerate(tried):
        try:
            prepared[number] = size.product(**arrays, shape=shape).prepare(bench.stream).launch
        except (UnsuitedError, KernelError, PtxError) as problem:
            wrong.append({"problem": str(problem), **brief(shape)})
    with alone:
        fill(torch, arrays)
        expected = expect(torch, arrays)
        runs = {"cuBLAS": bench.record(library(torch, **arrays))}
        for number, run in prepared.items():
            poison(torch, arrays["d"])
            run()
            error = bench.error(arrays["d"], expected)
            if error <= size.tolerance:
                runs[str(number)] = bench.record(run)
            else:
                wrong.append({"error": error, **brief(tried[number])})
        del expected
        samples: dict[str, list[float]] = {}
        bench.turns(runs, 1, {})
        bench.turns(runs, FIRST, samples)
        fastest = min(statistics.median(times) for times in samples.values())
        close = {name: run for name, run in runs.items() if statistics.median(samples[name]) <= CLOSE * fastest}
        bench.turns({"cuBLAS": runs["cuBLAS"], **close}, MORE, samples)
        torch.cuda.synchronize()
    found = [{"us": samples[name], **brief(tried[int(name)])} for name in samples if name != "cuBLAS"]
    return {
        "size": asdict(size),
        "cuBLAS": samples["cuBLAS"],
        "variants": sorted(found, key=lambda one: statistics.median(one["us"])),
        "wrong": wrong,
    }


def judge(bench: Bench, size: Size, count: int, chance: random.Random, alone: Any) -> dict[str, Any]:
    """The times of our function and of cuBLAS."""
    torch, arrays = bench.torch, size.arrays(bench.torch)
    ours = function(**arrays)
    ours()
    with alone:
        fill(torch, arrays)
        error = bench.error(ours(), expect(torch, arrays))
        runs = {"ours": bench.record(ours), "cuBLAS": bench.record(library(torch, **arrays))}
        samples: dict[str, list[float]] = {}
        bench.turns(runs, 3, {})
        bench.turns(runs, JUDGED, samples)
    row = {"size": asdict(size), **samples, "error": error}
    return row if error <= size.tolerance else row | {"wrong": True}


MODES = {"collect": collect, "judge": judge, "tables": tables}


@contextmanager
def has_gpu(path: str) -> Iterator[None]:
    """Have the GPU for this process alone: a lock that ends with the process, which ends if it takes too long."""
    with Path(path).open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        signal.alarm(HANGS)
        yield
        signal.alarm(0)


def draw(given: argparse.Namespace, chance: random.Random) -> Size:
    """The next size inside the bounds that is not passed over."""
    while True:
        size = Size.draw(given.types.split(","), chance)
        extents = zip(given.least, (size.m, size.n, size.k), given.most, strict=True)
        is_rare = given.mode == "collect" and not TILES < size.m * size.n < MANY and chance.random() < PASSED_OVER
        if not is_rare and all(low <= extent <= high for low, extent, high in extents):
            return size


def bounds(text: str) -> tuple[int, ...]:
    """Three extents."""
    m, n, k = map(int, text.split(","))
    return m, n, k


def work(given: argparse.Namespace, turn: Any, lock: str, done: Any, end: float) -> None:
    """A process: size after size, until there is no time left, or one failed."""
    torch = require_torch()
    bench = Bench(torch)
    torch.cuda.set_stream(bench.stream)
    is_good = True
    while time.time() < end and is_good:
        with turn.get_lock():
            number, turn.value = turn.value, turn.value + 1
        chance = random.Random(f"{given.seed} {number}")
        if given.mode == "tables" and number >= len(of_tables()):
            break
        size = of_tables()[number] if given.mode == "tables" else draw(given, chance)
        torch.manual_seed(number)
        try:
            row = MODES[given.mode](bench, size, given.variants, chance, has_gpu(lock))
        except Exception as problem:  # a size that failed is a result
            row, is_good = {"size": asdict(size), "failed": f"{type(problem).__name__}: {problem}"}, False
        done.put({"number": number, **row})
        if is_good:
            torch.cuda.empty_cache()


def ratio(row: Mapping[str, Any]) -> float:
    """How many times as fast as cuBLAS: our function, or the fastest variant."""
    ours = row["ours"] if "ours" in row else row["variants"][0]["us"]
    return float(statistics.median(row["cuBLAS"]) / statistics.median(ours))


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the distribution of each type, and the worst sizes."""
    for row in rows:
        if "failed" in row or row.get("wrong"):
            print("failed or wrong:", row["size"], json.dumps(row.get("failed", row.get("wrong")))[:600])
    good = [row for row in rows if "cuBLAS" in row and (row.get("ours") or row.get("variants"))]
    for type in dict.fromkeys(row["size"]["type"] for row in good):
        own = sorted((row for row in good if row["size"]["type"] == type), key=ratio)
        ratios = [ratio(row) for row in own]
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        at = {part: round(ratios[int(part * (len(ratios) - 1))], 3) for part in (0.0, 0.01, 0.05, 0.5)}
        below = {limit: sum(one < limit for one in ratios) for limit in (0.95, 0.9)}
        print(f"{type}: {len(own)} sizes, geometric mean {mean:.3f} of cuBLAS, quantiles {at}, below {below}")
        for row in own[:12]:
            size = "{m}x{n}x{k} {layout}".format(**row["size"])
            print(f"   {ratio(row):.3f} {size:26} cuBLAS {statistics.median(row['cuBLAS']):.1f} us")


def prune(path: Path) -> None:
    """Delete the entries of the tables that are not clearly faster than the variants with the best estimates."""
    needless = set()
    for row in (row for row in json.loads(path.read_text(encoding="utf-8"))["rows"] if row.get("variants")):
        times = [(statistics.median(one.pop("us")), one == row["table"]) for one in row["variants"]]
        own, other = (min((time for time, is_own in times if is_own == which), default=0.0) for which in (True, False))
        is_needless = other < FASTER * own  # also where both are the same variant
        print(row["size"], f"table {own:.1f}, estimated {other or own:.1f}", "is deleted" if is_needless else "stays")
        needless |= {Size(**row["size"]).problem} if is_needless else set()
    for table in (TABLE, FORMATS_TABLE):
        write_table(table, {problem: shape for problem, shape in read_table(table).items() if problem not in needless})


def main() -> None:
    """Start the processes, and write what they find."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=[*MODES, "prune"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--types", default="bf16")
    parser.add_argument("--variants", type=int, default=40)
    parser.add_argument("--least", type=bounds, default=(0, 0, 0))
    parser.add_argument("--most", type=bounds, default=(16384, 16384, 16384))
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    given = parser.parse_args()
    if given.mode == "collect" and ONLY_JUDGED & set(given.types.split(",")):
        parser.error(f"`collect` has no variants of {', '.join(sorted(ONLY_JUDGED))}: `judge` them")
    if given.mode == "prune":
        prune(given.file)
        return
    end = time.time() + given.seconds
    context = multiprocessing.get_context("spawn")
    turn, done = context.Value("q", 0), context.Queue()
    command = f"python benchmarks/random_sizes.py {given.mode} FILE --seconds {given.seconds:g} --seed {given.seed}"
    least, most = (",".join(map(str, one)) for one in (given.least, given.most))
    inside = f" --least {least} --most {most}" if any(given.least) or min(given.most) < 16384 else ""
    rows: list[dict[str, Any]] = []
    with tempfile.NamedTemporaryFile() as lock:

        def start() -> Any:
            one = context.Process(target=work, args=(given, turn, lock.name, done, end))
            one.start()
            return one

        workers = [start() for _ in range(given.processes)]
        about = {
            "command": f"{command} --types {given.types} --variants {given.variants}{inside}",
            "date": date.today().isoformat(),
            "commit": commit(),
            **describe(require_torch()),
        }
        written = time.time()
        while any(one.is_alive() for one in workers) or not done.empty():
            try:
                rows.append(done.get(timeout=1.0))
            except queue.Empty:
                alive = [one for one in workers if one.is_alive()]
                is_early = time.time() < end and given.mode != "tables"
                workers = alive + [start() for _ in range(len(workers) - len(alive)) if is_early]
            if time.time() > written + EVERY:
                keep(given.file, about, rows)
                written = time.time()
            for one in workers if time.time() > end + GRACE else ():
                one.terminate()
    keep(given.file, about, rows)
    show(rows)


def keep(path: Path, about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write what was found until now, a row a line."""
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: row["number"]))
    part = path.with_suffix(".part")
    part.write_text(f'{{"about": {json.dumps(about, indent=1)},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    main()
