"""What terms are made of that compilers compute by choices: the same numbers, whatever their parts are."""

from random import Random

import pytest

from ptxlab.flow import Facts
from ptxlab.flow.expressions import Atom, Linear, linear
from ptxlab.flow.steps import PREDICATE, Step
from ptxlab.isa.types import type_named
from ptxlab.prove.terms.terms import Loop, Terms
from tests.prove.kernels import kernel

SHORT, LONG = type_named("u32"), type_named("u64")
UPPER = linear(LONG, -1 << 32)


@pytest.fixture(scope="module")
def terms() -> Terms:
    return Terms(Facts.of(kernel("")), (64, 1, 1))


def free(terms: Terms, number: int) -> Linear:
    """A number of 64 bits that may be anything: a turn of a loop, without a limit."""
    return terms.counter(Loop(number, number, ()), (1 << 64) - 1)


def apply(terms: Terms, sign: str, one: Linear, other: Linear) -> Linear:
    return terms.apply(Step(sign, one.type, (0, 1), one.type), [one, other])


def value_of(term: Linear, numbers: dict[object, int]) -> int:
    def value(atom: Atom) -> int:
        assert isinstance(atom.detail, Loop)
        return numbers[atom.detail.head]

    return term.evaluate(value)


def given(random: Random) -> dict[object, int]:
    return {
        number: random.choice([random.getrandbits(64), random.getrandbits(33), random.getrandbits(3)])
        for number in range(4)
    }


@pytest.mark.parametrize("type", [SHORT, LONG], ids=str)
def test_a_choice_between_multiples(terms: Terms, type: object) -> None:
    random, a, b, c, d = Random(1), *(free(terms, number).as_type(type) for number in range(4))  # type: ignore[arg-type]
    for _ in range(20):
        unit = b.times(random.choice([1, 4, 256]))
        yes, no = (
            a.plus(terms.product(unit, c.plus(linear(a.type, random.randrange(-2, 3))))).plus(
                unit, random.randrange(-2, 3)
            ),
            a,
        )
        if random.random() < 0.3:
            no = no.plus(terms.product(unit, d))
        yes, no = random.sample([yes, no], 2)
        condition = terms.equal(c, linear(c.type, random.randrange(3)))
        condition = random.choice([condition, terms.negated(condition)])
        chosen = terms.choose(condition, yes, no)
        assert any(atom.kind == "*" for atom, _ in chosen.terms)
        for _ in range(20):
            numbers = given(random)
            assert value_of(chosen, numbers) == value_of(yes if value_of(condition, numbers) else no, numbers)


@pytest.mark.parametrize("sign", ["//", "%"])
def test_a_quotient_in_two_widths(terms: Terms, sign: str) -> None:
    random, x, y = Random(2), free(terms, 0), free(terms, 1)
    wide = apply(terms, sign, x, y)
    narrow = terms.fit(apply(terms, sign, x.as_type(SHORT), y.as_type(SHORT)), SHORT, LONG)
    is_narrow = terms.equal(apply(terms, "&", apply(terms, "|", x, y), UPPER), linear(LONG, 0))
    assert terms.choose(is_narrow, narrow, wide) == terms.choose(terms.negated(is_narrow), wide, narrow) == wide
    for numbers in (given(random) for _ in range(200)):
        if numbers[1] and value_of(is_narrow, numbers):
            assert value_of(narrow, numbers) == value_of(wide, numbers)
    low = linear(LONG, (1 << 32) - 1)
    others = [apply(terms, "&", apply(terms, "|", x, y), low), apply(terms, "&", apply(terms, "|", x, x), UPPER)]
    asked = [terms.negated(is_narrow), *(terms.equal(other, linear(LONG, 0)) for other in others)]
    assert all(terms.choose(other, narrow, wide) != wide for other in asked)


def test_a_choice_by_what_is_equal(terms: Terms) -> None:
    x, zero, one = free(terms, 0), linear(LONG, 0), linear(LONG, 1)
    is_zero = terms.equal(x, zero)
    assert terms.choose(is_zero, zero, x) == terms.choose(terms.negated(is_zero), x, zero) == x
    assert terms.choose(is_zero, x, zero) == zero
    assert terms.choose(is_zero, one, x) != x
    short = terms.equal(x.as_type(SHORT), linear(SHORT, 0))  # of the lower half: the number need not be 0
    assert terms.choose(short, zero, x) != x


@pytest.mark.parametrize("asked", [0, 1])
def test_a_choice_by_a_bit(terms: Terms, asked: int) -> None:
    random, x, y = Random(3), free(terms, 0), free(terms, 1).as_type(SHORT)
    bit = apply(terms, "&", x, linear(LONG, 1))
    block = terms.blocks()[0]
    for condition in (is_so := terms.equal(bit, linear(LONG, asked)), terms.negated(is_so)):
        for yes, no in ((y, y.plus(block, 4)), (y.plus(block), y), (linear(SHORT, 5), linear(SHORT, 2))):
            chosen = terms.choose(condition, yes, no)
            assert all(atom.kind != "select" for atom, _ in chosen.terms)
            for numbers in (given(random) for _ in range(20)):
                expected = yes if value_of(condition, numbers) else no
                for number in (0, 3):
                    known = {atom: linear(SHORT, number) for atom, _ in block.terms}
                    one, other = (terms.substitute(each, known) for each in (chosen, expected))
                    assert value_of(one, numbers) == value_of(other, numbers)
    other = apply(terms, "&", x, linear(LONG, 3))
    chosen = terms.choose(terms.equal(other, linear(LONG, asked)), y, y.plus(block))
    assert any(atom.kind == "select" for atom, _ in chosen.terms)


def test_all_bits_changed(terms: Terms) -> None:
    x = free(terms, 0)
    assert apply(terms, "^", x, linear(LONG, -1)) == linear(LONG, -1).plus(x, -1)
    negated = terms.apply(Step("^", PREDICATE, (0, 1), PREDICATE), [terms.equal(x, x.plus(x)), linear(PREDICATE, 1)])
    assert negated.type == PREDICATE


def test_a_narrow_sum_of_what_was_extended(terms: Terms) -> None:
    x, y = free(terms, 0), free(terms, 1)
    ((atom, _),) = x.terms
    wide = terms.fit(y.as_type(SHORT).plus(linear(SHORT, -1)), SHORT, LONG)
    found = terms.substitute(x.as_type(SHORT).plus(linear(SHORT, 1)), {atom: wide})
    assert found == y.as_type(SHORT)
