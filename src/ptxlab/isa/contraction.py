"""Which two instructions a compiler may contract to one that rounds once, and what that one computes.

PTX leaves it open whether `mul` and `add` (or `sub`) without a rounding modifier round twice or once. ptxas also
contracts the last product of an approximate division: `div.full` and `div.approx` end with the product of the dividend
and a reciprocal. Of a constant it computes that reciprocal itself, rounded to nearest.
"""

from dataclasses import replace
from functools import cache

from ptxlab.numbers import approximate
from ptxlab.values import dataclass

from .effects import Effects
from .floats import ONE, bits, compute, each_float, is_nan, sign_of
from .form import Form, Modifiers
from .machine import Machine, Value
from .opcode import Candidate, Match
from .operation import Operation
from .targets import ALWAYS

_SUMS = (Operation.SUM, Operation.DIFFERENCE)
_KEPT = ("kept_a", "kept_b")


def is_product(match: Match) -> bool:
    """Whether the result is a product of floats that need not be rounded."""
    m, form = match.candidate.modifiers, match.form
    if not _is_open(match) or m.sat:
        return False
    return form.computes is Operation.PRODUCT or is_quotient(match)


def is_quotient(match: Match) -> bool:
    """Whether the result is a product with a reciprocal."""
    return match.form.computes is Operation.QUOTIENT and _is_float(match) and _is_approximate(match)


def is_sum(match: Match) -> bool:
    """Whether the result is a sum or a difference of floats of one type, which need not be rounded to nearest."""
    return match.form.computes in _SUMS and _is_open(match) and len({e.type for e in match.expected}) == 1


def passes_on(match: Match) -> bool:
    """Whether the result is the operand, or its negation: what a compiler sees through."""
    if match.form.computes is Operation.COPY:
        return all(e.kind == "value" and not e.count for e in match.expected)
    return negates(match)


def negates(match: Match) -> bool:
    """Whether the result is the operand with its sign changed."""
    return match.form.computes is Operation.NEGATION and _is_float(match)


def agree(first: Match, second: Match) -> bool:
    """Whether two instructions on floats have one type, and flush subnormal numbers or not."""
    return (
        first.expected[0].type == second.expected[0].type
        and bool(first.candidate.modifiers.ftz) == bool(second.candidate.modifiers.ftz)
    )  # fmt: skip


@dataclass(frozen=True)
class Contraction:
    """A product and a sum, and how they go together."""

    product: Match
    sum: Match
    operand: int
    """Which operand of the sum the product is: 0 or 1."""
    is_negated: bool = False
    """Whether the product's sign is changed before."""
    is_folded: bool = False
    """Whether it is a quotient by a constant whose reciprocal the compiler computes."""


@cache
def contracted(pair: Contraction) -> Match:
    """The form of an instruction that computes both at once: the result of the sum, of its factors and its addend."""
    m = pair.sum.candidate.modifiers
    subtracts = pair.sum.form.computes is Operation.DIFFERENCE
    modifiers = Modifiers(
        ftz=m.ftz,
        sat=m.sat,
        quotient=pair.product.form.computes is Operation.QUOTIENT,
        full="full" in pair.product.form.name,
        folded=pair.is_folded,
        minus_product=pair.is_negated != (subtracts and pair.operand == 1),
        minus_addend=subtracts and pair.operand == 0,
    )
    result, *addends = pair.sum.expected
    factors = pair.product.expected[1:]
    expected = (
        result,
        *(replace(e, name=name) for e, name in zip((*factors, addends[1 - pair.operand]), "abc", strict=True)),
    )
    return _match(pair.sum.form, product_sum, modifiers, expected, Operation.PRODUCT_SUM)


@cache
def keeping(product: Match) -> Match:
    """The form of a product that also keeps its factors, because their registers are written again before the sum."""
    result, *factors = product.expected
    kept = (replace(result, name=name) for name in _KEPT)
    named = (replace(e, name=name) for e, name in zip(factors, "ab", strict=True))
    semantics = product.form.semantics
    assert semantics is not None

    def keep(k: Machine, m: Modifiers, a: Value, b: Value) -> tuple[Value, Value, Value]:
        return semantics(k, m, a, b), a, b

    return _match(product.form, keep, product.candidate.modifiers, (result, *kept, *named), None)


@cache
def folded(match: Match) -> Match:
    """The form of a quotient by a constant whose reciprocal the compiler computes."""
    modifiers = Modifiers(ftz=match.candidate.modifiers.ftz, full="full" in match.form.name, folded=True)
    return _match(match.form, quotient, modifiers, match.expected, None)


def quotient(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """`a / b`, with a reciprocal that is rounded to nearest."""
    return k.arithmetic("mul", *_factors(k, m, a, b), ftz=bool(m.ftz))


def _factors(k: Machine, m: Modifiers, a: Value, b: Value) -> tuple[Value, Value]:
    """What a quotient is the product of."""
    ftz = int(bool(m.ftz))
    factor = k.call(approximate.quotient_factor, b, ftz, int(bool(m.full)), type="f32")
    scaled = k.arithmetic("mul", a, factor, ftz=bool(m.ftz))
    if not m.folded:
        return scaled, k.call(approximate.scaled_reciprocal, b, factor, ftz, type="f32")
    # As the function unit does, it takes and gives no subnormal numbers.
    divisor = k.arithmetic("mul", b, factor, ftz=bool(m.ftz))
    return scaled, k.arithmetic("div", k.constant("f32", ONE["f32"]), divisor, ftz=True)


def product_sum(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """`a * b + c` or `a / b + c`, rounded once."""
    if m.quotient:
        a, b = _factors(k, m, a, b)
    if m.minus_product:
        a = each_float(k, lambda lane: _negated(k, lane), a)
    if m.minus_addend:
        c = each_float(k, lambda lane: _negated(k, lane), c)
    return compute(k, m, "fma", a, b, c)


def _negated(k: Machine, a: Value) -> Value:
    """`-a`; a NaN of f64 keeps its sign, as an H200's `DFMA` does with a negated operand (other NaNs are canonical)."""
    changed = k.reinterpret(bits(k, a) ^ sign_of(a), a.type.name)
    return k.select(is_nan(a), a, changed) if a.type.bits == 64 else changed


def _match(form: Form, semantics: object, modifiers: Modifiers, expected: object, computes: Operation | None) -> Match:
    """A form of no syntax: it is not in the table, because no program can have it."""
    made = replace(form, semantics=semantics, computes=computes, since=ALWAYS, holds=None)  # type: ignore[arg-type]
    candidate = Candidate(made, {}, modifiers, expected, True, None)  # type: ignore[arg-type]
    candidate.__dict__["effects"] = Effects(computes=computes)
    return Match(candidate, expected, False)  # type: ignore[arg-type]


def _is_open(match: Match) -> bool:
    """Whether PTX leaves it open how often the result is rounded."""
    return _is_float(match) and not match.candidate.modifiers.rnd and not match.candidate.modifiers.rn


def _is_float(match: Match) -> bool:
    type = match.expected[0].type if match.expected else None
    return type is not None and type.kind == "f"


def _is_approximate(match: Match) -> bool:
    return "full" in match.form.name or bool(match.candidate.modifiers.approx)
