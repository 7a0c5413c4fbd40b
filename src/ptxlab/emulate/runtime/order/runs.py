"""Runs: what is remembered of a page of global memory where lanes together do nothing but stream through it.

Lanes side by side that load or store elements side by side make a run longer, or start one; a store to elements that
the same lanes have read takes these reads away. For whatever else happens to a page it becomes one of accesses, as
`shadow` has them.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.clocks import MOST_RUNS, Page, Run
from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.memory.block_independence import keep_page
from ptxlab.emulate.runtime.order.shadow import KIND, PAGE, PAGE_SHIFT, RUNS, add_page, slot_of
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, native, size_of, u8, u32, u64

RUN_SIZE = size_of(Run)


@native(inline=True)
def joins_runs(thread: Pointer[Thread], address: u64, shift: u32, flags: u32, instruction: u32) -> boolean:
    """Whether accesses of `GROUP` lanes from `thread` on, to elements of two to the `shift` bytes, are kept as a run.

    `flags` are those of an access that is remembered, without the warp.
    """
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
    longer: u32 = MOST_RUNS  # the run that they continue
    over: u32 = MOST_RUNS  # the reads that they replace
    for index in range(page.runs.count):
        run = runs + index
        if run.start < first + GROUP and first < run.end:
            if run.flags & KIND != LOAD:
                return False
            if flags & KIND == LOAD:
                return is_read_again(run, thread, first, flags)
            if not starts_with(run, thread, first):
                return False
            over = index
        elif run.end == first and is_continued(run, thread, flags, instruction):
            longer = index
    if longer == MOST_RUNS:
        if page.runs.count == MOST_RUNS:
            return False
        longer = page.runs.count
        page.runs.count += 1
        start(runs + longer, thread, first, flags, instruction)
    runs[longer].end += GROUP
    if over != MOST_RUNS:
        runs[over].start += GROUP
        runs[over].thread += GROUP
        if runs[over].start == runs[over].end:
            page.runs.count -= 1
            copy_bytes(cast(Pointer[u8], runs + over), cast(Pointer[u8], runs + page.runs.count), RUN_SIZE)
    if flags & KIND != LOAD and page.written == 0:
        keep_page(thread, address)
        page.written = 1
    return True


@native(inline=True)
def is_read_again(reads: Pointer[Run], thread: Pointer[Thread], first: u32, flags: u32) -> boolean:
    """Whether a run has reads of the elements from `first` on by the same lanes in the same epoch."""
    return (
        reads.start <= first
        and first + GROUP <= reads.end
        and reads.thread + (first - reads.start) == thread.number
        and reads.block == u32(thread.block.number)
        and reads.epoch == thread.order.epoch
        and reads.flags == flags
    )


@native(inline=True)
def starts_with(reads: Pointer[Run], thread: Pointer[Thread], first: u32) -> boolean:
    """Whether a run starts with reads of the elements from `first` on by the lanes from `thread` on."""
    return (
        reads.start == first
        and reads.end >= first + GROUP
        and reads.thread == thread.number
        and reads.block == u32(thread.block.number)
    )


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
