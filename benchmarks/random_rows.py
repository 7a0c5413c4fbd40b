"""Functions of rows at random sizes and addresses, beside torch and torch.compile, on a GPU.

    python benchmarks/random_rows.py judge SECONDS SEED [FILE]      our function beside both, at sizes that are drawn
    python benchmarks/random_rows.py judge SECONDS named [FILE]     the same at sizes that have been named
    python benchmarks/random_rows.py explore SECONDS SEED [FILE]    many ways to share a row, and both

Rows are of bf16: 1 to 262,144 elements, 1 to 200,000 of them, drawn log-uniformly, 2¹² to 2²⁸ elements in all. A
quarter of the matrices begin at an odd place of their memory. An answer is compared with float64 before it is timed.
Times are those of CUDA graphs of one call, the L2 cache cold, contenders in turns. Processes compile at the same time;
one of them at a time uses the GPU.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import queue
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = ("softmax", "rms_norm", "layer_norm")
NAMED = (
    (4096, 32768), (1024, 131072), (512, 262144), (16384, 8192), (131072, 1024), (1000, 30522), (500, 50257),
    (4096, 11008), (100000, 200), (20000, 768),
)  # fmt: skip
WORKERS = 12
MOST = 400  # sizes
ROUNDS = 11
CHECKED = 1 << 21  # elements of the rows that are compared
EPSILON = 1e-6
TOLERANCE = 8e-3  # two roundings to bf16

Action = Callable[[], Any]
Size = tuple[str, int, int, int]
"""A function, rows, elements of each, and the element at which the matrix begins."""


def draw(seed: str) -> Iterator[Size]:
    """Sizes that were named, or for ever those of a seed."""
    if seed == "named":
        yield from ((name, *size, 0) for size in NAMED for name in FUNCTIONS)
        return
    source = random.Random(int(seed))
    while True:
        columns, rows = (round(math.exp(source.uniform(0, math.log(most)))) for most in (262144, 200000))
        offset = source.choice([0, 0, 0, source.randrange(1, 8)])
        if 1 << 12 <= rows * columns <= 1 << 28:
            yield source.choice(FUNCTIONS), rows, columns, offset


def in_torch(torch: Any, name: str, columns: int) -> Callable[..., Any]:
    """A function of rows in torch."""
    functional = torch.nn.functional
    found: dict[str, Callable[..., Any]] = {
        "softmax": lambda x: torch.softmax(x, -1),
        "rms_norm": lambda x, weight: functional.rms_norm(x, (columns,), weight, EPSILON),
        "layer_norm": lambda x, weight, bias: functional.layer_norm(x, (columns,), weight, bias, EPSILON),
    }
    return found[name]


class Case:
    """A function on arrays of a size, and the same in torch."""

    def __init__(self, torch: Any, size: Size) -> None:
        self.torch, self.size = torch, size
        self.name, rows, self.columns, offset = size
        whole = torch.randn(rows * self.columns + offset, device="cuda", dtype=torch.bfloat16)
        self.x = whole[offset:].view(rows, self.columns)
        weights = [torch.randn(self.columns, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
        self.weights = weights[: FUNCTIONS.index(self.name)]
        self.theirs = in_torch(torch, self.name, self.columns)

    def ours(self) -> Any:
        from ptxlab import kernels

        epsilon = [EPSILON] if self.weights else []
        return getattr(kernels, self.name)(self.x, *self.weights, *epsilon)

    def launch(self, y: Any, spread: Any = None) -> Any:
        """Our launch, with the spread that is chosen or another."""
        from ptxlab.kernels.layer_norm import read_once as layer_norm
        from ptxlab.kernels.layer_norm.kernel import layer_norm as layer_norm_kernel
        from ptxlab.kernels.parts.rows import launch_rows
        from ptxlab.kernels.rms_norm import fused
        from ptxlab.kernels.rms_norm.kernel import Form
        from ptxlab.kernels.rms_norm.kernel import rms_norm as rms_norm_kernel
        from ptxlab.kernels.softmax import read_once as softmax
        from ptxlab.kernels.softmax.kernel import softmax as softmax_kernel

        x, weights, (rows, columns) = self.x, self.weights, self.x.shape
        if self.name == "softmax":
            arguments = [x, y, rows, columns]
            return softmax(x, y) if spread is None else launch_rows(softmax_kernel, spread, rows, arguments)
        if self.name == "rms_norm":
            arguments = [x, *weights, y, 0, 0, 0, rows, columns, EPSILON]
            if spread is None:
                return fused(x, weights[0], y, 0, 0, 0, EPSILON, Form())
            return launch_rows(rms_norm_kernel, spread, rows, arguments, form=Form())
        arguments = [x, *weights, y, rows, columns, EPSILON]
        if spread is None:
            return layer_norm(x, weights[0], weights[1], y, EPSILON)
        return launch_rows(layer_norm_kernel, spread, rows, arguments)

    def error(self, found: Any) -> float:
        """How far an answer is from float64, at its worst, in some rows of all parts of the matrix."""
        rows = self.x.shape[0]
        count = max(min(rows, CHECKED // self.columns), 1)
        some = self.torch.linspace(0, rows - 1, count, device="cuda").round().long().unique()
        wanted = self.theirs(self.x[some].double(), *(one.double() for one in self.weights))
        scale = wanted.abs().amax(-1, keepdim=True).clamp_min(1e-30)
        return float(((found[some].double() - wanted).abs() / scale).max())


def candidates(case: Case, most: int = 18) -> dict[str, Any]:
    """Ways to share a row that may be good, by name: with more and fewer threads, blocks, and other vectors."""
    from ptxlab.kernels.parts.spreads import Access, Spread

    _, _, columns, offset = case.size
    vector = math.gcd(columns, offset, 8)
    ways = [Access(vector)]
    if vector < 8 and columns >= 48:
        ways.append(Access(8, 7 if offset or case.weights else 0, offset > 0))
    found = []
    for access in ways:
        for threads in (1 << power for power in range(14)):
            held = -(-access.count(columns) // threads)
            if held * access.vector > 64 or threads * access.vector >= 2 * columns:
                continue
            for cluster in (1, 2, 4, 8, 16):
                block = threads // cluster
                if block <= 1024 and (cluster == 1 or block >= 128):
                    plain = Spread("bf16", access, threads, held, True, cluster)
                    found += [plain, replace(plain, is_eager=True)] if case.weights else [plain]
    source = random.Random(columns)
    return {str(one): one for one in source.sample(found, min(most, len(found)))}


def record(torch: Any, action: Action, stream: Any) -> tuple[Action, Any]:
    """What replays a graph of an action, and its result there."""
    with torch.cuda.stream(stream):
        for _ in range(2):
            action()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        result = action()
        graph.capture_end()
    return graph.replay, result


def take_times(torch: Any, actions: dict[str, Action], rounds: int) -> dict[str, list[float]]:
    """Microseconds of each contender, in turns, with an L2 cache that holds nothing of theirs."""
    from ptxlab.measure.interleaving import take_turns

    filler = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def timed(action: Action) -> Callable[[], float]:
        def microseconds() -> float:
            filler.fill_(1)
            begin.record()
            action()
            end.record()
            end.synchronize()
            return float(begin.elapsed_time(end)) * 1e3

        return microseconds

    timers = {name: timed(action) for name, action in actions.items()}
    for timer in timers.values():
        timer()
    return take_turns(timers, rounds)


def compile_ahead(launch: Any) -> None:
    """Have ptxas compile a launch, which takes no GPU."""
    from ptxlab import gpu
    from ptxlab.gpu.loading import compile_text
    from ptxlab.syntax import format

    module = launch.module
    architecture = gpu.gpu(0).architecture_for(module.target)
    assert architecture is not None
    compile_text(format(module), architecture, module.source)


def compiled_by_torch(case: Case) -> Action:
    """The same in torch, compiled for the size."""
    case.torch.compiler.reset()
    made = case.torch.compile(case.theirs, dynamic=False)
    made(case.x, *case.weights)
    return lambda: made(case.x, *case.weights)


def judge(torch: Any, size: Size, lock: Any) -> dict[str, Any]:
    """Our function beside torch and torch.compile at a size."""
    with lock:
        case = Case(torch, size)
        torch.cuda.synchronize()
    compiled = compiled_by_torch(case)
    compile_ahead(case.launch(torch.empty(case.x.shape, dtype=case.x.dtype, device="cuda")))
    with lock:
        contenders: dict[str, Action] = {
            "ptxlab": case.ours,
            "torch.compile": compiled,
            "torch": lambda: case.theirs(case.x, *case.weights),
        }
        stream = torch.cuda.Stream()
        recorded = {name: record(torch, action, stream) for name, action in contenders.items()}
        actions = {name: action for name, (action, _) in recorded.items()}
        for action in actions.values():
            action()
        torch.cuda.synchronize()
        errors = {name: case.error(found) for name, (_, found) in recorded.items()}
        samples = take_times(torch, actions, ROUNDS)
    return {"size": size, "spread": spread_of(case), "errors": errors, "samples": samples}


def spread_of(case: Case) -> str:
    """The name of our kernel, which says how its rows are shared."""
    return str(case.launch(case.torch.empty_like(case.x)).function.name)


def explore(torch: Any, size: Size, lock: Any) -> dict[str, Any]:
    """Many ways to share a row at a size, beside torch and torch.compile."""
    from ptxlab.report import KernelError

    with lock:
        case = Case(torch, size)
        y = torch.empty(case.x.shape, dtype=case.x.dtype, device="cuda")
        torch.cuda.synchronize()
    compiled = compiled_by_torch(case)
    launches = {"chosen": case.launch(y), **{name: case.launch(y, one) for name, one in candidates(case).items()}}
    for launch in launches.values():
        compile_ahead(launch)
    with lock:
        actions: dict[str, Action] = {}
        errors, refused, stream = {}, {}, torch.cuda.Stream()
        for name, launch in launches.items():
            y.fill_(math.nan)
            torch.cuda.synchronize()
            try:
                actions[name], _ = record(torch, launch.prepare(stream).launch, stream)
            except KernelError as problem:
                refused[name] = str(problem)[:500]
            else:
                errors[name] = case.error(y)
        actions["torch"], _ = record(torch, lambda: case.theirs(case.x, *case.weights), stream)
        actions["torch.compile"], _ = record(torch, compiled, stream)
        samples = take_times(torch, actions, ROUNDS)
    return {"size": size, "spread": spread_of(case), "errors": errors, "samples": samples, "refused": refused}


MODES = {"judge": judge, "explore": explore}


def work(mode: str, sizes: Any, found: Any, lock: Any, folder: str, end: float) -> None:
    """Measure one size after the other; only what is under the lock uses the GPU."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/inductor"
    from ptxlab.measure.machine import require_torch

    torch = require_torch()
    torch.set_grad_enabled(False)
    tuner = import_module("torch._inductor.runtime.triton_heuristics").CachingAutotuner
    plain = tuner.run

    def alone(self: Any, *given: Any, **named: Any) -> Any:
        with lock:
            return plain(self, *given, **named)

    tuner.run = alone
    while time.time() < end:
        try:
            size = sizes.get(timeout=1)
        except queue.Empty:
            break
        try:
            found.put(MODES[mode](torch, size, lock))
        except Exception as problem:
            found.put({"size": size, "problem": f"{type(problem).__name__}: {problem}"[:2000]})
            if torch.cuda.is_available() and "CUDA" in str(problem):
                break
    found.put(None)


def ratio(one: dict[str, Any]) -> float:
    """Of a judged size, the time of the better of torch and torch.compile in ours."""
    medians = {name: statistics.median(times) for name, times in one["samples"].items()}
    ours = medians.pop("ptxlab")
    return float(min(medians.values()) / ours)


def show_judged(results: list[dict[str, Any]]) -> None:
    """The distribution of ratios for each function and for all, and the sizes that are worst."""
    for name in (*FUNCTIONS, "all"):
        ratios = sorted(ratio(one) for one in results if name in (one["size"][0], "all"))
        if not ratios:
            continue
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        low, middle = (ratios[int(part * (len(ratios) - 1))] for part in (0.05, 0.5))
        below = sum(value < 0.95 for value in ratios)
        print(f"{name:10} {len(ratios):4} sizes: mean {mean:.3f}, 5 % {low:.3f}, median {middle:.3f}, "
              f"lowest {ratios[0]:.3f}, below 0.95: {below}")  # fmt: skip
    for value, one in sorted(((ratio(one), one) for one in results), key=lambda pair: pair[0])[:40]:
        medians = " ".join(f"{statistics.median(times):8.1f}" for times in one["samples"].values())
        print(f"  {value:.2f} {one['size'][0]:10} {one['size'][1:]!s:24} {medians}  {one['spread'][:60]}")


def show_explored(results: list[dict[str, Any]]) -> None:
    """The best ways of each size."""
    for one in sorted(results, key=lambda one: (one["size"][0], one["size"][2])):
        medians = {name: statistics.median(times) for name, times in one["samples"].items()}
        others = " ".join(f"{name} {medians.pop(name):.1f}" for name in ("torch", "torch.compile", "chosen"))
        best = ", ".join(f"{time:.1f} {name}" for time, name in sorted((t, n) for n, t in medians.items())[:3])
        print(f"{one['size'][0]:10} {one['size'][1:]!s:22} {others}: {best}")


def main() -> None:
    mode, seconds, seed = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    path = Path(sys.argv[4] if len(sys.argv) > 4 else ROOT / "evidence" / f"random_rows_{mode}.json")
    end = time.time() + seconds
    context = multiprocessing.get_context("spawn")
    sizes, found, lock = context.Queue(), context.Queue(), context.RLock()
    for size in islice(draw(seed), MOST):
        sizes.put(size)
    folder = tempfile.mkdtemp()
    workers = [
        context.Process(target=work, args=(mode, sizes, found, lock, folder, end), daemon=True) for _ in range(WORKERS)
    ]
    for one in workers:
        one.start()
    results: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    running = len(workers)
    report = {"command": f"python benchmarks/random_rows.py {mode} {seconds:g} {seed}", "results": results}
    while running and time.time() < end + 30:
        try:
            got = found.get(timeout=5)
        except queue.Empty:
            running = sum(one.is_alive() for one in workers)
            continue
        if got is None:
            running -= 1
        else:
            (problems if "problem" in got else results).append(got)
            path.write_text(json.dumps(report) + "\n")
    from ptxlab.measure.machine import commit, describe, require_torch

    about = {"date": date.today().isoformat(), "commit": commit(), "machine": describe(require_torch())}
    path.write_text(json.dumps({**about, **report, "problems": problems}, indent=1) + "\n")
    wrong = [one for one in results if any(not error <= TOLERANCE for error in one["errors"].values())]
    (show_judged if mode == "judge" else show_explored)(results)
    for each in problems[:20]:
        print("failed:", each["size"], each["problem"][:300])
    for each in wrong[:20]:
        print("not right:", each["size"], {name: one for name, one in each["errors"].items() if not one <= TOLERANCE})
    print(f"{len(results)} measured, {len(problems)} failed, {len(wrong)} not right")
    for process in workers:
        process.terminate()


if __name__ == "__main__":
    main()
