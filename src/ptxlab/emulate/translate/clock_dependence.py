"""Which registers hold nothing but the time, or what was computed from it.

A loop that only reads the time ends up in the same state again and again, these registers aside. One whose value
goes into its next value is not among them: it counts something, if only with the help of a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab import ir
from ptxlab.ir.effects import RegisterEffects
from ptxlab.isa.special_registers import SpecialKind


def timed_registers(instructions: Sequence[ir.Instruction], effects: RegisterEffects) -> frozenset[int]:
    """The registers, by their numbers, that depend on a clock and not on what they were before."""
    leads_to: dict[int, set[int]] = {}
    clocks: set[int] = set()
    for instruction, reads, writes in zip(instructions, effects.reads, effects.writes, strict=True):
        if any(_is_clock(operand) for operand in instruction.operands):
            clocks.update(writes)
        kept = writes if instruction.guard is not None else ()
        for register in (*reads, *kept):
            leads_to.setdefault(register, set()).update(writes)
    return frozenset(register for register in _reached(clocks, leads_to) if not _comes_back(register, leads_to))


def _is_clock(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.SpecialRegister) and operand.kind is SpecialKind.CLOCK


def _reached(starts: set[int], leads_to: dict[int, set[int]]) -> set[int]:
    """These registers, and those that their values go into."""
    found: set[int] = set()
    pending = list(starts)
    while pending:
        register = pending.pop()
        if register not in found:
            found.add(register)
            pending.extend(leads_to.get(register, ()))
    return found


def _comes_back(register: int, leads_to: dict[int, set[int]]) -> bool:
    return register in _reached(leads_to.get(register, set()), leads_to)
