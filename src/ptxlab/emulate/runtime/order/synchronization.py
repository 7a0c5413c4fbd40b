"""What happens before what: the points at which threads learn of each other.

Where all threads of a block, or all lanes of a warp, synchronize, their epochs become the same, and one number says
that each knows what all the others did. Where only some converge, each gets a clock entry for each of the others.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import VectorClock
from ptxlab.emulate.abi.state import Block, Thread, Worker
from ptxlab.emulate.abi.thread_parts import AT_BARRIER, DONE
from ptxlab.emulate.runtime.order.devices import begin_in_team, is_in_team
from ptxlab.emulate.runtime.order.fence_order import clear_fences, forget_fences, join_fences, share_fences
from ptxlab.emulate.runtime.order.observations import share_observations
from ptxlab.emulate.runtime.order.release_acquire import (
    free_variables,
    hand_over,
    join_warp,
    pass_on,
)
from ptxlab.emulate.runtime.order.shadow import drop_pages, free_pages
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    CHANNELS,
    COLLECTIVE,
    COPIES,
    EVERYONE,
    PART_MASK,
    THREAD,
    WARP,
    advance,
    forget,
    is_equal,
    join,
    join_tensor_entries,
    key_of,
)
from ptxlab.native import Pointer, address_of, boolean, cast, free, free_items, native, trailing_zeros, u8, u32, u64


@native
def begin_order(block: Pointer[Block]) -> None:
    """The threads of a block start: they know nothing of each other."""
    block.order.barrier_epoch = 0
    block.order.settled_epoch = 0
    block.order.tiles.count = 0
    block.order.releases_maps = 0
    block.order.has_observed = 0
    block.order.observed = 0
    for index in range(block.count):
        thread = block.threads + index
        thread.order.epoch = 1
        thread.order.warp_epoch = 0
        thread.order.converged_epoch = 0
        thread.order.fence.block = 0
        thread.order.seen_version = 0
        thread.order.acquired_version = 0
        thread.order.fence.cluster = 0
        thread.order.fence.gpu = 0
        thread.order.fence.system = 0
        thread.order.init_fence = 0
        thread.order.tensor_epoch = 0
        thread.order.unfenced = 0
        thread.order.early = 0
        thread.order.wait = 0
        thread.order.weak = 0
        thread.order.observed = 0
        thread.order.lockstep_store = 0
        thread.order.lockstep_stores = 0
        thread.order.copies_wait = 0
        thread.order.bulk_wait = 0
        thread.order.products_wait = 0
        thread.arrival.arrived = 0
        thread.arrival.released = 0
        thread.order.exit_epoch = 0
        thread.order.exchanged_members = 0
        thread.copies.index = 0
        thread.copies.done = 0
        thread.copies.shared = 0
    if is_in_team(block.worker):
        begin_in_team(block)


@native(inline=True)
def order_exit(thread: Pointer[Thread]) -> None:
    """A thread exits: what it did since the last barrier of its block is ordered by no barrier to come."""
    if thread.worker.checks != 0:
        thread.order.exit_epoch = thread.block.order.barrier_epoch


@native
def end_order(block: Pointer[Block]) -> None:
    """Forget what a block did to its own memory, and what its threads know."""
    if block.worker.checks == 0 or cast(u64, block.threads) == 0:
        return
    if block.is_quick == 0:
        forget_threads(block)
    left: u32 = block.barriers.used
    while left != 0:
        forget(address_of(block.barriers.numbered[trailing_zeros(u32, left)].known))
        forget_fences(address_of(block.barriers.numbered[trailing_zeros(u32, left)].fences))
        left = left & (left - 1)
    forget(address_of(block.order.known))
    forget_fences(address_of(block.order.fences))
    free_items(block.order.acquires)
    free_items(block.order.uses)
    free_variables(address_of(block.order.variables))
    free_pages(block.worker.history, address_of(block.order.pages))
    free(block.memory.local_marks)
    block.memory.local_marks = cast(Pointer[u8], 0)


@native
def forget_threads(block: Pointer[Block]) -> None:
    """Forget what the threads of a block know."""
    for index in range(block.count):
        thread = block.threads + index
        if thread.order.known.capacity != 0:
            forget(address_of(thread.order.known))
        if thread.order.fence.block != 0:
            forget(address_of(thread.order.fenced.block))
            forget(address_of(thread.order.fenced.cluster))
            forget(address_of(thread.order.fenced.gpu))
            forget(address_of(thread.order.fenced.system))
        if (
            thread.order.pending.block.capacity
            + thread.order.pending.cluster.capacity
            + thread.order.pending.gpu.capacity
            + thread.order.pending.system.capacity
            != 0
        ):
            forget(address_of(thread.order.pending.block))
            forget(address_of(thread.order.pending.cluster))
            forget(address_of(thread.order.pending.gpu))
            forget(address_of(thread.order.pending.system))
        if thread.order.tensor_known.capacity != 0:
            forget(address_of(thread.order.tensor_known))
        fences = address_of(thread.order.fences)
        if fences.passed.capacity + fences.observed.capacity + fences.observed_system.capacity != 0:
            forget_fences(address_of(thread.order.fences))


@native
def end_history(worker: Pointer[Worker]) -> None:
    """Forget what a launch did; its findings stay."""
    if worker.checks == 0:
        return
    history = worker.history
    drop_pages(address_of(history.pages))
    free_variables(address_of(history.variables))
    forget(address_of(worker.together.known))
    forget(address_of(worker.together.left))
    forget(address_of(history.scratch))
    free_items(history.chained)


# Lanes of a warp.


@native
def order_lanes(block: Pointer[Block], base: u32, members: u32, doubt: u64) -> None:
    """Lanes of a warp have converged: each knows what the others did before, in `doubt` if that orders no memory."""
    if block.worker.checks == 0:
        return
    lanes: u32 = min(block.count - base, 32)
    is_whole = True
    top: u32 = 0
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.order.epoch > top:
            top = thread.order.epoch
        if members >> lane & 1 == 0 and thread.status != DONE:
            is_whole = False
    if not is_whole or not has_exchanged_all(block, base, lanes, members, doubt):
        exchange_in_warp(block, base, lanes, members, doubt, is_whole)
    for lane in range(lanes):
        if members >> lane & 1 == 0:
            continue
        thread = block.threads + (base + lane)
        if not is_whole:
            thread.order.epoch += 1
            continue
        thread.order.epoch = top + 1
        thread.order.converged_epoch = top
        if doubt == 0:
            thread.order.warp_epoch = top


@native
def has_exchanged_all(block: Pointer[Block], base: u32, lanes: u32, members: u32, doubt: u64) -> boolean:
    """Whether no lane of a warp has learned anything since all of them last exchanged what they know."""
    first = block.threads + base
    return (
        first.order.exchanged == changes_of_lanes(block, base, lanes)
        and first.order.exchanged_members == members
        and (doubt != 0 or first.order.exchanged_doubt == 0)
    )


@native
def changes_of_lanes(block: Pointer[Block], base: u32, lanes: u32) -> u64:
    """A number that grows whenever a lane of a warp learns something."""
    changes: u64 = 0
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        changes += thread.order.known.changes + u64(thread.copies.done)
    return changes


@native
def exchange_in_warp(
    block: Pointer[Block], base: u32, lanes: u32, members: u32, doubt: u64, is_whole: boolean
) -> None:  # fmt: skip
    """Lanes of a warp exchange what they know, and what they did, if that is not what the whole warp did."""
    scratch = address_of(block.worker.history.scratch)
    scratch.count = 0
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if members >> lane & 1 != 0:
            add_copies(scratch, thread)
            if not is_equal(scratch, address_of(thread.order.known)):
                join(scratch, address_of(thread.order.known))
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if members >> lane & 1 != 0 and not is_whole:
            advance(scratch, key_of(block.number, THREAD + thread.number), u64(thread.order.epoch))
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if members >> lane & 1 != 0 and not is_equal(address_of(thread.order.known), scratch):
            pass_on(address_of(thread.order.known), scratch, doubt)
            if doubt != 0:
                join_tensor_entries(address_of(thread.order.known), scratch)
    first = block.threads + base
    first.order.exchanged = changes_of_lanes(block, base, lanes)
    first.order.exchanged_members = members if is_whole else u32(0)
    first.order.exchanged_doubt = doubt


@native
def add_copies(known: Pointer[VectorClock], thread: Pointer[Thread]) -> None:
    """Add which copies a thread knows to be done, if not everyone does."""
    if thread.copies.done > thread.copies.shared:
        advance(known, key_of(thread.block.number, COPIES + thread.number), u64(thread.copies.done))


# Barriers of the block.


@native
def order_arrival(thread: Pointer[Thread], number: u32) -> None:
    """A thread has arrived at a barrier and continues: what it did until now is handed over when that completes."""
    known = address_of(thread.block.barriers.numbered[number].known)
    hand_over(thread, known, thread.order.epoch)
    join_fences(address_of(thread.block.barriers.numbered[number].fences), address_of(thread.order.fences))
    add_copies(known, thread)
    thread.order.epoch += 1


@native
def order_barrier(block: Pointer[Block], number: u32) -> None:
    """A barrier has completed: the threads that waited know what all that arrived did before."""
    if block.worker.checks == 0:
        return
    barrier = block.barriers.numbered + number
    if barrier.waiting == barrier.arrived and barrier.waiting == block.live:
        order_block(block)
    else:
        order_some(block, number)
    barrier.known.count = 0
    clear_fences(address_of(barrier.fences))


@native
def order_block(block: Pointer[Block]) -> None:
    """All threads that have not exited have synchronized."""
    top: u32 = 0
    for index in range(block.count):
        thread = block.threads + index
        if thread.order.epoch > top:
            top = thread.order.epoch
        if thread.status == DONE:
            share_exited(thread)
            continue
        thread.copies.shared = max(thread.copies.shared, thread.copies.done)
        if thread.order.known.count != 0:
            share(block, address_of(thread.order.known))
    share_fences(block)
    share_observations(block)
    block.order.barrier_epoch = top
    if block.live == block.count:
        block.order.settled_epoch = top
    for index in range(block.count):
        thread = block.threads + index
        if thread.status != DONE:
            thread.order.epoch = top + 1
            thread.order.warp_epoch = top


@native
def share_exited(thread: Pointer[Thread]) -> None:
    """Let all threads know what lanes of its warp know of a thread that has exited."""
    block = thread.block
    first: u32 = thread.number // 32 * 32
    if thread.order.warp_epoch > thread.order.exit_epoch:
        for index in range(first, min(first + 32, block.count)):
            if block.threads[index].status != DONE:
                advance(
                    address_of(block.order.known),
                    key_of(block.number, THREAD + thread.number),
                    u64(thread.order.warp_epoch),
                )
                return


@native
def share(block: Pointer[Block], known: Pointer[VectorClock]) -> None:
    """Let all threads know what one knew that they do not know by themselves.

    That is of other blocks, of threads of this one that have exited, and of its asynchronous work.
    """
    kept: u32 = 0
    for index in range(known.count):
        key: u64 = known.items[index].key
        part: u32 = u32(key) & PART_MASK
        is_kept: boolean = key >> BLOCK_SHIFT != block.number or key == EVERYONE or part >= CHANNELS
        if is_kept or (block.live != block.count and part < COPIES):
            known.items[kept].key = key
            known.items[kept].epoch = known.items[index].epoch
            kept += 1
        elif part >= COPIES:
            owner = block.threads + (part - COPIES)
            if u64(owner.copies.shared) < known.items[index].epoch:
                owner.copies.shared = u32(known.items[index].epoch)
    known.count = kept
    join(address_of(block.order.known), known)
    known.count = 0
    known.changes += 1


@native
def order_some(block: Pointer[Block], number: u32) -> None:
    """Some threads have converged, and others have arrived and continued."""
    known = address_of(block.barriers.numbered[number].known)
    fences = address_of(block.barriers.numbered[number].fences)
    for warp in range(block.warps):
        order_warp(block, number, warp * 32, known)
    for index in range(block.count):
        thread = block.threads + index
        if thread.status == AT_BARRIER and thread.waiting.barrier == number:
            join_fences(fences, address_of(thread.order.fences))
    for index in range(block.count):
        thread = block.threads + index
        if thread.status == AT_BARRIER and thread.waiting.barrier == number:
            join(address_of(thread.order.known), known)
            join_fences(address_of(thread.order.fences), fences)


@native
def order_warp(block: Pointer[Block], number: u32, base: u32, known: Pointer[VectorClock]) -> None:
    """Add what the lanes of a warp that wait at a barrier know and did: one entry if it is all of them."""
    lanes: u32 = min(block.count - base, 32)
    is_whole = True
    top: u32 = 0
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.order.epoch > top:
            top = thread.order.epoch
        is_here: boolean = thread.status == AT_BARRIER and thread.waiting.barrier == number
        if not is_here:
            is_whole = False
        if is_here:
            join(known, address_of(thread.order.known))
            add_copies(known, thread)
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.status == AT_BARRIER and thread.waiting.barrier == number:
            if is_whole:
                advance(known, key_of(block.number, WARP + base // 32), u64(top))
                thread.order.warp_epoch = top
                thread.order.epoch = top + 1
            else:
                join_warp(known, thread, 0)
                if thread.order.converged_epoch > thread.order.warp_epoch:
                    advance(
                        known, key_of(block.number, WARP + base // 32) | COLLECTIVE, u64(thread.order.converged_epoch)
                    )
                advance(known, key_of(block.number, THREAD + thread.number), u64(thread.order.epoch))
                thread.order.epoch += 1


# mbarriers.
