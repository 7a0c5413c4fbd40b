"""Where accesses found their memory last, in registers as long as a loop runs.

A `Hint` is in memory, and each access reads it. In an innermost loop, that of the first few accesses is read when the
loop is entered, after a wait and after a search. What a loop has is known only when it is translated; until then there
are gaps in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi.address_spaces import Hint
from ptxlab.emulate.translate.loops import loops_of
from ptxlab.isa import Jump
from ptxlab.native import offset_of, size_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

MOST = 4  # accesses of a loop: registers are few
FIELDS = {"base": "i64", "count": "i64", "data": "ptr"}


class LoopHints:
    """The hints that the loops of a function keep."""

    def __init__(self, function: Function) -> None:
        self._function = function
        loops = [] if function.unit.flat else loops_of(function.flow)
        headers = {loop.header for loop in loops}
        self._loop_of = {
            block: loop.header
            for loop in loops
            if len(headers & loop.body) == 1 and not any(map(self._calls, loop.body))
            for block in loop.body
        }
        self._kept: dict[int, list[int]] = {}
        self._gaps: list[tuple[int, list[str]]] = []

    def _calls(self, block: int) -> bool:
        """Whether a block calls a function, which may free memory."""
        within = self._function.flow.blocks[block]
        return any(one.opcode.jump is Jump.CALL for one in self._function.instructions[within.start : within.end])

    def keep(self, number: int) -> bool:
        """Whether the loop of the instruction that is being translated keeps a hint."""
        loop = self._loop_of.get(self._function.block_number)
        if loop is None or len(self._kept.setdefault(loop, [])) == MOST:
            return False
        self._kept[loop].append(number)
        return True

    def is_kept(self, number: int) -> bool:
        """Whether some loop keeps a hint."""
        return any(number in kept for kept in self._kept.values())

    def go(self, source: int, target: int) -> None:
        """Read what a loop keeps where a jump leads into it."""
        if self._loop_of.get(source) != self._loop_of.get(target):
            self.resume(target)

    def resume(self, block: int) -> None:
        """Read what the loop of a block keeps, if it is in one."""
        loop = self._loop_of.get(block)
        if loop is not None:
            self._gaps.append((loop, self._function.builder.gap()))

    def fill(self) -> list[str]:
        """Write down what is read, and return the declarations of the registers."""
        for loop, lines in self._gaps:
            for number in self._kept.get(loop, ()):
                lines += self.reading(number)
        kept = [number for numbers in self._kept.values() for number in numbers]
        return [f"  {register(number, name)} = alloca {type}" for number in kept for name, type in FIELDS.items()]

    def reading(self, number: int) -> list[str]:
        """Lines that read a hint into its registers."""
        lines = []
        for name, type in FIELDS.items():
            at, found = self._function.builder.fresh(), self._function.builder.fresh()
            offset = number * size_of(Hint) + offset_of(Hint, name)
            lines.append(f"  {at} = getelementptr i8, ptr %hints, i64 {offset}")
            lines.append(f"  {found} = load {type}, ptr {at}")
            lines.append(f"  store {type} {found}, ptr {register(number, name)}")
        return lines


def register(number: int, name: str) -> str:
    """The variable of a field of a hint."""
    return f"%hint.{number}.{name}"
