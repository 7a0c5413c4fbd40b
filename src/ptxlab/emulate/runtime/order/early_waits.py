"""Waits for a phase before the one that brings the data: a ring that lags by a phase.

A wait for the parity of the phase before phase 0 is over at once, which is right for a producer: it then writes. A
thread that reads after such a wait reads what was there before. That is a wrong phase if all of this is true: the next
write to what it read is handed over by phase 0 of the same mbarrier, nothing else wrote there in between, and a phase
of this mbarrier is never seen by any wait, so that what it brought is lost. No schedule can hide it: the reader comes
before the writer by their own synchronization.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, SHARED_SPACE
from ptxlab.emulate.abi.barriers import EARLY_READS, KNOWN_PHASES, EarlyRead, Phase
from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.findings import STALE_PHASE
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.runtime.asynchronous.mbarrier_ledger import record_of
from ptxlab.emulate.runtime.asynchronous.mbarrier_notes import notes_on
from ptxlab.emulate.runtime.order.last_waits import note_pass
from ptxlab.emulate.runtime.order.reports import add_first
from ptxlab.emulate.runtime.order.shadow import ASYNC, CHUNK_SHIFT, GENERATION, WARP_SHIFT, cell_in, find_page
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64


@native
def cell_at(block: Pointer[Block], offset: u64) -> Pointer[Access]:
    """What is remembered of a byte of shared memory; null if there is no memory for it."""
    page = find_page(block.worker.history, address_of(block.order.pages), offset, CHUNK_SHIFT)
    if cast(u64, page) == 0:
        return cast(Pointer[Access], 0)
    return cell_in(page, offset)


@native
def note_wait(thread: Pointer[Thread], notes: Pointer[Phase]) -> None:
    """A wait is over: for a phase, or at once, since no phase has completed yet."""
    if notes.is_known == 0:
        return
    thread.order.wait = notes.offset + 1
    thread.order.wait_at = thread.waiting.instruction
    thread.order.wait_order = u32(thread.target.number >> 1)
    thread.order.wait_phases = notes.completed
    note_pass(thread, notes)
    if notes.completed == 0:
        thread.order.early = notes.offset + 1
        thread.order.early_wait = thread.waiting.instruction
    elif thread.order.early == notes.offset + 1:
        thread.order.early = 0


@native
def note_early_read(thread: Pointer[Thread], offset: u64, instruction: u32) -> None:
    """A thread reads shared memory, or starts an operation that does, after a wait that was over at once."""
    notes = notes_on(thread.block, thread.order.early - 1)
    if notes.offset != thread.order.early - 1 or notes.completed != 0 or notes.early_count == EARLY_READS:
        return
    for index in range(notes.early_count):
        if notes.early[index].instruction == instruction:
            return
    cell = cell_at(thread.block, offset)
    if cast(u64, cell) == 0:
        return
    read = cast(Pointer[EarlyRead], notes.early + notes.early_count)
    notes.early_count += 1
    read.offset = offset
    read.generation = cell.link >> GENERATION
    read.instruction = instruction
    read.wait = thread.order.early_wait
    read.thread = thread.number
    read.filled_at = 0


@native
def note_filled(block: Pointer[Block], notes: Pointer[Phase], thread: Pointer[Thread], channel: u32) -> None:
    """Phase 0 gets an arrival of a thread, or bytes of copies (`channel`): is what was read early written by now?"""
    for index in range(notes.early_count):
        read = cast(Pointer[EarlyRead], notes.early + index)
        cell = cell_at(block, read.offset)
        if cast(u64, cell) == 0 or cell.link >> GENERATION != read.generation + 1:
            continue
        is_own: boolean = cell.flags & ASYNC != 0 and cell.lanes == channel
        if channel == 0 and cell.flags & ASYNC == 0 and cell.block == u32(thread.block.number):
            is_own = (
                cell.epoch == thread.order.epoch
                and cell.flags >> WARP_SHIFT == thread.number // 32
                and cell.lanes >> thread.lane & 1 != 0
            )
        if is_own:
            read.filled_at = cell.instruction + 1


@native
def check_early_reads(thread: Pointer[Thread]) -> None:
    """The last thread of a block ends: report what was read a phase too early, and what was never waited for."""
    block = thread.block
    if thread.worker.checks == 0 or block.barriers.uses_mbarriers == 0:
        return
    for index in range(KNOWN_PHASES):
        notes = cast(Pointer[Phase], block.barriers.phases + index)
        if notes.early_count == 0 or notes.completed == 0:
            continue
        if notes.skipped == 0 and record_of(notes, notes.completed - 1).passed != 0:
            continue
        for at in range(notes.early_count):
            if notes.early[at].filled_at != 0:
                report_stale_phase(thread, notes, cast(Pointer[EarlyRead], notes.early + at))


@native
def report_stale_phase(thread: Pointer[Thread], notes: Pointer[Phase], read: Pointer[EarlyRead]) -> None:
    """Note a read of a phase too early, unless this wait has had one."""
    found = add_first(thread, STALE_PHASE, notes.offset, 8, LOAD, read.instruction, SHARED_SPACE)
    if cast(u64, found) == 0:
        return
    found.access.thread = read.thread
    found.other.instruction = read.filled_at - 1
    found.wait.at = read.wait + 1
    found.mbarrier.offset = notes.offset
