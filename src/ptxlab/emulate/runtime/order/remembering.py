"""Remembering an access to some bytes, and forgetting those that it follows."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.clocks import Access, History
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.access_history import (
    IN_GENERATION,
    SERIAL_SHIFT,
    is_between,
    is_covered,
    is_linked,
    is_observed,
    next_link,
)
from ptxlab.emulate.runtime.order.happens_before import is_known
from ptxlab.emulate.runtime.order.shadow import (
    ALL_BEFORE,
    ASYNC,
    BEFORE,
    COPY,
    GENERATION,
    HAS_WRITES,
    KIND,
    REMEMBERED,
    STRONG,
    UNUSED_SHIFT,
    WARP_SHIFT,
    chain,
    copy_access,
    unchain,
)
from ptxlab.native import Pointer, boolean, native, u32

LONGEST = 64  # accesses in a chain; of more, the oldest are forgotten


@native
def remember_read(thread: Pointer[Thread], cell: Pointer[Access], flags: u32, instruction: u32, space: u32) -> None:
    """Remember a read; reads that it follows need not be remembered any more, it represents what they observed."""
    history = thread.worker.history
    is_used: boolean = flags >> UNUSED_SHIFT & 1 == 0  # else it is as well to have read an older value
    link: u32 = cell.link if is_used and flags & STRONG != 0 and is_linked(thread, cell, flags) else 0
    what: u32 = flags & REMEMBERED | (thread.number // 32) << WARP_SHIFT
    bit: u32 = u32(1) << thread.lane
    epoch: u32 = thread.order.epoch
    if flags & ASYNC != 0:
        what = flags & REMEMBERED | thread.number << WARP_SHIFT
        bit = thread.starting.channel
        epoch = thread.starting.number
    block: u32 = u32(thread.block.number)
    if joins_read(history, cell, epoch, block, what, bit, instruction, link):
        return
    link = forget_followed_reads(thread, cell, link, flags, space)
    new: u32 = chain(history, cell.next)
    if new == 0:
        history.unwatched += 1
        return
    cell.next = new
    cell.flags = cell.flags & ~u32(ALL_BEFORE)
    access = history.chained.items + new
    access.epoch = epoch
    access.block = block
    access.lanes = bit
    access.instruction = instruction
    access.flags = what
    access.link = link


@native
def joins_read(
    history: Pointer[History],
    cell: Pointer[Access],
    epoch: u32,
    block: u32,
    flags: u32,
    lanes: u32,
    instruction: u32,
    link: u32,
) -> boolean:
    """Whether a read is one more of a remembered one, by another lane or again by the same; if so it is added there."""
    number: u32 = cell.next
    before: u32 = 0
    while number != 0:
        access = history.chained.items + number
        if (
            access.epoch == epoch
            and access.block == block
            and access.flags == flags
            and (flags & ASYNC == 0 or access.lanes == lanes)
            and (access.lanes & lanes != 0 or access.instruction == instruction)
            and (access.link == link or (access.lanes == lanes and replaces(link, access.link)))
        ):
            access.lanes = access.lanes | lanes
            access.link = link if replaces(link, access.link) else access.link
            if before != 0:  # a thread that polls finds it first next time
                history.chained.items[before].next = access.next
                access.next = cell.next
                cell.next = number
            return True
        before = number
        number = access.next
    return False


@native
def forget_followed_reads(thread: Pointer[Thread], cell: Pointer[Access], link: u32, flags: u32, space: u32) -> u32:
    """Forget reads that a new one follows, and the oldest of too many; returns its link, with what they observed."""
    history = thread.worker.history
    before: u32 = 0
    length: u32 = chain_length(history, cell)
    number: u32 = cell.next
    if number != 0 and length & (length - 1) != 0 and not is_known(thread, history.chained.items + number):
        number = 0  # the latest is needed, so most are; now and then all are checked
    length = 0
    while number != 0:
        access = history.chained.items + number
        next: u32 = access.next
        is_over: boolean = (
            access.flags & KIND == LOAD and is_covered(thread, access, flags, space) and is_known(thread, access)
        )
        if is_over and access.link != 0:
            if replaces(link, access.link) or replaces(access.link, link):
                link = max(link, access.link)
            else:
                is_over = False
        if is_over or length == LONGEST:
            if before == 0:
                cell.next = next
            else:
                history.chained.items[before].next = next
            unchain(history, number)
        else:
            before = number
            length += 1
        number = next
    return link


@native(inline=True)
def chain_length(history: Pointer[History], cell: Pointer[Access]) -> u32:
    """How many accesses are chained to one."""
    length: u32 = 0
    number: u32 = cell.next
    while number != 0:
        number = history.chained.items[number].next
        length += 1
    return length


@native(inline=True)
def replaces(link: u32, other: u32) -> boolean:
    """Whether a read with one link observed all that a read with another did."""
    return other == 0 or (link >> GENERATION == other >> GENERATION and link >= other)


@native
def remember_write(thread: Pointer[Thread], cell: Pointer[Access], flags: u32, instruction: u32, space: u32) -> None:
    """Remember a write in place of the last one, and forget whatever it makes pointless to remember."""
    kept: u32 = 0
    if flags & STRONG != 0:
        kept = make_way(thread, cell, flags, space)
    else:
        if cell.next != 0:
            forget_chain(thread.worker.history, cell)
        cell.link = max((cell.link | IN_GENERATION) + 1, u32(1 << GENERATION))
    cell.epoch = thread.order.epoch
    if flags & (COPY | ASYNC) == COPY:
        cell.epoch = (thread.copies.group + 1) << SERIAL_SHIFT | thread.copies.index
    cell.block = u32(thread.block.number)
    cell.lanes = u32(1) << thread.lane
    cell.instruction = instruction
    cell.flags = flags & REMEMBERED | kept | (thread.number // 32) << WARP_SHIFT
    if flags & ASYNC != 0:
        cell.epoch = thread.starting.number
        cell.lanes = thread.starting.channel
        cell.flags = flags & REMEMBERED | kept | thread.number << WARP_SHIFT


@native
def forget_chain(history: Pointer[History], cell: Pointer[Access]) -> None:
    """Forget all accesses but the last write: whatever conflicts with one of them conflicts with a weak write, too."""
    number: u32 = cell.next
    while number != 0:
        next: u32 = history.chained.items[number].next
        unchain(history, number)
        number = next
    cell.next = 0


@native
def make_way(thread: Pointer[Thread], cell: Pointer[Access], flags: u32, space: u32) -> u32:
    """Forget what a strong write makes pointless to remember, and keep the rest in the chain, perhaps the last write.

    The result is `HAS_WRITES` if writes are kept, and `ALL_BEFORE` if all that is kept is ordered before the new write.
    """
    history = thread.worker.history
    link: u32 = next_link(thread, cell, flags)
    is_after = False
    is_last_kept = False
    if cell.epoch != 0:
        is_after = (
            link >> GENERATION == cell.link >> GENERATION
            or is_known(thread, cell)
            or is_observed(thread, cell, cell, flags, space)
        )
        is_last_kept = not (is_after and is_covered(thread, cell, flags, space))
        if not is_last_kept and cell.flags & ALL_BEFORE != 0:
            cell.link = link
            return cell.flags & (HAS_WRITES | ALL_BEFORE)
    if is_after and cell.flags & HAS_WRITES != 0:
        mark_observed(thread, cell, flags, space)
    before: u32 = 0
    number: u32 = cell.next
    length: u32 = 0
    kept: u32 = ALL_BEFORE
    while number != 0:
        access = history.chained.items + number
        next: u32 = access.next
        is_kept: boolean = length < LONGEST
        if is_kept:
            if (is_after and access.flags & BEFORE != 0) or is_known(thread, access):
                is_kept = not is_covered(thread, access, flags, space)
                is_kept = is_kept and not (is_last_kept and is_after and is_between(thread, access, cell, flags))
                access.flags = access.flags | BEFORE
            else:
                access.flags = access.flags & ~u32(BEFORE)
        if is_kept:
            before = number
            length += 1
            if access.flags & KIND != LOAD:
                kept = kept | HAS_WRITES
            if access.flags & BEFORE == 0:
                kept = kept & ~u32(ALL_BEFORE)
        else:
            if before == 0:
                cell.next = next
            else:
                history.chained.items[before].next = next
            unchain(history, number)
        number = next
    if is_last_kept:
        keep_write(history, cell, u32(BEFORE if is_after else 0))
        kept = kept | HAS_WRITES
        if not is_after:
            kept = kept & ~u32(ALL_BEFORE)
    cell.link = link
    return kept


@native
def mark_observed(thread: Pointer[Thread], cell: Pointer[Access], flags: u32, space: u32) -> None:
    """Mark those writes of a chain that a thread comes after, by what it observed, as it comes after the last one."""
    number: u32 = cell.next
    while number != 0:
        access = thread.worker.history.chained.items + number
        if access.flags & BEFORE == 0 and is_observed(thread, cell, access, flags, space):
            access.flags = access.flags | BEFORE
        number = access.next


@native
def keep_write(history: Pointer[History], cell: Pointer[Access], before: u32) -> None:
    """Move the last write into the chain."""
    flags: u32 = cell.flags & ~u32(HAS_WRITES | ALL_BEFORE) | before
    number: u32 = cell.next
    while number != 0:
        access = history.chained.items + number
        if (
            access.epoch == cell.epoch
            and access.block == cell.block
            and access.flags == flags
            and access.instruction == cell.instruction
            and (cell.flags & ASYNC == 0 or access.lanes == cell.lanes)
        ):
            access.lanes = access.lanes | cell.lanes
            access.link = 0
            return
        number = access.next
    number = chain(history, cell.next)
    if number == 0:
        history.unwatched += 1
        return
    copy_access(history.chained.items + number, cell)
    history.chained.items[number].flags = flags
    cell.next = number
