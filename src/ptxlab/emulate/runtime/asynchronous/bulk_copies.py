"""Bulk copies: executed by the block as late as the rules allow, one at a time and in any order.

One is executed when no thread of the block can continue, when its thread waits for its group, or when the block ends.
It reads all its bytes, then writes them, then completes its transaction on the mbarrier; a wait with `.read` waits only
for the reads.
"""

from __future__ import annotations

from ptxlab.device.trace_format import GROUP_WAITED, ISSUED, NO_BLOCK
from ptxlab.emulate.abi.address_spaces import ATOMIC, GLOBAL_SPACE, LOAD, STORE, Hint
from ptxlab.emulate.abi.faults import NO_MEMORY
from ptxlab.emulate.abi.state import Block, StartedStore, Thread, Transfer
from ptxlab.emulate.runtime.asynchronous.async_accesses import end_work
from ptxlab.emulate.runtime.asynchronous.mbarriers import complete_bytes
from ptxlab.emulate.runtime.asynchronous.recorded_copies import BULK, record_read, record_written
from ptxlab.emulate.runtime.asynchronous.reductions import WIDTHS, reduce_bytes
from ptxlab.emulate.runtime.asynchronous.tensor_boxes import READ, WRITE, copy_box, fill_box, visit_box
from ptxlab.emulate.runtime.memory.memory import fail, find_memory, in_block, note_exited
from ptxlab.emulate.runtime.memory.recording import is_recording, record_event
from ptxlab.emulate.runtime.order.mbarrier_order import release_work
from ptxlab.emulate.runtime.order.shadow import OBJECT, SIZE_SHIFT, STRONG
from ptxlab.emulate.runtime.order.vector_clocks import BULK_READS, BULK_WRITES
from ptxlab.native import (
    Pointer,
    append,
    boolean,
    calloc,
    cast,
    copy_bytes,
    free,
    native,
    size_of,
    trailing_zeros,
    u8,
    u32,
    u64,
)

LIMIT = 1024
ALIGNMENT = 16
EVERY_BYTE = 0xFFFF
RECENT_STORES = 8
TRANSFER_SIZE = size_of(Transfer)


@native
def count_copy(thread: Pointer[Thread], counter: u32, written: u64, read: u64) -> None:
    """Count the bytes of a copy; nothing is copied where something was wrong."""
    counters = thread.worker.code.counters + counter
    counters[0] += written
    counters[1] += read


@native
def next_transfer(thread: Pointer[Thread], instruction: u32) -> Pointer[Transfer]:
    """Space for one more; of too many at a time the oldest is done."""
    block = thread.block
    if block.bulk.pending.count == LIMIT:
        finish_transfer(block, 0)
    transfer: Pointer[Transfer] = append(block.bulk.pending)
    if cast(u64, transfer) == 0:
        fail(thread, NO_MEMORY, instruction, 0)
        return transfer
    block.bulk.started += 1
    transfer.mask = EVERY_BYTE
    transfer.thread = thread.number
    transfer.group = thread.copies.bulk_group
    transfer.instruction = instruction
    transfer.number = block.bulk.started
    if is_recording(thread):
        record_event(thread, ISSUED, NO_BLOCK, 0, 0, BULK | transfer.number, 0, instruction)
    return transfer


@native(inline=True)
def write_of(reduction: u32) -> u32:
    """How a copy writes."""
    return ATOMIC if reduction != 0 else STORE


@native
def flags_of_write(reduction: u32, type: u32) -> u32:
    """The same as flags for the detectors: each value that is reduced is changed in one step."""
    if reduction == 0:
        return STORE
    return ATOMIC | STRONG | OBJECT | trailing_zeros(u32, WIDTHS[type]) << SIZE_SHIFT


@native
def is_repeated(block: Pointer[Block], transfer: Pointer[Transfer]) -> boolean:
    """Whether another lane of the warp has just started the same store of a box, by the same instruction.

    CUTLASS's epilogues have all lanes of a warp start it. They all write the same, and each lane waits for its own.
    """
    for index in range(RECENT_STORES):
        store = cast(Pointer[StartedStore], block.bulk.stores + index)
        if store.thread // 32 != transfer.thread // 32 or store.thread == transfer.thread:
            continue
        if store.instruction != transfer.instruction or store.group != transfer.group:
            continue
        is_same: boolean = store.address == transfer.map.address and store.source == transfer.source
        for dimension in range(6):
            if store.coordinates[dimension] != transfer.coordinates[dimension]:
                is_same = False
        if is_same:
            return True
    store = cast(Pointer[StartedStore], block.bulk.stores + block.bulk.stored % RECENT_STORES)
    block.bulk.stored += 1
    store.address = transfer.map.address
    store.source = transfer.source
    store.instruction = transfer.instruction
    store.thread = transfer.thread
    store.group = transfer.group
    for dimension in range(6):
        store.coordinates[dimension] = transfer.coordinates[dimension]
    return False


# Groups.


@native
def commit_transfers(thread: Pointer[Thread]) -> None:
    """Close the group of bulk copies started since the last one."""
    thread.copies.bulk_group += 1


@native
def wait_for_transfers(thread: Pointer[Thread], groups: u32, reads: u32, instruction: u32) -> None:
    """Finish all but the latest `groups` groups of a thread, or with `reads` only have them read what they copy."""
    thread.order.bulk_wait = instruction + 1
    if is_recording(thread):
        record_event(thread, GROUP_WAITED, NO_BLOCK, 0, 0, BULK | groups, 0, instruction)
    if thread.copies.bulk_group <= groups:
        return
    block = thread.block
    done: u32 = thread.copies.bulk_group - groups
    index: u32 = 0
    while index < block.bulk.pending.count:
        transfer = block.bulk.pending.items + index
        if cast(u64, transfer.to) == 0 and transfer.thread == thread.number and transfer.group < done:
            read_transfer(block, transfer)
            if reads == 0:
                finish_transfer(block, index)
                continue
        index += 1
    end_work(thread, BULK_READS + thread.number, done)
    if reads == 0:
        end_work(thread, BULK_WRITES + thread.number, done)


# Doing.


@native
def read_transfer(block: Pointer[Block], transfer: Pointer[Transfer]) -> None:
    """Have a copy read all its bytes; the memory may have been freed since it was issued."""
    if cast(u64, transfer.data) != 0 or transfer.size == 0:
        return
    thread = block.threads + transfer.thread
    data = calloc(1, u64(transfer.size))
    if cast(u64, data) == 0:
        fail(thread, NO_MEMORY, transfer.instruction, 0)
        return
    transfer.data = data
    if transfer.rank != 0:
        if transfer.is_global == 0:
            copy_box(thread, block, transfer, transfer.source, False)
            return
        if transfer.map.fills != 0:
            fill_box(transfer)
        visit_box(thread, transfer, READ)
        return
    if transfer.is_global == 0:
        copy_bytes(data, block.memory.shared + transfer.source, u64(transfer.size))
        record_read(thread, transfer, block.number, transfer.source, transfer.size, 0)
        return
    if transfer.size <= transfer.left + transfer.right:
        return
    read: u32 = transfer.size - transfer.left - transfer.right
    begin: u64 = transfer.source + u64(transfer.left)
    found = find_memory(thread, begin, read, 1, GLOBAL_SPACE, LOAD, transfer.instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) != 0:
        copy_bytes(data + transfer.left, found, u64(read))
        record_read(thread, transfer, NO_BLOCK, begin, read, transfer.left)


@native
def write_transfer(block: Pointer[Block], transfer: Pointer[Transfer]) -> None:
    """Have a copy write what it has read."""
    if transfer.size == 0 or cast(u64, transfer.data) == 0:
        return
    if transfer.rank != 0:
        if transfer.is_global != 0:
            thread = block.threads + transfer.thread
            copy_box(thread, transfer.to, transfer, transfer.destination, True)
        else:
            visit_box(block.threads + transfer.thread, transfer, WRITE)
        return
    if cast(u64, transfer.to) != 0:
        if transfer.to.live == 0 and transfer.to != block:
            address: u64 = in_block(transfer.destination, transfer.to.rank)
            access: u32 = write_of(transfer.reduction)
            note_exited(block.threads + transfer.thread, transfer.instruction, address, transfer.size, access)
        found = transfer.to.memory.shared + transfer.destination
    else:
        found = find_memory(
            block.threads + transfer.thread,
            transfer.destination,
            transfer.size,
            1,
            GLOBAL_SPACE,
            write_of(transfer.reduction),
            transfer.instruction,
            cast(Pointer[Hint], 0),
        )
        if cast(u64, found) == 0:
            return
    if transfer.reduction != 0:
        reduce_bytes(found, transfer.data, u64(transfer.size), transfer.reduction, transfer.type)
    elif transfer.mask & EVERY_BYTE == EVERY_BYTE:
        copy_bytes(found, transfer.data, u64(transfer.size))
    else:
        for at in range(transfer.size):
            if transfer.mask >> at % ALIGNMENT & 1 != 0:
                found[at] = transfer.data[at]
    owner: u64 = NO_BLOCK
    if cast(u64, transfer.to) != 0:
        owner = transfer.to.number
    record_written(block.threads + transfer.thread, transfer, owner, transfer.destination, found, transfer.size, 0)


@native
def finish_transfer(block: Pointer[Block], index: u32) -> None:
    """Execute a copy, complete its bytes on the mbarrier, and take it off the list."""
    transfer = block.bulk.pending.items + index
    thread = block.threads + transfer.thread
    signals = signals_of(transfer)
    barrier: u64 = transfer.barrier
    size: u32 = transfer.size
    instruction: u32 = transfer.instruction
    read_transfer(block, transfer)
    write_transfer(block, transfer)
    free(transfer.data)
    last: u32 = block.bulk.pending.count - 1
    while index < last:
        copy_bytes(
            cast(Pointer[u8], block.bulk.pending.items + index),
            cast(Pointer[u8], block.bulk.pending.items + (index + 1)),
            TRANSFER_SIZE,
        )
        index += 1
    block.bulk.pending.count = last
    block.schedule.moves += 1
    block.worker.progress.deliveries += 1
    if cast(u64, signals) != 0:
        release_work(signals, barrier, block.number, done_up_to(block, signals, barrier))
        complete_bytes(thread, signals, barrier, size, instruction)


@native(inline=True)
def signals_of(transfer: Pointer[Transfer]) -> Pointer[Block]:
    """The block whose mbarrier a copy signals; null if it signals none."""
    return transfer.to if cast(u64, transfer.signals) == 0 else transfer.signals


@native
def done_up_to(block: Pointer[Block], signals: Pointer[Block], barrier: u64) -> u32:
    """The number up to which all copies are done that an mbarrier hears of."""
    done: u32 = block.bulk.started
    for index in range(block.bulk.pending.count):
        transfer = block.bulk.pending.items + index
        if signals_of(transfer) == signals and transfer.barrier == barrier and transfer.number <= done:
            done = transfer.number - 1
    return done


@native
def finish_transfers(block: Pointer[Block]) -> boolean:
    """Do all copies that are under way: the block ends. Whether there are any."""
    if block.bulk.pending.count == 0:
        return False
    while block.bulk.pending.count != 0:
        finish_transfer(block, 0)
    return True


CALLED = (
    commit_transfers,
    wait_for_transfers,
)
