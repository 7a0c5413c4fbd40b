"""`tcgen05.cp`: copies from shared to tensor memory (PTX ISA 9.7.16.9)."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, STORE
from ptxlab.emulate.abi.faults import DescriptorReason, FaultyChunk
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import TensorAccess, TensorCopy
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work
from ptxlab.emulate.runtime.asynchronous.wgmma import fail_chunk
from ptxlab.emulate.runtime.order.tensor_happens_before import COPY_IN
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_WORK
from ptxlab.emulate.runtime.tensor_memory.accesses import is_allocated, next_number
from ptxlab.emulate.runtime.tensor_memory.operands import fail_description, wrong_mode
from ptxlab.emulate.runtime.tensor_memory.operations import COPY, next_operation, note_start
from ptxlab.isa.descriptor import CHUNK, K_MAJOR, tensor_chunk_offset
from ptxlab.isa.tensor_memory import COLUMNS
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, native, size_of, u8, u32, u64

COPY_SIZE = size_of(TensorCopy)


@native
def start_tensor_copy(thread: Pointer[Thread], copy: Pointer[TensorCopy], instruction: u32) -> None:
    """Start a copy."""
    mode: u32 = u32(copy.descriptor >> 61)
    reason: u32 = wrong_mode(copy.descriptor)
    if reason == 0 and mode == 1:
        reason = DescriptorReason.COARSE_MODE
    if reason != 0:
        fail_description(thread, reason, mode, 0, instruction)
        return
    written = TensorAccess(
        lane=copy.address >> 16,
        column=copy.address & 0xFFFF,
        lanes=128,
        columns=4 * copy.chunks,
        kind=STORE,
        operation=COPY_IN,
        channel=TENSOR_WORK + thread.number,
        number=0,
    )
    if not is_allocated(thread, thread.block, written, instruction):
        return
    written.number = next_number(thread)
    if not read_source(thread, copy, written.number, instruction):
        return
    note_tensor(thread, thread.block, written, instruction)
    operation = next_operation(thread, COPY, instruction)
    if cast(u64, operation) == 0:
        return
    copy_bytes(cast(Pointer[u8], address_of(operation.copy)), cast(Pointer[u8], copy), COPY_SIZE)
    note_start(thread)


@native
def read_source(thread: Pointer[Thread], copy: Pointer[TensorCopy], number: u32, instruction: u32) -> boolean:
    """Inspect what a copy reads of shared memory; a fault if some is outside."""
    channel: u32 = TENSOR_WORK + thread.number
    for row in range(copy.rows):
        for chunk in range(copy.chunks):
            offset: u64 = tensor_chunk_offset(copy.descriptor, row, chunk, K_MAJOR)
            if offset + CHUNK > thread.memory.shared_size:
                outside = FaultyChunk(descriptor=copy.descriptor, row=row, chunk=chunk, major=K_MAJOR, is_b=0, bits=32)
                fail_chunk(thread, outside, offset, instruction)
                return False
            note_shared_work(thread, thread.block, offset, CHUNK, LOAD, channel, number, instruction)
    return True


@native
def copy_in(block: Pointer[Block], copy: Pointer[TensorCopy]) -> None:
    """Copy from shared to tensor memory."""
    for row in range(copy.rows):
        for chunk in range(copy.chunks):
            offset: u64 = tensor_chunk_offset(copy.descriptor, row, chunk, K_MAJOR)
            words = cast(Pointer[u32], block.memory.shared + offset)
            for index in range(copy.copies):
                lane: u32 = row % 32 + row // 32 * copy.step + index * copy.stride
                first: u32 = lane * COLUMNS + (copy.address & 0xFFFF) + 4 * chunk
                for word in range(4):
                    block.tensor.cells[first + word] = words[word]


CALLED = (start_tensor_copy,)
