"""`wgmma`: products that four warps begin together and wait for by groups.

Each warp reads its part of shared memory when it begins a product, which is as early as the rules allow; for the
detectors the bytes are read until somebody has waited for the group. A group is done only when all four warps have
closed it, so that whoever waits for it waits for the other warps, too.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import AT_PRODUCTS, BAD_DESCRIPTOR, DIVERGENT_DESCRIPTOR, LOAD, NO_WARPGROUP, Thread
from ptxlab.emulate.runtime.asynchronous.async_accesses import end_work, note_shared_work
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.order.vector_clocks import PRODUCTS
from ptxlab.emulate.runtime.schedule.quiescence import mixed
from ptxlab.isa.descriptor import CHUNK, chunk_offset
from ptxlab.native import Pointer, boolean, native, u32, u64

WARPGROUP = 128  # threads


@native(inline=True)
def first_of_warpgroup(thread: Pointer[Thread]) -> u32:
    """The number of the first thread of a warpgroup; its products are one channel."""
    return thread.number // WARPGROUP * WARPGROUP


@native
def read_matrix(
    thread: Pointer[Thread],
    descriptor: u64,
    about: u32,
    first: u32,
    rows: u32,
    first_chunk: u32,
    chunks: u32,
    instruction: u32,
) -> None:
    """Look at all chunks of some rows of a matrix, on behalf of the warp; `about` has the major in its lowest bit.

    All lanes have the same descriptor, so that the first one looks for them. Whether they have is known when the group
    is closed: then all of them have been here.
    """
    thread.product_mark = mixed(thread.product_mark, descriptor ^ u64(about))
    if thread.lane != 0:
        return
    if first_of_warpgroup(thread) + WARPGROUP > thread.block.count:
        fail(thread, NO_WARPGROUP, instruction, u64(thread.block.count))
        return
    channel: u32 = PRODUCTS + first_of_warpgroup(thread)
    number: u32 = thread.product_group + 1
    for row in range(first, first + rows):
        for chunk in range(first_chunk, first_chunk + chunks):
            offset: u64 = chunk_offset(descriptor, row, chunk, about & 1)
            if offset + CHUNK > thread.shared_size:
                fail_descriptor(thread, descriptor, offset, about, row, chunk, instruction)
                return
            if thread.worker.checks != 0:
                note_shared_work(thread, thread.block, offset, CHUNK, LOAD, channel, number, instruction)


@native
def fail_descriptor(
    thread: Pointer[Thread], descriptor: u64, offset: u64, about: u32, row: u32, chunk: u32, instruction: u32
) -> None:
    """Note a chunk that lies outside of shared memory."""
    fault = thread.worker.fault
    if fault.kind == 0:
        fault.address = offset
        fault.size = u64(row) | u64(chunk) << 16 | u64(about) << 32
        fault.access = LOAD
    fail(thread, BAD_DESCRIPTOR, instruction, descriptor)


@native
def compare_products(thread: Pointer[Thread], instruction: u32) -> None:
    """Make sure that a lane gave its products the descriptors of the first one; all are about to close the group."""
    first = thread.block.threads + (thread.number - thread.lane)
    if thread.product_mark != first.product_mark:
        fail(thread, DIVERGENT_DESCRIPTOR, instruction, u64(first.number))


@native
def commit_products(thread: Pointer[Thread]) -> None:
    """Close a group."""
    thread.closed_mark = thread.product_mark
    thread.product_group += 1
    thread.block.moves += 1


@native
def wait_for_products(thread: Pointer[Thread], groups: u32, instruction: u32) -> None:
    """Wait until no more than so many of the latest groups are unfinished.

    Warps that have closed as many groups must have given the same descriptors.
    """
    first: u32 = first_of_warpgroup(thread)
    for warp in range(4):
        other = thread.block.threads + (first + 32 * warp)
        if (
            first + WARPGROUP <= thread.block.count
            and other.product_group == thread.product_group
            and other.closed_mark != thread.closed_mark
        ):
            fail(thread, DIVERGENT_DESCRIPTOR, instruction, u64(other.number))
            return
    thread.waits_for = u64(thread.product_group) - u64(groups) if thread.product_group > groups else u64(0)
    if not have_finished(thread):
        thread.status = AT_PRODUCTS


@native
def have_finished(thread: Pointer[Thread]) -> boolean:
    """Whether all four warps have closed the groups that a thread waits for; it knows then what they read."""
    if thread.waits_for == 0:
        return True
    first: u32 = first_of_warpgroup(thread)
    for warp in range(4):
        if u64(thread.block.threads[first + 32 * warp].product_group) < thread.waits_for:
            return False
    end_work(thread, PRODUCTS + first, u32(thread.waits_for))
    return True
