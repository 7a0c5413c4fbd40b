"""What grids have read of memory that the host may write: it races with these reads until it has waited for them.

Strong reads are left out: by these, a kernel may talk to the host.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.clocks import Page, WatchedMemory
from ptxlab.emulate.abi.state import Worker
from ptxlab.emulate.runtime.order.devices import STEP_SHIFT
from ptxlab.emulate.runtime.order.shadow import KIND, PAGE, PAGE_SHIFT, RUNS, STRONG, expand_page, slot_of
from ptxlab.native import Pointer, address_of, cast, native, u8, u32, u64


@native
def mark_reads(worker: Pointer[Worker], watched: Pointer[WatchedMemory]) -> None:
    """Mark the bytes that grids of a worker, or of its team, have read."""
    pages = address_of(worker.history.pages)
    if pages.capacity == 0 or watched.size == 0:
        return
    first: u64 = watched.start >> PAGE_SHIFT
    count: u64 = ((watched.start + watched.size - 1) >> PAGE_SHIFT) - first + 1
    for index in range(count):
        number: u64 = first + u64(index) + 1
        page = pages.slots + slot_of(pages, number)
        if page.number == number and (page.shift < RUNS or cast(u64, expand_page(worker.history, page)) != 0):
            mark_page(worker, watched, page)


@native
def mark_page(worker: Pointer[Worker], watched: Pointer[WatchedMemory], page: Pointer[Page]) -> None:
    """Mark the bytes of a page."""
    size: u64 = u64(1) << u64(page.shift)
    for at in range(u32(PAGE) >> page.shift):
        next: u32 = page.accesses[at].next
        while next != 0:
            access = worker.history.chained.items + next
            if access.flags & KIND == LOAD and access.flags & STRONG == 0:
                grid: u32 = 0
                if cast(u64, worker.together.team) != 0:
                    grid = worker.together.team.grids[access.block >> STEP_SHIFT]
                mark(watched, grid, ((page.number - 1) << PAGE_SHIFT) + u64(at) * size, size)
            next = access.next


@native
def mark(watched: Pointer[WatchedMemory], grid: u32, address: u64, size: u64) -> None:
    """Mark bytes, as far as they are in the memory that is watched."""
    marks: Pointer[u8] = watched.marks[grid]
    low: u64 = max(address, watched.start)
    past: u64 = min(address + size, watched.start + watched.size)
    if cast(u64, marks) == 0 or low >= past:
        return
    low -= watched.start
    past -= watched.start
    watched.first[grid] = min(watched.first[grid], low)
    watched.past[grid] = max(watched.past[grid], past)
    for byte in range(low, past):
        marks[byte >> 3] = marks[byte >> 3] | u8(u64(1) << (byte & 7))
