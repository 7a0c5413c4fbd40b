"""Shadow memory: for each 16 bytes of memory, or fewer where that matters, the accesses that others may conflict with.

Memory is remembered page by page, from the first access on: by as many bytes as that accesses together. When a page is
accessed by fewer, it is split, so that neighbouring bytes are never taken for each other.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.clocks import Access, History, Page, Pages, Run, Runs
from ptxlab.native import (
    Pointer,
    boolean,
    calloc,
    cast,
    copy_bytes,
    free,
    native,
    resize,
    size_of,
    u8,
    u32,
    u64,
    unlikely,
)

# What an access is: how it is made (LOAD, …), how strong it is, of how many bytes its elements are (as an
# exponent of two), and on whose behalf. From `WARP_SHIFT` on, the number of the warp (for `ASYNC`, of the thread).
KIND = 3
STRONG = 4
WIDE = 8  # its scope includes all blocks
SIZE_SHIFT = 4
SIZE = 7 << SIZE_SHIFT
MATRIX_ROW = 7 << SIZE_SHIFT  # instead of a size: it is a row of an 8x8 matrix that a warp writes together
COPY = 128  # it is done by a copy, its epoch is the copy's number
ACQUIRE = 256
RELEASE = 512
OBJECT = 1024  # it is an operation on an mbarrier
UNCHANGED = 2048  # it writes what is there already; of a load: it is a `cas` that failed
HAS_WRITES = 4096  # of a last write: its chain has writes, too
FOLLOWED = 4096  # of a new access: local memory is checked, too
# Of what is remembered: an access in a chain is ordered before the last write; all of the chain of a last write are.
BEFORE = 256
ALL_BEFORE = 512
STALE = 8192  # it may not see what the kernel writes: `ld.global.nc`
SYSTEM = 16384  # its scope includes other GPUs
ASYNC = 32768  # it is done by an asynchronous operation; `lanes` is then the channel, the epoch the number of the work
CLUSTER = 65536  # its scope includes the blocks of its cluster
GENERIC = 131072  # it is done by an asynchronous operation, yet by the generic proxy, as accesses of threads are
ANY_PROXY = 262144  # it is ordered with accesses to the same bytes by any proxy: no fence is needed
REDUCTION = 524288  # it changes memory without returning the value: it acquires nothing (PTX ISA 8.11.1)
UNDEFINED = 524288  # of a store, and of a last write that is remembered: no part of the value is defined
REMEMBERED = 255 | SYSTEM | ASYNC | CLUSTER | GENERIC | ANY_PROXY
WARP_SHIFT = 20
# Of a new access, which has no number of a warp: reads of these bytes before it, too, need a proxy fence.
AFTER_READS = 1 << WARP_SHIFT
# Also of a new access: the kernel has fences, acquires or releases; it is a `cas`, or a read of one address in a loop.
SYNCHRONIZES = 1 << (WARP_SHIFT + 1)
POLLS = 1 << (WARP_SHIFT + 2)
# From this bit on, one for each element of a new strong read: its value is never used.
UNUSED_SHIFT = WARP_SHIFT + 3
# Of a new read: the code follows what it reads, and reports where an undefined value is used.
FOLLOWS_VALUE = 1 << 31

PAGE_SHIFT = 10
PAGE = 1 << PAGE_SHIFT
WORD_SHIFT = 2
CHUNK_SHIFT = 5  # the most bytes that are remembered together, as an exponent of two
RUNS = 32  # with the `shift` of a page: it has runs instead of accesses, of elements of that many bytes
GENERATION = 16  # the first bit of the number of the generation in a link; see `access_history`
ACCESS_SIZE = size_of(Access)
PAGE_SIZE = size_of(Page)
RUNS_SIZE = size_of(Runs)
FIRST_CAPACITY = 64
SCATTER = 0x9E3779B97F4A7C15


@native(inline=True)
def slot_of(pages: Pointer[Pages], number: u64) -> u32:
    """Where a page is in the table, or the free slot where it would be."""
    mask: u32 = pages.capacity - 1
    at: u32 = u32(u64(number * SCATTER) >> 40) & mask
    while pages.slots[at].number != number and pages.slots[at].number != 0:
        at = (at + 1) & mask
    return at


@native(inline=True)
def find_page(history: Pointer[History], pages: Pointer[Pages], address: u64, shift: u32) -> Pointer[Page]:
    """The page of an address; null if there is no memory left for a new one, which has that `shift`."""
    number: u64 = (address >> PAGE_SHIFT) + 1
    if pages.capacity != 0:
        page = pages.slots + slot_of(pages, number)
        if page.number == number:
            return page if page.shift < RUNS else expand_page(history, page)
    return add_page(history, pages, number, shift)


@native(inline=True)
def cell_in(page: Pointer[Page], address: u64) -> Pointer[Access]:
    """What is remembered of the bytes at an address in a page."""
    return page.accesses + (u32(address & (PAGE - 1)) >> page.shift)


@native
def add_page(history: Pointer[History], pages: Pointer[Pages], number: u64, shift: u32) -> Pointer[Page]:
    nowhere = cast(Pointer[Page], 0)
    if pages.count * 2 >= pages.capacity and not grow(pages):
        return nowhere
    accesses = cast(Pointer[Access], 0)
    runs = cast(Pointer[Runs], 0)
    if shift < RUNS:
        accesses = claim(history, u32(PAGE) >> shift)
    elif history.bytes + RUNS_SIZE <= history.limit:
        history.bytes += RUNS_SIZE
        runs = cast(Pointer[Runs], calloc(1, RUNS_SIZE))
    if cast(u64, accesses) | cast(u64, runs) == 0:
        return nowhere
    page = pages.slots + slot_of(pages, number)
    page.number = number
    page.accesses = accesses
    page.runs = runs
    page.shift = shift
    page.written = 0
    pages.count += 1
    return page


@native
def expand_page(history: Pointer[History], page: Pointer[Page]) -> Pointer[Page]:
    """Have a page of runs be one of accesses; null if there is no memory left for them."""
    shift: u32 = page.shift - RUNS
    accesses = claim(history, u32(PAGE) >> shift)
    if cast(u64, accesses) == 0:
        return cast(Pointer[Page], 0)
    for index in range(page.runs.count):
        run = cast(Pointer[Run], page.runs.items) + index
        for element in range(run.start, run.end):
            access = accesses + element
            if run.flags & KIND == LOAD:
                number: u32 = chain(history, 0)
                if number == 0:
                    history.unwatched += 1
                    continue
                access.next = number
                access = history.chained.items + number
            set_access(access, run, element)
            access.link = 0 if run.flags & KIND == LOAD else u32(1 << GENERATION)
    free_runs(history, page)
    page.accesses = accesses
    page.shift = shift
    return page


@native
def free_runs(history: Pointer[History], page: Pointer[Page]) -> None:
    """Forget the runs of a page."""
    if cast(u64, page.runs) != 0:
        free(cast(Pointer[u8], page.runs))
        page.runs = cast(Pointer[Runs], 0)
        history.bytes -= RUNS_SIZE


@native(inline=True)
def set_access(access: Pointer[Access], run: Pointer[Run], element: u32) -> None:
    """Have an access be that of a run to an element."""
    thread: u32 = run.thread + (element - run.start)
    access.epoch = run.epoch
    access.block = run.block
    access.lanes = u32(1) << (thread % 32)
    access.instruction = run.instruction
    access.flags = run.flags | thread // 32 << WARP_SHIFT


@native
def grow(pages: Pointer[Pages]) -> boolean:
    """Make the table larger."""
    old = pages.slots
    capacity: u32 = pages.capacity
    larger: u32 = capacity * 2
    if larger == 0:
        larger = FIRST_CAPACITY
    memory = calloc(u64(larger), PAGE_SIZE)
    if cast(u64, memory) == 0:
        return False
    pages.slots = cast(Pointer[Page], memory)
    pages.capacity = larger
    for index in range(capacity):
        if old[index].number != 0:
            page = pages.slots + slot_of(pages, old[index].number)
            copy_bytes(cast(Pointer[u8], page), cast(Pointer[u8], old + index), PAGE_SIZE)
    free(cast(Pointer[u8], old))
    return True


@native
def claim(history: Pointer[History], count: u32) -> Pointer[Access]:
    """Memory for accesses, all empty; null if that is too much."""
    bytes: u64 = u64(count) * ACCESS_SIZE
    if history.bytes + bytes > history.limit:
        return cast(Pointer[Access], 0)
    history.bytes += bytes
    return cast(Pointer[Access], calloc(1, bytes))


@native
def split_page(history: Pointer[History], page: Pointer[Page], shift: u32) -> boolean:
    """Remember fewer bytes of a page together from now on."""
    finer = claim(history, u32(PAGE) >> shift)
    if cast(u64, finer) == 0:
        return False
    parts: u32 = u32(1) << (page.shift - shift)
    for index in range(u32(PAGE) >> shift):
        whole = page.accesses + index // parts
        copy_bytes(cast(Pointer[u8], finer + index), cast(Pointer[u8], whole), ACCESS_SIZE)
        if index % parts != parts - 1:
            finer[index].next = copy_chain(history, whole.next)
    free(cast(Pointer[u8], page.accesses))
    history.bytes -= u64(u32(PAGE) >> page.shift) * ACCESS_SIZE
    page.accesses = finer
    page.shift = shift
    return True


# Chains.


@native
def chain(history: Pointer[History], next: u32) -> u32:
    """The number of a new access in front of `next`; 0 if there is no memory for it."""
    found: u32 = history.chained_free
    if found != 0:
        history.chained_free = history.chained.items[found].next
        history.chained.items[found].next = next
        return found
    if unlikely(history.chained.count == history.chained.capacity):
        capacity: u32 = history.chained.capacity * 2 + 1024
        added: u64 = (u64(capacity) - u64(history.chained.capacity)) * ACCESS_SIZE
        if history.bytes + added > history.limit:
            return 0
        if not resize(history.chained, capacity):
            return 0
        history.bytes += added
        if history.chained.count == 0:
            history.chained.count = 1
    found = history.chained.count
    history.chained.count += 1
    history.chained.items[found].next = next
    return found


@native(inline=True)
def unchain(history: Pointer[History], number: u32) -> None:
    """Let an access, which is in no chain any more, be used again."""
    history.chained.items[number].next = history.chained_free
    history.chained_free = number


@native(inline=True)
def copy_access(to: Pointer[Access], source: Pointer[Access]) -> None:
    """Copy all but `next`."""
    to.epoch = source.epoch
    to.block = source.block
    to.lanes = source.lanes
    to.instruction = source.instruction
    to.flags = source.flags
    to.link = source.link


@native
def copy_chain(history: Pointer[History], first: u32) -> u32:
    """A chain of the same accesses."""
    found: u32 = 0
    number: u32 = first
    while number != 0:
        copy: u32 = chain(history, found)
        if copy == 0:
            return found
        copy_access(history.chained.items + copy, history.chained.items + number)
        found = copy
        number = history.chained.items[number].next
    return found


@native
def free_pages(history: Pointer[History], pages: Pointer[Pages]) -> None:
    """Forget all accesses of a table."""
    for index in range(pages.capacity):
        page = pages.slots + index
        free_runs(history, page)
        if page.number != 0 and page.shift < RUNS:
            count: u32 = u32(PAGE) >> page.shift
            for at in range(count):
                number: u32 = page.accesses[at].next
                while number != 0:
                    next: u32 = history.chained.items[number].next
                    unchain(history, number)
                    number = next
            history.bytes -= u64(count) * ACCESS_SIZE
            free(cast(Pointer[u8], page.accesses))
    free(cast(Pointer[u8], pages.slots))
    pages.slots = cast(Pointer[Page], 0)
    pages.count = 0
    pages.capacity = 0


@native
def drop_pages(pages: Pointer[Pages]) -> None:
    """Give back a table of whose accesses nothing is needed any more, chains neither."""
    for index in range(pages.capacity):
        free(cast(Pointer[u8], pages.slots[index].accesses))
        free(cast(Pointer[u8], pages.slots[index].runs))
    free(cast(Pointer[u8], pages.slots))
    pages.slots = cast(Pointer[Page], 0)
    pages.count = 0
    pages.capacity = 0
