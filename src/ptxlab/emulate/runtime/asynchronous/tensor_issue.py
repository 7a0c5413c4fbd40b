"""Beginning copies of boxes of tensors: whether they can be done, and what they will access, for the detectors."""

from __future__ import annotations

from ptxlab.emulate.abi.state import (
    BAD_COORDINATE,
    BAD_TENSOR_MAP,
    CLUSTER_SPACE,
    FAILED,
    LOAD,
    OFFSET_MASK,
    SHARED_SPACE,
    STORE,
    Hint,
    Thread,
    Transfer,
)
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import about_write, next_transfer
from ptxlab.emulate.runtime.asynchronous.bulk_issue import in_block, target_of
from ptxlab.emulate.runtime.asynchronous.reductions import can_reduce
from ptxlab.emulate.runtime.asynchronous.tensor_maps import (
    FIND,
    NO_REDUCTION,
    NOTE,
    extent_of_box,
    note_box,
    take_map,
    visit_box,
)
from ptxlab.emulate.runtime.memory.memory import fail, find_memory
from ptxlab.emulate.runtime.order.synchronization import channel_of
from ptxlab.emulate.runtime.order.vector_clocks import BULK_READS, BULK_WRITES
from ptxlab.native import Pointer, address_of, cast, native, s32, u32, u64

BOX_ALIGNMENT = 128


@native
def start_tensor_load(
    thread: Pointer[Thread],
    map: u64,
    rank: u32,
    first: u32,
    second: u32,
    third: u32,
    fourth: u32,
    fifth: u32,
    destination: u64,
    barrier: u64,
    space: u32,
    watched: u32,
    instruction: u32,
) -> None:
    """Begin a copy of a box of a tensor to shared memory (`space`)."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    set_coordinates(transfer, first, second, third, fourth, fifth)
    if not take_map(thread, transfer, map, rank, instruction):
        return
    offset: u64 = destination & OFFSET_MASK
    transfer.is_global = 1
    transfer.destination = offset
    transfer.barrier = barrier & OFFSET_MASK
    transfer.about = LOAD
    extent: u32 = extent_of_box(address_of(transfer.map))
    nowhere = cast(Pointer[Hint], 0)
    place = find_memory(thread, destination, extent, BOX_ALIGNMENT, space, STORE, instruction, nowhere)
    if cast(u64, place) == 0:
        return
    to = target_of(thread, destination, barrier, space, instruction)
    if cast(u64, to) == 0:
        return
    transfer.to = to
    channel: u32 = channel_of(to, transfer.barrier)
    note_signal(thread, to, transfer.barrier, channel, transfer.number, instruction)
    thread.channel = channel
    thread.work = transfer.number
    visit_box(thread, transfer, NOTE if watched != 0 else FIND)
    note_box(thread, to, transfer, offset, STORE, transfer.number)


@native
def multicast_tensor_load(
    thread: Pointer[Thread],
    map: u64,
    rank: u32,
    first: u32,
    second: u32,
    third: u32,
    fourth: u32,
    fifth: u32,
    destination: u64,
    barrier: u64,
    blocks: u32,
    watched: u32,
    instruction: u32,
) -> None:
    """Begin a copy of a box of a tensor to several blocks, to the same place in the shared memory of each."""
    for number in range(32):
        if blocks >> number & 1 != 0 and thread.status != FAILED:
            to: u64 = in_block(destination, number)
            told: u64 = in_block(barrier, number)
            start_tensor_load(
                thread, map, rank, first, second, third, fourth, fifth, to, told, CLUSTER_SPACE, watched, instruction
            )


@native
def start_tensor_store(
    thread: Pointer[Thread],
    map: u64,
    rank: u32,
    first: u32,
    second: u32,
    third: u32,
    fourth: u32,
    fifth: u32,
    source: u64,
    reduction: u32,
    instruction: u32,
) -> None:
    """Begin a copy of a box in shared memory to a tensor, perhaps to be reduced there."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    set_coordinates(transfer, first, second, third, fourth, fifth)
    if not take_map(thread, transfer, map, rank, instruction):
        return
    for dimension in range(rank):
        if s32(transfer.coordinates[dimension]) < 0:  # loads take that; a store is an illegal instruction on an H200
            thread.worker.fault.address = u64(transfer.coordinates[dimension])
            fail(thread, BAD_COORDINATE, instruction, u64(dimension) << 32)
            return
    transfer.source = source
    transfer.reduction = reduction
    transfer.type = transfer.map.type
    if reduction != 0 and not can_reduce(reduction, transfer.type):
        fail(thread, BAD_TENSOR_MAP, instruction, NO_REDUCTION)
        return
    transfer.about = about_write(reduction, transfer.type)
    extent: u32 = extent_of_box(address_of(transfer.map))
    nowhere = cast(Pointer[Hint], 0)
    place = find_memory(thread, source, extent, BOX_ALIGNMENT, SHARED_SPACE, LOAD, instruction, nowhere)
    if cast(u64, place) == 0:
        return
    group: u32 = thread.bulk_group + 1
    thread.channel = BULK_READS + thread.number
    note_box(thread, thread.block, transfer, source, LOAD, group)
    thread.channel = BULK_WRITES + thread.number
    thread.work = group
    visit_box(thread, transfer, NOTE)


@native
def set_coordinates(transfer: Pointer[Transfer], first: u32, second: u32, third: u32, fourth: u32, fifth: u32) -> None:
    """Say where a box begins, innermost dimension first."""
    transfer.coordinates[0] = first
    transfer.coordinates[1] = second
    transfer.coordinates[2] = third
    transfer.coordinates[3] = fourth
    transfer.coordinates[4] = fifth


@native
def check_map(thread: Pointer[Thread], map: u64, rank: u32, instruction: u32) -> None:
    """A prefetch of a box moves nothing that a program can see, but it needs a tensor map."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) != 0 and take_map(thread, transfer, map, rank, instruction):
        thread.block.transfers.count -= 1
