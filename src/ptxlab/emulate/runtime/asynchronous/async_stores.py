"""`st.async` and `red.async`: values that go to a block of the cluster asynchronously and signal an mbarrier there.

They are done as bulk copies are, by the block that sends them, but through the generic proxy, as stores of threads are.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import CLUSTER_SPACE, OFFSET_MASK, Hint
from ptxlab.emulate.abi.bulk import AsyncStore
from ptxlab.emulate.abi.faults import NO_MEMORY
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work, note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import flags_of_write, next_transfer, write_of
from ptxlab.emulate.runtime.asynchronous.mbarriers import target_of
from ptxlab.emulate.runtime.memory.memory import fail, find_memory
from ptxlab.emulate.runtime.order.mbarrier_order import channel_of
from ptxlab.emulate.runtime.order.shadow import GENERIC
from ptxlab.native import Pointer, calloc, cast, native, u8, u32, u64


@native
def start_async_store(thread: Pointer[Thread], store: AsyncStore, instruction: u32) -> None:
    """Send up to 16 bytes to shared memory of the cluster, perhaps to be reduced there."""
    nowhere = cast(Pointer[Hint], 0)
    size: u32 = store.size
    access: u32 = write_of(store.reduction)
    if cast(u64, find_memory(thread, store.destination, size, size, CLUSTER_SPACE, access, instruction, nowhere)) == 0:
        return
    to = target_of(thread, store.destination, store.barrier, CLUSTER_SPACE, instruction)
    if cast(u64, to) != 0:
        send_value(thread, to, store, flags_of_write(store.reduction, store.type) | GENERIC, instruction)


@native
def send_value(thread: Pointer[Thread], to: Pointer[Block], store: AsyncStore, flags: u32, instruction: u32) -> None:
    """Start a store to shared memory of a block; `flags` is its access for the detectors, see `shadow`."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    data = cast(Pointer[u64], calloc(2, 8))
    if cast(u64, data) == 0:
        fail(thread, NO_MEMORY, instruction, 0)
        transfer.size = 0
        return
    data[0] = store.low
    data[1] = store.high
    transfer.data = cast(Pointer[u8], data)
    transfer.destination = store.destination & OFFSET_MASK
    transfer.size = store.size
    transfer.reduction = store.reduction
    transfer.type = store.type
    transfer.to = to
    transfer.barrier = store.barrier & OFFSET_MASK
    channel: u32 = channel_of(to, transfer.barrier)
    note_signal(thread, to, transfer.barrier, channel, transfer.number, instruction)
    note_shared_work(thread, to, transfer.destination, store.size, flags, channel, transfer.number, instruction)


CALLED = (start_async_store,)
