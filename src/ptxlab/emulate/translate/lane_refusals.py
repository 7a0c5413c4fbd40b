"""What of a kernel lanes cannot execute together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.translate.lane_shapes import NotTogetherError
from ptxlab.isa import Jump

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function
    from ptxlab.isa.effects import Access, Effects

MOST_INSTRUCTIONS = 1_000  # of a function that surely becomes no more text than LLVM optimizes in about a second
_COMMUTING = ("add", "min", "max", "and", "or", "xor")
_JUMPS = (None, Jump.BRANCH, Jump.RETURN, Jump.EXIT)


def refuse(function: Function) -> None:
    """Say what of a function lanes cannot do together."""
    unit = function.unit
    reasons: list[tuple[str, bool]] = [
        ("calls", len(unit.functions) > 1 or bool(unit.services)),
        ("preemption, a profile or a recording", _is_observed(function)),
        ("clusters", unit.ranked),
        ("volatile accesses", bool(function.points)),
        ("atomic operations that lanes would order otherwise", not _are_ordered_alike(function)),
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
        or effects.barrier == "cluster"
        or effects.more_registers
        or effects.fewer_registers
        or not all(map(_is_weak, effects.accesses))
    )


def _is_weak(access: Access) -> bool:
    """Whether no other thread waits for an access."""
    orders = ("relaxed",) if access.kind == "update" else ("weak", "constant")
    return not access.is_async and access.order.partition(".")[0] in orders


def is_for_each(effects: Effects, has_local: bool) -> bool:
    """Whether lanes execute an instruction one after the other: an atomic operation, or an access to own memory.

    Where there is local memory, one generic address may be that of another variable in each lane.
    """
    return any(
        access.kind == "update" or access.space == "local" or (has_local and access.space is None)
        for access in effects.accesses
    )


def _are_ordered_alike(function: Function) -> bool:
    """Whether atomic operations of lanes give what they give where threads run one after the other.

    Of each memory there is either one of them, which no lane comes to after others have; or they are additions of
    integers, or the like, that give the same in any order.
    """
    found: dict[str | None, list[int]] = {}
    for position, match in enumerate(function.matches):
        for access in match.effects.accesses if match is not None else ():
            if access.kind == "update":
                found.setdefault(access.space, []).append(position)
    if None in found:
        found = {None: [position for positions in found.values() for position in positions]}
    return all(_is_passed_once(function, ones) or _commute(function, ones) for ones in found.values())


def _is_passed_once(function: Function, positions: Sequence[int]) -> bool:
    """Whether there is one instruction, in a block that no lane comes to when another has passed it."""
    if len(set(positions)) > 1:
        return False
    number = function.live.block_of[positions[0]]
    pending = [one.number for one in function.flow.blocks if one.number >= number]
    seen = set(pending)
    while pending:
        for successor in function.flow.blocks[pending.pop()].successors:
            if successor == number:
                return False
            if successor not in seen:
                seen.add(successor)
                pending.append(successor)
    return True


def _commute(function: Function, positions: Sequence[int]) -> bool:
    """Whether all of these are one operation that gives the same in any order, and no lane reads what it gave."""
    operations, live = set(), function.live
    for position in positions:
        match = function.matches[position]
        assert match is not None
        modifiers = match.candidate.modifiers
        if modifiers.op not in _COMMUTING or modifiers.type[0] not in "usb":
            return False
        if live.writes[position] & live.after(position):
            return False
        operations.add((modifiers.op, modifiers.type))
    return len(operations) == 1
