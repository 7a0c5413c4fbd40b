"""Runs: what is remembered of a page of global memory where lanes together do nothing but stream through it.

Lanes side by side that load or store elements side by side make a run longer, or start one; a store to elements that
the same lanes have read ends those reads. For whatever else happens to a page it becomes one of accesses, as `shadow`
has them.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Run
from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.memory.block_independence import keep_page
from ptxlab.emulate.runtime.order.shadow import PAGE, PAGE_SHIFT, RUNS, add_page, slot_of
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64


@native(inline=True)
def joins_run(
    thread: Pointer[Thread], address: u64, shift: u32, flags: u32, instruction: u32, writes: boolean
) -> boolean:
    """Whether accesses of `GROUP` lanes from `thread` on, to elements of two to the `shift` bytes, are part of a run.

    If so, they are remembered there. `flags` are those of an access that is remembered, without the warp.
    """
    history = thread.worker.history
    pages = address_of(history.pages)
    first: u32 = u32(address & (PAGE - 1)) >> shift
    if address & ((u64(1) << u64(shift)) - 1) != 0 or first + GROUP > u32(PAGE) >> shift:
        return False
    number: u64 = (address >> PAGE_SHIFT) + 1
    if pages.capacity == 0:
        return starts_page(thread, address, first, shift, flags, instruction, writes)
    page = pages.slots + slot_of(pages, number)
    if page.number != number:
        return starts_page(thread, address, first, shift, flags, instruction, writes)
    if page.shift != RUNS + shift:
        return False
    own = address_of(page.reads)
    if writes:
        own = address_of(page.writes)
        reads = address_of(page.reads)
        if reads.start != reads.end:
            if not covers(reads, thread, first):
                return False
            reads.start += GROUP
            reads.thread += GROUP
        if page.written == 0:
            keep_page(thread, address)
            page.written = 1
    elif page.writes.start != page.writes.end and first < page.writes.end:
        return False
    elif is_read_again(own, thread, first, flags):
        return True
    if own.start == own.end:
        set_run(own, thread, first, flags, instruction)
        return True
    if (
        own.end != first
        or own.thread + (own.end - own.start) != thread.number
        or own.block != u32(thread.block.number)
        or own.epoch != thread.order.epoch
        or own.instruction != instruction
        or own.flags != flags
    ):
        return False
    own.end += GROUP
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
def covers(reads: Pointer[Run], thread: Pointer[Thread], first: u32) -> boolean:
    """Whether a run starts with reads of the elements from `first` on by the lanes from `thread` on."""
    return (
        reads.start == first
        and reads.end >= first + GROUP
        and reads.thread == thread.number
        and reads.block == u32(thread.block.number)
    )


@native
def starts_page(
    thread: Pointer[Thread], address: u64, first: u32, shift: u32, flags: u32, instruction: u32, writes: boolean
) -> boolean:
    """Start a page with a run; false if there is no memory left for that."""
    history = thread.worker.history
    page = add_page(history, address_of(history.pages), (address >> PAGE_SHIFT) + 1, RUNS + shift)
    if cast(u64, page) == 0:
        return False
    if writes:
        keep_page(thread, address)
        page.written = 1
        set_run(address_of(page.writes), thread, first, flags, instruction)
    else:
        set_run(address_of(page.reads), thread, first, flags, instruction)
    return True


@native(inline=True)
def set_run(run: Pointer[Run], thread: Pointer[Thread], first: u32, flags: u32, instruction: u32) -> None:
    """Have a run be the accesses of lanes from `thread` on."""
    run.start = first
    run.end = first + GROUP
    run.thread = thread.number
    run.block = u32(thread.block.number)
    run.epoch = thread.order.epoch
    run.instruction = instruction
    run.flags = flags
