"""Grids that run at the same time: `griddepcontrol`, and what an earlier grid did (PTX ISA 9.7.13.13).

A grid that is launched before the one before it is complete sees what that one did only after `griddepcontrol.wait`.
The emulator runs the two one after the other, and the later grid takes over the accesses of the earlier one, as those
of a block of their own, `EARLIER_BLOCK`. Nothing orders these but a wait, which gives its thread a clock entry for that
block; from there it goes from thread to thread as all entries do. Nor is a proxy fence needed then, but for an acquire
of a tensor map that the earlier grid made: what that released is taken for released.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Access, History, Page
from ptxlab.emulate.abi.state import Thread, Worker
from ptxlab.emulate.runtime.order.devices import trigger_in_team, wait_in_team
from ptxlab.emulate.runtime.order.shadow import (
    ALL_BEFORE,
    ASYNC,
    COPY,
    HAS_WRITES,
    PAGE,
    PAGE_SHIFT,
    WARP_SHIFT,
)
from ptxlab.emulate.runtime.order.vector_clocks import (
    GLOBAL_FENCE,
    MAP_RELEASE,
    SHARED_FENCE,
    advance,
    epoch_of,
    key_of,
)
from ptxlab.native import Pointer, address_of, cast, native, u32, u64

EARLIER_BLOCK = (1 << 32) - 1  # the block that all accesses of earlier grids are by
# Added to the number of an instruction: it is of an earlier grid, and how many grids are between the two.
EARLIER = 1 << 31
AGE_SHIFT = 26
MOST_AGE = 31
INSTRUCTION = (1 << AGE_SHIFT) - 1


@native
def wait_for_grids(thread: Pointer[Thread]) -> None:
    """What a thread does from here on comes after all that earlier grids did."""
    if thread.worker.checks == 0:
        return
    known = address_of(thread.order.known)
    advance(known, key_of(EARLIER_BLOCK, 0), 1)
    advance(known, key_of(EARLIER_BLOCK, SHARED_FENCE), 1)
    advance(known, key_of(EARLIER_BLOCK, GLOBAL_FENCE), 1)
    advance(known, key_of(EARLIER_BLOCK, MAP_RELEASE), 1)
    wait_in_team(thread)
    thread.order.epoch += 1


@native
def start_dependents(thread: Pointer[Thread]) -> None:
    """A block lets the next grid start; if it has not waited for the one before, that one may be running still."""
    if thread.worker.checks == 0:
        return
    history = thread.worker.history
    key: u64 = key_of(EARLIER_BLOCK, 0)
    history.grids.triggers += 1
    if epoch_of(address_of(thread.order.known), key) + epoch_of(address_of(thread.block.order.known), key) == 0:
        history.grids.early_triggers += 1
    trigger_in_team(thread)


@native
def take_over_accesses(worker: Pointer[Worker], other: Pointer[Worker]) -> None:
    """Remember what an earlier grid did, and forget it there."""
    history = worker.history
    source = other.history
    history.pages.slots = source.pages.slots
    history.pages.count = source.pages.count
    history.pages.capacity = source.pages.capacity
    history.chained.items = source.chained.items
    history.chained.count = source.chained.count
    history.chained.capacity = source.chained.capacity
    history.chained_free = source.chained_free
    history.bytes = source.bytes
    source.pages.slots = cast(Pointer[Page], 0)
    source.pages.count = 0
    source.pages.capacity = 0
    source.chained.items = cast(Pointer[Access], 0)
    source.chained.count = 0
    source.chained.capacity = 0
    source.chained_free = 0
    source.bytes = 0
    for slot in range(history.pages.capacity):
        page = history.pages.slots + slot
        if page.number != 0:
            mark_page(history, page)


@native
def mark_page(history: Pointer[History], page: Pointer[Page]) -> None:
    """Make the accesses of a page those of an earlier grid; memory that the two grids do not share is forgotten."""
    address: u64 = (page.number - 1) << PAGE_SHIFT
    is_shared = history.grids.shared_from <= address and address < history.grids.shared_up_to
    for index in range(u32(PAGE) >> page.shift):
        cell = page.accesses + index
        if not is_shared:
            cell.epoch = 0
            cell.flags = 0
            cell.next = 0
            continue
        mark_chain(history, cell)
        if cell.epoch != 0 and cell.block == EARLIER_BLOCK and history.grids.keeps_older == 0:
            cell.epoch = 0
            cell.flags = cell.flags & (HAS_WRITES | ALL_BEFORE)
        elif cell.epoch != 0:
            mark(cell)


@native
def mark_chain(history: Pointer[History], cell: Pointer[Access]) -> None:
    """Make the accesses of a chain those of an earlier grid; those of older grids are kept where these may run."""
    before: u32 = 0
    number: u32 = cell.next
    while number != 0:
        access = history.chained.items + number
        next: u32 = access.next
        if access.block == EARLIER_BLOCK and history.grids.keeps_older == 0:
            if before == 0:
                cell.next = next
            else:
                history.chained.items[before].next = next
            access.next = history.chained_free
            history.chained_free = number
        else:
            mark(access)
            before = number
        number = next


@native
def mark(access: Pointer[Access]) -> None:
    """Make an access one of an earlier grid; whatever it was there, it is over after a wait."""
    if access.block == EARLIER_BLOCK:
        if access.instruction >> AGE_SHIFT & MOST_AGE != MOST_AGE:
            access.instruction += 1 << AGE_SHIFT
        return
    if access.flags & ASYNC != 0:
        access.flags = access.flags & ((u32(1) << WARP_SHIFT) - 1)
        access.lanes = 1
    access.flags = access.flags & ~u32(ASYNC | COPY)
    access.epoch = 1
    access.block = EARLIER_BLOCK
    access.instruction = access.instruction & INSTRUCTION | EARLIER


CALLED = (
    wait_for_grids,
    start_dependents,
)
