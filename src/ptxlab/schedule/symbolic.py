"""Values of a kernel that is executed on symbols: integers, numbers and predicates; see `from_ptx.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Product = tuple[str, ...]  # sorted symbols
Sum = dict[Product, int]
"""An integer: a sum of products of indices and sizes."""


@dataclass(frozen=True)
class Float:
    """A number as Python text; `{3}` in it are the indices of the fourth access."""

    text: str

    @property
    def constant(self) -> float | None:
        """The number, where it is known."""
        try:
            return float(self.text)
        except ValueError:
            return None


_NEGATED = {"lt": "ge", "ge": "lt", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True)
class Compared:
    """An integer is less than another one (`lt`), or not less (`ge`), or equal (`eq`), or not (`ne`)."""

    left: Mapping[Product, int]
    right: Mapping[Product, int]
    relation: str

    @property
    def negated(self) -> Compared:
        """The opposite."""
        return Compared(self.left, self.right, _NEGATED[self.relation])


@dataclass(frozen=True)
class Predicate:
    """Some of these hold, or all of them do."""

    parts: tuple[Compared, ...]
    join: str
    """`or`, `and`, or nothing if there is one."""

    @property
    def negated(self) -> Predicate:
        """The opposite."""
        join = {"or": "and", "and": "or", "": ""}[self.join]
        return Predicate(tuple(one.negated for one in self.parts), join)


Value = Sum | Float | Predicate


def added(left: Mapping[Product, int], right: Mapping[Product, int], factor: int = 1) -> Sum:
    """A sum and so many times another one."""
    found = dict(left)
    for product, count in right.items():
        found[product] = found.get(product, 0) + factor * count
    return {product: count for product, count in found.items() if count}


def multiplied(left: Mapping[Product, int], right: Mapping[Product, int]) -> Sum:
    """The product of two sums."""
    found: Sum = {}
    for one, first in left.items():
        for other, second in right.items():
            key = tuple(sorted(one + other))
            found[key] = found.get(key, 0) + first * second
    return found


def whole(value: int) -> Sum:
    """A number as a sum."""
    return {(): value} if value else {}


def compared(relation: str, left: Sum, right: Sum) -> Predicate | None:
    """The predicate of a comparison of integers, where it is followed."""
    above = {"gt": "ge", "le": "lt", "hi": "ge", "ls": "lt"}
    same = {"lt": "lt", "ge": "ge", "lo": "lt", "hs": "ge", "eq": "eq", "ne": "ne"}
    if relation in above:  # more than a number is not less than the next one
        return Predicate((Compared(left, added(right, {(): 1}), above[relation]),), "")
    return Predicate((Compared(left, right, same[relation]),), "") if relation in same else None
