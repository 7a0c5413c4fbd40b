"""What arrivals at an mbarrier hand over to waits for its phase: those of threads, copies, asynchronous operations."""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.runtime.order.release_acquire import (
    find_sync_variable,
    hand_over,
    sync_variable_at,
)
from ptxlab.emulate.runtime.order.synchronization import add_copies
from ptxlab.emulate.runtime.order.vector_clocks import (
    COPIES,
    PHASES,
    RANK_IN_CHANNEL,
    advance,
    join,
    join_tensor_entries,
    key_of,
)
from ptxlab.isa.chapters.mbarrier import IN_CLUSTER, RELAXED_ORDER
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64

# Added to the offset of an mbarrier: its synchronization variables are not that of its word. One is for arrivals of its
# own block and of asynchronous operations, one for those of other blocks of the cluster.
MBARRIER = 1 << 40
FAR_ARRIVALS = 2 << 40


@native
def begin_phases(thread: Pointer[Thread], block: Pointer[Block], offset: u64) -> None:
    """An mbarrier starts or ends: nothing that happened with the one before it matters."""
    if thread.worker.checks == 0:
        return
    for replica in range(2):
        variable = find_sync_variable(address_of(block.order.variables), offset + MBARRIER * (u64(replica) + 1))
        if cast(u64, variable) != 0:
            variable.known.count = 0
            variable.near.count = 0


@native
def release_to_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64, order: u32) -> None:
    """A thread arrives at an mbarrier: what it did is handed over when the phase completes, if the scope reaches it.

    What is `.relaxed` hands over what is before a fence, as far as that reaches (PTX ISA 8.8).
    """
    is_far: boolean = thread.block != block
    if thread.worker.checks == 0 or (is_far and order & IN_CLUSTER == 0):
        return
    is_relaxed: boolean = order & RELAXED_ORDER != 0
    if is_relaxed and (thread.order.fence.cluster if is_far else thread.order.fence.block) == 0:
        return
    variable = sync_variable_at(address_of(block.order.variables), offset + (FAR_ARRIVALS if is_far else u64(MBARRIER)))
    if cast(u64, variable) == 0:
        return
    if is_relaxed:
        fenced = address_of(thread.order.fenced.block)
        if is_far:
            fenced = address_of(thread.order.fenced.cluster)
        join(address_of(variable.known), fenced)
        return
    hand_over(thread, address_of(variable.known), thread.order.epoch)
    add_copies(address_of(variable.known), thread)
    thread.order.epoch += 1


@native
def release_copies(thread: Pointer[Thread], block: Pointer[Block], offset: u64, serial: u32) -> None:
    """An arrival that follows copies: those are handed over, and nothing else that the thread did (PTX ISA 8.9.1.1)."""
    if thread.worker.checks == 0:
        return
    variable = sync_variable_at(address_of(block.order.variables), offset + MBARRIER)
    if cast(u64, variable) != 0:
        advance(address_of(variable.known), key_of(thread.block.number, COPIES + thread.number), u64(serial))


@native
def release_work(block: Pointer[Block], offset: u64, by: u64, number: u32) -> None:
    """Bulk copies that another block, `by`, or this one started are done, up to a number: that much is handed over."""
    if block.worker.checks == 0:
        return
    variable = sync_variable_at(address_of(block.order.variables), offset + MBARRIER)
    if cast(u64, variable) != 0:
        advance(address_of(variable.known), key_of(by, channel_of(block, offset)), u64(number))


@native(inline=True)
def channel_of(block: Pointer[Block], offset: u64) -> u32:
    """The channel of asynchronous work that an mbarrier of a block of the cluster hears of."""
    return PHASES + (block.rank << RANK_IN_CHANNEL) + u32(offset >> 3)


@native
def order_phase(block: Pointer[Block], offset: u64) -> None:
    """A phase has completed: what came with its arrivals can be acquired."""
    if block.worker.checks == 0:
        return
    for replica in range(min(block.cluster.count, u32(2))):
        variable = find_sync_variable(address_of(block.order.variables), offset + MBARRIER * (u64(replica) + 1))
        if cast(u64, variable) != 0:
            join(address_of(variable.near), address_of(variable.known))
            variable.known.count = 0


@native
def acquire_from_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64, order: u32) -> None:
    """A thread has seen a phase complete: it knows what came before the arrivals, at once or at its next fence."""
    if thread.worker.checks == 0:
        return
    near = address_of(thread.order.known)
    far = address_of(thread.order.known)
    if order & RELAXED_ORDER != 0:
        near = address_of(thread.order.pending.block)
        far = address_of(thread.order.pending.cluster)
    variable = find_sync_variable(address_of(block.order.variables), offset + MBARRIER)
    if cast(u64, variable) != 0:
        join(near, address_of(variable.near))
    if block.cluster.count == 1 or order & IN_CLUSTER == 0:
        return
    variable = find_sync_variable(address_of(block.order.variables), offset + FAR_ARRIVALS)
    if cast(u64, variable) != 0:
        join(far, address_of(variable.near))


@native
def acquire_tensor_work(thread: Pointer[Thread], block: Pointer[Block], offset: u64) -> None:
    """A thread has seen a phase complete, without acquiring: it knows what work on tensor memory was handed over."""
    if thread.worker.checks == 0 or cast(u64, thread.block.tensor) == 0:
        return
    variable = find_sync_variable(address_of(block.order.variables), offset + MBARRIER)
    if cast(u64, variable) != 0:
        join_tensor_entries(address_of(thread.order.known), address_of(variable.near))


CALLED = (release_to_phase,)
