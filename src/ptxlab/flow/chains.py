"""Where the values of registers come from, and what reads them, found when it is asked for.

`definition` and `uses` search one block, or at a register that is written once; a write under a guard counts for them:
a read of it is usually under the same guard, or wants the previous value. `definitions` follows all paths
through the function, and at what such a write leaves in place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.ir.flow import BasicBlock
from ptxlab.isa.special_registers import SpecialKind

if TYPE_CHECKING:
    from .facts import Facts

POSITION = frozenset((SpecialKind.THREAD, SpecialKind.LANE))


class Chains:
    """The writes and reads of the registers of one function, by register and in the order of the text."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._blocks = facts.flow.blocks
        self._starts = [block.start for block in self._blocks]
        self._seen: dict[tuple[int, int], tuple[int, ...]] = {}
        self.steps = 0
        """How many blocks were searched to answer questions."""

    @cached_property
    def writes(self) -> dict[int, list[int]]:
        """For each register that is written the instructions that do it, in order."""
        return _positions(self._facts.effects.writes)

    @cached_property
    def reads(self) -> dict[int, list[int]]:
        """For each register that is read the instructions that do it, in order."""
        return _positions(self._facts.effects.reads)

    def block_of(self, at: int) -> int:
        """The block that an instruction is in."""
        return bisect_right(self._starts, at) - 1

    def only_write(self, register: int) -> int | None:
        """The instruction that writes a register, if there is just one."""
        positions = self.writes.get(register, ())
        return positions[0] if len(positions) == 1 else None

    def definition(self, at: int, register: int) -> int | None:
        """The one instruction that wrote what instruction `at` reads in a register; None where that is not certain."""
        writes = self.writes.get(register, [])
        before = bisect_left(writes, at)
        if before and writes[before - 1] >= self._blocks[self.block_of(at)].start:
            return writes[before - 1]
        return writes[0] if len(writes) == 1 else None

    def uses(self, at: int, register: int) -> list[int]:
        """The instructions that read what instruction `at` writes to a register: all, or those in its block."""
        writes, reads = self.writes.get(register, []), self.reads.get(register, [])
        if writes == [at]:
            return reads
        after = bisect_right(writes, at)
        end = self._blocks[self.block_of(at)].end
        if after < len(writes):
            end = min(end, writes[after] + 1)
        return reads[bisect_right(reads, at) : bisect_left(reads, end)]

    def definitions(self, at: int, register: int) -> tuple[int, ...]:
        """The instructions whose write of a register instruction `at` can read; none: nothing writes it before."""
        positions = self.writes.get(register, [])
        if len(positions) <= 1:
            return tuple(positions)
        key = (register, at)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = tuple(sorted(self._search(positions, self._blocks[self.block_of(at)], at)))
        return found

    def derived(self, positions: Iterable[int]) -> frozenset[int]:
        """The registers that these instructions write, and all that are computed from them, in whatever order."""
        writes, matches = self._facts.effects.writes, self._facts.matches
        pending = [register for at in positions for register in writes[at]]
        found = set(pending)
        while pending:
            for at in self.reads.get(pending.pop(), ()):
                match = matches[at]
                fresh = [one for one in writes[at] if one not in found] if match and not match.effects.accesses else []
                found.update(fresh)
                pending += fresh
        return frozenset(found)

    def is_constant(self, register: int) -> bool:
        """Whether nothing goes into a register but constants, in whatever order."""
        return register not in self._varying

    def is_positional(self, register: int) -> bool:
        """Whether nothing goes into a register but constants and the position of the thread in the block."""
        return register not in self._unrelated

    @cached_property
    def _varying(self) -> frozenset[int]:
        return self._brought(frozenset())

    @cached_property
    def _unrelated(self) -> frozenset[int]:
        return self._brought(POSITION)

    def _brought(self, allowed: frozenset[SpecialKind]) -> frozenset[int]:
        """The registers that memory or special registers other than these go into."""
        writes, instructions = self._facts.effects.writes, range(len(self._facts.instructions))
        found = {register for at in instructions if self._brings(at, allowed) for register in writes[at]}
        pending = list(found)
        while pending:
            fresh = {register for at in self.reads.get(pending.pop(), ()) for register in writes[at]} - found
            found |= fresh
            pending += fresh
        return frozenset(found)

    def _brings(self, at: int, allowed: frozenset[SpecialKind]) -> bool:
        """Whether an instruction brings something into registers besides what it reads there."""
        match, operands = self._facts.matches[at], self._facts.instructions[at].operands
        if match is None or match.effects.accesses:
            return True
        return any(isinstance(one, ir.SpecialRegister) and one.kind not in allowed for one in operands)

    def leaving(self, number: int, register: int) -> set[int]:
        """The instructions whose write of a register can be there at the end of a block."""
        block = self._blocks[number]
        return self._search(self.writes.get(register, []), block, block.end)

    def writes_in(self, register: int, start: int, end: int) -> bool:
        """Whether an instruction in a range writes a register, perhaps under a guard."""
        writes = self.writes.get(register, [])
        return bisect_left(writes, start) < bisect_left(writes, end)

    def _search(self, positions: list[int], block: BasicBlock, end: int) -> set[int]:
        found: set[int] = set()
        if self._collect(positions, block.start, end, found):
            return found
        pending, seen = list(block.predecessors), set()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            block = self._blocks[number]
            if not self._collect(positions, block.start, block.end, found):
                pending.extend(block.predecessors)
        self.steps += len(seen)
        return found

    def _collect(self, positions: list[int], start: int, end: int, found: set[int]) -> bool:
        """Add the writes in a range of instructions that are seen after it; say whether one of them is certain."""
        for index in range(bisect_left(positions, end) - 1, -1, -1):
            position = positions[index]
            if position < start:
                break
            found.add(position)
            if self._facts.instructions[position].guard is None:
                return True
        return False


def _positions(registers: Sequence[tuple[int, ...]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for at, touched in enumerate(registers):
        for register in touched:
            positions = found.get(register)
            if positions is None:
                found[register] = [at]
            elif positions[-1] != at:
                positions.append(at)
    return found
