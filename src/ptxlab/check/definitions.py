"""Which writes of a register a read can see: reaching definitions, found when they are asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .program import FunctionFacts


class Definitions:
    """Where the registers of one function are written."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._blocks = facts.flow.blocks
        self._starts = [block.start for block in self._blocks]
        self._seen: dict[tuple[int, int], tuple[int, ...]] = {}
        self.steps = 0
        """How many blocks were looked at to answer questions."""

    @cached_property
    def of(self) -> dict[int, list[int]]:
        """For each register that is written the instructions that do it, in order."""
        found: dict[int, list[int]] = {}
        for at, written in enumerate(self._facts.effects.writes):
            for register in written:
                if register in found:
                    found[register].append(at)
                else:
                    found[register] = [at]
        return found

    def block_of(self, at: int) -> int:
        """The block that an instruction stands in."""
        return bisect_right(self._starts, at) - 1

    def reaching(self, register: int, at: int) -> tuple[int, ...]:
        """The instructions whose write of `register` instruction `at` can read; none: nothing writes it before."""
        places = self.of.get(register, [])
        if len(places) <= 1:
            return tuple(places)
        key = (register, at)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = tuple(sorted(self._search(places, at)))
        return found

    def _search(self, places: list[int], at: int) -> set[int]:
        found: set[int] = set()
        block = self._blocks[self.block_of(at)]
        if self._collect(places, block.start, at, found):
            return found
        pending, seen = list(block.predecessors), set()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            block = self._blocks[number]
            if not self._collect(places, block.start, block.end, found):
                pending.extend(block.predecessors)
        self.steps += len(seen)
        return found

    def _collect(self, places: list[int], start: int, end: int, found: set[int]) -> bool:
        """Add the writes in a range of instructions that are seen after it; say whether one of them is certain."""
        for index in range(bisect_left(places, end) - 1, -1, -1):
            place = places[index]
            if place < start:
                break
            found.add(place)
            if self._facts.instructions[place].guard is None:
                return True
        return False
