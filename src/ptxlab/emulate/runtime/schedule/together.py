"""Lanes that execute a kernel together, as many at a time as it is translated for; see `translate.lanes`."""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import DONE, READY
from ptxlab.emulate.runtime.order.devices import end_in_team
from ptxlab.emulate.runtime.order.synchronization import order_exit, order_lanes
from ptxlab.emulate.runtime.order.vector_clocks import COLLECTIVE
from ptxlab.emulate.runtime.schedule.barrier import release_everyone
from ptxlab.emulate.runtime.schedule.block_end import end_block
from ptxlab.emulate.runtime.schedule.cluster_barrier import leave_cluster
from ptxlab.native import Pointer, atomic_load, boolean, call, count_ones, native, u32, u64

PASSES = 1024  # over the lanes of a warp, each from barrier to barrier, until others have a turn

assert READY == 0


@native
def run_together(block: Pointer[Block], base: u32, lanes: u32) -> boolean:
    """Run lanes of a warp that are at one point of the kernel, as long as they are; whether all have exited."""
    size: u32 = block.worker.code.group
    done: u32 = 0
    passes: u32 = 0
    ran = True
    while ran and passes < PASSES and atomic_load(block.worker.stop) == 0:
        ran = False
        done = 0
        passes += 1
        for group in range(lanes // size):
            thread = block.threads + (base + group * size)
            if are_at_one_point(thread):
                before: u32 = thread.resume
                live: u32 = block.live
                call(None, block.worker.code.lanes, thread)
                if block.worker.fault.kind != 0:
                    return False
                done += live - block.live
                ran = ran or thread.resume != before or thread.status != READY
            else:
                done += lanes_done(thread)
        if done == lanes:
            return True
    return False


@native
def run_quickly(block: Pointer[Block]) -> None:
    """Run all lanes of a block from the start to the end; if some continue as threads, all have their own status."""
    size: u32 = block.worker.code.group
    group: u32 = 0
    is_quick = True
    while is_quick and group < block.count // size:
        live: u32 = block.live
        call(None, block.worker.code.lanes, block.threads + group * size)
        is_quick = live - block.live == size and block.worker.fault.kind == 0
        group += 1
        if not is_quick or (block.live != 0 and atomic_load(block.worker.stop) != 0):
            is_quick = False
            block.is_quick = 0
            block.is_fresh = 0
            for index in range(group * size):
                if block.threads[index].status == READY:
                    block.threads[index].status = DONE


@native
def are_at_one_point(thread: Pointer[Thread]) -> boolean:
    """Whether all lanes from `thread` on are ready and continue at the same point, in one epoch."""
    different: u32 = 0
    for lane in range(thread.worker.code.group):
        different = different | thread[lane].status | (thread[lane].resume ^ thread.resume)
        different = different | (thread[lane].order.epoch ^ thread.order.epoch)
    return different == 0


@native
def lanes_done(thread: Pointer[Thread]) -> u32:
    """How many lanes from `thread` on have exited."""
    done: u32 = 0
    for lane in range(thread.worker.code.group):
        done += u32(thread[lane].status == DONE)
    return done


@native
def exit_together(thread: Pointer[Thread], lanes: u32) -> None:
    """End some of the lanes from `thread` on, a bit for each; see `thread_exit`."""
    block = thread.block
    if block.is_quick == 0:
        for lane in range(thread.worker.code.group):
            if lanes >> lane & 1 != 0:
                order_exit(thread + lane)
                thread[lane].status = DONE
    block.live -= count_ones(lanes)
    block.schedule.moves += 1
    if block.barriers.used != 0:
        release_everyone(block)
    if block.live == 0:
        end_block(thread)
        end_in_team(block)
    if block.cluster.arrived != 0:
        leave_cluster(thread)


@native
def order_warp(thread: Pointer[Thread], orders: u32) -> None:
    """All lanes of a warp, from `thread` on, have converged; see `perform`."""
    order_lanes(thread.block, thread.number, 0xFFFFFFFF, u64(0) if orders != 0 else u64(COLLECTIVE))


CALLED = (exit_together, order_warp)
