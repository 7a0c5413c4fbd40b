"""Whether an access to tensor memory happened before what a thread begins on it now; see `tensor_order`."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tensor_memory import RECENT
from ptxlab.emulate.runtime.order.happens_before import companion, is_known
from ptxlab.emulate.runtime.order.shadow import ASYNC, SIZE, SIZE_SHIFT, WARP_SHIFT
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_ISSUED, THREAD, WARP, key_of, stamp_of
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64

# What accesses tensor memory; it stands where other accesses have their size.
OTHER = 0  # allocation
MOVE = 1  # a load or store of a warp
PRODUCT = 2
COPY_IN = 3

# Two accesses.
ORDERED = 0
WITHOUT_FENCE = 1  # only the fence is missing by which the order holds for work on tensor memory, too
UNORDERED = 2


@native
def order_of(thread: Pointer[Thread], access: Pointer[Access], about: u32) -> u32:
    """How an access stands to a new one."""
    if access.about & ASYNC == 0 or about & ASYNC == 0:
        return ORDERED if is_known(thread, access) else UNORDERED
    own = address_of(thread.order.tensor_known)
    stamp: u64 = u64(access.stamp)
    if stamp <= stamp_of(own, key_of(u64(access.block), access.lanes)):
        return ORDERED
    if access.block == u32(thread.block.number) and is_pipelined(thread, access, about):
        by: u32 = access.about >> WARP_SHIFT
        issued: u64 = key_of(u64(access.block), TENSOR_ISSUED + by)
        if by == thread.number or stamp <= stamp_of(own, issued):
            return ORDERED
        known = address_of(thread.order.known)
        shared = address_of(thread.block.order.known)
        if stamp <= stamp_of(known, issued) or stamp <= stamp_of(shared, issued):
            return WITHOUT_FENCE
    return WITHOUT_FENCE if is_known(thread, access) else UNORDERED


@native
def is_pipelined(thread: Pointer[Thread], access: Pointer[Access], about: u32) -> boolean:
    """Whether the second of two pieces of work waits for the first by itself (PTX ISA 9.7.16.6.2).

    Of copies after products, and after copies that a product has read, the manual says nothing; that they wait is what
    CUTLASS's products with scale factors need.
    """
    first: u32 = (access.about & SIZE) >> SIZE_SHIFT
    second: u32 = (about & SIZE) >> SIZE_SHIFT
    if first == PRODUCT and second == PRODUCT:
        accumulators = thread.block.tensor.accumulators
        if thread.starting.number - access.stamp >= RECENT:
            return True  # not remembered
        return accumulators[access.stamp % RECENT] == accumulators[thread.starting.number % RECENT]
    return first != MOVE and second != MOVE


@native
def is_started(thread: Pointer[Thread], access: Pointer[Access]) -> boolean:
    """Whether an operation that made an access was started before what a thread does now, be it done or not."""
    home = companion(thread, access.block)
    if access.about & ASYNC == 0 or cast(u64, home) == 0 or cast(u64, home.tensor) == 0:
        return False
    if home.tensor.begun - access.stamp >= RECENT:
        return False  # not remembered
    by: u32 = access.about >> WARP_SHIFT
    stamp: u32 = home.tensor.stamps[access.stamp % RECENT]
    if home == thread.block:
        if by == thread.number or stamp <= home.order.barrier_stamp:
            return True
        if by // 32 == thread.number // 32 and stamp <= thread.order.warp_stamp:
            return True
    return knows(thread, access, 0, stamp) or (
        knows(thread, access, WARP + by // 32, stamp) or knows(thread, access, THREAD + by, stamp)
    )


@native
def knows(thread: Pointer[Thread], access: Pointer[Access], part: u32, stamp: u32) -> boolean:
    """Whether a thread knows what a part of the block that made an access did up to a stamp."""
    key: u64 = key_of(u64(access.block), part)
    known: u64 = stamp_of(address_of(thread.order.known), key)
    return u64(stamp) <= known or u64(stamp) <= stamp_of(address_of(thread.block.order.known), key)
