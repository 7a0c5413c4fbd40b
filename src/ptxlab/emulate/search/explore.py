"""Running a small kernel under all schedules that differ, or under one that is given step by step."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ptxlab import ir
from ptxlab.device.arguments import AddressSpace
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.emulate.explain.counters import count
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.emulate.launch import GRACE, configure, diagnostics_of, uncompiled
from ptxlab.emulate.search.directing import Director, Moment, ThreadEvent, direct
from ptxlab.emulate.search.exploration import Explorer
from ptxlab.emulate.team import TeamGrid, UncompiledError, joined, output_of
from ptxlab.emulate.team import diagnostics_of as team_diagnostics
from ptxlab.emulate.translate.arithmetic import arithmetic_of
from ptxlab.emulate.translate.compile import compile_kernel, prepare_runtime
from ptxlab.emulate.translate.preemption import LOGGED
from ptxlab.native.apart import OutOfTimeError
from ptxlab.report import Diagnostic
from ptxlab.report.reader import spell_option


@dataclass(frozen=True)
class Outcome:
    """What arrays among the arguments hold in the end, and a schedule by which they do."""

    arrays: tuple[Any, ...]
    arguments: tuple[int, ...]
    """Which of the arguments they are."""
    schedule: str
    executions: int = 1
    """How many of the executions end so."""
    found: dict[str, int] = field(default_factory=dict)
    """In how many of them there was a finding, by its code."""


@dataclass
class Exploration:
    """What came of running a kernel under all schedules that differ."""

    is_complete: bool = False
    """Whether there is no other schedule that could give something else."""
    executions: int = 0
    redundant: int = 0
    """Executions that were given up when they turned out to be equivalent to others."""
    threads: int = 0
    """Threads that can be observed by others."""
    steps: int = 0
    """Accesses, at most, in an execution."""
    outcomes: list[Outcome] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """Each finding once, with the schedule that shows it."""

    @property
    def verdict(self) -> str:
        """One sentence."""
        count = f"{self.executions:,} execution{'s' * (self.executions != 1)}"
        if self.diagnostics and not self.is_complete:
            return f"a finding after {count}"
        if not self.is_complete:
            return f"not finished within the limits, after {count}: there are more"
        number = len(self.diagnostics)
        found = f"{number} finding{'s' * (number != 1)}" if number else "no race, no hang"
        return f"explored all {count} that differ: {found}"


@dataclass(frozen=True)
class ExploredKernel:
    """A kernel with all that a launch needs, but its arguments."""

    emulated: EmulatedModule
    kernel: ir.Function
    options: LaunchOptions

    def run(self, args: Sequence[object], director: Director, watch: Watch) -> tuple[Result, list[ThreadEvent], bool]:
        """Run it once, as directed; also what happened last, and whether it came to an end.

        `UncompiledError` if it is not compiled in time.
        """
        module, memory = self.emulated.module, self.emulated.memory
        arithmetic = arithmetic_of(module, self.kernel, self.emulated.digest, self.options)
        configuration = configure(module, self.kernel, self.options, arithmetic)
        until = watch.until + GRACE
        checks, digest = configuration.checks, self.emulated.digest
        try:
            compiled = compile_kernel(module, self.kernel, digest, checks, False, LOGGED, arithmetic, until)
        except OutOfTimeError:
            raise UncompiledError(uncompiled(module, self.kernel, self.options.timeout or watch.seconds)) from None
        launch = RunningLaunch(compiled, memory, args, configuration, 1)
        try:
            with watch.over(launch):
                events, has_ended = direct(launch, director)
            has_ended = has_ended or bool(launch.workers[0].fault.get("kind"))
            result = Result(diagnostics=diagnostics_of(launch, None, self.options))
            result.output = "".join(launch.services.output)
            result.counters, result.fidelity = count(launch)
        finally:
            launch.end()
        return result, events, has_ended


@dataclass(frozen=True)
class ExploredTeam:
    """Grids that run at the same time, with all that they need."""

    grids: Sequence[TeamGrid]
    space: Callable[[], AddressSpace]

    @property
    def options(self) -> LaunchOptions:
        """Those that all have in common."""
        return self.grids[0].options

    def run(self, _: Sequence[object], director: Director, watch: Watch) -> tuple[Result, list[ThreadEvent], bool]:
        """Run them once, as directed; their memory is made anew before."""
        with joined(self.grids, self.space(), watch.until + GRACE, LOGGED) as running:
            with watch.over(running[0]):
                events, has_ended = direct(running[0], director)
            has_ended = has_ended or bool(running[0].workers[0].fault.get("kind"))
            result = Result(diagnostics=team_diagnostics(running, self.grids, None, self.options))
            result.output = output_of(running)
        return result, events, has_ended


class Watch:
    """Stops the launch that runs when the time is over."""

    def __init__(self, seconds: float) -> None:
        prepare_runtime()
        self.seconds = seconds
        self.until = time.perf_counter() + seconds
        self._launch: RunningLaunch | None = None
        self._timer = threading.Timer(seconds, self._stop)
        self._timer.daemon = True
        self._timer.start()

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self.until

    @contextmanager
    def over(self, launch: RunningLaunch) -> Iterator[None]:
        self._launch = launch
        if self.is_over:
            launch.request_stop()
        try:
            yield
        finally:
            self._launch = None

    def end(self) -> None:
        self._timer.cancel()

    def _stop(self) -> None:
        launch = self._launch
        if launch is not None:
            launch.request_stop()


def explore(
    program: ExploredKernel | ExploredTeam,
    fresh: Callable[[], Sequence[object]],
    limit: int,
    timeout: float,
    every: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Run a program under all schedules that differ; `fresh` makes the arguments of each run anew.

    The arrays among these are what its outcomes are.
    """
    explorer, found, watch = Explorer(), Exploration(), Watch(timeout)
    outcomes: dict[tuple[bytes, ...], Outcome] = {}
    reported: dict[object, Diagnostic] = {}
    try:
        while not explorer.is_done and found.executions < limit and not watch.is_over:
            args = fresh()
            explorer.begin()
            result, events, has_ended = program.run(args, explorer.choose, watch)
            explorer.end(events)
            if explorer.is_redundant:
                found.redundant += 1
                continue
            if not has_ended:  # it was too long, or its time was over
                explorer.is_cut = True
                continue
            found.executions += 1
            schedule = write_schedule(explorer.schedule)
            for diagnostic in result.diagnostics:
                note = "replay with " + spell_option(f"--schedule {schedule}", f'schedule="{schedule}"')
                reported.setdefault(_cause(diagnostic), replace(diagnostic, notes=(*diagnostic.notes, note)))
            _count(outcomes, args, schedule, {diagnostic.code for diagnostic in result.diagnostics})
            if progress is not None:
                progress(found.executions)
            if reported and not every:
                break
    except UncompiledError as wrong:
        reported[None] = wrong.diagnostic
    finally:
        watch.end()
    found.is_complete = explorer.is_done and not explorer.is_cut
    found.threads, found.steps = len(explorer.threads), explorer.longest
    found.outcomes, found.diagnostics = list(outcomes.values()), list(reported.values())
    return found


def follow(program: ExploredKernel | ExploredTeam, args: Sequence[object], schedule: Sequence[int]) -> Result:
    """Run a program once by a schedule; after its end, and where it cannot be followed, any thread continues."""
    explorer, watch = Explorer(), Watch(program.options.timeout or 1e6)
    steps = iter(schedule)

    def choose(moment: Moment) -> int | None:
        return explorer.choose_as(moment, next(steps, None))

    explorer.begin()
    started = time.perf_counter()
    try:
        result, _, _ = program.run(args, choose, watch)
    except UncompiledError as wrong:
        result = Result([wrong.diagnostic])
    finally:
        watch.end()
    result.seconds = time.perf_counter() - started
    return result


def _count(outcomes: dict[tuple[bytes, ...], Outcome], args: Iterable[Any], schedule: str, codes: set[str]) -> None:
    found = {argument: value for argument, value in enumerate(args) if hasattr(value, "__array_interface__")}
    key = tuple(array.tobytes() for array in found.values())
    known = outcomes.get(key)
    if known is None:
        arrays = tuple(array.copy() for array in found.values())
        outcomes[key] = Outcome(arrays, tuple(found), schedule, found=dict.fromkeys(codes, 1))
    else:
        counts = {code: known.found.get(code, 0) + (code in codes) for code in (*known.found, *codes)}
        outcomes[key] = replace(known, executions=known.executions + 1, found=counts)


def _cause(diagnostic: Diagnostic) -> object:
    return diagnostic.code, diagnostic.message, frozenset(label.span for label in diagnostic.labels)


def write_schedule(threads: Sequence[int]) -> str:
    """The threads that take steps, as text: `0x3,4-6` is three steps of thread 0, then one each of 4, 5 and 6."""
    words: list[tuple[int, int, int]] = []  # the first thread, the last one, and how many steps it takes
    for thread in threads:
        first, last, count = words[-1] if words else (-1, -1, 0)
        if thread == last and first == last:
            words[-1] = first, last, count + 1
        elif words and thread == last + 1 and count == 1:
            words[-1] = first, thread, 1
        else:
            words.append((thread, thread, 1))
    return ",".join(_word(*word) for word in words)


def _word(first: int, last: int, count: int) -> str:
    if last > first:
        return f"{first}-{last}"
    return f"{first}x{count}" if count > 1 else str(first)


def read_schedule(text: str) -> list[int]:
    """What `write_schedule` wrote."""
    found: list[int] = []
    for word in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:x(\d{1,6})|-(\d{1,9}))?", word)
        if match is None:
            raise ValueError(f"{text!r} is not a schedule such as 0x3,1-4,0")
        first = int(match[1])
        found += range(first, int(match[3]) + 1) if match[3] else [first] * int(match[2] or 1)
    return found
