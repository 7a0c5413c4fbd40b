"""The log of a run that the host directs step by step: what threads did, by which it knows whether steps commute."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import (
    CLUSTER_SPACE,
    GENERIC_SPACE,
    LOCAL_WINDOW,
    OFFSET_MASK,
    SHARED_SPACE,
    SHARED_WINDOW,
)
from ptxlab.emulate.abi.state import Block, Thread, Worker
from ptxlab.emulate.runtime.memory.memory import owner_of
from ptxlab.emulate.runtime.schedule.teams import leader_of
from ptxlab.native import Pointer, boolean, cast, native, u32, u64, unlikely

# What is logged, after the kinds of accesses.
ARRIVE = 3  # at a barrier of the block or the cluster
OPEN = 4  # a barrier lets the threads continue that wait there
CONVERGE = 5  # lanes of a warp have converged
DELIVER = 6  # an asynchronous operation has completed
SERVICE = 7  # the host did something for the thread
WAIT = 8  # at the barrier of the cluster; or, with 1, it has opened already

CHANGED = 1  # of an access: it changed memory
FAILED = 2  # a compare-and-swap that did not: it only reads, and releases nothing

SHARED_MARK = 1 << 63  # shared memory: the number of the block is above bit 32, the offset below
CLUSTER_BARRIER = 1 << 62  # the barrier of a cluster, by its first block; others by block and number
EVERYONE = 1  # of an arrival: the barrier waits for all threads, so it does not matter which comes first
STAYS = 2  # and the thread waits there


@native(inline=True)
def is_logged(worker: Pointer[Worker]) -> boolean:
    """Whether the host directs this run; others log nothing, and ask this before they call what logs."""
    return unlikely(cast(u64, worker.directed.events) != 0)


@native
def log_access(thread: Pointer[Thread], address: u64, size: u32, kind: u32, space: u32, how: u32) -> None:
    """Log an access that a thread makes; memory that no other thread can name is left out."""
    shared: u64 = address
    if space == GENERIC_SPACE and address >= SHARED_WINDOW:
        if address >= LOCAL_WINDOW:
            return
        shared = address - SHARED_WINDOW
    elif space != SHARED_SPACE and space != CLUSTER_SPACE:
        log(thread.worker, number_of(thread), kind, address, size, how)
        return
    owner = owner_of(thread, shared)
    location: u64 = u64(SHARED_MARK) | owner.number << 32 | shared & OFFSET_MASK
    log(thread.worker, number_of(thread), kind, location, size, how)


@native
def log_service(thread: Pointer[Thread]) -> None:
    """Log that the host does something for a thread, such as printing: it matters which is first."""
    log(thread.worker, number_of(thread), SERVICE, 0, 0, 0)


@native
def log_barrier(thread: Pointer[Thread], kind: u32, barrier: u64, how: u32) -> None:
    """Log an arrival at a barrier, or that it opens."""
    log(thread.worker, number_of(thread), kind, barrier, 0, how)


@native
def log_collective(block: Pointer[Block], base: u32, members: u32) -> None:
    """Log that lanes of a warp have converged."""
    log(block.worker, number_of(block.threads + base), CONVERGE, 0, 0, members)


@native
def log(worker: Pointer[Worker], who: u32, kind: u32, address: u64, size: u32, extra: u32) -> None:
    """Log an event, if the log is not full."""
    worker = leader_of(worker)
    if worker.directed.count < worker.directed.capacity:
        event = worker.directed.events + worker.directed.count
        event.thread = who
        event.kind = kind
        event.address = address
        event.size = size
        event.extra = extra
    worker.directed.count += 1


@native
def number_of(thread: Pointer[Thread]) -> u32:
    """The number of a thread in the grid, or among those of all grids that run together."""
    worker = thread.worker
    block: u32 = u32(thread.block.number - worker.shape.first_block)
    return worker.directed.first_thread + block * thread.block.count + thread.number


CALLED = (
    log_access,
    log_service,
)
