"""A position in a recorded launch, and the thread that is inspected: what is where.

A position is a number of steps: those before it are executed. Each thread is shown at the first of its steps from
there on, which it executes next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.debug.declarations import Declarations
from ptxlab.debug.lines import Lines, SourceLine
from ptxlab.debug.machine_code import MachineCode
from ptxlab.debug.objects import UnknownError, UnwrittenError
from ptxlab.debug.values import Scope, index_text
from ptxlab.ir import Module
from ptxlab.trace import Trace
from ptxlab.trace.accesses import NAMES
from ptxlab.trace.program import Value
from ptxlab.trace.thread_steps import ThreadSteps, steps_of

if TYPE_CHECKING:
    from ptxlab.trace.origin import Origin

_machine_code = lru_cache(maxsize=4)(MachineCode.of)


@dataclass(frozen=True)
class Frame:
    """Where a thread is in one of the functions that it runs, or in code that is inlined there."""

    place: SourceLine
    instruction: int
    ptx_line: int
    is_own: bool = True  # not in a header of a library
    level: int = 0
    """How many functions are inlined inside of it."""
    step: int | None = None
    """The step of the call that it waits for; None of the innermost function."""


class Position:
    """A position in a recorded launch, and a thread that is inspected there."""

    def __init__(self, trace: Trace, compile: Callable[[], Module | None] = lambda: None) -> None:
        """Start before the first step; `compile` makes the program with debug information, if names are asked for."""
        self.compile = compile
        self.show(trace, Lines(trace.program))
        self.in_ptx = not self.lines.has_sources
        """Whether lines are those of the PTX; otherwise of what `.loc` names."""

    def show(self, trace: Trace, lines: Lines) -> None:
        """Go to the start of a recorded launch."""
        self.trace = trace
        self.lines = lines
        self.declarations = Declarations(trace.program, self.compile)
        self.position = 0
        self.thread = int(trace.columns.thread[0]) if trace.steps else 0
        self.frame = 0
        """Which function of the stack is inspected, from the innermost."""
        self._outside = -1, -1, 0
        """A thread, a position, and how many functions are inlined there that it has not entered yet."""
        self._steps = lru_cache(maxsize=64)(lambda thread: steps_of(trace.columns, thread))
        self._recorded = set(trace.columns.threads)

    def focus(self, thread: int) -> None:
        """Inspect a thread, in its innermost function."""
        if thread not in self._recorded:
            raise UnknownError(f"{self.name(thread)} is not recorded")
        self.thread, self.frame = thread, 0

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

    @property
    def machine_code(self) -> MachineCode:
        """The SASS of the kernel, by lines of its PTX; ptxas is asked when it is first wanted."""
        return _machine_code(str(self.trace.description["text"]))

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

    def outside(self, thread: int | None = None) -> int:
        """How many functions are inlined at the next instruction of a thread that it is shown in front of."""
        at = self._outside
        return at[2] if at[:2] == (self.thread if thread is None else thread, self.position) and not self.in_ptx else 0

    def stack(self, thread: int | None = None) -> list[Frame]:
        """The functions that a thread is in, the innermost first; code that is inlined has frames of its own."""
        return self._whole_stack(thread)[self.outside(thread) :]

    def _whole_stack(self, thread: int | None) -> list[Frame]:
        steps = self.steps(self.thread if thread is None else thread)
        if not len(steps.numbers):
            return []
        index = min(steps.next(self.position), len(steps.numbers) - 1)
        return [
            frame
            for at in (index, *steps.callers(index))
            for frame in self._frames(int(steps.instructions[at]), None if at == index else int(steps.numbers[at]))
        ]

    def place(self, instruction: int) -> SourceLine:
        """The line that an instruction is shown at: the innermost of the user's own."""
        return self.lines.own_places(instruction, in_ptx=self.in_ptx)[0]

    def here(self) -> SourceLine | None:
        """The line that the thread is shown at; None if it has ended."""
        instruction = self.instruction(self.thread)
        if instruction is None:
            return None
        own = 0 if self.in_ptx else self.lines.own[instruction]
        return self.lines.places(instruction, in_ptx=self.in_ptx)[max(own, self.outside())]

    def _frames(self, instruction: int, step: int | None) -> Iterator[Frame]:
        own = 0 if self.in_ptx else self.lines.own[instruction]
        for number, place in enumerate(self.lines.places(instruction, in_ptx=self.in_ptx)):
            yield Frame(place, instruction, self.lines.ptx[instruction].line, number >= own, number, step)

    def when_lanes_are_here(self) -> dict[int, int]:
        """For each thread of the warp, the position at which it comes to this instruction as often as the thread has.

        Threads of a warp are recorded one after the other; so these are the positions of the warp.
        """
        steps = self.steps(self.thread)
        index = steps.next(self.position)
        if index >= len(steps.numbers):
            return dict.fromkeys(self.lanes(self.thread), self.position)
        instruction = steps.instructions[index]
        times = int((steps.instructions[: index + 1] == instruction).sum())
        found: dict[int, int] = {}
        for lane in self.lanes(self.thread):
            own = self.steps(lane)
            same = own.numbers[own.instructions == instruction]
            if len(same) >= times:
                found[lane] = int(same[times - 1])
        return found

    def scopes_across_lanes(self) -> dict[int, Scope]:
        """What all threads of the warp see, each when it comes to this instruction; see `when_lanes_are_here`."""
        when = self.when_lanes_are_here().items()
        if self.instruction(self.thread) is None:
            return {lane: self.scope_of(lane) for lane, _ in when}
        scope = self.scope_of(self.thread)
        return {lane: self.scope_at(lane, at, scope.depth - scope.level) for lane, at in when}

    def across_lanes(self, expression: str) -> dict[int, Value]:
        """A register or another number in all threads of the warp; lanes that have none are left out."""
        found: dict[int, Value] = {}
        for lane, scope in self.scopes_across_lanes().items():
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
