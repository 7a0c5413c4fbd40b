"""What an instruction does to memory at each of its addresses: how many bytes, and the alignment that it needs.

The names of operands in the table tell what an address is to its instruction: `mbar` is a barrier, `map` a tensor map.
Sizes and alignments are the manual's. Where it asks for more than hardware was seen to need (`wmma`, on an H200),
hardware counts, so that what is said to stop a kernel does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.isa.types import TYPES

if TYPE_CHECKING:
    from .program import FunctionFacts

BARRIER, TENSOR_MAP, LINE = (8, 8), (128, 64), (128, 128)  # bytes, alignment


class Access(NamedTuple):
    """Operand `operand` of an instruction is the address of `size` bytes, which must lie at a multiple of `align`."""

    operand: int
    size: int
    align: int


class Place(NamedTuple):
    """An access of an instruction to a place that is known: an address, or an offset in a variable."""

    instruction: ir.Instruction
    access: Access
    variable: ir.Variable | None
    offset: int


def known_places(facts: FunctionFacts) -> Iterator[Place]:
    """The accesses of a function to constant addresses and at constant distances from variables."""
    addressing: dict[int, bool] = {}  # by the form; instructions that are written alike share it
    for instruction, match in zip(facts.instructions, facts.matches, strict=True):
        if match is None:
            continue
        if id(match) not in addressing:
            addressing[id(match)] = any(expected.kind == "address" for expected in match.expected)
        for access in accesses(instruction, match) if addressing[id(match)] else ():
            operand = instruction.operands[access.operand]
            if isinstance(operand, ir.Address) and isinstance(operand.base, ir.Immediate):  # `[64]` or `[64+8]`
                yield Place(instruction, access, None, operand.base.value + operand.offset)
                continue
            pointer = facts.pointers.of_address(operand)
            if pointer is not None:
                yield Place(instruction, access, pointer.variable, pointer.offset)


def accesses(instruction: ir.Instruction, match: Match) -> Iterator[Access]:
    """The accesses of an instruction to memory, as far as its text tells of them."""
    for at, expected in enumerate(match.expected):
        if expected.kind == "address":
            found = _access(instruction, match, expected.name)
            if found is not None:
                yield Access(at, *found)


def _access(instruction: ir.Instruction, match: Match, name: str) -> tuple[int, int] | None:
    """The bytes at the address of this name, and their alignment."""
    if name == "mbar":
        return BARRIER
    if name == "map":
        return TENSOR_MAP
    words = (instruction.opcode.mnemonic, *instruction.opcode.modifiers)
    if words[0] == "multimem":
        words = words[1:]  # the same accesses, to the memories of several GPUs
    match words[0]:
        case "ld" | "ldu" | "ld_reduce" | "st" | "atom" | "red" if words[1] != "bulk":
            size = _element_bytes(words) * _elements(words)
            return (size, size) if size else None
        case "cp" if "bulk" in words:
            # The box of a tensor map decides how much a tensor copy moves.
            return (1, 128) if "tensor" in words else (_constant(instruction, match, "size") or 16, 16)
        case "cp" if "mbarrier" in words:
            return BARRIER
        case "cp":
            size = _constant(instruction, match, "size") or 0
            read = _constant(instruction, match, "read")
            return (read if name == "a" and read is not None else size, size) if size else None
        case "ldmatrix" | "stmatrix":
            return 16, 16
        case "mbarrier":
            return BARRIER
        case "wmma":
            return _matrix(words)
        case "tcgen05" if words[1] == "alloc":
            return 4, 4
        case "tensormap":
            return TENSOR_MAP
        case "prefetch" if "tensormap" in words:
            return TENSOR_MAP
        case "discard" | "applypriority" if "async" not in words:
            return LINE
        case "clusterlaunchcontrol":
            return 16, 16
    return None


def _matrix(words: tuple[str, ...]) -> tuple[int, int] | None:
    """What an H200 needs of the address of a matrix: whole lines of 8 halves, or pairs of sums, in shared memory."""
    size = _element_bytes(words)
    is_shared = any(word.startswith("shared") for word in words)
    if words[1] in ("load", "store") and size:
        is_half = words[-1] in ("f16", "bf16")
        if is_shared and words[2] in ("a", "b") and is_half:
            return size, 16
        if is_shared and words[1] == "store" and words[-1] == "f32":
            return size, 8
        return size, 4 if is_half and words[2] in ("a", "b") else size
    return None


def _element_bytes(words: tuple[str, ...]) -> int:
    types = [TYPES[word] for word in words if word in TYPES]
    return max(1, types[-1].width // 8) if types else 0


def _elements(words: tuple[str, ...]) -> int:
    return next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1)


def _constant(instruction: ir.Instruction, match: Match, name: str) -> int | None:
    """The operand of this name, if it is there and constant."""
    for operand, expected in zip(instruction.operands, match.expected, strict=True):
        if expected.name == name and isinstance(operand, ir.Immediate):
            return operand.value
    return None
