"""The two accesses of a race, and why it may do no harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.memory_names import name_bytes
from ptxlab.emulate.explain.operations import operation_of
from ptxlab.emulate.explain.paths import Paths
from ptxlab.emulate.explain.snapshots import access_fact, block_name, companion, thread_name, thread_name_in_block
from ptxlab.emulate.runtime.order import reports, shadow
from ptxlab.ir.flow import flow_of
from ptxlab.isa.async_operation import AsyncOperation
from ptxlab.report import Label
from ptxlab.report.reader import spell_option

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_DOES = {address_spaces.LOAD: "reads", address_spaces.STORE: "writes", address_spaces.ATOMIC: "changes"}
_ORDERED = (reports.UNFENCED, reports.UNFENCED_TENSOR, reports.COLLECTIVE_ONLY, reports.FAILED_ONLY)
_DID = {address_spaces.LOAD: "read", address_spaces.STORE: "wrote", address_spaces.ATOMIC: "changed"}


@dataclass(frozen=True)
class Party:
    """One of the two accesses of a race."""

    instruction: int
    thread: int
    block: int
    flags: int

    @property
    def kind(self) -> int:
        return self.flags & shadow.KIND

    @property
    def does(self) -> str:
        """`reads`, `writes` or `changes`"""
        return _DOES[self.kind]

    @property
    def did(self) -> str:
        """`read`, `wrote` or `changed`"""
        return _DID[self.kind]

    @property
    def is_copy(self) -> bool:
        """Whether it is done in the background: by `cp.async`, or by another asynchronous operation."""
        return bool(self.flags & shadow.COPY)

    @property
    def is_async(self) -> bool:
        """Whether it is done through the async proxy."""
        return bool(self.flags & shadow.ASYNC)

    def fact(self, launch: RunningLaunch) -> dict[str, int]:
        """Where it is, for programs: see `access_fact`."""
        return access_fact(launch, self.instruction, self.block, self.thread)


@dataclass(frozen=True)
class Race:
    """Two accesses without the order that they need, as they are named; which came first may be chance."""

    launch: RunningLaunch
    kind: int  # as `runtime.order.reports` has it
    space: int
    bytes: str  # the bytes, or words of tensor memory, that both access
    earlier: Party
    later: Party
    is_started: bool  # the earlier is an asynchronous operation, ordered but not known to be complete
    is_late: bool  # the access that was found first is an asynchronous operation that may be in flight still
    is_of_next: bool  # the later one is of the next iteration of a loop, and above the earlier in the file

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
        return not Paths(self.launch.compiled).is_synchronized(above, below)

    @property
    def in_thread(self) -> bool:
        """Whether both are by one thread."""
        return self.in_block and self.earlier.thread == self.later.thread

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
        return thread_name(self.launch, self.earlier.block, self.earlier.thread)

    @property
    def second(self) -> str:
        """`thread (1,0,0) of the same block`; `thread (1,0,0) of block (0,0,0)` where it is shown above the first"""
        if self.is_upwards:
            return thread_name(self.launch, self.later.block, self.later.thread)
        return self._below(self.later)

    def _below(self, party: Party) -> str:
        block = "the same block" if self.in_block else block_name(self.launch, party.block)
        return f"{thread_name_in_block(self.launch, party.thread)} of {block}"

    @property
    def other(self) -> str:
        """The second, or `the same thread`"""
        return "the same thread" if self.in_thread and not self.is_upwards else self.second

    def operation(self, party: Party) -> AsyncOperation:
        """The asynchronous operation that one of them is."""
        return operation_of(self.launch.compiled.effects(party.instruction))

    def at_earlier(self, text: str) -> list[Label]:
        """A label at the first of the two instructions."""
        span = self.launch.span_of(self.earlier.instruction)
        return [] if span is None else [Label(span, text)]


def replay(launch: RunningLaunch) -> list[str]:
    """A note on how to see what a launch found again, where that needs a seed."""
    return ["replay with " + spell_option(f"--seed {launch.seed}", f"seed={launch.seed}")] if launch.seed else []


def parties_of(found: StructArray, number: int) -> tuple[Party, Party]:
    """The two accesses that a finding is about, the earlier one first."""
    names = ("instruction", "thread", "block", "flags")
    later = Party(*(found.get(name, number) for name in names))
    return Party(*(found.get(f"other_{name}", number) for name in names)), later


def race_of(launch: RunningLaunch, found: StructArray, number: int) -> Race:
    """The race that a finding is; where it is chance which access came first, in the order in which no barrier is."""
    earlier, later = parties_of(found, number)
    kind, is_late, is_started = found.get("kind", number), earlier.is_copy, bool(found.get("is_started", number))
    is_same = (earlier.block, earlier.thread) == (later.block, later.thread)
    is_ordered = is_same or is_started or kind in _ORDERED
    is_of_next = False
    if not is_ordered:
        if later.instruction < earlier.instruction:
            earlier, later = later, earlier
        is_of_next = _is_of_next_iteration(launch, earlier, later)
        if is_of_next:
            earlier, later, is_late = later, earlier, False
    bytes = bytes_of(launch, found, number)
    return Race(launch, kind, found.get("space", number), bytes, earlier, later, is_started, is_late, is_of_next)


def _is_of_next_iteration(launch: RunningLaunch, above: Party, below: Party) -> bool:
    """Whether barriers order two accesses as in the file, but not the one below before the next one above in a loop."""
    code, paths = launch.compiled.instructions, Paths(launch.compiled)
    if above.block != below.block or above.is_async or below.is_async:
        return False
    if code[above.instruction][0] is not code[below.instruction][0]:
        return False
    if not paths.is_separated(above.instruction, below.instruction):
        return False
    if above.is_copy:
        unit = launch.compiled.effects(above.instruction).steps[0].unit
        if paths.signals_after(above.instruction, unit, below.instruction).places:
            return False
    return not paths.is_separated(below.instruction, above.instruction)


def bytes_of(launch: RunningLaunch, found: StructArray, number: int) -> str:
    """The bytes that a finding is about."""
    names = ("space", "address", "bytes", "block")
    return name_bytes(launch, *(found.get(name, number) for name in names))


def are_companions(launch: RunningLaunch, one: Party, other: Party) -> bool:
    """Whether two accesses are by blocks of one cluster."""
    return companion(launch, one.block, 0) == companion(launch, other.block, 0)


def excuse(launch: RunningLaunch, earlier: Party, later: Party) -> str | None:
    """Why a race does no harm on the hardware that there is, if so: it is a warning then."""
    instructions = [launch.compiled.instructions[party.instruction][1] for party in (earlier, later)]
    kinds = [earlier.kind, later.kind]
    if earlier.flags & later.flags & shadow.STRONG:
        scope = shadow.CLUSTER if are_companions(launch, earlier, later) else shadow.WIDE
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
        if addresses[0] is not None and addresses[0] == addresses[1] and _is_straight(launch, earlier, later):
            return "harmless as long as the lanes of the warp stay together, which nothing guarantees"
    return None


def _is_straight(launch: RunningLaunch, earlier: Party, later: Party) -> bool:
    """Whether no branch or label is between two instructions, so that lanes which run the first run the second."""
    code = launch.compiled.instructions
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
