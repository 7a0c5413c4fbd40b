"""Whether an access to tensor memory happened before what a thread starts on it now; see `tensor_order`."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tensor_memory import RECENT
from ptxlab.emulate.runtime.order.happens_before import companion, covered_lanes, is_known
from ptxlab.emulate.runtime.order.shadow import ASYNC, KIND, SIZE, SIZE_SHIFT, WARP_SHIFT
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_ISSUED, THREAD, WARP, epoch_of, key_of
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64

# What accesses tensor memory; it is kept where other accesses have their size.
OTHER = 0  # allocation
MOVE = 1  # a load or store of a warp
PRODUCT = 2
COPY_IN = 3

# Two accesses.
ORDERED = 0
WITHOUT_FENCE = 1  # only the fence is missing by which the order holds for work on tensor memory, too
UNORDERED = 2
WITHOUT_FENCE_BEFORE = 3  # only the fence is missing between the wait of the warp that made it and the synchronization


@native
def order_of(thread: Pointer[Thread], access: Pointer[Access], flags: u32) -> u32:
    """How an access is ordered with a new one."""
    if access.flags & ASYNC == 0 or flags & ASYNC == 0:
        return ORDERED if is_known(thread, access) or is_read_by_then(thread, access, flags) else UNORDERED
    own = address_of(thread.order.tensor_known)
    epoch: u64 = u64(access.epoch)
    if epoch <= epoch_of(own, key_of(u64(access.block), access.lanes)):
        return ORDERED if is_fenced_before(thread, access) else u32(WITHOUT_FENCE_BEFORE)
    if access.block == u32(thread.block.number) and is_pipelined(thread, access, flags):
        by: u32 = access.flags >> WARP_SHIFT
        issued: u64 = key_of(u64(access.block), TENSOR_ISSUED + by)
        if by == thread.number or epoch <= epoch_of(own, issued):
            return ORDERED
        known = address_of(thread.order.known)
        shared = address_of(thread.block.order.known)
        if epoch <= epoch_of(known, issued) or epoch <= epoch_of(shared, issued):
            return WITHOUT_FENCE
    return WITHOUT_FENCE if is_known(thread, access) else UNORDERED


@native
def is_fenced_before(thread: Pointer[Thread], access: Pointer[Access]) -> boolean:
    """Whether a store of another warp, which is done, came before a fence of that warp (PTX ISA 9.7.16.6.4.4).

    The manual asks for it after loads, too. Their values are in registers by then, and CUTLASS leaves it out.
    """
    warp: u32 = (access.flags >> WARP_SHIFT) // 32
    if (access.flags & SIZE) >> SIZE_SHIFT != MOVE or access.flags & KIND == LOAD:
        return True
    if access.block == u32(thread.block.number) and warp == thread.number // 32:
        return True
    first: u64 = key_of(u64(access.block), TENSOR_ISSUED + 32 * warp)
    return covered_lanes(address_of(thread.order.tensor_known), first, u64(access.epoch)) != 0


@native
def is_read_by_then(thread: Pointer[Thread], access: Pointer[Access], flags: u32) -> boolean:
    """Whether a load was complete before a barrier of the cluster that the thread has passed, and frees the memory now.

    The barrier need not be a release for that: the values are in registers by then.
    """
    home = companion(thread, access.block)
    if flags & ASYNC != 0 or access.flags & KIND != LOAD or cast(u64, home) == 0 or cast(u64, home.tensor) == 0:
        return False
    if (access.flags & SIZE) >> SIZE_SHIFT != MOVE or home.tensor.started - access.epoch >= RECENT:
        return False
    epoch: u32 = home.tensor.epochs[access.epoch % RECENT]
    reader = home.threads + (access.flags >> WARP_SHIFT) // 32 * 32
    known: u64 = epoch_of(address_of(reader.order.known), key_of(u64(access.block), access.lanes))
    if u64(access.epoch) > known or reader.arrival.arrived < epoch or thread.arrival.phase != 0:
        return False
    return reader.arrival.phase <= thread.block.cluster.phase


@native
def is_pipelined(thread: Pointer[Thread], access: Pointer[Access], flags: u32) -> boolean:
    """Whether the second of two pieces of work waits for the first by itself (PTX ISA 9.7.16.6.2).

    Of copies after products, and after copies that a product has read, the manual says nothing; that they wait is what
    CUTLASS's products with scale factors need. A product that writes over a matrix that one before it reads waits, too:
    in the attention kernels of CUTLASS and ThunderKittens new scores overwrite the probabilities of the last product.
    """
    first: u32 = (access.flags & SIZE) >> SIZE_SHIFT
    second: u32 = (flags & SIZE) >> SIZE_SHIFT
    if first == PRODUCT and second == PRODUCT and access.flags & KIND != LOAD:
        accumulators = thread.block.tensor.accumulators
        if thread.starting.number - access.epoch >= RECENT:
            return True  # not remembered
        return accumulators[access.epoch % RECENT] == accumulators[thread.starting.number % RECENT]
    return first != MOVE and second != MOVE


@native
def is_started(thread: Pointer[Thread], access: Pointer[Access]) -> boolean:
    """Whether an operation that made an access was started before what a thread does now, be it done or not."""
    home = companion(thread, access.block)
    if access.flags & ASYNC == 0 or cast(u64, home) == 0 or cast(u64, home.tensor) == 0:
        return False
    if home.tensor.started - access.epoch >= RECENT:
        return False  # not remembered
    by: u32 = access.flags >> WARP_SHIFT
    epoch: u32 = home.tensor.epochs[access.epoch % RECENT]
    if home == thread.block:
        if by == thread.number or epoch <= home.order.barrier_epoch:
            return True
        if by // 32 == thread.number // 32 and epoch <= thread.order.warp_epoch:
            return True
    return knows(thread, access, 0, epoch) or (
        knows(thread, access, WARP + by // 32, epoch) or knows(thread, access, THREAD + by, epoch)
    )


@native
def knows(thread: Pointer[Thread], access: Pointer[Access], part: u32, epoch: u32) -> boolean:
    """Whether a thread knows what a part of the block that made an access did up to a epoch."""
    key: u64 = key_of(u64(access.block), part)
    known: u64 = epoch_of(address_of(thread.order.known), key)
    return u64(epoch) <= known or u64(epoch) <= epoch_of(address_of(thread.block.order.known), key)
