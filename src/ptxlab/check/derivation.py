"""What the value of a register was computed from, where it is certain which instruction wrote each register."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.isa import Operation

if TYPE_CHECKING:
    from .program import FunctionFacts

_LONGEST = 64  # instructions that are followed

# The operands that an address can come from, of the instructions that compute addresses.
SAME_SPACE = {
    Operation.COPY: slice(1, 2),
    Operation.CONVERSION: slice(1, 2),
    Operation.SUM: slice(1, 3),
    Operation.DIFFERENCE: slice(1, 3),
    Operation.PRODUCT_SUM: slice(3, 4),
}
ANY_SPACE = {**SAME_SPACE, Operation.ADDRESS: slice(1, 2)}


class Leaf(NamedTuple):
    """An operand of instruction `at` that is not a register, or what instruction `at` writes to a register."""

    at: int
    operand: ir.Operand


def leaves(
    facts: FunctionFacts, at: int, operand: ir.Operand, through: dict[Operation, slice], steps: int = _LONGEST
) -> Iterator[Leaf]:
    """Where the value comes from that instruction `at` reads, followed `through` these operations."""
    if isinstance(operand, ir.Sum):
        operand = operand.base
    if not isinstance(operand, ir.Register):
        yield Leaf(at, operand)
        return
    written = facts.chains.definition(at, operand.index)
    if written is None or not steps:
        return
    instruction, match = facts.instructions[written], facts.matches[written]
    if instruction.guard is not None or match is None:
        return
    operation = match.effects.computes
    if operation not in through:
        yield Leaf(written, operand)
        return
    for source in instruction.operands[through[operation]]:
        yield from leaves(facts, written, source, through, steps - 1)
