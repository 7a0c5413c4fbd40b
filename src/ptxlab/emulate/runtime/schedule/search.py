"""Schedules with a seed: a search for an order of events in which a kernel fails.

Threads are preempted at points, before accesses that others can observe; see `emulate.preemption`. A seed chooses one
of two policies.

- A random walk: after a random number of points, any thread that can run continues.
- Priorities, as in "A randomized scheduler with probabilistic guarantees of finding bugs" (Burckhardt and others,
  ASPLOS 2010): the first thread, in a random order, that can run does so until it waits. At `depth - 1` points, chosen
  at random before, the running thread gets the lowest priority. So does one that may be polling: others must run then.

While nothing in memory changes, threads run in the order of their numbers, as without a seed: what each of them does
next does not depend on the order then, and states recur, by which `stillness` knows a hang. The first change ends that.
"""

from __future__ import annotations

from ptxlab.device.coverage import DEPTHS, MAGNITUDES
from ptxlab.emulate.abi.state import Block, Cluster, Search, Thread, Worker
from ptxlab.emulate.abi.thread_parts import (
    ACTIVE,
    AT_COLLECTIVE,
    AT_PHASE,
    AT_PRODUCTS,
    AT_REGISTERS,
    DONE,
    READY,
    YIELDED,
)
from ptxlab.emulate.runtime.asynchronous.mbarriers import has_completed
from ptxlab.emulate.runtime.asynchronous.wgmma import have_finished
from ptxlab.emulate.runtime.schedule.cluster_barrier import live_in
from ptxlab.emulate.runtime.schedule.clusters import end_cluster, first_number, take_clusters
from ptxlab.emulate.runtime.schedule.grid import (
    begin_next,
    drop_resident,
    end_grid,
    has_to_leave,
    note_stuck,
    report_stop,
    visit_residents,
)
from ptxlab.emulate.runtime.schedule.quiescence import changes_of
from ptxlab.emulate.runtime.schedule.random import chance, scrambled
from ptxlab.emulate.runtime.schedule.registers import gets_registers
from ptxlab.emulate.runtime.schedule.schedule import (
    BROKEN,
    FINISHED,
    SPINNING,
    STILL,
    STOPPED,
    allow,
    converge,
    moves_of,
    run_thread,
)
from ptxlab.emulate.runtime.schedule.teams import tick
from ptxlab.native import Pointer, address_of, atomic_load, cast, native, u32, u64, unlikely

WALK = 1
PRIORITIES = 2
NO_LIMIT = 0xFFFFFFFF
NEVER = 1 << 62  # a point that never comes; the rank of no thread
MIDDLE = 1 << 32  # ranks are above it or below
SLICES = 8  # a walk passes less than 1, 2, 4, … points at a time, up to one of so many
FEWEST = 2  # of those, for threads that were put last
NEAR = 8  # of so many turns, all but one go to the warp that had the last one, if it can run
WINDOWS = 64  # of turns, in which memory changes and no cluster ends, until more clusters start
SELDOM = 16  # of so many questions whether a phase is over, one is answered by "no" before others run


@native
def run_search(worker: Pointer[Worker]) -> None:
    """Run clusters, as `run_grid` does, by a schedule that a seed chooses."""
    search = address_of(worker.search)
    spare = cast(Pointer[Cluster], 0)
    is_stuck = False
    while atomic_load(worker.stop) == 0:
        before: u32 = worker.clusters.waiting
        while worker.clusters.waiting < worker.clusters.capacity and take_clusters(worker):
            cluster = begin_next(worker, spare)
            if cast(u64, cluster) == 0:
                break
            spare = cast(Pointer[Cluster], 0)
            worker.clusters.residents[worker.clusters.waiting] = cluster
            worker.clusters.waiting += 1
            begin_search(worker, cluster)
        if worker.clusters.waiting == 0 or worker.fault.kind != 0:
            break
        moved = worker.clusters.waiting != before
        still: u32 = 0
        if search.is_quiet == 0:
            outcome: u32 = run_freely(worker)
            if outcome == FINISHED:
                cluster = worker.clusters.residents[search.cursor]
                drop_resident(worker, search.cursor)
                moved = True
                if cast(u64, spare) == 0:
                    spare = cluster
                else:
                    end_cluster(cluster)
            elif outcome == SPINNING:
                have_more(worker)
            elif outcome != STILL:
                report_stop(worker, worker.clusters.residents[search.cursor])
                break
        else:
            before = worker.clusters.waiting
            still = visit_residents(worker)
            moved = moved or worker.clusters.waiting != before
            if search.is_quiet != 0 and worker.turns.most_rounds != NO_LIMIT:
                have_more(worker)
        if worker.clusters.waiting == 0:
            end_search(search)
        if has_to_leave(worker, still):
            break
        is_stuck = note_stuck(worker, is_stuck, moved)
        if is_stuck and atomic_load(worker.clusters.stuck) == worker.clusters.stuck_limit:
            break
    if worker.clusters.waiting == 0 or atomic_load(worker.stop) != 0:  # else it is called again, and continues
        end_search(search)
    end_grid(worker, spare, is_stuck)


@native
def have_more(worker: Pointer[Worker]) -> None:
    """Let more clusters start: those that run may wait for what these do."""
    worker.clusters.capacity = min(worker.clusters.capacity * 2, worker.clusters.limit)
    worker.history.is_serial = 1


@native
def begin_search(worker: Pointer[Worker], cluster: Pointer[Cluster]) -> None:
    """Have a schedule for a cluster that starts; its own, unless others are there already."""
    search = address_of(worker.search)
    search.is_quiet = 0
    search.threads = max(search.threads, threads_of(worker))
    if worker.clusters.waiting != 1:
        return
    search.random = scrambled(scrambled(worker.seed) + first_number(cluster)) | 1
    search.policy = WALK if worker.seed % 2 == 0 else PRIORITIES
    search.changes = changes_of(worker)
    search.moves = NEVER  # nothing of what a cluster before it did
    search.cursor = 0
    search.first_rank = MIDDLE
    search.last_rank = MIDDLE
    search.next_change = u32(DEPTHS - 1 - worker.seed // 2 % DEPTHS)
    search.slices = 1 + u32(min(chance(search, SLICES), min(chance(search, SLICES), chance(search, SLICES))))
    magnitudes: u64 = 1 + chance(search, MAGNITUDES)
    for index in range(DEPTHS - 1):
        magnitude: u64 = u64(1) << chance(search, magnitudes)
        search.change_points[index] = magnitude + chance(search, magnitude)
    if search.next_change == 0 and search.change_points[0] > search.change_points[1]:
        later: u64 = search.change_points[0]
        search.change_points[0] = search.change_points[1]
        search.change_points[1] = later


@native
def end_search(search: Pointer[Search]) -> None:
    """Note what the schedule of clusters was, all of which have ended or are given up."""
    search.traces += scrambled(search.trace)
    search.points = max(search.points, search.steps)
    search.trace = 0
    search.steps = 0


@native
def threads_of(worker: Pointer[Worker]) -> u64:
    """The threads that take turns."""
    if cast(u64, worker.together.team) != 0:
        total: u64 = 0
        for position in range(worker.clusters.waiting):
            cluster = worker.clusters.residents[position]
            total += u64(cluster.count) * u64(cluster.blocks[0].count)
        return total
    block: u64 = u64(worker.shape.block.x) * u64(worker.shape.block.y) * u64(worker.shape.block.z)
    return u64(worker.clusters.waiting) * u64(worker.shape.cluster_size) * block


@native
def run_freely(worker: Pointer[Worker]) -> u32:
    """Let threads have turns until a cluster ends, or nothing has changed for long."""
    search = address_of(worker.search)
    search.near = cast(Pointer[Block], 0)
    forget(worker)
    windows: u32 = 0
    patience: u64 = 2 * threads_of(worker) + 16
    turns: u64 = 0
    while atomic_load(worker.stop) == 0:
        thread = choose_thread(worker)
        if worker.fault.kind != 0:
            return BROKEN
        if cast(u64, thread) == 0:
            search.is_quiet = 1
            search.changes = changes_of(worker)
            return STILL
        take_turn(worker, thread)
        if worker.fault.kind != 0:
            return BROKEN
        if thread.status == DONE and live_in(thread.block.cluster) == 0:
            return FINISHED
        turns += 1
        if turns % patience == 0:
            changes: u64 = changes_of(worker)
            search.is_quiet = u32(changes == search.changes)
            search.changes = changes
            if search.policy == PRIORITIES and (thread.status == READY or thread.status == AT_COLLECTIVE):
                put_last(search, thread)  # threads that only go from barrier to barrier may be polling, too
            if search.is_quiet != 0:
                return STILL
            windows += 1
            if windows == WINDOWS and worker.turns.most_rounds != NO_LIMIT:  # and clusters synchronize with each other
                return SPINNING
    return STOPPED


@native
def choose_thread(worker: Pointer[Worker]) -> Pointer[Thread]:
    """The thread whose turn it is, by the policy of the seed; null if none can run."""
    search = address_of(worker.search)
    near = search.near
    if (
        cast(u64, near) != 0
        and near.schedule.moves == search.near_moves
        and (search.policy != WALK or chance(search, NEAR) != 0)
    ):
        lane: u32 = 0 if search.policy != WALK else u32(chance(search, 32))
        thread = ready_lane(near, search.near_warp, lane)
        if cast(u64, thread) != 0:
            return thread
    first: u32 = 0
    if search.policy == WALK:
        first = u32(chance(search, u64(worker.clusters.waiting)))
    wake_warps(worker)
    for step in range(worker.clusters.waiting):
        position: u32 = (first + step) % worker.clusters.waiting
        thread = choose_in(search, worker.clusters.residents[position])
        if cast(u64, thread) != 0 or worker.fault.kind != 0:
            search.cursor = position
            return thread
    return first_of_last(worker)


@native
def wake_warps(worker: Pointer[Worker]) -> None:
    """Have warps asked again that could not run, if something has happened that may have changed that."""
    search = address_of(worker.search)
    moves: u64 = 0
    for position in range(worker.clusters.waiting):
        moves += moves_of(worker.clusters.residents[position])
    if moves != search.moves or chance(search, SELDOM) == 0:
        search.moves = moves
        for position in range(worker.clusters.waiting):
            cluster = worker.clusters.residents[position]
            for rank in range(cluster.count):
                cluster.blocks[rank].schedule.asleep = 0


@native
def choose_in(search: Pointer[Search], cluster: Pointer[Cluster]) -> Pointer[Thread]:
    """A thread of a cluster; null if none can run, or only those that were put last."""
    rank: u32 = 0
    warp: u32 = 0
    lane: u32 = 0
    if search.policy == WALK:
        rank = u32(chance(search, u64(cluster.count)))
        warp = u32(chance(search, u64(cluster.blocks[0].warps)))
        lane = u32(chance(search, 32))
    for step in range(cluster.count):
        block = cluster.blocks[u32(cluster.block_order[(rank + step) % cluster.count])]
        forget_if_moved(block)
        if block.live != 0 and block.schedule.idle | block.schedule.asleep == all_warps(block):
            pass_over(search, block, warp)
        elif block.live != 0:
            for other in range(block.warps):
                chosen: u32 = u32(block.schedule.warp_order[(warp + other) % block.warps])
                if block.schedule.asleep >> chosen & 1 == 0:
                    thread = choose_lane(search, block, chosen, lane)
                    if cast(u64, thread) != 0 or block.worker.fault.kind != 0:
                        return thread
                    block.schedule.asleep = block.schedule.asleep | u32(1) << chosen
    return cast(Pointer[Thread], 0)


@native(inline=True)
def all_warps(block: Pointer[Block]) -> u32:
    """The warps of a block, a bit for each."""
    return u32(0xFFFFFFFF) >> (32 - block.warps)


@native
def pass_over(search: Pointer[Search], block: Pointer[Block], warp: u32) -> None:
    """Do what asking all warps of a block does of which it is known that none can run."""
    for other in range(block.warps):
        chosen: u32 = u32(block.schedule.warp_order[(warp + block.warps - 1 - other) % block.warps])
        if block.schedule.asleep >> chosen & 1 == 0:
            have_near(search, block, chosen)
            break
    block.schedule.asleep = all_warps(block)


@native
def choose_lane(search: Pointer[Search], block: Pointer[Block], warp: u32, first: u32) -> Pointer[Thread]:
    """A thread of a warp, after lanes have converged that wait for each other."""
    base: u32 = 32 * warp
    lanes: u32 = min(block.count - base, 32)
    if block.schedule.idle >> warp & 1 != 0:
        have_near(search, block, warp)
        return cast(Pointer[Thread], 0)
    block.schedule.least[warp] = 0
    can_converge = False
    is_asked = False
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        is_asked = is_asked or thread.status == AT_PHASE
        is_asked = is_asked or thread.status == AT_PRODUCTS or thread.status == AT_REGISTERS
        if thread.status == AT_PHASE:
            ask_phase(search, thread)
        elif (thread.status == AT_PRODUCTS and have_finished(thread)) or (
            thread.status == AT_REGISTERS and gets_registers(thread)
        ):
            thread.status = READY
            block.schedule.moves += 1
        can_converge = can_converge or thread.status == AT_COLLECTIVE or thread.status == ACTIVE
    if can_converge:
        converge(block, base, lanes)
        if block.worker.fault.kind != 0:
            return cast(Pointer[Thread], 0)
    have_near(search, block, warp)
    thread = ready_lane(block, warp, first)
    if cast(u64, thread) == 0 and not is_asked:
        block.schedule.idle = block.schedule.idle | u32(1) << warp
    return thread


@native(inline=True)
def have_near(search: Pointer[Search], block: Pointer[Block], warp: u32) -> None:
    """Have the next turn go to this warp, too, most often."""
    search.near = block
    search.near_warp = warp
    search.near_moves = block.schedule.moves


@native
def ready_lane(block: Pointer[Block], warp: u32, first: u32) -> Pointer[Thread]:
    """A thread of a warp that can run and was not put last; null if there is none."""
    base: u32 = 32 * warp
    lanes: u32 = min(block.count - base, 32)
    for step in range(32):
        lane = u32(block.schedule.lane_order[(first + step) % 32])
        if lane < lanes:
            thread = block.threads + (base + lane)
            if thread.status == READY and thread.rank == 0:
                return thread
    return cast(Pointer[Thread], 0)


@native
def ask_phase(search: Pointer[Search], thread: Pointer[Thread]) -> None:
    """Let a thread continue that waits for a phase which has completed; or, now and then, one whose phase has not."""
    if has_completed(thread):
        thread.waiting.answer = 1
        thread.status = READY
        thread.block.schedule.moves += 1
    elif chance(search, SELDOM) == 0:
        thread.waiting.answer = 0
        thread.status = READY


@native
def first_of_last(worker: Pointer[Worker]) -> Pointer[Thread]:
    """The first of the threads that have the lowest priority and can run; null if there is none.

    What is known of a warp holds until one of its lanes has a turn or is asked, or its block moves.
    """
    least: u64 = NEVER
    first = cast(Pointer[Block], 0)
    chosen: u32 = 0
    for position in range(worker.clusters.waiting):
        cluster = worker.clusters.residents[position]
        for rank in range(cluster.count):
            block = cluster.blocks[rank]
            forget_if_moved(block)
            for warp in range(block.warps):
                if block.schedule.least[warp] == 0:
                    block.schedule.least[warp] = least_rank(block, warp)
                if block.schedule.least[warp] < least:
                    least = block.schedule.least[warp]
                    first = block
                    chosen = warp
                    worker.search.cursor = position
    if least == NEVER:
        return cast(Pointer[Thread], 0)
    thread = first.threads + 32 * chosen
    while thread.rank != least:
        thread = thread + 1
    return thread


@native
def least_rank(block: Pointer[Block], warp: u32) -> u64:
    """The lowest rank of the lanes of a warp that were put last and can run; `NEVER` if there are none."""
    base: u32 = 32 * warp
    least: u64 = NEVER
    lanes: u32 = min(block.count - base, 32)
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.status == READY and thread.rank != 0:
            least = min(least, thread.rank)
    return least


@native
def forget(worker: Pointer[Worker]) -> None:
    """Have all threads inspected again: they have run by another schedule."""
    for position in range(worker.clusters.waiting):
        cluster = worker.clusters.residents[position]
        for rank in range(cluster.count):
            forget_block(cluster.blocks[rank])


@native(inline=True)
def forget_if_moved(block: Pointer[Block]) -> None:
    """Have the threads of a block inspected again, if something has happened by which one of them may run now."""
    if unlikely(block.schedule.known_moves != block.schedule.moves):
        forget_block(block)


@native
def forget_block(block: Pointer[Block]) -> None:
    """Have the threads of a block inspected again."""
    block.schedule.known_moves = block.schedule.moves
    block.schedule.idle = 0
    for warp in range(block.warps):
        block.schedule.least[warp] = 0


@native
def take_turn(worker: Pointer[Worker], thread: Pointer[Thread]) -> None:
    """Run a thread until it waits, or has passed as many points as it may."""
    search = address_of(worker.search)
    points: u32 = points_allowed(search, thread)
    fuel: u32 = worker.turns.quantum
    if search.policy == WALK or thread.rank != 0:
        fuel = u32(min(1 + chance(search, u64(1) << chance(search, 13)), u64(fuel)))
    thread.preemption.at_point = 0
    warp: u32 = thread.number // 32
    thread.block.schedule.least[warp] = 0
    thread.block.schedule.idle = thread.block.schedule.idle & ~(u32(1) << warp)
    allow(thread, points, 1, fuel)
    tick(worker)
    run_thread(thread)
    passed: u32 = points - thread.preemption.points_left
    if thread.status == YIELDED:
        thread.status = READY
        is_preempted = thread.preemption.at_point != 0
        passed += u32(is_preempted)
        if search.policy == PRIORITIES:
            is_change = is_preempted and search.steps + u64(passed) >= next_change_of(search)
            search.next_change += u32(is_change)
            if is_change and chance(search, 2) == 0:
                search.first_rank -= 1
                thread.rank = search.first_rank
            else:
                put_last(search, thread)
    search.steps += u64(passed)
    who: u64 = scrambled(thread.block.number << 10 | u64(thread.number))
    for _ in range(passed):
        search.trace = u64(search.trace * 0x9E3779B97F4A7C15) + who


@native
def put_last(search: Pointer[Search], thread: Pointer[Thread]) -> None:
    """Have a thread run only when no other one can."""
    search.last_rank += 1
    thread.rank = search.last_rank


@native
def points_allowed(search: Pointer[Search], thread: Pointer[Thread]) -> u32:
    """How many points a thread may pass: few if it was put last, so that those which poll stop anywhere.

    Of these, a random number, be it small: threads that stop at every point in turn may never make progress.
    """
    slices: u32 = search.slices if search.policy == WALK else max(search.slices, u32(FEWEST))
    some: u64 = chance(search, u64(1) << chance(search, u64(slices)))
    if search.policy == WALK:
        return u32(some)
    point: u64 = next_change_of(search)
    left: u64 = point - 1 - search.steps if point > search.steps else 0
    return u32(min(some if thread.rank != 0 else NO_LIMIT, left))


@native
def next_change_of(search: Pointer[Search]) -> u64:
    """The point at which a thread is put last."""
    return search.change_points[search.next_change] if search.next_change < DEPTHS - 1 else NEVER
