"""Where addresses come from: the parameters of a kernel that the value of a register can be derived from.

Memory that a kernel only reads need not be tracked. `roots` of an address are bits: one for each parameter, one for
variables of the module, one for shared and local memory, and one for what is not known, such as pointers that are
themselves loaded from memory. The order of instructions does not matter here: what a register holds anywhere counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.ir.effects import registers_in
from ptxlab.isa import Match
from ptxlab.isa.operand import Expected

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

PARAMETERS = 60  # parameters beyond are not distinguished from the unknown
WINDOW = 1 << 61
VARIABLE = 1 << 62
UNKNOWN = 1 << 63
ALL = (1 << 64) - 1


class Roots:
    """The roots of the registers of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.parameters = {
            id(parameter): 1 << number if number < PARAMETERS else UNKNOWN
            for number, parameter in enumerate(function.function.parameters if function.is_entry else [])
        }
        self.of_register: dict[int, int] = {}
        changed = True
        while changed:
            changed = False
            for position, instruction in enumerate(function.instructions):
                found = self._result(instruction, function.matches[position])
                for register in function.effects.writes[position]:
                    before = self.of_register.get(register, 0)
                    if before | found != before:
                        self.of_register[register] = before | found
                        changed = True

    def of_address(self, operand: ir.Operand) -> int:
        """The roots of an address."""
        found = self._of_operand(operand)
        return found or UNKNOWN

    def of_addresses(self, instruction: ir.Instruction) -> int:
        """The roots of all addresses of an instruction."""
        found = 0
        for operand in instruction.operands:
            if isinstance(operand, ir.Address):
                found |= self.of_address(operand)
        return found or UNKNOWN

    def _of_operand(self, operand: ir.Operand) -> int:
        found = 0
        base: object = operand
        while isinstance(base, (ir.Address, ir.Sum, ir.Element)):
            base = base.base
        if isinstance(base, ir.VariableReference):
            space = base.variable.state_space
            found = VARIABLE if space.startswith(("global", "const")) else WINDOW
            found |= self.parameters.get(id(base.variable), 0)  # which holds pointers, or a tensor map
        elif isinstance(base, ir.FunctionReference):
            found = UNKNOWN
        for register in registers_in(operand):
            found |= self.of_register.get(register.index, 0)
        return found

    def _result(self, instruction: ir.Instruction, match: Match | None) -> int:
        """The roots of what an instruction computes."""
        if match is None:  # a call
            return UNKNOWN
        loads = [access for access in match.effects.accesses if access.kind != "store"]
        if any((access.space or "").startswith("param") for access in loads):
            return self._parameter(instruction)
        if loads:
            return UNKNOWN if any(_can_point(expected) for expected in match.expected) else 0
        found = 0
        for operand, expected in zip(instruction.operands, match.expected, strict=True):
            found |= self._of_operand(operand)
            if isinstance(operand, ir.Vector) and expected.role == "read" and _can_point(match.expected[0]):
                found |= UNKNOWN  # an address may be put together from halves
        return found

    def _parameter(self, instruction: ir.Instruction) -> int:
        """The parameter that is loaded."""
        base: object = instruction.operands[1]
        while isinstance(base, (ir.Address, ir.Sum, ir.Element)):
            base = base.base
        if isinstance(base, ir.VariableReference):
            return self.parameters.get(id(base.variable), UNKNOWN)
        return UNKNOWN


def _can_point(expected: Expected) -> bool:
    """Whether an operand is a result that can hold an address: an integer of 64 bits or more."""
    return (
        expected.role != "read"
        and expected.type is not None
        and expected.type.width >= 64
        and expected.type.kind != "f"
    )
