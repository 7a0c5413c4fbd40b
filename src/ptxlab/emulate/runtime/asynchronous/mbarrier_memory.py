"""The 64 bits of an mbarrier in shared memory, and whether anything but mbarrier operations has written them.

From the lowest bit: 20 bits of arrivals still expected in this phase, 20 bits of arrivals that a phase expects, 21 bits
of bytes outstanding (two's complement), the parity of the phase, the layout (which changes nothing here), and a mark by
which an initialized one is known.
"""

from __future__ import annotations

from ptxlab.emulate.abi.faults import BAD_BARRIER, BarrierReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import AT_PHASE
from ptxlab.emulate.runtime.asynchronous.mbarrier_notes import notes_on
from ptxlab.emulate.runtime.memory.memory import fail_because, in_block
from ptxlab.emulate.runtime.order.reports import report_reinitialized
from ptxlab.emulate.runtime.order.shadow import ASYNC, CHUNK_SHIFT, WARP_SHIFT, cell_in, find_page
from ptxlab.isa.chapters.mbarrier import ARRIVALS
from ptxlab.native import Pointer, address_of, boolean, cast, native, trailing_zeros, u32, u64, unlikely

BYTES_MASK = (1 << 21) - 1
PENDING = 0
EXPECTED = 20
BYTES = 40
LAYOUT = 62
MARK = 1 << 63


@native(inline=True)
def barrier_at(block: Pointer[Block], offset: u64) -> Pointer[u64]:
    return cast(Pointer[u64], block.memory.shared + offset)


@native(inline=True)
def set_bits(block: Pointer[Block], offset: u64, bits: u64) -> None:
    """Change an mbarrier."""
    barrier_at(block, offset)[0] = bits
    notes_on(block, offset).bits = bits
    block.barriers.uses_mbarriers = 1


@native
def fail_barrier(
    thread: Pointer[Thread], block: Pointer[Block], offset: u64, reason: u32, value: u64, instruction: u32
) -> None:
    """Note what is wrong with the use of an mbarrier."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.address = in_block(offset, block.rank)
    fail_because(thread, BAD_BARRIER, reason, instruction, value)


@native(inline=True)
def is_intact(thread: Pointer[Thread], block: Pointer[Block], offset: u64, instruction: u32) -> boolean:
    """Whether only mbarrier operations have written an mbarrier; a fault otherwise."""
    notes = notes_on(block, offset)
    bits: u64 = barrier_at(block, offset)[0]
    if unlikely(notes.is_known != 0 and notes.bits & MARK != 0 and notes.bits != bits):
        report_overwritten(thread, block, offset, notes.bits ^ bits, instruction)
        return False
    return True


@native
def check_intact(thread: Pointer[Thread], block: Pointer[Block], offset: u64, instruction: u32) -> None:
    """Note a fault if an mbarrier was overwritten, while the access that did it is known: the next one hides it."""
    is_intact(thread, block, offset, instruction)


@native
def report_overwritten(
    thread: Pointer[Thread], block: Pointer[Block], offset: u64, changed: u64, instruction: u32
) -> None:
    """Note that an mbarrier was overwritten, and by which access if accesses are tracked."""
    fault = thread.worker.fault
    at: u64 = offset + u64(trailing_zeros(u64, changed) // 8)
    if fault.kind == 0 and thread.worker.checks != 0:
        page = find_page(thread.worker.history, address_of(block.order.pages), at, CHUNK_SHIFT)
        if cast(u64, page) != 0:
            cell = cell_in(page, at)
            if cell.epoch != 0:
                fault.other_instruction = cell.instruction + 1
                fault.other_block = u64(cell.block)
                fault.other_thread = cell.flags >> WARP_SHIFT
                if cell.flags & ASYNC == 0:
                    fault.other_thread = fault.other_thread * 32 + trailing_zeros(u32, cell.lanes)
    fail_barrier(thread, block, offset, BarrierReason.OVERWRITTEN, changed, instruction)


@native
def may_initialize(thread: Pointer[Thread], block: Pointer[Block], offset: u64, instruction: u32) -> boolean:
    """Whether no mbarrier is there that is in use, which is a fault; one that is only not invalidated is a finding."""
    notes = notes_on(block, offset)
    bits: u64 = barrier_at(block, offset)[0]
    if notes.is_known == 0 or bits & MARK == 0 or bits != notes.bits:
        return True
    waiting: u32 = waiters_of(block, offset)
    is_partial: boolean = bits & ARRIVALS != bits >> EXPECTED & ARRIVALS
    if waiting != 0 or is_partial or bits >> BYTES & BYTES_MASK != 0:
        fail_barrier(thread, block, offset, BarrierReason.REINITIALIZED, u64(waiting), instruction)
        return False
    if thread.worker.checks != 0:
        report_reinitialized(thread, offset, notes, instruction)
    return True


@native
def waiters_of(block: Pointer[Block], offset: u64) -> u32:
    """How many threads wait on an mbarrier."""
    count: u32 = 0
    for index in range(block.count):
        if block.threads[index].status == AT_PHASE and block.threads[index].target.offset == offset:
            count += 1
    return count


CALLED = (check_intact,)
