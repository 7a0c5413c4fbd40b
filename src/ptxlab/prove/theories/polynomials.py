"""Polynomials with integer coefficients, in variables of a question."""

from __future__ import annotations

from collections import Counter

Monomial = tuple[str, ...]


class Poly:
    """A polynomial with integer coefficients; the monomial `()` is the constant."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, int] | None = None) -> None:
        self.terms = {one: factor for one, factor in (terms or {}).items() if factor}

    @classmethod
    def of(cls, number: int) -> Poly:
        """A constant."""
        return cls({(): number})

    def plus(self, other: Poly, factor: int = 1) -> Poly:
        """The sum of this and another, times a factor."""
        terms = Counter(self.terms)
        for monomial, count in other.terms.items():
            terms[monomial] += count * factor
        return Poly(dict(terms))

    def times(self, other: Poly) -> Poly:
        """The product."""
        terms: Counter[Monomial] = Counter()
        for one, count in self.terms.items():
            for two, factor in other.terms.items():
                terms[tuple(sorted(one + two))] += count * factor
        return Poly(dict(terms))

    def coefficient(self, variable: str) -> Poly:
        """What a variable is multiplied with."""
        found: dict[Monomial, int] = {}
        for monomial, factor in self.terms.items():
            if variable in monomial:
                rest = list(monomial)
                rest.remove(variable)
                found[tuple(rest)] = factor
        return Poly(found)

    @property
    def variables(self) -> set[str]:
        """The variables in it."""
        return {one for monomial in self.terms for one in monomial}

    @property
    def key(self) -> frozenset[tuple[Monomial, int]]:
        """What equal polynomials have in common."""
        return frozenset(self.terms.items())
