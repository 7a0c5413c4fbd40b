"""What the barrier of a cluster puts in order: everything before the arrivals that release, before what follows waits.

Where all threads of a block wait there together, one number says that each knows what all of them did, as at a barrier
of the block; one clock entry gives that to the other blocks. Otherwise there is an entry for the block, up to what all
of its threads handed over, and more for warps and threads that handed over more.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import VectorClock
from ptxlab.emulate.abi.state import Block, Cluster, Thread
from ptxlab.emulate.abi.thread_parts import AT_CLUSTER, DONE
from ptxlab.emulate.runtime.order.release_acquire import join_block
from ptxlab.emulate.runtime.order.synchronization import order_block
from ptxlab.emulate.runtime.order.vector_clocks import COPIES, THREAD, WARP, advance, join, key_of
from ptxlab.native import Pointer, address_of, boolean, native, u32, u64

MANY = 0xFFFFFFFF


@native
def order_cluster_arrival(thread: Pointer[Thread], releases: u32) -> None:
    """A thread has come to the barrier of its cluster; without a release it hands over what is before a fence."""
    if thread.worker.checks == 0:
        return
    if releases != 0:
        thread.arrival.released = thread.order.epoch
    else:
        thread.arrival.released = max(thread.order.fence.cluster, thread.order.init_fence)
        thread.arrival.arrived = thread.order.epoch
        thread.arrival.relaxed_at = thread.arrival.instruction
    if thread.arrival.released != 0:
        gathered = address_of(thread.block.cluster.gathered)
        join(gathered, address_of(thread.order.known))
        advance(gathered, key_of(thread.block.number, COPIES + thread.number), u64(thread.copies.done))
    thread.order.epoch += 1


@native
def order_cluster(cluster: Pointer[Cluster], last: Pointer[Thread]) -> None:
    """The barrier has been completed, by what the thread `last` did."""
    if cluster.worker.checks == 0:
        return
    gathered = address_of(cluster.gathered)
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        if are_together(block, last):
            order_block(block)
            block.order.phase = cluster.phase
            join_block(gathered, block, 0)
        else:
            join_arrivals(block, gathered)
        join(gathered, address_of(block.order.known))
    cluster.known.count = 0
    join(address_of(cluster.known), gathered)
    gathered.count = 0
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        if block.order.phase == cluster.phase:
            join(address_of(block.order.known), address_of(cluster.known))


@native
def are_together(block: Pointer[Block], last: Pointer[Thread]) -> boolean:
    """Whether all threads of a block have handed over all they did, and done nothing since."""
    for index in range(block.count):
        thread = block.threads + index
        if thread.status == DONE:
            continue
        if thread.status != AT_CLUSTER and thread != last:
            return False
        if thread.arrival.released + 1 != thread.order.epoch:
            return False
    return True


@native
def join_arrivals(block: Pointer[Block], known: Pointer[VectorClock]) -> None:
    """Add what the threads of a block handed over."""
    least: u32 = MANY
    for index in range(block.count):
        least = min(least, handed_over(block.threads + index))
    advance(known, key_of(block.number, 0), u64(least))
    for warp in range(block.warps):
        last: u32 = min(32 * warp + 32, block.count)
        least_of_warp: u32 = MANY
        for index in range(32 * warp, last):
            least_of_warp = min(least_of_warp, handed_over(block.threads + index))
        if least_of_warp > least:
            advance(known, key_of(block.number, WARP + warp), u64(least_of_warp))
        for index in range(32 * warp, last):
            epoch: u32 = handed_over(block.threads + index)
            if epoch > least_of_warp:
                advance(known, key_of(block.number, THREAD + index), u64(epoch))


@native(inline=True)
def handed_over(thread: Pointer[Thread]) -> u32:
    """Up to which epoch a thread has handed over what it did; exiting hands nothing over."""
    return max(thread.arrival.released, thread.order.exit_epoch) if thread.status == DONE else thread.arrival.released


@native
def acquire_from_cluster(thread: Pointer[Thread]) -> None:
    """A thread has waited at the barrier of its cluster: it knows what the threads that arrived did before."""
    block = thread.block
    if thread.worker.checks != 0 and block.order.phase != block.cluster.phase:
        join(address_of(thread.order.known), address_of(block.cluster.known))


@native
def pass_init_fence(thread: Pointer[Thread]) -> None:
    """A thread passes `fence.mbarrier_init`: others of the cluster may use mbarriers that it has initialized."""
    if thread.worker.checks != 0:
        thread.order.init_fence = thread.order.epoch
        thread.order.epoch += 1


CALLED = (pass_init_fence,)
