"""How far a thread goes in one step: an instruction, or a line, into, over or out of what is called and inlined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxlab.debug.lines import Lines, Place
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

    def _places(self, index: int, outside: int = 0) -> tuple[Place, ...]:
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

    def _continues(self, at: int, kind: Kind, unit: Unit, depth: int, line: tuple[Place, ...]) -> bool:
        """Whether a step is still before the end of what is to be executed."""
        deep = int(self.steps.depths[at])
        if kind == "in":
            return unit == "line" and deep == depth and self._places(at) == line
        if kind == "over":
            return deep > depth or (unit == "line" and deep == depth and self._places(at)[-len(line) :] == line)
        if len(line) == 1:
            return deep >= depth
        same = self._places(at)[-len(line) :]  # out of a function that is inlined
        is_inside = len(same) == len(line) and (same[0].function, same[1:]) == (line[0].function, line[1:])
        return deep > depth or (deep == depth and is_inside)

    def before(self, index: int, kind: Kind, unit: Unit) -> int | None:
        """The position before the thread executed that much; None if it has executed nothing."""
        at = index - 1
        if at < 0:
            return None
        depth = int(self.steps.depths[min(index, len(self.steps.depths) - 1)])
        if kind != "in":
            most = depth - (kind == "out")
            while at > 0 and self.steps.depths[at] > most:
                at -= 1
        while unit == "line" and at > 0 and self._is_same(at - 1, at):
            at -= 1
        return int(self.steps.numbers[at])

    def _is_same(self, one: int, other: int) -> bool:
        return self._places(one) == self._places(other) and self.steps.depths[one] == self.steps.depths[other]

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
