"""The operands of an instruction as a recorded launch needs them: which registers it reads and writes, and as what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxlab import ir
from ptxlab.isa import Match

_ELEMENTS = "xyzwabcd"


@dataclass(frozen=True, slots=True)
class Use:
    """A register that an instruction reads or writes."""

    name: str
    """The register, or an element of a vector register: `%v.x`."""
    operand: str
    """The operand that it is, or is part of, by the name in the syntax line; empty of calls."""
    index: int
    """Which element of the operand it is."""
    role: str
    """`value`, `address`, `guard`, or `result`."""


def uses_of(instruction: ir.Instruction, match: Match | None) -> list[Use]:
    """The registers of an instruction in the order in which they are written; one that is updated is there twice."""
    found: list[Use] = []
    if match is None:
        for operand in instruction.operands:
            found += [Use(name, "", index, "value") for index, name in enumerate(names_in(operand))]
    else:
        for expected, operand in zip(match.expected, instruction.operands, strict=True):
            if expected.role != "read":
                found += [Use(name, expected.name, index, "result") for index, name in _results(operand)]
            if expected.role != "write":
                role = "address" if expected.kind == "address" else "value"
                found += [Use(name, expected.name, index, role) for index, name in enumerate(names_in(operand))]
    if instruction.guard is not None and isinstance(instruction.guard.register, ir.Register):
        found.append(Use(instruction.guard.register.name, "", 0, "guard"))
    return found


def _results(operand: ir.Operand) -> Iterator[tuple[int, str]]:
    """The registers of a result, with their positions in it; `_` has a position, too."""
    parts = operand.elements if isinstance(operand, ir.Vector) else (operand,)
    if isinstance(operand, ir.Pair):
        parts = (operand.first, operand.second)
    for index, part in enumerate(parts):
        for offset, name in enumerate(names_in(part)):
            yield index + offset, name


def names_in(operand: ir.Operand | None) -> Iterator[str]:
    """The registers in an operand, by name; elements of a vector register are apart."""
    match operand:
        case ir.Register() if operand.vector > 1:
            yield from (f"{operand.name}.{_ELEMENTS[index]}" for index in range(operand.vector))
        case ir.Register():
            yield operand.name
        case ir.VectorElement() if isinstance(operand.register, ir.Register) and operand.position is not None:
            yield f"{operand.register.name}.{_ELEMENTS[operand.position]}"
        case ir.Selection() if isinstance(operand.register, ir.Register):
            yield operand.register.name
        case ir.Negated() | ir.Minus():
            yield from names_in(operand.operand)
        case ir.Sum():
            yield from names_in(operand.base)
        case ir.Element():
            yield from names_in(operand.base)
            if operand.register is not None:
                yield from names_in(operand.register)
        case ir.Address():
            yield from names_in(operand.base)
            for argument in operand.arguments:
                yield from names_in(argument)
        case ir.Vector() | ir.Arguments():
            for part in operand.elements:
                yield from names_in(part)
        case ir.Pair():
            yield from names_in(operand.first)
            yield from names_in(operand.second)
