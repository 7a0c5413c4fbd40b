"""Who knows of whom: facts, and lists of them."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Knowledge
from ptxlab.native import Pointer, free_items, native, reserve, u32, u64

# A key is the number of a block, then what of it: all of it, a warp, a thread, or the copies that a thread has begun.
BLOCK_SHIFT = 22
PART_MASK = (1 << BLOCK_SHIFT) - 1
WARP = 1
THREAD = 64
COPIES = 2048

# Asynchronous work goes by the channel that tells of its end: groups of a thread, of bulk copies or matrix products, or
# an mbarrier, by its offset and the rank of its block. The stamp is the number of the piece of work.
CHANNELS = 3072
BULK_READS = 3072  # what bulk copies of a thread read, for they tell of that first
BULK_WRITES = 4096
PRODUCTS = 5120
TENSOR_LOADS = 8192  # of a warp from tensor memory
TENSOR_STORES = 8192 + 32
TENSOR_WORK = 9216  # what a thread has begun on tensor memory, up to what is done of it
TENSOR_ISSUED = 10240  # and up to what it had begun before a fence
TENSOR_END = 11264
PHASES = 1 << 19
RANK_IN_CHANNEL = 15

# Added to a block, a warp or a thread: up to this stamp a fence stands between what it did and asynchronous work.
SHARED_FENCE = 1 << 20
GLOBAL_FENCE = 1 << 21

# Added to any key: what is ordered only if a warp collective orders memory, or if a `cas` that fails is a write.
COLLECTIVE = 1 << 61
FAILED = 1 << 62
DOUBTS = COLLECTIVE | FAILED

EVERYONE = (1 << 64) - 1  # a key above all others: all threads of all blocks

MOST = 2048  # facts in a list; of more, those on the threads of a block become one on the block


@native(inline=True)
def key_of(block: u64, part: u32) -> u64:
    return block << BLOCK_SHIFT | u64(part)


@native
def position_of(known: Pointer[Knowledge], key: u64) -> u32:
    """Where the fact about `key` is or would be."""
    low: u32 = 0
    high: u32 = known.count
    while low < high:
        middle: u32 = (low + high) // 2
        if known.items[middle].key < key:
            low = middle + 1
        else:
            high = middle
    return low


@native
def stamp_of(known: Pointer[Knowledge], key: u64) -> u64:
    """Up to which stamp `key` is known."""
    if known.count == 0:
        return 0
    at: u32 = position_of(known, key)
    if at < known.count and known.items[at].key == key:
        return known.items[at].stamp
    return 0


@native
def tell(known: Pointer[Knowledge], key: u64, stamp: u64) -> None:
    """Add one fact."""
    if stamp == 0:
        return
    at: u32 = position_of(known, key)
    if at < known.count and known.items[at].key == key:
        if known.items[at].stamp < stamp:
            known.items[at].stamp = stamp
        return
    if not reserve(known, known.count + 1):
        return
    left: u32 = known.count
    while left > at:
        known.items[left].key = known.items[left - 1].key
        known.items[left].stamp = known.items[left - 1].stamp
        left -= 1
    known.items[at].key = key
    known.items[at].stamp = stamp
    known.count += 1
    if known.count > MOST:
        coarsen(known)


@native
def tell_all(known: Pointer[Knowledge], source: Pointer[Knowledge]) -> None:
    """Add all facts of another list."""
    if source.count == 0:
        return
    if known.count > 16 * source.count:
        for index in range(source.count):
            tell(known, source.items[index].key, source.items[index].stamp)
        return
    missing: u32 = 0
    at: u32 = 0
    for index in range(source.count):
        key: u64 = source.items[index].key
        while at < known.count and known.items[at].key < key:
            at += 1
        if at < known.count and known.items[at].key == key:
            if known.items[at].stamp < source.items[index].stamp:
                known.items[at].stamp = source.items[index].stamp
        else:
            missing += 1
    if missing == 0 or not reserve(known, known.count + missing):
        return
    old: u32 = known.count
    new: u32 = source.count
    to: u32 = old + missing
    known.count = to
    while new > 0:
        if old > 0 and known.items[old - 1].key >= source.items[new - 1].key:
            if known.items[old - 1].key == source.items[new - 1].key:
                new -= 1
            else:
                to -= 1
                old -= 1
                known.items[to].key = known.items[old].key
                known.items[to].stamp = known.items[old].stamp
        else:
            to -= 1
            new -= 1
            known.items[to].key = source.items[new].key
            known.items[to].stamp = source.items[new].stamp
    if known.count > MOST:
        coarsen(known)


@native
def tell_in_doubt(known: Pointer[Knowledge], source: Pointer[Knowledge], doubt: u64) -> None:
    """Add the facts of another list that are not in this one, as facts in `doubt`."""
    for index in range(source.count):
        key: u64 = source.items[index].key
        stamp: u64 = source.items[index].stamp
        if key != EVERYONE and stamp_of(known, key) < stamp:
            tell(known, key | doubt, stamp)


@native
def tell_of_tensor_memory(known: Pointer[Knowledge], source: Pointer[Knowledge]) -> None:
    """Add those facts of another list that are on tensor memory."""
    for index in range(source.count):
        part: u32 = u32(source.items[index].key) & PART_MASK
        if part >= TENSOR_LOADS and part < TENSOR_END:
            tell(known, source.items[index].key, source.items[index].stamp)


@native
def coarsen(known: Pointer[Knowledge]) -> None:
    """Make a list that is too long shorter: it then says more than is known, so that races are missed, not invented."""
    kept: u32 = 0
    top: u64 = 0
    for index in range(known.count):
        key: u64 = known.items[index].key
        stamp: u64 = known.items[index].stamp
        if key != EVERYONE and u32(key) & PART_MASK < COPIES:
            key = key & ~u64(PART_MASK)
        if (u32(key) & PART_MASK < COPIES and key & DOUBTS == 0) or key == EVERYONE:
            top = max(top, stamp)
        if kept != 0 and known.items[kept - 1].key == key:
            known.items[kept - 1].stamp = max(known.items[kept - 1].stamp, stamp)
        else:
            known.items[kept].key = key
            known.items[kept].stamp = stamp
            kept += 1
    known.count = kept
    if kept <= MOST // 2:
        return
    kept = 0
    for index in range(known.count):
        part: u32 = u32(known.items[index].key) & PART_MASK
        if part >= COPIES and known.items[index].key != EVERYONE:
            known.items[kept].key = known.items[index].key
            known.items[kept].stamp = known.items[index].stamp
            kept += 1
    known.items[kept].key = EVERYONE
    known.items[kept].stamp = top
    known.count = kept + 1


@native(inline=True)
def stamp_of_everyone(known: Pointer[Knowledge]) -> u64:
    """Up to which stamp all threads are known."""
    if known.count != 0 and known.items[known.count - 1].key == EVERYONE:
        return known.items[known.count - 1].stamp
    return 0


@native
def forget(known: Pointer[Knowledge]) -> None:
    """Know nothing any more, and give the memory back."""
    free_items(known)
