"""Whether an access happened before what a thread does now."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Access, VectorClock
from ptxlab.emulate.abi.network import Network
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import DONE
from ptxlab.emulate.runtime.order.devices import comes_after_grid
from ptxlab.emulate.runtime.order.shadow import ASYNC, COPY, WARP_SHIFT
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    COLLECTIVE,
    COPIES,
    DOUBTS,
    FAILED,
    MOST_THREADS,
    NETWORK,
    NETWORK_BLOCK,
    NETWORK_END,
    NETWORK_SIGNALS,
    SIGNALS,
    THREAD,
    WARP,
    epoch_of,
    epoch_of_everyone,
    key_of,
    position_of,
)
from ptxlab.native import Pointer, address_of, boolean, cast, native, trailing_zeros, u32, u64, unlikely

# Where the accesses of a thread were ordered before it exited: in its block, its warp, or there if collectives do that.
IN_BLOCK = 0
IN_WARP = 1
IN_DOUBT = 2


@native
def companion(thread: Pointer[Thread], number: u32) -> Pointer[Block]:
    """The block of that number, if it belongs to the cluster of a thread; null otherwise."""
    cluster = thread.block.cluster
    for rank in range(cluster.count):
        if u32(cluster.blocks[rank].number) == number:
            return cluster.blocks[rank]
    return cast(Pointer[Block], 0)


@native(inline=True)
def is_known(thread: Pointer[Thread], access: Pointer[Access]) -> boolean:
    """Whether an access happened before what a thread does now."""
    block = thread.block
    if access.block == u32(block.number) and access.flags & COPY == 0:
        if access.epoch <= block.order.settled_epoch:
            return True
        if access.flags >> WARP_SHIFT == thread.number // 32:
            if access.lanes == u32(1) << thread.lane:
                return True
            if access.epoch <= thread.order.warp_epoch and not has_left(block, access, IN_WARP):
                return True
        if (
            unlikely(block.order.barrier_epoch != block.order.settled_epoch)
            and access.epoch <= block.order.barrier_epoch
        ):
            return not has_left(block, access, IN_BLOCK) or is_covered(thread, access, 0)
    return is_covered(thread, access, 0)


@native
def doubt_of(thread: Pointer[Thread], access: Pointer[Access]) -> u64:
    """In what doubt an access happened before what a thread does now; 0: it did not at all."""
    if access.block == u32(thread.block.number) and access.flags & COPY == 0:
        is_near: boolean = access.flags >> WARP_SHIFT == thread.number // 32
        if is_near and access.epoch <= thread.order.converged_epoch and not has_left(thread.block, access, IN_DOUBT):
            return COLLECTIVE
    if is_covered(thread, access, COLLECTIVE):
        return COLLECTIVE
    if is_covered(thread, access, FAILED):
        return FAILED
    return DOUBTS if is_covered(thread, access, DOUBTS) else u64(0)


@native(inline=True)
def has_left(block: Pointer[Block], access: Pointer[Access], where: u32) -> boolean:
    """Whether a lane that made an access has exited without ordering it, in its block or its warp.

    A barrier does not wait for threads that have exited, and orders nothing that they did.
    """
    return block.live != block.count and has_left_since(block, access, where)


@native
def has_left_since(block: Pointer[Block], access: Pointer[Access], where: u32) -> boolean:
    lanes: u32 = access.lanes
    while lanes != 0:
        owner = block.threads + ((access.flags >> WARP_SHIFT) * 32 + trailing_zeros(u32, lanes))
        ordered: u32 = owner.order.converged_epoch
        if where != IN_DOUBT:
            ordered = owner.order.exit_epoch if where == IN_BLOCK else owner.order.warp_epoch
        if owner.status == DONE and access.epoch > ordered:
            return True
        lanes = lanes & (lanes - 1)
    return False


@native
def is_covered(thread: Pointer[Thread], access: Pointer[Access], doubt: u64) -> boolean:
    """Whether clock entries, or those in `doubt`, cover an access, for all lanes that made it."""
    lanes: u32 = access.lanes
    is_sent: boolean = access.flags & ASYNC != 0 and lanes >= NETWORK and lanes < NETWORK_END
    if not is_sent and comes_after_grid(thread, access.block):  # which completes nothing that its threads have sent
        return True
    block = thread.block
    warp: u32 = access.flags >> WARP_SHIFT
    number: u64 = u64(access.block)
    epoch: u64 = u64(access.epoch)
    known = address_of(thread.order.known)
    shared = address_of(block.order.known)
    if access.flags & ASYNC != 0:
        channel: u64 = key_of(number, lanes) | doubt
        if epoch <= epoch_of(known, channel) or epoch <= epoch_of(shared, channel):
            return True
        return is_sent and is_delivered(thread, number, lanes, epoch, doubt)
    if access.flags & COPY != 0:
        home = companion(thread, access.block)
        owner = home.threads + (warp * 32 + trailing_zeros(u32, lanes))
        if access.epoch <= owner.copies.shared and (home == block or is_heard_of(thread, number)):
            return True
        if owner == thread and access.epoch <= thread.copies.done:
            return True
        copies: u64 = key_of(number, COPIES + owner.number) | doubt
        return epoch <= epoch_of(known, copies) or epoch <= epoch_of(shared, copies)
    if known.count == 0 and shared.count == 0:
        return False
    if epoch <= epoch_of_everyone(known) or epoch <= epoch_of_everyone(shared):
        return True
    return are_covered(thread, access, doubt)


@native
def is_delivered(thread: Pointer[Thread], number: u64, channel: u32, epoch: u64, doubt: u64) -> boolean:
    """Whether a thread knows an operation of the network to be complete by an entry of more than its channel."""
    known = address_of(thread.order.known)
    shared = address_of(thread.block.order.known)
    own: u32 = channel
    if channel >= NETWORK_SIGNALS:
        own = NETWORK + signalling_on(thread, number, (channel - NETWORK_SIGNALS) // SIGNALS)
        key: u64 = key_of(number, own) | doubt
        if epoch <= epoch_of(known, key) or epoch <= epoch_of(shared, key):
            return True
    whole: u64 = key_of(number, NETWORK_BLOCK + (own - NETWORK) // MOST_THREADS) | doubt
    return epoch <= epoch_of(known, whole) or epoch <= epoch_of(shared, whole)


@native
def signalling_on(thread: Pointer[Thread], number: u64, position: u32) -> u32:
    """The thread, by its peer, that has channels of a block for operations with a signal."""
    network = cast(Pointer[Network], thread.worker.together.team.network)
    for index in range(network.blocks.count):
        if network.blocks.items[index].block == number:
            return network.blocks.items[index].signalling.items[position].number
    return 0


@native
def is_heard_of(thread: Pointer[Thread], number: u64) -> boolean:
    """Whether a thread knows what threads of another block did up to some time."""
    return covers(address_of(thread.order.known), number) or covers(address_of(thread.block.order.known), number)


@native
def covers(known: Pointer[VectorClock], number: u64) -> boolean:
    """Whether a clock entry is of a block."""
    at: u32 = position_of(known, key_of(number, 0))
    return at < known.count and known.items[at].key >> BLOCK_SHIFT == number


@native
def are_covered(thread: Pointer[Thread], access: Pointer[Access], how: u64) -> boolean:
    """Whether clock entries, or those past a fence or in doubt (`how`), cover an access by lanes of a warp."""
    known = address_of(thread.order.known)
    shared = address_of(thread.block.order.known)
    number: u64 = u64(access.block)
    epoch: u64 = u64(access.epoch)
    warp: u32 = access.flags >> WARP_SHIFT
    first: u32 = THREAD + warp * 32 + trailing_zeros(u32, access.lanes)
    is_alone: boolean = access.flags & COPY == 0 and access.lanes & (access.lanes - 1) == 0
    if is_alone and access.lanes != 0 and epoch <= epoch_of(shared, key_of(number, first) + how):
        return True  # as most often after a fence and a barrier
    key: u64 = key_of(number, 0) + how
    if epoch <= epoch_of(known, key) or epoch <= epoch_of(shared, key):
        return True
    key = key_of(number, WARP + warp) + how
    if epoch <= epoch_of(known, key) or epoch <= epoch_of(shared, key):
        return True
    return uncovered_lanes(thread, access, how) == 0


@native
def uncovered_lanes(thread: Pointer[Thread], access: Pointer[Access], how: u64) -> u32:
    """The lanes that made an access which no clock entry of a thread covers, or none past a fence or in doubt."""
    warp: u32 = access.flags >> WARP_SHIFT
    lanes: u32 = access.lanes
    if access.flags & COPY != 0:
        return lanes
    if how == 0 and access.block == u32(thread.block.number) and warp == thread.number // 32:
        lanes = lanes & ~(u32(1) << thread.lane)
    first: u64 = key_of(u64(access.block), THREAD + warp * 32) + how
    if lanes & (lanes - 1) == 0 and lanes != 0:
        only: u64 = first + u64(trailing_zeros(u32, lanes))
        epoch: u64 = u64(access.epoch)
        is_own: boolean = epoch <= epoch_of(address_of(thread.order.known), only)
        return 0 if is_own or epoch <= epoch_of(address_of(thread.block.order.known), only) else lanes
    lanes = lanes & ~covered_lanes(address_of(thread.order.known), first, u64(access.epoch))
    return lanes & ~covered_lanes(address_of(thread.block.order.known), first, u64(access.epoch))


@native
def covered_lanes(known: Pointer[VectorClock], first: u64, epoch: u64) -> u32:
    """The lanes of a warp, of which `first` is the key of the first, that are known up to a epoch."""
    lanes: u32 = 0
    at: u32 = position_of(known, first)
    while at < known.count and known.items[at].key < first + 32:
        if known.items[at].epoch >= epoch:
            lanes = lanes | (u32(1) << u32(known.items[at].key - first))
        at += 1
    return lanes
