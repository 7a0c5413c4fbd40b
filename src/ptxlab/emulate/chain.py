"""Grids that are launched one after the other, each of which may start before the one before it is complete."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab import ir
from ptxlab.device.arguments import AddressSpace
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.emulate.launch import Interrupted, compiled_for, configure, result_of, uncompiled
from ptxlab.emulate.translate.arithmetic import Arithmetic, arithmetic_of
from ptxlab.emulate.translate.compile import Compiled, prepare_runtime
from ptxlab.native.apart import OutOfTimeError
from ptxlab.report import is_failure


@dataclass(frozen=True)
class Grid:
    """One grid of a chain."""

    emulated: EmulatedModule
    kernel: ir.Function
    args: Sequence[Any]
    options: LaunchOptions


def run_chain(grids: Sequence[Grid], space: AddressSpace) -> list[Result]:
    """Run grids one after the other; none after the first that fails.

    A grid that may overlap with the one before it is compared with all that one did, where that one lets it start.
    """
    prepare_runtime()
    results: list[Result] = []
    before: RunningLaunch | None = None
    try:
        for grid in grids:
            until = None if grid.options.timeout is None else time.perf_counter() + grid.options.timeout
            try:
                arithmetic = arithmetic_of(grid.emulated.module, grid.kernel, grid.emulated.digest, grid.options)
                compiled = compiled_for(grid.emulated, grid.kernel, grid.options, arithmetic, until)
            except OutOfTimeError:
                found = [uncompiled(grid.emulated.module, grid.kernel, grid.options.timeout)]
                results.append(Result(found))
                break
            running = _start(compiled, grid, arithmetic, before, space)
            if before is not None:
                before.end()
            before = running
            result, outcome = result_of(running, grid.options, until)
            results.append(result)
            if outcome == "interrupted":
                raise Interrupted(result)
            if is_failure(result.diagnostics, "raise"):
                break
    finally:
        if before is not None:
            before.end()
    return results


def _start(
    compiled: Compiled, grid: Grid, arithmetic: Arithmetic, before: RunningLaunch | None, space: AddressSpace
) -> RunningLaunch:
    """A grid that is about to run, with what the one before it did where the two overlap."""
    module, kernel = grid.emulated.module, grid.kernel
    grid.emulated.memory.host.ran_on = None
    configuration = configure(module, kernel, grid.options, arithmetic)
    running = RunningLaunch(compiled, grid.emulated.memory, grid.args, configuration, 1, space)
    if before is not None and grid.options.overlap and running.checks and before.lets_others_start:
        running.follow(before)
    return running
