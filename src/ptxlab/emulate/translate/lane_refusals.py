"""What of a kernel lanes cannot execute together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.translate.lane_text import NotTogetherError
from ptxlab.isa import Jump

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function
    from ptxlab.isa.effects import Access, Effects

MOST_INSTRUCTIONS = 1_000  # of a function that surely becomes no more text than LLVM optimizes in about a second
_JUMPS = (None, Jump.BRANCH, Jump.RETURN, Jump.EXIT)


def refuse(function: Function) -> None:
    """Say what of a function lanes cannot do together."""
    unit = function.unit
    reasons: list[tuple[str, bool]] = [
        ("calls", len(unit.functions) > 1 or bool(unit.services)),
        ("preemption, a profile or a recording", _is_observed(function)),
        ("clusters", unit.ranked),
        ("atomic operations or strong accesses", unit.talks or bool(function.points)),
        ("local memory", bool(function.locals.size)),
        ("the carry flag", function.uses_carry),
        ("its size", unit.flat or len(function.instructions) > MOST_INSTRUCTIONS),
    ]
    for reason, holds in reasons:
        if holds:
            raise NotTogetherError(reason)
    for instruction, match in zip(function.instructions, function.matches, strict=True):
        if instruction.opcode.jump not in _JUMPS or (match is not None and not _is_plain(match.effects)):
            raise NotTogetherError(instruction.opcode.text)


def _is_observed(function: Function) -> bool:
    unit = function.unit
    return bool(unit.preemption or unit.counting.profile or function.recording)


def _is_plain(effects: Effects) -> bool:
    """Whether an instruction only computes, or loads and stores."""
    return not (
        effects.steps
        or effects.fences
        or effects.converges
        or effects.barrier == "cluster"
        or effects.elects
        or effects.more_registers
        or effects.fewer_registers
        or effects.mma
        or not all(map(_is_weak, effects.accesses))
    )


def _is_weak(access: Access) -> bool:
    """Whether an access is a load or store that no other thread waits for."""
    is_plain = access.kind != "update" and not access.is_async and access.space != "local"
    return is_plain and access.order in ("weak", "constant")
