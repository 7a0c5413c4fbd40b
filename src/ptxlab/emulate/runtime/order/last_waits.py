"""The wait that should have ordered two accesses that race: what an explanation names beside them."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, TENSOR_SPACE
from ptxlab.emulate.abi.barriers import KNOWN_PHASES, RECENT_PHASES, Phase, PhaseRecord
from ptxlab.emulate.abi.clocks import Access
from ptxlab.emulate.abi.findings import Finding
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.asynchronous.mbarrier_notes import notes_on
from ptxlab.emulate.runtime.order.happens_before import companion
from ptxlab.emulate.runtime.order.shadow import ASYNC, COPY, KIND
from ptxlab.emulate.runtime.order.vector_clocks import (
    BULK_READS,
    PHASES,
    PRODUCTS,
    RANK_IN_CHANNEL,
    TENSOR_ISSUED,
    TENSOR_LOADS,
    TENSOR_WORK,
)
from ptxlab.isa.chapters.mbarrier import IN_CLUSTER, RELAXED_ORDER
from ptxlab.native import Pointer, boolean, cast, native, u32, u64

# Why a wait hands nothing over: it is relaxed or of too small a scope, or the arrival that it saw is.
WEAK_WAIT = 1
WEAK_ARRIVAL = 2
OTHER_WAIT = 3  # it need not: it is only the last one of a thread that writes where an MMA of others reads
NEAR_ENOUGH = 4  # added: it hands over within a block


@native
def note_pass(thread: Pointer[Thread], notes: Pointer[Phase]) -> None:
    """A thread has waited on an mbarrier: remember where, and whether that hands anything over."""
    notes.passed_at = thread.waiting.instruction + 1
    notes.passed_phases = notes.completed
    is_far: boolean = notes.arrived_from != thread.block.number
    if is_weak(thread.order.wait_order, is_far):
        thread.order.weak = WEAK_WAIT
        thread.order.weak_at = thread.waiting.instruction
        if thread.order.wait_order & RELAXED_ORDER == 0:
            thread.order.weak = WEAK_WAIT | NEAR_ENOUGH
    elif notes.arrived_order != 0 and is_weak(notes.arrived_order, is_far):
        thread.order.weak = WEAK_ARRIVAL
        thread.order.weak_at = notes.arrived_at
        if notes.arrived_order & RELAXED_ORDER == 0:
            thread.order.weak = WEAK_ARRIVAL | NEAR_ENOUGH


@native
def note_last_wait(thread: Pointer[Thread], other: Pointer[Access], flags: u32, found: Pointer[Finding]) -> None:
    """Add to a race the waits that should have ordered it.

    Of groups: the last one of the thread that started the other operation. On an mbarrier: that of the later access, or
    of one that came too early, on the mbarrier that the asynchronous operation signals, or one that was over at once.
    """
    earlier = thread
    channel: u32 = other.lanes if other.flags & ASYNC != 0 else u32(0)
    if channel >= PHASES and note_own_wait(thread, channel, found):
        return
    home = companion(thread, other.block)
    if cast(u64, home) != 0 and found.other.thread < home.count:
        earlier = home.threads + found.other.thread
        found.wait.groups = group_wait_of(earlier, other)
        if earlier.arrival.arrived != 0 and note_weak_arrival(earlier, other, found):
            return
    if other.block != u32(thread.block.number):
        earlier = thread
    own: u32 = thread.starting.channel if flags & ASYNC != 0 else u32(0)
    if note_own_wait(thread, channel, found):
        return
    if is_signalled(earlier, own, thread.number):
        add_wait(found, earlier)
    elif earlier.order.wait != 0 and earlier.order.wait == earlier.order.early and other.flags & KIND == LOAD:
        add_early_wait(found, earlier)
    elif thread.order.wait != 0 and thread.order.wait == thread.order.early:
        add_wait(found, thread)
    else:
        note_other_wait(thread, other, own, found)


@native
def note_own_wait(thread: Pointer[Thread], channel: u32, found: Pointer[Finding]) -> boolean:
    """Add the wait of the later access on the mbarrier that the earlier operation signals, if there was one."""
    if is_signalled(thread, channel, found.other.thread):
        add_wait(found, thread)
        if thread.order.weak == WEAK_WAIT and thread.order.weak_at == thread.order.wait_at:
            found.wait.weak = WEAK_WAIT
        return True
    if thread.order.early != 0 and channel == channel_of_mbarrier(thread, thread.order.early - 1):
        add_early_wait(found, thread)
        return True
    return False


@native
def note_other_wait(thread: Pointer[Thread], other: Pointer[Access], own: u32, found: Pointer[Finding]) -> None:
    """Add a wait that hands nothing over, or what is known of the mbarrier that one of the operations signals."""
    is_far: boolean = other.block != u32(thread.block.number)
    if thread.order.weak != 0 and (is_far or thread.order.weak & NEAR_ENOUGH == 0):
        found.wait.at = thread.order.weak_at + 1
        found.wait.weak = thread.order.weak & ~u32(NEAR_ENOUGH)
        return
    channel: u32 = other.lanes if other.flags & ASYNC != 0 else own
    if channel >= TENSOR_WORK and channel < TENSOR_ISSUED and other.flags & ASYNC != 0:
        note_commit(thread, other, found)
        return
    is_of_others: boolean = own != 0 or found.other.thread != thread.number
    if is_of_others and thread.order.wait != 0 and channel >= PRODUCTS and channel < TENSOR_LOADS:
        add_wait(found, thread)  # a stage that is filled again: what released it
        if own == 0:
            found.wait.weak = OTHER_WAIT
        return
    home = companion(thread, other.block)
    if channel < PHASES or cast(u64, home) == 0:
        return
    rank: u32 = u32(channel - PHASES) >> RANK_IN_CHANNEL
    if rank >= thread.block.cluster.count:
        return
    block = thread.block.cluster.blocks[rank]
    offset: u64 = u64(channel & ((1 << RANK_IN_CHANNEL) - 1)) << 3
    notes = notes_on(block, offset)
    if notes.is_known == 0 or notes.offset != offset or notes.passed_at == 0:
        return
    found.wait.at = notes.passed_at
    found.mbarrier.offset = offset
    found.mbarrier.phases = notes.passed_phases
    add_phase(found, notes)


@native
def note_commit(thread: Pointer[Thread], other: Pointer[Access], found: Pointer[Finding]) -> None:
    """Add the mbarrier of a thread's block that the first commit after an operation on tensor memory signals."""
    first: u32 = 0
    for index in range(KNOWN_PHASES):
        notes = cast(Pointer[Phase], thread.block.barriers.phases + index)
        is_of_operation: boolean = (
            notes.committed_by == found.other.thread and notes.committed_from == found.other.block
        )
        if notes.is_known == 0 or not is_of_operation or notes.committed < other.epoch:
            continue
        if first == 0 or notes.committed < first:
            first = notes.committed
            found.wait.commit = notes.committed_at + 1
            found.mbarrier.offset = notes.offset


@native
def group_wait_of(starter: Pointer[Thread], access: Pointer[Access]) -> u32:
    """1 + the last wait of a thread for groups of operations like this one; 0 if there was none."""
    if access.flags & COPY == 0:
        return 0
    if access.flags & ASYNC == 0:
        return starter.order.copies_wait
    if access.lanes >= BULK_READS and access.lanes < PRODUCTS:
        return starter.order.bulk_wait
    if access.lanes >= PRODUCTS and access.lanes < TENSOR_LOADS:
        return starter.order.products_wait
    return 0


@native
def note_weak_arrival(earlier: Pointer[Thread], other: Pointer[Access], found: Pointer[Finding]) -> boolean:
    """Add a relaxed arrival at the barrier of the cluster after the other access, if that is what it was."""
    is_async: boolean = found.space == TENSOR_SPACE or other.flags & COPY != 0
    if earlier.arrival.arrived < (earlier.arrival.released if is_async else other.epoch):
        return False
    found.wait.at = earlier.arrival.relaxed_at + 1
    found.wait.weak = WEAK_ARRIVAL
    return True


@native(inline=True)
def is_weak(order: u32, is_far: boolean) -> boolean:
    """Whether an operation on an mbarrier is relaxed, or its scope does not include another block."""
    return order & RELAXED_ORDER != 0 or (is_far and order & IN_CLUSTER == 0)


@native(inline=True)
def channel_of_mbarrier(thread: Pointer[Thread], offset: u64) -> u32:
    """The channel of the copies that signal an mbarrier of a thread's block."""
    return PHASES + (thread.block.rank << RANK_IN_CHANNEL) + u32(offset >> 3)


@native
def is_signalled(waiter: Pointer[Thread], channel: u32, by: u32) -> boolean:
    """Whether the mbarrier that a thread last waited on is signalled by an operation: by its channel, or its thread."""
    if waiter.order.wait == 0 or channel == 0:
        return False
    offset: u64 = waiter.order.wait - 1
    if channel >= PHASES:
        return channel == channel_of_mbarrier(waiter, offset)
    notes = notes_on(waiter.block, offset)
    return notes.is_known != 0 and notes.arrived_at != 0 and notes.arrived_by == by


@native
def add_wait(found: Pointer[Finding], waiter: Pointer[Thread]) -> None:
    """Add the last wait of a thread to a race, and what completed the phase that it saw."""
    found.wait.at = waiter.order.wait_at + 1
    found.mbarrier.offset = waiter.order.wait - 1
    found.mbarrier.phases = waiter.order.wait_phases
    notes = notes_on(waiter.block, found.mbarrier.offset)
    if notes.is_known != 0 and notes.offset == found.mbarrier.offset:
        add_phase(found, notes)


@native
def add_early_wait(found: Pointer[Finding], waiter: Pointer[Thread]) -> None:
    """Add to a race a wait of a thread that was over at once."""
    found.wait.at = waiter.order.early_wait + 1
    found.mbarrier.offset = waiter.order.early - 1
    found.mbarrier.phases = 0


@native
def add_phase(found: Pointer[Finding], notes: Pointer[Phase]) -> None:
    """Add to a race what the last phase of the mbarrier was completed by that a wait has seen."""
    found.mbarrier.initialized = notes.instruction + 1
    if found.mbarrier.phases == 0 or notes.completed >= found.mbarrier.phases + RECENT_PHASES:
        return
    record = cast(Pointer[PhaseRecord], notes.recent + u32(u64(found.mbarrier.phases - 1) % RECENT_PHASES))
    found.mbarrier.arrivals = record.arrived
    found.mbarrier.bytes = record.expected_bytes
    if record.sources[0].count != 0:
        found.mbarrier.completed_by = record.sources[0].instruction + 1
