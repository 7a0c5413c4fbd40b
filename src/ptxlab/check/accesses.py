"""What an instruction does to memory at each of its addresses: how many bytes, and the alignment that it needs.

The table has it (`isa/extent.py`): sizes and alignments are the manual's. Where it asks for more than hardware was seen
to need, hardware counts, so that what is said to stop a kernel does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.isa import Match

if TYPE_CHECKING:
    from .program import FunctionFacts


class AddressOperand(NamedTuple):
    """Operand `operand` of an instruction is the address of `size` bytes, which must be at a multiple of `align`."""

    operand: int
    size: int
    align: int


class KnownAccess(NamedTuple):
    """An access of an instruction to memory that is known: an address, or an offset in a variable."""

    instruction: ir.Instruction
    match: Match
    access: AddressOperand
    variable: ir.Variable | None
    offset: int


def known_accesses(facts: FunctionFacts) -> Iterator[KnownAccess]:
    """The accesses of a function to constant addresses and at constant distances from variables."""
    alike: dict[int, list[AddressOperand]] = {}  # by the form, where no operand says how many bytes there are
    for at, (instruction, match) in enumerate(zip(facts.instructions, facts.matches, strict=True)):
        if match is None:
            continue
        found = alike.get(id(match))
        if found is None:
            found = list(accesses(instruction, match))
            if not any(isinstance(amount, str) for one in match.effects.extents.values() for amount in one):
                alike[id(match)] = found
        for access in found:
            operand = instruction.operands[access.operand]
            if isinstance(operand, ir.Address) and isinstance(operand.base, ir.Immediate):  # `[64]` or `[64+8]`
                yield KnownAccess(instruction, match, access, None, operand.base.value + operand.offset)
                continue
            pointer = facts.value(at, operand).pointer
            if pointer is not None and _is_in_space(match, access, pointer.space):
                yield KnownAccess(instruction, match, access, pointer.variable, pointer.offset)


def _is_in_space(match: Match, access: AddressOperand, space: str | None) -> bool:
    """Whether an instruction takes addresses in a state space; another rule is about those that it does not take."""
    name = match.expected[access.operand].name
    taken = {one.space for one in match.effects.accesses if one.operand == name}
    return space is None or not taken or family(space) in {family(one or "global") for one in taken}


def family(space: str) -> str:
    """A state space without the part of it: `shared` of `shared::cta`."""
    return space.partition("::")[0]


def accesses(instruction: ir.Instruction, match: Match) -> Iterator[AddressOperand]:
    """The accesses of an instruction to memory, as far as its text shows them."""
    for at, expected in enumerate(match.expected):
        if expected.kind == "address":
            found = extent(instruction, match, expected.name)
            if found is not None and found[1] > 0:  # a size that is not legal may be none
                yield AddressOperand(at, *found)


def extent(instruction: ir.Instruction, match: Match, name: str) -> tuple[int, int] | None:
    """The bytes at the address of this name, and their alignment."""
    found = match.effects.extents.get(name)
    if found is None:
        return None
    align = _amount(instruction, match, found.align)
    bytes = _amount(instruction, match, found.bytes)
    return None if align is None else (align if bytes is None else bytes, align)


def _amount(instruction: ir.Instruction, match: Match, amount: int | str) -> int | None:
    """A number, or the value of the operand of this name, if it is there and constant."""
    if isinstance(amount, int):
        return amount
    for operand, expected in zip(instruction.operands, match.expected, strict=True):
        if expected.name == amount and isinstance(operand, ir.Immediate):
            return operand.value
    return None
