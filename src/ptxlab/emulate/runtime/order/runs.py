"""Runs: what is remembered of a page of global memory where lanes together do nothing but stream through it.

Lanes side by side that load or store elements side by side make a run longer, or start one. A store to elements that
the same lanes have read or written takes these accesses out of their run. A load of what they have written in the same
epoch is not remembered: whatever comes after the write comes after the load, too. For whatever else happens to a page
it becomes one of accesses, as `shadow` has them.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.clocks import MOST_RUNS, Page, Run
from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.memory.block_independence import keep_page
from ptxlab.emulate.runtime.order.shadow import (
    KIND,
    PAGE,
    PAGE_SHIFT,
    REMEMBERED,
    RUNS,
    STALE,
    add_page,
    slot_of,
)
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, native, size_of, u8, u32, u64

RUN_SIZE = size_of(Run)


@native(inline=True)
def joins_runs(thread: Pointer[Thread], address: u64, shift: u32, flags: u32, instruction: u32) -> boolean:
    """Whether accesses of `GROUP` lanes from `thread` on, to elements of `1 << shift` bytes, are kept as a run."""
    pages = address_of(thread.worker.history.pages)
    first: u32 = u32(address & (PAGE - 1)) >> shift
    if address & ((u64(1) << u64(shift)) - 1) != 0 or first + GROUP > u32(PAGE) >> shift:
        return False
    number: u64 = (address >> PAGE_SHIFT) + 1
    page = cast(Pointer[Page], 0)
    if pages.capacity != 0:
        page = pages.slots + slot_of(pages, number)
    if cast(u64, page) == 0 or page.number != number:
        page = add_page(thread.worker.history, pages, number, RUNS + shift)
        if cast(u64, page) == 0:
            return False
    return page.shift == RUNS + shift and joins(thread, page, address, first, flags, instruction)


@native(inline=True)
def joins(
    thread: Pointer[Thread], page: Pointer[Page], address: u64, first: u32, flags: u32, instruction: u32
) -> boolean:
    """Whether the accesses from the element `first` of a page of runs on become part of them."""
    runs = cast(Pointer[Run], page.runs.items)
    remembered: u32 = flags & REMEMBERED
    longer: u32 = MOST_RUNS  # the run that they continue
    over: u32 = MOST_RUNS  # the run that they take elements out of
    for index in range(page.runs.count):
        run = runs + index
        if run.start < first + GROUP and first < run.end:
            if not is_by_same_lanes(run, thread, first):
                return False
            if flags & KIND == LOAD:
                return run.epoch == thread.order.epoch and represents(run, flags)
            over = index
        elif run.end == first and is_continued(run, thread, remembered, instruction):
            longer = index
    if over != MOST_RUNS and longer == MOST_RUNS and runs[over].end - runs[over].start == GROUP:
        start(runs + over, thread, first, remembered, instruction)
        runs[over].end += GROUP
        keep_before_write(thread, page, address)
        return True
    added: u32 = page.runs.count
    if longer == MOST_RUNS:
        added += 1
    if over != MOST_RUNS and runs[over].start < first and first + GROUP < runs[over].end:
        added += 1
    if added > MOST_RUNS:
        return False
    if over != MOST_RUNS:
        take_out(page, runs + over, first)
    if longer == MOST_RUNS:
        longer = page.runs.count
        page.runs.count += 1
        start(runs + longer, thread, first, remembered, instruction)
    runs[longer].end += GROUP
    if over != MOST_RUNS and runs[over].start == runs[over].end:
        page.runs.count -= 1
        copy_bytes(cast(Pointer[u8], runs + over), cast(Pointer[u8], runs + page.runs.count), RUN_SIZE)
    if flags & KIND != LOAD:
        keep_before_write(thread, page, address)
    return True


@native(inline=True)
def keep_before_write(thread: Pointer[Thread], page: Pointer[Page], address: u64) -> None:
    """Keep what a page holds before the first write to it."""
    if page.written == 0:
        keep_page(thread, address)
        page.written = 1


@native(inline=True)
def is_by_same_lanes(run: Pointer[Run], thread: Pointer[Thread], first: u32) -> boolean:
    """Whether a run has all elements from `first` on, each accessed by the lane that accesses it now."""
    return (
        run.start <= first
        and first + GROUP <= run.end
        and run.thread + (first - run.start) == thread.number
        and run.block == u32(thread.block.number)
    )


@native(inline=True)
def represents(run: Pointer[Run], flags: u32) -> boolean:
    """Whether a load by the same lanes in the same epoch need not be remembered beside a run."""
    if run.flags & KIND == LOAD:
        return run.flags == flags & REMEMBERED
    return flags & STALE == 0  # which may not see the write


@native(inline=True)
def take_out(page: Pointer[Page], run: Pointer[Run], first: u32) -> None:
    """Take the elements from `first` on, of one group, out of a run; what is past them is a run of its own then."""
    end: u32 = run.end
    past: u32 = first + GROUP
    if run.start == first:
        run.thread += GROUP
        run.start = past
        return
    run.end = first
    if past != end:
        rest = cast(Pointer[Run], page.runs.items) + page.runs.count
        copy_bytes(cast(Pointer[u8], rest), cast(Pointer[u8], run), RUN_SIZE)
        rest.thread += past - run.start
        rest.start = past
        rest.end = end
        page.runs.count += 1


@native(inline=True)
def is_continued(run: Pointer[Run], thread: Pointer[Thread], flags: u32, instruction: u32) -> boolean:
    """Whether accesses of the lanes from `thread` on are as those of a run, the next in the order of threads."""
    return (
        run.thread + (run.end - run.start) == thread.number
        and run.block == u32(thread.block.number)
        and run.epoch == thread.order.epoch
        and run.instruction == instruction
        and run.flags == flags
    )


@native(inline=True)
def start(run: Pointer[Run], thread: Pointer[Thread], first: u32, flags: u32, instruction: u32) -> None:
    """Have a run be empty, before the first access of lanes from `thread` on."""
    run.start = first
    run.end = first
    run.thread = thread.number
    run.block = u32(thread.block.number)
    run.epoch = thread.order.epoch
    run.instruction = instruction
    run.flags = flags
