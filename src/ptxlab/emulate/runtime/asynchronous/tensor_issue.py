"""Starting copies of boxes of tensors: whether they can be done, and what they will access, for the detectors."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, OFFSET_MASK, SHARED_SPACE, STORE, Hint
from ptxlab.emulate.abi.bulk import GATHER, BulkLoad, BulkStore
from ptxlab.emulate.abi.faults import BAD_COORDINATE, BAD_TENSOR_MAP, CoordinateReason, TensorMapReason
from ptxlab.emulate.abi.state import Block, Thread, Transfer
from ptxlab.emulate.abi.tiles import WrittenTile
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import count_copy, flags_of_write, is_repeated, next_transfer
from ptxlab.emulate.runtime.asynchronous.mbarriers import signalled_in_pair, target_of
from ptxlab.emulate.runtime.asynchronous.reductions import can_reduce
from ptxlab.emulate.runtime.asynchronous.tensor_boxes import (
    FIND,
    NOTE,
    bytes_of_box,
    extent_of_box,
    has_usual_swizzle,
    note_box,
    shared_bytes_of_row,
    visit_box,
)
from ptxlab.emulate.runtime.asynchronous.tensor_maps import B4X16_P64, REDUCED, refuse_map, take_map
from ptxlab.emulate.runtime.memory.memory import fail_because, find_memory, owner_of
from ptxlab.emulate.runtime.order.k_slices import note_tile
from ptxlab.emulate.runtime.order.mbarrier_order import channel_of
from ptxlab.emulate.runtime.order.tensor_map_order import note_map, note_use
from ptxlab.emulate.runtime.order.vector_clocks import BULK_READS, BULK_WRITES
from ptxlab.native import Pointer, address_of, boolean, cast, native, s32, s64, u32, u64

BOX_ALIGNMENT = 128


@native
def start_box_load(thread: Pointer[Thread], load: Pointer[BulkLoad], instruction: u32) -> None:
    """Start a copy of a box of a tensor to shared memory of one block."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    for dimension in range(5):
        transfer.coordinates[dimension] = load.coordinates[dimension]
    for dimension in range(3):
        transfer.offsets[dimension] = load.offsets[dimension]
    transfer.rank = load.rank
    transfer.mode = load.mode
    if not take_map(thread, transfer, load.source, instruction):
        return
    if load.map_tracked != 0:
        note_map(thread, load.source, instruction)
    transfer.is_global = 1
    transfer.destination = load.destination & OFFSET_MASK
    transfer.barrier = load.barrier & OFFSET_MASK
    transfer.flags = LOAD
    extent: u32 = extent_of_box(transfer)
    nowhere = cast(Pointer[Hint], 0)
    found = find_memory(thread, load.destination, extent, BOX_ALIGNMENT, load.space, STORE, instruction, nowhere)
    if cast(u64, found) == 0:
        return
    signals = cast(Pointer[Block], 0)
    if load.is_pair != 0:
        signals = signalled_in_pair(thread, load.destination, load.barrier, load.space, instruction)
    else:
        signals = target_of(thread, load.destination, load.barrier, load.space, instruction)
    if cast(u64, signals) == 0:
        return
    to = owner_of(thread, load.destination)
    transfer.to = to
    transfer.signals = signals
    channel: u32 = channel_of(signals, transfer.barrier)
    note_signal(thread, signals, transfer.barrier, channel, transfer.number, instruction)
    if load.map_tracked != 0:
        note_use(thread, load.source, channel, transfer.number, instruction)
    thread.starting.channel = channel
    thread.starting.number = transfer.number
    read: u64 = visit_box(thread, transfer, NOTE if load.tracked != 0 else FIND)
    if load.is_counted != 0:
        read = 0
    load.is_counted = load.is_multicast
    count_copy(thread, load.counter, bytes_of_box(transfer), read)
    note_box(thread, to, transfer, transfer.destination, STORE, transfer.number)
    if has_usual_swizzle(address_of(transfer.map)):
        rank: u32 = load.rank
        while rank > 2 and load.mode == 0 and transfer.map.box[rank - 1] == 1:
            rank -= 1  # a matrix of an array of them
        tile = WrittenTile(
            offset=transfer.destination,
            size=extent,
            swizzle=transfer.map.swizzle,
            pitch=shared_bytes_of_row(address_of(transfer.map)),
            rank=rank,
            instruction=instruction,
            type=transfer.map.type,
            number=0,
            slices=0,
            read=0,
            reader=0,
            repeats=0,
            multiplied=0,
            partner=0,
        )
        note_tile(thread, to, tile)


@native
def start_box_store(thread: Pointer[Thread], store: Pointer[BulkStore], instruction: u32) -> None:
    """Start a copy of a box in shared memory to a tensor, perhaps to be reduced there."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    for dimension in range(5):
        transfer.coordinates[dimension] = store.coordinates[dimension]
    transfer.rank = store.rank
    transfer.mode = store.mode
    if not take_map(thread, transfer, store.destination, instruction):
        return
    if store.map_tracked != 0:
        note_map(thread, store.destination, instruction)
    if not can_store(thread, transfer, instruction):
        return
    transfer.source = store.source
    transfer.reduction = store.reduction
    transfer.type = REDUCED[transfer.map.type]
    if store.reduction != 0 and not can_reduce(store.reduction, transfer.type):
        fail_because(thread, BAD_TENSOR_MAP, TensorMapReason.NO_REDUCTION, instruction, 0)
        return
    transfer.flags = flags_of_write(store.reduction, transfer.type)
    extent: u32 = extent_of_box(transfer)
    nowhere = cast(Pointer[Hint], 0)
    found = find_memory(thread, store.source, extent, BOX_ALIGNMENT, SHARED_SPACE, LOAD, instruction, nowhere)
    if cast(u64, found) == 0:
        return
    if store.map_tracked != 0:
        note_use(thread, store.destination, 0, 0, instruction)
    if store.reduction == 0 and is_repeated(thread.block, transfer):
        return
    group: u32 = thread.copies.bulk_group + 1
    thread.starting.channel = BULK_READS + thread.number
    note_box(thread, thread.block, transfer, store.source, LOAD, group)
    thread.starting.channel = BULK_WRITES + thread.number
    thread.starting.number = group
    count_copy(thread, store.counter, visit_box(thread, transfer, NOTE), bytes_of_box(transfer))


@native
def can_store(thread: Pointer[Thread], transfer: Pointer[Transfer], instruction: u32) -> boolean:
    """Whether a box is one that can be stored; a fault otherwise. Loads take more, an H200 does not store it."""
    map = address_of(transfer.map)
    if map.flip != 0 or map.type == B4X16_P64:
        return refuse_map(thread, transfer, TensorMapReason.NO_STORE, 0, instruction)
    for dimension in range(map.rank - 2 if map.mode != 0 else u32(0)):
        if s32(map.lower[dimension]) < 0 or s32(map.upper[dimension]) > 0:
            return refuse_map(thread, transfer, TensorMapReason.STORE_CORNERS, dimension, instruction)
    for dimension in range(5 if transfer.mode == GATHER else map.dimensions):
        if s32(transfer.coordinates[dimension]) < 0:
            if thread.worker.fault.kind == 0:
                thread.worker.fault.dimension = dimension - (map.dimensions - map.rank)
            value: u64 = u64(s64(s32(transfer.coordinates[dimension])))
            fail_because(thread, BAD_COORDINATE, CoordinateReason.NEGATIVE, instruction, value)
            return False
    return True


@native
def check_map(thread: Pointer[Thread], load: Pointer[BulkLoad], instruction: u32) -> None:
    """A prefetch of a box moves nothing that a program can see, but it needs a tensor map."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    for dimension in range(5):
        transfer.coordinates[dimension] = load.coordinates[dimension]
    transfer.rank = load.rank
    transfer.mode = load.mode
    if take_map(thread, transfer, load.source, instruction):
        if load.map_tracked != 0:
            note_map(thread, load.source, instruction)
        thread.block.bulk.pending.count -= 1


CALLED = (check_map,)
