"""`wgmma`: products that four warps start together and wait for by groups.

Each warp reads its part of shared memory when it starts a product, which is as early as the rules allow; for the
detectors the bytes are read until a thread has waited for the group. A group is done only when all four warps have
closed it, so that a wait for it waits for the other warps, too.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.faults import BAD_DESCRIPTOR, DIVERGENT_DESCRIPTOR, NO_WARPGROUP, FaultyChunk
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.thread_parts import AT_PRODUCTS
from ptxlab.emulate.abi.tiles import TileRead
from ptxlab.emulate.abi.wgmma import MatrixChunks
from ptxlab.emulate.runtime.asynchronous.async_accesses import end_work, note_shared_work
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.order.k_slices import note_operand
from ptxlab.emulate.runtime.order.tile_layouts import check_layout
from ptxlab.emulate.runtime.order.vector_clocks import PRODUCTS
from ptxlab.emulate.runtime.schedule.quiescence import mixed
from ptxlab.isa.units.descriptor import CHUNK, chunk_offset
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, native, size_of, u8, u32, u64

WARPGROUP = 128  # threads
CHUNK_SIZE = size_of(FaultyChunk)


@native(inline=True)
def first_of_warpgroup(thread: Pointer[Thread]) -> u32:
    """The number of the first thread of a warpgroup; its products are one channel."""
    return thread.number // WARPGROUP * WARPGROUP


@native
def read_matrix(thread: Pointer[Thread], matrix: Pointer[MatrixChunks], instruction: u32) -> None:
    """Inspect all chunks of some rows of a matrix, on behalf of the warp.

    All lanes have the same descriptor, so that the first one inspects for them. Whether they have is known when the
    group is closed: then all of them have been here.
    """
    major: u32 = matrix.major
    kind: u64 = u64(major) | u64(matrix.is_b) << 1 | u64(matrix.bits) << 2
    thread.wgmma.mark = mixed(thread.wgmma.mark, matrix.descriptor ^ kind)
    if thread.lane != 0:
        return
    if first_of_warpgroup(thread) + WARPGROUP > thread.block.count:
        fail(thread, NO_WARPGROUP, instruction, u64(thread.block.count))
        return
    channel: u32 = PRODUCTS + first_of_warpgroup(thread)
    number: u32 = thread.wgmma.group + 1
    tile = TileRead(
        descriptor=matrix.descriptor,
        major=major,
        first=matrix.first,
        lines=matrix.rows,
        chunks=matrix.first_chunk + matrix.chunks,
        is_b=matrix.is_b,
        type=matrix.type,
    )
    check_layout(thread, thread.block, tile, instruction)
    note_operand(thread, tile, instruction)
    for row in range(matrix.first, matrix.first + matrix.rows):
        chunk: u32 = matrix.first_chunk
        while chunk < tile.chunks:
            offset: u64 = chunk_offset(matrix.descriptor, row, chunk, major)
            if offset + CHUNK > thread.memory.shared_size:
                outside = FaultyChunk(
                    descriptor=matrix.descriptor,
                    row=row,
                    chunk=chunk,
                    major=major,
                    is_b=matrix.is_b,
                    bits=matrix.bits,
                )
                fail_chunk(thread, outside, offset, instruction)
                return
            chunk += 1
            if thread.worker.checks == 0:
                continue
            bytes: u32 = CHUNK
            beside: u64 = offset ^ CHUNK
            is_inside: boolean = chunk < tile.chunks and beside + CHUNK <= thread.memory.shared_size
            if is_inside and chunk_offset(matrix.descriptor, row, chunk, major) == beside:
                offset = min(offset, beside)  # two side by side are inspected at once
                bytes = 2 * CHUNK
                chunk += 1
            note_shared_work(thread, thread.block, offset, bytes, LOAD, channel, number, instruction)


@native
def fail_chunk(thread: Pointer[Thread], chunk: FaultyChunk, offset: u64, instruction: u32) -> None:
    """Note a chunk of a matrix that is outside of shared memory."""
    fault = thread.worker.fault
    if fault.kind == 0:
        fault.address = offset
        fault.access = LOAD
        copy_bytes(cast(Pointer[u8], address_of(fault.chunk)), cast(Pointer[u8], chunk), CHUNK_SIZE)
    fail(thread, BAD_DESCRIPTOR, instruction, 0)


@native
def fail_divergent(thread: Pointer[Thread], other: Pointer[Thread], instruction: u32) -> None:
    """Note that two threads of a warpgroup gave different descriptors."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.other_thread = other.number
    fail(thread, DIVERGENT_DESCRIPTOR, instruction, 0)


@native
def compare_products(thread: Pointer[Thread], instruction: u32) -> None:
    """Make sure that a lane gave its products the descriptors of the first one; all are about to close the group."""
    first = thread.block.threads + (thread.number - thread.lane)
    if thread.wgmma.mark != first.wgmma.mark:
        fail_divergent(thread, first, instruction)


@native
def commit_products(thread: Pointer[Thread]) -> None:
    """Close a group."""
    thread.wgmma.closed_mark = thread.wgmma.mark
    thread.wgmma.group += 1
    thread.block.schedule.moves += 1


@native
def wait_for_products(thread: Pointer[Thread], groups: u32, instruction: u32) -> None:
    """Wait until no more than so many of the latest groups are unfinished.

    Warps that have closed as many groups must have given the same descriptors.
    """
    thread.order.products_wait = instruction + 1
    first: u32 = first_of_warpgroup(thread)
    for warp in range(4):
        other = thread.block.threads + (first + 32 * warp)
        if (
            first + WARPGROUP <= thread.block.count
            and other.wgmma.group == thread.wgmma.group
            and other.wgmma.closed_mark != thread.wgmma.closed_mark
        ):
            fail_divergent(thread, other, instruction)
            return
    thread.target.number = u64(thread.wgmma.group) - u64(groups) if thread.wgmma.group > groups else u64(0)
    if not have_finished(thread):
        thread.status = AT_PRODUCTS


@native
def have_finished(thread: Pointer[Thread]) -> boolean:
    """Whether all four warps have closed the groups that a thread waits for; it knows then what they read."""
    if thread.target.number == 0:
        return True
    first: u32 = first_of_warpgroup(thread)
    for warp in range(4):
        if u64(thread.block.threads[first + 32 * warp].wgmma.group) < thread.target.number:
            return False
    end_work(thread, PRODUCTS + first, u32(thread.target.number))
    return True


CALLED = (
    read_matrix,
    compare_products,
    commit_products,
    wait_for_products,
)
