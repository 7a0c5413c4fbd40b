"""Which registers are read before they are written again, anywhere in a function; sets are integers, a bit each."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab import ir
from ptxlab.ir.effects import Effects
from ptxlab.ir.flow import Flow


class Liveness:
    """What is still needed: `at_start[block]` when a block begins, `after(position)` behind an instruction."""

    def __init__(
        self,
        instructions: Sequence[ir.Instruction],
        effects: Effects,
        flow: Flow,
        registers: dict[int, ir.Register],
    ) -> None:
        self._instructions = instructions
        self._effects = effects
        self._flow = flow
        self._registers = registers
        self.block_of = [block.number for block in flow.blocks for _ in range(block.start, block.end)]
        self.at_start = self._find()

    def _find(self) -> list[int]:
        blocks = self._flow.blocks
        generated = [self._before(block.start, block.end, 0) for block in blocks]
        killed = [self._killed(block.start, block.end) for block in blocks]
        live = list(generated)
        changed = True
        while changed:
            changed = False
            for block in reversed(blocks):
                found = generated[block.number] | (self._at_end(block.number, live) & ~killed[block.number])
                if found != live[block.number]:
                    live[block.number] = found
                    changed = True
        return live

    def _at_end(self, number: int, live: Sequence[int]) -> int:
        found = 0
        for successor in self._flow.blocks[number].successors:
            found |= live[successor]
        return found

    def _before(self, start: int, end: int, live: int) -> int:
        """What is needed before the instructions from `start` to `end`, if `live` is needed behind them."""
        for position in range(end - 1, start - 1, -1):
            live &= ~self.overwrites(position)
            for index in self._effects.reads[position]:
                live |= 1 << index
        return live

    def _killed(self, start: int, end: int) -> int:
        killed = 0
        for position in range(start, end):
            killed |= self.overwrites(position)
        return killed

    def results(self, position: int) -> int:
        """The registers that an instruction writes as a whole, if it is executed."""
        found = 0
        for index in self._effects.writes[position]:
            if self._registers[index].vector == 1:
                found |= 1 << index
        return found

    def overwrites(self, position: int) -> int:
        """The registers that an instruction writes in any case."""
        return self.results(position) if self._instructions[position].guard is None else 0

    def after(self, position: int) -> int:
        """The registers that are needed behind an instruction."""
        number = self.block_of[position]
        return self._before(position + 1, self._flow.blocks[number].end, self._at_end(number, self.at_start))

    def across(self, position: int) -> int:
        """The registers that an instruction must keep while it waits: those needed behind it, but its own results."""
        return self.after(position) & ~self.results(position)
