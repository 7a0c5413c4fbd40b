"""The two ways to memory, or proxies: that of threads and that of asynchronous operations (PTX ISA 8.3).

What a thread writes reaches asynchronous operations only by `fence.proxy.async`, by the thread that wrote or by one
that is between it and the operation. Such a fence doubles the clock of its thread: as entries past a fence. They go
from thread to thread as all entries do. The end of an asynchronous operation is a fence of that kind for what it wrote,
but not of `cp.async`, `st.async` and `red.async`, which write by the generic proxy: as threads do, only later.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import GLOBAL_SPACE, LOAD
from ptxlab.emulate.abi.clocks import WITH_COPIES, Access, VectorClock
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.devices import comes_after_grid
from ptxlab.emulate.runtime.order.happens_before import are_covered, is_heard_of
from ptxlab.emulate.runtime.order.release_acquire import join_block, join_warp
from ptxlab.emulate.runtime.order.shadow import AFTER_READS, ANY_PROXY, ASYNC, COPY, GENERIC, KIND, WARP_SHIFT
from ptxlab.emulate.runtime.order.vector_clocks import (
    COPIES,
    EVERYONE,
    GLOBAL_FENCE,
    PART_MASK,
    SHARED_FENCE,
    THREAD,
    advance,
    epoch_of,
    epoch_of_everyone,
    join,
    key_of,
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
    for index in range(known.count):
        key: u64 = known.items[index].key
        if u32(key) & PART_MASK < COPIES and key != EVERYONE:
            advance(fenced, key + u64(fence), known.items[index].epoch)


@native
def fence_copies(thread: Pointer[Thread]) -> None:
    """Add to the clock of a thread that copies which it knows to be done are past a fence of shared memory."""
    fenced = address_of(thread.worker.history.scratch)
    fenced.count = 0
    add_fenced_copies(fenced, address_of(thread.order.known))
    add_fenced_copies(fenced, address_of(thread.block.order.known))
    own: u64 = key_of(thread.block.number, SHARED_FENCE + COPIES + thread.number)
    advance(fenced, own, u64(thread.copies.done))
    cluster = thread.block.cluster
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        if block == thread.block or is_heard_of(thread, block.number):
            for index in range(block.count):
                key: u64 = key_of(block.number, SHARED_FENCE + COPIES + index)
                if u64(block.threads[index].copies.shared) > epoch_of(address_of(thread.block.order.known), key):
                    advance(fenced, key, u64(block.threads[index].copies.shared))
    join(address_of(thread.order.known), fenced)


@native
def add_fenced_copies(fenced: Pointer[VectorClock], known: Pointer[VectorClock]) -> None:
    """Add the entries of asynchronous operations that a clock has, as entries past a fence."""
    for index in range(known.count):
        key: u64 = known.items[index].key
        part: u32 = u32(key) & PART_MASK
        if part >= COPIES and part < SHARED_FENCE:
            advance(fenced, key + SHARED_FENCE, known.items[index].epoch)


@native
def is_copy_fenced(thread: Pointer[Thread], access: Pointer[Access], doubt: u64) -> boolean:
    """Whether asynchronous work sees what a copy wrote: it does, unless the copy went through the generic proxy."""
    part: u32 = access.lanes
    if access.flags & ASYNC == 0:
        part = COPIES + (access.flags >> WARP_SHIFT) * 32 + trailing_zeros(u32, access.lanes)
    elif access.flags & GENERIC == 0:
        return True
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
