"""The barrier of a cluster: `barrier.cluster.arrive`, and `barrier.cluster.wait`, which ignores exited threads."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import BAD_BARRIER, BARRIER_DIVERGENCE, BarrierReason
from ptxlab.emulate.abi.state import Cluster, Thread
from ptxlab.emulate.abi.thread_parts import AT_CLUSTER, DONE, READY
from ptxlab.emulate.runtime.memory.memory import fail, fail_because
from ptxlab.emulate.runtime.order.cluster_order import acquire_from_cluster, order_cluster, order_cluster_arrival
from ptxlab.emulate.runtime.schedule.barrier import ALIGNED
from ptxlab.emulate.runtime.schedule.steps import ARRIVE, CLUSTER_BARRIER, EVERYONE, OPEN, WAIT, is_logged, log_barrier
from ptxlab.native import Pointer, boolean, native, u32, u64


@native
def arrive_at_cluster(thread: Pointer[Thread], how: u32, releases: u32, instruction: u32) -> None:
    """Arrive at the barrier of the cluster; what the thread did before is handed over if it `releases`."""
    cluster = thread.block.cluster
    if thread.arrival.phase != 0:
        fail_because(thread, BAD_BARRIER, BarrierReason.ARRIVED_TWICE, instruction, 0)
        return
    if how & ALIGNED != 0 and not is_beside_its_warp(thread, instruction):
        fail(thread, BARRIER_DIVERGENCE, instruction, 0)
        return
    thread.arrival.phase = cluster.phase + 1
    thread.arrival.instruction = instruction
    thread.block.schedule.moves += 1
    cluster.arrived += 1
    order_cluster_arrival(thread, releases)
    if is_logged(thread.worker):
        log_barrier(thread, ARRIVE, u64(CLUSTER_BARRIER) | cluster.blocks[0].number, EVERYONE)
    complete_if_full(cluster, thread)


@native
def is_beside_its_warp(thread: Pointer[Thread], instruction: u32) -> boolean:
    """Whether lanes of the warp that have arrived in this phase did so at the same instruction; one represents all.

    A lane that has arrived in the phase before, and did not wait yet, is late and not elsewhere.
    """
    block = thread.block
    first: u32 = thread.number // 32 * 32
    last: u32 = min(first + 32, block.count)
    for index in range(first, last):
        other = block.threads + index
        if other.arrival.phase > block.cluster.phase and other.status != DONE:
            return other.arrival.instruction == instruction
    return True


@native
def wait_at_cluster(thread: Pointer[Thread], how: u32, instruction: u32) -> None:
    """Wait until all threads of the cluster have arrived."""
    cluster = thread.block.cluster
    if thread.arrival.phase == 0:
        fail_because(thread, BAD_BARRIER, BarrierReason.NEVER_ARRIVED, instruction, 0)
        return
    thread.waiting.instruction = instruction
    is_open = u32(cluster.phase >= thread.arrival.phase)
    if is_logged(thread.worker):
        log_barrier(thread, WAIT, u64(CLUSTER_BARRIER) | cluster.blocks[0].number, is_open)
    if is_open != 0:
        thread.arrival.phase = 0
        acquire_from_cluster(thread)
    else:
        thread.status = AT_CLUSTER


@native
def live_in(cluster: Pointer[Cluster]) -> u32:
    """The threads that have not exited."""
    total: u32 = 0
    for rank in range(cluster.count):
        total += cluster.blocks[rank].live
    return total


@native
def complete_if_full(cluster: Pointer[Cluster], last: Pointer[Thread]) -> None:
    """Open the barrier if, now that the thread `last` has arrived or exited, all have come that it waits for."""
    if cluster.arrived == 0 or cluster.arrived < live_in(cluster):
        return
    cluster.arrived = 0
    cluster.phase += 1
    order_cluster(cluster, last)
    if is_logged(last.worker):
        log_barrier(last, OPEN, u64(CLUSTER_BARRIER) | cluster.blocks[0].number, 0)
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        block.schedule.moves += 1
        for index in range(block.count):
            thread = block.threads + index
            if thread.status == AT_CLUSTER:
                thread.arrival.phase = 0
                thread.status = READY
                acquire_from_cluster(thread)


@native
def leave_cluster(thread: Pointer[Thread]) -> None:
    """Check the barrier of a cluster again, one of whose threads has just exited."""
    cluster = thread.block.cluster
    if thread.arrival.phase > cluster.phase:
        cluster.arrived -= 1
    complete_if_full(cluster, thread)


CALLED = (
    arrive_at_cluster,
    wait_at_cluster,
)
