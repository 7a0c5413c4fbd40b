"""Starting copies of boxes of tensors: whether they can be done, and what they will access, for the detectors."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, OFFSET_MASK, SHARED_SPACE, STORE, Hint
from ptxlab.emulate.abi.bulk import BulkLoad, BulkStore
from ptxlab.emulate.abi.faults import BAD_COORDINATE, BAD_TENSOR_MAP, CoordinateReason, TensorMapReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tiles import WrittenTile
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import flags_of_write, next_transfer
from ptxlab.emulate.runtime.asynchronous.mbarriers import signalled_in_pair, target_of
from ptxlab.emulate.runtime.asynchronous.reductions import can_reduce
from ptxlab.emulate.runtime.asynchronous.tensor_maps import (
    FIND,
    NOTE,
    extent_of_box,
    note_box,
    take_map,
    visit_box,
)
from ptxlab.emulate.runtime.memory.memory import fail_because, find_memory, owner_of
from ptxlab.emulate.runtime.order.mbarrier_order import channel_of
from ptxlab.emulate.runtime.order.tile_layouts import note_tile
from ptxlab.emulate.runtime.order.vector_clocks import BULK_READS, BULK_WRITES
from ptxlab.native import Pointer, address_of, cast, native, s32, s64, u32, u64

BOX_ALIGNMENT = 128


@native
def start_box_load(thread: Pointer[Thread], load: Pointer[BulkLoad], instruction: u32) -> None:
    """Start a copy of a box of a tensor to shared memory of one block."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    for dimension in range(5):
        transfer.coordinates[dimension] = load.coordinates[dimension]
    if not take_map(thread, transfer, load.source, load.rank, instruction):
        return
    transfer.is_global = 1
    transfer.destination = load.destination & OFFSET_MASK
    transfer.barrier = load.barrier & OFFSET_MASK
    transfer.flags = LOAD
    extent: u32 = extent_of_box(address_of(transfer.map))
    nowhere = cast(Pointer[Hint], 0)
    place = find_memory(thread, load.destination, extent, BOX_ALIGNMENT, load.space, STORE, instruction, nowhere)
    if cast(u64, place) == 0:
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
    thread.starting.channel = channel
    thread.starting.number = transfer.number
    visit_box(thread, transfer, NOTE if load.tracked != 0 else FIND)
    note_box(thread, to, transfer, transfer.destination, STORE, transfer.number)
    tile = WrittenTile(
        offset=transfer.destination,
        size=extent,
        swizzle=transfer.map.swizzle,
        pitch=transfer.map.box[0] * transfer.map.width,
        rank=load.rank,
        instruction=instruction,
        unused=0,
    )
    note_tile(to, tile)


@native
def start_box_store(thread: Pointer[Thread], store: Pointer[BulkStore], instruction: u32) -> None:
    """Start a copy of a box in shared memory to a tensor, perhaps to be reduced there."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    for dimension in range(5):
        transfer.coordinates[dimension] = store.coordinates[dimension]
    if not take_map(thread, transfer, store.destination, store.rank, instruction):
        return
    for dimension in range(store.rank):
        if s32(transfer.coordinates[dimension]) < 0:  # loads take that; a store is an illegal instruction on an H200
            if thread.worker.fault.kind == 0:
                thread.worker.fault.dimension = dimension
            value: u64 = u64(s64(s32(transfer.coordinates[dimension])))
            fail_because(thread, BAD_COORDINATE, CoordinateReason.NEGATIVE, instruction, value)
            return
    transfer.source = store.source
    transfer.reduction = store.reduction
    transfer.type = transfer.map.type
    if store.reduction != 0 and not can_reduce(store.reduction, transfer.type):
        fail_because(thread, BAD_TENSOR_MAP, TensorMapReason.NO_REDUCTION, instruction, 0)
        return
    transfer.flags = flags_of_write(store.reduction, transfer.type)
    extent: u32 = extent_of_box(address_of(transfer.map))
    nowhere = cast(Pointer[Hint], 0)
    place = find_memory(thread, store.source, extent, BOX_ALIGNMENT, SHARED_SPACE, LOAD, instruction, nowhere)
    if cast(u64, place) == 0:
        return
    group: u32 = thread.copies.bulk_group + 1
    thread.starting.channel = BULK_READS + thread.number
    note_box(thread, thread.block, transfer, store.source, LOAD, group)
    thread.starting.channel = BULK_WRITES + thread.number
    thread.starting.number = group
    visit_box(thread, transfer, NOTE)


@native
def check_map(thread: Pointer[Thread], map: u64, rank: u32, instruction: u32) -> None:
    """A prefetch of a box moves nothing that a program can see, but it needs a tensor map."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) != 0 and take_map(thread, transfer, map, rank, instruction):
        thread.block.bulk.pending.count -= 1


CALLED = (check_map,)
