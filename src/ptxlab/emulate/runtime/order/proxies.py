"""The two ways to memory, or proxies: that of threads and that of asynchronous work (PTX ISA 8.3).

What a thread writes reaches asynchronous work only through `fence.proxy.async`, by the thread that wrote or by whoever
comes between it and the work. Such a fence doubles what its thread knows: as facts that stand behind a fence. They go
from thread to thread as all facts do. The end of asynchronous work is a fence of that kind for what it wrote.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import GLOBAL_SPACE, LOAD
from ptxlab.emulate.abi.clocks import Access, Knowledge
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.happens_before import are_told
from ptxlab.emulate.runtime.order.release_acquire import tell_of_block, tell_of_warp
from ptxlab.emulate.runtime.order.shadow import ANY_PROXY, COPY, KIND
from ptxlab.emulate.runtime.order.vector_clocks import (
    COPIES,
    EVERYONE,
    GLOBAL_FENCE,
    PART_MASK,
    SHARED_FENCE,
    THREAD,
    key_of,
    stamp_of_everyone,
    tell,
    tell_all,
)
from ptxlab.native import Pointer, address_of, boolean, native, u32, u64


@native
def pass_proxy_fence(thread: Pointer[Thread], shared: u32, wide: u32) -> None:
    """A thread passes a fence between what is done to shared or to global memory and asynchronous work."""
    if thread.worker.checks == 0:
        return
    if shared != 0:
        fence_all(thread, SHARED_FENCE)
    if wide != 0:
        fence_all(thread, GLOBAL_FENCE)
    thread.order.stamp += 1


@native
def fence_all(thread: Pointer[Thread], fence: u32) -> None:
    """Add to what a thread knows that a fence stands behind all of it."""
    block = thread.block
    fenced = address_of(thread.worker.history.scratch)
    fenced.count = 0
    add_fenced(fenced, address_of(thread.order.known), fence)
    add_fenced(fenced, address_of(block.order.known), fence)
    tell_of_block(fenced, block, fence)
    tell_of_warp(fenced, thread, fence)
    tell(fenced, key_of(block.number, fence + THREAD + thread.number), u64(thread.order.stamp))
    tell_all(address_of(thread.order.known), fenced)


@native
def add_fenced(fenced: Pointer[Knowledge], known: Pointer[Knowledge], fence: u32) -> None:
    """Add the facts on threads that a list has, as facts behind a fence."""
    for index in range(known.count):
        key: u64 = known.items[index].key
        if u32(key) & PART_MASK < COPIES and key != EVERYONE:
            tell(fenced, key + u64(fence), known.items[index].stamp)


@native
def is_fenced(thread: Pointer[Thread], access: Pointer[Access], space: u32, doubt: u64) -> boolean:
    """Whether asynchronous work that a thread begins now sees an access that happened before, perhaps in `doubt`.

    Reads are over, and what asynchronous work wrote it sees; of `cp.async` nothing is known.
    """
    if access.about & KIND == LOAD or access.about & (COPY | ANY_PROXY) != 0:
        return True
    if (
        stamp_of_everyone(address_of(thread.order.known)) != 0
        or stamp_of_everyone(address_of(thread.block.order.known)) != 0
    ):
        return True
    return are_told(thread, access, u64(GLOBAL_FENCE if space == GLOBAL_SPACE else SHARED_FENCE) | doubt)


CALLED = (pass_proxy_fence,)
