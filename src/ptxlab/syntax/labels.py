"""Labels: a name that was taken for one while a body was read is checked against the labels there really are."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab.ir import (
    Address,
    BlockStatement,
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
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.scope import Scope

MOST_EDGES = 1_000_000  # of all indexed branches of a function to the labels of their lists


def resolve_labels(body: list[Statement], scope: Scope) -> None:
    """Turn references to labels that are not in scope into unresolved names."""
    if scope.wanted <= scope.labels:
        return
    _resolve(body, frozenset())


def _resolve(body: list[Statement], outer: frozenset[str]) -> None:
    own = (s.name for s in body if isinstance(s, (Label, BranchTargets, CallTargets, CallPrototype)))
    visible = outer | frozenset(own)
    for statement in body:
        if isinstance(statement, BlockStatement):
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


def too_many_branches(body: list[Statement]) -> ParseError | None:
    """Refuse indexed branches that go to more labels in all than any program needs: analyses follow each of them."""
    statements = list(_inner(body))
    sizes: dict[str, int] = {}
    for statement in statements:
        if isinstance(statement, BranchTargets):
            sizes[statement.name] = max(sizes.get(statement.name, 0), len(statement.targets))
    edges = 0
    for statement in statements:
        if isinstance(statement, Instruction):
            edges += sum(sizes.get(each.name, 0) for each in statement.operands if isinstance(each, LabelReference))
            if edges > MOST_EDGES:
                assert statement.start is not None
                assert statement.end is not None
                return ParseError(
                    "too-many-branches",
                    f"the indexed branches up to here go to more than {MOST_EDGES:,} labels in all",
                    statement.start,
                    statement.end,
                    help="share one `brx.idx` between the places that branch by the same list",
                )
    return None


def _inner(body: list[Statement]) -> Iterator[Statement]:
    """All statements, those of blocks too."""
    pending = [iter(body)]
    while pending:
        for statement in pending[-1]:
            if isinstance(statement, BlockStatement):
                pending.append(iter(statement.body))
                break
            yield statement
        else:
            pending.pop()
