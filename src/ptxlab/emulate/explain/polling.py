"""The loop that a thread is in, and what it polls there, for the explanation of a hang or a timeout."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.translate.loops import loops_of
from ptxlab.emulate.translate.polled import polled_address, reads_shared
from ptxlab.ir.effects import RegisterEffects
from ptxlab.ir.flow import Flow, flow_of
from ptxlab.ir.shapes import match_of

if TYPE_CHECKING:
    from ptxlab.emulate.explain.snapshots import ThreadSnapshot
    from ptxlab.emulate.host.running import RunningLaunch


@dataclass(frozen=True)
class Spin:
    """A loop, by the numbers of its first instruction, of the last one that polls what others do, and of all."""

    start: int
    look: int | None
    inside: tuple[int, ...]


def spin_around(launch: RunningLaunch, instruction: int) -> Spin | None:
    """The smallest loop around an instruction that polls something, or else the smallest; None if there is none."""
    code = launch.compiled.instructions
    function = code[instruction][0]
    first = next(index for index, (other, _) in enumerate(code) if other is function)
    flow = flow_of(function)
    bodies = [loop.body for loop in loops_of(flow) if _block_of(flow, instruction - first) in loop.body]
    spins = []
    for body in sorted(bodies, key=len):
        inside = [first + at for number in sorted(body) for at in range(*_range(flow, number))]
        looks = [number for number in inside if _looks(code[number][1])]
        spins.append(Spin(inside[0], looks[-1] if looks else None, tuple(inside)))
    return next((spin for spin in spins if spin.look is not None), spins[0] if spins else None)


def polled_by(launch: RunningLaunch, thread: ThreadSnapshot, spin: Spin) -> int | None:
    """The generic address that a thread polls in a loop, if the loop does not change it: then its frame has it."""
    code = launch.compiled.instructions
    if spin.look is None:
        return None
    _, look = code[spin.look]
    address = polled_address(look, match_of(look))
    if address is None:
        return None
    space = next((word for word in look.opcode.modifiers if word.partition("::")[0] in ("shared", "global")), "")
    if isinstance(address.base, ir.VariableReference):
        space = address.base.variable.state_space
        base = launch.compiled.variables.address(address.base.variable) + address.base.offset
    elif isinstance(address.base, ir.Register):
        slot = dict(launch.compiled.facts["address_slots"]).get(spin.look)
        loop = [code[number][1] for number in spin.inside]
        writes = RegisterEffects(loop, [match_of(instruction) for instruction in loop]).writes
        if slot is None or any(address.base.index in written for written in writes):
            return None
        base = int.from_bytes(ctypes.string_at(thread.frame + slot, address.base.type.width // 8), "little")
        if space in ("shared", "shared::cta"):
            base &= address_spaces.OFFSET_MASK  # it may have the rank of the block, too
    else:
        return None
    return base + address.offset + address_spaces.SHARED_WINDOW * space.startswith("shared")


def _block_of(flow: Flow, position: int) -> int:
    return next(block.number for block in flow.blocks if block.start <= position < block.end)


def _range(flow: Flow, number: int) -> tuple[int, int]:
    return flow.blocks[number].start, flow.blocks[number].end


def _looks(instruction: ir.Instruction) -> bool:
    """Whether a thread finds out by it what others have done."""
    match = match_of(instruction)
    return match is not None and reads_shared(match.effects.accesses)
