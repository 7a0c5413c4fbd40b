"""Starting bulk copies: whether they can be done at all, and what they will access, for the detectors."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import CLUSTER_SPACE, GLOBAL_SPACE, LOAD, OFFSET_MASK, SHARED_SPACE, STORE, Hint
from ptxlab.emulate.abi.bulk import BulkLoad, BulkStore
from ptxlab.emulate.abi.faults import BAD_COPY_SIZE, BAD_SIZE
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.thread_parts import FAILED
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_global_work, note_shared_work, note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import (
    ALIGNMENT,
    EVERY_BYTE,
    count_copy,
    flags_of_write,
    next_transfer,
    write_of,
)
from ptxlab.emulate.runtime.asynchronous.mbarriers import target_of
from ptxlab.emulate.runtime.asynchronous.tensor_issue import start_box_load, start_box_store
from ptxlab.emulate.runtime.memory.memory import fail, fail_with, find_memory, in_block, rank_in
from ptxlab.emulate.runtime.order.mbarrier_order import channel_of
from ptxlab.emulate.runtime.order.vector_clocks import BULK_READS, BULK_WRITES
from ptxlab.native import Pointer, boolean, cast, native, u32, u64


@native
def is_whole(thread: Pointer[Thread], size: u32, instruction: u32) -> boolean:
    """Whether a size is one that bulk copies have; a fault otherwise."""
    if size % ALIGNMENT != 0:
        fail(thread, BAD_SIZE, instruction, u64(size))
        return False
    return True


@native
def is_there(thread: Pointer[Thread], address: u64, size: u32, space: u32, access: u32, instruction: u32) -> boolean:
    """Whether the kernel may touch these bytes, which are aligned as bulk copies need it; a fault otherwise."""
    nowhere = cast(Pointer[Hint], 0)
    return cast(u64, find_memory(thread, address, size, ALIGNMENT, space, access, instruction, nowhere)) != 0


@native
def start_load(thread: Pointer[Thread], load: Pointer[BulkLoad], instruction: u32) -> None:
    """Start a copy from global to shared memory: to one block, or to the same offset in several."""
    if load.is_multicast == 0:
        start_load_to(thread, load, instruction)
        return
    load.space = CLUSTER_SPACE
    parity: u32 = rank_in(thread, load.barrier) & 1
    for rank in range(32):
        if load.blocks >> rank & 1 != 0 and thread.status != FAILED:
            load.destination = in_block(load.destination, rank)
            # PTX ISA 9.7.9.27.1.2: of each pair, the block with the parity of that of the mbarrier is signalled.
            load.barrier = in_block(load.barrier, (rank & 0xFFFFFFFE) | parity if load.is_pair != 0 else rank)
            start_load_to(thread, load, instruction)


@native
def start_load_to(thread: Pointer[Thread], load: Pointer[BulkLoad], instruction: u32) -> None:
    """Start a copy to one block."""
    if load.rank != 0:
        start_box_load(thread, load, instruction)
    else:
        start_byte_load(thread, load, instruction)


@native
def start_byte_load(thread: Pointer[Thread], load: Pointer[BulkLoad], instruction: u32) -> None:
    """Start a copy of bytes, of which some at both ends may be nowhere."""
    size: u32 = load.size
    if load.left >= ALIGNMENT or load.right >= ALIGNMENT:
        fail_with(thread, BAD_COPY_SIZE, instruction, u64(max(load.left, load.right)), ALIGNMENT - 1)
        return
    read: u32 = 0
    if size > load.left + load.right:
        read = size - load.left - load.right
    if not is_whole(thread, size, instruction):
        return
    if load.source % ALIGNMENT != 0 and not is_there(thread, load.source, size, GLOBAL_SPACE, LOAD, instruction):
        return
    if not is_there(thread, load.destination, size, load.space, STORE, instruction):
        return
    to = target_of(thread, load.destination, load.barrier, load.space, instruction)
    if cast(u64, to) == 0:
        return
    begin: u64 = load.source + u64(load.left)
    found = find_memory(thread, begin, read, 1, GLOBAL_SPACE, LOAD, instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) == 0:
        return
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    transfer.destination = load.destination & OFFSET_MASK
    transfer.source = load.source
    transfer.size = size
    transfer.left = load.left
    transfer.right = load.right
    transfer.is_global = 1
    transfer.to = to
    transfer.barrier = load.barrier & OFFSET_MASK
    channel: u32 = channel_of(to, transfer.barrier)
    note_signal(thread, to, transfer.barrier, channel, transfer.number, instruction)
    if load.tracked != 0:
        note_global_work(thread, begin, read, LOAD, channel, transfer.number, instruction)
    count_copy(thread, load.counter, u64(size), u64(0) if load.is_counted != 0 else u64(read))
    load.is_counted = load.is_multicast
    note_shared_work(thread, to, transfer.destination, size, STORE, channel, transfer.number, instruction)


@native
def start_store(thread: Pointer[Thread], store: Pointer[BulkStore], instruction: u32) -> None:
    """Start a copy from shared to global memory."""
    if store.rank != 0:
        start_box_store(thread, store, instruction)
    else:
        start_byte_store(thread, store, instruction)


@native
def start_byte_store(thread: Pointer[Thread], store: Pointer[BulkStore], instruction: u32) -> None:
    """Start a copy of bytes to global memory: of those of every 16 that `mask` has, or to be reduced there."""
    size: u32 = store.size
    if (
        not is_whole(thread, size, instruction)
        or not is_there(thread, store.source, size, SHARED_SPACE, LOAD, instruction)
        or not is_there(thread, store.destination, size, GLOBAL_SPACE, write_of(store.reduction), instruction)
    ):
        return
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    transfer.destination = store.destination
    transfer.source = store.source
    transfer.size = size
    transfer.mask = store.mask
    transfer.reduction = store.reduction
    transfer.type = store.type
    count_copy(thread, store.counter, u64(size), u64(size))
    group: u32 = thread.copies.bulk_group + 1
    note_shared_work(thread, thread.block, store.source, size, LOAD, BULK_READS + thread.number, group, instruction)
    flags: u32 = flags_of_write(store.reduction, store.type)
    channel: u32 = BULK_WRITES + thread.number
    if store.mask & EVERY_BYTE == EVERY_BYTE:
        note_global_work(thread, store.destination, size, flags, channel, group, instruction)
        return
    for at in range(size):
        if store.mask >> at % ALIGNMENT & 1 != 0:
            note_global_work(thread, store.destination + u64(at), 1, flags, channel, group, instruction)


@native
def start_exchange(thread: Pointer[Thread], store: Pointer[BulkStore], instruction: u32) -> None:
    """Start a copy to shared memory of the cluster, perhaps to be reduced there."""
    size: u32 = store.size
    if (
        not is_whole(thread, size, instruction)
        or not is_there(thread, store.source, size, SHARED_SPACE, LOAD, instruction)
        or not is_there(thread, store.destination, size, CLUSTER_SPACE, write_of(store.reduction), instruction)
    ):
        return
    to = target_of(thread, store.destination, store.barrier, CLUSTER_SPACE, instruction)
    if cast(u64, to) == 0:
        return
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    transfer.destination = store.destination & OFFSET_MASK
    transfer.source = store.source
    transfer.size = size
    transfer.reduction = store.reduction
    transfer.type = store.type
    transfer.to = to
    transfer.barrier = store.barrier & OFFSET_MASK
    count_copy(thread, store.counter, u64(size), u64(size))
    channel: u32 = channel_of(to, transfer.barrier)
    number: u32 = transfer.number
    flags: u32 = flags_of_write(store.reduction, store.type)
    note_signal(thread, to, transfer.barrier, channel, number, instruction)
    note_shared_work(thread, thread.block, store.source, size, LOAD, channel, number, instruction)
    note_shared_work(thread, to, transfer.destination, size, flags, channel, number, instruction)


@native
def check_prefetch(thread: Pointer[Thread], address: u64, size: u32, instruction: u32) -> None:
    """A prefetch moves nothing that a program can see, but it is to be whole and aligned as copies are."""
    if is_whole(thread, size, instruction) and address % ALIGNMENT != 0:
        is_there(thread, address, size, GLOBAL_SPACE, LOAD, instruction)


CALLED = (
    start_load,
    start_store,
    start_exchange,
    check_prefetch,
)
