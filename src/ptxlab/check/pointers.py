"""Where an address points, when that can be read off the program: a variable and a constant distance from its start.

Only what is certain counts: a register that is written once, without a guard, from the address of a variable by a copy,
a conversion (also to another state space or block), or by adding or subtracting constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.isa import Match, Operation

if TYPE_CHECKING:
    from .program import FunctionFacts


class Pointer(NamedTuple):
    """`offset` bytes into `variable`."""

    variable: ir.Variable
    offset: int


class Pointers:
    """Where the registers of one function point."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._known: dict[int, Pointer | None] = {}

    def of_address(self, operand: ir.Operand) -> Pointer | None:
        """Where `[base+offset]` or `name[3]` points."""
        if isinstance(operand, ir.Address):
            is_element = isinstance(operand.base, ir.Element)
            base = self.of_address(operand.base) if is_element else self.of_value(operand.base)
            return None if base is None else Pointer(base.variable, base.offset + operand.offset)
        if isinstance(operand, ir.Element) and operand.register is None:
            base = self.of_value(operand.base)
            size = 0 if base is None else base.variable.type.width * base.variable.vector // 8
            return None if base is None else Pointer(base.variable, base.offset + operand.index * size)
        return None

    def of_value(self, operand: ir.Operand) -> Pointer | None:
        """Where a value points, if it is an address."""
        if isinstance(operand, ir.VariableReference):
            return Pointer(operand.variable, operand.offset)
        if isinstance(operand, ir.Sum):
            base = self.of_value(operand.base)
            return None if base is None else Pointer(base.variable, base.offset + operand.offset)
        if not isinstance(operand, ir.Register):
            return None
        if operand.index not in self._known:
            self._known[operand.index] = None  # a register that depends on itself points nowhere known
            self._known[operand.index] = self._of_register(operand.index)
        return self._known[operand.index]

    def _of_register(self, index: int) -> Pointer | None:
        at = self._facts.chains.only_write(index)
        if at is None:
            return None
        instruction, match = self._facts.instructions[at], self._facts.matches[at]
        if instruction.guard is not None or match is None or len(instruction.operands) < 2:
            return None
        source, operation = instruction.operands[1], match.effects.computes
        match operation:
            case Operation.COPY | Operation.ADDRESS:
                return self.of_address(source) if isinstance(source, ir.Address) else self.of_value(source)
            case Operation.CONVERSION if _keeps_addresses(match):
                return self.of_value(source)
            case Operation.SUM:
                return self._of_sum(source, instruction.operands[2], 1)
            case Operation.DIFFERENCE:
                return self._of_sum(source, instruction.operands[2], -1)
        return None

    def _of_sum(self, first: ir.Operand, second: ir.Operand, sign: int) -> Pointer | None:
        """An address and a constant, added in any order or subtracted."""
        for base, distance in ((first, second), (second, first))[: 1 if sign < 0 else 2]:
            pointer, constant = self.of_value(base), self._constant(distance)
            if pointer is not None and constant is not None:
                return Pointer(pointer.variable, pointer.offset + sign * constant)
        return None

    def _constant(self, operand: ir.Operand) -> int | None:
        """An integer, or what a register holds that is written once, by `mov` of an integer."""
        if isinstance(operand, ir.Immediate):
            return None if operand.is_float else _signed(operand.value)
        if not isinstance(operand, ir.Register):
            return None
        at = self._facts.chains.only_write(operand.index)
        if at is None:
            return None
        instruction = self._facts.instructions[at]
        if self._facts.operation(at) is not Operation.COPY or instruction.guard is not None:
            return None
        source = instruction.operands[1]
        return _signed(source.value) if isinstance(source, ir.Immediate) and not source.is_float else None


def _keeps_addresses(match: Match) -> bool:
    """Whether a conversion is one of integers that are wide enough for an address."""
    types = [expected.type for expected in match.expected]
    return not match.candidate.modifiers.sat and all(
        type is not None and type.kind in "us" and type.width >= 32 for type in types
    )


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
