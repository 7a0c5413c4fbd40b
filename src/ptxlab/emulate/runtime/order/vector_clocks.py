"""Vector clocks: lists of entries, each a key and the epoch up to which what it names has happened before."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import ClockEntry, VectorClock
from ptxlab.native import Growable, Pointer, boolean, cast, free_items, native, reserve, u32, u64

# A key is the number of a block, then what of it: all of it, a warp, a thread, or the copies that a thread has started.
BLOCK_SHIFT = 22
PART_MASK = (1 << BLOCK_SHIFT) - 1
WARP = 1
THREAD = 64
COPIES = 2048
MOST_THREADS = 1024

# Asynchronous operations go by the channel that reports their end: groups of a thread, of bulk copies or MMAs, or an
# mbarrier, by its offset and the rank of its block. The epoch is the number of the operation.
CHANNELS = 3072
BULK_READS = 3072  # what bulk copies of a thread read, which they report first
BULK_WRITES = 4096
PRODUCTS = 5120
WARP_COPIES = 6144  # past a fence: up to this copy of each lane of a warp
TENSOR_LOADS = 8192  # of a warp from tensor memory
TENSOR_STORES = 8192 + 32
TENSOR_WORK = 9216  # what a thread has started on tensor memory, up to what is done of it
TENSOR_ISSUED = 10240  # and up to what it had started before a fence
TENSOR_END = 11264
# What the threads of a block have started on a network: by peers, those of a thread; those of all its threads; and for
# operations with a signal, in turn one of many channels of the thread, as each hands over itself alone. A thread gets
# these when it first signals a peer; past so many of a block, its operations have no channel of their own.
NETWORK = 1 << 16
NETWORK_BLOCK = NETWORK + 20480
NETWORK_SIGNALS = 1 << 17
SIGNALS = 64
MOST_SIGNALLING = 3072
NETWORK_END = NETWORK_SIGNALS + MOST_SIGNALLING * SIGNALS
NETWORK_FENCED = 1 << 18  # added to the first two: delivered before what is started to that peer from here on
PHASES = 1 << 19
RANK_IN_CHANNEL = 15

# Added to a block, a warp or a thread: up to this epoch a fence is between what it did and asynchronous operations.
SHARED_FENCE = 1 << 20
GLOBAL_FENCE = 1 << 21
MAP_RELEASE = SHARED_FENCE | GLOBAL_FENCE  # the same of releases of tensor maps
# Added to that: the release is only for acquires in the block, or in the cluster, of the thread that released.
BLOCK_ONLY = 1 << 59
CLUSTER_ONLY = 1 << 60

# Added to any key: what is ordered only if a warp collective orders memory, or if a `cas` that fails is a write.
COLLECTIVE = 1 << 61
FAILED = 1 << 62
DOUBTS = COLLECTIVE | FAILED

EVERYONE = (1 << 64) - 1  # a key above all others: all threads of all blocks
WHOLE_GRID = 1 << 32  # with the number of a grid, in place of that of a block: all of the grid, which is complete

MOST = 2048  # entries of a clock; of more, those of the threads of a block become one of the block


@native(inline=True)
def key_of(block: u64, part: u32) -> u64:
    return block << BLOCK_SHIFT | u64(part)


@native(inline=True)
def has_room(known: Pointer[VectorClock], count: u32) -> boolean:
    """Make room for so many entries; false if there is no memory for it."""
    return reserve(cast(Pointer[Growable[ClockEntry]], known), count)


@native
def position_of(known: Pointer[VectorClock], key: u64) -> u32:
    """Where the entry of `key` is or would be."""
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
def epoch_of(known: Pointer[VectorClock], key: u64) -> u64:
    """Up to which epoch `key` is known."""
    if known.count == 0:
        return 0
    at: u32 = position_of(known, key)
    if at < known.count and known.items[at].key == key:
        return known.items[at].epoch
    return 0


@native
def advance(known: Pointer[VectorClock], key: u64, epoch: u64) -> None:
    """Advance one entry to `epoch`."""
    if epoch == 0:
        return
    at: u32 = position_of(known, key)
    if at < known.count and known.items[at].key == key:
        if known.items[at].epoch < epoch:
            known.items[at].epoch = epoch
            known.changes += 1
        return
    if not has_room(known, known.count + 1):
        return
    known.changes += 1
    left: u32 = known.count
    while left > at:
        known.items[left].key = known.items[left - 1].key
        known.items[left].epoch = known.items[left - 1].epoch
        left -= 1
    known.items[at].key = key
    known.items[at].epoch = epoch
    known.count += 1
    if known.count > MOST:
        coarsen(known)


@native
def join(known: Pointer[VectorClock], source: Pointer[VectorClock]) -> None:
    """Join another clock: each entry becomes the later of both."""
    if source.count == 0:
        return
    if known.count > 16 * source.count:
        for index in range(source.count):
            advance(known, source.items[index].key, source.items[index].epoch)
        return
    missing: u32 = 0
    at: u32 = 0
    for index in range(source.count):
        key: u64 = source.items[index].key
        while at < known.count and known.items[at].key < key:
            at += 1
        if at < known.count and known.items[at].key == key:
            if known.items[at].epoch < source.items[index].epoch:
                known.items[at].epoch = source.items[index].epoch
                known.changes += 1
        else:
            missing += 1
    if missing == 0 or not has_room(known, known.count + missing):
        return
    known.changes += 1
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
                known.items[to].epoch = known.items[old].epoch
        else:
            to -= 1
            new -= 1
            known.items[to].key = source.items[new].key
            known.items[to].epoch = source.items[new].epoch
    if known.count > MOST:
        coarsen(known)


@native
def is_equal(known: Pointer[VectorClock], source: Pointer[VectorClock]) -> boolean:
    """Whether two clocks have the same entries, so that neither has anything to join of the other."""
    if known.count != source.count:
        return False
    for index in range(known.count):
        one = known.items + index
        other = source.items + index
        if one.key != other.key or one.epoch != other.epoch:
            return False
    return True


@native
def join_in_doubt(known: Pointer[VectorClock], source: Pointer[VectorClock], doubt: u64) -> None:
    """Join the entries of another clock that are not in this one, as entries in `doubt`.

    Both are sorted, and lanes that converge often mostly know all: so this goes along both, and seldom has to search.
    """
    at: u32 = 0
    doubted: u32 = 0
    for index in range(source.count):
        key: u64 = source.items[index].key
        epoch: u64 = source.items[index].epoch
        if key == EVERYONE:
            continue
        while at < known.count and known.items[at].key < key:
            at += 1
        if at < known.count and known.items[at].key == key and known.items[at].epoch >= epoch:
            continue
        while doubted < known.count and known.items[doubted].key < key | doubt:
            doubted += 1
        if doubted < known.count and known.items[doubted].key == key | doubt:
            if known.items[doubted].epoch < epoch:
                known.items[doubted].epoch = epoch
                known.changes += 1
            continue
        before: u32 = known.count
        advance(known, key | doubt, epoch)
        if known.count < before:  # it was too long
            at = 0
            doubted = 0


@native
def join_tensor_entries(known: Pointer[VectorClock], source: Pointer[VectorClock]) -> None:
    """Join those entries of another clock that are of tensor memory."""
    for index in range(source.count):
        part: u32 = u32(source.items[index].key) & PART_MASK
        if part >= TENSOR_LOADS and part < TENSOR_END:
            advance(known, source.items[index].key, source.items[index].epoch)


@native
def coarsen(known: Pointer[VectorClock]) -> None:
    """Shorten a clock that is too long: it then covers more than it should, so that races are missed, not invented."""
    kept: u32 = 0
    top: u64 = 0
    for index in range(known.count):
        key: u64 = known.items[index].key
        epoch: u64 = known.items[index].epoch
        if key != EVERYONE and u32(key) & PART_MASK & ~u32(MAP_RELEASE) < COPIES:
            key = key & ~u64(COPIES - 1)
        if (u32(key) & PART_MASK < COPIES and key & DOUBTS == 0) or key == EVERYONE:
            top = max(top, epoch)
        if kept != 0 and known.items[kept - 1].key == key:
            known.items[kept - 1].epoch = max(known.items[kept - 1].epoch, epoch)
        else:
            known.items[kept].key = key
            known.items[kept].epoch = epoch
            kept += 1
    known.count = kept
    if kept <= MOST // 2:
        return
    kept = 0
    for index in range(known.count):
        name: u64 = known.items[index].key
        if name != EVERYONE and (u32(name) & PART_MASK >= COPIES or name >> BLOCK_SHIFT & WHOLE_GRID != 0):
            known.items[kept].key = name
            known.items[kept].epoch = known.items[index].epoch
            kept += 1
    known.items[kept].key = EVERYONE
    known.items[kept].epoch = top
    known.count = kept + 1


@native(inline=True)
def epoch_of_everyone(known: Pointer[VectorClock]) -> u64:
    """Up to which epoch all threads are known."""
    if known.count != 0 and known.items[known.count - 1].key == EVERYONE:
        return known.items[known.count - 1].epoch
    return 0


@native
def exchange_clocks(one: Pointer[VectorClock], other: Pointer[VectorClock]) -> None:
    """Have each of two clocks be the other."""
    items = one.items
    count: u32 = one.count
    capacity: u32 = one.capacity
    changes: u64 = one.changes
    one.items = other.items
    one.count = other.count
    one.capacity = other.capacity
    one.changes = other.changes
    other.items = items
    other.count = count
    other.capacity = capacity
    other.changes = changes


@native
def forget(known: Pointer[VectorClock]) -> None:
    """Empty a clock, and free its memory."""
    free_items(cast(Pointer[Growable[ClockEntry]], known))
    known.changes += 1
