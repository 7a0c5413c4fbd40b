"""Lanes that execute a kernel together, as many at a time as it is translated for; see `translate.lanes`."""

from __future__ import annotations

from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import DONE, READY
from ptxlab.emulate.runtime.order.devices import end_in_team
from ptxlab.emulate.runtime.schedule.barrier import release_everyone
from ptxlab.emulate.runtime.schedule.block_end import end_block
from ptxlab.emulate.runtime.schedule.cluster_barrier import leave_cluster
from ptxlab.native import Pointer, boolean, call, count_ones, native, u32

EVERY = (1 << GROUP) - 1  # lanes

assert READY == 0


@native
def run_together(block: Pointer[Block], base: u32, lanes: u32) -> boolean:
    """Run those lanes of a warp that are at the start of the kernel; whether all lanes have exited."""
    first: u32 = base
    all_done = True
    while first + GROUP <= base + lanes:
        ready: u32 = 0
        done: u32 = 0
        for index in range(first, first + GROUP):
            thread = block.threads + index
            ready += u32(thread.status | thread.resume == 0)
            done += u32(thread.status == DONE)
        if ready == GROUP:
            before: u32 = block.live
            call(None, block.worker.code.lanes, block.threads + first)
            if block.worker.fault.kind != 0:
                return False
            done = before - block.live
        all_done = all_done and done == GROUP
        first += GROUP
    return all_done and first == base + lanes


@native
def exit_together(thread: Pointer[Thread], lanes: u32) -> None:
    """End some of the lanes from `thread` on, a bit for each; see `thread_exit`."""
    block = thread.block
    if lanes == EVERY:
        for lane in range(GROUP):
            thread[lane].status = DONE
    else:
        for lane in range(GROUP):
            if lanes >> lane & 1 != 0:
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
