"""Release and acquire: what a thread knows goes with what it writes to a place, to those who read that (PTX ISA 8.8).

A release hands over what its thread knows, a strong write after a fence what it knew at the fence. A read-modify-write
passes on what it finds and adds its own; any other write replaces it, unless it is by the same thread. An acquire takes
it over at once, a strong read when its thread next passes a fence; `red` returns nothing, and takes nothing over. Both
sides must be in the scope of each other. A `cas` that fails writes nothing (PTX ISA 8.4), yet by the manual's own
pseudo-code it writes the old value back: what it would release is handed over in doubt.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, STORE
from ptxlab.emulate.abi.clocks import Flag, Flags, Knowledge
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import DONE
from ptxlab.emulate.runtime.order.happens_before import companion
from ptxlab.emulate.runtime.order.shadow import (
    ACQUIRE,
    CLUSTER,
    KIND,
    REDUCTION,
    RELEASE,
    SCATTER,
    SIZE,
    UNCHANGED,
    WIDE,
)
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    COLLECTIVE,
    FAILED,
    THREAD,
    WARP,
    forget,
    key_of,
    tell,
    tell_all,
    tell_in_doubt,
)
from ptxlab.native import (
    Pointer,
    address_of,
    append,
    boolean,
    calloc,
    cast,
    free,
    free_items,
    native,
    resize,
    u8,
    u32,
    u64,
)

# How far a block is from a thread.
NEAR = 0
CLOSE = 1
FAR = 2

FIRST_ROOM = 16

# As `isa` names the semantics of a fence; see `access`.
FENCE_ACQUIRE = 3
FENCE_RELEASE = 4
CLUSTER_SCOPE = 2
GPU_SCOPE = 3


@native
def slot_of(flags: Pointer[Flags], address: u64) -> u32:
    """Where the position of a flag stands in the table, or the free slot where it would."""
    mask: u32 = flags.entries.capacity - 1
    at: u32 = u32(u64(address * SCATTER) >> 40) & mask
    while flags.slots[at] != 0 and flags.entries.items[flags.slots[at] - 1].address != address:
        at = (at + 1) & mask
    return at


@native
def find_flag(flags: Pointer[Flags], address: u64) -> Pointer[Flag]:
    """The flag at an address, or null."""
    if flags.entries.count != 0:
        position: u32 = flags.slots[slot_of(flags, address)]
        if position != 0:
            return flags.entries.items + (position - 1)
    return cast(Pointer[Flag], 0)


@native
def flag_at(flags: Pointer[Flags], address: u64) -> Pointer[Flag]:
    """The flag at an address, a new one if there is none; null if there is no memory for it."""
    found = find_flag(flags, address)
    if cast(u64, found) != 0:
        return found
    if flags.entries.count * 2 >= flags.entries.capacity and not grow(flags):
        return found
    slot: u32 = slot_of(flags, address)
    flag = append(flags.entries)
    flag.address = address
    flags.slots[slot] = flags.entries.count
    return flag


@native
def grow(flags: Pointer[Flags]) -> boolean:
    """Make the table larger."""
    room: u32 = flags.entries.capacity * 2
    if room == 0:
        room = FIRST_ROOM
    slots = cast(Pointer[u32], calloc(u64(room), 4))
    if cast(u64, slots) == 0:
        return False
    if not resize(flags.entries, room):
        free(cast(Pointer[u8], slots))
        return False
    free(cast(Pointer[u8], flags.slots))
    flags.slots = slots
    for index in range(flags.entries.count):
        flags.slots[slot_of(flags, flags.entries.items[index].address)] = index + 1
    return True


@native
def free_flags(flags: Pointer[Flags]) -> None:
    for index in range(flags.entries.count):
        forget(address_of(flags.entries.items[index].known))
        forget(address_of(flags.entries.items[index].near))
        forget(address_of(flags.entries.items[index].close))
    free_items(flags.entries)
    free(cast(Pointer[u8], flags.slots))
    flags.slots = cast(Pointer[u32], 0)


@native
def hand_over(thread: Pointer[Thread], known: Pointer[Knowledge], stamp: u32) -> None:
    """Add what a thread knows, and what it did itself up to a stamp."""
    block = thread.block
    tell_of_block(known, block, 0)
    tell_of_warp(known, thread, 0)
    if thread.order.converged_stamp > thread.order.warp_stamp:
        tell(known, key_of(block.number, WARP + thread.number // 32) | COLLECTIVE, u64(thread.order.converged_stamp))
    tell(known, key_of(block.number, THREAD + thread.number), u64(stamp))
    tell_all(known, address_of(thread.order.known))
    tell_all(known, address_of(block.order.known))


@native
def tell_of_block(known: Pointer[Knowledge], block: Pointer[Block], fence: u32) -> None:
    """Add what all threads of a block know that its threads did, as facts behind a `fence` if there is one."""
    tell(known, key_of(block.number, fence), u64(block.order.settled_stamp))
    if block.order.settled_stamp != block.order.barrier_stamp:
        for warp in range(block.warps):
            if has_exited_lanes(block, warp):
                for index in range(32 * warp, min(32 * warp + 32, block.count)):
                    thread = block.threads + index
                    stamp: u32 = thread.order.exit_stamp if thread.status == DONE else block.order.barrier_stamp
                    tell(known, key_of(block.number, fence + THREAD + index), u64(stamp))
            else:
                tell(known, key_of(block.number, fence + WARP + warp), u64(block.order.barrier_stamp))


@native
def tell_of_warp(known: Pointer[Knowledge], thread: Pointer[Thread], fence: u32) -> None:
    """Add what a thread knows that its warp did, as facts behind a `fence` if there is one."""
    block = thread.block
    warp: u32 = thread.number // 32
    if block.live == block.count or not has_exited_lanes(block, warp):
        tell(known, key_of(block.number, fence + WARP + warp), u64(thread.order.warp_stamp))
        return
    for index in range(32 * warp, min(32 * warp + 32, block.count)):
        other = block.threads + index
        stamp: u32 = thread.order.warp_stamp
        if other.status == DONE:
            stamp = min(stamp, other.order.warp_stamp)
        tell(known, key_of(block.number, fence + THREAD + index), u64(stamp))


@native
def has_exited_lanes(block: Pointer[Block], warp: u32) -> boolean:
    """Whether lanes of a warp have exited."""
    for index in range(32 * warp, min(32 * warp + 32, block.count)):  # noqa: SIM110 - native functions have no `any`
        if block.threads[index].status == DONE:
            return True
    return False


@native
def empty(flag: Pointer[Flag]) -> None:
    """Have a flag hand nothing over any more."""
    flag.known.count = 0
    flag.near.count = 0
    flag.close.count = 0


@native
def acquire(thread: Pointer[Thread], flags: Pointer[Flags], address: u64, about: u32) -> None:
    """What an acquire takes over, before anything else: what is released happens before the acquire itself."""
    flag = find_flag(flags, address)
    if cast(u64, flag) == 0 or about & REDUCTION != 0 or not is_in_scope(thread, flag, about):
        return
    if thread.order.acquired_version != flag.version:
        take_over(thread, flag, True)
        thread.order.acquired_version = flag.version
        thread.order.seen_version = flag.version


@native(inline=True)
def is_in_scope(thread: Pointer[Thread], flag: Pointer[Flag], about: u32) -> boolean:
    """Whether an access is morally strong with the last write to a flag."""
    if (flag.last ^ about) & SIZE != 0:
        return False
    distance: u32 = distance_of(thread, u32(flag.writer >> BLOCK_SHIFT))
    return distance == NEAR or flag.last & about & (CLUSTER if distance == CLOSE else WIDE) != 0


@native
def synchronise(thread: Pointer[Thread], flags: Pointer[Flags], address: u64, about: u32) -> None:
    """What a strong access hands over, and what it takes over when its thread next passes a fence."""
    kind: u32 = about & KIND
    own: u64 = key_of(thread.block.number, THREAD + thread.number)
    releases: boolean = about & RELEASE != 0 or (
        thread.order.fence.block != 0 and (kind != LOAD or about & UNCHANGED != 0)
    )
    flag = flag_at(flags, address) if releases else find_flag(flags, address)
    if cast(u64, flag) == 0:
        return
    if kind == STORE:
        if flag.writer != own:
            empty(flag)
    elif is_in_scope(thread, flag, about):
        if about & (ACQUIRE | REDUCTION) == 0 and thread.order.seen_version != flag.version:
            take_over(thread, flag, False)
            thread.order.seen_version = flag.version
    elif kind != LOAD:
        empty(flag)
    if kind == LOAD and not releases:
        return
    thread.worker.history.versions += 1
    if kind != LOAD or flag.version == 0:
        flag.writer = own
        flag.last = about & (WIDE | CLUSTER | SIZE)
    flag.version = thread.worker.history.versions
    doubt: u64 = FAILED if kind == LOAD else u64(0)
    if about & RELEASE != 0:
        known = address_of(flag.known)
        if about & WIDE == 0:
            known = close_to(thread, flag) if about & CLUSTER != 0 else near_to(thread, flag)
        release(thread, known, doubt)
    # A fence hands over as far as both it and the write reach.
    wide: u32 = thread.order.fence.gpu if about & WIDE != 0 else 0
    close: u32 = thread.order.fence.cluster if about & CLUSTER != 0 else 0
    if wide != 0:
        pass_on(address_of(flag.known), address_of(thread.order.fenced.gpu), doubt)
    if close > wide:
        pass_on(close_to(thread, flag), address_of(thread.order.fenced.cluster), doubt)
    if thread.order.fence.block > close:
        pass_on(near_to(thread, flag), address_of(thread.order.fenced.block), doubt)


@native
def release(thread: Pointer[Thread], known: Pointer[Knowledge], doubt: u64) -> None:
    """Add what a thread knows and did until now, in doubt if there is one."""
    if doubt == 0:
        hand_over(thread, known, thread.order.stamp)
    else:
        scratch = address_of(thread.worker.history.scratch)
        scratch.count = 0
        hand_over(thread, scratch, thread.order.stamp)
        tell_in_doubt(known, scratch, doubt)
    thread.order.stamp += 1


@native(inline=True)
def pass_on(known: Pointer[Knowledge], source: Pointer[Knowledge], doubt: u64) -> None:
    """Add all facts of another list, in doubt if there is one."""
    if doubt != 0:
        tell_in_doubt(known, source, doubt)
    else:
        tell_all(known, source)


@native(inline=True)
def distance_of(thread: Pointer[Thread], number: u32) -> u32:
    """How far a block is from a thread: it is its own, of its cluster, or any."""
    if number == u32(thread.block.number):
        return NEAR
    return CLOSE if cast(u64, companion(thread, number)) != 0 else FAR


@native
def close_to(thread: Pointer[Thread], flag: Pointer[Flag]) -> Pointer[Knowledge]:
    """What a flag hands over to the threads of the same cluster only."""
    number: u32 = u32(thread.block.cluster.blocks[0].number)
    if flag.close_block != number:
        flag.close.count = 0
    flag.close_block = number
    return address_of(flag.close)


@native
def near_to(thread: Pointer[Thread], flag: Pointer[Flag]) -> Pointer[Knowledge]:
    """What a flag hands over to the threads of the same block only."""
    number: u32 = u32(thread.block.number)
    if flag.near_block != number:
        flag.near.count = 0
    flag.near_block = number
    return address_of(flag.near)


@native
def take_over(thread: Pointer[Thread], flag: Pointer[Flag], acquires: boolean) -> None:
    """Know what a flag hands over, now or at the next fence."""
    known = address_of(thread.order.known)
    if not acquires:
        distance: u32 = distance_of(thread, u32(flag.writer >> BLOCK_SHIFT))
        known = address_of(thread.order.pending.block)
        if distance == CLOSE:
            known = address_of(thread.order.pending.cluster)
        elif distance == FAR:
            known = address_of(thread.order.pending.gpu)
    tell_all(known, address_of(flag.known))
    if flag.close_block == u32(thread.block.cluster.blocks[0].number):
        tell_all(known, address_of(flag.close))
    if flag.near_block == u32(thread.block.number):
        tell_all(known, address_of(flag.near))


@native
def pass_fence(thread: Pointer[Thread], semantics: u32, scope: u32) -> None:
    """A thread passes a fence."""
    if thread.worker.checks == 0:
        return
    is_close: boolean = scope >= CLUSTER_SCOPE
    is_wide: boolean = scope >= GPU_SCOPE
    if semantics != FENCE_RELEASE:
        tell_all(address_of(thread.order.known), address_of(thread.order.pending.block))
        thread.order.pending.block.count = 0
        if is_close:
            tell_all(address_of(thread.order.known), address_of(thread.order.pending.cluster))
            thread.order.pending.cluster.count = 0
        if is_wide:
            tell_all(address_of(thread.order.known), address_of(thread.order.pending.gpu))
            thread.order.pending.gpu.count = 0
    if semantics != FENCE_ACQUIRE:
        thread.order.fence.block = thread.order.stamp
        hand_over(thread, address_of(thread.order.fenced.block), thread.order.stamp)
        if is_close:
            thread.order.fence.cluster = thread.order.stamp
            tell_all(address_of(thread.order.fenced.cluster), address_of(thread.order.fenced.block))
        if is_wide:
            thread.order.fence.gpu = thread.order.stamp
            tell_all(address_of(thread.order.fenced.gpu), address_of(thread.order.fenced.block))
        thread.order.stamp += 1


CALLED = (pass_fence,)
