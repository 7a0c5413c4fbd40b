"""`st.async` and `red.async`: values that go to a block of the cluster in the background, and an mbarrier hears of it.

They are done as bulk copies are, by an agent of the block that sends them, but by the way of threads: no proxy fence is
needed.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import (
    ATOMIC,
    BAD_BARRIER,
    CLUSTER_SPACE,
    NO_MEMORY,
    OFFSET_MASK,
    OTHER_BLOCK,
    Hint,
    Thread,
)
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work, note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import about_write, next_transfer, write_of
from ptxlab.emulate.runtime.asynchronous.mbarriers import is_barrier
from ptxlab.emulate.runtime.memory.memory import fail, find_memory, owner_of
from ptxlab.emulate.runtime.order.shadow import GENERIC
from ptxlab.emulate.runtime.order.synchronization import channel_of
from ptxlab.native import Pointer, calloc, cast, native, u8, u32, u64


@native
def start_async_store(
    thread: Pointer[Thread],
    destination: u64,
    barrier: u64,
    low: u64,
    high: u64,
    size: u32,
    reduction: u32,
    type: u32,
    instruction: u32,
) -> None:
    """Send up to 16 bytes to shared memory of the cluster, perhaps to be reduced there."""
    nowhere = cast(Pointer[Hint], 0)
    access: u32 = write_of(reduction)
    if cast(u64, find_memory(thread, destination, size, size, CLUSTER_SPACE, access, instruction, nowhere)) == 0:
        return
    if cast(u64, find_memory(thread, barrier, 8, 8, CLUSTER_SPACE, ATOMIC, instruction, nowhere)) == 0:
        return
    to = owner_of(thread, destination)
    if owner_of(thread, barrier) != to:
        fail(thread, BAD_BARRIER, instruction, OTHER_BLOCK)
        return
    offset: u64 = barrier & OFFSET_MASK
    if not is_barrier(thread, to, offset, instruction):
        return
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    data = cast(Pointer[u64], calloc(2, 8))
    if cast(u64, data) == 0:
        fail(thread, NO_MEMORY, instruction, 0)
        transfer.size = 0
        return
    data[0] = low
    data[1] = high
    transfer.data = cast(Pointer[u8], data)
    transfer.destination = destination & OFFSET_MASK
    transfer.size = size
    transfer.reduction = reduction
    transfer.type = type
    transfer.to = to
    transfer.barrier = offset
    about: u32 = about_write(reduction, type) | GENERIC
    channel: u32 = channel_of(to, offset)
    note_signal(thread, to, offset, channel, transfer.number, instruction)
    note_shared_work(thread, to, destination & OFFSET_MASK, size, about, channel, transfer.number, instruction)
