"""Blocks on several cores with the detectors on: a trial, which counts if blocks have nothing to do with each other.

Each core remembers what its own blocks access. If no byte that a block of one core has written was accessed by a block
of another, then every block did what it does on one core; `host.merging` puts together what was found. Where it cannot,
or blocks do share bytes, memory is made what it was before, and the launch is run again, on one core. For that, a page
is kept before anybody writes to it.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import Allocation
from ptxlab.emulate.abi.clocks import Page
from ptxlab.emulate.abi.state import Thread, Worker
from ptxlab.emulate.runtime.memory.memory import find_allocation
from ptxlab.emulate.runtime.order.shadow import PAGE, PAGE_SHIFT, RUNS, expand_page, slot_of
from ptxlab.native import (
    Pointer,
    address_of,
    atomic_compare_exchange,
    atomic_load,
    atomic_store,
    boolean,
    cast,
    copy_bytes,
    native,
    u32,
    u64,
)

KEEPING = 1
KEPT = 2


@native
def keep_page(thread: Pointer[Thread], address: u64) -> None:
    """Keep what memory holds around an address, if a trial may have to put it back."""
    start: u64 = address & ~u64(PAGE - 1)
    found = find_allocation(thread, start + (PAGE - 1))
    while cast(u64, found) >= cast(u64, thread.worker.memory.allocations) and found.base + found.size > start:
        if cast(u64, found.marks) != 0:
            keep(found, start)
        found = found + -1


@native
def keep(allocation: Pointer[Allocation], start: u64) -> None:
    """Keep the part of an allocation that is in a page; a worker that comes while another does so waits for it."""
    mark = allocation.marks + ((start >> PAGE_SHIFT) - (allocation.base >> PAGE_SHIFT))
    if atomic_compare_exchange(mark, 0, KEEPING) == 0:
        move(allocation, start, True)
        atomic_store(mark, KEPT)
    while atomic_load(mark) != KEPT:
        pass


@native
def move(allocation: Pointer[Allocation], start: u64, away: boolean) -> None:
    """Copy the part of an allocation that is in a page, away or back."""
    first: u64 = max(start, allocation.base) - allocation.base
    past: u64 = min(start + PAGE - allocation.base, allocation.size)
    if away:
        copy_bytes(allocation.kept + first, allocation.data + first, past - first)
    else:
        copy_bytes(allocation.data + first, allocation.kept + first, past - first)


@native
def put_back(worker: Pointer[Worker]) -> None:
    """Make all memory what it was before the launch."""
    for index in range(worker.memory.allocation_count):
        allocation = worker.memory.allocations + index
        if cast(u64, allocation.marks) != 0 and allocation.size != 0:
            first: u64 = allocation.base >> PAGE_SHIFT
            pages: u64 = ((allocation.base + allocation.size - 1) >> PAGE_SHIFT) - first + 1
            for page in range(pages):
                if allocation.marks[page] != 0:
                    move(allocation, (first + page) << PAGE_SHIFT, False)


@native
def share_bytes(one: Pointer[Worker], other: Pointer[Worker]) -> u32:
    """Whether blocks of two workers accessed the same bytes, and one of them wrote."""
    pages = address_of(one.history.pages)
    others = address_of(other.history.pages)
    if others.capacity == 0:
        return 0
    for index in range(pages.capacity):
        page = pages.slots + index
        if page.number != 0:
            twin = others.slots + slot_of(others, page.number)
            is_written: boolean = twin.number == page.number and (page.written | twin.written) != 0
            if is_written and not (has_accesses(one, page) and has_accesses(other, twin)):
                return 1
            if is_written and overlap(page, twin):
                return 1
    return 0


@native
def has_accesses(worker: Pointer[Worker], page: Pointer[Page]) -> boolean:
    """Whether a page has accesses, not runs; if there is no memory left for them, it has not."""
    return page.shift < RUNS or cast(u64, expand_page(worker.history, page)) != 0


@native
def overlap(page: Pointer[Page], twin: Pointer[Page]) -> boolean:
    """Whether two memories of a page have accesses to the same bytes, one of them a write."""
    shift: u32 = min(page.shift, twin.shift)
    for at in range(u32(PAGE) >> shift):
        mine = page.accesses + (at >> (page.shift - shift))
        theirs = twin.accesses + (at >> (twin.shift - shift))
        if (mine.epoch != 0 and theirs.epoch | theirs.next != 0) or (theirs.epoch != 0 and mine.next != 0):
            return True
    return False
