"""What is remembered of the accesses to some bytes: the last write, and a chain of others that still matter.

Writes to some bytes are counted: by generations, each of which a plain write starts, and within one by the atomic
operations that follow, as long as each is morally strong with what it reads. That is the `link` of a write; the link of
a strong read is that of the write which it observed, if the two are morally strong. So a read observed a write if its
link is of the same generation and not lower (PTX ISA 8.9.2), and what comes after the read comes after that write in
causality order (8.9.5), wherever they both access the same bytes.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import ATOMIC, GLOBAL_SPACE, LOAD, SHARED_SPACE
from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.devices import is_abroad, is_in_team
from ptxlab.emulate.runtime.order.happens_before import are_covered, companion, is_known, uncovered_lanes
from ptxlab.emulate.runtime.order.shadow import (
    ANY_PROXY,
    ASYNC,
    BEFORE,
    CLUSTER,
    COPY,
    GENERATION,
    GENERIC,
    KIND,
    SIZE,
    STRONG,
    SYSTEM,
    WARP_SHIFT,
    WIDE,
)
from ptxlab.emulate.runtime.order.vector_clocks import GLOBAL_FENCE, SHARED_FENCE
from ptxlab.native import Pointer, boolean, cast, native, u32, u64, unlikely

SERIAL_SHIFT = 12  # of the numbers of copies; see `copies`
IN_GENERATION = (1 << GENERATION) - 1


@native(inline=True)
def is_covered(thread: Pointer[Thread], access: Pointer[Access], flags: u32, space: u32) -> boolean:
    """Whether all that conflicts with an access before the new one conflicts with that, too, or cannot come again."""
    if flags & STRONG == 0:
        return True
    if access.block == u32(thread.block.number) and access.flags & STRONG != 0:
        return ((access.flags ^ flags) & SIZE | flags & ~access.flags & (WIDE | CLUSTER | SYSTEM)) == 0
    if space != SHARED_SPACE or thread.block.cluster.count != 1:
        return False
    return access.flags & COPY == 0 and access.epoch <= thread.block.order.settled_epoch


@native
def is_between(thread: Pointer[Thread], access: Pointer[Access], last: Pointer[Access], flags: u32) -> boolean:
    """Whether an access, before the last write, which is before the new one, need not be remembered beside those two.

    What conflicts with it, yet with neither of them, would have to be strong, and near both: but they are by threads of
    different blocks, so that its scope includes all blocks, and the access as well.
    """
    if access.flags & last.flags & flags & (STRONG | WIDE) != STRONG | WIDE or access.flags & BEFORE == 0:
        return False
    if unlikely(is_in_team(thread.worker)) and access.flags & last.flags & flags & SYSTEM == 0:
        return False
    if (access.flags ^ flags) & SIZE != 0 or last.block == u32(thread.block.number):
        return False
    return cast(u64, companion(thread, last.block)) == 0 or cast(u64, companion(thread, access.block)) != 0


@native(inline=True)
def is_by_async_proxy(flags: u32) -> boolean:
    """Whether an access is by the async proxy, and needs a fence for accesses of threads."""
    return flags & (ASYNC | GENERIC | ANY_PROXY) == ASYNC


@native(inline=True)
def is_compatible(thread: Pointer[Thread], access: Pointer[Access], flags: u32) -> boolean:
    """Whether two accesses may happen at once: both strong, of one size and proxy, in the scope of each other."""
    both: u32 = access.flags & flags
    if both & STRONG == 0 or (access.flags ^ flags) & SIZE != 0:
        return False
    if is_by_async_proxy(access.flags) != is_by_async_proxy(flags):
        return False
    if both & WIDE != 0:
        return both & SYSTEM != 0 or not is_abroad(thread, access.block)
    if access.block == u32(thread.block.number):
        return True
    return both & CLUSTER != 0 and cast(u64, companion(thread, access.block)) != 0


# Observation.


@native(inline=True)
def is_linked(thread: Pointer[Thread], write: Pointer[Access], flags: u32) -> boolean:
    """Whether a read, or the read of an atomic operation, is morally strong with the last write, which it observes."""
    if write.epoch == 0 or flags & (ASYNC | COPY) != 0 or flags & STRONG == 0:
        return False
    if is_compatible(thread, write, flags):
        return True
    is_own: boolean = write.block == u32(thread.block.number) and write.lanes == u32(1) << thread.lane
    is_own = is_own and write.flags >> WARP_SHIFT == thread.number // 32 and write.flags & COPY == 0
    return is_own and (write.flags ^ flags) & SIZE == 0


@native
def next_link(thread: Pointer[Thread], cell: Pointer[Access], flags: u32) -> u32:
    """The link of a new write, which continues the generation of the last one or starts another."""
    if flags & KIND == ATOMIC and is_linked(thread, cell, flags):
        return cell.link if cell.link & IN_GENERATION == IN_GENERATION else cell.link + 1
    return max((cell.link | IN_GENERATION) + 1, u32(1 << GENERATION))


@native(inline=True)
def observes(access: Pointer[Access], write: Pointer[Access]) -> boolean:
    """Whether an access observed a write."""
    if access.link >> GENERATION != write.link >> GENERATION:
        return False
    return access.link > write.link or (access.link == write.link and access.flags & KIND == LOAD)


@native
def is_observed(
    thread: Pointer[Thread], cell: Pointer[Access], write: Pointer[Access], flags: u32, space: u32
) -> boolean:
    """Whether a thread comes after an access that observed a write."""
    if write.link == 0 or write.flags & KIND == LOAD or write.flags & COPY != 0:
        return False
    if observes(cell, write) and is_reached(thread, cell, flags, space):
        return True
    number: u32 = cell.next
    while number != 0:
        access = thread.worker.history.chained.items + number
        if observes(access, write) and is_reached(thread, access, flags, space):
            return True
        number = access.next
    return False


@native
def is_reached(thread: Pointer[Thread], access: Pointer[Access], flags: u32, space: u32) -> boolean:
    """Whether one of the lanes made an access before what a thread does now; before asynchronous work, by a fence."""
    how: u64 = 0
    if flags & (ASYNC | GENERIC) == ASYNC:
        how = GLOBAL_FENCE if space == GLOBAL_SPACE else u64(SHARED_FENCE)
        if are_covered(thread, access, how):
            return True
    elif is_known(thread, access):
        return True
    return access.flags & COPY == 0 and uncovered_lanes(thread, access, how) != access.lanes


@native
def comes_after(
    thread: Pointer[Thread], cell: Pointer[Access], access: Pointer[Access], flags: u32, space: u32
) -> boolean:
    """Whether a new access comes after one that its thread does not know of: by what was observed of these bytes."""
    if is_observed(thread, cell, access, flags, space):
        return True
    if access.flags & BEFORE == 0:
        return False
    return is_reached(thread, cell, flags, space) or is_observed(thread, cell, cell, flags, space)
