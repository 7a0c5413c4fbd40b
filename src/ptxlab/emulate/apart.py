"""Grids that nothing orders, run one after the other where they turn out to share no memory.

A team of grids has one scheduler and one core, whose threads take turns. Kernels of several streams mostly work on
parts of their own: each runs by itself then, on all cores and by lanes together, and what they accessed is compared
afterwards. Where one writes what another accesses, or anything is found, memory is put back, and they run as a team.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

from ptxlab.device.coverage import Coverage
from ptxlab.device.result import Result
from ptxlab.emulate.abi import entries
from ptxlab.emulate.explain.coverage import schedule_of
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.emulate.host.watched import reads_of
from ptxlab.emulate.host.written import tracked_parameters
from ptxlab.emulate.launch import Interrupted, compiled_for, configure, diagnostics_of, note_executed, workers_for
from ptxlab.emulate.team import TeamGrid, ordered_with, output_of, place_of
from ptxlab.emulate.translate.arithmetic import arithmetic_of
from ptxlab.emulate.translate.compile import runtime_code
from ptxlab.native.apart import OutOfTimeError

_sharing: set[tuple[str, str]] = set()  # kernels that ran as a team after all; mostly they will again


def run_apart(grids: Sequence[TeamGrid]) -> Result | None:
    """What came of grids that ran one after the other; None if they have to be a team, with memory as it was."""
    names = {(grid.emulated.digest, grid.kernel.name) for grid in grids if grid.is_kernel}
    if names & _sharing or not all(_may_run_apart(grid) for grid in grids):
        return None
    started, options = time.perf_counter(), grids[0].options
    until = None if options.timeout is None else started + options.timeout
    running: list[RunningLaunch] = []
    try:
        for number, grid in enumerate(grids):
            running.append(_prepare(grid, number, until))
        if not all(launch.is_trial for launch in running) or not any(launch.is_together for launch in running):
            return None
        ordered = ordered_with(grids)
        for launch, bits in zip(running, tracked_parameters(running, ordered), strict=True):
            for worker in launch.workers:
                worker.record.part("memory").set(tracked=bits)
        each = zip(grids, running, strict=True)
        if not all(_runs_by_itself(grid, launch, until) for grid, launch in each) or _share(running, ordered):
            for launch in reversed(running):
                launch.put_back()
            _sharing.update(names)
            return None
        for grid, launch in zip(grids, running, strict=True):
            launch.textures.write_back()
            note_executed(launch, grid.emulated.digest)
        result = Result(seconds=time.perf_counter() - started, output=output_of(running))
        result.coverage = Coverage((schedule_of(running[0]),))
        result.reads = tuple(one for number, launch in enumerate(running) for one in reads_of([launch], number))
        return result
    except OutOfTimeError:
        return None
    finally:
        for launch in running:
            launch.end()


def _may_run_apart(grid: TeamGrid) -> bool:
    """Whether a grid has detectors, and the schedule that is taken without a seed."""
    own = grid.options
    return bool(own.detectors and not (own.seed or own.overlap or own.record or own.cooperative))


def _prepare(grid: TeamGrid, number: int, until: float | None) -> RunningLaunch:
    """A grid about to run, by itself."""
    module, options = grid.emulated.module, grid.options
    runtime_code(False)
    arithmetic = arithmetic_of(module, grid.kernel, grid.emulated.digest, options)
    configuration = replace(configure(module, grid.kernel, options, arithmetic), watched=grid.watched)
    compiled = compiled_for(grid.emulated, grid.kernel, options, arithmetic, until)
    grid.emulated.memory.host.ran_on = None
    workers = workers_for(compiled, options)
    place = place_of(grid, number, 1, 0, 0)
    return RunningLaunch(compiled, grid.emulated.memory, grid.args, configuration, workers, place=place)


def _runs_by_itself(grid: TeamGrid, launch: RunningLaunch, until: float | None) -> bool:
    """Run a grid; false if it waits for others, or if anything was found."""
    outcome = launch.run(until, grid.options.progress)
    if outcome == "interrupted":
        raise Interrupted(Result(diagnostics_of(launch, outcome, grid.options)))
    return outcome is None and launch.is_clean


def _share(running: Sequence[RunningLaunch], ordered: Sequence[int]) -> bool:
    """Whether one of two grids that nothing orders wrote what the other accessed."""
    pairs = [(one, other) for one, other in combinations(range(len(running)), 2) if not ordered[one] >> other & 1]
    return any(
        running[one].call(entries.SHARE_BYTES, mine, theirs)
        for one, other in pairs
        for mine, theirs in product(running[one].workers, running[other].workers)
    )
