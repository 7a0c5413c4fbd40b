"""Which loads bring fragments of MMAs by a warp: into registers that nothing reads but such MMAs, or copies for them.

The order of instructions does not matter here: every instruction that reads a register counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.ir.effects import registers_in
from ptxlab.isa import Match, Operation
from ptxlab.isa.units import tensor_map

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

# The types of MMAs that have one of their own in tensor maps; what has none is copied as integers.
MAPPED = {"f16": tensor_map.F16, "bf16": tensor_map.BF16, "tf32": tensor_map.F32}

_ROW_FOR_EACH_QUAD = "m16n8"  # shapes of which each register of A and B has, in lane `l`, an element of row `l / 4`


class Fragment(NamedTuple):
    """What a register is to the MMAs that read it."""

    type: str  # of its elements
    has_quads: bool  # four lanes have elements of one row, for all of eight rows


class Fragments:
    """The fragments among the registers of a function."""

    def __init__(self, function: Function) -> None:
        self._uses: dict[int, set[Fragment | None]] = {}  # None: something else reads it
        self._copies: dict[int, set[int]] = {}
        for position, instruction in enumerate(function.instructions):
            match = function.matches[position]
            fragments = _read_by_mma(instruction, match)
            copied = _copied_to(instruction, match)
            for register in function.effects.reads[position]:
                if copied is not None:
                    self._copies.setdefault(register, set()).add(copied)
                else:
                    self._uses.setdefault(register, set()).add(fragments.get(register))

    def loaded_by(self, instruction: ir.Instruction) -> Fragment | None:
        """What all registers that an instruction loads are a fragment of."""
        found = {use for register in registers_in(instruction.operands[0]) for use in self._used_as(register.index)}
        return found.pop() if len(found) == 1 else None

    def _used_as(self, register: int) -> set[Fragment | None]:
        """What a register is used as, itself or copied."""
        reached, pending = set[int](), [register]
        while pending:
            one = pending.pop()
            if one not in reached:
                reached.add(one)
                pending.extend(self._copies.get(one, ()))
        return {use for one in reached for use in self._uses.get(one, ())}


def _read_by_mma(instruction: ir.Instruction, match: Match | None) -> dict[int, Fragment]:
    """The registers that an MMA has for A or B, and for nothing else."""
    if match is None or match.effects.mma is None or match.effects.steps:
        return {}
    chosen = match.candidate.chosen
    has_quads = (chosen.get("shape") or "").startswith(_ROW_FOR_EACH_QUAD)
    found: dict[int, set[Fragment | None]] = {}
    for operand, expected in zip(instruction.operands, match.expected, strict=True):
        type = chosen.get(f"{expected.name}type") if expected.name in ("a", "b") else None
        for register in registers_in(operand) if expected.role != "write" else ():
            found.setdefault(register.index, set()).add(Fragment(type, has_quads) if type else None)
    return {register: use for register, uses in found.items() if len(uses) == 1 and (use := next(iter(uses)))}


def _copied_to(instruction: ir.Instruction, match: Match | None) -> int | None:
    """The register to which an instruction copies another one."""
    if match is None or match.form.computes is not Operation.COPY or instruction.guard is not None:
        return None
    result, *sources = instruction.operands
    is_plain = isinstance(result, ir.Register) and len(sources) == 1 and isinstance(sources[0], ir.Register)
    return result.index if isinstance(result, ir.Register) and is_plain else None
