"""The two ways to memory, or proxies: that of threads and that of asynchronous operations (PTX ISA 8.3).

What a thread writes reaches asynchronous operations only by `fence.proxy.async`, by the thread that wrote or by one
that is between it and the operation. Such a fence doubles the clock of its thread: as entries past a fence. They go
from thread to thread as all entries do. The end of an asynchronous operation is a fence of that kind for what it wrote,
but not of `cp.async`, `st.async` and `red.async`, which write by the generic proxy: as threads do, only later.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import GLOBAL_SPACE, LOAD
from ptxlab.emulate.abi.clocks import WITH_COPIES, Access, VectorClock
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.runtime.order.devices import comes_after_grid
from ptxlab.emulate.runtime.order.happens_before import are_covered, is_heard_of
from ptxlab.emulate.runtime.order.release_acquire import join_block, join_warp
from ptxlab.emulate.runtime.order.shadow import AFTER_READS, ANY_PROXY, ASYNC, COPY, GENERIC, KIND, WARP_SHIFT
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    COPIES,
    EVERYONE,
    GLOBAL_FENCE,
    PART_MASK,
    SHARED_FENCE,
    THREAD,
    WARP_COPIES,
    advance,
    epoch_of,
    epoch_of_everyone,
    join,
    key_of,
    position_of,
)
from ptxlab.native import Pointer, address_of, boolean, native, trailing_zeros, u32, u64


@native
def pass_proxy_fence(thread: Pointer[Thread], shared: u32, wide: u32) -> None:
    """A thread passes a fence between its accesses to shared or global memory and asynchronous operations."""
    if thread.worker.checks == 0:
        return
    if shared != 0:
        fence_all(thread, SHARED_FENCE, 0)
    if shared & WITH_COPIES != 0:
        fence_copies(thread)
    if wide != 0:
        fence_all(thread, GLOBAL_FENCE, 0)
    thread.order.epoch += 1


@native
def fence_all(thread: Pointer[Thread], fence: u32, narrow: u64) -> None:
    """Add to the clock of a thread that all of it is past a fence, of a `narrow` scope if that is not 0."""
    block = thread.block
    fenced = address_of(thread.worker.history.scratch)
    fenced.count = 0
    add_fenced(fenced, address_of(thread.order.known), fence)
    add_fenced(fenced, address_of(block.order.known), fence)
    join_block(fenced, block, fence)
    join_warp(fenced, thread, fence)
    advance(fenced, key_of(block.number, fence + THREAD + thread.number), u64(thread.order.epoch))
    for index in range(fenced.count):
        fenced.items[index].key = fenced.items[index].key | narrow
    join(address_of(thread.order.known), fenced)


@native
def add_fenced(fenced: Pointer[VectorClock], known: Pointer[VectorClock], fence: u32) -> None:
    """Add the entries of threads that a clock has, as entries past a fence."""
    index: u32 = 0
    while index < known.count:
        key: u64 = known.items[index].key
        if u32(key) & PART_MASK < COPIES:
            advance(fenced, key + u64(fence), known.items[index].epoch)
        index = following(known, index)


@native
def fence_copies(thread: Pointer[Thread]) -> None:
    """Add to the clock of a thread that copies which it knows to be done are past a fence of shared memory."""
    fenced = address_of(thread.worker.history.scratch)
    fenced.count = 0
    add_fenced_copies(fenced, address_of(thread.order.known))
    add_fenced_copies(fenced, address_of(thread.block.order.known))
    if thread.copies.done > thread.copies.shared:
        own: u64 = key_of(thread.block.number, SHARED_FENCE + COPIES + thread.number)
        advance(fenced, own, u64(thread.copies.done))
    cluster = thread.block.cluster
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        if block == thread.block or is_heard_of(thread, block.number):
            for warp in range(block.warps):
                fence_shared_copies(fenced, address_of(thread.block.order.known), block, warp)
    join(address_of(thread.order.known), fenced)


@native
def fence_shared_copies(
    fenced: Pointer[VectorClock], known: Pointer[VectorClock], block: Pointer[Block], warp: u32
) -> None:
    """Add that the copies of a warp which its block knows to be done are past a fence, where that is not `known`.

    Lanes mostly copy alike: one entry is for all of them, up to what the least of them has copied.
    """
    first: u32 = 32 * warp
    last: u32 = min(first + 32, block.count)
    least: u32 = block.threads[first].copies.shared
    most: u32 = least
    for index in range(first, last):
        least = min(least, block.threads[index].copies.shared)
        most = max(most, block.threads[index].copies.shared)
    key: u64 = key_of(block.number, SHARED_FENCE + WARP_COPIES + warp)
    if u64(least) > epoch_of(known, key):
        advance(fenced, key, u64(least))
    if most == least:
        return
    for index in range(first, last):
        own: u64 = key_of(block.number, SHARED_FENCE + COPIES + index)
        shared: u32 = block.threads[index].copies.shared
        if shared > least and u64(shared) > epoch_of(known, own):
            advance(fenced, own, u64(shared))


@native
def add_fenced_copies(fenced: Pointer[VectorClock], known: Pointer[VectorClock]) -> None:
    """Add the entries of asynchronous operations that a clock has, as entries past a fence."""
    index: u32 = 0
    while index < known.count:
        key: u64 = known.items[index].key
        part: u32 = u32(key) & PART_MASK
        if part >= COPIES and part < SHARED_FENCE:
            advance(fenced, key + SHARED_FENCE, known.items[index].epoch)
        index = following(known, index)


@native(inline=True)
def following(known: Pointer[VectorClock], index: u32) -> u32:
    """The next entry; after one past a fence, that is of the next block: of each block, entries past a fence are last.

    Mostly there are many of these, an entry for each thread.
    """
    key: u64 = known.items[index].key
    if u32(key) & PART_MASK < SHARED_FENCE:
        return index + 1
    return known.count if key == EVERYONE else position_of(known, ((key >> BLOCK_SHIFT) + 1) << BLOCK_SHIFT)


@native
def is_copy_fenced(thread: Pointer[Thread], access: Pointer[Access], doubt: u64) -> boolean:
    """Whether asynchronous work sees what a copy wrote: it does, unless the copy went through the generic proxy."""
    part: u32 = access.lanes
    if access.flags & ASYNC == 0:
        warp: u32 = access.flags >> WARP_SHIFT
        if is_past_fence(thread, access, WARP_COPIES + warp, doubt):
            return True
        part = COPIES + warp * 32 + trailing_zeros(u32, access.lanes)
    elif access.flags & GENERIC == 0:
        return True
    return is_past_fence(thread, access, part, doubt)


@native
def is_past_fence(thread: Pointer[Thread], access: Pointer[Access], part: u32, doubt: u64) -> boolean:
    """Whether an entry of a part of an access's block says that a fence comes after the access."""
    key: u64 = key_of(u64(access.block), SHARED_FENCE + part) | doubt
    epoch: u64 = u64(access.epoch)
    return epoch <= epoch_of(address_of(thread.order.known), key) or epoch <= epoch_of(
        address_of(thread.block.order.known), key
    )


@native
def is_fenced(thread: Pointer[Thread], access: Pointer[Access], flags: u32, space: u32, doubt: u64) -> boolean:
    """Whether asynchronous work that a thread starts now sees an access that happened before, perhaps in `doubt`.

    Reads are over, unless its `flags` say otherwise, and what asynchronous work wrote by its own proxy it sees.
    """
    if (access.flags & KIND == LOAD and flags & AFTER_READS == 0) or access.flags & ANY_PROXY != 0:
        return True
    if comes_after_grid(thread, access.block):
        return True
    if access.flags & COPY != 0:
        return is_copy_fenced(thread, access, doubt)
    if (
        epoch_of_everyone(address_of(thread.order.known)) != 0
        or epoch_of_everyone(address_of(thread.block.order.known)) != 0
    ):
        return True
    return are_covered(thread, access, u64(GLOBAL_FENCE if space == GLOBAL_SPACE else SHARED_FENCE) | doubt)


CALLED = (pass_proxy_fence,)
