"""Noting what was found: of each pair of instructions the first race, of each instruction the first unwritten read.

Instructions of different launches that run at the same time are different ones, whatever their numbers.

Asynchronous work touches much at a time, and all of it for one reason: what threads read of it is one finding, and so
is what they write, however many instructions they need for that.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import CLUSTER_SPACE, GLOBAL_SPACE, LOAD, SHARED_SPACE, STORE, TENSOR_SPACE
from ptxlab.emulate.abi.barriers import Phase
from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.findings import (
    COLLECTIVE_ONLY,
    EXITED,
    FAILED_ONLY,
    NOT_INVALIDATED,
    RACE,
    SHUFFLED,
    STALE_MAP,
    UNCHANGED_MAP,
    UNFENCED,
    UNFENCED_TENSOR,
    UNSTARTED,
    UNWRITTEN,
    Finding,
)
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.devices import is_in_team, launch_of
from ptxlab.emulate.runtime.order.happens_before import doubt_of, is_known, uncovered_lanes
from ptxlab.emulate.runtime.order.last_waits import add_wait, note_last_wait
from ptxlab.emulate.runtime.order.map_uses import is_read_of_map
from ptxlab.emulate.runtime.order.proxies import is_fenced
from ptxlab.emulate.runtime.order.shadow import ASYNC, GENERIC, KIND, SIZE, STALE, WARP_SHIFT
from ptxlab.emulate.runtime.order.tensor_happens_before import (
    WITHOUT_FENCE,
    WITHOUT_FENCE_BEFORE,
    is_started,
    order_of,
)
from ptxlab.emulate.runtime.order.vector_clocks import FAILED
from ptxlab.isa.units.tensor_map import BYTES as MAP_BYTES
from ptxlab.native import Pointer, atomic_store, boolean, cast, native, trailing_zeros, u32, u64, unlikely

SAME, SWAPPED = 1, 2


@native
def report_race(
    thread: Pointer[Thread],
    other: Pointer[Access],
    address: u64,
    bytes: u32,
    flags: u32,
    instruction: u32,
    space: u32,
) -> None:
    """Note a race, unless these two instructions have had one, in a warp or between warps as this one is.

    Where the two are ordered, a fence between two proxies is missing.
    """
    if space == GLOBAL_SPACE and flags & ASYNC == 0 and is_read_of_map(thread, other, address):
        return
    history = thread.worker.history
    if space == GLOBAL_SPACE and other.block != u32(thread.block.number):
        end_trial(thread)
    kind: u32 = RACE
    missing: u32 = 0
    if space == TENSOR_SPACE:
        order: u32 = order_of(thread, other, flags)
        if order == WITHOUT_FENCE or order == WITHOUT_FENCE_BEFORE:  # noqa: SIM109 - native functions know no tuples
            kind = UNFENCED_TENSOR
            missing = order
            if thread.order.unfenced != 0:
                return
            thread.order.unfenced = 1
    elif flags & STALE == 0:
        kind = kind_of(thread, other, flags, space)
    warp: u32 = other.flags >> WARP_SHIFT
    number: u32 = warp * 32 + trailing_zeros(u32, other.lanes)
    if other.flags & ASYNC != 0:
        number = warp
        warp = number // 32
    elif kind == RACE or kind >= COLLECTIVE_ONLY:
        number = warp * 32 + trailing_zeros(u32, uncovered_lanes(thread, other, 0))
    is_near: u32 = u32(other.block == u32(thread.block.number) and warp == thread.number // 32)
    for index in range(history.finding_count):
        found = history.findings + index
        pairing: u32 = pairing_of(thread, found, other)
        if (found.kind == kind and found.is_near == is_near) and (
            (
                pairing & SAME != 0
                and found.access.instruction == instruction
                and found.other.instruction == other.instruction
            )
            or (
                pairing & SWAPPED != 0
                and found.access.instruction == other.instruction
                and found.other.instruction == instruction
            )
        ):
            return
        is_tensor: boolean = found.space == TENSOR_SPACE
        is_like: boolean = found.kind == kind and is_tensor == (space == TENSOR_SPACE)
        if is_like and pairing & SAME != 0 and is_same_work(found, other, flags, instruction):
            return
    if history.finding_count == history.finding_capacity:
        end_trial(thread)
        return
    found = add_finding(thread, kind, address, bytes, flags, instruction, space)
    set_other(found, other)
    found.other.thread = number
    found.is_near = is_near
    found.is_started = u32(space == TENSOR_SPACE and is_started(thread, other))
    found.missing = missing
    note_last_wait(thread, other, flags, found)
    if kind == COLLECTIVE_ONLY and found.wait.at == 0 and thread.order.wait != 0:
        add_wait(found, thread)


@native
def pairing_of(thread: Pointer[Thread], found: Pointer[Finding], other: Pointer[Access]) -> u32:
    """Whether the two accesses of a finding are of the launches of a thread and of another access, or the reverse."""
    if not unlikely(is_in_team(thread.worker)):
        return SAME | SWAPPED
    own: u32 = launch_of(thread, u32(thread.block.number))
    far: u32 = launch_of(thread, other.block)
    first: u32 = launch_of(thread, u32(found.access.block))
    second: u32 = launch_of(thread, u32(found.other.block))
    pairing: u32 = SAME if own == first and far == second else u32(0)
    return pairing | SWAPPED if own == second and far == first else pairing


@native
def kind_of(thread: Pointer[Thread], other: Pointer[Access], flags: u32, space: u32) -> u32:
    """What is wrong with the order of two accesses that conflict."""
    needs_fence: boolean = flags & (ASYNC | GENERIC) == ASYNC
    if is_known(thread, other):
        return UNFENCED if needs_fence else u32(RACE)
    doubt: u64 = doubt_of(thread, other)
    if doubt == 0:
        return RACE
    if needs_fence and not is_fenced(thread, other, flags, space, doubt):
        return UNFENCED
    return FAILED_ONLY if doubt & FAILED != 0 else u32(COLLECTIVE_ONLY)


@native
def is_same_work(found: Pointer[Finding], other: Pointer[Access], flags: u32, instruction: u32) -> boolean:
    """Whether a finding is about the same asynchronous work, and about threads that do the same to its bytes.

    In tensor memory, where all is asynchronous: whether one of the two is the same, and the other does the same.
    """
    if found.space == TENSOR_SPACE:
        return (
            (found.access.instruction == instruction and is_alike(found.other.flags, other.flags))
            or (found.other.instruction == other.instruction and is_alike(found.access.flags, flags))
            or (found.access.instruction == other.instruction and is_alike(found.other.flags, flags))
            or (found.other.instruction == instruction and is_alike(found.access.flags, other.flags))
        )
    if flags & ASYNC != other.flags & ASYNC:
        does: boolean = (found.access.flags ^ flags) & (ASYNC | KIND) == 0
        did: boolean = (found.other.flags ^ other.flags) & (ASYNC | KIND) == 0
        return (
            does and did and (found.access.instruction == instruction or found.other.instruction == other.instruction)
        )
    return False


@native(inline=True)
def is_alike(one: u32, other: u32) -> boolean:
    """Whether two accesses to tensor memory are of the same kind of operation, and both read it or both write it."""
    return (one ^ other) & SIZE == 0 and (one & KIND == LOAD) == (other & KIND == LOAD)


@native
def report_unwritten(
    thread: Pointer[Thread], address: u64, bytes: u32, flags: u32, instruction: u32, space: u32
) -> None:
    """Note a read of what no thread wrote, unless this instruction has had one."""
    add_first(thread, UNWRITTEN, address, bytes, flags, instruction, space)


@native
def report_start(thread: Pointer[Thread], address: u64, bytes: u32, flags: u32, instruction: u32) -> None:
    """Note an access to a block of the cluster that may not have started, unless this instruction has had one."""
    add_first(thread, UNSTARTED, address, bytes, flags, instruction, CLUSTER_SPACE)


@native
def report_reinitialized(thread: Pointer[Thread], offset: u64, notes: Pointer[Phase], instruction: u32) -> None:
    """Note an `mbarrier.init` where another one is that is not in use, unless there was one before."""
    found = add_first(thread, NOT_INVALIDATED, offset, 8, STORE, instruction, SHARED_SPACE)
    if cast(u64, found) != 0:
        found.mbarrier.offset = offset
        found.mbarrier.phases = notes.completed
        found.mbarrier.initialized = notes.instruction + 1


@native
def report_stale_map(
    thread: Pointer[Thread], written: Pointer[Access], address: u64, missing: u32, instruction: u32
) -> None:
    """Note a copy by a tensor map of which it may see an older version, unless that change of it has had one."""
    found = add_change(thread, STALE_MAP, written, address, instruction)
    if cast(u64, found) != 0:
        found.missing = missing


@native
def report_unchanged_map(thread: Pointer[Thread], written: Pointer[Access], address: u64, instruction: u32) -> None:
    """Note a tensor map that was written again as it was, unless the instruction that wrote it has had one."""
    add_change(thread, UNCHANGED_MAP, written, address, instruction)


@native
def add_change(
    thread: Pointer[Thread], kind: u32, written: Pointer[Access], address: u64, instruction: u32
) -> Pointer[Finding]:
    """One more finding about a change of a tensor map; null if there was one of that kind, or no more fits."""
    history = thread.worker.history
    end_trial(thread)
    nothing = cast(Pointer[Finding], 0)
    for index in range(history.finding_count):
        found = history.findings + index
        is_same: boolean = launch_of(thread, u32(found.other.block)) == launch_of(thread, written.block)
        if found.kind == kind and found.other.instruction == written.instruction and is_same:
            return nothing
    if history.finding_count == history.finding_capacity:
        return nothing
    found = add_finding(thread, kind, address, MAP_BYTES, LOAD, instruction, GLOBAL_SPACE)
    set_other(found, written)
    return found


@native
def report_absence(thread: Pointer[Thread], access: Pointer[Access], address: u64, bytes: u32) -> None:
    """Note an access that may come after the exit of a block, unless its instruction has had one."""
    found = add_first(thread, EXITED, address, bytes, access.flags, access.instruction, CLUSTER_SPACE)
    if cast(u64, found) == 0:
        return
    found.access.block = u64(access.block)
    found.access.thread = access.flags >> WARP_SHIFT
    if access.flags & ASYNC == 0:
        found.access.thread = found.access.thread * 32 + trailing_zeros(u32, access.lanes)


@native
def add_first(
    thread: Pointer[Thread], kind: u32, address: u64, bytes: u32, flags: u32, instruction: u32, space: u32
) -> Pointer[Finding]:
    """One more finding of a kind that an instruction has once; null if it has had one, or no more fits."""
    history = thread.worker.history
    capacity: u32 = history.finding_capacity
    if kind == UNWRITTEN or kind == SHUFFLED:  # noqa: SIM109 - native functions know no tuples
        capacity = capacity // 2  # the rest is for races, which matter more
        end_trial(thread)  # a block may name what an earlier one read: see `undefined`
    if history.finding_count >= capacity:
        end_trial(thread)
        return cast(Pointer[Finding], 0)
    launch: u32 = launch_of(thread, u32(thread.block.number))
    for index in range(history.finding_count):
        found = history.findings + index
        is_same: boolean = launch_of(thread, u32(found.access.block)) == launch
        if found.kind == kind and found.access.instruction == instruction and is_same:
            return cast(Pointer[Finding], 0)
    return add_finding(thread, kind, address, bytes, flags, instruction, space)


@native
def add_finding(
    thread: Pointer[Thread], kind: u32, address: u64, bytes: u32, flags: u32, instruction: u32, space: u32
) -> Pointer[Finding]:
    """One more finding, with the access that it is about."""
    history = thread.worker.history
    found = history.findings + history.finding_count
    history.finding_count += 1
    found.kind = kind
    found.access.instruction = instruction
    found.access.thread = thread.number
    found.access.flags = flags
    found.access.block = thread.block.number
    found.address = address
    found.bytes = bytes
    found.space = space
    found.turn = thread.block.cluster.turn
    return found


@native
def set_other(found: Pointer[Finding], access: Pointer[Access]) -> None:
    """Add the access of a thread that a finding is about, beside the one that was found."""
    found.other.instruction = access.instruction
    found.other.thread = (access.flags >> WARP_SHIFT) * 32 + trailing_zeros(u32, access.lanes)
    found.other.flags = access.flags
    found.other.block = u64(access.block)


@native
def end_trial(thread: Pointer[Thread]) -> None:
    """Stop a launch that several cores try: what was found depends on the order of blocks, and one core reports it."""
    if thread.worker.history.is_trial != 0:
        thread.worker.history.is_serial = 1
        atomic_store(thread.worker.stop, 1)
