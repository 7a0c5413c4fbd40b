"""The two accesses of a race, and why it may do no harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import state
from ptxlab.emulate.abi.structs import Record
from ptxlab.emulate.explain.snapshots import companion
from ptxlab.emulate.runtime.order import shadow
from ptxlab.ir.flow import flow_of

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import Launch


@dataclass(frozen=True)
class Party:
    """One of the two accesses of a race."""

    instruction: int
    thread: int
    block: int
    about: int

    @property
    def kind(self) -> int:
        return self.about & shadow.KIND

    @property
    def is_copy(self) -> bool:
        """Whether it is done in the background: by `cp.async`, or by other asynchronous work."""
        return bool(self.about & shadow.COPY)

    @property
    def is_work(self) -> bool:
        return bool(self.about & shadow.ASYNC)


def parties_of(found: Record, number: int) -> tuple[Party, Party]:
    """The two accesses that a finding is about, the earlier one first."""
    names = ("instruction", "thread", "block", "about")
    later = Party(*(found.get(name, number) for name in names))
    return Party(*(found.get(f"other_{name}", number) for name in names)), later


def are_companions(launch: Launch, one: Party, other: Party) -> bool:
    """Whether two accesses are by blocks of one cluster."""
    return companion(launch, one.block, 0) == companion(launch, other.block, 0)


def excuse(launch: Launch, earlier: Party, later: Party) -> str | None:
    """Why a race does no harm on the hardware that there is, if so: it is a warning then."""
    instructions = [launch.compiled.places[party.instruction][1] for party in (earlier, later)]
    kinds = [earlier.kind, later.kind]
    if earlier.about & later.about & shadow.STRONG:
        scope = shadow.CLUSTER if are_companions(launch, earlier, later) else shadow.WIDE
        in_scope = earlier.block == later.block or earlier.about & later.about & scope
        if in_scope and any("cas" in instruction.opcode.modifiers for instruction in instructions):
            return "harmless where the `cas` changes only some of its bytes, and tries again if others have changed"
        return None
    if state.LOAD in kinds and state.ATOMIC in kinds:
        change = instructions[kinds.index(state.ATOMIC)]
        if "cas" in change.opcode.modifiers:
            return "harmless where the value read only goes into the `cas`, which tries again if it is stale"
        return None
    same_warp = earlier.block == later.block and earlier.thread // 32 == later.thread // 32
    if same_warp and kinds == [state.LOAD, state.STORE]:
        places = [_place(instruction) for instruction in instructions]
        if places[0] is not None and places[0] == places[1] and _is_straight(launch, earlier, later):
            return "harmless as long as the lanes of the warp stay together, which nothing guarantees"
    return None


def _is_straight(launch: Launch, earlier: Party, later: Party) -> bool:
    """Whether no branch or label is between two instructions, so that lanes which run the first run the second."""
    places = launch.compiled.places
    function = places[earlier.instruction][0]
    first = next(number for number, (owner, _) in enumerate(places) if owner is function)
    return any(
        block.start <= earlier.instruction - first and later.instruction - first < block.end
        for block in flow_of(function).blocks
        if earlier.instruction - first < block.end
    )


def _place(instruction: ir.Instruction) -> tuple[int, int] | None:
    """The register and the offset of an address."""
    for operand in instruction.operands:
        if isinstance(operand, ir.Address) and isinstance(operand.base, ir.Register):
            return operand.base.index, operand.offset
    return None
