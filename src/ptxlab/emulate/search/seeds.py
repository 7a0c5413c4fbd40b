"""One launch under several seeds, until one of them finds something.

The first seeds run here. If many are left, and would take long, they are spread over processes of this machine, or over
those of an executor: which seeds find something does not depend on where they run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from ptxlab import ir
from ptxlab.device.coverage import Coverage, Schedule
from ptxlab.device.host_memory import HostPointer, RawParameter
from ptxlab.device.multicast import Multicast
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.device.structures import leaves, map_leaves
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.device.textures import Surface
from ptxlab.emulate.host.module_memory import EmulatedModule, ModuleMemory
from ptxlab.emulate.launch import launch
from ptxlab.emulate.search.outputs import Outputs, arrays_of, differences, marks_of, order_of_atomics, outputs_of
from ptxlab.emulate.search.remote import Job, Processes, Tried, try_some
from ptxlab.report import Diagnostic, KernelError, is_failure
from ptxlab.syntax import format
from ptxlab.values import dataclass

SOON = 2.0  # seconds that the first seeds have; what would be over in twice as long stays here
PIECE = 4.0  # seconds of work that are sent at a time: a process takes one to start


@dataclass(frozen=True)
class Searched:
    """What came of trying seeds, in their order, and the first that found something."""

    tried: tuple[Tried, ...]
    failing: int | None
    last_here: int
    """The last seed that ran in this process."""

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        return tuple(one.schedule for one in self.tried)


def search(
    seeds: Sequence[int], run: Callable[[int], Tried], job: Callable[[], Job | None], executor: Executor | None
) -> Searched:
    """Try seeds until one finds something: by `run` here, or by `job` elsewhere, if there is one."""
    if not seeds:
        raise ValueError("`seeds` is empty: name at least one")
    tried: list[Tried] = []
    last_here, each = seeds[0], 0.0
    started = time.perf_counter()
    for position, seed in enumerate(seeds):
        now = time.perf_counter()
        if tried and (executor is not None or _takes_long(now - started, each * (len(seeds) - position))):
            sent = job()
            if sent is not None:
                tried += _spread(sent, seeds[position:], each, executor)
                break
        last_here = seed
        tried.append(run(seed))
        each = time.perf_counter() - now
        if tried[-1].is_failure:
            break
    failing = tried[-1].schedule.seed if tried[-1].is_failure else None
    return Searched(tuple(tried), failing, last_here)


def _takes_long(passed: float, left: float) -> bool:
    """Whether several cores are worth their while, after so many seconds, and before so many more."""
    return passed > SOON and left > 2 * SOON and (os.cpu_count() or 1) > 1


def _spread(job: Job, seeds: Sequence[int], each: float, executor: Executor | None) -> list[Tried]:
    """Try seeds elsewhere, a piece at a time, until one finds something; those before it are tried in any case."""
    size = max(1, min(int(PIECE / each) if each else len(seeds), -(-len(seeds) // (2 * (os.cpu_count() or 1)))))
    pieces = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    processes = Processes()
    threads = ThreadPoolExecutor(os.cpu_count() or 1) if executor is None else None
    work = processes.try_some if executor is None else try_some
    pool = executor or threads
    assert pool is not None
    tried: list[Tried] = []
    futures: list[Future[list[Tried]]] = []
    try:
        futures = [pool.submit(work, job, piece) for piece in pieces]
        for future in futures:
            tried += future.result()
            if tried[-1].is_failure:
                break
    finally:
        for future in futures:
            future.cancel()
        processes.close()
        if threads is not None:
            threads.shutdown(cancel_futures=True)
    return tried


def try_seeds(emulated: EmulatedModule, kernel: ir.Function, args: Sequence[object], options: LaunchOptions) -> Result:
    """Run a kernel under several schedules until one finds an error.

    The first one works on the arrays and variables themselves, the others on copies of what these held before.
    """
    assert options.seeds is not None
    seeds = range(options.seeds) if isinstance(options.seeds, int) else list(options.seeds)
    memory = emulated.memory
    given, before, variables = copies_of(args), memory.snapshot(), _variables(memory)
    ends_at = "raise" if options.on_error == "collect" else options.on_error
    results: list[Result] = []
    noticed: dict[str, Diagnostic] = {}
    after = before
    arrays: Sequence[Any] = args

    def try_one(seed: int) -> Tried:
        nonlocal after, arrays
        if results:
            memory.restore(before)
        arrays = copies_of(given) if results else args
        found = launch(emulated, kernel, arrays, replace(options, seed=seed, on_error="collect"))
        if not results:
            after = memory.snapshot()
        results[1:] = [found]
        for diagnostic in found.diagnostics:
            noticed.setdefault(diagnostic.code, diagnostic)
        (schedule,) = found.coverage.schedules
        return Tried(schedule, is_failure(found.diagnostics, ends_at), after=marks_of(outputs_of(kernel, arrays)))

    def again(seed: int) -> Outputs:
        try_one(seed)
        return outputs_of(kernel, arrays)

    def job() -> Job | None:
        if variables is None:
            return None
        sent = replace(options, seeds=None, executor=None, progress=None)
        return Job(format(emulated.module), kernel.name, partial(_prepare, given, variables), sent, ends_at)

    searched = search(seeds, try_one, job, options.executor)
    if searched.failing is not None and searched.failing != searched.last_here:
        try_one(searched.failing)
    result, diagnostics = results[0], results[-1].diagnostics
    codes = {found.code for found in diagnostics}
    diagnostics = [*diagnostics, *(found for code, found in noticed.items() if code not in codes)]
    result.differences = differences([replace(one, before={}) for one in searched.tried], again)
    result.otherwise = order_of_atomics(kernel) if result.differences else None
    memory.restore(after)
    result.diagnostics = diagnostics
    result.coverage = Coverage(searched.schedules)
    return raised(result, options.on_error)


def _variables(memory: ModuleMemory) -> dict[str, bytes] | None:
    """What the variables of a module hold, by name; None if there is memory that has none."""
    if memory.heap.regions or any(function for function, _ in memory.variables):
        return None
    return memory.host.given | {str(name): held.raw for (_, name), held in memory.variables.items()}


def _prepare(
    args: Sequence[object], variables: dict[str, bytes], module: ir.Module, seed: int
) -> tuple[dict[str, bytes], list[Any]]:
    return dict(variables), copies_of(args)


def raised(result: Result, on_error: str) -> Result:
    """The result, unless its findings are to be raised."""
    if is_failure(result.diagnostics, on_error):
        raise KernelError(result.diagnostics)
    return result


def copies_of(args: Sequence[object]) -> list[Any]:
    """The arguments with arrays of their own; one array twice stays one."""
    every = [leaf for value in args for leaf in leaves(value)]
    arrays = [array for leaf in every for array in arrays_of(leaf)]
    copies = {id(array): array.copy() for array in arrays if hasattr(array, "__array_interface__")}
    memories = {id(leaf.memory): leaf.memory.copy() for leaf in every if isinstance(leaf, (HostPointer, RawParameter))}

    def copied(leaf: object) -> Any:
        if isinstance(leaf, TensorMap):
            return replace(leaf, array=copies.get(id(leaf.array), leaf.array))
        if isinstance(leaf, (HostPointer, RawParameter)):
            return replace(leaf, memory=memories[id(leaf.memory)])
        if isinstance(leaf, Multicast):
            return Multicast([copies[id(array)] for array in leaf.arrays])
        if isinstance(leaf, Surface):
            return Surface(copies[id(leaf.array)], geometry=leaf.texels.geometry)
        return copies.get(id(leaf), leaf)

    return [map_leaves(copied, value) for value in args]
