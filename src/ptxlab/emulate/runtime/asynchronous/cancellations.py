"""`clusterlaunchcontrol.try_cancel`: a cluster takes over the work of one that has not begun, which then never does.

The answer comes as bulk copies do. Without a seed there is a cluster as long as one is left; with a seed, some have
begun by then.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import NO_MEMORY, SHARED_SPACE, STORE, Block, Hint, Thread
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work, note_signal
from ptxlab.emulate.runtime.asynchronous.bulk_copies import next_transfer
from ptxlab.emulate.runtime.asynchronous.bulk_issue import target_of
from ptxlab.emulate.runtime.asynchronous.mbarriers import is_barrier
from ptxlab.emulate.runtime.memory.memory import fail, find_memory
from ptxlab.emulate.runtime.order.synchronization import channel_of
from ptxlab.emulate.runtime.schedule.clusters import block_of, take_clusters, take_number
from ptxlab.emulate.runtime.schedule.random import next_random
from ptxlab.native import Pointer, atomic_add, calloc, cast, native, u8, u32, u64

ANSWER = 16  # bytes; see `isa.cluster`
SELDOM = 4  # with a seed, one of that many has begun


@native
def start_cancel(thread: Pointer[Thread], destination: u64, barrier: u64, everyone: u32, instruction: u32) -> None:
    """Ask for a cluster that has not begun; the answer goes to the own block, or to `everyone` of the cluster."""
    nowhere = cast(Pointer[Hint], 0)
    place = find_memory(thread, destination, ANSWER, ANSWER, SHARED_SPACE, STORE, instruction, nowhere)
    if cast(u64, place) == 0 or cast(u64, target_of(thread, destination, barrier, SHARED_SPACE, instruction)) == 0:
        return
    worker = thread.worker
    block = thread.block
    low: u64 = 0
    high: u64 = 0
    if (worker.seed == 0 or next_random(block) % SELDOM != 0) and take_clusters(worker):
        first: u64 = block_of(worker, take_number(worker), 0)
        row: u64 = first // u64(worker.grid_x)
        low = first % u64(worker.grid_x) | row % u64(worker.grid_y) << 32
        high = row // u64(worker.grid_y) | 1 << 32
        atomic_add(worker.finished, u64(worker.cluster_size))
    for rank in range(block.cluster.count):
        to = block.cluster.blocks[rank]
        if (to == block or everyone != 0) and is_barrier(thread, to, barrier, instruction):
            send_answer(thread, to, destination, barrier, low, high, instruction)


@native
def send_answer(
    thread: Pointer[Thread],
    to: Pointer[Block],
    destination: u64,
    barrier: u64,
    low: u64,
    high: u64,
    instruction: u32,
) -> None:
    """Send an answer on its way to a block."""
    transfer = next_transfer(thread, instruction)
    if cast(u64, transfer) == 0:
        return
    data = cast(Pointer[u64], calloc(2, 8))
    if cast(u64, data) == 0:
        fail(thread, NO_MEMORY, instruction, 0)
        transfer.size = 0
        return
    data[0] = low
    data[1] = high
    transfer.data = cast(Pointer[u8], data)
    transfer.destination = destination
    transfer.size = ANSWER
    transfer.to = to
    transfer.barrier = barrier
    channel: u32 = channel_of(to, barrier)
    note_signal(thread, to, barrier, channel, transfer.number, instruction)
    note_shared_work(thread, to, destination, ANSWER, STORE, channel, transfer.number, instruction)
