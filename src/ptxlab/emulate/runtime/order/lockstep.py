"""Lanes that rely on lockstep: one reads what another lane of its warp has written, both by volatile accesses.

Volatile accesses are strong, so they don't race, and nothing orders them either: code that was written for warps whose
lanes run in step (PTX ISA 3.2 has what came after) stores to its own word of shared or global memory, and then loads
that of a neighbor. It is recognized by both lanes executing the same store, each to an address of its own, before the
load; one of them may have executed further ones. Threads that poll, or have different roles, do not.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, LOCAL_WINDOW, SHARED_SPACE, SHARED_WINDOW, STORE
from ptxlab.emulate.abi.clocks import Page
from ptxlab.emulate.abi.findings import LOCKSTEP
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.happens_before import is_known
from ptxlab.emulate.runtime.order.reports import add_first, set_other
from ptxlab.emulate.runtime.order.shadow import (
    ASYNC,
    COPY,
    KIND,
    PAGE_SHIFT,
    STRONG,
    WARP_SHIFT,
    cell_in,
    slot_of,
)
from ptxlab.native import Pointer, address_of, boolean, cast, native, trailing_zeros, u32, u64


@native
def note_lockstep(thread: Pointer[Thread], address: u64, bytes: u32, kind: u32, instruction: u32, space: u32) -> None:
    """Check a volatile access, by an address or by an offset in shared memory, before it is remembered."""
    offset: u64 = address
    if space != SHARED_SPACE and address >= SHARED_WINDOW:
        if address >= LOCAL_WINDOW:
            return
        offset = address - SHARED_WINDOW
        space = SHARED_SPACE
    order = address_of(thread.order)
    if kind != LOAD:
        order.lockstep_store = instruction + 1
        order.lockstep_offset = offset
        if order.lockstep_epoch != order.epoch:
            order.lockstep_epoch = order.epoch
            order.lockstep_stores = 0
        order.lockstep_stores = order.lockstep_stores | bit_of(instruction)
        return
    pages = address_of(thread.worker.history.pages)
    if space == SHARED_SPACE:
        pages = address_of(thread.block.order.pages)
    if order.lockstep_store == 0 or order.lockstep_offset == offset or pages.capacity == 0:
        return
    number: u64 = (offset >> PAGE_SHIFT) + 1
    page: Pointer[Page] = pages.slots + slot_of(pages, number)
    if page.number != number:
        return
    cell = cell_in(page, offset)
    if cell.epoch == 0 or is_known(thread, cell):
        return
    if cell.flags & (STRONG | COPY | ASYNC | KIND) != STRONG | STORE or cell.block != u32(thread.block.number):
        return
    if cell.flags >> WARP_SHIFT != thread.number // 32:
        return
    writer = thread.block.threads + ((cell.flags >> WARP_SHIFT) * 32 + trailing_zeros(u32, cell.lanes))
    same: boolean = cell.instruction + 1 == order.lockstep_store
    earlier: boolean = order.lockstep_stores & bit_of(cell.instruction) != 0
    ahead: boolean = writer.order.lockstep_stores & bit_of(order.lockstep_store - 1) != 0
    if writer.order.lockstep_epoch != writer.order.epoch or order.lockstep_epoch != order.epoch:
        ahead = False
    if not same and not earlier and not ahead:
        return
    found = add_first(thread, LOCKSTEP, offset, bytes, LOAD, instruction, space)
    if cast(u64, found) != 0:
        set_other(found, cell)
        found.other.instruction = order.lockstep_store - 1  # which both have executed


@native(inline=True)
def bit_of(instruction: u32) -> u64:
    """The bit of a store among those that a thread has executed since it synchronized."""
    return u64(1) << u64(instruction & 63)


CALLED = (note_lockstep,)
