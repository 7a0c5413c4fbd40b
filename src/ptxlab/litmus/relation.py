"""Relations over the events of an execution, as matrices of bits.

Events are numbers from 0 on. Row `a` of a relation is an integer whose bit `b` says whether `a` is related to `b`; a
set of events is such an integer too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """A set of pairs of events."""

    rows: tuple[int, ...]

    @staticmethod
    def of(count: int, pairs: Iterable[tuple[int, int]]) -> Relation:
        """The relation of these pairs, over `count` events."""
        rows = [0] * count
        for a, b in pairs:
            rows[a] |= 1 << b
        return Relation(tuple(rows))

    def __contains__(self, pair: tuple[int, int]) -> bool:
        return bool(self.rows[pair[0]] >> pair[1] & 1)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((a, b) for a, row in enumerate(self.rows) for b in members(row))

    def __bool__(self) -> bool:
        return any(self.rows)

    def __or__(self, other: Relation) -> Relation:
        return Relation(tuple(a | b for a, b in zip(self.rows, other.rows, strict=True)))

    def __and__(self, other: Relation) -> Relation:
        return Relation(tuple(a & b for a, b in zip(self.rows, other.rows, strict=True)))

    def __sub__(self, other: Relation) -> Relation:
        return Relation(tuple(a & ~b for a, b in zip(self.rows, other.rows, strict=True)))

    def __matmul__(self, other: Relation) -> Relation:
        """First a step of this relation, then one of the other."""
        return Relation(tuple(_union(other.rows, row) for row in self.rows))

    def inverse(self) -> Relation:
        """The pairs the other way round."""
        return Relation.of(len(self.rows), ((b, a) for a, b in self))

    def within(self, left: int, right: int) -> Relation:
        """The pairs from the set `left` to the set `right`."""
        return Relation(tuple(row & right if left >> a & 1 else 0 for a, row in enumerate(self.rows)))

    def closure(self) -> Relation:
        """One step or more."""
        rows = list(self.rows)
        for middle in range(len(rows)):
            through = rows[middle]
            if through:
                bit = 1 << middle
                for a, row in enumerate(rows):
                    if row & bit:
                        rows[a] = row | through
        return Relation(tuple(rows))

    def optional(self) -> Relation:
        """One step or none."""
        return Relation(tuple(row | 1 << a for a, row in enumerate(self.rows)))

    def irreflexive(self) -> bool:
        """Whether no event is related to itself."""
        return not any(row >> a & 1 for a, row in enumerate(self.rows))

    def acyclic(self) -> bool:
        """Whether no steps lead back to where they start."""
        return self.closure().irreflexive()


def members(events: int) -> Iterator[int]:
    """The numbers in a set."""
    while events:
        low = events & -events
        yield low.bit_length() - 1
        events ^= low


def _union(rows: tuple[int, ...], chosen: int) -> int:
    found = 0
    for number in members(chosen):
        found |= rows[number]
    return found
