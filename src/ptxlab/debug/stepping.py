"""How far a thread goes in one step: an instruction, or a line, into, over or out of what is called and inlined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxlab.debug.lines import Lines, SourceLine
from ptxlab.trace.thread_steps import ThreadSteps

Kind = Literal["in", "over", "out"]
Unit = Literal["line", "instruction"]


@dataclass(frozen=True)
class Way:
    """The steps of a thread and the lines that they are of.

    A step is in a line, in the function that calls the code of this line, and so forth: these are its places, the
    innermost first. Where functions are inlined, a thread may be shown in front of some, and `outside` counts them.
    """

    lines: Lines
    steps: ThreadSteps
    in_ptx: bool

    def own(self, index: int) -> int:
        """Which place of a step is the innermost of the user's own."""
        return 0 if self.in_ptx or index >= len(self.steps.numbers) else self.lines.own[self._instruction(index)]

    def _instruction(self, index: int) -> int:
        return int(self.steps.instructions[index])

    def _places(self, index: int, outside: int = 0) -> tuple[SourceLine, ...]:
        places = self.lines.places(self._instruction(index), in_ptx=self.in_ptx)
        return places[max(self.own(index), outside) :]

    def after(self, index: int, kind: Kind, unit: Unit, outside: int = 0) -> int | None:
        """The position after the thread has executed that much; None if it has nothing left to execute."""
        count = len(self.steps.numbers)
        if index >= count:
            return None
        depth, line = int(self.steps.depths[index]), self._places(index, outside)
        at = index + 1
        while at < count and self._continues(at, kind, unit, depth, line):
            at += 1
        return int(self.steps.numbers[at - 1]) + 1

    def _continues(self, at: int, kind: Kind, unit: Unit, depth: int, line: tuple[SourceLine, ...]) -> bool:
        """Whether a step is still before the end of what is to be executed."""
        deep = int(self.steps.depths[at])
        if kind == "in":
            return unit == "line" and deep == depth and self._places(at) == line
        if kind == "over":
            return deep > depth or (unit == "line" and deep == depth and self._places(at)[-len(line) :] == line)
        if len(line) == 1:
            return deep >= depth
        return self._is_inside(at, depth, line)  # a function that is inlined

    def before(self, index: int, kind: Kind, unit: Unit, outside: int = 0) -> tuple[int, int] | None:
        """The position before the thread executed that much, and how many functions it is shown in front of there.

        None if it has executed nothing. A line is taken back to its start, in the function that the thread is in, or in
        its caller; `in` takes back the last line of what was called.
        """
        count = len(self.steps.numbers)
        depth = int(self.steps.depths[min(index, count - 1)])
        here = self._places(index, outside) if index < count else ()
        if unit == "line" and len(here) > 1:  # in a function that is inlined
            start = index
            while start and self._is_inside(start - 1, depth, here) and (kind == "out" or start == index):
                start -= 1
            is_called = start == index and not (index and self._is_of(index - 1, depth, here[1:]))
            if kind == "out" or is_called:
                return int(self.steps.numbers[start]), self._in_front(start, len(here) - 1)
        at = index - 1
        if at < 0:
            return None
        while kind != "in" and at > 0 and self.steps.depths[at] > depth - (kind == "out"):
            at -= 1
        if unit == "instruction":
            return int(self.steps.numbers[at]), 0
        deep, line = int(self.steps.depths[at]), self._places(at)
        if kind == "over" and deep == depth:
            line = line[-self._shared(line, here) :]
        start = at
        for one in range(at - 1, -1, -1):
            if kind != "in" and self.steps.depths[one] > deep:
                continue
            if not (self._is_of(one, deep, line) and (kind != "in" or self._places(one) == line)):
                break
            start = one
        return int(self.steps.numbers[start]), self._in_front(start, len(line))

    def _in_front(self, index: int, frames: int) -> int:
        """How many functions are inlined at a step inside of that many."""
        return len(self.lines.places(self._instruction(index), in_ptx=self.in_ptx)) - frames

    def _is_of(self, at: int, depth: int, line: tuple[SourceLine, ...]) -> bool:
        """Whether a step is of a line, or of what is inlined there."""
        return bool(self.steps.depths[at] == depth) and self._places(at)[-len(line) :] == line

    def _is_inside(self, at: int, depth: int, line: tuple[SourceLine, ...]) -> bool:
        """Whether a step is in the same inlined function as a line, or in what that calls."""
        same = self._places(at)[-len(line) :]
        is_same = len(same) == len(line) and (same[0].function, same[1:]) == (line[0].function, line[1:])
        deep = int(self.steps.depths[at])
        return deep > depth or (deep == depth and is_same)

    def _shared(self, line: tuple[SourceLine, ...], here: tuple[SourceLine, ...]) -> int:
        """How many frames of a line are the same functions as those of another, at least the outermost."""
        for count in range(min(len(line), len(here)), 1, -1):
            one, other = line[-count:], here[-count:]
            if (one[0].function, one[1:]) == (other[0].function, other[1:]):
                return count
        return 1

    def outside(self, before: int, now: int, outside: int) -> int:
        """How many inlined functions a thread is shown in front of after a step: those inside of the line that changed.

        So a step over a line comes to the next one, and not into a function that is inlined at its start.
        """
        own, new = self.own(now), self.lines.places(self._instruction(now), in_ptx=self.in_ptx)
        deep, depth = int(self.steps.depths[now]), int(self.steps.depths[min(before, len(self.steps.depths) - 1)])
        if deep > depth:
            return max(own, len(new) - 1)
        old = self._places(min(before, len(self.steps.numbers) - 1), outside)
        if deep < depth:
            old = self._places(now - 1 if before > now else self.steps.callers(before)[depth - deep - 1])
        shared = 0
        while shared < min(len(old), len(new)) and old[-1 - shared] == new[-1 - shared]:
            shared += 1
        return max(own, len(new) - 1 - shared)
