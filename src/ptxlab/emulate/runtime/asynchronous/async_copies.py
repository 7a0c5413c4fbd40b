"""`cp.async`: copies are done as late as the rules allow, when their thread waits or no thread can continue."""

from __future__ import annotations

from ptxlab.device.trace_format import GROUP_WAITED, ISSUED, NO_BLOCK, READ
from ptxlab.emulate.abi.address_spaces import ATOMIC, GLOBAL_SPACE, LOAD, SHARED_SPACE, STORE, Hint
from ptxlab.emulate.abi.faults import BAD_COPY_SIZE, BAD_SIZE, NO_MEMORY
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.thread_parts import Copy
from ptxlab.emulate.runtime.asynchronous.mbarriers import expect_arrival, join_phase
from ptxlab.emulate.runtime.memory.memory import fail, fail_with, find_memory
from ptxlab.emulate.runtime.memory.recording import is_recording, record_event, record_write
from ptxlab.emulate.runtime.order.races import note_global, note_shared
from ptxlab.emulate.runtime.order.shadow import COPY, OBJECT, SIZE_SHIFT, STRONG
from ptxlab.native import Pointer, append, cast, copy_bytes, fill_bytes, native, size_of, u8, u32, u64

LIMIT = 4096
MOST_ZEROS = 1 << 24
SERIAL_SHIFT = 12
COPY_SIZE = size_of(Copy)


@native
def next_copy(thread: Pointer[Thread], instruction: u32) -> Pointer[Copy]:
    """Space for one more copy; of too many at a time the earlier ones are done."""
    if thread.copies.pending.count == LIMIT:
        finish_copies(thread, 0)
    copy: Pointer[Copy] = append(thread.copies.pending)
    if cast(u64, copy) == 0:
        fail(thread, NO_MEMORY, instruction, 0)
        return copy
    copy.group = thread.copies.group
    copy.instruction = instruction
    copy.serial = serial_of(thread.copies.group + 1, thread.copies.index)
    return copy


@native(inline=True)
def serial_of(group: u32, index: u32) -> u32:
    """The number of a copy among all of its thread, by its group, counted from 1, and its position in that."""
    return group << SERIAL_SHIFT | index


@native
def start_copy(
    thread: Pointer[Thread], destination: u64, source: u64, size: u32, wanted: u32, tracked: u32, instruction: u32
) -> None:
    """Start a copy of `size` bytes to shared memory: the first `wanted` from `source`, then zeros.

    Not `tracked`: the kernel does not write the memory that it reads.
    """
    if wanted > size:
        fail_with(thread, BAD_COPY_SIZE, instruction, u64(wanted), u64(size))
        return
    found = find_memory(thread, destination, size, size, SHARED_SPACE, STORE, instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) == 0:
        return
    if wanted != 0:
        memory = find_memory(thread, source, wanted, size, GLOBAL_SPACE, LOAD, instruction, cast(Pointer[Hint], 0))
        if cast(u64, memory) == 0:
            return
    copy = next_copy(thread, instruction)
    if cast(u64, copy) == 0:
        return
    copy.destination = destination
    copy.source = source
    copy.size = size
    copy.source_size = wanted
    if is_recording(thread):
        thread.block.copies_started += 1
        copy.number = thread.block.copies_started
        record_event(thread, ISSUED, NO_BLOCK, source, size, copy.number, 0, instruction)
    if thread.worker.checks != 0:
        if wanted != 0 and tracked != 0:
            note_global(thread, source, wanted, LOAD, instruction, 0)
        note_shared(thread, destination, size, STORE | COPY, instruction, 0)
        if thread.copies.index < (1 << SERIAL_SHIFT) - 1:
            thread.copies.index += 1


@native
def fill_shared(thread: Pointer[Thread], offset: u64, size: u64, instruction: u32) -> None:
    """Write zeros to shared memory: what `st.bulk` does, at once and as ordinary stores do."""
    if size % 8 != 0 or size > MOST_ZEROS:
        fail(thread, BAD_SIZE, instruction, size)
        return
    nowhere = cast(Pointer[Hint], 0)
    if size == 0:
        return
    found = find_memory(thread, offset, u32(size), 8, SHARED_SPACE, STORE, instruction, nowhere)
    if cast(u64, found) == 0:
        return
    if thread.worker.checks != 0:
        for at in range(size // 8):
            note_shared(thread, offset + 8 * at, 8, STORE | 3 << SIZE_SHIFT, instruction, 0)
    fill_bytes(found, 0, size)
    if is_recording(thread):
        record_write(thread, thread.block.number, offset, found, u32(size), 0, 0, instruction)


@native
def arrive_after_copies(thread: Pointer[Thread], barrier: u64, counted: u32, instruction: u32) -> None:
    """Arrive at an mbarrier when all copies of the thread so far are done; not `counted`: it is to expect one more."""
    found = find_memory(thread, barrier, 8, 8, SHARED_SPACE, ATOMIC, instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) == 0:
        return
    if thread.worker.checks != 0:
        note_shared(thread, barrier, 8, ATOMIC | STRONG | OBJECT | 3 << SIZE_SHIFT, instruction, 0)
    if counted == 0:
        expect_arrival(thread, thread.block, barrier, instruction)
    copy = next_copy(thread, instruction)
    if cast(u64, copy) == 0:
        return
    copy.destination = barrier
    copy.size = 0


@native
def commit_copies(thread: Pointer[Thread]) -> None:
    """Close the group of copies started since the last one."""
    thread.copies.group += 1
    thread.copies.index = 0


@native
def wait_for_copies(thread: Pointer[Thread], groups: u32, instruction: u32) -> None:
    """Finish all but the latest `groups` groups."""
    thread.order.copies_wait = instruction + 1
    if is_recording(thread):
        record_event(thread, GROUP_WAITED, NO_BLOCK, 0, 0, groups, 0, instruction)
    if thread.copies.group > groups:
        finish_copies(thread, groups + 1)
        thread.copies.done = max(thread.copies.done, serial_of(thread.copies.group - groups + 1, 0) - 1)


@native
def deliver(thread: Pointer[Thread], copy: Pointer[Copy]) -> None:
    """Do a copy; its source may have been freed since it started."""
    found = thread.memory.shared + copy.destination
    wanted: u32 = copy.source_size
    at: u32 = copy.instruction
    if wanted != 0:
        nowhere = cast(Pointer[Hint], 0)
        memory = find_memory(thread, copy.source, wanted, 1, GLOBAL_SPACE, LOAD, copy.instruction, nowhere)
        if cast(u64, memory) == 0:
            return
        copy_bytes(found, memory, u64(wanted))
        if is_recording(thread):
            record_event(thread, READ, NO_BLOCK, copy.source, wanted, copy.number, 0, at)
    fill_bytes(found + wanted, 0, u64(copy.size) - u64(wanted))
    if is_recording(thread):
        record_write(thread, thread.block.number, copy.destination, found, copy.size, copy.number, 0, at)


@native
def finish_copies(thread: Pointer[Thread], kept: u32) -> None:
    """Do the copies of all groups but the latest `kept` (0: all; 1: all that are committed); the rest stay in order."""
    index: u32 = 0
    left: u32 = 0
    count: u32 = thread.copies.pending.count
    while index < count:
        copy = thread.copies.pending.items + index
        if kept == 0 or copy.group + kept <= thread.copies.group:
            if copy.size == 0:
                join_phase(thread, thread.block, copy.destination, copy.serial, copy.instruction)
            else:
                deliver(thread, copy)
            thread.block.schedule.moves += 1
            thread.worker.progress.deliveries += 1
        else:
            kept_copy = thread.copies.pending.items + left
            if left != index:
                copy_bytes(cast(Pointer[u8], kept_copy), cast(Pointer[u8], copy), COPY_SIZE)
            left += 1
        index += 1
    thread.copies.pending.count = left


CALLED = (
    start_copy,
    fill_shared,
    arrive_after_copies,
    commit_copies,
    wait_for_copies,
)
