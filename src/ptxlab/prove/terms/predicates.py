"""Predicates: `and`, `or` and `not` of them, where that is simple."""

from __future__ import annotations

from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.steps import PREDICATE

TRUE, FALSE = linear(PREDICATE, 1), linear(PREDICATE, 0)


def joined(operation: str, one: Linear, other: Linear) -> Linear | None:
    """`and`, `or` and `xor` of predicates, where that is simple."""
    if other.is_constant:
        one, other = other, one
    if one.is_constant:
        if operation == "&":
            return other if one.constant else FALSE
        if operation == "|":
            return TRUE if one.constant else other
        if operation in ("^", "=="):
            if one.constant != (operation == "=="):
                return inverse(other)
            return other
        return None
    if one == other:
        return FALSE if operation == "^" else TRUE if operation == "==" else one if operation in "&|" else None
    if inverse(one) == other:
        return FALSE if operation in ("&", "==") else TRUE if operation in "|^" else None
    return None


def conjuncts(condition: Linear) -> list[Linear]:
    """The predicates that must all hold for one to hold."""
    atoms = [atom for atom, _ in condition.terms]
    if len(atoms) != 1 or atoms[0].kind != "&" or atoms[0].type.kind != "p" or condition.constant:
        return [condition]
    return [one for part in atoms[0].parts for one in conjuncts(part)]


def inverse(value: Linear) -> Linear | None:
    """The predicate that a term is the negation of."""
    atoms = list(value.terms)
    if len(atoms) == 1 and atoms[0][0].kind == "^" and TRUE in atoms[0][0].parts:
        return next((part for part in atoms[0][0].parts if part != TRUE), None)
    return None
