"""Synchronization of which there is one side only: a release that is observed without an acquire, or the reverse.

Two strong accesses never race, yet what a strong read returns may be older than what its thread has reason to expect:
it has observed a flag that was written after the value, and one of both sides orders, by a release, an acquire or a
fence. Then the other side was forgotten. Where neither side orders, both are relaxed on purpose.

What one thread has observed, all threads of its block have after a barrier: in the last block of a reduction, one
thread counts, and others read what was counted.

A read in a loop around one address polls, and reads again what was too old. Of atomic operations, which always find the
latest value, only the order among each other is in question; it mostly does not matter. It counts where the thread took
over something: by an acquire, or by a `cas` that observed a release.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import ATOMIC, CLUSTER_SPACE, OFFSET_MASK, STORE
from ptxlab.emulate.abi.clocks import Access, SyncVariable, SyncVariables
from ptxlab.emulate.abi.findings import ONE_SIDED
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.thread_parts import OBSERVATIONS, Observation
from ptxlab.emulate.runtime.order.access_history import comes_after, is_compatible
from ptxlab.emulate.runtime.order.happens_before import is_known
from ptxlab.emulate.runtime.order.observations import NEITHER, slot_for
from ptxlab.emulate.runtime.order.release_acquire import find_sync_variable
from ptxlab.emulate.runtime.order.reports import add_first, set_other
from ptxlab.emulate.runtime.order.shadow import ACQUIRE, ASYNC, COPY, KIND, OBJECT, POLLS, REDUCTION, STRONG, WARP_SHIFT
from ptxlab.emulate.runtime.order.vector_clocks import THREAD, key_of
from ptxlab.native import Pointer, address_of, boolean, cast, native, trailing_zeros, u32, u64

# The side that orders, beside NEITHER and READ_FENCED of `observations`.
WRITE_FENCED = 1  # a fence comes before the write
WRITE_RELEASES = 2
READ_ACQUIRES = 4
CAS_AFTER_RELEASE = 5  # the write releases, and the read is a `cas` that succeeded


@native
def note_strong(
    thread: Pointer[Thread],
    cell: Pointer[Access],
    variables: Pointer[SyncVariables],
    address: u64,
    bytes: u32,
    flags: u32,
    instruction: u32,
    space: u32,
) -> None:
    """A strong access of a kernel that synchronizes: what it observes, and whether that may be too old."""
    if flags & (STRONG | OBJECT | ASYNC | REDUCTION) != STRONG or flags & KIND == STORE or cell.epoch == 0:
        return
    if cell.flags & (STRONG | COPY | ASYNC) != STRONG or is_known(thread, cell):
        return
    if not is_compatible(thread, cell, flags) or comes_after(thread, cell, cell, flags, space):
        return
    if flags & (ACQUIRE | POLLS) == 0:
        own = cast(Pointer[Observation], thread.order.observations)
        seen = find_expected(own, thread.order.observed, cell, address, flags)
        if cast(u64, seen) == 0:
            shared = cast(Pointer[Observation], thread.block.order.observations)
            seen = find_expected(shared, thread.block.order.observed, cell, address, flags)
        if cast(u64, seen) != 0:
            report_one_sided(thread, cell, seen, address, bytes, flags, instruction, space)
            return
    start: u64 = address & OFFSET_MASK if space == CLUSTER_SPACE else address
    observe(thread, cell, find_sync_variable(variables, start), address, flags, instruction)


@native
def find_expected(
    observations: Pointer[Observation], observed: u32, cell: Pointer[Access], address: u64, flags: u32
) -> Pointer[Observation]:
    """What was observed elsewhere, and was written after the last write to an address; null if nothing was."""
    for index in range(min(observed, u32(OBSERVATIONS))):
        if observations[index].address != address and is_expected(cell, observations + index, flags):
            return observations + index
    return cast(Pointer[Observation], 0)


@native
def is_expected(cell: Pointer[Access], seen: Pointer[Observation], flags: u32) -> boolean:
    """Whether a write came before one that was observed, and one side of that synchronizes."""
    if cell.block != seen.block or cell.flags >> WARP_SHIFT != seen.warp or cell.lanes & seen.lanes == 0:
        return False
    if cell.epoch > seen.epoch or seen.side == NEITHER:
        return False
    if flags & KIND == ATOMIC:
        return seen.side >= READ_ACQUIRES
    return cell.flags & KIND == STORE


@native
def observe(
    thread: Pointer[Thread],
    cell: Pointer[Access],
    variable: Pointer[SyncVariable],
    address: u64,
    flags: u32,
    instruction: u32,
) -> None:
    """Remember a write that was observed."""
    own = cast(Pointer[Observation], thread.order.observations)
    seen = slot_for(own, address_of(thread.order.observed), address)
    thread.block.order.has_observed = 1
    seen.address = address
    seen.epoch = cell.epoch
    seen.block = cell.block
    seen.lanes = cell.lanes
    seen.warp = cell.flags >> WARP_SHIFT
    seen.read = instruction
    seen.write = cell.instruction
    seen.side = NEITHER if flags & ACQUIRE == 0 else u32(READ_ACQUIRES)
    writer: u64 = key_of(u64(cell.block), THREAD + seen.warp * 32 + trailing_zeros(u32, cell.lanes))
    if cast(u64, variable) == 0 or variable.writer != writer or flags & ACQUIRE != 0:
        return
    if variable.is_released != 0:
        seen.side = CAS_AFTER_RELEASE if flags & (KIND | POLLS) == ATOMIC | POLLS else u32(WRITE_RELEASES)
    elif variable.known.count + variable.system.count + variable.close.count + variable.near.count != 0:
        seen.side = WRITE_FENCED
        seen.epoch -= 1  # what is between the fence and the write has its epoch


@native
def report_one_sided(
    thread: Pointer[Thread],
    cell: Pointer[Access],
    seen: Pointer[Observation],
    address: u64,
    bytes: u32,
    flags: u32,
    instruction: u32,
    space: u32,
) -> None:
    """Note a read of what may be too old, unless its instruction has had one."""
    found = add_first(thread, ONE_SIDED, address, bytes, flags & ~u32(POLLS), instruction, space)
    if cast(u64, found) == 0:
        return
    set_other(found, cell)
    found.observation.read = seen.read
    found.observation.write = seen.write
    found.observation.side = seen.side
