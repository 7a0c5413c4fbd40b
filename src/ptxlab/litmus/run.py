"""Litmus tests run: on the emulator under many schedules, or on a GPU many times; what comes of it, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxlab.device.result import Result
from ptxlab.launch import explore
from ptxlab.litmus.executions import Final
from ptxlab.litmus.kernel import Kernel, write_kernel
from ptxlab.litmus.placements import Placement
from ptxlab.litmus.program import Litmus
from ptxlab.node import Array, Node, node
from ptxlab.report import Diagnostic, KernelError
from ptxlab.syntax import parse

TIMEOUT = 20.0  # seconds, of one launch
INSTANCES = 16384  # of a launch on a GPU
SCRATCH = 65536 // 4  # words that threads access before they start, on a GPU
RACE = "data-race"
Data = NDArray[Any]
ENDLESS = ("hang", "timeout")


@dataclass
class Observed:
    """What came of runs of a test: how often each final state, races, and runs that did not end."""

    finals: Counter[Final] = field(default_factory=Counter)
    races: Counter[Final] = field(default_factory=Counter)
    runs: int = 0
    racy: int = 0
    endless: int = 0
    explored: bool | None = None  # whether these are all executions that differ, if that was asked for
    found: dict[str, Diagnostic] = field(default_factory=dict)  # the first diagnostic of each code

    def add(self, other: Observed) -> None:
        """Count another's runs as well."""
        self.finals += other.finals
        self.races += other.races
        self.runs += other.runs
        self.racy += other.racy
        self.endless += other.endless
        self.found = {**other.found, **self.found}


def emulate(test: Litmus, placement: Placement, seeds: Iterable[int], timeout: float = TIMEOUT) -> Observed:
    """Run a test on the emulator, once for each seed, each for `timeout` seconds at most."""
    kernel = write_kernel(test, placement)
    seen = Observed()
    for seed in seeds:
        memory, results = _arrays(kernel, 1)
        if placement.gpus:
            launched, memory, results = _launch_on_node(kernel, placement.gpus, memory, results, timeout, seed)
        else:
            args = [memory, results, 1, np.zeros(1, np.uint32)]
            launched = _launch(kernel, args, 1, timeout, device="cpu", seed=seed, on_error="collect")
        codes = {one.code for one in launched.diagnostics}
        seen.runs += 1
        seen.racy += RACE in codes
        seen.found.update({one.code: one for one in launched.diagnostics if one.code not in seen.found})
        if codes & {*ENDLESS}:
            seen.endless += 1
        elif not any(one.level == "error" and one.code != RACE for one in launched.diagnostics):
            final = next(iter(_finals(test, kernel, memory, results)))
            seen.finals[final] += 1
            seen.races[final] += RACE in codes
    return seen


def explore_all(test: Litmus, placement: Placement, limit: int = 10_000, timeout: float = 60.0) -> Observed:
    """Run a test on the emulator under all schedules that differ, as far as the limits go."""
    kernel = write_kernel(test, placement)
    memory, results = _arrays(kernel, 1)
    args = [memory, results, 1, np.zeros(1, np.uint32)]
    if placement.gpus:
        machine, _ = _launched_on_node(kernel, placement.gpus, memory, results)
        found = machine.explore(limit=limit, timeout=timeout, every=True)
    else:
        entry, grid, block, cluster = _shape(kernel, 1)
        found = explore(entry, grid, block, args, cluster=cluster, limit=limit, timeout=timeout, every=True)
    seen = Observed(runs=found.executions, explored=found.is_complete)
    seen.found = {one.code: one for one in reversed(found.diagnostics)}
    for outcome in found.outcomes:
        seen.racy += outcome.found.get(RACE, 0)
        ended = outcome.executions - max((outcome.found.get(code, 0) for code in ENDLESS), default=0)
        seen.endless += outcome.executions - ended
        if ended:
            final = next(iter(_finals(test, kernel, *outcome.arrays[:2])))
            seen.finals[final] += ended
            seen.races[final] += min(ended, outcome.found.get(RACE, 0))
    return seen


def run_on_gpu(
    test: Litmus, placement: Placement, launches: int, device: str = "cuda", instances: int = INSTANCES, **how: object
) -> Observed:
    """Run a test on a GPU: many instances a launch, whose threads start together."""
    kernel = write_kernel(test, placement, stress=True)
    seen = Observed()
    for _ in range(launches):
        memory, results = _arrays(kernel, instances)
        scratch = np.zeros(SCRATCH + instances, np.uint32)
        try:
            _launch(kernel, [memory, results, instances, scratch], instances, TIMEOUT, device=device, **how)
        except KernelError as failure:
            if not {one.code for one in failure.diagnostics} <= {*ENDLESS}:
                raise
            seen.endless += instances
            seen.runs += instances
            seen.found.update({one.code: one for one in failure.diagnostics})
            continue
        ended = results[-1] == 0
        seen.finals += _finals(test, kernel, memory[:, ended], results[:, ended])
        seen.endless += int(np.count_nonzero(~ended))
        seen.runs += instances
    return seen


def _launch(kernel: Kernel, args: list[Any], instances: int, timeout: float, **how: object) -> Any:
    entry, grid, block, cluster = _shape(kernel, instances)
    return entry.launch(grid, block, args, cluster=cluster, timeout=timeout, **how)


def _launch_on_node(
    kernel: Kernel, gpus: Sequence[int], memory: Data, results: Data, timeout: float, seed: int
) -> tuple[Result, Data, Data]:
    """Run a test on several GPUs: what came of it, and what memory and the results are then."""
    machine, arrays = _launched_on_node(kernel, gpus, memory, results)
    launched = machine.synchronize(timeout=timeout, seed=seed, on_error="collect")
    return launched, arrays[0].numpy(), arrays[1].numpy()


def _launched_on_node(kernel: Kernel, gpus: Sequence[int], memory: Data, results: Data) -> tuple[Node, list[Array]]:
    """A node on which a test is launched, and the arrays of that: memory and results first."""
    machine = node(len(gpus))
    entry, _, block, cluster = _shape(kernel, 1)
    arrays = [machine[0].array(data) for data in (memory, results, np.zeros(1, np.uint32))]
    for device, first, count in zip(machine, accumulate(gpus, initial=0), gpus, strict=False):
        device.launch(entry, count, block, [*arrays[:2], first, arrays[2]], cluster=cluster)
    return machine, arrays


def _shape(kernel: Kernel, instances: int) -> tuple[Any, int, int, int | None]:
    """The entry and the extents of a launch."""
    return _parse(kernel.text)["litmus"], kernel.blocks * instances, kernel.threads, kernel.cluster


@cache
def _parse(text: str) -> Any:
    return parse(text, "litmus.ptx")


def _arrays(kernel: Kernel, instances: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Memory, one row a location, with its initial values, and space for the results, one row each."""
    memory = np.zeros((max(1, len(kernel.locations)), instances), np.int32)
    for row, value in enumerate(kernel.initial):
        memory[row] = value
    rows = len(kernel.slots) + len(kernel.final) + kernel.limited
    return memory, np.zeros((max(1, rows), instances), np.int32)


def _finals(test: Litmus, kernel: Kernel, memory: NDArray[Any], results: NDArray[Any]) -> Counter[Final]:
    """The final states of all instances, counted."""
    words = results[len(kernel.slots) :] if kernel.final else memory
    rows = np.concatenate([results[: len(kernel.slots)], words[: len(kernel.locations)]])
    states, counts = np.unique(rows, axis=1, return_counts=True)
    found: Counter[Final] = Counter()
    for column, count in zip(states.T, counts, strict=True):
        registers: list[list[tuple[str, int]]] = [[] for _ in test.threads]
        for (thread, name), value in zip(kernel.slots, column, strict=False):
            registers[thread].append((name, int(value)))
        values = zip(kernel.locations, map(int, column[len(kernel.slots) :]), strict=True)
        found[Final(tuple(tuple(sorted(one)) for one in registers), tuple(sorted(values)))] += int(count)
    return found
