"""Accesses of lanes that execute a kernel together, compared with those before them at once.

Most are the plainest: whatever was done to these bytes before, all threads of the block know it, or the lane did it
itself. What takes more is checked lane by lane, as accesses of threads are. Lanes together run in another order than
threads, so nothing that they find is reported: it ends the trial, and threads run the launch again, one after the
other. For the same reason a write conflicts with another of the same value here: which one changes memory is chance.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.emulate.abi.address_spaces import GLOBAL_SPACE, HOST_MEMORY, LOAD, SHARED_SPACE, SHARED_WINDOW
from ptxlab.emulate.abi.clocks import Access, Page, Pages
from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.abi.faults import APART
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.runtime.memory.block_independence import keep_page
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.order.access_history import IN_GENERATION
from ptxlab.emulate.runtime.order.races import note_generic, note_global, note_shared
from ptxlab.emulate.runtime.order.runs import joins_runs
from ptxlab.emulate.runtime.order.shadow import (
    ALL_BEFORE,
    ASYNC,
    COPY,
    GENERATION,
    HAS_WRITES,
    KIND,
    PAGE,
    PAGE_SHIFT,
    REMEMBERED,
    STALE,
    STRONG,
    UNDEFINED,
    WARP_SHIFT,
    WIDE,
    WORD_SHIFT,
    chain,
    find_page,
    unchain,
)
from ptxlab.native import Pointer, address_of, boolean, cast, native, struct, trailing_zeros, u32, u64, unlikely

LONG = 32  # reads of the same bytes by different warps and instructions, beyond which some are looked for to forget
ANY_SOURCE = 1  # a read of what no thread wrote returns it


@struct
@dataclass
class LaneAddresses:
    """Where lanes access memory: from `first` on, each `stride` after the one before, unless `each` has all of them."""

    first: u64
    stride: u64
    each: Pointer[u64]


@native
def note_lanes_shared(
    thread: Pointer[Thread], first: u64, stride: u64, each: Pointer[u64], lanes: u32, bytes: u32, flags: u32,
    instruction: u32,
) -> u32:  # fmt: skip
    """Check accesses of some lanes from `thread` on to the shared memory of their block; whether they end the trial.

    The first lane's address is `first` and the next is `stride` after it, unless `each` has the addresses of all.
    """
    block = thread.block
    if block.cluster.count == 1:
        flags = flags | WIDE
    where = LaneAddresses(first=first, stride=stride, each=each)
    left: u32 = note_plain(thread, where, lanes, bytes, flags, instruction, SHARED_SPACE)
    found: u32 = 0
    while left != 0:
        lane: u32 = trailing_zeros(u32, left)
        at: u64 = address_in(where, lane)
        found = found | note_shared(thread + lane, at, bytes, flags, instruction, source_of(flags))
        left = left & (left - 1)
    return end_if_found(thread, found, instruction)


@native
def note_lanes_global(
    thread: Pointer[Thread], first: u64, stride: u64, each: Pointer[u64], lanes: u32, bytes: u32, flags: u32,
    instruction: u32,
) -> u32:  # fmt: skip
    """The same in global memory."""
    group: u32 = thread.worker.code.group
    all: u32 = u32(0xFFFFFFFF) >> (32 - group)
    if lanes == all and stride == u64(bytes) and cast(u64, each) == 0 and bytes >= 4:
        is_defined: boolean = first + (u64(group) - 1) * stride < thread.worker.memory.heap or first >= HOST_MEMORY
        shift: u32 = trailing_zeros(u32, bytes)
        part: u32 = 0
        while part < group and (is_defined or flags & KIND != LOAD):
            if joins_runs(thread + part, first + u64(part) * stride, shift, flags, instruction):
                lanes = lanes & ~(u32((1 << GROUP) - 1) << part)
            part += GROUP
        if lanes == 0:
            return 0
    where = LaneAddresses(first=first, stride=stride, each=each)
    left: u32 = note_plain(thread, where, lanes, bytes, flags, instruction, GLOBAL_SPACE)
    found: u32 = 0
    while left != 0:
        lane: u32 = trailing_zeros(u32, left)
        at: u64 = address_in(where, lane)
        found = found | note_global(thread + lane, at, bytes, flags, instruction, source_of(flags))
        left = left & (left - 1)
    return end_if_found(thread, found, instruction)


@native
def note_lanes_generic(
    thread: Pointer[Thread], first: u64, stride: u64, each: Pointer[u64], lanes: u32, bytes: u32, flags: u32,
    instruction: u32,
) -> u32:  # fmt: skip
    """The same by generic addresses."""
    where = LaneAddresses(first=first, stride=stride, each=each)
    left: u32 = lanes
    highest: u64 = 0
    while left != 0:
        highest = max(highest, address_in(where, trailing_zeros(u32, left)))
        left = left & (left - 1)
    if highest < SHARED_WINDOW:
        return note_lanes_global(thread, first, stride, each, lanes, bytes, flags, instruction)
    found: u32 = 0
    left = lanes
    while left != 0:
        lane: u32 = trailing_zeros(u32, left)
        at: u64 = address_in(where, lane)
        found = found | note_generic(thread + lane, at, bytes, flags, instruction, source_of(flags))
        left = left & (left - 1)
    return end_if_found(thread, found, instruction)


@native(inline=True)
def source_of(flags: u32) -> u32:
    """What a note takes as the source of an undefined value: none is stored."""
    return ANY_SOURCE if flags & KIND == LOAD else u32(0)


@native(inline=True)
def address_in(where: LaneAddresses, lane: u32) -> u64:
    """The address of a lane."""
    if cast(u64, where.each) != 0:
        return where.each[lane]
    return where.first + where.stride * u64(lane)


@native(inline=True)
def end_if_found(thread: Pointer[Thread], found: u32, instruction: u32) -> u32:
    """End the trial if an access found anything, or one before it did."""
    if unlikely(found | thread.worker.history.finding_count != 0):
        fail(thread, APART, instruction, 0)
        return 1
    return 0


@native(inline=True)
def note_plain(
    thread: Pointer[Thread], where: LaneAddresses, lanes: u32, bytes: u32, flags: u32, instruction: u32, space: u32
) -> u32:
    """Check and remember the plain ones of some accesses; the lanes of the others. All lanes have the same epoch."""
    if bytes < 4:
        return lanes
    pages: Pointer[Pages] = address_of(thread.worker.history.pages)
    begin: u64 = thread.worker.memory.heap  # from here on, what no thread has written is undefined
    if space == SHARED_SPACE:
        pages = address_of(thread.block.order.pages)
        begin = u64(thread.worker.shared.reserved)
    shift: u32 = trailing_zeros(u32, bytes)
    block = thread.block
    what: u32 = flags & REMEMBERED | (thread.number // 32) << WARP_SHIFT
    rest: u32 = 0
    page = cast(Pointer[Page], 0)
    number: u64 = 0
    while lanes != 0:
        lane: u32 = trailing_zeros(u32, lanes)
        bits: u32 = u32(1) << (thread.lane + lane)
        done: u32 = u32(1) << lane
        at: u64 = address_in(where, lane)
        if flags & KIND == LOAD and where.stride == 0 and cast(u64, where.each) == 0:  # all lanes read the same bytes
            bits = lanes << thread.lane
            done = lanes
        if (at >> PAGE_SHIFT) + 1 != number:
            number = (at >> PAGE_SHIFT) + 1
            page = find_page(thread.worker.history, pages, at, shift)
            if unlikely(cast(u64, page) == 0) or page.shift > shift or page.shift < WORD_SHIFT:
                number = 0
            elif flags & KIND != LOAD:
                if page.written == 0 and space == GLOBAL_SPACE:
                    keep_page(thread, at)
                page.written = 1
        is_plain: boolean = number != 0
        if is_plain:
            cell = page.accesses + (u32(at & (PAGE - 1)) >> page.shift)
            for _part in range(bytes >> page.shift):
                if flags & KIND == LOAD:
                    is_written: boolean = cell.epoch != 0 or at < begin or at >= HOST_MEMORY
                    is_plain = is_plain and is_written and read(thread, block, cell, what, bits, flags, instruction)
                else:
                    is_plain = is_plain and write(thread, block, cell, what, bits, instruction)
                cell = cell + 1
        if not is_plain:
            rest = rest | done
        lanes = lanes & ~done
    return rest


@native(inline=True)
def is_plainly_known(block: Pointer[Block], access: Pointer[Access], what: u32, bits: u32) -> boolean:
    """Whether an access happened before those of these lanes of a warp, by what all threads of the block know.

    Or the only one of the lanes did it.
    """
    if access.block != u32(block.number) or access.flags & (COPY | ASYNC) != 0:
        return False
    if access.epoch <= block.order.settled_epoch:
        return True
    return access.lanes == bits and bits & (bits - 1) == 0 and (access.flags ^ what) >> WARP_SHIFT == 0


@native(inline=True)
def read(
    thread: Pointer[Thread], block: Pointer[Block], cell: Pointer[Access], what: u32, bits: u32, flags: u32,
    instruction: u32,
) -> boolean:  # fmt: skip
    """Remember a read of lanes, if it is plain, perhaps in place of one that it follows; see `remember_read`."""
    if cell.epoch != 0:
        if cell.flags & (HAS_WRITES | UNDEFINED) != 0 or flags & STALE != 0:
            return False
        if not is_plainly_known(block, cell, what, bits):
            return False
    history = thread.worker.history
    number: u32 = cell.next
    followed: u32 = 0
    length: u32 = 0
    while number != 0:
        before = history.chained.items + number
        if (
            before.epoch == thread.order.epoch
            and before.instruction == instruction
            and before.flags == what
            and before.block == u32(block.number)
        ):
            before.lanes = before.lanes | bits
            return True
        if before.epoch <= block.order.settled_epoch and is_plain_read(block, before):
            followed = number
        number = before.next
        length += 1
    if followed == 0:
        if length >= LONG:
            return False
        followed = chain(history, cell.next)
        if followed == 0:
            return False
        cell.next = followed
        cell.flags = cell.flags & ~u32(ALL_BEFORE)
    new = history.chained.items + followed
    new.epoch = thread.order.epoch
    new.block = u32(block.number)
    new.lanes = bits
    new.instruction = instruction
    new.flags = what
    new.link = 0
    return True


@native(inline=True)
def is_plain_read(block: Pointer[Block], access: Pointer[Access]) -> boolean:
    """Whether an access is a read by threads of the block of which nothing but its order matters."""
    return access.block == u32(block.number) and access.flags & (KIND | STRONG | COPY | ASYNC) == LOAD


@native(inline=True)
def write(
    thread: Pointer[Thread], block: Pointer[Block], cell: Pointer[Access], what: u32, bits: u32, instruction: u32
) -> boolean:
    """Remember a write of a lane, if it is plain; see `remember_write`."""
    if cell.epoch != 0 and not is_plainly_known(block, cell, what, bits):
        return False
    if cell.next != 0:
        history = thread.worker.history
        number: u32 = cell.next
        while number != 0:
            access = history.chained.items + number
            if not is_plainly_known(block, access, what, bits):
                return False
            number = access.next
        number = cell.next
        while number != 0:
            next: u32 = history.chained.items[number].next
            unchain(history, number)
            number = next
        cell.next = 0
    cell.link = max((cell.link | IN_GENERATION) + 1, u32(1 << GENERATION))
    cell.epoch = thread.order.epoch
    cell.block = u32(block.number)
    cell.lanes = bits
    cell.instruction = instruction
    cell.flags = what
    return True


CALLED = (
    note_lanes_shared,
    note_lanes_global,
    note_lanes_generic,
)
