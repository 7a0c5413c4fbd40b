"""The two ways to memory, or proxies: that of threads and that of asynchronous operations (PTX ISA 8.3).

What a thread writes reaches asynchronous operations only by `fence.proxy.async`, by the thread that wrote or by one
that is between it and the operation. Such a fence doubles the clock of its thread: as entries past a fence. They go
from thread to thread as all entries do. The end of an asynchronous operation is a fence of that kind for what it wrote.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import GLOBAL_SPACE, LOAD
from ptxlab.emulate.abi.clocks import Access, VectorClock
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.happens_before import are_covered
from ptxlab.emulate.runtime.order.release_acquire import join_block, join_warp
from ptxlab.emulate.runtime.order.shadow import AFTER_READS, ANY_PROXY, COPY, KIND
from ptxlab.emulate.runtime.order.vector_clocks import (
    COPIES,
    EVERYONE,
    GLOBAL_FENCE,
    PART_MASK,
    SHARED_FENCE,
    THREAD,
    advance,
    epoch_of_everyone,
    join,
    key_of,
)
from ptxlab.native import Pointer, address_of, boolean, native, u32, u64


@native
def pass_proxy_fence(thread: Pointer[Thread], shared: u32, wide: u32) -> None:
    """A thread passes a fence between its accesses to shared or global memory and asynchronous operations."""
    if thread.worker.checks == 0:
        return
    if shared != 0:
        fence_all(thread, SHARED_FENCE)
    if wide != 0:
        fence_all(thread, GLOBAL_FENCE)
    thread.order.epoch += 1


@native
def fence_all(thread: Pointer[Thread], fence: u32) -> None:
    """Add to the clock of a thread that all of it is past a fence."""
    block = thread.block
    fenced = address_of(thread.worker.history.scratch)
    fenced.count = 0
    add_fenced(fenced, address_of(thread.order.known), fence)
    add_fenced(fenced, address_of(block.order.known), fence)
    join_block(fenced, block, fence)
    join_warp(fenced, thread, fence)
    advance(fenced, key_of(block.number, fence + THREAD + thread.number), u64(thread.order.epoch))
    join(address_of(thread.order.known), fenced)


@native
def add_fenced(fenced: Pointer[VectorClock], known: Pointer[VectorClock], fence: u32) -> None:
    """Add the entries of threads that a clock has, as entries past a fence."""
    for index in range(known.count):
        key: u64 = known.items[index].key
        if u32(key) & PART_MASK < COPIES and key != EVERYONE:
            advance(fenced, key + u64(fence), known.items[index].epoch)


@native
def is_fenced(thread: Pointer[Thread], access: Pointer[Access], flags: u32, space: u32, doubt: u64) -> boolean:
    """Whether asynchronous work that a thread starts now sees an access that happened before, perhaps in `doubt`.

    Reads are over, unless its `flags` say otherwise, and what asynchronous work wrote it sees; of `cp.async` nothing is
    known.
    """
    if (access.flags & KIND == LOAD and flags & AFTER_READS == 0) or access.flags & (COPY | ANY_PROXY) != 0:
        return True
    if (
        epoch_of_everyone(address_of(thread.order.known)) != 0
        or epoch_of_everyone(address_of(thread.block.order.known)) != 0
    ):
        return True
    return are_covered(thread, access, u64(GLOBAL_FENCE if space == GLOBAL_SPACE else SHARED_FENCE) | doubt)


CALLED = (pass_proxy_fence,)
