"""Which thread writes an element, in which turns: a guess, which `once` checks. No proof depends on it.

An offset is most often a number with digits: `row * n + column`, each of them a sum of an index of the block, of the
thread and of a turn, times constants. What each of them is multiplied with is found by numbers: sizes are primes, all
indices are 0, and then one after the other is 1. The element is divided by these factors, the largest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

from ptxlab.flow.expressions import Atom
from ptxlab.prove.questions.objects import Group
from ptxlab.prove.terms.terms import leaves
from ptxlab.prove.theories.integers import Space
from ptxlab.prove.theories.polynomials import Monomial, Poly

PRIMES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069, 1087, 1091, 1093, 1097)
MOST_FACTOR = 1 << 40


@dataclass(frozen=True)
class _Digit:
    """A part of an index: `weight` of it for each `factor` times the product of some sizes."""

    atom: Atom | None
    weight: int
    factor: int
    sizes: Monomial


def witness(
    group: Group, indices: Mapping[Atom, int], names: Mapping[Atom, str], element: Poly, size: int, space: Space
) -> dict[Atom, Poly] | None:  # fmt: skip
    """For the threads, blocks and turns of `indices`, with the extents of threads, those that write an element."""
    sizes = dict(zip(sorted(set(names.values())), PRIMES, strict=False))
    found = leaves([group.offset])
    if not all(atom in indices or atom in names for atom in found) or len(set(names.values())) > len(PRIMES):
        return None

    def offset(at: Mapping[Atom, int]) -> int:
        bits = group.offset.evaluate(lambda atom: at.get(atom, sizes[names[atom]] if atom in names else 0))
        return bits - (1 << group.offset.type.width) if bits >> group.offset.type.width - 1 else bits

    base = offset({})
    digits: list[_Digit] = []
    for atom, extent in indices.items():
        is_power = extent > 1 and not extent & (extent - 1)
        for weight in [1 << n for n in range(extent.bit_length() - 1)] if is_power else [1]:
            factor = offset({atom: weight}) - base
            if factor:
                found_factor = _factored(factor, size, sizes)
                if found_factor is None:
                    return None
                digits.append(_Digit(atom, weight, *found_factor))
    digits += [_Digit(None, 0, one // size, ()) for one in _steps([distance for distance, _ in group.distances])]
    if base % size:
        return None
    return _divided(digits, base // size, sizes, element, space)


def _divided(
    digits: Sequence[_Digit], base: int, sizes: Mapping[str, int], element: Poly, space: Space
) -> dict[Atom, Poly]:
    """The parts of each index, by divisions of the element by all factors, the largest first."""
    found: dict[Atom, Poly] = {}
    left = element
    kinds = {one.sizes for one in digits if one.sizes}
    radix = {kind: gcd(*(one.factor for one in digits if one.sizes == kind)) for kind in kinds}
    values = {kind: radix[kind] * prod(sizes[name] for name in kind) for kind in kinds}
    for kind in [*sorted(kinds, key=lambda one: -values[one]), ()]:
        if kind:
            number, left = space.euclid(left, Poly({kind: radix[kind]}))
            more, base = divmod(base, values[kind])
        else:
            number, more = left, base
        number = number.plus(Poly.of(-more))
        own = [one for one in digits if one.sizes == kind]
        for one in sorted(own, key=lambda digit: -digit.factor):
            digit, number = space.divided(number, one.factor // radix.get(kind, 1))
            if one.atom is not None:
                found[one.atom] = found.get(one.atom, Poly()).plus(digit, one.weight)
    return found


def _factored(value: int, size: int, sizes: Mapping[str, int]) -> tuple[int, Monomial] | None:
    """A number as a constant times a product of sizes."""
    found: list[str] = []
    if value < 0 or value % size:
        return None
    value //= size
    for name, prime in sizes.items():
        while value % prime == 0:
            value, found = value // prime, [*found, name]
    return (value, tuple(sorted(found))) if value < MOST_FACTOR else None


def _steps(distances: Sequence[int]) -> list[int]:
    """What distances are sums of, each once at most, or multiples of."""
    numbers = sorted({one - min(distances) for one in distances})
    if len(numbers) > 1 and numbers == [numbers[1] * n for n in range(len(numbers))]:
        return [numbers[1]]
    steps: list[int] = []
    reached = {0}
    for one in numbers:
        if one not in reached:
            steps.append(one)
            reached |= {other + one for other in reached}
    return steps
