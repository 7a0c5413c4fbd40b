"""What is remembered of the accesses to some bytes: the last write, and a chain of others that still matter."""

from __future__ import annotations

from ptxlab.emulate.history import Access, History
from ptxlab.emulate.runtime.before import companion, is_known
from ptxlab.emulate.runtime.shadow import (
    ASYNC,
    CLUSTER,
    COPY,
    HAS_WRITES,
    KIND,
    REMEMBERED,
    SIZE,
    STRONG,
    WARP_SHIFT,
    WIDE,
    chain,
    copy_access,
    unchain,
)
from ptxlab.emulate.state import ATOMIC, LOAD, SHARED_SPACE, Thread
from ptxlab.native import Pointer, boolean, cast, native, u32, u64

SERIAL_SHIFT = 12  # of the numbers of copies; see `copies`
LONGEST = 64  # accesses in a chain; of more, the oldest are forgotten


@native(inline=True)
def is_covered(thread: Pointer[Thread], access: Pointer[Access], about: u32, space: u32) -> boolean:
    """Whether whatever conflicts with a known access conflicts with the new one, too, or cannot come any more."""
    if about & STRONG == 0 or access.about & (STRONG | WIDE | CLUSTER) == about & (STRONG | WIDE | CLUSTER):
        return True
    if space != SHARED_SPACE or thread.block.cluster.count != 1:
        return False
    return access.about & COPY == 0 and access.stamp <= thread.block.barrier_stamp


@native(inline=True)
def is_compatible(thread: Pointer[Thread], access: Pointer[Access], about: u32) -> boolean:
    """Whether two accesses may happen at once: both strong, of one size, in the scope of each other."""
    both: u32 = access.about & about
    if both & STRONG == 0 or (access.about ^ about) & SIZE != 0:
        return False
    if both & WIDE != 0 or access.block == u32(thread.block.number):
        return True
    return both & CLUSTER != 0 and cast(u64, companion(thread, access.block)) != 0


@native(inline=True)
def is_observed(thread: Pointer[Thread], write: Pointer[Access], about: u32) -> boolean:
    """Whether an atomic operation reads the last write, so that this is before whatever follows it (PTX ISA 8.9.5)."""
    return about & KIND == ATOMIC and is_compatible(thread, write, about)


@native
def remember_read(thread: Pointer[Thread], place: Pointer[Access], about: u32, instruction: u32, space: u32) -> None:
    """Remember a read; reads that it follows need not be remembered any more."""
    history = thread.worker.history
    what: u32 = about & REMEMBERED | (thread.number // 32) << WARP_SHIFT
    bit: u32 = u32(1 << thread.lane)
    stamp: u32 = thread.stamp
    if about & ASYNC != 0:
        what = about & REMEMBERED | thread.number << WARP_SHIFT
        bit = thread.channel
        stamp = thread.work
    block: u32 = u32(thread.block.number)
    number: u32 = place.next
    length: u32 = 0
    before: u32 = 0
    while number != 0:
        access = history.chained + number
        if (
            access.stamp == stamp
            and access.block == block
            and access.about == what
            and (about & ASYNC == 0 or access.lanes == bit)
            and (access.lanes & bit != 0 or access.instruction == instruction)
        ):
            access.lanes = access.lanes | bit
            if before != 0:  # who polls finds it first next time
                history.chained[before].next = access.next
                access.next = place.next
                place.next = number
            return
        before = number
        number = access.next
        length += 1
    before = 0
    number = place.next
    if number != 0 and length & (length - 1) != 0 and not is_known(thread, history.chained + number):
        number = 0  # the latest is needed, so most are; now and then all are looked at
    length = 0
    while number != 0:
        access = history.chained + number
        next: u32 = access.next
        if (
            access.about & KIND == LOAD and is_covered(thread, access, about, space) and is_known(thread, access)
        ) or length == LONGEST:
            if before == 0:
                place.next = next
            else:
                history.chained[before].next = next
            unchain(history, number)
        else:
            before = number
            length += 1
        number = next
    new: u32 = chain(history, place.next)
    if new == 0:
        history.unwatched += 1
        return
    place.next = new
    access = history.chained + new
    access.stamp = stamp
    access.block = block
    access.lanes = bit
    access.instruction = instruction
    access.about = what


@native
def remember_write(thread: Pointer[Thread], place: Pointer[Access], about: u32, instruction: u32, space: u32) -> None:
    """Remember a write in place of the last one, and forget whatever it makes pointless to remember."""
    history = thread.worker.history
    before: u32 = 0
    number: u32 = place.next
    length: u32 = 0
    writes: u32 = 0
    while number != 0:
        access = history.chained + number
        next: u32 = access.next
        is_kept: boolean = about & STRONG != 0 and length < LONGEST
        if is_kept and is_known(thread, access):
            is_kept = not is_covered(thread, access, about, space)
        if is_kept:
            before = number
            length += 1
            if access.about & KIND != LOAD:
                writes = HAS_WRITES
        else:
            if before == 0:
                place.next = next
            else:
                history.chained[before].next = next
            unchain(history, number)
        number = next
    if (
        place.stamp != 0
        and about & STRONG != 0
        and not (
            (is_known(thread, place) or is_observed(thread, place, about)) and is_covered(thread, place, about, space)
        )
    ):
        keep_write(history, place)
        writes = HAS_WRITES
    place.stamp = thread.stamp
    if about & (COPY | ASYNC) == COPY:
        place.stamp = (thread.copy_group + 1) << SERIAL_SHIFT | thread.copy_index
    place.block = u32(thread.block.number)
    place.lanes = u32(1 << thread.lane)
    place.instruction = instruction
    place.about = about & REMEMBERED | writes | (thread.number // 32) << WARP_SHIFT
    if about & ASYNC != 0:
        place.stamp = thread.work
        place.lanes = thread.channel
        place.about = about & REMEMBERED | writes | thread.number << WARP_SHIFT


@native
def keep_write(history: Pointer[History], place: Pointer[Access]) -> None:
    """Move the last write into the chain."""
    number: u32 = place.next
    while number != 0:
        access = history.chained + number
        if (
            access.stamp == place.stamp
            and access.block == place.block
            and access.about == place.about & ~u32(HAS_WRITES)
            and access.instruction == place.instruction
            and (place.about & ASYNC == 0 or access.lanes == place.lanes)
        ):
            access.lanes = access.lanes | place.lanes
            return
        number = access.next
    number = chain(history, place.next)
    if number == 0:
        history.unwatched += 1
        return
    copy_access(history.chained + number, place)
    history.chained[number].about = place.about & ~u32(HAS_WRITES)
    place.next = number
