"""Release and acquire: what a thread knows goes with what it writes to a place, to those who read that (PTX ISA 8.8).

A release, or a strong write behind a fence, hands over what its thread knows. A read-modify-write passes on what it
finds and adds its own; any other write replaces it, unless it is by the same thread. An acquire takes it over at once,
a strong read when its thread next passes a fence. Both sides must be in the scope of each other.
"""

from __future__ import annotations

from ptxlab.emulate.history import Flag, Flags, Knowledge
from ptxlab.emulate.runtime.before import companion
from ptxlab.emulate.runtime.clocks import BLOCK_SHIFT, THREAD, WARP, forget, key_of, tell, tell_all
from ptxlab.emulate.runtime.memory import calloc, free, realloc
from ptxlab.emulate.runtime.shadow import ACQUIRE, CLUSTER, KIND, RELEASE, SCATTER, WIDE
from ptxlab.emulate.state import LOAD, STORE, Thread
from ptxlab.native import Pointer, address_of, boolean, cast, fill_bytes, native, size_of, u8, u32, u64

# How far a block is from a thread.
NEAR = 0
CLOSE = 1
FAR = 2

FLAG_SIZE = size_of(Flag)
FIRST_ROOM = 16

# As `isa` names the semantics of a fence; see `access`.
FENCE_ACQUIRE = 3
FENCE_RELEASE = 4
CLUSTER_SCOPE = 2
GPU_SCOPE = 3


@native
def slot_of(flags: Pointer[Flags], address: u64) -> u32:
    """Where the position of a flag stands in the table, or the free slot where it would."""
    mask: u32 = flags.room - 1
    at: u32 = u32(u64(address * SCATTER) >> 40) & mask
    while flags.slots[at] != 0 and flags.items[flags.slots[at] - 1].address != address:
        at = (at + 1) & mask
    return at


@native
def find_flag(flags: Pointer[Flags], address: u64) -> Pointer[Flag]:
    """The flag at an address, or null."""
    if flags.count != 0:
        position: u32 = flags.slots[slot_of(flags, address)]
        if position != 0:
            return flags.items + (position - 1)
    return cast(Pointer[Flag], 0)


@native
def flag_at(flags: Pointer[Flags], address: u64) -> Pointer[Flag]:
    """The flag at an address, a new one if there is none; null if there is no memory for it."""
    found = find_flag(flags, address)
    if cast(u64, found) != 0:
        return found
    if flags.count * 2 >= flags.room and not grow(flags):
        return found
    flag = flags.items + flags.count
    fill_bytes(cast(Pointer[u8], flag), 0, FLAG_SIZE)
    flag.address = address
    flags.slots[slot_of(flags, address)] = flags.count + 1
    flags.count += 1
    return flag


@native
def grow(flags: Pointer[Flags]) -> boolean:
    """Make the table larger."""
    room: u32 = flags.room * 2
    if room == 0:
        room = FIRST_ROOM
    items = realloc(cast(Pointer[u8], flags.items), u64(room) * FLAG_SIZE)
    if cast(u64, items) == 0:
        return False
    flags.items = cast(Pointer[Flag], items)
    slots = calloc(u64(room), 4)
    if cast(u64, slots) == 0:
        return False
    free(cast(Pointer[u8], flags.slots))
    flags.slots = cast(Pointer[u32], slots)
    flags.room = room
    for index in range(flags.count):
        flags.slots[slot_of(flags, flags.items[index].address)] = index + 1
    return True


@native
def free_flags(flags: Pointer[Flags]) -> None:
    for index in range(flags.count):
        forget(address_of(flags.items[index].known))
        forget(address_of(flags.items[index].near))
        forget(address_of(flags.items[index].close))
    free(cast(Pointer[u8], flags.items))
    free(cast(Pointer[u8], flags.slots))
    flags.items = cast(Pointer[Flag], 0)
    flags.slots = cast(Pointer[u32], 0)
    flags.count = 0
    flags.room = 0


@native
def hand_over(thread: Pointer[Thread], known: Pointer[Knowledge], stamp: u32) -> None:
    """Add what a thread knows, and what it did itself up to a stamp."""
    block = thread.block
    tell(known, key_of(block.number, 0), u64(block.barrier_stamp))
    tell(known, key_of(block.number, WARP + thread.number // 32), u64(thread.warp_stamp))
    tell(known, key_of(block.number, THREAD + thread.number), u64(stamp))
    tell_all(known, address_of(thread.known))
    tell_all(known, address_of(block.known))


@native
def empty(flag: Pointer[Flag]) -> None:
    """Have a flag hand nothing over any more."""
    flag.known.count = 0
    flag.near.count = 0
    flag.close.count = 0


@native
def synchronise(thread: Pointer[Thread], flags: Pointer[Flags], address: u64, about: u32) -> None:
    """What a strong access hands over and takes over."""
    kind: u32 = about & KIND
    own: u64 = key_of(thread.block.number, THREAD + thread.number)
    releases: boolean = kind != LOAD and (about & RELEASE != 0 or thread.fence != 0)
    flag = flag_at(flags, address) if releases else find_flag(flags, address)
    if cast(u64, flag) == 0:
        return
    distance: u32 = distance_of(thread, u32(flag.writer >> BLOCK_SHIFT))
    is_in_scope: boolean = distance == NEAR or flag.wide & about & (CLUSTER if distance == CLOSE else WIDE) != 0
    if kind == STORE:
        if flag.writer != own:
            empty(flag)
    elif is_in_scope:
        if about & ACQUIRE != 0 and thread.acquired_version != flag.version:
            take_over(thread, flag, distance, True)
            thread.acquired_version = flag.version
            thread.seen_version = flag.version
        elif about & ACQUIRE == 0 and thread.seen_version != flag.version:
            take_over(thread, flag, distance, False)
            thread.seen_version = flag.version
    elif kind != LOAD:
        empty(flag)
    if kind == LOAD:
        return
    thread.worker.history.versions += 1
    flag.version = thread.worker.history.versions
    flag.writer = own
    flag.wide = about & (WIDE | CLUSTER)
    if about & RELEASE != 0 and about & WIDE != 0:
        hand_over(thread, address_of(flag.known), thread.stamp)
    elif about & RELEASE != 0 and about & CLUSTER != 0:
        hand_over_close(thread, flag, thread.stamp)
    elif about & RELEASE != 0:
        hand_over_near(thread, flag, thread.stamp)
    # A fence hands over as far as both it and the write reach.
    wide: u32 = thread.wide_fence if about & WIDE != 0 else 0
    close: u32 = thread.close_fence if about & CLUSTER != 0 else 0
    if wide != 0:
        hand_over(thread, address_of(flag.known), wide)
    if close > wide:
        hand_over_close(thread, flag, close)
    if thread.fence > close:
        hand_over_near(thread, flag, thread.fence)
    if about & RELEASE != 0:
        thread.stamp += 1


@native(inline=True)
def distance_of(thread: Pointer[Thread], number: u32) -> u32:
    """How far a block is from a thread: it is its own, of its cluster, or any."""
    if number == u32(thread.block.number):
        return NEAR
    return CLOSE if cast(u64, companion(thread, number)) != 0 else FAR


@native
def hand_over_close(thread: Pointer[Thread], flag: Pointer[Flag], stamp: u32) -> None:
    """Hand over to the threads of the same cluster only."""
    number: u32 = u32(thread.block.cluster.blocks[0].number)
    if flag.close_block != number:
        flag.close.count = 0
    flag.close_block = number
    hand_over(thread, address_of(flag.close), stamp)


@native
def hand_over_near(thread: Pointer[Thread], flag: Pointer[Flag], stamp: u32) -> None:
    """Hand over to the threads of the same block only."""
    number: u32 = u32(thread.block.number)
    if flag.near_block != number:
        flag.near.count = 0
    flag.near_block = number
    hand_over(thread, address_of(flag.near), stamp)


@native
def take_over(thread: Pointer[Thread], flag: Pointer[Flag], distance: u32, acquires: boolean) -> None:
    """Know what a flag hands over, now or at the next fence."""
    known = address_of(thread.known)
    if not acquires:
        known = address_of(thread.pending)
        if distance == CLOSE:
            known = address_of(thread.close_pending)
        elif distance == FAR:
            known = address_of(thread.far_pending)
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
        tell_all(address_of(thread.known), address_of(thread.pending))
        thread.pending.count = 0
        if is_close:
            tell_all(address_of(thread.known), address_of(thread.close_pending))
            thread.close_pending.count = 0
        if is_wide:
            tell_all(address_of(thread.known), address_of(thread.far_pending))
            thread.far_pending.count = 0
    if semantics != FENCE_ACQUIRE:
        thread.fence = thread.stamp
        if is_close:
            thread.close_fence = thread.stamp
        if is_wide:
            thread.wide_fence = thread.stamp
        thread.stamp += 1
