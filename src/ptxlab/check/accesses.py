"""What an instruction does to memory at each of its addresses: how many bytes, and the alignment that it needs."""

from collections.abc import Iterator
from typing import NamedTuple

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.isa.types import TYPES


class Access(NamedTuple):
    """Operand `operand` of an instruction is the address of `size` bytes, which must lie at a multiple of `align`."""

    operand: int
    size: int
    align: int


def accesses(instruction: ir.Instruction, match: Match) -> Iterator[Access]:
    """The accesses of an instruction whose size is known from its text."""
    name = match.form.name
    addresses = [at for at, e in enumerate(match.expected) if e.kind == "address"]
    if name[0] in ("ld", "ldu", "st", "atom", "red") and name[1:2] not in (("async",), ("bulk",)):
        size = _element_bytes(instruction) * _elements(instruction)
        if size:
            yield from (Access(at, size, size) for at in addresses[:1])
    elif name[:2] == ("cp", "async") and len(name) == 2:
        copied = _constant(instruction, 2)
        if copied:
            source = _constant(instruction, 3) if len(instruction.operands) > 3 else copied
            yield Access(addresses[0], copied, copied)
            yield Access(addresses[1], source or 0, copied)
    elif name[0] in ("ldmatrix", "stmatrix"):
        yield from (Access(at, 16, 16) for at in addresses[:1])
    elif name[0] == "mbarrier" and name[1:2] != ("pending_count",):
        yield from (Access(at, 8, 8) for at in addresses[:1])
    elif name[:3] == ("cp", "async", "bulk") or name[:3] == ("cp", "reduce", "async"):
        yield from _bulk(instruction, match, addresses)


def _bulk(instruction: ir.Instruction, match: Match, addresses: list[int]) -> Iterator[Access]:
    """Bulk copies move multiples of 16 bytes between addresses of that alignment; their barrier is 8 bytes."""
    if "tensor" in instruction.opcode.modifiers:
        return  # one side is a tensor map; its box decides the size
    for at in addresses:
        is_barrier = "bar" in match.expected[at].name.lower()
        size = 8 if is_barrier else _constant(instruction, 2) or 16
        yield Access(at, size, 8 if is_barrier else 16)


def _element_bytes(instruction: ir.Instruction) -> int:
    types = [TYPES[word] for word in instruction.opcode.modifiers if word in TYPES]
    return max(1, types[-1].width // 8) if types else 0


def _elements(instruction: ir.Instruction) -> int:
    counts = [int(word[1:]) for word in instruction.opcode.modifiers if word in ("v2", "v4", "v8")]
    return counts[0] if counts else 1


def _constant(instruction: ir.Instruction, at: int) -> int | None:
    operand = instruction.operands[at] if at < len(instruction.operands) else None
    return operand.value if isinstance(operand, ir.Immediate) else None
