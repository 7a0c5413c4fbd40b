"""The tensor core of a block: work that a thread begins, done as late as the rules allow (PTX ISA 9.7.16.10).

They are done in the order in which they were begun, up to the next `tcgen05.commit`, when no thread of the block can go
on without them, or when the block ends. What they read and write is looked at when they begin.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import ATOMIC, LOAD, STORE, Block, Thread
from ptxlab.emulate.abi.tensor_memory import RECENT, Operation
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work
from ptxlab.emulate.runtime.asynchronous.wgmma import fail_descriptor
from ptxlab.emulate.runtime.order.tensor_happens_before import COPY_IN
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_WORK
from ptxlab.emulate.runtime.tensor_memory.allocation import is_allocated, next_number
from ptxlab.emulate.runtime.tensor_memory.commits import tell_barriers
from ptxlab.emulate.runtime.tensor_memory.operands import (
    BAD_FACTORS,
    COARSE_MODE,
    NO_PEER,
    PACKED_IN_CELLS,
    ROWS_IN_CELLS,
    fail_description,
    use_operands,
    wrong_mode,
)
from ptxlab.emulate.runtime.tensor_memory.operations import (
    COMMIT,
    COPY,
    MULTIPLY,
    drop_operation,
    next_operation,
    note_start,
)
from ptxlab.isa.descriptor import CHUNK, K_MAJOR, tensor_chunk_offset
from ptxlab.isa.instruction_descriptor import MXF4, MXF8F6F4, PAIR, STATIONARY, columns_of, rows_of, violation_in
from ptxlab.isa.tensor_memory import COLUMNS
from ptxlab.isa.tensor_mma import bits_of, multiply_in_tensor_memory
from ptxlab.native import Pointer, boolean, cast, native, u32, u64

# Products.


@native
def start_product(
    thread: Pointer[Thread],
    d: u32,
    a: u64,
    a_in_cells: u32,
    b: u64,
    bits: u32,
    kind: u32,
    adds: u32,
    scale_d: u32,
    mask: u32,
    second_mask: u32,
    third_mask: u32,
    fourth_mask: u32,
    fifth_mask: u32,
    sixth_mask: u32,
    seventh_mask: u32,
    eighth_mask: u32,
    scale_a: u32,
    scale_b: u32,
    factors: u32,
    form: u32,
    instruction: u32,
) -> None:
    """Begin D = A * B, or D += A * B."""
    reason: u32 = violation_in(bits, kind, form)
    if reason == 0 and form == STATIONARY and a_in_cells != 0 and rows_of(bits, kind) != 128:
        reason = ROWS_IN_CELLS
    if reason == 0 and a_in_cells != 0 and kind != MXF4 and bits_of(bits >> 7 & 7, kind) < 8 and kind < MXF4:
        reason = PACKED_IN_CELLS
    if reason == 0 and kind >= MXF8F6F4:
        last: u32 = (bits >> 29 & 3) + factors
        other: u32 = (bits >> 4 & 3) + factors
        if last > 4 or other > 4:
            reason = BAD_FACTORS
    if reason != 0:
        fail_description(thread, reason, bits, kind, instruction)
        return
    first = thread.block
    second = thread.block
    if form == PAIR:
        rank: u32 = thread.block.rank & 0xFFFFFFFE
        if rank + 1 >= thread.block.cluster.count:
            fail_description(thread, NO_PEER, bits, kind, instruction)
            return
        first = thread.block.cluster.blocks[rank]
        second = thread.block.cluster.blocks[rank + 1]
    if cast(u64, thread.block.tensor) == 0:
        is_allocated(thread, thread.block, d >> 16, d & 0xFFFF, 128, 1, ATOMIC, instruction)
        return
    number: u32 = next_number(thread)
    identity: u64 = (u64(rows_of(bits, kind)) + u64(columns_of(bits))) << 32 | (u64(kind) | u64(form) << 4) << 48
    thread.block.tensor.accumulators[number % RECENT] = u64(d) | identity
    if not use_operands(
        thread, first, d, a, a_in_cells, b, bits, kind, adds, scale_a, scale_b, factors, form, number, instruction
    ):
        return
    if form == PAIR and not use_operands(
        thread, second, d, a, a_in_cells, b, bits, kind, adds, scale_a, scale_b, factors, form, number, instruction
    ):
        return
    operation = next_operation(thread, MULTIPLY, instruction)
    if cast(u64, operation) == 0:
        return
    operation.number = number
    operation.kind = kind
    operation.d = d
    operation.a = a
    operation.a_in_cells = a_in_cells
    operation.b = b
    operation.description = bits
    operation.adds = adds
    operation.scale_d = scale_d
    operation.masks[0] = mask
    operation.masks[1] = second_mask
    operation.masks[2] = third_mask
    operation.masks[3] = fourth_mask
    operation.masks[4] = fifth_mask
    operation.masks[5] = sixth_mask
    operation.masks[6] = seventh_mask
    operation.masks[7] = eighth_mask
    operation.scale_a = scale_a
    operation.scale_b = scale_b
    operation.factors = factors
    operation.form = form
    note_start(thread)


# Copies.


@native
def start_tensor_copy(
    thread: Pointer[Thread],
    d: u32,
    descriptor: u64,
    rows: u32,
    chunks: u32,
    step: u32,
    further: u32,
    copies: u32,
    instruction: u32,
) -> None:
    """Begin to copy rows of chunks of 16 bytes from shared memory, each row to one lane or to several."""
    mode: u32 = u32(descriptor >> 61)
    reason: u32 = wrong_mode(descriptor)
    if reason == 0 and mode == 1:
        reason = COARSE_MODE
    if reason != 0:
        fail_description(thread, reason, mode, 0, instruction)
        return
    if not is_allocated(thread, thread.block, d >> 16, d & 0xFFFF, 128, 4 * chunks, STORE, instruction):
        return
    number: u32 = next_number(thread)
    channel: u32 = TENSOR_WORK + thread.number
    for row in range(rows):
        for chunk in range(chunks):
            offset: u64 = tensor_chunk_offset(descriptor, row, chunk, K_MAJOR)
            if offset + CHUNK > thread.shared_size:
                fail_descriptor(thread, descriptor, offset, 32 << 2, row, chunk, instruction)
                return
            note_shared_work(thread, thread.block, offset, CHUNK, LOAD, channel, number, instruction)
    note_tensor(
        thread, thread.block, d >> 16, d & 0xFFFF, 128, 4 * chunks, STORE, COPY_IN, channel, number, instruction
    )
    operation = next_operation(thread, COPY, instruction)
    if cast(u64, operation) == 0:
        return
    operation.number = number
    operation.d = d
    operation.a = descriptor
    operation.rows = rows
    operation.chunks = chunks
    operation.step = step
    operation.further = further
    operation.copies = copies
    note_start(thread)


@native
def copy_in(block: Pointer[Block], operation: Pointer[Operation]) -> None:
    """Copy from shared to tensor memory."""
    for row in range(operation.rows):
        for chunk in range(operation.chunks):
            offset: u64 = tensor_chunk_offset(operation.a, row, chunk, K_MAJOR)
            words = cast(Pointer[u32], block.shared + offset)
            for copy in range(operation.copies):
                lane: u32 = row % 32 + row // 32 * operation.step + copy * operation.further
                first: u32 = lane * COLUMNS + (operation.d & 0xFFFF) + 4 * chunk
                for word in range(4):
                    block.tensor.cells[first + word] = words[word]


@native
def multiply(
    operation: Pointer[Operation], block: Pointer[Block], first: Pointer[Block], second: Pointer[Block]
) -> None:
    """Do the part of a product that belongs to one block; B is in the first, or half of it in each of two."""
    masks = cast(Pointer[u32], operation.masks)
    if block != first:
        masks = masks + 4
    multiply_in_tensor_memory(
        block.tensor.cells,
        block.shared,
        first.shared,
        second.shared,
        operation.d,
        operation.a,
        operation.b,
        operation.description,
        operation.kind,
        operation.a_in_cells,
        operation.adds,
        operation.scale_d,
        masks,
        operation.scale_a,
        operation.scale_b,
        operation.factors,
        operation.form,
    )


@native
def finish_operation(block: Pointer[Block]) -> u32:
    """Do the oldest operation; what it was."""
    operation = block.tensor.operations.items
    what: u32 = operation.what
    if what == MULTIPLY and operation.form == PAIR:
        rank: u32 = block.rank & 0xFFFFFFFE
        multiply(operation, block.cluster.blocks[rank], block.cluster.blocks[rank], block.cluster.blocks[rank + 1])
        multiply(operation, block.cluster.blocks[rank + 1], block.cluster.blocks[rank], block.cluster.blocks[rank + 1])
    elif what == MULTIPLY:
        multiply(operation, block, block, block)
    elif what == COPY:
        copy_in(block, operation)
    else:
        tell_barriers(block.threads + operation.thread, operation)
    drop_operation(block.tensor)
    block.moves += 1
    block.worker.deliveries += 1
    return what


@native
def finish_operations(block: Pointer[Block], is_all: u32) -> boolean:
    """Do pieces of work up to one that tells an mbarrier, or all."""
    if cast(u64, block.tensor) == 0 or block.tensor.operations.count == 0:
        return False
    while block.tensor.operations.count != 0:
        if finish_operation(block) == COMMIT and is_all == 0:
            return True
    return True
