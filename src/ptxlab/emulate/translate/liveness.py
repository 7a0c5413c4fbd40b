"""Which registers are read before they are written again, anywhere in a function; sets are integers, a bit each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxlab import ir
from ptxlab.emulate.translate.dataflow import backwards, settle
from ptxlab.ir.effects import RegisterEffects
from ptxlab.ir.flow import Flow


class Liveness:
    """What is still needed: `at_start[block]` when a block starts, `after(position)` after an instruction."""

    def __init__(
        self,
        instructions: Sequence[ir.Instruction],
        effects: RegisterEffects,
        flow: Flow,
        registers: dict[int, ir.Register],
    ) -> None:
        self._flow = flow
        self.block_of = [block.number for block in flow.blocks for _ in range(block.start, block.end)]
        self.reads = [_set(indices) for indices in effects.reads]
        self.writes = [_set(indices) for indices in effects.writes]
        # What an instruction writes as a whole, if it is executed; and what it writes in any case.
        whole = _set(index for index, register in registers.items() if register.vector == 1)
        self.results = [written & whole for written in self.writes]
        self.overwrites = [
            results if instruction.guard is None else 0
            for instruction, results in zip(instructions, self.results, strict=True)
        ]
        self.at_start = self._find()
        self._after: dict[int, list[int]] = {}

    def _find(self) -> list[int]:
        blocks = self._flow.blocks
        generated, killed = [], []
        for block in blocks:
            read = written = 0
            for position in range(block.start, block.end):
                read |= self.reads[position] & ~written
                written |= self.overwrites[position]
            generated.append(read)
            killed.append(written)
        live = list(generated)

        def visit(number: int) -> Sequence[int]:
            found = generated[number] | (self._at_end(number, live) & ~killed[number])
            if found == live[number]:
                return ()
            live[number] = found
            return blocks[number].predecessors

        settle(backwards(self._flow), visit)
        return live

    def _at_end(self, number: int, live: Sequence[int]) -> int:
        found = 0
        for successor in self._flow.blocks[number].successors:
            found |= live[successor]
        return found

    def after(self, position: int) -> int:
        """The registers that are needed after an instruction."""
        number = self.block_of[position]
        if number not in self._after:
            self._after[number] = self._after_each(number)
        return self._after[number][position - self._flow.blocks[number].start]

    def _after_each(self, number: int) -> list[int]:
        """The registers that are needed after each instruction of a block."""
        block = self._flow.blocks[number]
        live = self._at_end(number, self.at_start)
        found = []
        for position in range(block.end - 1, block.start - 1, -1):
            found.append(live)
            live = live & ~self.overwrites[position] | self.reads[position]
        return found[::-1]

    def before(self, position: int) -> int:
        """The registers that are needed by an instruction or after it."""
        return self.after(position) & ~self.overwrites[position] | self.reads[position]

    def across(self, position: int) -> int:
        """The registers that an instruction must keep while it waits: those needed after it, without its results."""
        return self.after(position) & ~self.results[position]


class AlwaysLive(Liveness):
    """Every register is needed everywhere: true enough where a register stays in the frame anyway."""

    def __init__(self, flow: Flow, registers: Iterable[int]) -> None:
        self.block_of = [block.number for block in flow.blocks for _ in range(block.start, block.end)]
        self.reads = self.writes = self.results = self.overwrites = [0] * len(self.block_of)
        self.at_start = [_set(registers)] * len(flow.blocks)

    def after(self, position: int) -> int:
        return -1

    def before(self, position: int) -> int:
        return 0


def _set(indices: Iterable[int]) -> int:
    found = 0
    for index in indices:
        found |= 1 << index
    return found
