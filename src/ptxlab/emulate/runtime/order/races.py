"""Data races and reads of what no thread wrote (PTX ISA 8.7.1).

Two accesses to the same bytes race if one of them writes, no order puts one before the other, and they are not both
strong, of the same size, and in the scope of each other. Of each pair of instructions the first race is noted.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import (
    CLUSTER_SPACE,
    GLOBAL_SPACE,
    HOST_MEMORY,
    LOAD,
    LOCAL_SPACE,
    LOCAL_WINDOW,
    OFFSET_MASK,
    PARAMETER_WINDOW,
    RANK_SHIFT,
    SHARED_SPACE,
    SHARED_WINDOW,
    STORE,
    TENSOR_SPACE,
)
from ptxlab.emulate.abi.clocks import Access, Pages, SyncVariables
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.memory.block_independence import keep_page
from ptxlab.emulate.runtime.memory.block_lifetime import has_started
from ptxlab.emulate.runtime.memory.memory import owner_of, without_own_rank
from ptxlab.emulate.runtime.order.access_history import is_compatible
from ptxlab.emulate.runtime.order.conflicts import has_conflict, report_conflicts
from ptxlab.emulate.runtime.order.devices import in_history
from ptxlab.emulate.runtime.order.early_waits import note_early_read
from ptxlab.emulate.runtime.order.fence_order import comes_after_fence
from ptxlab.emulate.runtime.order.one_sided import note_strong
from ptxlab.emulate.runtime.order.release_acquire import acquire, empty, find_sync_variable, synchronize
from ptxlab.emulate.runtime.order.remembering import remember_read, remember_write
from ptxlab.emulate.runtime.order.reports import report_start, report_unwritten
from ptxlab.emulate.runtime.order.shadow import (
    ACQUIRE,
    ASYNC,
    CHUNK_SHIFT,
    COPY,
    FOLLOWED,
    FOLLOWS_VALUE,
    HAS_WRITES,
    KIND,
    OBJECT,
    PAGE,
    PAGE_SHIFT,
    RELEASE,
    REMEMBERED,
    SIZE,
    SIZE_SHIFT,
    STALE,
    STRONG,
    SYNCHRONIZES,
    UNCHANGED,
    UNDEFINED,
    UNUSED_SHIFT,
    WARP_SHIFT,
    WIDE,
    WORD_SHIFT,
    cell_in,
    find_page,
    slot_of,
    split_page,
)
from ptxlab.emulate.runtime.order.undefined import (
    NEVER_STORED,
    note_undefined,
    store_undefined,
    stored_number,
    use_undefined,
)
from ptxlab.native import Pointer, address_of, boolean, calloc, cast, native, trailing_zeros, u8, u32, u64, unlikely


@native
def note_shared(thread: Pointer[Thread], offset: u64, bytes: u32, flags: u32, instruction: u32, sources: u32) -> u32:
    """Check an access to the shared memory of the thread's block.

    Here and below, `sources` are those of an undefined value that is stored, or the bit of a load whose value is
    followed, which is returned if that is undefined; see `undefined`.
    """
    block = thread.block
    if unlikely(thread.order.early != 0) and flags & (KIND | OBJECT) == LOAD:
        note_early_read(thread, offset, instruction)
    if block.cluster.count == 1 or flags & OBJECT != 0:
        flags = flags | WIDE  # no other block accesses it, or only by what needs no scope: every scope is as good
    pages = address_of(block.order.pages)
    if flags & KIND == STORE and unlikely(sources != 0):
        store_undefined(thread, sources, instruction)
        flags = flags | UNDEFINED
    found: u32 = 0
    if bytes != 4 or offset & 3 != 0:
        found = note(thread, pages, address_of(block.order.variables), offset, bytes, flags, instruction, SHARED_SPACE)
    else:
        again: u32 = read_again(thread, pages, offset, flags, instruction)
        if again == NEW:
            found = note_word(
                thread, pages, address_of(block.order.variables), offset, flags, instruction, SHARED_SPACE
            )
        elif again == UNWRITTEN and offset >= u64(thread.worker.shared.reserved):
            found = NEVER_STORED
    if found == 0:
        return 0
    return note_undefined(thread, found, sources, offset, bytes, SHARED_SPACE, instruction)


@native
def note_cluster(thread: Pointer[Thread], address: u64, bytes: u32, flags: u32, instruction: u32, sources: u32) -> u32:
    """Check an access to shared memory of a block of the cluster."""
    address = without_own_rank(thread, address)
    if address >> RANK_SHIFT == 0:
        return note_shared(thread, address, bytes, flags, instruction, sources)
    if flags & OBJECT != 0:
        flags = flags | WIDE
    owner = owner_of(thread, address)
    if not has_started(thread, owner):
        report_start(thread, address, bytes, flags, instruction)
    if sources != 0 and flags & KIND == STORE:
        store_undefined(thread, sources, instruction)
        flags = flags | UNDEFINED
    found: u32 = note(
        thread,
        address_of(owner.order.pages),
        address_of(owner.order.variables),
        address,
        bytes,
        flags,
        instruction,
        CLUSTER_SPACE,
    )
    return note_undefined(thread, found, sources, address, bytes, CLUSTER_SPACE, instruction)


@native
def note_global(thread: Pointer[Thread], address: u64, bytes: u32, flags: u32, instruction: u32, sources: u32) -> u32:
    """Check an access to global memory."""
    address = in_history(thread, address)
    history = thread.worker.history
    pages = address_of(history.pages)
    if flags & KIND == STORE and unlikely(sources != 0):
        use_undefined(thread, sources, instruction)
    found: u32 = 0
    if bytes != 4 or address & 3 != 0:
        found = note(thread, pages, address_of(history.variables), address, bytes, flags, instruction, GLOBAL_SPACE)
    else:
        again: u32 = read_again(thread, pages, address, flags, instruction)
        if again == NEW:
            found = note_word(thread, pages, address_of(history.variables), address, flags, instruction, GLOBAL_SPACE)
        elif again == UNWRITTEN and address >= thread.worker.memory.heap:
            found = NEVER_STORED
    if found == 0:
        return 0
    return note_undefined(thread, found, sources, address, bytes, GLOBAL_SPACE, instruction)


@native
def note_generic(thread: Pointer[Thread], address: u64, bytes: u32, flags: u32, instruction: u32, sources: u32) -> u32:
    """Check an access by a generic address."""
    if address < SHARED_WINDOW:
        return note_global(thread, address, bytes, flags, instruction, sources)
    if address < LOCAL_WINDOW:
        return note_cluster(thread, address - SHARED_WINDOW, bytes, flags, instruction, sources)
    if address < PARAMETER_WINDOW and flags & FOLLOWED != 0:
        return note_local(thread, address - LOCAL_WINDOW, bytes, flags, instruction, sources)
    return 0


@native
def note_local(thread: Pointer[Thread], offset: u64, bytes: u32, flags: u32, instruction: u32, sources: u32) -> u32:
    """Check an access to local memory: only whether the thread wrote there."""
    block = thread.block
    if cast(u64, block.memory.local_marks) == 0:
        block.memory.local_marks = calloc(u64(block.count), thread.memory.local_size // 8 + 1)
        if cast(u64, block.memory.local_marks) == 0:
            return 0
    marks = block.memory.local_marks + u64(thread.number) * (thread.memory.local_size // 8 + 1)
    written: u32 = 0
    for index in range(bytes):
        at: u64 = offset + u64(index)
        bit: u8 = u8(1) << u32(at % 8)
        if flags & KIND == LOAD:
            written = written | u32(marks[at // 8] & bit)
        elif sources != 0:
            marks[at // 8] = marks[at // 8] & ~bit
        else:
            marks[at // 8] = marks[at // 8] | bit
    if flags & KIND != LOAD or written != 0:
        return 0
    if flags & FOLLOWS_VALUE == 0:
        report_unwritten(thread, offset, bytes, flags, instruction, LOCAL_SPACE)
    return note_undefined(thread, NEVER_STORED, sources, offset, bytes, LOCAL_SPACE, instruction)


NEW, WRITTEN, UNWRITTEN = range(3)  # what `read_again` returns


@native(inline=True)
def read_again(thread: Pointer[Thread], pages: Pointer[Pages], address: u64, flags: u32, instruction: u32) -> u32:
    """If a weak read of a word is as one before it, by a lane of the same warp; then that one represents it, too.

    This is the path of most reads, where nothing else has to be checked: all threads are past the last write.
    """
    if flags & (KIND | STRONG | STALE) != LOAD or pages.capacity == 0:
        return NEW
    number: u64 = (address >> PAGE_SHIFT) + 1
    page = pages.slots + slot_of(pages, number)
    if page.number != number or page.shift != WORD_SHIFT:
        return NEW
    cell = page.accesses + ((address & (PAGE - 1)) >> WORD_SHIFT)
    block = thread.block
    if cell.epoch != 0 and (
        cell.epoch > block.order.settled_epoch
        or cell.flags & (COPY | HAS_WRITES | UNDEFINED) != 0
        or cell.block != u32(block.number)
    ):
        return NEW
    read = thread.worker.history.chained.items + cell.next
    if (
        cell.next == 0
        or read.epoch != thread.order.epoch
        or read.block != u32(block.number)
        or read.flags != (flags & REMEMBERED | (thread.number // 32) << WARP_SHIFT)
        or read.instruction != instruction
    ):
        return NEW
    read.lanes = read.lanes | (u32(1) << thread.lane)
    return WRITTEN if cell.epoch != 0 else u32(UNWRITTEN)


@native
def note_word(
    thread: Pointer[Thread], pages: Pointer[Pages], variables: Pointer[SyncVariables], address: u64, flags: u32,
    instruction: u32, space: u32,
) -> u32:  # fmt: skip
    """What `note` does, for an aligned word: without loops, since most accesses are to one."""
    page = find_page(thread.worker.history, pages, address, WORD_SHIFT)
    if unlikely(cast(u64, page) == 0) or page.shift != WORD_SHIFT:
        return note(thread, pages, variables, address, 4, flags, instruction, space)
    if flags & ACQUIRE != 0:
        acquire_all(thread, variables, address, 4, flags)
    if flags & KIND != LOAD:
        if page.written == 0 and space == GLOBAL_SPACE:
            keep_page(thread, address)
        page.written = 1
    cell = page.accesses + ((address & (PAGE - 1)) >> WORD_SHIFT)
    is_written: boolean = has_value(cell)
    stored: u32 = stored_by(cell)
    strong: u32 = cell.flags
    if not is_polled_again(thread, cell, flags, instruction):
        note_cell(thread, cell, variables, address, 4, flags, instruction, space)
    note_synchronization(thread, variables, address, 4, flags, strong)
    return 0 if is_written else note_unwritten(thread, address, address, 4, flags, instruction, space, stored)


@native(inline=True)
def has_value(cell: Pointer[Access]) -> boolean:
    """Whether a value was written there that is not undefined."""
    return cell.epoch != 0 and cell.flags & UNDEFINED == 0


@native(inline=True)
def stored_by(cell: Pointer[Access]) -> u32:
    """Which undefined value was stored there, as `undefined` numbers those that are stored."""
    if cell.epoch == 0 or cell.flags & UNDEFINED == 0:
        return NEVER_STORED
    return stored_number(cell.instruction, trailing_zeros(u32, cell.lanes))


@native(inline=True)
def is_polled_again(thread: Pointer[Thread], cell: Pointer[Access], flags: u32, instruction: u32) -> boolean:
    """Whether a strong read is as one before it, by a lane of the same warp, that represents it: it polls.

    It conflicts with nothing: there is no write, or it is morally strong with the last one, and there are no others. If
    there are, the one before was by the same lane: it was compared with them, and nothing has been written since.
    """
    if flags & (KIND | STRONG | STALE | ASYNC | UNCHANGED) != LOAD | STRONG:
        return False
    if cell.next == 0 or (cell.epoch != 0 and not is_compatible(thread, cell, flags)):
        return False
    read = thread.worker.history.chained.items + cell.next
    bit = u32(1) << thread.lane
    if (
        read.epoch != thread.order.epoch
        or read.block != u32(thread.block.number)
        or read.flags != (flags & REMEMBERED | (thread.number // 32) << WARP_SHIFT)
        or (read.lanes & bit == 0 and (read.instruction != instruction or cell.flags & HAS_WRITES != 0))
        or read.link != (cell.link if cell.epoch != 0 else u32(0))
    ):
        return False
    read.lanes = read.lanes | bit
    return True


@native
def note(
    thread: Pointer[Thread],
    pages: Pointer[Pages],
    variables: Pointer[SyncVariables],
    address: u64,
    bytes: u32,
    flags: u32,
    instruction: u32,
    space: u32,
) -> u32:
    """Compare an access with those before it to the same bytes, and remember it."""
    history = thread.worker.history
    start: u64 = address
    if space == CLUSTER_SPACE:
        start = address & OFFSET_MASK
    at: u64 = start
    end: u64 = start + u64(bytes)
    is_written: boolean = False
    stored: u32 = NEVER_STORED
    strong: u32 = 0
    coarsest: u32 = CHUNK_SHIFT if flags & STRONG == 0 else u32(WORD_SHIFT)  # what synchronizes goes by words
    if flags & ACQUIRE != 0:
        acquire_all(thread, variables, start, bytes, flags)
    while at < end:
        stop: u64 = min((at | (PAGE - 1)) + 1, end)
        shift: u32 = min(u32(trailing_zeros(u64, at | stop)), coarsest)
        page = find_page(history, pages, at, shift)
        if space == GLOBAL_SPACE and flags & KIND != LOAD and (cast(u64, page) == 0 or page.written == 0):
            keep_page(thread, at)
        if unlikely(cast(u64, page) == 0):
            history.unwatched += 1
            return 0
        if flags & KIND != LOAD:
            page.written = 1
        if page.shift > shift and not split_page(history, page, shift):
            history.unwatched += 1
            return 0
        cell = cell_in(page, at)
        step: u64 = u64(1) << u64(page.shift)
        while at < stop:
            is_written = is_written or has_value(cell)
            stored = max(stored, stored_by(cell))
            strong = strong | cell.flags
            if not is_polled_again(thread, cell, flags, instruction):
                of_element: u32 = flags_of_element(flags, u32(at - start))
                note_cell(thread, cell, variables, address, bytes, of_element, instruction, space)
            cell = cell + 1
            at += step
    note_synchronization(thread, variables, start, bytes, flags, strong)
    return 0 if is_written else note_unwritten(thread, address, start, bytes, flags, instruction, space, stored)


@native
def note_cell(
    thread: Pointer[Thread], cell: Pointer[Access], variables: Pointer[SyncVariables], address: u64, bytes: u32,
    flags: u32, instruction: u32, space: u32,
) -> None:  # fmt: skip
    """Compare an access with those before it to the same word or byte, and remember it there."""
    if unlikely(flags & SYNCHRONIZES != 0):
        note_strong(thread, cell, variables, address, bytes, flags, instruction, space)
    if unlikely(has_conflict(thread, cell, flags, space)):
        report_conflicts(thread, cell, address, bytes, flags, instruction, space)
    if flags & KIND == LOAD:
        remember_read(thread, cell, flags, instruction, space)
    else:
        remember_write(thread, cell, flags, instruction, space)
        if unlikely(flags & (KIND | UNDEFINED) == STORE | UNDEFINED):
            cell.flags = cell.flags | UNDEFINED


@native(inline=True)
def note_unwritten(
    thread: Pointer[Thread], address: u64, start: u64, bytes: u32, flags: u32, instruction: u32, space: u32, stored: u32
) -> u32:
    """`stored` if an access reads what no thread has written, unless the memory is not the kernel's to write first.

    It is reported, but for what the code follows to its first use.
    """
    if flags & OBJECT != 0 or flags & KIND == STORE:
        return 0
    begin: u64 = thread.worker.memory.heap if space == GLOBAL_SPACE else u64(thread.worker.shared.reserved)
    if space != TENSOR_SPACE and (start < begin or start >= HOST_MEMORY):
        return 0
    if flags & FOLLOWS_VALUE == 0:
        report_unwritten(thread, address, bytes, flags, instruction, space)
    return stored


@native(inline=True)
def note_synchronization(
    thread: Pointer[Thread], variables: Pointer[SyncVariables], start: u64, bytes: u32, flags: u32, strong: u32
) -> None:
    """Follow what an access hands over; `strong` are the attributes of the last writes to its bytes."""
    if flags & OBJECT != 0:
        return
    if flags & STRONG != 0:
        if variables.entries.count != 0 or flags & RELEASE != 0 or comes_after_fence(thread):
            synchronize_all(thread, variables, start, bytes, flags)
        if flags & (SYNCHRONIZES | RELEASE) == SYNCHRONIZES and flags & KIND != LOAD:
            thread.order.epoch += 1  # what comes after it is not observed with it
    elif strong & STRONG != 0 and flags & KIND != LOAD:
        variable = find_sync_variable(variables, start)
        if cast(u64, variable) != 0:
            empty(variable)


@native(inline=True)
def element_size(flags: u32) -> u64:
    """The bytes of an element: each one of a vector is an access of its own (PTX ISA 8.2.4)."""
    return u64(1) << u64((flags & SIZE) >> SIZE_SHIFT)


@native(inline=True)
def flags_of_element(flags: u32, offset: u32) -> u32:
    """What an access is to the element at an offset: whether that one's value is used is then the first such bit."""
    unused: u32 = flags >> UNUSED_SHIFT >> (offset >> ((flags & SIZE) >> SIZE_SHIFT)) & 1
    return flags & ((1 << UNUSED_SHIFT) - 1) | unused << UNUSED_SHIFT


@native
def acquire_all(thread: Pointer[Thread], variables: Pointer[SyncVariables], start: u64, bytes: u32, flags: u32) -> None:
    """Take over what is handed over by all elements that an access reads."""
    at: u64 = start
    while at < start + u64(bytes):
        acquire(thread, variables, at, flags)
        at += element_size(flags)


@native
def synchronize_all(
    thread: Pointer[Thread], variables: Pointer[SyncVariables], start: u64, bytes: u32, flags: u32
) -> None:
    """Synchronize through all elements of an access."""
    at: u64 = start
    while at < start + u64(bytes):
        synchronize(thread, variables, at, flags)
        at += element_size(flags)


CALLED = (
    note_shared,
    note_cluster,
    note_global,
    note_generic,
    note_local,
)
