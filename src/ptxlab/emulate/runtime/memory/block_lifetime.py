"""Whether a block is there when others of its cluster access its shared memory: it has started, and not exited.

Both are asked of order, not of time: what happens to be in time now may be too early or too late on a GPU.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import ATOMIC, LOAD, RANK_SHIFT
from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.runtime.asynchronous.mbarrier_ledger import record_of
from ptxlab.emulate.runtime.asynchronous.mbarrier_notes import notes_on
from ptxlab.emulate.runtime.order.happens_before import companion, covers, doubt_of, is_covered
from ptxlab.emulate.runtime.order.reports import report_absence
from ptxlab.emulate.runtime.order.shadow import ASYNC, KIND, PAGE, PAGE_SHIFT, WARP_SHIFT, WORD_SHIFT
from ptxlab.emulate.runtime.order.vector_clocks import join
from ptxlab.native import Pointer, address_of, boolean, native, u32, u64


@native
def has_started(thread: Pointer[Thread], block: Pointer[Block]) -> boolean:
    """Whether a thread knows that another block of its cluster has started: by the cluster's barrier, or any order."""
    if block.cluster.phase != 0:
        return True
    return covers(address_of(thread.order.known), block.number) or covers(
        address_of(thread.block.order.known), block.number
    )


@native
def note_exit(thread: Pointer[Thread]) -> None:
    """The last thread of a block exits: whatever other blocks did to its shared memory must have happened before."""
    block = thread.block
    if thread.worker.checks == 0 or block.live != 0 or block.cluster.count == 1:
        return
    for index in range(block.count):
        if index != thread.number:
            join(address_of(thread.order.known), address_of(block.threads[index].order.known))
    for slot in range(block.order.pages.capacity):
        page = block.order.pages.slots + slot
        if page.number == 0:
            continue
        size: u32 = u32(1) << min(page.shift, u32(WORD_SHIFT))
        for at in range(u32(PAGE) >> page.shift):
            access = page.accesses + at
            offset: u64 = ((page.number - 1) << PAGE_SHIFT) + (u64(at) << u64(page.shift))
            if access.epoch != 0:
                note_late(thread, access, offset, size)
            number: u32 = access.next
            while number != 0:
                other = thread.worker.history.chained.items + number
                note_late(thread, other, offset, size)
                number = other.next


@native
def is_over(thread: Pointer[Thread], access: Pointer[Access]) -> boolean:
    """Whether an access is a read by threads that have come to the barrier of the cluster since, without a release.

    Threads that wait there stay until then all the same: only what is written needs a release to be over.
    """
    if access.flags & KIND != LOAD or access.flags & ASYNC != 0:
        return False
    reader = companion(thread, access.block)
    for lane in range(32):
        number: u32 = (access.flags >> WARP_SHIFT) * 32 + lane
        if access.lanes >> lane & 1 != 0 and reader.threads[number].arrival.arrived < access.epoch:
            return False
    return True


@native
def is_counted(block: Pointer[Block], access: Pointer[Access], offset: u64) -> boolean:
    """Whether an access is an arrival at an mbarrier that the block has waited for, be it a release to it or not.

    Nothing has arrived since the last phase that a wait of the block has seen complete.
    """
    if access.flags & KIND != ATOMIC or access.flags & ASYNC != 0:
        return False
    at: u64 = offset - offset % 8
    notes = notes_on(block, at)
    if notes.is_known == 0 or notes.offset != at or notes.completed == 0:
        return False
    return record_of(notes, notes.completed - 1).passed != 0 and record_of(notes, notes.completed).arrived == 0


@native
def note_late(thread: Pointer[Thread], access: Pointer[Access], offset: u64, bytes: u32) -> None:
    """Note an access of another block that may come after the exit of the last thread of this one."""
    if access.block == u32(thread.block.number) or is_covered(thread, access, 0) or doubt_of(thread, access) != 0:
        return
    if not is_over(thread, access) and not is_counted(thread.block, access, offset):
        report_absence(thread, access, offset | (u64(thread.block.rank) + 1) << RANK_SHIFT, bytes)
