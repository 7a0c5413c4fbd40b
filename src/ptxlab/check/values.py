"""Where the value of a register comes from, and who reads it, as far as one block or a single write tells.

A write under a guard counts: whoever reads it usually does so under the same guard, or wants what was there before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .program import FunctionFacts


class Values:
    """The writes and reads of the registers of one function, by register and in the order of the text."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts

    @cached_property
    def _writes(self) -> dict[int, list[int]]:
        return _places(self._facts.effects.writes)

    @cached_property
    def _reads(self) -> dict[int, list[int]]:
        return _places(self._facts.effects.reads)

    @cached_property
    def _starts(self) -> list[int]:
        return [block.start for block in self._facts.flow.blocks]

    def definition(self, at: int, register: int) -> int | None:
        """The one instruction that wrote what instruction `at` reads in a register; None where that is not certain."""
        writes = self._writes.get(register, [])
        before = bisect_left(writes, at)
        if before and writes[before - 1] >= self._block(at)[0]:
            return writes[before - 1]
        return writes[0] if len(writes) == 1 else None

    def uses(self, at: int, register: int) -> list[int]:
        """The instructions that read what instruction `at` writes to a register: all, or those in its block."""
        writes, reads = self._writes.get(register, []), self._reads.get(register, [])
        if writes == [at]:
            return reads
        after = bisect_right(writes, at)
        end = self._block(at)[1]
        if after < len(writes):
            end = min(end, writes[after] + 1)
        return reads[bisect_right(reads, at) : bisect_left(reads, end)]

    def _block(self, at: int) -> tuple[int, int]:
        block = self._facts.flow.blocks[bisect_right(self._starts, at) - 1]
        return block.start, block.end


def _places(registers: Sequence[tuple[int, ...]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for at, touched in enumerate(registers):
        for register in touched:
            places = found[register]
            if not places or places[-1] != at:
                places.append(at)
    return found
