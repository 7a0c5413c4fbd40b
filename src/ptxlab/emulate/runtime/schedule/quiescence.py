"""Livelock and quiescence: clusters in which every thread waits, or polls again and again what no thread changes.

After a round of all its warps a cluster has a state: what each thread does, where, with which values; what has come to
the barriers. Once nothing in memory changes any more, the same state a second time means that it comes again for ever,
in whatever order the threads run: they see of each other only what they bring to barriers and to other lanes.

The time is another matter, for it advances. Clock-dependent registers are not part of the state, and a
cluster that reads a clock gets to see later and later times, up to years, until it is believed to wait for none.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block, Cluster, Thread, Worker
from ptxlab.emulate.abi.thread_parts import AT_BARRIER, AT_CLUSTER, AT_COLLECTIVE, AT_PEER, AT_PRODUCTS, DONE
from ptxlab.native import Pointer, address_of, boolean, cast, native, u8, u32, u64

PATIENCE = 4  # rounds without a change until states are compared
TIMED_PATIENCE = 64  # where a loop reads a clock: it may be waiting for a certain time that comes often
LEAPS = 24  # in time that must make no difference
SHORT_LEAP = 1 << 28  # sixteen of them take a clock of 32 bits once around
LONG_LEAP = 33  # the binary logarithm of what the first one takes one of 64 bits ahead
SPREAD = 0x9E3779B97F4A7C15


@native
def makes_no_progress(cluster: Pointer[Cluster]) -> boolean:
    """Whether, after this round, the cluster is in a state in which it was before, with nothing changed since."""
    worker = cluster.worker
    watch = address_of(cluster.watch)
    changes: u64 = changes_of(worker)
    times: u64 = times_of(cluster)
    if changes != watch.changes:
        watch.changes = changes
        watch.quiet = 0
        watch.leaps = 0
        watch.times = times
        watch_anew(cluster)
        return False
    watch.quiet += 1
    patience: u32 = PATIENCE
    if times != watch.times and watch.leaps == 0:
        patience = TIMED_PATIENCE
    if watch.quiet < patience:
        return False
    mark: u64 = mark_of(cluster)
    if watch.age == watch.span:
        note_state(cluster, mark)
        return False
    watch.age += 1
    if mark < watch.least:
        watch.least = mark
    if mark != watch.mark:
        return False
    near: u64 = counted(worker, worker.progress.looks, worker.progress.look_count)
    if near == watch.near and times == watch.times and not has_waiters(cluster):
        return False  # it waits for nothing: a loop that only computes
    watch.is_still = 1
    watch.is_near = u32(counted(worker, worker.progress.looks, worker.progress.far_count) == watch.far)
    watch.is_timed = u32(times != watch.times)
    return True


@native
def note_state(cluster: Pointer[Cluster], mark: u64) -> None:
    """Remember the state in which the cluster is, for twice as many rounds as the last one."""
    worker = cluster.worker
    watch = address_of(cluster.watch)
    watch.span = watch.span * 2
    if watch.span == 0:
        watch.span = 1
    watch.age = 0
    watch.mark = mark
    watch.least = mark
    watch.times = times_of(cluster)
    watch.near = counted(worker, worker.progress.looks, worker.progress.look_count)
    watch.far = counted(worker, worker.progress.looks, worker.progress.far_count)
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        for index in range(block.count):
            block.threads[index].target.asked = 0
            block.threads[index].ran = 0


@native
def is_still(cluster: Pointer[Cluster]) -> boolean:
    """Whether the cluster was found to be in livelock, and nothing has changed since."""
    return cluster.watch.is_still != 0 and cluster.watch.changes == changes_of(cluster.worker)


@native
def watch_anew(cluster: Pointer[Cluster]) -> None:
    """Forget the states in which a cluster was."""
    cluster.watch.is_still = 0
    cluster.watch.age = 0
    cluster.watch.span = 0


@native
def outlasts_time(cluster: Pointer[Cluster]) -> boolean:
    """Whether a cluster in livelock has seen enough of the future without leaving its loops."""
    watch = address_of(cluster.watch)
    if watch.is_timed == 0:
        return True
    if watch.leaps != 0 and watch.cycle != watch.least:
        watch.leaps = 0
    watch.cycle = watch.least
    return watch.leaps >= LEAPS


@native
def leap(cluster: Pointer[Cluster]) -> None:
    """Let a long time pass for a cluster in livelock, and observe it again."""
    watch = address_of(cluster.watch)
    watch.leaps += 1
    watch_anew(cluster)
    cluster.worker.leapt += (u64(1) << (LONG_LEAP + watch.leaps)) + SHORT_LEAP + u64(watch.leaps) * SPREAD % 65536


@native
def changes_of(worker: Pointer[Worker]) -> u64:
    """How often memory was changed so far."""
    team = worker.together.team
    if cast(u64, team) == 0:
        return counted(worker, worker.progress.changes, worker.progress.change_count) + worker.progress.deliveries
    total: u64 = 0
    for index in range(team.count):
        grid = team.workers[index]
        total += counted(grid, grid.progress.changes, grid.progress.change_count) + grid.progress.deliveries
    return total


@native
def counted(worker: Pointer[Worker], counters: Pointer[u32], count: u32) -> u64:
    """The sum of some counters."""
    total: u64 = 0
    for index in range(count):
        total += worker.code.counters[counters[index]]
    return total


@native
def times_of(cluster: Pointer[Cluster]) -> u64:
    """How often threads of a cluster have read a clock."""
    total: u64 = 0
    for rank in range(cluster.count):
        total += cluster.blocks[rank].schedule.times
    return total


@native
def has_waiters(cluster: Pointer[Cluster]) -> boolean:
    """Whether a thread waits at a barrier or for lanes of its warp."""
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        for index in range(block.count):
            status: u32 = block.threads[index].status
            if status == AT_BARRIER or status == AT_CLUSTER:  # noqa: SIM109 - native functions know no tuples
                return True
            if status == AT_COLLECTIVE or status == AT_PRODUCTS or status >= AT_PEER:  # noqa: SIM109
                return True
    return False


@native(inline=True)
def mixed(mark: u64, word: u64) -> u64:
    found: u64 = (mark ^ word) * SPREAD
    return found ^ (found >> 29)


@native
def mark_of(cluster: Pointer[Cluster]) -> u64:
    """A mark of the state that a cluster is in: equal for equal states, and as good as never for others."""
    mark: u64 = u64(cluster.arrived) << 32 | u64(cluster.phase)
    for rank in range(cluster.count):
        mark = mark_of_block(cluster.blocks[rank], mark)
    return mark


@native
def mark_of_block(block: Pointer[Block], mark: u64) -> u64:
    """The state of one block."""
    worker = block.worker
    mark = mixed(mark, u64(block.live))
    for number in range(16):
        barrier = block.barriers.numbered + number
        mark = mixed(mark, u64(barrier.arrived) << 32 | u64(barrier.expected))
        mark = mixed(mark, u64(barrier.ones) << 2 | u64(barrier.all) << 1 | u64(barrier.any))
    for index in range(block.count):
        mark = mark_of_thread(block.threads + index, mark)
    return mark_of_words(
        cast(Pointer[u8], block.memory.exchange), u64(block.warps) * 128 * u64(worker.code.exchange_words), mark
    )


@native
def mark_of_thread(thread: Pointer[Thread], mark: u64) -> u64:
    """The state of one thread."""
    worker = thread.worker
    mark = mixed(mark, u64(thread.status) << 32 | u64(thread.resume))
    if thread.status == DONE:
        return mark
    mark = mixed(mark, cast(u64, thread.code))
    mark = mixed(mark, u64(thread.waiting.members) << 32 | u64(thread.waiting.barrier))
    mark = mixed(mark, thread.waiting.answer)
    mark = mixed(mark, u64(thread.arrival.phase))
    mark = mixed(mark, thread.memory.local_top)
    start = thread.block.memory.frames + u64(thread.number) * u64(worker.code.frame_size)
    mark = mark_of_entry(worker, cast(Pointer[u64], start), mark)
    if thread.call_depth != 0:
        rest = start + worker.progress.mark_size
        mark = mark_of_words(
            rest, beyond(rest, thread.memory.frame, worker.code.largest_frame, thread.memory.frame_limit), mark
        )
    used: u64 = min(thread.memory.local_top + u64(worker.code.largest_local), thread.memory.local_size)
    return mark_of_words(thread.memory.local, used, mark)


@native
def beyond(start: Pointer[u8], frame: Pointer[u8], size: u32, limit: Pointer[u8]) -> u64:
    """How many bytes there are from `start` to the end of a frame."""
    return min(cast(u64, frame) + u64(size), cast(u64, limit)) - cast(u64, start)


@native
def mark_of_entry(worker: Pointer[Worker], words: Pointer[u64], mark: u64) -> u64:
    """The frame of the kernel itself, without its clock-dependent registers."""
    for index in range(worker.progress.mark_size // 8):
        if worker.progress.marked[index] != 0:
            mark = mixed(mark, words[index])
    return mark


@native
def mark_of_words(start: Pointer[u8], size: u64, mark: u64) -> u64:
    """Bytes of memory, eight at a time."""
    words = cast(Pointer[u64], start)
    for index in range(size // 8):
        mark = mixed(mark, words[index])
    for index in range(size // 8 * 8, size):
        mark = mixed(mark, u64(start[index]))
    return mark
