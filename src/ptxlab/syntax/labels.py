"""Labels: a name that was taken for one while a body was read is checked against the labels there really are."""

from __future__ import annotations

from ptxlab.ir import (
    Address,
    Block,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Instruction,
    Label,
    LabelReference,
    Operand,
    Statement,
    Unresolved,
    Vector,
)
from ptxlab.syntax.scope import Scope


def resolve_labels(body: list[Statement], scope: Scope) -> None:
    """Turn references to labels that are not in scope into unresolved names."""
    if scope.wanted <= scope.labels:
        return
    _resolve(body, frozenset())


def _resolve(body: list[Statement], outer: frozenset[str]) -> None:
    own = (s.name for s in body if isinstance(s, (Label, BranchTargets, CallTargets, CallPrototype)))
    visible = outer | frozenset(own)
    for statement in body:
        if isinstance(statement, Block):
            _resolve(statement.body, visible)
        elif isinstance(statement, Instruction):
            statement.operands = tuple([_visible(operand, visible) for operand in statement.operands])


def _visible(operand: Operand, visible: frozenset[str]) -> Operand:
    if isinstance(operand, LabelReference) and operand.name not in visible:
        return Unresolved(operand.name)
    if isinstance(operand, Vector):
        return Vector(tuple([_visible(element, visible) for element in operand.elements]))
    if isinstance(operand, Address):
        base = _visible(operand.base, visible)
        return Address(base, operand.offset, operand.arguments, operand.unified, operand.plus_zero)
    return operand
