"""Grids of one GPU that nothing orders, run one after the other where they turn out to share no memory.

A team of grids has one scheduler and one core, whose threads take turns. Kernels of several streams mostly work on
parts of their own: each runs by itself then, on all cores and by lanes together, and what they accessed is compared
afterwards. Where one writes what another accesses, or anything is found, memory is put back, and they run as a team.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import combinations, product

from ptxlab.device.coverage import Coverage
from ptxlab.device.result import Result
from ptxlab.emulate.abi import entries
from ptxlab.emulate.explain.coverage import schedule_of
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.emulate.launch import Interrupted, compiled_for, configure, diagnostics_of, workers_for
from ptxlab.emulate.team import TeamGrid, output_of
from ptxlab.emulate.translate.arithmetic import arithmetic_of
from ptxlab.emulate.translate.compile import runtime_code
from ptxlab.native.apart import OutOfTimeError

_sharing: set[tuple[str, str]] = set()  # kernels that ran as a team after all; mostly they will again


def run_apart(grids: Sequence[TeamGrid], is_ordered: Callable[[int, int], bool]) -> Result | None:
    """What came of grids that ran one after the other; None if they have to be a team, with memory as it was.

    `is_ordered` says whether streams and events order two of them, by their numbers.
    """
    names = {(grid.emulated.digest, grid.kernel.name) for grid in grids}
    if names & _sharing or not all(_may_run_apart(grid) for grid in grids):
        return None
    started, options = time.perf_counter(), grids[0].options
    until = None if options.timeout is None else started + options.timeout
    running: list[RunningLaunch] = []
    try:
        if not all(_runs_by_itself(grid, until, running) for grid in grids) or _share(running, is_ordered):
            for launch in reversed(running):
                launch.put_back()
            _sharing.update(names)
            return None
        for launch in running:
            launch.textures.write_back()
        result = Result(seconds=time.perf_counter() - started, output=output_of(running))
        result.coverage = Coverage((schedule_of(running[0]),))
        return result
    finally:
        for launch in running:
            launch.end()


def _may_run_apart(grid: TeamGrid) -> bool:
    """Whether a grid is of the user, with detectors and the schedule that is taken without a seed."""
    own = grid.options
    return bool(grid.is_kernel and own.detectors and not (own.seed or own.overlap or own.record or own.cooperative))


def _runs_by_itself(grid: TeamGrid, until: float | None, running: list[RunningLaunch]) -> bool:
    """Run a grid by lanes together; false if it can't be, or if anything was found."""
    module, options = grid.emulated.module, grid.options
    runtime_code(False)
    arithmetic = arithmetic_of(module, grid.kernel, grid.emulated.digest, options)
    configuration = configure(module, grid.kernel, options, arithmetic)
    try:
        compiled = compiled_for(grid.emulated, grid.kernel, options, arithmetic, until)
    except OutOfTimeError:
        return False
    grid.emulated.memory.host.ran_on = None
    workers = workers_for(compiled, options)
    launch = RunningLaunch(compiled, grid.emulated.memory, grid.args, configuration, workers)
    running.append(launch)
    if not launch.is_together:
        return False
    outcome = launch.run(until, options.progress)
    if outcome == "interrupted":
        raise Interrupted(Result(diagnostics_of(launch, outcome, options)))
    return outcome is None and launch.is_clean


def _share(running: Sequence[RunningLaunch], is_ordered: Callable[[int, int], bool]) -> bool:
    """Whether one of two grids that nothing orders wrote what the other accessed."""
    pairs = [(one, other) for one, other in combinations(range(len(running)), 2) if not is_ordered(one, other)]
    return any(
        running[one].call(entries.SHARE_BYTES, mine, theirs)
        for one, other in pairs
        for mine, theirs in product(running[one].workers, running[other].workers)
    )
