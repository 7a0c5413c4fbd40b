"""Values of a kernel that is executed on symbols: integers, numbers and predicates; see `from_ptx.py`.

An integer is a sum of products of indices and sizes: a `Linear` whose names are products such as `%ctaid.x*%ntid.x`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ptxlab.schedule.linear import Linear


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

    left: Linear
    right: Linear
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


Value = Linear | Float | Predicate


def times(*factors: str) -> str:
    """The name of a product."""
    return "*".join(sorted(factors))


def multiplied(left: Linear, right: Linear) -> Linear:
    """The product of two sums."""
    found = left * right.constant + (right - right.constant) * left.constant
    for (one, first), (other, second) in product(left.terms, right.terms):
        found += Linear(((times(*one.split("*"), *other.split("*")), first * second),))
    return found


def compared(relation: str, left: Linear, right: Linear) -> Predicate | None:
    """The predicate of a comparison of integers, where it is followed."""
    above = {"gt": "ge", "le": "lt", "hi": "ge", "ls": "lt"}
    same = {"lt": "lt", "ge": "ge", "lo": "lt", "hs": "ge", "eq": "eq", "ne": "ne"}
    if relation in above:  # more than a number is not less than the next one
        return Predicate((Compared(left, right + 1, above[relation]),), "")
    return Predicate((Compared(left, right, same[relation]),), "") if relation in same else None
