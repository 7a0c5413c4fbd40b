"""Sums of loop variables and sizes with whole coefficients: all that an index and an extent can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Linear:
    """`constant` and each name times its coefficient; names are sorted, and no coefficient is zero."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(value: int | str | Linear) -> Linear:
        """A number or one name as a sum."""
        if isinstance(value, Linear):
            return value
        return Linear(((value, 1),)) if isinstance(value, str) else Linear((), value)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(name for name, _ in self.terms)

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return not self.terms

    def coefficient(self, name: str) -> int:
        """What a name is multiplied by."""
        return dict(self.terms).get(name, 0)

    def __add__(self, other: int | str | Linear) -> Linear:
        other = Linear.of(other)
        found = dict(self.terms)
        for name, coefficient in other.terms:
            found[name] = found.get(name, 0) + coefficient
        return _sum(found, self.constant + other.constant)

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: int | str | Linear) -> Linear:
        return self + -Linear.of(other)

    def __mul__(self, factor: int) -> Linear:
        return _sum({name: coefficient * factor for name, coefficient in self.terms}, self.constant * factor)

    def __floordiv__(self, by: int) -> Linear:
        """The quotient, where nothing is left."""
        return _sum({name: coefficient // by for name, coefficient in self.terms}, self.constant // by)

    def replaced(self, values: Mapping[str, int | Linear]) -> Linear:
        """The same sum with other sums, or numbers, in place of some names."""
        if not any(name in values for name, _ in self.terms):
            return self
        found: dict[str, int] = {}
        constant = self.constant
        for name, coefficient in self.terms:
            other = values.get(name)
            if other is None:
                found[name] = found.get(name, 0) + coefficient
            elif isinstance(other, int):
                constant += other * coefficient
            else:
                constant += other.constant * coefficient
                for inner, factor in other.terms:
                    found[inner] = found.get(inner, 0) + factor * coefficient
        return _sum(found, constant)

    def only(self, names: Iterable[str]) -> Linear:
        """The terms of some names, without the constant."""
        kept = frozenset(names)
        return Linear(tuple(term for term in self.terms if term[0] in kept))

    def is_multiple(self, of: int, multiples: Mapping[str, int]) -> bool:
        """Whether each term is a multiple of a number; `multiples` says what names are multiples of."""
        return self.constant % of == 0 and all(c * multiples.get(name, 1) % of == 0 for name, c in self.terms)

    @property
    def is_never_negative(self) -> bool:
        """Whether it is at least zero where every name is at least one."""
        least = self.constant + sum(coefficient for _, coefficient in self.terms)
        return least >= 0 and all(coefficient > 0 for _, coefficient in self.terms)

    def value(self, values: Mapping[str, int]) -> int:
        """The number, for a number for each name."""
        return self.constant + sum(values[name] * coefficient for name, coefficient in self.terms)

    def __str__(self) -> str:
        parts = [name if c == 1 else f"-{name}" if c == -1 else f"{c} * {name}" for name, c in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


def _sum(terms: Mapping[str, int], constant: int) -> Linear:
    return Linear(tuple(sorted((name, value) for name, value in terms.items() if value)), constant)
