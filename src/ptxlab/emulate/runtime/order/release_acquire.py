"""Release and acquire: a write carries what its thread knows to the threads that read it (PTX ISA 8.8).

A release hands over what its thread knows, a strong write after a fence what it knew at the fence. A read-modify-write
passes on what it finds and adds its own; any other write replaces it, unless it is by the same thread. An acquire takes
it over at once, a strong read when its thread next passes a fence; `red` returns nothing, and takes nothing over. Both
sides must be in the scope of each other. A `cas` that fails writes nothing (PTX ISA 8.4), yet by the manual's own
pseudo-code it writes the old value back: what it would release is handed over in doubt.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, STORE
from ptxlab.emulate.abi.clocks import SyncVariable, SyncVariables, VectorClock
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import DONE
from ptxlab.emulate.runtime.order.devices import is_abroad, is_in_team
from ptxlab.emulate.runtime.order.fence_order import comes_after_fence, hand_over_fences, take_over_fences
from ptxlab.emulate.runtime.order.happens_before import companion
from ptxlab.emulate.runtime.order.observations import fence_observations
from ptxlab.emulate.runtime.order.shadow import (
    ACQUIRE,
    CLUSTER,
    KIND,
    REDUCTION,
    RELEASE,
    SCATTER,
    SIZE,
    SYSTEM,
    UNCHANGED,
    WIDE,
)
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    COLLECTIVE,
    FAILED,
    THREAD,
    WARP,
    advance,
    forget,
    join,
    join_in_doubt,
    key_of,
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
    unlikely,
)

# How far a block is from a thread.
NEAR = 0
CLOSE = 1
FAR = 2
ABROAD = 3  # it is on another GPU

FIRST_CAPACITY = 16

# As `isa` names the semantics of a fence; see `access`.
FENCE_ACQUIRE = 3
FENCE_RELEASE = 4
FENCE_SC = 6
CLUSTER_SCOPE = 2
GPU_SCOPE = 3
SYSTEM_SCOPE = 4


@native
def slot_of(variables: Pointer[SyncVariables], address: u64) -> u32:
    """Where the position of a variable is in the table, or the free slot where it would be."""
    mask: u32 = variables.entries.capacity - 1
    at: u32 = u32(u64(address * SCATTER) >> 40) & mask
    while variables.slots[at] != 0 and variables.entries.items[variables.slots[at] - 1].address != address:
        at = (at + 1) & mask
    return at


@native
def find_sync_variable(variables: Pointer[SyncVariables], address: u64) -> Pointer[SyncVariable]:
    """The variable at an address, or null."""
    if variables.entries.count != 0:
        position: u32 = variables.slots[slot_of(variables, address)]
        if position != 0:
            return variables.entries.items + (position - 1)
    return cast(Pointer[SyncVariable], 0)


@native
def sync_variable_at(variables: Pointer[SyncVariables], address: u64) -> Pointer[SyncVariable]:
    """The variable at an address, a new one if there is none; null if there is no memory for it."""
    found = find_sync_variable(variables, address)
    if cast(u64, found) != 0:
        return found
    if variables.entries.count * 2 >= variables.entries.capacity and not grow(variables):
        return found
    slot: u32 = slot_of(variables, address)
    variable = append(variables.entries)
    variable.address = address
    variables.slots[slot] = variables.entries.count
    return variable


@native
def grow(variables: Pointer[SyncVariables]) -> boolean:
    """Make the table larger."""
    capacity: u32 = variables.entries.capacity * 2
    if capacity == 0:
        capacity = FIRST_CAPACITY
    slots = cast(Pointer[u32], calloc(u64(capacity), 4))
    if cast(u64, slots) == 0:
        return False
    if not resize(variables.entries, capacity):
        free(cast(Pointer[u8], slots))
        return False
    free(cast(Pointer[u8], variables.slots))
    variables.slots = slots
    for index in range(variables.entries.count):
        variables.slots[slot_of(variables, variables.entries.items[index].address)] = index + 1
    return True


@native
def free_variables(variables: Pointer[SyncVariables]) -> None:
    for index in range(variables.entries.count):
        forget(address_of(variables.entries.items[index].known))
        forget(address_of(variables.entries.items[index].near))
        forget(address_of(variables.entries.items[index].close))
        forget(address_of(variables.entries.items[index].system))
        forget(address_of(variables.entries.items[index].fenced))
        forget(address_of(variables.entries.items[index].fenced_system))
    free_items(variables.entries)
    free(cast(Pointer[u8], variables.slots))
    variables.slots = cast(Pointer[u32], 0)


@native
def hand_over(thread: Pointer[Thread], known: Pointer[VectorClock], epoch: u32) -> None:
    """Add what a thread knows, and what it did itself up to a epoch."""
    block = thread.block
    join_block(known, block, 0)
    join_warp(known, thread, 0)
    if thread.order.converged_epoch > thread.order.warp_epoch:
        advance(known, key_of(block.number, WARP + thread.number // 32) | COLLECTIVE, u64(thread.order.converged_epoch))
    advance(known, key_of(block.number, THREAD + thread.number), u64(epoch))
    join(known, address_of(thread.order.known))
    join(known, address_of(block.order.known))


@native
def join_block(known: Pointer[VectorClock], block: Pointer[Block], fence: u32) -> None:
    """Join what all threads of a block know that its threads did, as entries past a `fence` if there is one."""
    advance(known, key_of(block.number, fence), u64(block.order.settled_epoch))
    if block.order.settled_epoch != block.order.barrier_epoch:
        for warp in range(block.warps):
            if has_exited_lanes(block, warp):
                for index in range(32 * warp, min(32 * warp + 32, block.count)):
                    thread = block.threads + index
                    epoch: u32 = thread.order.exit_epoch if thread.status == DONE else block.order.barrier_epoch
                    advance(known, key_of(block.number, fence + THREAD + index), u64(epoch))
            else:
                advance(known, key_of(block.number, fence + WARP + warp), u64(block.order.barrier_epoch))


@native
def join_warp(known: Pointer[VectorClock], thread: Pointer[Thread], fence: u32) -> None:
    """Join what a thread knows that its warp did, as entries past a `fence` if there is one."""
    block = thread.block
    warp: u32 = thread.number // 32
    if block.live == block.count or not has_exited_lanes(block, warp):
        advance(known, key_of(block.number, fence + WARP + warp), u64(thread.order.warp_epoch))
        return
    for index in range(32 * warp, min(32 * warp + 32, block.count)):
        other = block.threads + index
        epoch: u32 = thread.order.warp_epoch
        if other.status == DONE:
            epoch = min(epoch, other.order.warp_epoch)
        advance(known, key_of(block.number, fence + THREAD + index), u64(epoch))


@native
def has_exited_lanes(block: Pointer[Block], warp: u32) -> boolean:
    """Whether lanes of a warp have exited."""
    for index in range(32 * warp, min(32 * warp + 32, block.count)):  # noqa: SIM110 - native functions have no `any`
        if block.threads[index].status == DONE:
            return True
    return False


@native
def empty(variable: Pointer[SyncVariable]) -> None:
    """Have a variable hand nothing over any more."""
    variable.known.count = 0
    variable.near.count = 0
    variable.close.count = 0
    variable.system.count = 0
    variable.fenced.count = 0
    variable.fenced_system.count = 0


@native
def acquire(thread: Pointer[Thread], variables: Pointer[SyncVariables], address: u64, flags: u32) -> None:
    """What an acquire takes over, before anything else: what is released happens before the acquire itself."""
    variable = find_sync_variable(variables, address)
    if cast(u64, variable) == 0 or flags & REDUCTION != 0 or not is_in_scope(thread, variable, flags):
        return
    if thread.order.acquired_version != variable.version:
        take_over(thread, variable, True)
        thread.order.acquired_version = variable.version
        thread.order.seen_version = variable.version


@native(inline=True)
def is_in_scope(thread: Pointer[Thread], variable: Pointer[SyncVariable], flags: u32) -> boolean:
    """Whether an access is morally strong with the last write to a variable."""
    if (variable.last ^ flags) & SIZE != 0:
        return False
    distance: u32 = distance_of(thread, u32(variable.writer >> BLOCK_SHIFT))
    if unlikely(distance == ABROAD):
        return variable.last & flags & SYSTEM != 0
    return distance == NEAR or variable.last & flags & (CLUSTER if distance == CLOSE else WIDE) != 0


@native
def synchronize(thread: Pointer[Thread], variables: Pointer[SyncVariables], address: u64, flags: u32) -> None:
    """What a strong access hands over, and what it takes over when its thread next passes a fence."""
    kind: u32 = flags & KIND
    own: u64 = key_of(thread.block.number, THREAD + thread.number)
    releases: boolean = flags & RELEASE != 0 or (comes_after_fence(thread) and (kind != LOAD or flags & UNCHANGED != 0))
    variable = sync_variable_at(variables, address) if releases else find_sync_variable(variables, address)
    if cast(u64, variable) == 0:
        return
    if kind == STORE:
        if variable.writer != own:
            empty(variable)
    elif is_in_scope(thread, variable, flags):
        if flags & (ACQUIRE | REDUCTION) == 0 and thread.order.seen_version != variable.version:
            take_over(thread, variable, False)
            thread.order.seen_version = variable.version
    elif kind != LOAD:
        empty(variable)
    if kind == LOAD and not releases:
        return
    thread.worker.history.versions += 1
    if kind != LOAD or variable.version == 0:
        variable.writer = own
        variable.is_released = flags & RELEASE
        variable.last = flags & (WIDE | CLUSTER | SYSTEM | SIZE)
    variable.version = thread.worker.history.versions
    doubt: u64 = FAILED if kind == LOAD else u64(0)
    if flags & RELEASE != 0:
        known = widest_of(thread, variable, flags)
        if flags & WIDE == 0:
            known = close_to(thread, variable) if flags & CLUSTER != 0 else near_to(thread, variable)
        release(thread, known, doubt)
    if kind != LOAD and flags & WIDE != 0:
        hand_over_fences(thread, variable, flags)
    # A fence hands over as far as both it and the write reach.
    system: u32 = thread.order.fence.system if flags & SYSTEM != 0 else 0
    wide: u32 = thread.order.fence.gpu if flags & WIDE != 0 else 0
    close: u32 = thread.order.fence.cluster if flags & CLUSTER != 0 else 0
    if system != 0:
        pass_on(address_of(variable.system), address_of(thread.order.fenced.system), doubt)
    if wide > system:
        pass_on(widest_of(thread, variable, 0), address_of(thread.order.fenced.gpu), doubt)
    if close > wide:
        pass_on(close_to(thread, variable), address_of(thread.order.fenced.cluster), doubt)
    if thread.order.fence.block > close:
        pass_on(near_to(thread, variable), address_of(thread.order.fenced.block), doubt)


@native
def release(thread: Pointer[Thread], known: Pointer[VectorClock], doubt: u64) -> None:
    """Add what a thread knows and did until now, in doubt if there is one."""
    if doubt == 0:
        hand_over(thread, known, thread.order.epoch)
    else:
        scratch = address_of(thread.worker.history.scratch)
        scratch.count = 0
        hand_over(thread, scratch, thread.order.epoch)
        join_in_doubt(known, scratch, doubt)
    thread.order.epoch += 1


@native(inline=True)
def pass_on(known: Pointer[VectorClock], source: Pointer[VectorClock], doubt: u64) -> None:
    """Join another clock, in doubt if there is one."""
    if doubt != 0:
        join_in_doubt(known, source, doubt)
    else:
        join(known, source)


@native(inline=True)
def distance_of(thread: Pointer[Thread], number: u32) -> u32:
    """How far a block is from a thread: it is its own, of its cluster, on its GPU, or any."""
    if number == u32(thread.block.number):
        return NEAR
    if unlikely(is_abroad(thread, number)):
        return ABROAD
    return CLOSE if cast(u64, companion(thread, number)) != 0 else FAR


@native(inline=True)
def widest_of(thread: Pointer[Thread], variable: Pointer[SyncVariable], flags: u32) -> Pointer[VectorClock]:
    """What a variable hands over to all threads of the GPU; where there are several, to all of these if that is far."""
    if not unlikely(is_in_team(thread.worker)):
        return address_of(variable.known)
    if flags & SYSTEM != 0:
        return address_of(variable.system)
    if variable.device != thread.worker.shape.device:
        variable.known.count = 0
        variable.fenced.count = 0
    variable.device = thread.worker.shape.device
    return address_of(variable.known)


@native
def close_to(thread: Pointer[Thread], variable: Pointer[SyncVariable]) -> Pointer[VectorClock]:
    """What a variable hands over to the threads of the same cluster only."""
    number: u32 = u32(thread.block.cluster.blocks[0].number)
    if variable.close_block != number:
        variable.close.count = 0
    variable.close_block = number
    return address_of(variable.close)


@native
def near_to(thread: Pointer[Thread], variable: Pointer[SyncVariable]) -> Pointer[VectorClock]:
    """What a variable hands over to the threads of the same block only."""
    number: u32 = u32(thread.block.number)
    if variable.near_block != number:
        variable.near.count = 0
    variable.near_block = number
    return address_of(variable.near)


@native
def take_over(thread: Pointer[Thread], variable: Pointer[SyncVariable], acquires: boolean) -> None:
    """Know what a variable hands over, now or at the next fence."""
    known = address_of(thread.order.known)
    if not acquires:
        distance: u32 = distance_of(thread, u32(variable.writer >> BLOCK_SHIFT))
        known = address_of(thread.order.pending.block)
        if distance == CLOSE:
            known = address_of(thread.order.pending.cluster)
        elif distance == FAR:
            known = address_of(thread.order.pending.gpu)
        elif distance == ABROAD:
            known = address_of(thread.order.pending.system)
    if unlikely(is_in_team(thread.worker)):
        join(known, address_of(variable.system))
        join(address_of(thread.order.fences.observed_system), address_of(variable.fenced_system))
    if not unlikely(is_in_team(thread.worker)) or variable.device == thread.worker.shape.device:
        join(known, address_of(variable.known))
        join(address_of(thread.order.fences.observed), address_of(variable.fenced))
    if variable.close_block == u32(thread.block.cluster.blocks[0].number):
        join(known, address_of(variable.close))
    if variable.near_block == u32(thread.block.number):
        join(known, address_of(variable.near))


@native
def pass_fence(thread: Pointer[Thread], semantics: u32, scope: u32) -> None:
    """A thread passes a fence."""
    if thread.worker.checks == 0:
        return
    is_close: boolean = scope >= CLUSTER_SCOPE
    is_wide: boolean = scope >= GPU_SCOPE
    is_system: boolean = scope >= SYSTEM_SCOPE and is_in_team(thread.worker)
    if semantics != FENCE_RELEASE:
        fence_observations(thread)
        join(address_of(thread.order.known), address_of(thread.order.pending.block))
        thread.order.pending.block.count = 0
        if is_close:
            join(address_of(thread.order.known), address_of(thread.order.pending.cluster))
            thread.order.pending.cluster.count = 0
        if is_wide:
            join(address_of(thread.order.known), address_of(thread.order.pending.gpu))
            thread.order.pending.gpu.count = 0
            if semantics == FENCE_SC:
                take_over_fences(thread, is_system)
        if is_system:
            join(address_of(thread.order.known), address_of(thread.order.pending.system))
            thread.order.pending.system.count = 0
    if semantics != FENCE_ACQUIRE:
        thread.order.fence.block = thread.order.epoch
        hand_over(thread, address_of(thread.order.fenced.block), thread.order.epoch)
        if is_close:
            thread.order.fence.cluster = thread.order.epoch
            join(address_of(thread.order.fenced.cluster), address_of(thread.order.fenced.block))
        if is_wide:
            thread.order.fence.gpu = thread.order.epoch
            join(address_of(thread.order.fenced.gpu), address_of(thread.order.fenced.block))
            if semantics == FENCE_SC:
                hand_over(thread, address_of(thread.order.fences.passed), thread.order.epoch)
        if is_system:
            thread.order.fence.system = thread.order.epoch
            join(address_of(thread.order.fenced.system), address_of(thread.order.fenced.block))
            if semantics == FENCE_SC:
                hand_over(thread, address_of(thread.order.fences.passed_system), thread.order.epoch)
        thread.order.epoch += 1


CALLED = (pass_fence,)
