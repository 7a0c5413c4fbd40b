"""Schedules that the host directs: which of the threads that are at a preemption point passes it next.

A step is what a thread does from one point to the next. Between steps every thread that lives is at a point, or waits
for others. Asynchronous work completes when no thread can take a step.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block, Cluster, Thread, Worker
from ptxlab.emulate.abi.thread_parts import ACTIVE, AT_COLLECTIVE, AT_PHASE, AT_PRODUCTS, AT_REGISTERS, READY, YIELDED
from ptxlab.emulate.runtime.asynchronous.mbarriers import has_completed
from ptxlab.emulate.runtime.asynchronous.wgmma import have_finished
from ptxlab.emulate.runtime.schedule.cluster_barrier import live_in
from ptxlab.emulate.runtime.schedule.clusters import end_cluster, take_clusters
from ptxlab.emulate.runtime.schedule.grid import begin_next, drop_resident, leave_residents, report_stop
from ptxlab.emulate.runtime.schedule.quiescence import mark_of_thread
from ptxlab.emulate.runtime.schedule.registers import gets_registers
from ptxlab.emulate.runtime.schedule.schedule import (
    allow,
    converge,
    deliver_copies,
    deliver_work,
    report_hang,
    run_thread,
)
from ptxlab.emulate.runtime.schedule.steps import DELIVER, log, number_of
from ptxlab.emulate.runtime.schedule.teams import leader_of, tick
from ptxlab.native import Pointer, atomic_load, atomic_store, boolean, call, cast, native, u32, u64

AT_POINT = 1  # the rank of a thread that is there
NO_THREAD = 0xFFFFFFFE  # the host chooses no thread: all of those at a point poll what does not change
GIVE_UP = 0xFFFFFFFF  # the host has seen enough


@native
def run_directed(worker: Pointer[Worker]) -> None:
    """Run all clusters together, one step of a thread after the other."""
    start_clusters(worker)
    while atomic_load(worker.stop) == 0:
        settle(worker)
        if worker.fault.kind != 0 or atomic_load(worker.stop) != 0:
            break
        if drop_ended(worker) and start_clusters(worker):
            continue
        left: u32 = first_alive(worker)
        if left == worker.clusters.waiting:
            break
        chosen: u32 = NO_THREAD
        if worker.directed.at_points != 0:
            chosen = call(u32, worker.directed.choose)
        if chosen == GIVE_UP:
            break
        if chosen == NO_THREAD:
            if not deliver(worker):
                explain_points(worker)
                report_hang(worker.clusters.residents[left])
        else:
            take_step(worker, chosen)
    worker.directed.has_ended = u32(first_alive(worker) == worker.clusters.waiting)
    if worker.fault.kind != 0:
        report_stop(worker, broken_of(worker))
    atomic_store(worker.stop, 1)
    if cast(u64, worker.together.team) == 0:  # of a team, all are explained
        leave_residents(worker)


@native
def start_clusters(worker: Pointer[Worker]) -> boolean:
    """Start all clusters that may start; false if there is none."""
    started = False
    while take_clusters(worker):
        cluster = begin_next(worker, cast(Pointer[Cluster], 0))
        if cast(u64, cluster) == 0:
            break
        worker.clusters.residents[worker.clusters.waiting] = cluster
        worker.clusters.waiting += 1
        started = True
    return started


@native
def drop_ended(worker: Pointer[Worker]) -> boolean:
    """Give back the clusters of a team that have ended: others may start now."""
    if cast(u64, worker.together.team) == 0:
        return False
    position: u32 = 0
    dropped = False
    while position < worker.clusters.waiting:
        cluster = worker.clusters.residents[position]
        if live_in(cluster) == 0:
            drop_resident(worker, position)
            end_cluster(cluster)
            dropped = True
        else:
            position += 1
    return dropped


@native
def first_alive(worker: Pointer[Worker]) -> u32:
    """The position of the first cluster that has not ended."""
    for position in range(worker.clusters.waiting):
        if live_in(worker.clusters.residents[position]) != 0:
            return position
    return worker.clusters.waiting


@native
def broken_of(worker: Pointer[Worker]) -> Pointer[Cluster]:
    """The cluster in which a fault was found."""
    for position in range(worker.clusters.waiting):
        cluster = worker.clusters.residents[position]
        for rank in range(cluster.count):
            if cluster.blocks[rank].number == worker.fault.block:
                return cluster
    return worker.clusters.residents[0]


@native
def take_step(worker: Pointer[Worker], chosen: u32) -> None:
    """Let a thread at a point continue."""
    for position in range(worker.clusters.waiting):
        cluster = worker.clusters.residents[position]
        for rank in range(cluster.count):
            block = cluster.blocks[rank]
            first: u32 = number_of(block.threads)
            if chosen >= first and chosen - first < block.count:
                thread = block.threads + (chosen - first)
                thread.rank = 0
                worker.directed.states[chosen] = 0
                worker.directed.at_points -= 1
                run_to_point(thread)


@native
def settle(worker: Pointer[Worker]) -> None:
    """Run all threads that are not at a point until they are, or wait."""
    ran = True
    while ran and worker.fault.kind == 0 and atomic_load(worker.stop) == 0:
        ran = False
        for position in range(worker.clusters.waiting):
            cluster = worker.clusters.residents[position]
            for rank in range(cluster.count):
                block = cluster.blocks[rank]
                for warp in range(block.warps):
                    if worker.fault.kind == 0 and settle_warp(block, warp):
                        ran = True


@native
def settle_warp(block: Pointer[Block], warp: u32) -> boolean:
    """Run the lanes of a warp that are not at a point, and let those converge that wait for each other."""
    base: u32 = 32 * warp
    lanes: u32 = min(block.count - base, 32)
    ran = False
    can_converge = False
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.status == AT_PHASE:  # a wait is a test here: the thread polls
            thread.waiting.answer = u64(has_completed(thread))
            thread.status = READY
        elif (thread.status == AT_PRODUCTS and have_finished(thread)) or (
            thread.status == AT_REGISTERS and gets_registers(thread)
        ):
            thread.status = READY
        if thread.status == READY and thread.rank == 0:
            run_to_point(thread)
            ran = True
        if block.worker.fault.kind != 0:
            return ran
        can_converge = can_converge or thread.status == AT_COLLECTIVE or thread.status == ACTIVE
    return (can_converge and converge(block, base, lanes)) or ran


@native
def run_to_point(thread: Pointer[Thread]) -> None:
    """Run a thread until it is at a point, or waits."""
    worker = leader_of(thread.worker)
    thread.preemption.at_point = 0
    allow(thread, 0, 1, worker.turns.quantum)
    tick(worker)
    run_thread(thread)
    if thread.status == YIELDED:
        thread.status = READY
        if thread.preemption.at_point != 0:
            number: u32 = number_of(thread)
            thread.rank = AT_POINT
            worker.directed.states[number] = AT_POINT
            worker.directed.marks[number] = mark_of_thread(thread, 0)
            worker.directed.at_points += 1


@native
def deliver(worker: Pointer[Worker]) -> boolean:
    """Let an asynchronous operation complete; false if there is none."""
    for position in range(worker.clusters.waiting):
        cluster = worker.clusters.residents[position]
        if deliver_copies(cluster) or deliver_work(cluster):
            log(worker, 0, DELIVER, 0, 0, 0)
            return True
    return False


@native
def explain_points(worker: Pointer[Worker]) -> None:
    """Mark threads at points as polling, for the report of a hang."""
    for position in range(worker.clusters.waiting):
        cluster = worker.clusters.residents[position]
        cluster.watch.is_still = 1
        for rank in range(cluster.count):
            block = cluster.blocks[rank]
            for index in range(block.count):
                if block.threads[index].rank == AT_POINT:
                    block.threads[index].ran = 1
