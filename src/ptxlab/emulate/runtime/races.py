"""Data races and reads of what nobody wrote (PTX ISA 8.7.1).

Two accesses to the same bytes race if one of them writes, no order puts one before the other, and they are not both
strong, of the same size, and in the scope of each other. Of each pair of instructions the first race is noted.
"""

from __future__ import annotations

from ptxlab.emulate.history import Access, Flags, History, Pages
from ptxlab.emulate.runtime.clocks import COPIES, THREAD, WARP, key_of, stamp_of, stamp_of_everyone
from ptxlab.emulate.runtime.flags import empty, find_flag, synchronise
from ptxlab.emulate.runtime.memory import calloc
from ptxlab.emulate.runtime.shadow import (
    COPY,
    FOLLOWED,
    HAS_WRITES,
    KIND,
    OBJECT,
    PAGE,
    PAGE_SHIFT,
    REMEMBERED,
    SIZE,
    STALE,
    STRONG,
    UNCHANGED,
    WARP_SHIFT,
    WIDE,
    chain,
    copy_access,
    find_page,
    slot_of,
    split_page,
    unchain,
)
from ptxlab.emulate.state import LOAD, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, STORE, Thread
from ptxlab.native import Pointer, address_of, boolean, cast, native, trailing_zeros, u8, u32, u64, unlikely

# Kinds of findings.
RACE = 1
UNWRITTEN = 2

# State spaces; see `access`.
GLOBAL_SPACE = 1
SHARED_SPACE = 3
LOCAL_SPACE = 4

HEAP = 0x7800_0000_0000  # where memory of `malloc` begins; see `arguments`
SERIAL_SHIFT = 12  # of the numbers of copies; see `copies`
LONGEST = 64  # accesses in a chain; of more, the oldest are forgotten


@native
def note_shared(thread: Pointer[Thread], offset: u64, bytes: u32, about: u32, instruction: u32) -> None:
    """Look at an access to shared memory."""
    block = thread.block
    about = about | WIDE  # no other block accesses it: every scope is as good
    if bytes == 4 and is_read_again(thread, address_of(block.pages), offset, about, instruction):
        return
    note(thread, address_of(block.pages), address_of(block.flags), offset, bytes, about, instruction, SHARED_SPACE)


@native
def note_global(thread: Pointer[Thread], address: u64, bytes: u32, about: u32, instruction: u32) -> None:
    """Look at an access to global memory."""
    history = thread.worker.history
    if bytes == 4 and is_read_again(thread, address_of(history.pages), address, about, instruction):
        return
    note(thread, address_of(history.pages), address_of(history.flags), address, bytes, about, instruction, GLOBAL_SPACE)


@native
def note_generic(thread: Pointer[Thread], address: u64, bytes: u32, about: u32, instruction: u32) -> None:
    """Look at an access by a generic address."""
    if address < SHARED_WINDOW:
        note_global(thread, address, bytes, about, instruction)
    elif address < LOCAL_WINDOW:
        note_shared(thread, address - SHARED_WINDOW, bytes, about, instruction)
    elif address < PARAMETER_WINDOW and about & FOLLOWED != 0:
        note_local(thread, address - LOCAL_WINDOW, bytes, about, instruction)


@native
def note_local(thread: Pointer[Thread], offset: u64, bytes: u32, about: u32, instruction: u32) -> None:
    """Look at an access to local memory: only whether somebody wrote there."""
    block = thread.block
    if cast(u64, block.local_marks) == 0:
        block.local_marks = calloc(u64(block.count), thread.local_size // 8 + 1)
        if cast(u64, block.local_marks) == 0:
            return
    marks = block.local_marks + u64(thread.number) * (thread.local_size // 8 + 1)
    written: u32 = 0
    for index in range(bytes):
        at: u64 = offset + u64(index)
        bit: u8 = u8(1 << u32(at % 8))
        if about & KIND == LOAD:
            written = written | u32(marks[at // 8] & bit)
        else:
            marks[at // 8] = marks[at // 8] | bit
    if about & KIND == LOAD and written == 0:
        report_unwritten(thread, offset, bytes, about, instruction, LOCAL_SPACE)


@native(inline=True)
def is_read_again(
    thread: Pointer[Thread], pages: Pointer[Pages], address: u64, about: u32, instruction: u32
) -> boolean:
    """Whether a weak read of a word is as one before it, by a lane of the same warp; then that one stands for it, too.

    This is the way of most reads, where nothing else has to be looked at: all know of the last write.
    """
    if about & (KIND | STRONG | STALE) != LOAD or address & 3 != 0 or pages.room == 0:
        return False
    number: u64 = (address >> PAGE_SHIFT) + 1
    page = pages.slots + slot_of(pages, number)
    if page.number != number or page.fine != 0:
        return False
    place = page.accesses + ((address & (PAGE - 1)) >> 2)
    block = thread.block
    if place.stamp != 0 and (
        place.stamp > block.barrier_stamp or place.about & (COPY | HAS_WRITES) != 0 or place.block != u32(block.number)
    ):
        return False
    read = thread.worker.history.chained + place.next
    if (
        place.next == 0
        or read.stamp != thread.stamp
        or read.block != u32(block.number)
        or read.about != (about & REMEMBERED | (thread.number // 32) << WARP_SHIFT)
        or read.instruction != instruction
    ):
        return False
    read.lanes = read.lanes | u32(1 << thread.lane)
    return True


@native
def note(
    thread: Pointer[Thread],
    pages: Pointer[Pages],
    flags: Pointer[Flags],
    address: u64,
    bytes: u32,
    about: u32,
    instruction: u32,
    space: u32,
) -> None:
    """Compare an access with those before it to the same bytes, and remember it."""
    history = thread.worker.history
    at: u64 = address
    end: u64 = address + u64(bytes)
    written: u32 = 0
    strong: u32 = 0
    while at < end:
        page = find_page(history, pages, at)
        stop: u64 = (at | (PAGE - 1)) + 1
        if stop > end:
            stop = end
        if unlikely(cast(u64, page) == 0):
            history.unwatched += 1
            return
        if page.fine == 0 and ((at | stop) & 3) != 0 and not split_page(history, page):
            history.unwatched += 1
            return
        place = page.accesses
        step: u64 = 4
        if page.fine != 0:
            place = place + (at & (PAGE - 1))
            step = 1
        else:
            place = place + ((at & (PAGE - 1)) >> 2)
        while at < stop:
            written = written | place.stamp
            strong = strong | place.about
            if unlikely(has_conflict(thread, place, about)):
                report_conflicts(thread, place, address, bytes, about, instruction, space)
            if about & KIND == LOAD:
                remember_read(thread, place, about, instruction, space)
            else:
                remember_write(thread, place, about, instruction, space)
            place = place + 1
            at += step
    if about & OBJECT == 0:
        if written == 0 and about & KIND != STORE and (space == SHARED_SPACE or address >= HEAP):
            report_unwritten(thread, address, bytes, about, instruction, space)
        if about & STRONG != 0:
            synchronise(thread, flags, address, about)
        elif strong & STRONG != 0 and about & KIND != LOAD:
            flag = find_flag(flags, address)
            if cast(u64, flag) != 0:
                empty(flag)


@native(inline=True)
def is_known(thread: Pointer[Thread], access: Pointer[Access]) -> boolean:
    """Whether an access happened before what a thread does now."""
    block = thread.block
    if access.block == u32(block.number) and access.about & COPY == 0:
        if access.stamp <= block.barrier_stamp:
            return True
        if access.about >> WARP_SHIFT == thread.number // 32 and (
            access.stamp <= thread.warp_stamp or access.lanes == u32(1 << thread.lane)
        ):
            return True
    return is_told(thread, access)


@native
def is_told(thread: Pointer[Thread], access: Pointer[Access]) -> boolean:
    """Whether a fact says that an access happened before what a thread does now, for all lanes that made it."""
    block = thread.block
    lanes: u32 = access.lanes
    warp: u32 = access.about >> WARP_SHIFT
    number: u64 = u64(access.block)
    stamp: u64 = u64(access.stamp)
    known = address_of(thread.known)
    shared = address_of(block.known)
    if access.about & COPY != 0:
        owner = block.threads + (warp * 32 + trailing_zeros(u32, lanes))
        if access.stamp <= owner.copies_shared or (owner == thread and access.stamp <= thread.copies_done):
            return True
        return stamp <= stamp_of(known, key_of(number, COPIES + owner.number))
    if known.count == 0 and shared.count == 0:
        return False
    if stamp <= stamp_of_everyone(known) or stamp <= stamp_of_everyone(shared):
        return True
    if stamp <= stamp_of(known, key_of(number, 0)) or stamp <= stamp_of(shared, key_of(number, 0)):
        return True
    key: u64 = key_of(number, WARP + warp)
    if stamp <= stamp_of(known, key) or stamp <= stamp_of(shared, key):
        return True
    return untold_lanes(thread, access) == 0


@native
def untold_lanes(thread: Pointer[Thread], access: Pointer[Access]) -> u32:
    """The lanes that made an access of which no fact about a thread tells."""
    warp: u32 = access.about >> WARP_SHIFT
    lanes: u32 = access.lanes
    if access.about & COPY != 0:
        return lanes
    if access.block == u32(thread.block.number) and warp == thread.number // 32:
        lanes = lanes & ~u32(1 << thread.lane)
    left: u32 = lanes
    while left != 0:
        lane: u32 = trailing_zeros(u32, left)
        key: u64 = key_of(u64(access.block), THREAD + warp * 32 + lane)
        stamp: u64 = u64(access.stamp)
        known = address_of(thread.known)
        if stamp <= stamp_of(known, key) or stamp <= stamp_of(address_of(thread.block.known), key):
            lanes = lanes & ~u32(1 << lane)
        left = left & (left - 1)
    return lanes


@native(inline=True)
def is_compatible(thread: Pointer[Thread], access: Pointer[Access], about: u32) -> boolean:
    """Whether two accesses may happen at once: both strong, of one size, in the scope of each other."""
    both: u32 = access.about & about
    if both & STRONG == 0 or (access.about ^ about) & SIZE != 0:
        return False
    return both & WIDE != 0 or access.block == u32(thread.block.number)


@native(inline=True)
def is_conflict(thread: Pointer[Thread], access: Pointer[Access], about: u32) -> boolean:
    """Whether a new access races with one before it; two writes of the same value do not."""
    if about & KIND == LOAD and access.about & KIND == LOAD:
        return False
    if about & STALE != 0:
        return True
    if is_known(thread, access) or is_compatible(thread, access, about):
        return False
    return about & UNCHANGED == 0 or access.about & (KIND | COPY) != STORE


@native
def has_conflict(thread: Pointer[Thread], place: Pointer[Access], about: u32) -> boolean:
    """Whether a new access races with any of those before it."""
    if place.stamp != 0 and is_conflict(thread, place, about):
        return True
    if about & KIND == LOAD and place.about & HAS_WRITES == 0:
        return False
    number: u32 = place.next
    while number != 0:
        access = thread.worker.history.chained + number
        if is_conflict(thread, access, about):
            return True
        number = access.next
    return False


@native
def report_conflicts(
    thread: Pointer[Thread],
    place: Pointer[Access],
    address: u64,
    bytes: u32,
    about: u32,
    instruction: u32,
    space: u32,
) -> None:
    """Note every race of a new access."""
    if place.stamp != 0 and is_conflict(thread, place, about):
        report_race(thread, place, address, bytes, about, instruction, space)
    number: u32 = place.next
    while number != 0:
        access = thread.worker.history.chained + number
        if is_conflict(thread, access, about):
            report_race(thread, access, address, bytes, about, instruction, space)
        number = access.next


@native(inline=True)
def is_covered(thread: Pointer[Thread], access: Pointer[Access], about: u32, space: u32) -> boolean:
    """Whether whatever conflicts with a known access conflicts with the new one, too, or cannot come any more."""
    if about & STRONG == 0 or access.about & (STRONG | WIDE) == about & (STRONG | WIDE):
        return True
    return space == SHARED_SPACE and access.about & COPY == 0 and access.stamp <= thread.block.barrier_stamp


@native
def remember_read(thread: Pointer[Thread], place: Pointer[Access], about: u32, instruction: u32, space: u32) -> None:
    """Remember a read; reads that it follows need not be remembered any more."""
    history = thread.worker.history
    what: u32 = about & REMEMBERED | (thread.number // 32) << WARP_SHIFT
    bit: u32 = u32(1 << thread.lane)
    block: u32 = u32(thread.block.number)
    number: u32 = place.next
    length: u32 = 0
    while number != 0:
        access = history.chained + number
        if access.stamp == thread.stamp and access.block == block and access.about == what:
            if access.lanes & bit != 0:
                return
            if access.instruction == instruction:
                access.lanes = access.lanes | bit
                return
        number = access.next
        length += 1
    before: u32 = 0
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
    access.stamp = thread.stamp
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
        and (not is_known(thread, place) or not is_covered(thread, place, about, space))
    ):
        keep_write(history, place)
        writes = HAS_WRITES
    place.stamp = thread.stamp
    if about & COPY != 0:
        place.stamp = (thread.copy_group + 1) << SERIAL_SHIFT | thread.copy_index
    place.block = u32(thread.block.number)
    place.lanes = u32(1 << thread.lane)
    place.instruction = instruction
    place.about = about & REMEMBERED | writes | (thread.number // 32) << WARP_SHIFT


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


# Findings.


@native
def report_race(
    thread: Pointer[Thread],
    other: Pointer[Access],
    address: u64,
    bytes: u32,
    about: u32,
    instruction: u32,
    space: u32,
) -> None:
    """Note a race, unless these two instructions have had one, in a warp or between warps as this one is."""
    history = thread.worker.history
    is_near: u32 = u32(other.block == u32(thread.block.number) and other.about >> WARP_SHIFT == thread.number // 32)
    for index in range(history.finding_count):
        found = history.findings + index
        if (found.kind == RACE and found.is_near == is_near) and (
            (found.instruction == instruction and found.other_instruction == other.instruction)
            or (found.instruction == other.instruction and found.other_instruction == instruction)
        ):
            return
    if history.finding_count == history.finding_room:
        return
    found = history.findings + history.finding_count
    history.finding_count += 1
    found.kind = RACE
    found.instruction = instruction
    found.thread = thread.number
    found.about = about
    found.block = thread.block.number
    found.address = address
    found.bytes = bytes
    found.space = space
    found.other_instruction = other.instruction
    found.other_thread = (other.about >> WARP_SHIFT) * 32 + trailing_zeros(u32, untold_lanes(thread, other))
    found.other_about = other.about
    found.is_near = is_near
    found.other_block = u64(other.block)


@native
def report_unwritten(
    thread: Pointer[Thread], address: u64, bytes: u32, about: u32, instruction: u32, space: u32
) -> None:
    """Note a read of what nobody wrote, unless this instruction has had one."""
    history = thread.worker.history
    for index in range(history.finding_count):
        found = history.findings + index
        if found.kind == UNWRITTEN and found.instruction == instruction:
            return
    if history.finding_count >= history.finding_room // 2:  # the rest is for races, which matter more
        return
    found = history.findings + history.finding_count
    history.finding_count += 1
    found.kind = UNWRITTEN
    found.instruction = instruction
    found.thread = thread.number
    found.about = about
    found.block = thread.block.number
    found.address = address
    found.bytes = bytes
    found.space = space
