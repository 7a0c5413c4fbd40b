"""What happens before what: the points at which threads learn of each other.

Where all threads of a block, or all lanes of a warp, meet, their stamps become the same, and one number says that each
knows what all the others did. Where only some meet, each gets a fact about each of the others.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Knowledge
from ptxlab.emulate.abi.state import Block, Thread, Worker
from ptxlab.emulate.abi.thread_parts import AT_BARRIER, DONE
from ptxlab.emulate.runtime.order.release_acquire import (
    find_flag,
    flag_at,
    free_flags,
    hand_over,
    pass_on,
    tell_of_warp,
)
from ptxlab.emulate.runtime.order.shadow import drop_pages, free_pages
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    CHANNELS,
    COLLECTIVE,
    COPIES,
    EVERYONE,
    PART_MASK,
    PHASES,
    RANK_IN_CHANNEL,
    THREAD,
    WARP,
    forget,
    key_of,
    tell,
    tell_all,
    tell_of_tensor_memory,
)
from ptxlab.isa.mbarrier import IN_CLUSTER, RELAXED_ORDER
from ptxlab.native import Pointer, address_of, boolean, cast, free, free_items, native, trailing_zeros, u8, u32, u64

# Added to the offset of an mbarrier: its flags are not the one of the word that it lies in. One is for arrivals of the
# own block and of asynchronous work, one for those of other blocks of the cluster.
MBARRIER = 1 << 40
FAR_ARRIVALS = 2 << 40


@native
def begin_order(block: Pointer[Block]) -> None:
    """The threads of a block begin: they know nothing of each other."""
    block.order.barrier_stamp = 0
    block.order.settled_stamp = 0
    for index in range(block.count):
        thread = block.threads + index
        thread.order.stamp = 1
        thread.order.warp_stamp = 0
        thread.order.converged_stamp = 0
        thread.order.fence.block = 0
        thread.order.seen_version = 0
        thread.order.acquired_version = 0
        thread.order.fence.cluster = 0
        thread.order.fence.gpu = 0
        thread.order.init_fence = 0
        thread.order.tensor_stamp = 0
        thread.order.unfenced = 0
        thread.arrival.arrived = 0
        thread.arrival.released = 0
        thread.order.exit_stamp = 0
        thread.copies.index = 0
        thread.copies.done = 0
        thread.copies.shared = 0


@native(inline=True)
def order_exit(thread: Pointer[Thread]) -> None:
    """A thread exits: what it did since the last barrier of its block is ordered by no barrier to come."""
    if thread.worker.checks != 0:
        thread.order.exit_stamp = thread.block.order.barrier_stamp


@native
def end_order(block: Pointer[Block]) -> None:
    """Forget what a block did to its own memory, and what its threads know."""
    if block.worker.checks == 0 or cast(u64, block.threads) == 0:
        return
    for index in range(block.count):
        thread = block.threads + index
        if thread.order.known.capacity != 0:
            forget(address_of(thread.order.known))
        if thread.order.fence.block != 0:
            forget(address_of(thread.order.fenced.block))
            forget(address_of(thread.order.fenced.cluster))
            forget(address_of(thread.order.fenced.gpu))
        if (
            thread.order.pending.block.capacity
            + thread.order.pending.cluster.capacity
            + thread.order.pending.gpu.capacity
            != 0
        ):
            forget(address_of(thread.order.pending.block))
            forget(address_of(thread.order.pending.cluster))
            forget(address_of(thread.order.pending.gpu))
        if thread.order.tensor_known.capacity != 0:
            forget(address_of(thread.order.tensor_known))
    left: u32 = block.barriers.used
    while left != 0:
        forget(address_of(block.barriers.numbered[trailing_zeros(u32, left)].known))
        left = left & (left - 1)
    forget(address_of(block.order.known))
    free_flags(address_of(block.order.flags))
    free_pages(block.worker.history, address_of(block.order.pages))
    free(block.memory.local_marks)
    block.memory.local_marks = cast(Pointer[u8], 0)


@native
def end_history(worker: Pointer[Worker]) -> None:
    """Forget what a launch did; its findings stay."""
    if worker.checks == 0:
        return
    history = worker.history
    drop_pages(address_of(history.pages))
    free_flags(address_of(history.flags))
    forget(address_of(history.scratch))
    free_items(history.chained)


# Lanes of a warp.


@native
def order_lanes(block: Pointer[Block], base: u32, members: u32, doubt: u64) -> None:
    """Lanes of a warp have met: each knows what the others did before, in `doubt` if that orders no memory."""
    if block.worker.checks == 0:
        return
    lanes: u32 = block.count - base
    if lanes > 32:
        lanes = 32
    is_whole = True
    top: u32 = 0
    scratch = address_of(block.worker.history.scratch)
    scratch.count = 0
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.order.stamp > top:
            top = thread.order.stamp
        if members >> lane & 1 != 0:
            add_copies(scratch, thread)
            tell_all(scratch, address_of(thread.order.known))
        elif thread.status != DONE:
            is_whole = False
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if members >> lane & 1 == 0:
            continue
        if not is_whole:
            tell(scratch, key_of(block.number, THREAD + thread.number), u64(thread.order.stamp))
    for lane in range(lanes):
        if members >> lane & 1 == 0:
            continue
        thread = block.threads + (base + lane)
        pass_on(address_of(thread.order.known), scratch, doubt)
        if doubt != 0:
            tell_of_tensor_memory(address_of(thread.order.known), scratch)
        if not is_whole:
            thread.order.stamp += 1
            continue
        thread.order.stamp = top + 1
        thread.order.converged_stamp = top
        if doubt == 0:
            thread.order.warp_stamp = top


@native
def add_copies(known: Pointer[Knowledge], thread: Pointer[Thread]) -> None:
    """Add which copies a thread knows to be done, if not everyone does."""
    if thread.copies.done > thread.copies.shared:
        tell(known, key_of(thread.block.number, COPIES + thread.number), u64(thread.copies.done))


# Barriers of the block.


@native
def order_arrival(thread: Pointer[Thread], number: u32) -> None:
    """A thread has arrived at a barrier and goes on: what it did until now is handed over when that completes."""
    known = address_of(thread.block.barriers.numbered[number].known)
    hand_over(thread, known, thread.order.stamp)
    add_copies(known, thread)
    thread.order.stamp += 1


@native
def order_barrier(block: Pointer[Block], number: u32) -> None:
    """A barrier has completed: those who waited know what all who arrived did before."""
    if block.worker.checks == 0:
        return
    barrier = block.barriers.numbered + number
    if barrier.waiting == barrier.arrived and barrier.waiting == block.live:
        order_block(block)
    else:
        order_some(block, number)
    barrier.known.count = 0


@native
def order_block(block: Pointer[Block]) -> None:
    """All threads have met that have not exited."""
    top: u32 = 0
    for index in range(block.count):
        thread = block.threads + index
        if thread.order.stamp > top:
            top = thread.order.stamp
        if thread.status == DONE:
            share_exited(thread)
            continue
        if thread.copies.shared < thread.copies.done:
            thread.copies.shared = thread.copies.done
        if thread.order.known.count != 0:
            share(block, address_of(thread.order.known))
    block.order.barrier_stamp = top
    if block.live == block.count:
        block.order.settled_stamp = top
    for index in range(block.count):
        thread = block.threads + index
        if thread.status != DONE:
            thread.order.stamp = top + 1
            thread.order.warp_stamp = top


@native
def share_exited(thread: Pointer[Thread]) -> None:
    """Let all threads know what lanes of its warp know of a thread that has exited."""
    block = thread.block
    first: u32 = thread.number // 32 * 32
    if thread.order.warp_stamp > thread.order.exit_stamp:
        for index in range(first, min(first + 32, block.count)):
            if block.threads[index].status != DONE:
                tell(
                    address_of(block.order.known),
                    key_of(block.number, THREAD + thread.number),
                    u64(thread.order.warp_stamp),
                )
                return


@native
def share(block: Pointer[Block], known: Pointer[Knowledge]) -> None:
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
            known.items[kept].stamp = known.items[index].stamp
            kept += 1
        elif part >= COPIES:
            owner = block.threads + (part - COPIES)
            if u64(owner.copies.shared) < known.items[index].stamp:
                owner.copies.shared = u32(known.items[index].stamp)
    known.count = kept
    tell_all(address_of(block.order.known), known)
    known.count = 0


@native
def order_some(block: Pointer[Block], number: u32) -> None:
    """Some threads have met, and others have arrived and gone on."""
    known = address_of(block.barriers.numbered[number].known)
    for warp in range(block.warps):
        order_warp(block, number, warp * 32, known)
    for index in range(block.count):
        thread = block.threads + index
        if thread.status == AT_BARRIER and thread.waiting.barrier == number:
            tell_all(address_of(thread.order.known), known)


@native
def order_warp(block: Pointer[Block], number: u32, base: u32, known: Pointer[Knowledge]) -> None:
    """Add what the lanes of a warp that wait at a barrier know and did: one fact if it is all of them."""
    lanes: u32 = block.count - base
    if lanes > 32:
        lanes = 32
    is_whole = True
    top: u32 = 0
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.order.stamp > top:
            top = thread.order.stamp
        is_here: boolean = thread.status == AT_BARRIER and thread.waiting.barrier == number
        if not is_here:
            is_whole = False
        if is_here:
            tell_all(known, address_of(thread.order.known))
            add_copies(known, thread)
    for lane in range(lanes):
        thread = block.threads + (base + lane)
        if thread.status == AT_BARRIER and thread.waiting.barrier == number:
            if is_whole:
                tell(known, key_of(block.number, WARP + base // 32), u64(top))
                thread.order.warp_stamp = top
                thread.order.stamp = top + 1
            else:
                tell_of_warp(known, thread, 0)
                if thread.order.converged_stamp > thread.order.warp_stamp:
                    tell(known, key_of(block.number, WARP + base // 32) | COLLECTIVE, u64(thread.order.converged_stamp))
                tell(known, key_of(block.number, THREAD + thread.number), u64(thread.order.stamp))
                thread.order.stamp += 1


# mbarriers.


@native
def begin_phases(thread: Pointer[Thread], block: Pointer[Block], offset: u64) -> None:
    """An mbarrier begins or ends: nothing that happened with the one before it matters."""
    if thread.worker.checks == 0:
        return
    for place in range(2):
        flag = find_flag(address_of(block.order.flags), offset + MBARRIER * (u64(place) + 1))
        if cast(u64, flag) != 0:
            flag.known.count = 0
            flag.near.count = 0


@native
def release_to_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64, order: u32) -> None:
    """A thread arrives at an mbarrier: what it did is handed over when the phase completes, if the scope reaches it.

    What is `.relaxed` hands over what lies before a fence, as far as that reaches (PTX ISA 8.8).
    """
    is_far: boolean = thread.block != block
    if thread.worker.checks == 0 or (is_far and order & IN_CLUSTER == 0):
        return
    is_relaxed: boolean = order & RELAXED_ORDER != 0
    if is_relaxed and (thread.order.fence.cluster if is_far else thread.order.fence.block) == 0:
        return
    flag = flag_at(address_of(block.order.flags), offset + (FAR_ARRIVALS if is_far else u64(MBARRIER)))
    if cast(u64, flag) == 0:
        return
    if is_relaxed:
        fenced = address_of(thread.order.fenced.block)
        if is_far:
            fenced = address_of(thread.order.fenced.cluster)
        tell_all(address_of(flag.known), fenced)
        return
    hand_over(thread, address_of(flag.known), thread.order.stamp)
    add_copies(address_of(flag.known), thread)
    thread.order.stamp += 1


@native
def release_copies(thread: Pointer[Thread], block: Pointer[Block], offset: u64, serial: u32) -> None:
    """An arrival that follows copies: those are handed over, and nothing else that the thread did (PTX ISA 8.9.1.1)."""
    if thread.worker.checks == 0:
        return
    flag = flag_at(address_of(block.order.flags), offset + MBARRIER)
    if cast(u64, flag) != 0:
        tell(address_of(flag.known), key_of(thread.block.number, COPIES + thread.number), u64(serial))


@native
def release_work(block: Pointer[Block], offset: u64, by: u64, number: u32) -> None:
    """Bulk copies that another block, `by`, or this one began are done, up to a number: that much is handed over."""
    if block.worker.checks == 0:
        return
    flag = flag_at(address_of(block.order.flags), offset + MBARRIER)
    if cast(u64, flag) != 0:
        tell(address_of(flag.known), key_of(by, channel_of(block, offset)), u64(number))


@native(inline=True)
def channel_of(block: Pointer[Block], offset: u64) -> u32:
    """The channel of asynchronous work that an mbarrier of a block of the cluster hears of."""
    return PHASES + (block.rank << RANK_IN_CHANNEL) + u32(offset >> 3)


@native
def order_phase(block: Pointer[Block], offset: u64) -> None:
    """A phase has completed: what came with its arrivals can be acquired."""
    if block.worker.checks == 0:
        return
    for place in range(min(block.cluster.count, u32(2))):
        flag = find_flag(address_of(block.order.flags), offset + MBARRIER * (u64(place) + 1))
        if cast(u64, flag) != 0:
            tell_all(address_of(flag.near), address_of(flag.known))
            flag.known.count = 0


@native
def acquire_from_phase(thread: Pointer[Thread], block: Pointer[Block], offset: u64, order: u32) -> None:
    """A thread has seen a phase complete: it knows what those who arrived did before, at once or at its next fence."""
    if thread.worker.checks == 0:
        return
    near = address_of(thread.order.known)
    far = address_of(thread.order.known)
    if order & RELAXED_ORDER != 0:
        near = address_of(thread.order.pending.block)
        far = address_of(thread.order.pending.cluster)
    flag = find_flag(address_of(block.order.flags), offset + MBARRIER)
    if cast(u64, flag) != 0:
        tell_all(near, address_of(flag.near))
    if block.cluster.count == 1 or order & IN_CLUSTER == 0:
        return
    flag = find_flag(address_of(block.order.flags), offset + FAR_ARRIVALS)
    if cast(u64, flag) != 0:
        tell_all(far, address_of(flag.near))


@native
def acquire_tensor_work(thread: Pointer[Thread], block: Pointer[Block], offset: u64) -> None:
    """A thread has seen a phase complete, without acquiring: it knows what work on tensor memory was handed over."""
    if thread.worker.checks == 0 or cast(u64, thread.block.tensor) == 0:
        return
    flag = find_flag(address_of(block.order.flags), offset + MBARRIER)
    if cast(u64, flag) != 0:
        tell_of_tensor_memory(address_of(thread.order.known), address_of(flag.near))


CALLED = (release_to_phase,)
