"""The loop that a thread goes round, and what it looks at there, for those who explain why it does not leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.loops import loops_of
from ptxlab.ir.flow import Flow, flow_of

if TYPE_CHECKING:
    from ptxlab.emulate.running import Launch

# Instructions by which a thread finds out what others have done.
_LOOKS = ("ld", "atom", "mbarrier")
_OWN = ("param", "local", "const")


@dataclass(frozen=True)
class Spin:
    """A loop, by the numbers of its first instruction and of the last one that looks at what others do."""

    start: int
    look: int | None


def spin_around(launch: Launch, place: int) -> Spin | None:
    """The smallest loop around an instruction that looks at something, or else the smallest; None if there is none."""
    places = launch.compiled.places
    function = places[place][0]
    first = next(index for index, (other, _) in enumerate(places) if other is function)
    flow = flow_of(function)
    bodies = [loop.body for loop in loops_of(flow) if _block_of(flow, place - first) in loop.body]
    spins = []
    for body in sorted(bodies, key=len):
        inside = [first + at for number in sorted(body) for at in range(*_range(flow, number))]
        looks = [number for number in inside if _looks(places[number][1])]
        spins.append(Spin(inside[0], looks[-1] if looks else None))
    return next((spin for spin in spins if spin.look is not None), spins[0] if spins else None)


def _block_of(flow: Flow, position: int) -> int:
    return next(block.number for block in flow.blocks if block.start <= position < block.end)


def _range(flow: Flow, number: int) -> tuple[int, int]:
    return flow.blocks[number].start, flow.blocks[number].end


def _looks(instruction: ir.Instruction) -> bool:
    words = instruction.opcode.modifiers
    return instruction.opcode.mnemonic in _LOOKS and not any(word.partition("::")[0] in _OWN for word in words)
