"""The two accesses of a race, and why it may do no harm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ptxlab import ir
from ptxlab.emulate.abi import address_spaces, findings
from ptxlab.emulate.explain.found import Found, Party
from ptxlab.emulate.explain.snapshots import block_name, companion, thread_name_in_block
from ptxlab.emulate.runtime.order import shadow
from ptxlab.ir.flow import flow_of
from ptxlab.isa.async_operation import AsyncOperation
from ptxlab.report import Label

_ORDERED = (findings.UNFENCED, findings.UNFENCED_TENSOR, findings.COLLECTIVE_ONLY, findings.FAILED_ONLY)


@dataclass(frozen=True)
class _Named:
    """The accesses of a race in the order in which they are named."""

    earlier: Party
    later: Party
    is_late: bool
    is_of_next: bool


class Race(Found):
    """Two accesses without the order that they need, as they are named; which came first may be chance."""

    @property
    def earlier(self) -> Party:
        return self._named.earlier

    @property
    def later(self) -> Party:
        return self._named.later

    @property
    def is_started(self) -> bool:
        """Whether the earlier is an asynchronous operation, ordered but not known to be complete."""
        return bool(self.record.is_started)

    @property
    def is_late(self) -> bool:
        """Whether the access that was found first is an asynchronous operation that may be in flight still."""
        return self._named.is_late

    @property
    def is_of_next(self) -> bool:
        """Whether the later one is of the next iteration of a loop, and above the earlier in the file."""
        return self._named.is_of_next

    @property
    def facts(self) -> list[dict[str, int]]:
        """Both accesses by numbers: which instructions of which threads, and the bytes."""
        place = {"address": self.record.address, "bytes": self.record.bytes}
        return [{**party.fact(), **place} for party in self.parties]

    @cached_property
    def _named(self) -> _Named:
        """Where it is chance which access came first, in the order in which no barrier is."""
        (earlier, later), is_late = self.parties, self.other.is_copy
        if earlier.is_by_thread_of(later) or self.is_started or self.kind in _ORDERED:
            return _Named(earlier, later, is_late, is_of_next=False)
        if later.instruction < earlier.instruction:
            earlier, later = later, earlier
        if self._is_of_next_iteration(earlier, later):
            return _Named(later, earlier, is_late=False, is_of_next=True)
        return _Named(earlier, later, is_late, is_of_next=False)

    def _is_of_next_iteration(self, above: Party, below: Party) -> bool:
        """Whether barriers order both as in the file, but not the one below before the next one above in a loop."""
        code, paths = self.launch.compiled.instructions, self.paths
        if above.block != below.block or above.is_async or below.is_async:
            return False
        if code[above.instruction][0] is not code[below.instruction][0]:
            return False
        if not paths.is_separated(above.instruction, below.instruction):
            return False
        if above.is_copy:
            unit = above.effects.steps[0].unit
            if paths.signals_after(above.instruction, unit, below.instruction).places:
                return False
        return not paths.is_separated(below.instruction, above.instruction)

    @property
    def in_block(self) -> bool:
        """Whether both are by threads of one block."""
        return self.earlier.block == self.later.block

    @property
    def lacks_barrier(self) -> bool:
        """Whether an operation starts with no synchronization since the access above it in the file."""
        above, below = self.earlier.instruction, self.later.instruction
        if not (self.in_block and self.is_late and self.later.is_copy) or self.earlier.is_copy:
            return False
        return not self.paths.is_synchronized(above, below)

    @property
    def in_thread(self) -> bool:
        """Whether both are by one thread."""
        return self.earlier.is_by_thread_of(self.later)

    @property
    def is_upwards(self) -> bool:
        """Whether the second is shown above the first."""
        first, second = (self.launch.shown_at(party.instruction) for party in (self.earlier, self.later))
        if first is None or second is None or self.earlier.instruction == self.later.instruction:
            return False
        return first.source is not second.source or second.start <= first.start

    @property
    def first(self) -> str:
        """`thread (0,0,0) of block (0,0,0)`; `thread (0,0,0) of the same block` where it is shown below the second"""
        if self.is_upwards:
            return "the same thread" if self.in_thread else self._below(self.earlier)
        return self.earlier.who

    @property
    def second(self) -> str:
        """`thread (1,0,0) of the same block`; `thread (1,0,0) of block (0,0,0)` where it is shown above the first"""
        if self.is_upwards:
            return self.later.who
        return self._below(self.later)

    def _below(self, party: Party) -> str:
        block = "the same block" if self.in_block else block_name(self.launch, party.block)
        return f"{thread_name_in_block(self.launch, party.thread)} of {block}"

    @property
    def second_thread(self) -> str:
        """The second, or `the same thread`"""
        return "the same thread" if self.in_thread and not self.is_upwards else self.second

    def operation(self, party: Party) -> AsyncOperation:
        """The asynchronous operation that one of them is."""
        return party.operation

    def at_earlier(self, text: str) -> list[Label]:
        """A label at the first of the two instructions."""
        return self.label(self.earlier.instruction, text)


def are_companions(one: Party, other: Party) -> bool:
    """Whether two accesses are by blocks of one cluster."""
    return companion(one.launch, one.block, 0) == companion(other.launch, other.block, 0)


def excuse(race: Race) -> str | None:
    """Why a race does no harm on the hardware that there is, if so: it is a warning then."""
    earlier, later = race.earlier, race.later
    instructions = [race.launch.compiled.instructions[party.instruction][1] for party in (earlier, later)]
    kinds = [earlier.kind, later.kind]
    if earlier.flags & later.flags & shadow.STRONG:
        scope = shadow.CLUSTER if are_companions(earlier, later) else shadow.WIDE
        in_scope = earlier.block == later.block or earlier.flags & later.flags & scope
        if in_scope and any("cas" in instruction.opcode.modifiers for instruction in instructions):
            return "harmless where the `cas` changes only some of its bytes, and tries again if others have changed"
        return None
    if address_spaces.LOAD in kinds and address_spaces.ATOMIC in kinds:
        change = instructions[kinds.index(address_spaces.ATOMIC)]
        if "cas" in change.opcode.modifiers:
            return "harmless where the value read only goes into the `cas`, which tries again if it is stale"
        return None
    same_warp = earlier.block == later.block and earlier.thread // 32 == later.thread // 32
    if same_warp and kinds == [address_spaces.LOAD, address_spaces.STORE]:
        addresses = [_address(instruction) for instruction in instructions]
        if addresses[0] is not None and addresses[0] == addresses[1] and _is_straight(race):
            return "harmless as long as the lanes of the warp stay together, which nothing guarantees"
    return None


def _is_straight(race: Race) -> bool:
    """Whether no branch or label is between two instructions, so that lanes which run the first run the second."""
    code, earlier, later = race.launch.compiled.instructions, race.earlier, race.later
    function = code[earlier.instruction][0]
    first = next(number for number, (owner, _) in enumerate(code) if owner is function)
    return any(
        block.start <= earlier.instruction - first and later.instruction - first < block.end
        for block in flow_of(function).blocks
        if earlier.instruction - first < block.end
    )


def _address(instruction: ir.Instruction) -> tuple[int, int] | None:
    """The register and the offset of an address."""
    for operand in instruction.operands:
        if isinstance(operand, ir.Address) and isinstance(operand.base, ir.Register):
            return operand.base.index, operand.offset
    return None
