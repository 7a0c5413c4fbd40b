"""Running threads to their next synchronization point: lanes of a warp, warps of a block, blocks of a cluster.

A warp runs until all its lanes wait for something outside of it, or do nothing but spin; then the next has its turn.
A cluster in which no thread can continue, and for which no copy is under way, hangs; so does one in livelock.
"""

from __future__ import annotations

from ptxlab.emulate.abi.code import Site
from ptxlab.emulate.abi.faults import BAD_MEMBERMASK, BARRIER_DIVERGENCE, HANG
from ptxlab.emulate.abi.state import Block, Cluster, Thread, Worker
from ptxlab.emulate.abi.thread_parts import (
    ACTIVE,
    AT_COLLECTIVE,
    AT_PHASE,
    AT_PRODUCTS,
    AT_REGISTERS,
    AT_TURN,
    DONE,
    FAILED,
    READY,
    YIELDED,
)
from ptxlab.emulate.runtime.asynchronous.async_copies import finish_copies
from ptxlab.emulate.runtime.asynchronous.bulk_copies import finish_transfer
from ptxlab.emulate.runtime.asynchronous.mbarriers import has_completed
from ptxlab.emulate.runtime.asynchronous.network import deliver_network
from ptxlab.emulate.runtime.asynchronous.wgmma import have_finished
from ptxlab.emulate.runtime.memory.block_lifetime import note_exit
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.order.devices import end_in_team
from ptxlab.emulate.runtime.order.synchronization import order_exit, order_lanes
from ptxlab.emulate.runtime.order.vector_clocks import COLLECTIVE
from ptxlab.emulate.runtime.schedule.barrier import release_everyone
from ptxlab.emulate.runtime.schedule.block_end import end_block
from ptxlab.emulate.runtime.schedule.cluster_barrier import leave_cluster, live_in
from ptxlab.emulate.runtime.schedule.quiescence import changes_of, is_still, leap, makes_no_progress, outlasts_time
from ptxlab.emulate.runtime.schedule.random import next_random
from ptxlab.emulate.runtime.schedule.registers import gets_registers
from ptxlab.emulate.runtime.schedule.steps import is_logged, log_collective
from ptxlab.emulate.runtime.schedule.teams import leader_of, tick
from ptxlab.emulate.runtime.schedule.together import run_quickly, run_together
from ptxlab.emulate.runtime.tensor_memory.execution import finish_operations
from ptxlab.native import Pointer, address_of, atomic_load, boolean, call, cast, native, u32, u64

# What became of a cluster when it gave its core back.
FINISHED = 0
SPINNING = 1
STOPPED = 2
BROKEN = 3
STILL = 4  # it can continue only if other clusters change something

SELDOM = 8  # rounds after which a cluster that makes progress is checked for a livelock
STEPS = 1024  # calls and returns of a thread until others have a turn
PASSES = 1024  # over the lanes of a warp, each with a collective or a barrier of theirs, until others have a turn
QUIET_PASSES = 16  # the same, where nothing in memory changes meanwhile: the warp may poll


@native
def thread_exit(thread: Pointer[Thread]) -> None:
    """End a thread; a barrier that waits for everyone need not wait for it any more."""
    block = thread.block
    if thread.copies.pending.count != 0:
        finish_copies(thread, 0)
    order_exit(thread)
    thread.status = DONE
    block.live -= 1
    block.schedule.moves += 1
    release_everyone(block)
    if block.live == 0:
        end_block(thread)
        end_in_team(block)
    if block.cluster.arrived != 0:
        leave_cluster(thread)
    if block.live == 0:
        note_exit(thread)


@native
def run_thread(thread: Pointer[Thread]) -> None:
    """Run a thread until it waits; one that does nothing but call lets others run now and then."""
    steps: u32 = 0
    thread.ran = 1
    thread.block.is_fresh = 0
    while thread.status == READY:
        call(None, thread.code, thread)
        steps += 1
        if thread.status == READY and (steps == STEPS or atomic_load(thread.worker.stop) != 0):
            thread.status = YIELDED


@native(inline=True)
def allow(thread: Pointer[Thread], points: u32, look_cost: u32, fuel: u32) -> None:
    """Say how many preemption points a thread may pass, and jumps backwards take, before others have a turn."""
    thread.preemption.points_left = points
    thread.preemption.read_cost = look_cost
    thread.fuel = fuel


@native
def run_cluster(cluster: Pointer[Cluster]) -> u32:
    """Run a cluster until it ends, breaks, is stopped, or has nothing to do but wait for other clusters."""
    worker = cluster.worker
    idle: u32 = 0
    rounds: u32 = 0
    if is_still(cluster):
        return STILL
    while live_in(cluster) > 0:
        before: u64 = moves_of(cluster)
        can_run: u32 = 0
        for rank in range(cluster.count):
            can_run += run_round(cluster.blocks[rank])
            if worker.fault.kind != 0:
                return BROKEN
            if atomic_load(worker.stop) != 0:
                return STOPPED
            if has_changed(worker):
                return SPINNING if live_in(cluster) != 0 else FINISHED
        if live_in(cluster) == 0:
            return FINISHED
        idle += 1
        rounds += 1
        if moves_of(cluster) != before:
            idle = 0
        elif not deliver_copies(cluster) and not deliver_work(cluster) and not wake_waiters(cluster) and can_run == 0:
            report_hang(cluster)
            return BROKEN
        if (idle != 0 or rounds % SELDOM == 0) and makes_no_progress(cluster) and not deliver_work(cluster):
            if cluster.watch.is_near == 0:
                return STILL
            if outlasts_time(cluster):
                report_hang(cluster)
                return BROKEN
            leap(cluster)
        if idle >= worker.turns.rounds or rounds >= worker.turns.most_rounds:
            return SPINNING
    return FINISHED


@native
def run_round(block: Pointer[Block]) -> u32:
    """Let each warp of a block have a turn; how many can run on."""
    can_run: u32 = 0
    if block.is_quick != 0:
        run_quickly(block)
    if block.live == 0 or block.worker.fault.kind != 0:
        return 0
    for warp in range(block.warps):
        if atomic_load(block.worker.stop) != 0:
            return can_run
        can_run += run_warp(block, warp)
        if block.worker.fault.kind != 0 or has_changed(block.worker):
            return can_run
    return can_run


@native(inline=True)
def has_changed(worker: Pointer[Worker]) -> boolean:
    """With a seed, whether memory has changed since the schedule has become that of seed 0; then it is random again."""
    if worker.seed == 0:
        return False
    search = address_of(leader_of(worker).search)
    if search.is_quiet != 0 and changes_of(worker) != search.changes:
        search.is_quiet = 0
    return search.is_quiet == 0


@native
def moves_of(cluster: Pointer[Cluster]) -> u64:
    """How often something happened that only happens when a thread makes progress."""
    total: u64 = 0
    for rank in range(cluster.count):
        total += cluster.blocks[rank].schedule.moves
    return total


@native
def deliver_copies(cluster: Pointer[Cluster]) -> boolean:
    """Let every copy that is under way arrive: no thread can continue otherwise."""
    delivered = False
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        for index in range(block.count):
            thread = block.threads + index
            if thread.copies.pending.count != 0:
                finish_copies(thread, 0)
                delivered = True
    return delivered


@native
def deliver_work(cluster: Pointer[Cluster]) -> boolean:
    """Let a bulk copy of each block arrive, or its tensor core continue; with a seed, either may come first."""
    if cluster.worker.seed != 0 and next_random(cluster.blocks[0]) & 1 != 0:
        return deliver_operations(cluster) or deliver_transfers(cluster)
    return deliver_transfers(cluster) or deliver_operations(cluster)


@native
def deliver_operations(cluster: Pointer[Cluster]) -> boolean:
    """Let the tensor core of each block continue, until it completes a commit."""
    delivered = False
    for rank in range(cluster.count):
        if finish_operations(cluster.blocks[rank], 0):
            delivered = True
    return delivered


@native
def deliver_transfers(cluster: Pointer[Cluster]) -> boolean:
    """Let one bulk copy of each block arrive, the oldest or, with a seed, any of those under way."""
    delivered = False
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        if block.bulk.pending.count != 0:
            chosen: u64 = next_random(block) if cluster.worker.seed != 0 else 0
            finish_transfer(block, u32(chosen % u64(block.bulk.pending.count)))
            delivered = True
        if block.network != 0 and deliver_network(block):
            delivered = True
    return delivered


@native
def wake_waiters(cluster: Pointer[Cluster]) -> boolean:
    """Let waits for a phase return false, as the hardware does after a while."""
    woken = False
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        for index in range(block.count):
            thread = block.threads + index
            if thread.status == AT_PHASE:
                thread.waiting.answer = 0
                thread.status = READY
                woken = True
    return woken


@native
def report_hang(cluster: Pointer[Cluster]) -> None:
    """Note that the cluster hangs, at the first thread that waits."""
    for rank in range(cluster.count):
        block = cluster.blocks[rank]
        for index in range(block.count):
            thread = block.threads + index
            if thread.status != DONE:
                status: u32 = thread.status
                fail(thread, HANG, thread.waiting.instruction, 0)
                thread.status = status
                return


@native
def run_warp(block: Pointer[Block], warp: u32) -> u32:
    """Run the lanes of a warp and let them converge, until none can continue but by spinning; 1 if some spin."""
    base: u32 = 32 * warp
    lanes: u32 = min(block.count - base, 32)
    spinning: u32 = 0
    passes: u32 = 0
    changes: u64 = 0
    tick(block.worker)
    while True:
        ran = False
        has_lanes = cast(u64, block.worker.code.lanes) != 0
        if has_lanes and (run_together(block, base, lanes) or block.worker.fault.kind != 0):
            return 0
        seen: u32 = 0  # what lanes do after this pass, a bit for each status
        for lane in range(lanes):
            thread = block.threads + (base + lane)
            if thread.status == AT_PHASE and has_completed(thread):
                thread.waiting.answer = 1
                thread.status = READY
                block.schedule.moves += 1
            if thread.status == AT_PRODUCTS and have_finished(thread):
                thread.status = READY
                block.schedule.moves += 1
            if thread.status == AT_REGISTERS and gets_registers(thread):
                thread.status = READY
                block.schedule.moves += 1
            if thread.status == READY:
                if block.worker.seed != 0:
                    allow(thread, 1, 0, block.worker.turns.quantum)
                run_thread(thread)
                ran = True
                if thread.status == FAILED:
                    return 0
            seen = seen | u32(1) << thread.status
        if seen & (1 << AT_TURN) != 0:
            take_turns(block, base, lanes)
        if seen & (1 << AT_COLLECTIVE | 1 << ACTIVE) != 0 and converge(block, base, lanes):
            if block.worker.fault.kind != 0:
                return 0
            ran = True
        spinning = seen >> YIELDED & 1
        if not ran or seen == 1 << DONE:
            break
        passes += 1
        before: u64 = changes
        if passes % QUIET_PASSES == 0:
            changes = changes_of(block.worker)
        is_quiet = passes % QUIET_PASSES == 0 and passes != QUIET_PASSES and changes == before
        if passes == PASSES or is_quiet or atomic_load(block.worker.stop) != 0:
            spin(block, base, lanes)
            return 1
    if spinning != 0:
        spin(block, base, lanes)
    return spinning


@native
def spin(block: Pointer[Block], base: u32, lanes: u32) -> None:
    """Let those lanes of a warp run again that have yielded, or wait for their turn."""
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.status == YIELDED or thread.status == AT_TURN:
            thread.status = READY


@native
def take_turns(block: Pointer[Block], base: u32, lanes: u32) -> None:
    """Let those lanes pass a volatile access that are at the first one in the program; others wait for these there.

    So lanes run in step, and those that left a branch or a loop early wait for the others, as on a GPU. Lanes in a loop
    that poll what one of those writes give up their turn after a while.
    """
    first: u32 = 0xFFFFFFFF
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.status == AT_TURN:
            first = min(first, thread.waiting.instruction)
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.status == AT_TURN and thread.waiting.instruction == first:
            thread.status = READY


@native
def converge(block: Pointer[Block], base: u32, lanes: u32) -> boolean:
    """Let lanes converge that all wait for each other; false if there are none."""
    waiting: u32 = 0
    alive: u32 = 0
    busy: u32 = 0
    active: u32 = 0
    for lane in range(lanes):
        status: u32 = block.threads[base + lane].status
        bit: u32 = u32(1) << lane
        if status != DONE:
            alive = alive | bit
        if status == AT_COLLECTIVE:
            waiting = waiting | bit
        elif status == ACTIVE:
            active = active | bit
        elif status == READY or status == YIELDED or status == AT_TURN:  # noqa: SIM109 - natives know no tuples
            busy = busy | bit
    converged = False
    lane = u32(0)
    while lane < lanes:
        bit = u32(1) << lane
        if waiting & bit != 0:
            thread = block.threads + (base + lane)
            site = block.worker.code.sites + thread.waiting.site
            members: u32 = thread.waiting.members & alive
            if thread.waiting.members & bit == 0:
                fail(thread, BAD_MEMBERMASK, site.instruction, u64(thread.waiting.members))
                return True
            if members & waiting == members:
                same: u32 = lanes_at_collective(block, base, lanes, thread, members)
                exited: u32 = thread.waiting.members & ~alive & (u32(0xFFFFFFFF) >> (32 - lanes))
                if site.aligned != 0 and (exited != 0 or (same != members and busy == 0)):
                    fail(thread, BARRIER_DIVERGENCE, site.instruction, u64(same))
                    return True
                if same == members:
                    perform(block, base, members, site)
                    waiting = waiting & ~members
                    converged = True
        lane += 1
    if active != 0 and busy == 0 and not converged:
        answer_activemask(block, base, lanes, active)
        converged = True
    return converged


@native
def lanes_at_collective(block: Pointer[Block], base: u32, lanes: u32, thread: Pointer[Thread], members: u32) -> u32:
    """Those of some waiting lanes that wait at the collective of a thread, for the same lanes as that thread."""
    key: u32 = block.worker.code.sites[thread.waiting.site].key
    same: u32 = 0
    for lane in range(lanes):
        if members >> lane & 1 != 0:
            other = block.threads + (base + lane)
            if (
                other.waiting.members == thread.waiting.members
                and block.worker.code.sites[other.waiting.site].key == key
            ):
                same = same | (u32(1) << lane)
    return same


@native
def answer_activemask(block: Pointer[Block], base: u32, lanes: u32, active: u32) -> None:
    """Let those of the lanes that wait for an active mask continue that wait at the same instruction as the first."""
    first: u32 = 0
    while active >> first & 1 == 0:
        first += 1
    together: u32 = 0
    instruction: u32 = block.threads[base + first].waiting.instruction
    for lane in range(lanes):
        if active >> lane & 1 != 0 and block.threads[base + lane].waiting.instruction == instruction:
            together = together | (u32(1) << lane)
    for lane in range(lanes):
        if together >> lane & 1 != 0:
            block.threads[base + lane].waiting.members = together
            block.threads[base + lane].status = READY


@native
def perform(block: Pointer[Block], base: u32, members: u32, site: Pointer[Site]) -> None:
    """Execute a warp collective, and let its lanes continue."""
    call(None, site.code, block.threads[base].memory.exchange, members, block.threads[base].memory.shared)
    order_lanes(block, base, members, u64(0) if site.orders != 0 else u64(COLLECTIVE))
    if is_logged(block.worker):
        log_collective(block, base, members)
    for lane in range(32):
        if members >> lane & 1 != 0:
            block.threads[base + lane].status = READY


CALLED = (thread_exit,)
