"""`tcgen05.cp`: copies from shared to tensor memory (PTX ISA 9.7.16.9).

Of two blocks, each copies from its own shared memory to its own tensor memory.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, STORE
from ptxlab.emulate.abi.faults import DescriptorReason, FaultyChunk
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import TensorAccess, TensorCopy
from ptxlab.emulate.abi.tiles import TileRead
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work
from ptxlab.emulate.runtime.asynchronous.wgmma import fail_chunk
from ptxlab.emulate.runtime.order.tensor_happens_before import COPY_IN
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.order.tile_layouts import check_layout
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_WORK
from ptxlab.emulate.runtime.tensor_memory.accesses import is_allocated, next_number
from ptxlab.emulate.runtime.tensor_memory.operands import fail_description, wrong_mode
from ptxlab.emulate.runtime.tensor_memory.operations import COPY, next_operation, note_start
from ptxlab.isa.expansion import ELEMENTS, expanded_word
from ptxlab.isa.units.descriptor import CHUNK, K_MAJOR, tensor_chunk_offset
from ptxlab.isa.units.tensor_memory import COLUMNS
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, native, size_of, u8, u32, u64

COPY_SIZE = size_of(TensorCopy)


@native
def start_tensor_copy(thread: Pointer[Thread], copy: Pointer[TensorCopy], instruction: u32) -> None:
    """Start a copy."""
    mode: u32 = u32(copy.descriptor >> 61)
    reason: u32 = wrong_mode(copy.descriptor, 0)
    if reason == 0 and mode == 1:
        reason = DescriptorReason.COARSE_MODE
    if copy.is_pair != 0 and (thread.block.rank | 1) >= thread.block.cluster.count:
        reason = DescriptorReason.NO_PEER
    if reason != 0:
        fail_description(thread, reason, mode, 0, instruction)
        return
    first: u32 = thread.block.rank
    last: u32 = thread.block.rank
    if copy.is_pair != 0:
        first = first & 0xFFFFFFFE
        last = first + 1
    for rank in range(first, last + 1):
        if not are_lanes_allocated(thread, thread.block.cluster.blocks[rank], copy, instruction):
            return
    number: u32 = next_number(thread)
    for rank in range(first, last + 1):
        block = thread.block.cluster.blocks[rank]
        if not read_source(thread, block, copy, number, instruction):
            return
        note_lanes(thread, block, copy, number, instruction)
    operation = next_operation(thread, COPY, instruction)
    if cast(u64, operation) == 0:
        return
    copy_bytes(cast(Pointer[u8], address_of(operation.copy)), cast(Pointer[u8], copy), COPY_SIZE)
    note_start(thread)


@native
def are_lanes_allocated(
    thread: Pointer[Thread], block: Pointer[Block], copy: Pointer[TensorCopy], instruction: u32
) -> boolean:
    """Whether all that a copy writes in a block is allocated; a fault otherwise."""
    extent: u32 = (copy.rows // copy.group - 1) * copy.step + (copy.copies - 1) * copy.stride + copy.group
    written = TensorAccess(
        lane=copy.address >> 16,
        column=copy.address & 0xFFFF,
        lanes=extent,
        columns=4 * copy.chunks,
        kind=STORE,
        operation=COPY_IN,
        channel=0,
        number=0,
    )
    return is_allocated(thread, block, written, instruction)


@native
def note_lanes(
    thread: Pointer[Thread], block: Pointer[Block], copy: Pointer[TensorCopy], number: u32, instruction: u32
) -> None:
    """Inspect what a copy writes in a block."""
    written = TensorAccess(
        lane=0,
        column=copy.address & 0xFFFF,
        lanes=copy.group,
        columns=4 * copy.chunks,
        kind=STORE,
        operation=COPY_IN,
        channel=TENSOR_WORK + thread.number,
        number=number,
    )
    for row in range(0, copy.rows, copy.group):
        for index in range(copy.copies):
            written.lane = lane_of_row(copy, row, index)
            note_tensor(thread, block, written, instruction)


@native(inline=True)
def lane_of_row(copy: Pointer[TensorCopy], row: u32, index: u32) -> u32:
    """The lane of a row, or of one of its copies."""
    return (copy.address >> 16) + row % copy.group + row // copy.group * copy.step + index * copy.stride


@native
def read_source(
    thread: Pointer[Thread], block: Pointer[Block], copy: Pointer[TensorCopy], number: u32, instruction: u32
) -> boolean:
    """Inspect what a copy reads of the shared memory of a block; a fault if some is outside."""
    tile = TileRead(descriptor=copy.descriptor, is_tensor=1, major=K_MAJOR, lines=copy.rows, chunks=copy.chunks)
    check_layout(thread, block, tile, instruction)
    channel: u32 = TENSOR_WORK + thread.number
    for row in range(copy.rows):
        for chunk in range(copy.chunks):
            offset: u64 = tensor_chunk_offset(copy.descriptor, row, chunk, K_MAJOR)
            if offset + CHUNK > block.memory.shared_size:
                outside = FaultyChunk(descriptor=copy.descriptor, row=row, chunk=chunk, major=K_MAJOR, is_b=0, bits=32)
                fail_chunk(thread, outside, offset, instruction)
                return False
            bytes: u32 = ELEMENTS * copy.bits // 8
            note_shared_work(thread, block, offset, bytes, LOAD, channel, number, instruction)
    return True


@native
def copy_in(block: Pointer[Block], copy: Pointer[TensorCopy]) -> None:
    """Copy from shared to tensor memory, in a block or in both of a pair."""
    if copy.is_pair == 0:
        copy_in_block(block, copy)
        return
    rank: u32 = block.rank & 0xFFFFFFFE
    copy_in_block(block.cluster.blocks[rank], copy)
    copy_in_block(block.cluster.blocks[rank + 1], copy)


@native
def copy_in_block(block: Pointer[Block], copy: Pointer[TensorCopy]) -> None:
    """Copy from the shared to the tensor memory of a block."""
    for row in range(copy.rows):
        for chunk in range(copy.chunks):
            offset: u64 = tensor_chunk_offset(copy.descriptor, row, chunk, K_MAJOR)
            bytes = block.memory.shared + offset
            words = cast(Pointer[u32], bytes)
            for index in range(copy.copies):
                lane: u32 = lane_of_row(copy, row, index)
                first: u32 = lane * COLUMNS + (copy.address & 0xFFFF) + 4 * chunk
                for word in range(4):
                    found: u32 = words[word] if copy.bits == 8 else expanded_word(bytes, word, copy.bits)
                    block.tensor.cells[first + word] = found


CALLED = (start_tensor_copy,)
