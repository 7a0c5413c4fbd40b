"""`ptxlab run`: a kernel run with each of several seeds, here or on other machines, until one finds something."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.arguments import make_arguments
from ptxlab.cli.plain_arguments import Argument
from ptxlab.report import Diagnostic
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ptxlab.device.options import LaunchOptions
    from ptxlab.device.result import Result
    from ptxlab.ir import Function, Module

SOON = 1.0  # seconds: what is over before needs no bar


@dataclass(frozen=True)
class Inputs:
    """What a kernel starts from: its arguments, and what variables of the module are set to, by name."""

    arguments: Sequence[Argument]
    settings: dict[str, Argument]

    def make(self, module: Module, seed: int) -> list[Any]:
        """The values of the arguments, with the variables of the module set; random data are their own for each."""
        from ptxlab import variables

        variables.forget(module)  # each run begins with the same
        for name, value in self._values(seed):
            variables.set(module, name, value)
        return make_arguments(self.arguments, (seed,))

    def prepare(self, module: Module, seed: int) -> tuple[dict[str, bytes], list[Any]]:
        """As `make`, for a process that tries seeds: what variables are set to, and the arguments."""
        from ptxlab import variables

        values = {name: variables.given(module, name, value) for name, value in self._values(seed)}
        return values, make_arguments(self.arguments, (seed,))

    def _values(self, seed: int) -> Iterator[tuple[str, Any]]:
        for number, (name, setting) in enumerate(self.settings.items(), len(self.arguments)):
            yield name, setting.make_typed((seed, number))


@dataclass(frozen=True)
class Tries:
    """What came of trying seeds: the last of them, its result, and what arrays and variables held before and after."""

    seed: int
    result: Result
    before: Sequence[Any]
    after: Sequence[Any]
    held: dict[str, Any]
    """What the variables of the module held before."""


def try_seeds(kernel: Function, inputs: Inputs, seeds: range, options: LaunchOptions, scheduler: str | None) -> Tries:
    """Run the kernel with each seed, until one finds something; `scheduler` is the address of a Dask cluster's.

    After Ctrl-C the last is what the kernel had done by then.
    """
    from ptxlab import format, variables
    from ptxlab.cli.outcome import copy_arrays
    from ptxlab.device.coverage import Coverage, Schedule
    from ptxlab.emulate.launch import Interrupted
    from ptxlab.emulate.search.outputs import Outputs, differences, marks_of, order_of_atomics, outputs_of
    from ptxlab.emulate.search.remote import Job, Tried
    from ptxlab.emulate.search.seeds import search
    from ptxlab.launch import launch

    module = kernel.module
    assert module is not None
    last: list[Tries] = []

    def run(seed: int) -> Tried:
        given = inputs.make(module, seed)
        before = [copy_arrays(value) for value in given]
        held = variables.written(module)
        try:
            with progress_bar(f"seed {seed}, " if len(seeds) > 1 else "") as progress:
                result = launch(kernel, given, replace(options, seed=seed, progress=progress))
        except Interrupted as stopped:
            last[:] = [Tries(seed, stopped.result, before, given, held)]
            raise
        if len(seeds) > 1:
            result.diagnostics = [with_replay(found, seed) for found in result.diagnostics]
        last[:] = [Tries(seed, result, before, given, held)]
        (schedule,) = result.coverage.schedules or (Schedule(seed, 0, 0, 0),)  # a GPU has one of its own
        marks = (marks_of(outputs_of(kernel, one)) if len(seeds) > 1 else {} for one in (before, given))
        return Tried(schedule, bool(result.diagnostics), *marks)

    def again(seed: int) -> Outputs:
        run(seed)
        return outputs_of(kernel, last[0].after)

    def job() -> Job:
        return Job(format(module), kernel.name, inputs.prepare, options, "strict")

    try:
        with executor_of(scheduler) as executor:
            searched = search(seeds, run, job, executor)
    except Interrupted:
        return last[0]
    if searched.failing is not None and searched.failing != searched.last_here:
        run(searched.failing)
    seed, compared = last[0].seed, differences(searched.tried, again)
    if compared:
        run(seed)
    result = last[0].result
    result.coverage, result.differences = Coverage(searched.schedules), compared
    result.otherwise = order_of_atomics(kernel) if compared else None
    return last[0]


@contextmanager
def executor_of(scheduler: str | None) -> Iterator[Executor | None]:
    """The executor of a Dask cluster, by the address of its scheduler."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise click.UsageError("`--scheduler` needs Dask: pip install distributed") from None
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError, TimeoutError) as problem:
        raise click.UsageError(f"there is no Dask scheduler at `{scheduler}`: {problem}") from None
    with client:
        yield client.get_executor()


def with_replay(found: Diagnostic, seed: int) -> Diagnostic:
    """The diagnostic with a note on how to see it again."""
    if any(note.startswith("replay") for note in found.notes):
        return found
    return replace(found, notes=(*found.notes, f"replay with `--seed {seed}`"))


@contextmanager
def progress_bar(before: str = "") -> Iterator[Callable[[int, int], None] | None]:
    """What launches call, one after another, with the number of ended blocks: on a terminal a bar shows long ones."""
    if not sys.stderr.isatty():
        yield None
        return
    from contextlib import ExitStack

    started, before_it = time.perf_counter(), 0
    with ExitStack() as stack:
        bar = None
        task = None

        def report(done: int, total: int) -> None:
            nonlocal bar, task, started, before_it
            if done < before_it:  # another launch
                started = time.perf_counter()
            before_it = done
            if done >= total:
                stack.close()
                bar, before_it = None, total + 1
                return
            if bar is None:
                if time.perf_counter() - started < SOON:
                    return
                from rich import progress
                from rich.console import Console

                columns = (progress.TextColumn("{task.description}", markup=False), progress.BarColumn())
                times = (progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
                console = Console(stderr=True)
                bar = stack.enter_context(progress.Progress(*columns, *times, console=console, transient=True))
                task = bar.add_task("", total=total)
            bar.update(task, completed=done, description=f"{before}{done:,} of {total:,} blocks")

        yield report
