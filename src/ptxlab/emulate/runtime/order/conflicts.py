"""Whether two accesses to the same bytes conflict: unordered, one of them a write, and not both strong enough."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import (
    LOAD,
    STORE,
    TENSOR_SPACE,
)
from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.access_history import comes_after, is_compatible
from ptxlab.emulate.runtime.order.devices import starts_after_grid
from ptxlab.emulate.runtime.order.happens_before import is_known
from ptxlab.emulate.runtime.order.proxies import is_fenced
from ptxlab.emulate.runtime.order.reports import report_race
from ptxlab.emulate.runtime.order.shadow import (
    ASYNC,
    COPY,
    GENERIC,
    HAS_WRITES,
    KIND,
    STALE,
    STRONG,
    UNCHANGED,
)
from ptxlab.emulate.runtime.order.tensor_happens_before import ORDERED, order_of
from ptxlab.native import Pointer, boolean, native, u32, u64


@native(inline=True)
def is_conflict(
    thread: Pointer[Thread], cell: Pointer[Access], access: Pointer[Access], flags: u32, space: u32
) -> boolean:
    """Whether a new access races with one before it to the same bytes; two writes of the same value do not.

    In a trial they do, if they are by different blocks: which of them changes the value may then be chance.
    """
    if flags & KIND == LOAD and access.flags & KIND == LOAD:
        return False
    if flags & STALE != 0:
        return not starts_after_grid(thread, access.block)  # a wait comes too late: what is written is not constant
    if space == TENSOR_SPACE:
        return order_of(thread, access, flags) != ORDERED
    if flags & (STRONG | ASYNC) == STRONG and is_compatible(thread, access, flags):
        return False
    if is_known(thread, access):
        return flags & (ASYNC | GENERIC) == ASYNC and not is_fenced(thread, access, flags, space, 0)
    if is_compatible(thread, access, flags) or comes_after(thread, cell, access, flags, space):
        return False
    if flags & UNCHANGED == 0 or flags & KIND == LOAD or access.flags & (KIND | COPY) != STORE:
        return True  # a `cas` that failed is a read
    return thread.worker.history.is_trial != 0 and access.block != u32(thread.block.number)


@native
def has_conflict(thread: Pointer[Thread], cell: Pointer[Access], flags: u32, space: u32) -> boolean:
    """Whether a new access races with any of those before it."""
    if cell.epoch != 0 and is_conflict(thread, cell, cell, flags, space):
        return True
    if flags & KIND == LOAD and cell.flags & HAS_WRITES == 0:
        return False
    number: u32 = cell.next
    while number != 0:
        access = thread.worker.history.chained.items + number
        if is_conflict(thread, cell, access, flags, space):
            return True
        number = access.next
    return False


@native
def report_conflicts(
    thread: Pointer[Thread],
    cell: Pointer[Access],
    address: u64,
    bytes: u32,
    flags: u32,
    instruction: u32,
    space: u32,
) -> None:
    """Note every race of a new access."""
    if cell.epoch != 0 and is_conflict(thread, cell, cell, flags, space):
        report_race(thread, cell, address, bytes, flags, instruction, space)
    number: u32 = cell.next
    while number != 0:
        access = thread.worker.history.chained.items + number
        if is_conflict(thread, cell, access, flags, space):
            report_race(thread, access, address, bytes, flags, instruction, space)
        number = access.next
