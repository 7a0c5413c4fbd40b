"""The debugger: a position in a recorded launch, which moves forwards and backwards.

A position is a number of steps: those before it are executed. Each thread is shown at the first of its steps from
there on, which it executes next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ptxlab.debug.declarations import Declarations
from ptxlab.debug.lines import Lines, Place
from ptxlab.debug.machine_code import MachineCode
from ptxlab.debug.objects import UnknownError, UnwrittenError
from ptxlab.debug.stops import (
    Breakpoint,
    Finding,
    Watchpoint,
    stop_at_finding,
    watch_memory,
    watch_register,
    watch_value,
)
from ptxlab.debug.values import Scope, index_text
from ptxlab.ir import Module
from ptxlab.report import Diagnostic
from ptxlab.trace import Trace
from ptxlab.trace.accesses import GLOBAL, LOCAL, NAMES, SHARED
from ptxlab.trace.program import Value
from ptxlab.trace.thread_steps import ThreadSteps, steps_of

if TYPE_CHECKING:
    from ptxlab.trace.origin import Origin

Kind = Literal["in", "over", "out"]
Unit = Literal["line", "instruction"]


_MOST_SAID = 1000  # messages of breakpoints in one move
Reason = Literal["step", "breakpoint", "watchpoint", "finding", "end", "start", "goto"]
_REASONS: dict[type, Reason] = {Breakpoint: "breakpoint", Watchpoint: "watchpoint", Finding: "finding"}


@dataclass(frozen=True)
class Stop:
    """Why the debugger is where it is."""

    reason: Reason
    description: str
    thread: int
    number: int | None = None
    """Of what has stopped it."""


@dataclass(frozen=True)
class Frame:
    """Where a thread is in one of the functions that it runs, or in code that is inlined there."""

    place: Place
    instruction: int
    ptx_line: int
    is_own: bool = True  # not in a header of a library
    level: int = 0
    """How many functions are inlined inside of it."""
    step: int | None = None
    """The step of the call that it waits for; None of the innermost function."""


class Debugger:
    """A recorded launch, a position in it, and a thread that is inspected."""

    def __init__(
        self,
        trace: Trace,
        findings: Sequence[Diagnostic] = (),
        compile: Callable[[], Module | None] = lambda: None,
    ) -> None:
        """Start before the first step; `compile` makes the program with debug information, if names are asked for."""
        self.trace = trace
        self.lines = Lines(trace.program)
        self.declarations = Declarations(trace.program, compile)
        self.findings = findings
        self.stops: dict[int, Breakpoint | Watchpoint | Finding] = {}
        self.position = 0
        self.in_ptx = not self.lines.has_sources
        """Whether lines are those of the PTX; otherwise of what `.loc` names."""
        self.thread = int(trace.columns.thread[0]) if trace.steps else 0
        self.frame = 0
        """Which function of the stack is inspected, from the innermost."""
        self._numbers = 0
        self._said: list[str] = []
        self._stopped = -1, 0  # the position and the number of the last stop
        self._steps = lru_cache(maxsize=64)(lambda thread: steps_of(trace.columns, thread))
        for number, diagnostic in enumerate(findings, 1):
            found = stop_at_finding(trace, -number, diagnostic)
            if found is not None:
                self.stops[-number] = found

    # What is where.

    @property
    def scope(self) -> Scope:
        """The thread and the function that are inspected, and what they see."""
        return self.scope_of(self.thread, self.frame)

    def scope_of(self, thread: int, frame: int = 0) -> Scope:
        """A thread of the grid at this position, in a function of its stack."""
        frames = self.stack(thread)
        if not frames or self.instruction(thread) is None:
            return Scope(self.trace, thread, self.position, self.declarations)
        chosen = frames[min(frame, len(frames) - 1)]
        depth = len(self.lines.places(chosen.instruction))
        level = depth - 1 if self.in_ptx else chosen.level
        return Scope(
            self.trace, thread, self.position, self.declarations, chosen.instruction, chosen.step, level, depth
        )

    def scope_at(self, thread: int, position: int, frames: int | None = None) -> Scope:
        """A thread that executes the step at a position, in its innermost function; or in that of `frames`.

        That counts from the function itself to the one among those inlined there.
        """
        instruction = self.trace.instruction_at(position)
        depth = len(self.lines.places(instruction))
        level = 0 if frames is None else max(depth - frames, 0)
        return Scope(self.trace, thread, position, self.declarations, instruction, level=level, depth=depth)

    @cached_property
    def machine_code(self) -> MachineCode:
        """The SASS of the kernel, by lines of its PTX; ptxas is asked when it is first wanted."""
        return MachineCode.of(str(self.trace.description["text"]))

    def sass(self, instruction: int) -> tuple[str, ...]:
        """The SASS of an instruction; of several in one line, the first has it."""
        line = self.lines.ptx[instruction].line
        is_first = not instruction or self.lines.ptx[instruction - 1].line != line
        return self.machine_code.lines.get(line, ()) if is_first else ()

    def steps(self, thread: int) -> ThreadSteps:
        """What a thread executes in the whole launch."""
        found: ThreadSteps = self._steps(thread)
        return found

    def instruction(self, thread: int) -> int | None:
        """The instruction that a thread executes next; None if it has ended."""
        steps = self.steps(thread)
        index = steps.next(self.position)
        return int(steps.instructions[index]) if index < len(steps.numbers) else None

    def instructions(self) -> dict[int, int]:
        """The instructions that all recorded threads execute next; those that have ended have none."""
        columns = self.trace.columns
        if self.position >= self.trace.steps:
            return {}
        first, index = columns.locate(self.position)
        entries = np.arange(first, len(columns.thread))
        entries = entries[columns.first_step[entries + 1] > columns.first_step[entries]]
        _, found = np.unique(columns.thread[entries], return_index=True)
        return {
            int(columns.thread[entry]): columns.segment_of(entry).steps[index if entry == first else 0][0]
            for entry in entries[found].tolist()
            if columns.first_step[entry] < self.trace.steps
        }

    def ending(self, thread: int) -> str:
        """What is known of a thread that has no next step: it has ended, or its last step was recorded."""
        if self.trace.is_complete:
            return "it has ended"
        steps = self.steps(thread)
        if not len(steps.numbers):
            return "nothing is recorded of it"
        last = int(steps.instructions[-1])
        return f"no step is recorded after line {self.trace.program.line(last)}: {self.trace.program.text(last)}"

    def warps(self) -> list[int]:
        """The recorded warps, each by its first thread in the grid."""
        size = self.trace.accesses.threads_in_block
        return sorted({thread - thread % size % 32 for thread in self.trace.columns.threads})

    def lanes(self, thread: int) -> list[int]:
        """The recorded threads of a thread's warp."""
        size = self.trace.accesses.threads_in_block
        first = thread - thread % size % 32
        last = min(first + 32, (thread // size + 1) * size)
        return [one for one in range(first, last) if one in self._recorded]

    def name(self, thread: int) -> str:
        """`block (1,0,0) thread (5,0,0)`."""
        block, own = divmod(thread, self.trace.accesses.threads_in_block)
        return f"block {index_text(block, self.trace.grid)} thread {index_text(own, self.trace.block)}"

    def stack(self, thread: int | None = None) -> list[Frame]:
        """The functions that a thread is in, the innermost first; code that is inlined has frames of its own."""
        steps = self.steps(self.thread if thread is None else thread)
        if not len(steps.numbers):
            return []
        index = min(steps.next(self.position), len(steps.numbers) - 1)
        return [
            frame
            for at in (index, *steps.callers(index))
            for frame in self._frames(int(steps.instructions[at]), None if at == index else int(steps.numbers[at]))
        ]

    def place(self, instruction: int) -> Place:
        """The line that an instruction is shown at: the innermost of the user's own."""
        return self.lines.own_places(instruction, in_ptx=self.in_ptx)[0]

    def _frames(self, instruction: int, step: int | None) -> Iterator[Frame]:
        own = 0 if self.in_ptx else self.lines.own[instruction]
        for number, place in enumerate(self.lines.places(instruction, in_ptx=self.in_ptx)):
            yield Frame(place, instruction, self.lines.ptx[instruction].line, number >= own, number, step)

    def when_lanes_are_here(self, thread: int | None = None) -> dict[int, int]:
        """For each thread of a warp, the position at which it comes to this instruction as often as the thread has.

        Threads of a warp are recorded one after the other; so these are the positions of the warp.
        """
        thread = self.thread if thread is None else thread
        steps = self.steps(thread)
        index = steps.next(self.position)
        if index >= len(steps.numbers):
            return dict.fromkeys(self.lanes(thread), self.position)
        instruction = steps.instructions[index]
        times = int((steps.instructions[: index + 1] == instruction).sum())
        found: dict[int, int] = {}
        for lane in self.lanes(thread):
            own = self.steps(lane)
            same = own.numbers[own.instructions == instruction]
            if len(same) >= times:
                found[lane] = int(same[times - 1])
        return found

    def scopes_across_lanes(self, thread: int | None = None) -> dict[int, Scope]:
        """What all threads of a warp see, each when it comes to this instruction; see `when_lanes_are_here`."""
        when = self.when_lanes_are_here(thread).items()
        if self.instruction(self.thread if thread is None else thread) is None:
            return {lane: self.scope_of(lane) for lane, _ in when}
        return {lane: self.scope_at(lane, at) for lane, at in when}

    def across_lanes(self, expression: str, thread: int | None = None) -> dict[int, Value]:
        """A register or another number in all threads of a warp; lanes that have none are left out."""
        found: dict[int, Value] = {}
        for lane, scope in self.scopes_across_lanes(thread).items():
            try:
                found[lane] = scope.evaluate(expression)
            except UnwrittenError:  # a lane that has not written it has no value
                continue
        return found

    def tensor_memory(self) -> Any:
        """The words of the block's tensor memory, by lane and column, as floats; see `Trace.tensor_memory`."""
        return self.trace.tensor_memory(self.scope.block, self.position - 1)

    def origin(self, name: str) -> Origin:
        """Where a register of the thread, or an element such as `c[3, 5]`, has its value from."""
        scope = self.scope
        if name.startswith("%"):
            return self.trace.origin(name, scope.own, block=scope.block, step=self.position - 1)
        space, _, address, size = scope.location_of(name)
        return self.trace.origin(address, size=size, space=NAMES[space], block=scope.block, step=self.position - 1)

    # Breakpoints.

    def break_at(self, file: str, line: int, **given: Any) -> Breakpoint:
        """Stop at a line of the PTX (`file` is "") or of a source; `UnknownError` where it has no instruction."""
        instructions = self.lines.instructions_at(file, line)
        if not instructions:
            raise UnknownError(f"there is no instruction at line {line}" + (f" of `{file}`" if file else ""))
        return self.break_before(instructions, is_line=bool(file), line=line, **given)

    def break_in(self, function: str, **given: Any) -> Breakpoint:
        """Stop where a function is entered, after its prologue; also where it is inlined."""
        instructions = self.lines.instructions_in(function)
        if not instructions:
            known = ", ".join(sorted({one.title for one in self.trace.program.functions}))
            raise UnknownError(f"there is no function `{function}` in the recorded program, which has {known}")
        return self.break_before(instructions, is_line=True, **given)

    def break_before(
        self,
        instructions: Sequence[int],
        *,
        condition: str = "",
        hit_count: int = 1,
        thread: int | None = None,
        is_line: bool = False,
        line: int = 0,
        message: str = "",
    ) -> Breakpoint:
        """Stop before instructions, by their numbers in the program; if they are a line, where a thread enters it.

        With a `message`, it is said there instead, with values of the expressions in its braces.
        """
        found = Breakpoint(
            self.trace, self._numbers + 1, instructions, self.scope_at, thread, condition, hit_count, is_line, line,
            message,
        )  # fmt: skip
        found.check()
        self._numbers += 1
        self.stops[found.number] = found
        return found

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

    def focus(self, thread: int) -> None:
        """Inspect a thread, in its innermost function."""
        if thread not in self._recorded:
            raise UnknownError(f"{self.name(thread)} is not recorded")
        self.thread, self.frame = thread, 0

    @cached_property
    def _recorded(self) -> set[int]:
        return set(self.trace.columns.threads)

    def go_to(self, position: int, thread: int | None = None) -> Stop:
        """Go to a position; from the end if it is negative."""
        self.frame, self._stopped = 0, (-1, 0)
        steps = self.trace.steps
        self.position = max(0, min(steps, position + steps + 1 if position < 0 else position))
        self.thread = self.thread if thread is None else thread
        return Stop("goto", f"after {self.position:,} of {steps:,} steps", self.thread)

    def run(self, *, backwards: bool = False) -> Stop:
        """Run to the next stop, or backwards to the one before; else to the end, or the start."""
        start = self.position
        stop = self._run(backwards=backwards)
        self._log(start, self.position)
        return stop

    def _run(self, *, backwards: bool) -> Stop:
        self.frame = 0
        limit = 0 if backwards else self.trace.steps
        found = self._nearest(limit, backwards=backwards)
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
        self.frame = 0
        steps = self.steps(self.thread)
        index = steps.next(self.position)
        target = self._before(steps, index, kind, unit) if backwards else self._after(steps, index, kind, unit)
        if target is None:
            return self._run(backwards=backwards)
        found = self._nearest(target, backwards=backwards)
        if found is not None:
            return found
        self.position = target
        if not backwards and steps.next(target) >= len(steps.numbers):
            return Stop("end", self.ending(self.thread), self.thread)
        return Stop("step", "step", self.thread)

    def _after(self, steps: ThreadSteps, index: int, kind: Kind, unit: Unit) -> int | None:
        """The position after the thread has executed that much; None if it has nothing left to execute."""
        count = len(steps.numbers)
        if index >= count:
            return None
        depth = int(steps.depths[index])
        at = index + 1
        if kind == "in":
            while unit == "line" and at < count and self._is_same_line(steps, at, index):
                at += 1
        else:
            most = depth - (kind == "out")
            while at < count and (
                steps.depths[at] > most or (unit == "line" and kind == "over" and self._is_in_line(steps, at, index))
            ):
                at += 1
        return int(steps.numbers[at - 1]) + 1

    def _before(self, steps: ThreadSteps, index: int, kind: Kind, unit: Unit) -> int | None:
        """The position before the thread executed that much; None if it has executed nothing."""
        at = index - 1
        if at < 0:
            return None
        depth = int(steps.depths[min(index, len(steps.depths) - 1)])
        if kind != "in":
            most = depth - (kind == "out")
            while at > 0 and steps.depths[at] > most:
                at -= 1
        while unit == "line" and at > 0 and self._is_same_line(steps, at - 1, at):
            at -= 1
        return int(steps.numbers[at])

    def _is_same_line(self, steps: ThreadSteps, one: int, other: int) -> bool:
        return self._is_in_line(steps, one, other) and self._is_in_line(steps, other, one)

    def _is_in_line(self, steps: ThreadSteps, one: int, other: int) -> bool:
        """Whether a step is in the line of another, or in code that this calls and that is inlined."""
        inner, line = (self.lines.own_places(int(steps.instructions[at]), in_ptx=self.in_ptx) for at in (one, other))
        return inner[-len(line) :] == line and steps.depths[one] == steps.depths[other]

    def _nearest(self, limit: int, *, backwards: bool) -> Stop | None:
        """Go to the nearest stop between here and a limit, if there is one; not to the one that it is at."""
        steps = self.steps(self.thread)
        index = steps.next(self.position)
        here = int(steps.numbers[index]) if index < len(steps.numbers) else -1
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
        if isinstance(found, Breakpoint) and found.is_once:
            del self.stops[number]
        return Stop(_REASONS[type(found)], found.description, self.thread, number)


def _nearer(one: int, other: int, backwards: bool) -> bool:
    """Whether a position is nearer than another in the direction of the search."""
    return one > other if backwards else one < other
