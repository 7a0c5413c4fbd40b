"""Symbolic integers: sums of atoms, each times a constant, modulo the width of a type.

An atom is what a thread is given (`%tid.x`, a parameter, the address of a variable), how often a loop came round, what
an instruction wrote or a register held, or an operation that is not linear, such as `%tid.x // 32`. It is an integer
between two bounds. With these, quotients and remainders by constants are taken apart in mixed radix, where they can be:
`(32 * a + b) // 32` is `a` if `b` is from 0 to 31.

Nothing is ever lost or guessed: an expression is the value, as a function of its atoms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ptxlab.isa.types import Type
from ptxlab.values import dataclass

from .ranges import bounds_of, fold, limits, wrap
from .steps import Step

SPECIAL, PARAMETER, ADDRESS, COUNTER, WRITTEN, HELD, ENTERED = (
    "special parameter address counter written held entered".split()
)
"""Kinds of atoms. `detail` of each:

- `special`: the name of a register that is the same for a thread all the time, with its component.
- `parameter`, `address`: a variable, and of a parameter the offset of what is loaded.
- `counter`: the block that is the head of a loop. 0 when the loop is entered, 1 more each time it comes round, and left
  as it is after the loop.
- `written`: an instruction and a register: what it wrote there when it last ran.
- `held`: a position and a register: what that held when execution was last there.
- `entered`: the head of a loop and a register: what that held when the loop was last entered.
- any other word is an operation of a `Step`, and `parts` are what it is computed from.
"""

MOST_PRINTED = 8  # operations in each other


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """A number of a type, from `low` to `high`. Atoms of one function that are alike are one object."""

    kind: str
    detail: object
    type: Type
    low: int
    high: int
    step: Step | None = None
    parts: tuple[Linear, ...] = ()
    depth: int = 1

    def __repr__(self) -> str:
        if self.step is not None:
            parts = [str(part) if part.depth <= MOST_PRINTED else "…" for part in self.parts]
            return f"({f' {self.kind} '.join(parts)})" if len(parts) == 2 else f"{self.kind}({', '.join(parts)})"
        if self.kind == SPECIAL:
            return str(self.detail)
        names = [
            getattr(one, "name", one) for one in (self.detail if isinstance(self.detail, tuple) else [self.detail])
        ]
        return f"{self.kind}({', '.join(map(str, names))})"


class Linear(NamedTuple):
    """`constant` and each atom times its coefficient, modulo the width of `type`; both have a sign."""

    type: Type
    constant: int
    terms: frozenset[tuple[Atom, int]] = frozenset()

    def __str__(self) -> str:
        parts = sorted(str(atom) if factor == 1 else f"{factor}*{atom}" for atom, factor in self.terms)
        return " + ".join([*parts, *([str(self.constant)] if self.constant or not parts else [])])

    @property
    def is_constant(self) -> bool:
        """Whether it has no atoms."""
        return not self.terms

    @property
    def depth(self) -> int:
        """How deep operations are nested in it."""
        return max((atom.depth for atom, _ in self.terms), default=0)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest that the sum can be, before it is cut to the width."""
        low = high = self.constant
        for atom, factor in self.terms:
            ends = (atom.low * factor, atom.high * factor)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def fits(self, type: Type) -> bool:
        """Whether the sum is the number that it is read as in a type: it never wraps."""
        (low, high), (least, greatest) = self.bounds, limits(type)
        return least <= low and high <= greatest

    def as_type(self, type: Type) -> Linear:
        """The same sum modulo the width of another type."""
        return linear(type, self.constant, dict(self.terms))

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The sum of this and another, times a factor."""
        terms = dict(self.terms)
        for atom, count in other.terms:
            terms[atom] = terms.get(atom, 0) + count * factor
        return linear(self.type, self.constant + other.constant * factor, terms)

    def times(self, factor: int) -> Linear:
        """This times a constant."""
        return linear(self.type, self.constant * factor, {atom: count * factor for atom, count in self.terms})

    def split(self, divisor: int) -> tuple[Linear, Linear] | None:
        """Quotient and remainder, as sums; None where some atom has a share in both."""
        whole = {atom: count // divisor for atom, count in self.terms if count % divisor == 0}
        rest = {atom: count for atom, count in self.terms if count % divisor}
        quotient, remainder = divmod(self.constant, divisor)
        remaining = linear(self.type, remainder, rest)
        low, high = remaining.bounds
        if low < 0 or high >= divisor:
            return None
        return linear(self.type, quotient, whole), remaining

    def evaluate(self, value: Callable[[Atom], int], known: dict[Atom, int] | None = None) -> int:
        """Its bits, given the value of each atom that is not an operation; `known` keeps those of operations."""
        known = {} if known is None else known
        total = self.constant
        for atom, factor in self.terms:
            if atom not in known:
                known[atom] = value(atom) if atom.step is None else _compute(atom, value, known)
            total += factor * known[atom]
        return wrap(total, self.type)


def linear(type: Type, constant: int, terms: dict[Atom, int] | None = None) -> Linear:
    """A sum with all numbers brought to those of the type."""
    kept = ((atom, _signed(factor, type)) for atom, factor in (terms or {}).items())
    return Linear(type, _signed(constant, type), frozenset((atom, factor) for atom, factor in kept if factor))


def bounds_after(step: Step, parts: tuple[Linear, ...]) -> tuple[int, int]:
    """The bounds of an operation on sums."""
    if step.type.kind == "p":
        return 0, 1
    low, high = bounds_of(step, [_Bounds(*part.bounds) for part in parts])
    least, greatest = limits(step.type)
    return (low, high) if least <= low and high <= greatest else (least, greatest)


class _Bounds(NamedTuple):
    low: int
    high: int


def _signed(value: int, type: Type) -> int:
    bits = wrap(value, type)
    return bits - (1 << type.width) if bits >> (type.width - 1) and type.kind != "p" else bits


def _compute(atom: Atom, value: Callable[[Atom], int], known: dict[Atom, int]) -> int:
    assert atom.step is not None
    found = fold(atom.step, [part.evaluate(value, known) for part in atom.parts])
    if found is None:
        return value(atom)
    least = limits(atom.step.type)[0] if atom.step.type.kind != "p" else 0
    return found if least == 0 or found < -least else found + 2 * least
