"""Terms as integers: polynomials, of which the solver sees each product of variables as one more variable.

A sum is cut to its width where it cannot be shown that it does not wrap, so the translation is exact. What a linear
solver does not know of products it is given as lemmas, instances of two facts about integers:

- if p >= 0 and y >= 0, then p * y >= 0, for each comparison p >= 0 of the question and each size y;
- if a < b and y >= 0, then b * y - a * y >= y (Euclid: digits in a radix y), for what two threads multiply by y.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import gcd
from typing import Any

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.flow.ranges import limits
from ptxlab.flow.steps import Step
from ptxlab.isa.types import Type

from .solver import Clock, z3
from .translation import Namer, Translation

WRAP_MILLISECONDS = 1_000
FACTOR_MILLISECONDS = 200
MOST_LEMMAS, MOST_TERMS = 400, 10
MOST_LIMIT = 1 << 12  # of a variable whose bound is worth a lemma
MOST_JOINED = 1 << 20  # what the lower of two numbers that `|` joins is below
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


class Space:
    """The variables of a question, their bounds, and the comparisons in it: of one thread or of two."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.bounds: dict[str, tuple[int, int]] = {}
        self.facts: list[Any] = []
        self._compared: dict[frozenset[tuple[Monomial, int]], Poly] = {}
        self._monomials: set[Monomial] = set()
        self._bounded: set[Monomial] = set()
        self._divisions: list[tuple[Poly, int, Poly, Poly]] = []
        self._quotients: dict[Any, tuple[Poly, Poly, Poly, Poly]] = {}
        """Divisors that are variables, quotients, remainders, and what is divided."""
        """By what is divided and the divisor, if that is a variable: the divisor, the quotient, the remainder."""
        self._count = 0
        self.sizes: frozenset[str] = frozenset()
        """The variables of all questions, which contracts are about."""
        self.known_factors: dict[tuple[str, int], int] = {}
        """Powers of two that divide them, each up to another."""
        self._given: list[Any] = []

    def agree(self, known_factors: dict[tuple[str, int], int]) -> None:
        """Take what was said so far for what holds in all questions, with what is known of it."""
        self.sizes, self.known_factors, self._given = frozenset(self.bounds), known_factors, list(self.facts)

    def copy(self) -> Space:
        """A space with the same variables and facts, for another question."""
        found = Space(self.clock)
        found.bounds, found.facts = dict(self.bounds), list(self.facts)
        found._compared, found._monomials, found._bounded = (
            dict(self._compared),
            set(self._monomials),
            set(self._bounded),
        )
        found._divisions, found._quotients = list(self._divisions), dict(self._quotients)
        found._count = self._count
        found.sizes, found.known_factors, found._given = self.sizes, self.known_factors, self._given
        return found

    def variable(self, name: str, low: int, high: int) -> Poly:
        """A variable between bounds."""
        if name not in self.bounds:
            self.bounds[name] = (low, high)
            self.facts.append(_between(name, low, high))
        return Poly({(name,): 1})

    def fresh(self, low: int, high: int) -> Poly:
        """A variable without a name of its own."""
        self._count += 1
        return self.variable(f"#{self._count}", low, high)

    def range(self, value: Poly) -> tuple[int, int]:
        """The least and the greatest that a polynomial can be, by the bounds of its variables."""
        low = high = 0
        for monomial, factor in value.terms.items():
            ends = self._range(monomial)
            low += min(factor * end for end in ends)
            high += max(factor * end for end in ends)
        return low, high

    def _range(self, monomial: Monomial) -> tuple[int, int]:
        low = high = 1
        for name in monomial:
            a, b = self.bounds[name]
            ends = (low * a, low * b, high * a, high * b)
            low, high = min(ends), max(ends)
        return low, high

    def formula(self, value: Poly) -> Any:
        """A polynomial as a linear term of the solver."""
        products = [monomial for monomial in value.terms if len(monomial) > 1]
        self._monomials.update(products)
        for monomial in products:
            if monomial not in self._bounded:
                self._bounded.add(monomial)
                self.facts.append(_between("*".join(monomial), *self._range(monomial)))
        return _sum([_part("*".join(monomial), factor) for monomial, factor in value.terms.items()])

    def divided(self, value: Poly, divisor: int) -> tuple[Poly, Poly]:
        """Quotient, rounded down, and remainder."""
        low, high = self.range(value)
        whole = Poly({one: factor for one, factor in value.terms.items() if factor % divisor == 0})
        left = value.plus(whole, -1)
        least, most = self.range(left)
        if least >= 0 and most < divisor:
            return Poly({one: factor // divisor for one, factor in whole.terms.items()}), left
        known = next((one for one in self._divisions if one[1] == divisor and one[0].key == value.key), None)
        if known is not None:
            return known[2:]
        quotient, rest = self.fresh(low // divisor, high // divisor), self.fresh(0, divisor - 1)
        both = quotient.times(Poly.of(divisor)).plus(rest)
        self.facts.append(self.formula(value) == self.formula(both))
        self._divisions.append((value, divisor, quotient, rest))
        return quotient, rest

    def quotient(self, value: Poly, divisor: Poly) -> tuple[Poly, Poly]:
        """Variables for a quotient and a remainder by a variable; what holds of them depends on signs."""
        key = value.key, divisor.key
        if key not in self._quotients:
            most = max(0, self.range(value)[1])
            self._quotients[key] = divisor, self.fresh(0, most), self.fresh(0, most), value
        return self._quotients[key][1:3]

    def euclid(self, value: Poly, divisor: Poly) -> tuple[Poly, Poly]:
        """Quotient and remainder of what is not negative by what is above 0; of others, any numbers."""
        quotient, rest = self.quotient(value, divisor)
        both = quotient.times(divisor).plus(rest)
        is_known = z3.And(self.at_most(Poly(), value), self.at_most(Poly.of(1), divisor))
        is_below = self.at_most(rest.plus(Poly.of(1)), divisor)
        self.facts.append(z3.Implies(is_known, z3.And(self.formula(value) == self.formula(both), is_below)))
        return quotient, rest

    def quotients(self) -> list[Any]:
        """What a linear solver has to know of quotients by variables: two that are equal, times equal divisors, are."""
        found: list[Any] = []
        known = list(self._quotients.values())
        for number, (divisor, quotient, *_) in enumerate(known):
            for other, second, *_ in known[:number]:
                products = quotient.times(divisor), second.times(other)
                gap = quotient.plus(second, -1)
                same = [self.formula(gap) == 0, *([] if divisor.key == other.key else [self.equal(divisor, other)])]
                found.append(z3.Implies(z3.And(*same), self.formula(products[0]) == self.formula(products[1])))
        return found

    def dividends(self) -> Iterator[Any]:
        """Euclid's lemma for what is divided by variables, as numbers of tiles are: those of two threads."""
        for one, other in combinations([value for *_, value in self._quotients.values()], 2):
            yield from self.digits(one, other)

    def at_most(self, one: Poly, other: Poly) -> Any:
        """That one polynomial is at most another."""
        difference = other.plus(one, -1)
        low, high = self.range(difference)
        if low >= 0 or high < 0:
            return z3.BoolVal(low >= 0)
        for found in (difference, Poly.of(-1).plus(difference, -1)):
            self._compared.setdefault(found.key, found)
        return self.formula(difference) >= 0

    def equal(self, one: Poly, other: Poly) -> Any:
        """That two polynomials are equal."""
        return z3.And(self.at_most(one, other), self.at_most(other, one))

    def lemmas(self) -> list[Any]:
        """What a linear solver has to know of products: `p >= 0` implies `p * y >= 0`, where that is about them."""
        own = set(self._monomials)
        rests = {rest for monomial in own for rest in _rests(monomial) if self._range(rest)[0] >= 0 and len(rest) < 3}
        found = self._limits(own)
        for compared in list(self._compared.values()):
            for rest in rests:
                product = compared.times(Poly({rest: 1}))
                if own.isdisjoint(product.terms) or len(product.terms) > MOST_TERMS:
                    continue
                if len(found) < MOST_LEMMAS:
                    found.append(z3.Implies(self.formula(compared) >= 0, self.formula(product) >= 0))
        self._monomials = own
        return found

    def _limits(self, monomials: set[Monomial]) -> list[Any]:
        """The same of the bounds of variables: if `1 <= x <= 7` and `y >= 0`, then `y <= x * y <= 7 * y`."""
        found: list[Any] = []
        for monomial in monomials:
            for rest in _rests(monomial):
                (name,) = (Counter(monomial) - Counter(rest)).elements()
                low, high = self.bounds[name]
                if self._range(rest)[0] < 0:
                    continue
                product, other = self.formula(Poly({monomial: 1})), self.formula(Poly({rest: 1}))
                if low > 0:
                    found.append(product >= low * other)
                if high < MOST_LIMIT:
                    found.append(product <= high * other)
        return found

    def factors(self, value: Poly, power: int) -> int:
        """A number that divides a polynomial, up to a power of two: each product has the factors of its variables."""
        found = 0
        for monomial, factor in value.terms.items():
            own = abs(factor)
            for name in monomial:
                if own % power:
                    own *= self._factor(name, power)
            found = gcd(found, own)
        return found

    def _factor(self, name: str, power: int) -> int:
        """The greatest power of two up to another that divides a variable, as the facts of all questions have it."""
        if name not in self.sizes:
            return 1
        key = name, power
        if key not in self.known_factors:
            halves = [power >> n for n in range(power.bit_length() - 1)]
            self.known_factors[key] = next((one for one in halves if self._is_multiple(name, one)), 1)
        return self.known_factors[key]

    def _is_multiple(self, name: str, divisor: int) -> bool:
        solver = self.clock.solver(FACTOR_MILLISECONDS)
        solver.add(*self._given, z3.Int(name) % divisor != 0)
        return bool(solver.check() == z3.unsat)

    def distances(self) -> list[Any]:
        """How far apart two quotients by one number are, as a variable: it is bounded where they are not."""
        found: list[Any] = []
        for number, (value, divisor, quotient, rest) in enumerate(self._divisions):
            for other, same, before, left in self._divisions[:number]:
                if same == divisor:
                    self._count += 1
                    apart = z3.Int(f"#{self._count}")
                    found.append(apart == self.formula(quotient.plus(before, -1)))
                    step = self.formula(value.plus(other, -1).plus(rest, -1).plus(left))
                    found.append(divisor * apart == step)
        return found

    def multiples(self) -> list[Any]:
        """Of each product with a variable that is divided somewhere, what follows: `y = d * q + r`, so also times x."""
        found: list[Any] = []
        for value, divisor, quotient, rest in self._divisions:
            names = [monomial[0] for monomial in value.terms if len(monomial) == 1]
            if value.key != Poly({(name,): 1 for name in names}).key or len(names) != 1:
                continue
            for monomial in [one for one in self._monomials if names[0] in one]:
                others = list(monomial)
                others.remove(names[0])
                left = Poly({tuple(others): 1}).times(rest)
                whole = Poly({tuple(others): divisor}).times(quotient).plus(left)
                found.append(self.formula(Poly({monomial: 1})) == self.formula(whole))
                found.append(z3.Implies(self.formula(rest) == 0, self.formula(left) == 0))
        return found

    def products(self) -> list[Any]:
        """That the variable of each product is the product: for a model that is a real one."""
        return [z3.Int("*".join(one)) == z3.Product(*map(z3.Int, one)) for one in self._bounded]

    def extents(self, value: Poly) -> Iterator[Any]:
        """The same for a sum and each product of two sizes, which may be how much there is: `row * n` and `m * n`."""
        for monomial in [one for one in self._monomials if len(one) == 2]:
            for size in set(monomial):
                factors = value.coefficient(size).terms.values()
                if factors:
                    yield from self.digits(value, Poly({monomial: gcd(*factors)}))

    def digits(self, one: Poly, other: Poly) -> Iterator[Any]:
        """Euclid's lemma for two sums: what a size is multiplied with in each is a digit."""
        sizes = [name for name in one.variables & other.variables if self.bounds[name][0] >= 0]
        for size in sizes:
            a, b = one.coefficient(size), other.coefficient(size)
            if a.terms == b.terms:
                continue
            divisor = _common(a, b)
            a, b = (Poly({m: factor // divisor for m, factor in p.terms.items()}) for p in (a, b))
            own = Poly({(size,): 1})
            for low, high in ((a, b), (b, a)):
                step = high.plus(low, -1).plus(Poly.of(-1))
                yield z3.Implies(self.formula(step) >= 0, self.formula(step.times(own)) >= 0)
            gap = a.plus(b, -1)
            yield z3.Implies(self.formula(gap) == 0, self.formula(gap.times(own)) == 0)
            yield from self.digits(a, b)  # a digit may be a number with digits, in another radix


@lru_cache(1 << 16)
def _part(name: str, factor: int) -> Any:
    """A variable times a number, or the number."""
    return factor * z3.Int(name) if name else z3.IntVal(factor)


@lru_cache(1 << 12)
def _between(name: str, low: int, high: int) -> Any:
    return z3.And(low <= z3.Int(name), z3.Int(name) <= high)


def _sum(parts: Sequence[Any]) -> Any:
    """A sum of integers, without what `z3.Sum` does to find out that they are."""
    if len(parts) < 2:
        return parts[0] if parts else z3.IntVal(0)
    terms = (z3.Ast * len(parts))(*(one.as_ast() for one in parts))
    return z3.ArithRef(z3.Z3_mk_add(parts[0].ctx_ref(), len(parts), terms), parts[0].ctx)


def _rests(monomial: Monomial) -> set[Monomial]:
    """A product without one of its factors."""
    return {monomial[:number] + monomial[number + 1 :] for number in range(len(monomial))}


def _common(a: Poly, b: Poly) -> int:
    """The greatest number that divides all coefficients."""
    return gcd(*a.terms.values(), *b.terms.values()) or 1


class Integers(Translation):
    """Terms of one thread as integers in a space."""

    def __init__(self, name: Namer, space: Space, exact: set[Linear | Atom]) -> None:
        super().__init__(name)
        self.space, self._exact = space, exact
        self._numbers: dict[Linear, Poly] = {}

    def holds(self, condition: Linear) -> Any:
        """A predicate as a formula."""
        if condition.is_constant:
            return z3.BoolVal(bool(condition.constant))
        (atom, _), *others = condition.terms
        found = self._atom(atom)
        for other, _ in others:
            found = z3.Xor(found, self._atom(other))
        return z3.Not(found) if condition.constant else found

    def number(self, value: Linear) -> Poly:
        """A term as a number of its type, between its limits."""
        if value not in self._numbers:
            found = Poly.of(value.constant)
            for atom, factor in value.terms:
                found = found.plus(self._atom(atom), factor)
            self._numbers[value] = self._cut(found, value.type, value)
        return self._numbers[value]

    def same(self, value: Linear, other: Translation) -> Any:
        """That a term is the same number here and in the translation of another thread."""
        return self.space.equal(self.number(value), other.number(value))

    def _cut(self, found: Poly, type: Type, of: Linear | Atom) -> Poly:
        """An integer, modulo the width of a type; as it is, if it cannot be outside.

        `exact` keeps what was shown not to wrap under the same assumptions.
        """
        low, high = limits(type)
        least, most = self.space.range(found)
        if (low <= least and most <= high) or of in self._exact:
            return found
        term = self.space.formula(found)
        if least < low == 0:
            self.space.at_most(Poly(), found)  # so that a lemma says what its sign means for products
        if not self._is_possible(z3.Or(term < low, term > high), found):
            self._exact.add(of)
            return found
        turns = self.space.fresh((least - low) // (high - low + 1), (most - low) // (high - low + 1))
        rest = self.space.fresh(low, high)
        self.facts.append(term == self.space.formula(turns.times(Poly.of(high - low + 1)).plus(rest)))
        return rest

    def _is_possible(self, formula: Any, value: Poly | None = None) -> bool:
        """Whether something can hold here, of a value perhaps, as far as the solver finds out in a short time."""
        if self.space.clock.is_over:
            return True
        solver = self.space.clock.solver(WRAP_MILLISECONDS)
        solver.add(*self.facts, *self.space.facts, formula)
        if solver.check() == z3.unsat:
            return False
        lemmas = [*([] if value is None else self.space.extents(value)), *self.space.lemmas()]
        solver.add(*lemmas, *self.space.facts)
        return not lemmas or bool(solver.check() != z3.unsat)

    def _variable(self, atom: Atom) -> Any:
        named, more = self._name(atom)
        if not named:
            return Poly.of(more)
        if atom.type.kind == "p":
            return z3.Bool(named)
        if more < 0:
            self.facts.append(z3.Int(named) >= atom.low - more)
        return self.space.variable(named, atom.low, atom.high).plus(Poly.of(more))

    def _operation(self, atom: Atom, step: Step) -> Any | None:
        operation, of, parts = step.operation, step.of, atom.parts
        if step.type.kind == "p" and of.kind == "p" and operation != "select":
            join = {"&": z3.And, "|": z3.Or, "^": z3.Xor, "==": lambda a, b: a == b}.get(operation)
            return None if join is None else join(self.holds(parts[0]), self.holds(parts[1]))
        if operation == "select":
            return self._choice(step, parts)
        if any(part.type.kind == "p" for part in parts):
            return None
        match operation:
            case "<":
                return z3.Not(self.space.at_most(self.number(parts[1]), self.number(parts[0])))
            case "<=":
                return self.space.at_most(self.number(parts[0]), self.number(parts[1]))
            case "==":
                return self.space.equal(self.number(parts[0]), self.number(parts[1]))
            case "*":
                return self._cut(self.number(parts[0]).times(self.number(parts[1])), step.type, atom)
            case "cast":
                return self._cut(self.number(parts[0]), step.type, atom)
            case "//" | "%" if not parts[1].is_constant:
                return self._by_variable(operation, parts)
            case "&" | ">>" | "<<" | "//" | "%":
                return self._by_constant(operation, step, atom)
            case "|" | "^":
                return self._joined(parts, step, atom)
            case "part":
                shifted = self.space.divided(self._unsigned(parts[0]), 1 << step.detail)[0]
                return self.space.divided(shifted, 1 << step.type.width)[1]
            case "pack":
                found, position = Poly(), 0
                for part in parts:
                    found, position = found.plus(self._unsigned(part), 1 << position), position + part.type.width
                return self._cut(found, step.type, atom)
        return None

    def _joined(self, parts: Sequence[Linear], step: Step, atom: Atom) -> Poly | None:
        """Two numbers without a bit in common, as a sum: one is below a power of two that divides the other."""
        for low, high in (parts, parts[::-1]):
            below, above = self._unsigned(low), self._unsigned(high)
            most = self.space.range(below)[1]
            power = 1 << most.bit_length()
            if most > 0 and power <= MOST_JOINED and self._divides(power, above):
                return self._cut(above.plus(below), step.type, atom)
        return None

    def _divides(self, power: int, value: Poly) -> bool:
        """Whether a number is a multiple of a power of two: each part of the sum is, or the sum."""
        if self.space.factors(value, power) % power == 0:
            return True
        if any(len(monomial) > 1 for monomial in value.terms):
            return False
        rest = self.space.divided(value, power)[1]
        return not self._is_possible(self.space.formula(rest) != 0)

    def _choice(self, step: Step, parts: Sequence[Linear]) -> Any:
        condition = self.holds(parts[0])
        if step.type.kind == "p":
            return z3.If(condition, self.holds(parts[1]), self.holds(parts[2]))
        is_special = parts[1].is_constant or any(atom.kind == "==" for atom, _ in parts[0].terms)
        if is_special and not self._is_possible(condition):
            return self.number(parts[2])  # as where a divisor is not 0
        one, other = self.number(parts[1]), self.number(parts[2])
        (a, b), (c, d) = self.space.range(one), self.space.range(other)
        for value in (one, other):
            self.space.at_most(value, Poly())  # so that a lemma says what its sign means for products
        found = self.space.fresh(min(a, c), max(b, d))
        self.facts.append(z3.Implies(condition, self.space.equal(found, one)))
        self.facts.append(z3.Implies(z3.Not(condition), self.space.equal(found, other)))
        return found

    def _unsigned(self, value: Linear) -> Poly:
        found = self.number(value)
        low, _ = self.space.range(found)
        if low >= 0:
            return found
        width = 1 << value.type.width
        negative = self.space.fresh(0, 1)
        term = self.space.formula(negative)
        self.facts.append((term == 1) == (self.space.formula(found) < 0))
        return found.plus(negative, width)

    def _by_variable(self, operation: str, parts: Sequence[Linear]) -> Poly | None:
        """Quotients and remainders of what is not negative, by what is above 0."""
        value, divisor = (self.number(part) for part in parts)
        is_below = self.space.at_most(value, Poly.of(-1))
        is_wrong = self.space.at_most(divisor, Poly())
        if self.space.range(value)[0] < 0 and self._is_possible(is_below):
            return None
        if self.space.range(divisor)[0] <= 0 and self._is_possible(is_wrong):
            return None
        quotient, rest = self.space.quotient(value, divisor)
        whole = quotient.times(divisor).plus(rest)
        self.facts.append(self.space.formula(value) == self.space.formula(whole))
        self.facts.append(self.space.at_most(rest.plus(Poly.of(1)), divisor))
        return rest if operation == "%" else quotient

    def _by_constant(self, operation: str, step: Step, atom: Atom) -> Poly | None:
        """Shifts, masks, quotients and remainders, by constants."""
        first, second = atom.parts
        if operation == "&" and first.is_constant:
            first, second = second, first
        if not second.is_constant:
            return None
        if operation in ("//", "%"):
            divisor = second.constant
            value = self.number(first)
            if divisor <= 0 or (self.space.range(value)[0] < 0 and self._is_possible(self.space.formula(value) < 0)):
                return None  # PTX rounds towards zero
            return self.space.divided(value, divisor)[operation == "%"]
        amount = second.constant & ((1 << second.type.width) - 1)
        if operation == ">>":
            return self.space.divided(self.number(first), 1 << min(amount, step.of.width))[0]
        if operation == "<<":
            return self._cut(self.number(first).times(Poly.of(1 << min(amount, step.of.width))), step.type, atom)
        low, high = (amount & -amount).bit_length() - 1, amount.bit_length()
        if amount == 0 or amount >> low != (1 << high - low) - 1:
            return None
        whole = self._unsigned(first)
        within = whole if high == step.of.width else self.space.divided(whole, 1 << high)[1]
        above = self.space.divided(within, 1 << low)[0].times(Poly.of(1 << low)) if low else within
        return self._cut(above, step.type, atom)
