"""Running a kernel on this machine's cores, and what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from ptxlab import ir
from ptxlab.device.coverage import Coverage
from ptxlab.device.limits import check_cluster, check_launch
from ptxlab.device.result import Result
from ptxlab.emulate.explain.counters import count
from ptxlab.emulate.explain.coverage import schedule_of
from ptxlab.emulate.explain.faults import explain
from ptxlab.emulate.explain.locations import add_sources
from ptxlab.emulate.host.running import Launch
from ptxlab.emulate.translate.compile import compile_kernel, runtime_code
from ptxlab.emulate.translate.preemption import NEVER, POINTS
from ptxlab.native.apart import OutOfTimeError
from ptxlab.report import Diagnostic, KernelError, error, is_failure, render

# What is looked for while a kernel runs and can be left out; what stops a kernel is always told.
DETECTORS = frozenset(
    ("data-race", "unordered-collective", "missing-proxy-fence", "missing-tensor-fence", "uninitialised-read")
)
GRACE = 1.0  # seconds that compiling may take beside those of `timeout`


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a kernel ran; `diagnostics` say where it was."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__(render(diagnostics).rstrip("\n"))


def launch(
    module: ir.Module,
    kernel: ir.Function,
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int] | None = None,
    args: Sequence[Any],
    shared: int = 0,
    detectors: frozenset[str] = DETECTORS,
    seed: int = 0,
    blocks: Sequence[tuple[int, int, int]] | None = None,
    on_error: str = "raise",
    timeout: float | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    profile: bool = False,
    cooperative: bool = False,
) -> Result:
    """Run a kernel on this machine's cores; `detectors` names what to look for beside what stops a kernel."""
    checks = bool(detectors)
    grid, cluster = check_extents(module, kernel, grid, block, cluster, shared, blocks)
    runtime_code()  # which is not the kernel's fault, if it takes a while
    began = time.perf_counter()
    until = None if timeout is None else began + timeout + GRACE
    try:
        compiled = compile_kernel(module, kernel, checks, profile, POINTS if seed else NEVER, until)
    except OutOfTimeError:
        return _uncompiled(module, kernel, timeout, time.perf_counter() - began, on_error)
    numbers = None
    if blocks is not None:
        numbers = _clusters_of(blocks, grid, cluster or (1, 1, 1))
    workers = max(1, workers or os.cpu_count() or 1)
    if profile or compiled.facts["talks"] or compiled.facts["clock"]:  # what blocks do depends on those before them
        workers = 1
    started = time.perf_counter()
    if timeout is not None and until is not None:
        until = min(started + timeout, until)
    running = Launch(compiled, grid, block, cluster, args, shared, seed, numbers, workers, checks, cooperative)
    module.ran_on = None
    if profile:
        running.profile()
    try:
        outcome = running.run(until, progress)
        if outcome == "failed":
            running.put_back()
            again = Launch(compiled, grid, block, cluster, args, shared, seed, numbers, 1, checks, cooperative)
            running.end()
            running = again
            outcome = running.run(until, progress)
        result = Result(seconds=time.perf_counter() - started)
        result.output = "".join(running.services.output)
        result.diagnostics = diagnostics_of(running, outcome, timeout, detectors)
        if profile:
            running.settle()
        result.counters = count(running)
        result.coverage = Coverage((schedule_of(running),))
    finally:
        running.end()
    if outcome == "interrupted":
        raise Interrupted(result.diagnostics)
    if is_failure(result.diagnostics, on_error):
        raise KernelError(result.diagnostics)
    return result


def check_extents(
    module: ir.Module,
    kernel: ir.Function,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int] | None,
    shared: int,
    blocks: Sequence[tuple[int, int, int]] | None = None,
) -> tuple[tuple[int, int, int], tuple[int, int, int] | None]:
    """The blocks of the grid and of a cluster, as the kernel's directives have them; refused if they are impossible."""
    check_cluster(module, kernel, grid, cluster)
    cluster = cluster or kernel.required_cluster
    if kernel.directive("blocksareclusters") is not None and cluster is not None:
        grid = grid[0] * cluster[0], grid[1] * cluster[1], grid[2] * cluster[2]
    check_launch(module, kernel, grid, block, shared, blocks)
    return grid, cluster


def diagnostics_of(
    running: Launch, outcome: str | None, timeout: float | None, detectors: frozenset[str]
) -> list[Diagnostic]:
    """What a launch found, by the detectors that were asked for."""
    told = [d for d in explain(running, outcome, timeout) if d.code not in DETECTORS - detectors]
    return add_sources(running.compiled.module, running.compiled.functions, told)


def _uncompiled(module: ir.Module, kernel: ir.Function, timeout: float | None, seconds: float, on_error: str) -> Result:
    """What comes of a kernel whose time was over before it could run."""
    found = error(
        "timeout",
        f"the kernel was stopped after {timeout:g} seconds, while it was compiled",
        module.name_span(kernel),
        "this kernel has not run",
        notes=[f"it has {sum(1 for _ in kernel.instructions())} instructions"],
        helps=["raise the time limit: what was compiled once is kept"],
    )
    if is_failure([found], on_error):
        raise KernelError([found])
    return Result([found], seconds=seconds)


def _clusters_of(
    blocks: Sequence[tuple[int, int, int]], grid: tuple[int, int, int], cluster: tuple[int, int, int]
) -> list[int]:
    """The numbers of the clusters that these blocks belong to, each once."""
    across, down = grid[0] // cluster[0], grid[1] // cluster[1]
    places = [[at // size for at, size in zip(place, cluster, strict=True)] for place in blocks]
    return list(dict.fromkeys(x + across * (y + down * z) for x, y, z in places))
