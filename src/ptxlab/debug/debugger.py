"""The debugger: a position in a recorded launch, which moves forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ptxlab.debug.launches import Launch, Launches
from ptxlab.debug.locations import locations
from ptxlab.debug.objects import UnknownError
from ptxlab.debug.position import Position
from ptxlab.debug.stepping import Kind, Unit, Way
from ptxlab.debug.stops import (
    NO_HITS,
    Breakpoint,
    FindingStop,
    Watchpoint,
    stop_at_finding,
    watch_memory,
    watch_register,
    watch_value,
)
from ptxlab.debug.values import Scope
from ptxlab.ir import Module
from ptxlab.report import Diagnostic
from ptxlab.trace import Trace
from ptxlab.trace.accesses import GLOBAL, LOCAL, SHARED

_MOST_SAID = 1000  # messages of breakpoints in one move
Reason = Literal["step", "breakpoint", "watchpoint", "finding", "end", "start", "goto"]
_REASONS: dict[type, Reason] = {Breakpoint: "breakpoint", Watchpoint: "watchpoint", FindingStop: "finding"}


@dataclass(frozen=True)
class Stop:
    """Why the debugger is where it is."""

    reason: Reason
    description: str
    thread: int
    number: int | None = None
    """Of what has stopped it."""


class Debugger(Position):
    """Recorded launches, a position in one, a thread that is inspected, and what stops it where."""

    def __init__(
        self,
        trace: Trace,
        findings: Sequence[Diagnostic] = (),
        compile: Callable[[], Module | None] = lambda: None,
        launches: Sequence[Launch] = (),
    ) -> None:
        """Start before the first step; `compile` makes the program with debug information, if names are asked for.

        Of a program with several `launches`, `trace` is the first.
        """
        super().__init__(trace, compile)
        self.launches = Launches(launches or [Launch(trace.program.kernel.title, lambda: trace, findings)])
        self.launch = 0
        self.stops: dict[int, Breakpoint | Watchpoint | FindingStop] = {}
        self.stops_at_findings = True
        self._numbers = 0
        self._said: list[str] = []
        self._stopped = -1, 0  # the position and the number of the last stop
        self._find()

    @property
    def findings(self) -> Sequence[Diagnostic]:
        """What was found in this launch."""
        return self.launches.launches[self.launch].findings

    def _find(self) -> None:
        """Stop where something is found."""
        for number, diagnostic in enumerate(self.findings if self.stops_at_findings else (), 1):
            found = stop_at_finding(self.trace, -number, diagnostic)
            if found is not None:
                self.stops[-number] = found

    def enter(self, launch: int) -> None:
        """Go to the start of another launch of the program, with the same breakpoints."""
        if not 0 <= launch < len(self.launches):
            raise UnknownError(f"there is no kernel {launch}: `info cuda kernels` lists the launches")
        trace = self.launches.launches[launch].open()
        self.launch = launch
        self.show(trace, self.launches.lines_of(trace))
        self._stopped = -1, 0
        before, self.stops = self.stops, {}
        self._find()
        for number, one in before.items():
            if isinstance(one, Breakpoint) and one.again is not None:
                self.stops[number] = self._again(one)
            elif isinstance(one, Watchpoint):
                self.stops[number] = Watchpoint(number, one.name, NO_HITS)

    def _again(self, one: Breakpoint) -> Breakpoint:
        """A breakpoint of another launch in this one."""
        assert one.again is not None
        kept, self._numbers = self._numbers, one.number - 1
        try:
            made = one.again()
        except UnknownError:  # what its condition names is not there in another kernel
            made = replace(one, trace=self.trace, instructions=[])
        self._numbers = kept
        made.is_once = one.is_once
        return made

    def stop_at_findings(self, *, is_wanted: bool) -> None:
        """Whether races, hangs and what else is found stop the kernel."""
        self.stops_at_findings = is_wanted
        self.stops = {number: stop for number, stop in self.stops.items() if number > 0}
        self._find()

    # Breakpoints.

    def break_at(self, file: str, line: int, **given: Any) -> Breakpoint:
        """Stop at a line of the PTX (`file` is "") or of a source; `UnknownError` where it has no instruction."""
        asked = partial(self.break_at, file, line, **given)
        instructions = self.lines.instructions_at(file, line)
        if not instructions:
            if file and any(lines.instructions_at(file, line) for lines in self.launches.all_lines):
                return self.break_before([], file=file, line=line, again=asked, **given)
            raise UnknownError(f"there is no instruction at line {line}" + (f" of `{file}`" if file else ""))
        starts = locations(self.lines, self.declarations, instructions, file, line) if file else []
        if starts:
            line = self.lines.places(starts[0])[-1].line if starts[0] not in instructions else line
            return self.break_before(starts, file=file, line=line, again=asked, **given)
        return self.break_before(instructions, is_entered=bool(file), file=file, line=line, again=asked, **given)

    def break_in(self, function: str, **given: Any) -> Breakpoint:
        """Stop where a function is entered, after its prologue; also where it is inlined."""
        instructions = self.lines.instructions_in(function)
        everywhere = self.launches.all_lines
        if not instructions and not any(lines.instructions_in(function) for lines in everywhere):
            known = ", ".join(sorted({one.title for lines in everywhere for one in lines.program.functions}))
            raise UnknownError(f"there is no function `{function}` in the recorded program, which has {known}")
        again = partial(self.break_in, function, **given)
        return self.break_before(instructions, is_entered=True, again=again, **given)

    def break_before(
        self,
        instructions: Sequence[int],
        *,
        condition: str = "",
        hit_count: int = 1,
        thread: int | None = None,
        is_entered: bool = False,
        file: str = "",
        line: int = 0,
        message: str = "",
        again: Callable[[], Breakpoint] | None = None,
    ) -> Breakpoint:
        """Stop before instructions, by their numbers in the program; or only where a thread comes from others to them.

        With a `message`, it is said there instead, with values of the expressions in its braces; `again` makes the same
        breakpoint in another launch.
        """
        found = Breakpoint(
            self.trace, self._numbers + 1, instructions, partial(self._scope_in, file, line), thread, condition,
            hit_count, is_entered, file, line, message, again,
        )  # fmt: skip
        found.check()
        self._numbers += 1
        self.stops[found.number] = found
        return found

    def _scope_in(self, file: str, line: int, thread: int, position: int) -> Scope:
        """What a thread sees that executes the step at a position, in the function that has a line."""
        instruction = self.trace.instruction_at(position)
        level = self.lines.level(instruction, file, line)
        return self.scope_at(thread, position, len(self.lines.places(instruction)) - level)

    def watch(self, name: str) -> Watchpoint:
        """Stop where a register, a variable, an element such as `c[3, 5]`, or another expression changes."""
        scope, number = self.scope, self._numbers + 1
        if name.startswith("%") and name in {known for names in self.trace.program.registers for known in names}:
            found = watch_register(self.trace, number, name, self.thread)
        elif scope.is_in_memory(name):
            space, owner, address, size = scope.location_of(name)
            if space not in (GLOBAL, SHARED, LOCAL):
                raise UnknownError(f"`{name}`: only registers, global, shared and local memory can be watched")
            found = watch_memory(self.trace, number, name, space, owner, address, size)
        else:
            found = watch_value(self.trace, number, name, self._same_function(scope), self.thread)
        self._numbers = number
        self.stops[number] = found
        return found

    def _same_function(self, scope: Scope) -> Iterator[Scope]:
        """What a function of a thread sees at each of its steps."""
        steps = self.steps(scope.thread)
        now = steps.next(self.position if scope.step is None else scope.step)
        depth = int(steps.depths[min(now, len(steps.depths) - 1)])
        function = self.trace.program.instructions[scope.instruction or 0][0]
        for at, instruction, deep in zip(steps.numbers, steps.instructions, steps.depths, strict=True):
            if deep == depth and self.trace.program.instructions[instruction][0] is function:
                yield self.scope_at(scope.thread, int(at), scope.depth - scope.level)

    def said(self) -> list[str]:
        """What breakpoints with a message have said since it was asked last."""
        found, self._said = self._said, []
        return found

    def _log(self, start: int, stop: int) -> None:
        """Collect the messages of breakpoints between two positions."""
        found: list[tuple[int, str]] = []
        for one in self.stops.values():
            if isinstance(one, Breakpoint) and one.message:
                for hit in one.hits.around(start, backwards=False):
                    at = int(one.hits.positions[hit])
                    if at >= stop or len(found) >= _MOST_SAID:
                        break
                    if one.holds(hit):
                        found.append((at, one.said(hit)))
        self._said += [text for _, text in sorted(found)]

    # Moving.

    def go_to(self, position: int, thread: int | None = None) -> Stop:
        """Go to a position; from the end if it is negative."""
        self.frame, self._stopped = 0, (-1, 0)
        steps = self.trace.steps
        self.position = max(0, min(steps, position + steps + 1 if position < 0 else position))
        self.thread = self.thread if thread is None else thread
        return Stop("goto", f"after {self.position:,} of {steps:,} steps", self.thread)

    def run(self, *, backwards: bool = False, is_new: bool = False) -> Stop:
        """Run to the next stop, or backwards to the one before; else to the end, or the start.

        If it `is_new`, a breakpoint stops it where it is already.
        """
        while True:
            start = self.position
            stop = self._run(backwards=backwards, is_new=is_new)
            self._log(start, self.position)
            is_at_end = stop.reason in ("end", "start") or (stop.reason == "finding" and start == self.position)
            following = self.launch + (-1 if backwards else 1)
            if not is_at_end or not 0 <= following < len(self.launches):
                return stop
            self.enter(following)
            self.position, is_new = (self.trace.steps if backwards else 0), True

    def _run(self, *, backwards: bool, is_new: bool = False) -> Stop:
        self.frame = 0
        limit = 0 if backwards else self.trace.steps
        found = self._nearest(limit, backwards=backwards, is_new=is_new)
        if found is not None:
            return found
        self.position = limit
        if backwards:
            return Stop("start", "start of the recording", self.thread)
        # What has no access that is recorded, such as a hang, is where the recording ends.
        unseen = [one for number, one in enumerate(self.findings, 1) if -number not in self.stops]
        if unseen and not self.trace.is_complete:
            return Stop("finding", "; ".join(f"{one.code}: {one.message}" for one in unseen), self.thread)
        return Stop("end", self.trace.end, self.thread)

    def step(self, kind: Kind = "in", unit: Unit = "line", *, backwards: bool = False) -> Stop:
        """Let the thread execute a line or an instruction, or take it back, unless something stops it before that."""
        start = self.position
        stop = self._step(kind, unit, backwards=backwards)
        self._log(start, self.position)
        return stop

    def _step(self, kind: Kind, unit: Unit, *, backwards: bool) -> Stop:
        self.frame, outside = 0, self.outside()
        steps = self.steps(self.thread)
        index = steps.next(self.position)
        way = Way(self.lines, steps, in_ptx=self.in_ptx)
        if unit == "line" and kind == "in" and not backwards and outside > way.own(index):
            self._outside = self.thread, self.position, outside - 1  # into what is inlined, where no step is between
            return Stop("step", "step", self.thread)
        if backwards:
            return self._step_back(way, index, kind, unit)
        target = way.after(index, kind, unit, outside)
        if target is None:
            return self._run(backwards=False)
        found = self._nearest(target, backwards=False)
        if found is not None:
            return found
        self.position = target
        now = steps.next(target)
        if now >= len(steps.numbers):
            return Stop("end", self.ending(self.thread), self.thread)
        if unit == "line":
            self._outside = self.thread, target, way.outside(index, now, outside)
        return Stop("step", "step", self.thread)

    def _step_back(self, way: Way, index: int, kind: Kind, unit: Unit) -> Stop:
        """Take back a line or an instruction."""
        found = way.before(index, kind, unit, self.outside())
        if found is None:
            return self._run(backwards=True)
        target, outside = found
        is_moved = index >= len(way.steps.numbers) or target != int(way.steps.numbers[index])
        stop = self._nearest(target, backwards=True) if is_moved else None
        if stop is not None:
            return stop
        self.position = target
        if unit == "line":
            self._outside = self.thread, target, max(outside, way.own(way.steps.next(target)))
        return Stop("step", "step", self.thread)

    def _nearest(self, limit: int, *, backwards: bool, is_new: bool = False) -> Stop | None:
        """Go to the nearest stop between here and a limit, if there is one; not to the one that it is at."""
        steps = self.steps(self.thread)
        index = steps.next(self.position)
        here = int(steps.numbers[index]) if index < len(steps.numbers) and not is_new else -1
        best: tuple[int, int, int] | None = None
        for number, one in self.stops.items():
            if isinstance(one, Breakpoint) and one.message:
                continue
            for hit in one.hits.around(self.position, backwards=backwards):
                at, thread = int(one.hits.positions[hit]), int(one.hits.threads[hit])
                is_watch = not isinstance(one, Breakpoint)
                beyond = at < limit if backwards else at > limit if is_watch else at >= limit
                if beyond or (best is not None and _nearer(best[0], at, backwards)):
                    break
                is_here = at == (self.position if is_watch else here) or (at, number, at) == (
                    *self._stopped,
                    self.position,
                )
                if not is_here and one.holds(hit):
                    best = at, thread, number
                    break
        if best is None:
            return None
        self.position, self.thread, number = best
        self._stopped = best[0], number
        found = self.stops[number]
        if isinstance(found, Breakpoint):
            instruction = self.trace.instruction_at(self.position)
            self._outside = self.thread, self.position, self.lines.level(instruction, found.file, found.line)
            if found.is_once:
                del self.stops[number]
        return Stop(_REASONS[type(found)], found.description, self.thread, number)


def _nearer(one: int, other: int, backwards: bool) -> bool:
    """Whether a position is nearer than another in the direction of the search."""
    return one > other if backwards else one < other
