"""Choices between terms in a form that a solver knows more of: multiples of one number, quotients in two widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.flow.expressions import PARAMETER, SPECIAL, Atom, Linear, linear

from .predicates import inverse

if TYPE_CHECKING:
    from .terms import Terms

HALF = 32  # bits of a narrow quotient


def multiple(terms: Terms, condition: Linear, yes: Linear, no: Linear) -> Linear | None:
    """A choice between terms that are a multiple of some number apart, as that number times a choice.

    So compilers unroll loops by `i += stride`: after the turns that are too many, `i` is `i0` or `i0 + stride * turns`.
    """
    if len(yes.terms) < len(no.terms):
        condition, yes, no = terms.negated(condition), no, yes
    apart = yes.plus(no, -1)
    products = [atom for atom, _ in apart.terms if atom.kind == "*" and atom.type.width == apart.type.width]
    for unit in (part.as_type(apart.type) for atom in products for part in atom.parts):
        count = _divided(apart, unit)
        if count is not None:
            chosen = terms.choose(condition, count, linear(count.type, 0))
            return no.plus(terms.product(unit, chosen))
    return None


def _divided(value: Linear, unit: Linear) -> Linear | None:
    """What a number is multiplied with in a sum, if all of it is a multiple."""
    count, rest = linear(value.type, 0), value
    for atom, factor in value.terms:
        if atom.kind == "*" and atom.type.width == value.type.width:
            for part, other in (atom.parts, atom.parts[::-1]):
                if part.as_type(value.type) == unit:
                    count = count.plus(other.as_type(value.type), factor)
                    rest = rest.plus(linear(value.type, 0, {atom: factor}), -1)
                    break
    own = dict(unit.terms)
    share = next((factor // own[atom] for atom, factor in rest.terms if atom in own), 0)
    return count.plus(linear(value.type, share)) if rest == unit.times(share) else None


def compared(condition: Linear, yes: Linear, no: Linear) -> Linear | None:
    """A choice between two numbers by whether they are equal: the second, always."""
    negated = inverse(condition)
    asked = _only(condition if negated is None else negated)
    if asked is None or asked.kind != "==" or {part.as_type(yes.type) for part in asked.parts} != {yes, no}:
        return None
    is_whole = all(part.type.width == yes.type.width for part in asked.parts)
    return (no if negated is None else yes) if is_whole else None


def by_bit(terms: Terms, condition: Linear, yes: Linear, no: Linear) -> Linear | None:
    """A choice by a bit between terms whose difference a thread is given, as that difference times the bit."""
    negated = inverse(condition)
    asked = _only(condition if negated is None else negated)
    apart = yes.plus(no, -1)
    if asked is None or asked.kind != "==" or any(atom.kind not in (SPECIAL, PARAMETER) for atom, _ in apart.terms):
        return None
    bit, number = asked.parts if asked.parts[1].is_constant else asked.parts[::-1]
    if not number.is_constant or number.constant not in (0, 1) or bit.bounds != (0, 1):
        return None
    if (number.constant == 1) != (negated is None):
        no, apart = yes, apart.times(-1)
    sign = -1 if apart.bounds[0] < 0 else 1  # a factor that is negative would wrap where numbers have no sign
    return no.plus(terms.product(apart.times(sign), terms.fit(bit, bit.type, no.type)), sign)


def quotient(terms: Terms, condition: Linear, yes: Linear, no: Linear) -> Linear | None:
    """A quotient, computed in 32 bits where the upper halves of both numbers are 0, as compilers do."""
    if inverse(condition) is not None:
        condition, yes, no = terms.negated(condition), no, yes
    wide, narrow = _only(no), _only(yes)
    if wide is None or wide.kind not in ("//", "%") or wide.step is None or wide.step.of.kind == "s" or narrow is None:
        return None
    narrow = narrow if narrow.kind != "cast" else _only(narrow.parts[0])
    asked = _only(condition)
    if narrow is None or narrow.kind != wide.kind or asked is None or asked.kind != "==" or condition.constant:
        return None
    is_same = all(part.type.width == HALF and part == other.as_type(part.type)
                  for part, other in zip(narrow.parts, wide.parts, strict=True))  # fmt: skip
    return no if is_same and _asks_upper(asked, wide) else None


def _asks_upper(asked: Atom, wide: Atom) -> bool:
    """Whether a comparison asks if the upper halves of both numbers are 0."""
    upper = next((_only(part) for part in asked.parts if not part.is_constant), None)
    if upper is None or upper.kind != "&" or not any(part.is_constant and not part.constant for part in asked.parts):
        return False
    mask = next((part for part in upper.parts if part.is_constant), None)
    joined = next((_only(part) for part in upper.parts if not part.is_constant), None)
    is_half = mask is not None and mask.constant & ((1 << 2 * HALF) - 1) == ((1 << HALF) - 1) << HALF
    numbers = {part.as_type(wide.type) for part in wide.parts}
    return (
        is_half
        and joined is not None
        and joined.kind == "|"
        and {p.as_type(wide.type) for p in joined.parts} == numbers
    )


def _only(value: Linear) -> Atom | None:
    """The atom that a term is."""
    atoms = [atom for atom, factor in value.terms if factor == 1]
    return atoms[0] if len(value.terms) == 1 and atoms and not value.constant else None
