"""The sixteen barriers of a block: `barrier.sync`, `barrier.arrive`, `barrier.red`."""

from __future__ import annotations

from ptxlab.device.trace_format import AT_BARRIER as ARRIVED_AT
from ptxlab.device.trace_format import OPENED
from ptxlab.emulate.abi.barriers import ALIGNED as ALIGNED
from ptxlab.emulate.abi.barriers import WAITS
from ptxlab.emulate.abi.faults import BAD_BARRIER, BARRIER_COUNT, BARRIER_DIVERGENCE, BarrierReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import AT_BARRIER, READY
from ptxlab.emulate.runtime.memory.memory import fail, fail_because, fail_with
from ptxlab.emulate.runtime.memory.recording import is_recording, record_event
from ptxlab.emulate.runtime.order.synchronization import order_arrival, order_barrier
from ptxlab.emulate.runtime.schedule.steps import ARRIVE, OPEN, is_logged, log_barrier
from ptxlab.native import Pointer, boolean, native, trailing_zeros, u32, u64


@native
def arrive_at_barrier(
    thread: Pointer[Thread], number: u32, count: u32, waits: u32, value: u32, instruction: u32
) -> None:
    """Arrive at a barrier; with the first bit of `waits`, stay until it completes, with the second as a whole warp."""
    block = thread.block
    if number > 15:
        fail_because(thread, BAD_BARRIER, BarrierReason.NO_SUCH_BARRIER, instruction, u64(number))
        return
    if count % 32 != 0:
        fail(thread, BARRIER_COUNT, instruction, u64(count))
        return
    barrier = block.barriers.numbered + number
    if barrier.arrived == 0:
        barrier.expected = count
        barrier.everyone = u32(count == 0)
        barrier.all = 1
        barrier.any = 0
        barrier.ones = 0
        barrier.instruction = instruction
        block.barriers.used = block.barriers.used | u32(1) << number
    elif barrier.expected != count:
        fail_with(thread, BARRIER_COUNT, instruction, u64(count), u64(barrier.expected))
        return
    if waits & ALIGNED != 0 and not is_beside_its_warp(thread, number, instruction):
        fail(thread, BARRIER_DIVERGENCE, instruction, u64(number))
        return
    barrier.arrived += 1
    barrier.ones += value
    barrier.any = barrier.any | value
    barrier.all = barrier.all & value
    thread.waiting.barrier = number
    if waits & WAITS != 0:
        barrier.waiting += 1
        thread.status = AT_BARRIER
    else:
        thread.waiting.passed = instruction + 1
        if thread.worker.checks != 0:
            order_arrival(thread, number)
    thread.waiting.instruction = instruction
    if is_recording(thread):
        record_event(thread, ARRIVED_AT, block.number, 0, count, number, barrier.arrived, instruction)
    if is_logged(thread.worker):
        how: u32 = u32(count == 0 or count == block.count) | (waits & WAITS) << 1
        log_barrier(thread, ARRIVE, block.number << 8 | u64(number), how)
    complete_if_full(block, number)


@native
def is_beside_its_warp(thread: Pointer[Thread], number: u32, instruction: u32) -> boolean:
    """Whether lanes of the warp that wait at this barrier already do so at the same instruction; one represents all.

    A lane that waits at a later instruction has passed this one, which lets others wait and not itself.
    """
    block = thread.block
    first: u32 = thread.number // 32 * 32
    for index in range(first, min(first + 32, block.count)):
        other = block.threads + index
        if other.status == AT_BARRIER and other.waiting.barrier == number:
            return other.waiting.instruction == instruction or other.waiting.passed == instruction + 1
    return True


@native
def complete_if_full(block: Pointer[Block], number: u32) -> None:
    """Open a barrier at which all have arrived that it waits for."""
    barrier = block.barriers.numbered + number
    if barrier.arrived == 0:
        return
    expected: u32 = barrier.expected
    if barrier.everyone != 0:
        expected = block.live
    if barrier.arrived < expected:
        return
    order_barrier(block, number)
    if is_recording(block.threads):
        record_event(block.threads, OPENED, block.number, 0, barrier.arrived, number, 0, barrier.instruction)
    if is_logged(block.worker):
        log_barrier(block.threads, OPEN, block.number << 8 | u64(number), 0)
    for index in range(block.count):
        thread = block.threads + index
        if thread.status == AT_BARRIER and thread.waiting.barrier == number:
            thread.waiting.answer = u64(barrier.ones) << 2 | u64(barrier.all) << 1 | u64(barrier.any)
            thread.status = READY
    barrier.arrived = 0
    barrier.waiting = 0
    block.schedule.moves += 1


@native
def release_everyone(block: Pointer[Block]) -> None:
    """Check the barriers again that wait for all threads, one of which has just exited."""
    left: u32 = block.barriers.used
    while left != 0:
        number: u32 = trailing_zeros(u32, left)
        if block.barriers.numbered[number].everyone != 0:
            complete_if_full(block, number)
        left = left & (left - 1)


CALLED = (arrive_at_barrier,)
