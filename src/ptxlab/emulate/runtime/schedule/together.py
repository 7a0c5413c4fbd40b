"""Lanes that execute a kernel together, as many at a time as it is translated for; see `translate.lanes`."""

from __future__ import annotations

from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import DONE, READY
from ptxlab.emulate.runtime.order.devices import end_in_team
from ptxlab.emulate.runtime.order.synchronization import order_exit
from ptxlab.emulate.runtime.schedule.barrier import release_everyone
from ptxlab.emulate.runtime.schedule.block_end import end_block
from ptxlab.emulate.runtime.schedule.cluster_barrier import leave_cluster
from ptxlab.native import Pointer, atomic_load, boolean, call, count_ones, native, u32

PASSES = 1024  # over the lanes of a warp, each from barrier to barrier, until others have a turn

assert READY == 0


@native
def run_together(block: Pointer[Block], base: u32, lanes: u32) -> boolean:
    """Run lanes of a warp that are at one point of the kernel, as long as they are; whether all have exited."""
    done: u32 = 0
    passes: u32 = 0
    ran = True
    while ran and passes < PASSES and atomic_load(block.worker.stop) == 0:
        ran = False
        done = 0
        passes += 1
        for group in range(lanes // GROUP):
            thread = block.threads + (base + group * GROUP)
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
    group: u32 = 0
    is_quick = True
    while is_quick and group < block.count // GROUP:
        live: u32 = block.live
        call(None, block.worker.code.lanes, block.threads + group * GROUP)
        is_quick = live - block.live == GROUP and block.worker.fault.kind == 0
        group += 1
        if not is_quick or (block.live != 0 and atomic_load(block.worker.stop) != 0):
            is_quick = False
            block.is_quick = 0
            block.is_fresh = 0
            for index in range(group * GROUP):
                if block.threads[index].status == READY:
                    block.threads[index].status = DONE


@native
def are_at_one_point(thread: Pointer[Thread]) -> boolean:
    """Whether all lanes from `thread` on are ready and continue at the same point, in one epoch."""
    different: u32 = 0
    for lane in range(GROUP):
        different = different | thread[lane].status | (thread[lane].resume ^ thread.resume)
        different = different | (thread[lane].order.epoch ^ thread.order.epoch)
    return different == 0


@native
def lanes_done(thread: Pointer[Thread]) -> u32:
    """How many lanes from `thread` on have exited."""
    done: u32 = 0
    for lane in range(GROUP):
        done += u32(thread[lane].status == DONE)
    return done


@native
def exit_together(thread: Pointer[Thread], lanes: u32) -> None:
    """End some of the lanes from `thread` on, a bit for each; see `thread_exit`."""
    block = thread.block
    if block.is_quick == 0:
        for lane in range(GROUP):
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


CALLED = (exit_together,)
