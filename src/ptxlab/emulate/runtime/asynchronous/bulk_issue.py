"""Beginning bulk copies: whether they can be done at all, and what they will access, for the detectors."""

from __future__ import annotations

from ptxlab.emulate.abi.state import (
    ATOMIC,
    BAD_BARRIER,
    BAD_COPY_SIZE,
    BAD_SIZE,
    CLUSTER_SPACE,
    FAILED,
    GLOBAL_SPACE,
    LOAD,
    OFFSET_MASK,
    OTHER_BLOCK,
    RANK_SHIFT,
    SHARED_SPACE,
    STORE,
    Block,
    Hint,
    Thread,
)
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_global_work, note_shared_work, note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import ALIGNMENT, EVERY_BYTE, about_write, next_transfer, write_of
from ptxlab.emulate.runtime.asynchronous.mbarriers import is_barrier
from ptxlab.emulate.runtime.memory.memory import fail, fail_with, find_memory, owner_of
from ptxlab.emulate.runtime.order.synchronization import channel_of
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
    """Whether the kernel may touch these bytes, which lie as bulk copies need it; a fault otherwise."""
    nowhere = cast(Pointer[Hint], 0)
    return cast(u64, find_memory(thread, address, size, ALIGNMENT, space, access, instruction, nowhere)) != 0


@native
def target_of(thread: Pointer[Thread], destination: u64, barrier: u64, space: u32, instruction: u32) -> Pointer[Block]:
    """The block to which a copy goes and whose mbarrier it signals; null, with the fault noted, if there is none."""
    nobody = cast(Pointer[Block], 0)
    place = find_memory(thread, barrier, 8, 8, space, ATOMIC, instruction, cast(Pointer[Hint], 0))
    if cast(u64, place) == 0:
        return nobody
    to = owner_of(thread, barrier)
    if owner_of(thread, destination) != to:
        fail(thread, BAD_BARRIER, instruction, OTHER_BLOCK)
        return nobody
    return to if is_barrier(thread, to, barrier & OFFSET_MASK, instruction) else nobody


@native(inline=True)
def in_block(address: u64, rank: u32) -> u64:
    """The address that corresponds to one in shared memory in the block of a rank."""
    return address & OFFSET_MASK | (u64(rank) + 1) << RANK_SHIFT


@native
def start_load(
    thread: Pointer[Thread],
    destination: u64,
    source: u64,
    size: u32,
    left: u32,
    right: u32,
    barrier: u64,
    space: u32,
    watched: u32,
    instruction: u32,
) -> None:
    """Begin a copy from global to shared memory (`space`), of which some bytes at both ends may be nowhere.

    Not `watched`: the kernel does not write the memory that it reads.
    """
    if left >= ALIGNMENT or right >= ALIGNMENT:
        fail_with(thread, BAD_COPY_SIZE, instruction, u64(max(left, right)), ALIGNMENT - 1)
        return
    read: u32 = 0
    if size > left + right:
        read = size - left - right
    if not is_whole(thread, size, instruction):
        return
    if source % ALIGNMENT != 0 and not is_there(thread, source, size, GLOBAL_SPACE, LOAD, instruction):
        return
    if not is_there(thread, destination, size, space, STORE, instruction):
        return
    to = target_of(thread, destination, barrier, space, instruction)
    if cast(u64, to) == 0:
        return
    begin: u64 = source + u64(left)
    place = find_memory(thread, begin, read, 1, GLOBAL_SPACE, LOAD, instruction, cast(Pointer[Hint], 0))
    if cast(u64, place) == 0:
        return
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    offset: u64 = destination & OFFSET_MASK
    transfer.destination = offset
    transfer.source = source
    transfer.size = size
    transfer.left = left
    transfer.right = right
    transfer.is_global = 1
    transfer.to = to
    transfer.barrier = barrier & OFFSET_MASK
    channel: u32 = channel_of(to, transfer.barrier)
    note_signal(thread, to, transfer.barrier, channel, transfer.number, instruction)
    if watched != 0:
        note_global_work(thread, begin, read, LOAD, channel, transfer.number, instruction)
    note_shared_work(thread, to, offset, size, STORE, channel, transfer.number, instruction)


@native
def multicast_load(
    thread: Pointer[Thread],
    destination: u64,
    source: u64,
    size: u32,
    barrier: u64,
    blocks: u32,
    watched: u32,
    instruction: u32,
) -> None:
    """Begin a copy from global memory to several blocks, to the same place in the shared memory of each."""
    for rank in range(32):
        if blocks >> rank & 1 != 0 and thread.status != FAILED:
            to: u64 = in_block(destination, rank)
            told: u64 = in_block(barrier, rank)
            start_load(thread, to, source, size, 0, 0, told, CLUSTER_SPACE, watched, instruction)


@native
def start_store(
    thread: Pointer[Thread],
    destination: u64,
    source: u64,
    size: u32,
    mask: u32,
    reduction: u32,
    type: u32,
    instruction: u32,
) -> None:
    """Begin a copy from shared to global memory: of the bytes of every 16 that `mask` has, or to be reduced there."""
    if (
        not is_whole(thread, size, instruction)
        or not is_there(thread, source, size, SHARED_SPACE, LOAD, instruction)
        or not is_there(thread, destination, size, GLOBAL_SPACE, write_of(reduction), instruction)
    ):
        return
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    transfer.destination = destination
    transfer.source = source
    transfer.size = size
    transfer.mask = mask
    transfer.reduction = reduction
    transfer.type = type
    group: u32 = thread.bulk_group + 1
    note_shared_work(thread, thread.block, source, size, LOAD, BULK_READS + thread.number, group, instruction)
    about: u32 = about_write(reduction, type)
    channel: u32 = BULK_WRITES + thread.number
    if mask & EVERY_BYTE == EVERY_BYTE:
        note_global_work(thread, destination, size, about, channel, group, instruction)
        return
    for at in range(size):
        if mask >> at % ALIGNMENT & 1 != 0:
            note_global_work(thread, destination + u64(at), 1, about, channel, group, instruction)


@native
def start_exchange(
    thread: Pointer[Thread],
    destination: u64,
    source: u64,
    size: u32,
    barrier: u64,
    reduction: u32,
    type: u32,
    instruction: u32,
) -> None:
    """Begin a copy to shared memory of the cluster, perhaps to be reduced there."""
    if (
        not is_whole(thread, size, instruction)
        or not is_there(thread, source, size, SHARED_SPACE, LOAD, instruction)
        or not is_there(thread, destination, size, CLUSTER_SPACE, write_of(reduction), instruction)
    ):
        return
    to = target_of(thread, destination, barrier, CLUSTER_SPACE, instruction)
    if cast(u64, to) == 0:
        return
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    offset: u64 = destination & OFFSET_MASK
    transfer.destination = offset
    transfer.source = source
    transfer.size = size
    transfer.reduction = reduction
    transfer.type = type
    transfer.to = to
    transfer.barrier = barrier & OFFSET_MASK
    channel: u32 = channel_of(to, transfer.barrier)
    number: u32 = transfer.number
    note_signal(thread, to, transfer.barrier, channel, number, instruction)
    note_shared_work(thread, thread.block, source, size, LOAD, channel, number, instruction)
    note_shared_work(thread, to, offset, size, about_write(reduction, type), channel, number, instruction)


@native
def check_prefetch(thread: Pointer[Thread], address: u64, size: u32, instruction: u32) -> None:
    """A prefetch moves nothing that a program can see, but it is to be whole and aligned as copies are."""
    if is_whole(thread, size, instruction) and address % ALIGNMENT != 0:
        is_there(thread, address, size, GLOBAL_SPACE, LOAD, instruction)
