"""Terms as integers: polynomials, of which the solver sees each product of variables as one more variable.

A sum is cut to its width where it cannot be shown that it does not wrap, so the translation is exact. What a linear
solver does not know of products it is given as lemmas, instances of two facts about integers, which `lemmas` chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import gcd
from typing import Any

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.flow.ranges import limits
from ptxlab.flow.steps import Step
from ptxlab.isa.types import Type

from .lemmas import Lemma, extents, products
from .polynomials import Monomial, Poly
from .solver import Clock, z3
from .translation import Namer, Translation

WRAP_MILLISECONDS = 1_000
FACTOR_MILLISECONDS = 200
MOST_JOINED = 1 << 20  # what the lower of two numbers that `|` joins is below


class Space:
    """The variables of a question, their bounds, and the comparisons in it: of one thread or of two."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.bounds: dict[str, tuple[int, int]] = {}
        self.facts: list[Any] = []
        self.compared: dict[frozenset[tuple[Monomial, int]], Poly] = {}
        self.monomials: set[Monomial] = set()
        self._bounded: set[Monomial] = set()
        self.divisions: list[tuple[Poly, int, Poly, Poly]] = []
        self.quotients: dict[Any, tuple[Poly, Poly, Poly, Poly]] = {}
        """By what is divided and by which variable: that divisor, the quotient, the remainder, what is divided."""
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
        found.compared, found.monomials = dict(self.compared), set(self.monomials)
        found._bounded = set(self._bounded)
        found.divisions, found.quotients = list(self.divisions), dict(self.quotients)
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
            ends = self.range_of(monomial)
            low += min(factor * end for end in ends)
            high += max(factor * end for end in ends)
        return low, high

    def range_of(self, monomial: Monomial) -> tuple[int, int]:
        """The same of a product of variables."""
        low = high = 1
        for name in monomial:
            a, b = self.bounds[name]
            ends = (low * a, low * b, high * a, high * b)
            low, high = min(ends), max(ends)
        return low, high

    def formula(self, value: Poly) -> Any:
        """A polynomial as a linear term of the solver."""
        products = [monomial for monomial in value.terms if len(monomial) > 1]
        self.monomials.update(products)
        for monomial in products:
            if monomial not in self._bounded:
                self._bounded.add(monomial)
                self.facts.append(_between("*".join(monomial), *self.range_of(monomial)))
        return _sum([_part("*".join(monomial), factor) for monomial, factor in value.terms.items()])

    def divided(self, value: Poly, divisor: int) -> tuple[Poly, Poly]:
        """Quotient, rounded down, and remainder."""
        low, high = self.range(value)
        whole = Poly({one: factor for one, factor in value.terms.items() if factor % divisor == 0})
        left = value.plus(whole, -1)
        least, most = self.range(left)
        if least >= 0 and most < divisor:
            return Poly({one: factor // divisor for one, factor in whole.terms.items()}), left
        known = next((one for one in self.divisions if one[1] == divisor and one[0].key == value.key), None)
        if known is not None:
            return known[2:]
        quotient, rest = self.fresh(low // divisor, high // divisor), self.fresh(0, divisor - 1)
        both = quotient.times(Poly.of(divisor)).plus(rest)
        self.facts.append(self.formula(value) == self.formula(both))
        self.divisions.append((value, divisor, quotient, rest))
        return quotient, rest

    def quotient(self, value: Poly, divisor: Poly) -> tuple[Poly, Poly]:
        """Variables for a quotient and a remainder by a variable; what holds of them depends on signs."""
        key = value.key, divisor.key
        if key not in self.quotients:
            most = max(0, self.range(value)[1])
            self.quotients[key] = divisor, self.fresh(0, most), self.fresh(0, most), value
        return self.quotients[key][1:3]

    def euclid(self, value: Poly, divisor: Poly) -> tuple[Poly, Poly]:
        """Quotient and remainder of what is not negative by what is above 0; of others, any numbers."""
        quotient, rest = self.quotient(value, divisor)
        both = quotient.times(divisor).plus(rest)
        is_known = z3.And(self.at_most(Poly(), value), self.at_most(Poly.of(1), divisor))
        is_below = self.at_most(rest.plus(Poly.of(1)), divisor)
        self.facts.append(z3.Implies(is_known, z3.And(self.formula(value) == self.formula(both), is_below)))
        return quotient, rest

    def at_most(self, one: Poly, other: Poly) -> Any:
        """That one polynomial is at most another."""
        difference = other.plus(one, -1)
        low, high = self.range(difference)
        if low >= 0 or high < 0:
            return z3.BoolVal(low >= 0)
        for found in (difference, Poly.of(-1).plus(difference, -1)):
            self.compared.setdefault(found.key, found)
        return self.formula(difference) >= 0

    def equal(self, one: Poly, other: Poly) -> Any:
        """That two polynomials are equal."""
        return z3.And(self.at_most(one, other), self.at_most(other, one))

    def lemmas(self, *chosen: Iterable[Lemma]) -> list[Any]:
        """Facts about products, as formulas: whichever are chosen, they hold of all integers."""
        found: list[Any] = []
        for one in (one for lemmas in chosen for one in lemmas):
            product = self.formula(one.factor.times(one.other))
            if one.is_zero:
                found.append(z3.Implies(self.formula(one.factor) == 0, product == 0))
            else:
                given = [self.formula(part) >= 0 for part in one[:2] if self.range(part)[0] < 0]
                found.append(z3.Implies(z3.And(*given), product >= 0) if given else product >= 0)
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
        for number, (value, divisor, quotient, rest) in enumerate(self.divisions):
            for other, same, before, left in self.divisions[:number]:
                if same == divisor:
                    self._count += 1
                    apart = z3.Int(f"#{self._count}")
                    found.append(apart == self.formula(quotient.plus(before, -1)))
                    step = self.formula(value.plus(other, -1).plus(rest, -1).plus(left))
                    found.append(divisor * apart == step)
        return found

    def products(self) -> list[Any]:
        """That the variable of each product is the product: for a model that is a real one."""
        return [z3.Int("*".join(one)) == z3.Product(*map(z3.Int, one)) for one in self._bounded]


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


class Integers(Translation):
    """Terms of one thread as integers in a space."""

    def __init__(self, name: Namer, space: Space, exact: dict[Linear | Atom, bool]) -> None:
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

        `exact` keeps of what it was shown, under the same assumptions, that it does not wrap, or tried in vain.
        """
        low, high = limits(type)
        least, most = self.space.range(found)
        if (low <= least and most <= high) or self._exact.get(of):
            return found
        term = self.space.formula(found)
        if least < low == 0:
            self.space.at_most(Poly(), found)  # so that a lemma says what its sign means for products
        if of not in self._exact:
            self._exact[of] = not self._is_possible(z3.Or(term < low, term > high), found)
            if self._exact[of]:
                return found
        turns = self.space.fresh((least - low) // (high - low + 1), (most - low) // (high - low + 1))
        rest = self.space.fresh(low, high)
        self.facts.append(term == self.space.formula(turns.times(Poly.of(high - low + 1)).plus(rest)))
        return rest

    def _is_possible(self, formula: object, value: Poly | None = None) -> bool:
        """Whether something can hold here, of a value perhaps, as far as the solver finds out in a short time."""
        if self.space.clock.is_over:
            return True
        solver = self.space.clock.solver(WRAP_MILLISECONDS)
        solver.add(*self.facts, *self.space.facts, formula)
        if solver.check() == z3.unsat:
            return False
        lemmas = self.space.lemmas(extents(self.space, value) if value is not None else (), products(self.space))
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
        """Two numbers without a bit in common, as a sum: one is below a power of two that divides the other.

        All bits of a number changed, as parities are, are a difference; two bits are equal or not.
        """
        if step.operation == "^" and not any(part.is_constant for part in parts):
            both = [self._unsigned(part) for part in parts]
            if all(self.space.range(one)[1] <= 1 for one in both):
                found = self.space.fresh(0, 1)
                self.facts.append((self.space.formula(found) == 0) == self.space.equal(*both))
                return found
        for low, high in (parts, parts[::-1]):
            below, above = self._unsigned(low), self._unsigned(high)
            most = self.space.range(below)[1]
            if step.operation == "^" and high.is_constant and most <= high.constant == (1 << most.bit_length()) - 1:
                return above.plus(below, -1)
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
