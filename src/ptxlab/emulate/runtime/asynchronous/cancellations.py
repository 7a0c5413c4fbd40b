"""`clusterlaunchcontrol.try_cancel`: a cluster takes over the work of one that has not started, which then never does.

The answer comes as bulk copies do, through the async proxy: who has read one passes a proxy fence before the next is
written there (PTX ISA 9.7.13.17, the example). Without a seed there is a cluster as long as one is left; with a seed,
some have started by then.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import SHARED_SPACE, STORE, Hint
from ptxlab.emulate.abi.bulk import AsyncStore
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.asynchronous.async_stores import send_value
from ptxlab.emulate.runtime.asynchronous.mbarriers import is_barrier, target_of
from ptxlab.emulate.runtime.memory.memory import find_memory
from ptxlab.emulate.runtime.order.shadow import AFTER_READS
from ptxlab.emulate.runtime.schedule.clusters import block_of, take_clusters, take_number
from ptxlab.emulate.runtime.schedule.random import next_random
from ptxlab.native import Pointer, atomic_add, cast, native, u32, u64

ANSWER = 16  # bytes; see `isa.chapters.cluster`
SELDOM = 4  # with a seed, one of that many has started


@native
def start_cancel(thread: Pointer[Thread], destination: u64, barrier: u64, everyone: u32, instruction: u32) -> None:
    """Ask for a cluster that has not started; the answer goes to the thread's block or to `everyone` of the cluster."""
    nowhere = cast(Pointer[Hint], 0)
    found = find_memory(thread, destination, ANSWER, ANSWER, SHARED_SPACE, STORE, instruction, nowhere)
    if cast(u64, found) == 0 or cast(u64, target_of(thread, destination, barrier, SHARED_SPACE, instruction)) == 0:
        return
    worker = thread.worker
    block = thread.block
    answer = AsyncStore(destination=destination, barrier=barrier, low=0, high=0, size=ANSWER, reduction=0, type=0)
    if (worker.seed == 0 or next_random(block) % SELDOM != 0) and take_clusters(worker):
        first: u64 = block_of(worker, take_number(worker), 0)
        row: u64 = first // u64(worker.shape.grid.x)
        answer.low = first % u64(worker.shape.grid.x) | row % u64(worker.shape.grid.y) << 32
        answer.high = row // u64(worker.shape.grid.y) | 1 << 32
        atomic_add(worker.clusters.finished, u64(worker.shape.cluster_size))
    for rank in range(block.cluster.count):
        to = block.cluster.blocks[rank]
        if (to == block or everyone != 0) and is_barrier(thread, to, barrier, instruction):
            send_value(thread, to, answer, STORE | AFTER_READS, instruction)


CALLED = (start_cancel,)
