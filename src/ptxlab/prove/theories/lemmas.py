"""Lemmas: which facts about products a linear solver is given. No proof depends on the choice.

There are two: if p >= 0 and q >= 0, then p * q >= 0; if p == 0, then p * q == 0. So, for each comparison p >= 0 of a
question and each size y, p * y >= 0; and if a < b, then b * y - a * y >= y (Euclid: digits in a radix y), for what two
threads multiply by y.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from .polynomials import Monomial, Poly

if TYPE_CHECKING:
    from .integers import Space

MOST_LEMMAS, MOST_TERMS = 400, 10
MOST_LIMIT = 1 << 12  # of a variable whose bound is worth a lemma


class Lemma(NamedTuple):
    """That a product is at least 0 if both factors are, or, of `is_zero`, that it is 0 if the first one is."""

    factor: Poly
    other: Poly
    is_zero: bool = False


def products(space: Space) -> Iterator[Lemma]:
    """Of each comparison `p >= 0` and each size `y`, where that is about products in the question."""
    own = set(space.monomials)
    for (
        value,
        divisor,
        quotient,
        remainder,
    ) in space.divisions:  # `x = d * q + r`, also times what they are multiplied by
        whole = value.plus(quotient, -divisor).plus(remainder, -1)
        pairs = [(one, factor) for one in own if len(one) == 2 for factor in _rests(one)]
        for factor in {factor for one, factor in pairs if whole.variables.intersection(Counter(one) - Counter(factor))}:
            yield Lemma(whole, Poly({factor: 1}), is_zero=True)
            own.update(one for one in whole.times(Poly({factor: 1})).terms if len(one) > 1)
    rests = {rest for monomial in own for rest in _rests(monomial) if space.range_of(rest)[0] >= 0 and len(rest) < 3}
    count = 0
    for monomial in own:  # if `1 <= x <= 7` and `y >= 0`, then `y <= x * y <= 7 * y`
        for rest in _rests(monomial):
            (name,) = (Counter(monomial) - Counter(rest)).elements()
            low, high = space.bounds[name]
            if space.range_of(rest)[0] < 0:
                continue
            other = Poly({rest: 1})
            ends = [Poly({(name,): 1, (): -low})] * (low > 0) + [Poly({(name,): -1, (): high})] * (high < MOST_LIMIT)
            yield from (Lemma(end, other) for end in ends)
            count += len(ends)
    for compared in list(space.compared.values()):
        for rest in rests:
            terms = compared.times(Poly({rest: 1})).terms
            if count < MOST_LEMMAS and len(terms) <= MOST_TERMS and not own.isdisjoint(terms):
                count += 1
                yield Lemma(compared, Poly({rest: 1}))
    space.monomials = own  # products of lemmas lead to no further ones


def quotients(space: Space) -> Iterator[Lemma]:
    """Of quotients by variables: two that are equal, times equal divisors, are."""
    for (other, second, *_), (divisor, quotient, *_) in combinations(list(space.quotients.values()), 2):
        yield Lemma(quotient.plus(second, -1), divisor, is_zero=True)
        if divisor.key != other.key:
            yield Lemma(divisor.plus(other, -1), second, is_zero=True)


def dividends(space: Space) -> Iterator[Lemma]:
    """Euclid's lemma for what is divided by variables, as numbers of tiles are: those of two threads."""
    for one, other in combinations([value for *_, value in space.quotients.values()], 2):
        yield from digits(space, one, other)


def strides(space: Space) -> Iterator[Lemma]:
    """Euclid's lemma for a quotient by a variable, and for comparisons: how many strides there are to the end."""
    for divisor, quotient, *_ in list(space.quotients.values()):
        for compared in list(space.compared.values()):
            yield from digits(space, compared, quotient.times(divisor))


def multiples(space: Space) -> Iterator[Lemma]:
    """Of each product with a variable that is divided somewhere, what follows: `y = d * q + r`, so also times x."""
    for value, divisor, quotient, rest in space.divisions:
        names = [monomial[0] for monomial in value.terms if len(monomial) == 1]
        if value.key != Poly({(name,): 1 for name in names}).key or len(names) != 1:
            continue
        for monomial in [one for one in space.monomials if names[0] in one]:
            others = list(monomial)
            others.remove(names[0])
            other = Poly({tuple(others): 1})
            yield Lemma(value.plus(quotient, -divisor).plus(rest, -1), other, is_zero=True)
            yield Lemma(rest, other, is_zero=True)


def extents(space: Space, value: Poly, element: int = 0) -> Iterator[Lemma]:
    """Digits of a sum and of each product of two sizes, which may be how much there is: `row * n` and `m * n`.

    What the product is multiplied with is perhaps the bytes of an element; or what all digits of the sum are.
    """
    for monomial in [one for one in space.monomials if len(one) == 2]:
        for size in set(monomial):
            factors = value.coefficient(size).terms.values()
            for factor in {gcd(*factors), element} - {0} if factors else ():
                yield from digits(space, value, Poly({monomial: factor}))


def digits(space: Space, one: Poly, other: Poly) -> Iterator[Lemma]:
    """Euclid's lemma for two sums: what a size is multiplied with in each is a digit."""
    sizes = (one.variables & other.variables) | ((one.variables | other.variables) & space.sizes)
    for size in [name for name in sizes if space.bounds[name][0] >= 0]:
        a, b = one.coefficient(size), other.coefficient(size)
        if a.terms == b.terms:
            continue
        divisor = gcd(*a.terms.values(), *b.terms.values()) or 1
        a, b = (Poly({m: factor // divisor for m, factor in p.terms.items()}) for p in (a, b))
        own = Poly({(size,): 1})
        for low, high in ((a, b), (b, a)):
            yield Lemma(high.plus(low, -1).plus(Poly.of(-1)), own)
        yield Lemma(a.plus(b, -1), own, is_zero=True)
        yield from digits(space, a, b)  # a digit may be a number with digits, in another radix


def _rests(monomial: Monomial) -> set[Monomial]:
    """A product without one of its factors."""
    return {monomial[:number] + monomial[number + 1 :] for number in range(len(monomial))}
