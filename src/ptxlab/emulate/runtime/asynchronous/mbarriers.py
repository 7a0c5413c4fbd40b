"""mbarrier objects: 64 bits of shared memory that count arrivals and bytes, phase by phase; see `mbarrier_memory`.

A barrier is named by the block whose shared memory holds it and its offset there; `thread` is the one that does
something to it.
"""

from __future__ import annotations

from ptxlab.device.trace_format import ARRIVED, COMPLETED, INITIALIZED, OBSERVED, PHASE
from ptxlab.device.trace_format import EXPECTED as EXPECTED_BYTES
from ptxlab.emulate.abi.address_spaces import ATOMIC, OFFSET_MASK, Hint
from ptxlab.emulate.abi.faults import BAD_BARRIER, BarrierReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import AT_PHASE
from ptxlab.emulate.runtime.asynchronous.mbarrier_ledger import begin_record, record_arrival, record_of, record_pass
from ptxlab.emulate.runtime.asynchronous.mbarrier_memory import (
    BYTES,
    BYTES_MASK,
    EXPECTED,
    LAYOUT,
    MARK,
    PENDING,
    barrier_at,
    fail_barrier,
    is_intact,
    may_initialize,
    set_bits,
)
from ptxlab.emulate.runtime.asynchronous.mbarrier_notes import notes_on, take_notes
from ptxlab.emulate.runtime.memory.memory import fail_because, find_memory, owner_of
from ptxlab.emulate.runtime.memory.recording import is_recording, record_event
from ptxlab.emulate.runtime.order.early_waits import note_filled, note_wait
from ptxlab.emulate.runtime.order.mbarrier_order import (
    acquire_from_phase,
    acquire_tensor_work,
    begin_phases,
    channel_of,
    order_phase,
    release_copies,
    release_to_phase,
)
from ptxlab.isa.chapters.mbarrier import ARRIVALS, INCOMPLETE, PARITY, RELAXED_ORDER
from ptxlab.native import Pointer, boolean, cast, native, u32, u64, unlikely

ONE_PHASE = 1 << PARITY
MOST_BYTES = (1 << 20) - 1  # PTX ISA 9.7.13.15.2: the range of the tx-count, to both sides of 0


@native
def initialize_phase(
    thread: Pointer[Thread], block: Pointer[Block], offset: u64, count: u32, layout: u32, instruction: u32
) -> None:
    """Start the first phase, which expects `count` arrivals."""
    if count == 0 or count > ARRIVALS:
        fail_barrier(thread, block, offset, BarrierReason.BAD_ARRIVAL_COUNT, u64(count), instruction)
        return
    if not may_initialize(thread, block, offset, instruction):
        return
    notes = take_notes(block, offset)
    set_bits(block, offset, MARK | u64(layout) << LAYOUT | u64(count) << PENDING | u64(count) << EXPECTED)
    notes.completed = 0
    notes.instruction = instruction
    notes.arrived_at = 0
    notes.copied = 0
    notes.copies = 0
    notes.expected_bytes = 0
    notes.passed = 0
    notes.early_count = 0
    notes.skipped = 0
    notes.committed = 0
    begin_record(notes)
    begin_phases(thread, block, offset)
    if is_recording(thread):
        record_event(thread, INITIALIZED, block.number, offset, count, 0, 0, instruction)
    thread.block.schedule.moves += 1


@native
def invalidate_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64, instruction: u32) -> None:
    """Give the memory of an mbarrier back for other use; a second time, by other lanes, it changes nothing."""
    notes = notes_on(block, offset)
    is_invalid: boolean = notes.is_known != 0 and notes.bits == 0
    if not is_invalid and not is_barrier(thread, block, offset, instruction):
        return
    set_bits(block, offset, 0)
    begin_phases(thread, block, offset)


@native
def layout_of_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64, instruction: u32) -> u32:
    """The number of the layout that an mbarrier was initialized with."""
    if not is_barrier(thread, block, offset, instruction):
        return 0
    return u32(barrier_at(block, offset)[0] >> LAYOUT & 1)


@native
def is_barrier(thread: Pointer[Thread], block: Pointer[Block], offset: u64, instruction: u32) -> boolean:
    """Whether an mbarrier has been initialized there; a fault otherwise."""
    if not is_intact(thread, block, offset, instruction):
        return False
    if barrier_at(block, offset)[0] & MARK == 0:
        fail_barrier(thread, block, offset, BarrierReason.UNINITIALIZED, 0, instruction)
        return False
    return True


@native
def target_of(thread: Pointer[Thread], destination: u64, barrier: u64, space: u32, instruction: u32) -> Pointer[Block]:
    """The block that `destination` is in and whose mbarrier can be signalled; null, with the fault noted, if none."""
    nothing = cast(Pointer[Block], 0)
    found = find_memory(thread, barrier, 8, 8, space, ATOMIC, instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) == 0:
        return nothing
    to = owner_of(thread, barrier)
    if owner_of(thread, destination) != to:
        fail_because(thread, BAD_BARRIER, BarrierReason.OTHER_BLOCK, instruction, 0)
        return nothing
    return to if is_barrier(thread, to, barrier & OFFSET_MASK, instruction) else nothing


@native
def signalled_in_pair(
    thread: Pointer[Thread], destination: u64, barrier: u64, space: u32, instruction: u32
) -> Pointer[Block]:
    """The block whose mbarrier can be signalled: that of `destination`, or the other one of its pair."""
    nothing = cast(Pointer[Block], 0)
    found = find_memory(thread, barrier, 8, 8, space, ATOMIC, instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) == 0:
        return nothing
    signals = owner_of(thread, barrier)
    if owner_of(thread, destination).rank | 1 != signals.rank | 1:
        fail_because(thread, BAD_BARRIER, BarrierReason.OTHER_BLOCK, instruction, 0)
        return nothing
    return signals if is_barrier(thread, signals, barrier & OFFSET_MASK, instruction) else nothing


@native
def change_bytes(thread: Pointer[Thread], block: Pointer[Block], offset: u64, bytes: u64, instruction: u32) -> None:
    """Expect more bytes in this phase (or fewer, for those that have come)."""
    if not is_barrier(thread, block, offset, instruction):
        return
    state: u64 = barrier_at(block, offset)[0]
    before: u64 = state >> BYTES & BYTES_MASK
    before -= before >> 20 << 21
    count: u64 = before + bytes
    if count + MOST_BYTES > 2 * MOST_BYTES:
        fail_barrier(thread, block, offset, BarrierReason.TOO_MANY_BYTES, count, instruction)
        return
    set_bits(block, offset, state & ~(u64(BYTES_MASK) << BYTES) | (count & BYTES_MASK) << BYTES)
    complete_phase(thread, block, offset)


@native
def expect_bytes(thread: Pointer[Thread], block: Pointer[Block], offset: u64, bytes: u32, instruction: u32) -> None:
    """Have this phase wait for so many bytes more."""
    notes = notes_on(block, offset)
    notes.expected_bytes += u64(bytes)
    notes.expected_at = instruction
    record_of(notes, notes.completed).expected_bytes += u64(bytes)
    if is_recording(thread):
        record_event(thread, EXPECTED_BYTES, block.number, offset, bytes, u32(notes.completed), 0, instruction)
    change_bytes(thread, block, offset, u64(bytes), instruction)


@native
def complete_bytes(thread: Pointer[Thread], block: Pointer[Block], offset: u64, bytes: u32, instruction: u32) -> None:
    """A bulk copy has brought that many bytes."""
    notes = notes_on(block, offset)
    notes.copied += u64(bytes)
    notes.copied_at = instruction
    if notes.copies == 0:
        notes.copied_first = instruction
    notes.copies += 1
    record_of(notes, notes.completed).bytes += u64(bytes)
    if is_recording(thread):
        record_event(thread, COMPLETED, block.number, offset, bytes, u32(notes.completed), 0, instruction)
    if unlikely(notes.early_count != 0) and notes.completed == 0:
        note_filled(block, notes, thread, channel_of(block, offset))
    change_bytes(thread, block, offset, 0 - u64(bytes), instruction)


@native
def arrive_at_phase(
    thread: Pointer[Thread], block: Pointer[Block], offset: u64, count: u32, order: u32, instruction: u32
) -> u64:
    """Arrive `count` times; the result is the state before. `order` is as in `isa.chapters.mbarrier`; 0: none."""
    if not is_barrier(thread, block, offset, instruction):
        return 0
    notes = notes_on(block, offset)
    if unlikely(notes.early_count != 0) and notes.completed == 0:
        note_filled(block, notes, thread, 0)
    if order != 0:
        release_to_phase(thread, block, offset, order)
    before: u64 = barrier_at(block, offset)[0]
    if (before & ARRIVALS) < u64(count):
        fail_barrier(thread, block, offset, BarrierReason.TOO_MANY_ARRIVALS, u64(count), instruction)
        return 0
    if order & INCOMPLETE != 0 and before & ARRIVALS == u64(count) and before >> BYTES & BYTES_MASK == 0:
        fail_barrier(thread, block, offset, BarrierReason.COMPLETED, u64(count), instruction)
        return 0
    set_bits(block, offset, before - u64(count))
    notes.arrived_at = instruction
    notes.arrived_by = thread.number
    notes.arrived_from = thread.block.number
    notes.arrived_order = order
    record_arrival(notes, thread, count, instruction)
    if is_recording(thread):
        left: u32 = u32(before & ARRIVALS) - count
        record_event(thread, ARRIVED, block.number, offset, count, u32(notes.completed), left, instruction)
    thread.block.schedule.moves += 1
    complete_phase(thread, block, offset)
    return before


@native
def join_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64, serial: u32, instruction: u32) -> None:
    """Arrive once, for copies that are done: those up to the number `serial`."""
    release_copies(thread, block, offset, serial)
    arrive_at_phase(thread, block, offset, 1, 0, instruction)


@native
def expect_arrival(thread: Pointer[Thread], block: Pointer[Block], offset: u64, instruction: u32) -> None:
    """Have this phase wait for one arrival more."""
    if not is_barrier(thread, block, offset, instruction):
        return
    state: u64 = barrier_at(block, offset)[0]
    if state & ARRIVALS == ARRIVALS:
        fail_barrier(thread, block, offset, BarrierReason.BAD_ARRIVAL_COUNT, ARRIVALS + 1, instruction)
        return
    set_bits(block, offset, state + 1)


@native
def drop_from_phase(
    thread: Pointer[Thread], block: Pointer[Block], offset: u64, count: u32, order: u32, instruction: u32
) -> u64:
    """Arrive, and expect that many fewer from the next phase on."""
    if not is_barrier(thread, block, offset, instruction):
        return 0
    state: u64 = barrier_at(block, offset)[0]
    if (state >> EXPECTED & ARRIVALS) < u64(count) or (state & ARRIVALS) < u64(count):
        fail_barrier(thread, block, offset, BarrierReason.TOO_MANY_ARRIVALS, u64(count), instruction)
        return 0
    set_bits(block, offset, state - (u64(count) << EXPECTED))
    return arrive_at_phase(thread, block, offset, count, order, instruction)


@native
def complete_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64) -> None:
    """Start the next phase if this one has all its arrivals and bytes."""
    state: u64 = barrier_at(block, offset)[0]
    if state & ARRIVALS == 0 and state >> BYTES & BYTES_MASK == 0:
        expected: u64 = state >> EXPECTED & ARRIVALS
        set_bits(block, offset, (state ^ ONE_PHASE) & ~u64(ARRIVALS) | expected)
        notes = notes_on(block, offset)
        if notes.completed != 0 and record_of(notes, notes.completed - 1).passed == 0:
            notes.skipped += 1
        if is_recording(thread):
            record_event(thread, PHASE, block.number, offset, 0, u32(notes.completed), 0, 0)
        notes.completed += 1
        notes.copied = 0
        notes.copies = 0
        notes.expected_bytes = 0
        begin_record(notes)
        order_phase(block, offset)
        thread.block.schedule.moves += 1


@native
def wait_for_phase(
    thread: Pointer[Thread], block: Pointer[Block], offset: u64, parity: u64, order: u32, instruction: u32
) -> None:
    """Wait until the phase of that parity has completed."""
    if not is_barrier(thread, block, offset, instruction):
        return
    thread.target.offset = offset
    thread.target.number = (parity & 1) | u64(order) << 1
    thread.status = AT_PHASE
    thread.waiting.instruction = instruction
    thread.target.asked = instruction + 1


@native
def has_completed(thread: Pointer[Thread]) -> boolean:
    """Whether the phase that a thread waits for, of a barrier of its own block, has completed."""
    block = thread.block
    if (barrier_at(block, thread.target.offset)[0] >> PARITY & 1) == (thread.target.number & 1):
        return False
    if not is_intact(thread, block, thread.target.offset, thread.waiting.instruction):
        return False
    notes = notes_on(block, thread.target.offset)
    notes.passed += 1
    if is_recording(thread):
        phase: u32 = u32(notes.completed) - 1
        at: u64 = thread.target.offset
        record_event(thread, OBSERVED, block.number, at, 0, phase, 0, thread.waiting.instruction)
    record_pass(notes)
    note_wait(thread, notes)
    order: u32 = u32(thread.target.number >> 1)
    acquire_from_phase(thread, block, thread.target.offset, order)
    if order & RELAXED_ORDER != 0:
        acquire_tensor_work(thread, block, thread.target.offset)
    return True


CALLED = (
    initialize_phase,
    invalidate_phase,
    layout_of_phase,
    expect_bytes,
    complete_bytes,
    arrive_at_phase,
    drop_from_phase,
    wait_for_phase,
)
