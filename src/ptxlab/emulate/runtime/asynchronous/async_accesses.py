"""What asynchronous operations do to memory, as the detectors see it: bulk copies, matrix products on shared memory.

A piece of work starts when its thread says so, and so do its accesses: whatever comes before must be over by then, and
seen by the asynchronous proxy. They end when a thread waits for its channel; see `vector_clocks`.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import ATOMIC, CLUSTER_SPACE, GLOBAL_SPACE, LOAD, SHARED_SPACE
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.runtime.memory.block_lifetime import has_started
from ptxlab.emulate.runtime.memory.memory import in_block
from ptxlab.emulate.runtime.order.devices import in_history
from ptxlab.emulate.runtime.order.early_waits import note_early_read
from ptxlab.emulate.runtime.order.races import note
from ptxlab.emulate.runtime.order.reports import report_start
from ptxlab.emulate.runtime.order.shadow import (
    ANY_PROXY,
    ASYNC,
    CLUSTER,
    COPY,
    GENERIC,
    KIND,
    OBJECT,
    SIZE_SHIFT,
    STRONG,
    WIDE,
)
from ptxlab.emulate.runtime.order.vector_clocks import advance, key_of
from ptxlab.native import Pointer, address_of, native, u32, u64, unlikely


@native
def note_shared_work(
    thread: Pointer[Thread],
    block: Pointer[Block],
    offset: u64,
    bytes: u32,
    flags: u32,
    channel: u32,
    number: u32,
    instruction: u32,
) -> None:
    """Check an access to shared memory of `block` by operation `number` of a channel of this thread's block.

    `flags` is LOAD or STORE (or ATOMIC, with what else `shadow` has on it).
    """
    if thread.worker.checks == 0:
        return
    thread.starting.channel = channel
    thread.starting.number = number
    if unlikely(thread.order.early != 0) and flags & (KIND | OBJECT) == LOAD and block == thread.block:
        note_early_read(thread, offset, instruction)
    flags = flags | COPY | ASYNC | WIDE | CLUSTER
    address: u64 = offset
    space: u32 = SHARED_SPACE
    if block != thread.block:
        address = in_block(offset, block.rank)
        space = CLUSTER_SPACE
    note(
        thread,
        address_of(block.order.pages),
        address_of(block.order.variables),
        address,
        bytes,
        flags,
        instruction,
        space,
    )


@native
def note_signal(
    thread: Pointer[Thread], block: Pointer[Block], offset: u64, channel: u32, number: u32, instruction: u32
) -> None:
    """Inspect what an operation does to the mbarrier of `block` that it signals: it is done with the operation."""
    if thread.worker.checks == 0:
        return
    flags: u32 = ATOMIC | STRONG | OBJECT | GENERIC | ANY_PROXY | 3 << SIZE_SHIFT
    if block != thread.block and not has_started(thread, block):
        report_start(thread, in_block(offset, block.rank), 8, flags, instruction)
    note_shared_work(thread, block, offset, 8, flags, channel, number, instruction)


@native
def note_global_work(
    thread: Pointer[Thread], address: u64, bytes: u32, flags: u32, channel: u32, number: u32, instruction: u32
) -> None:
    """Check an access to global memory by operation `number` of a channel of this thread's block."""
    if thread.worker.checks == 0:
        return
    address = in_history(thread, address)
    history = thread.worker.history
    thread.starting.channel = channel
    thread.starting.number = number
    flags = flags | COPY | ASYNC | WIDE | CLUSTER
    note(
        thread,
        address_of(history.pages),
        address_of(history.variables),
        address,
        bytes,
        flags,
        instruction,
        GLOBAL_SPACE,
    )


@native
def end_work(thread: Pointer[Thread], channel: u32, number: u32) -> None:
    """A thread has waited for its work: it knows that all of that channel up to `number` is done."""
    if thread.worker.checks != 0:
        advance(address_of(thread.order.known), key_of(thread.block.number, channel), u64(number))
