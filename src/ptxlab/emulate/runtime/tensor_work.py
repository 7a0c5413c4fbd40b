"""The tensor core of a block: work that a thread begins, done as late as the rules allow (PTX ISA 9.7.16.10).

They are done in the order in which they were begun, up to the next `tcgen05.commit`, when no thread of the block can go
on without them, or when the block ends. What they read and write is looked at when they begin.
"""

from __future__ import annotations

from ptxlab.emulate.runtime.agents import note_shared_work
from ptxlab.emulate.runtime.clocks import TENSOR_WORK, key_of, tell
from ptxlab.emulate.runtime.flags import flag_at
from ptxlab.emulate.runtime.memory import fail, find_memory, owner_of, realloc
from ptxlab.emulate.runtime.order import MBARRIER
from ptxlab.emulate.runtime.phases import arrive_at_phase, is_barrier
from ptxlab.emulate.runtime.races import note_cluster
from ptxlab.emulate.runtime.shadow import OBJECT, SIZE_SHIFT, STRONG
from ptxlab.emulate.runtime.tensor_before import COPY_IN, PRODUCT
from ptxlab.emulate.runtime.tensor_memory import is_allocated, next_number
from ptxlab.emulate.runtime.tensor_order import note_tensor
from ptxlab.emulate.runtime.warpgroup import fail_descriptor
from ptxlab.emulate.state import (
    ATOMIC,
    BAD_INSTRUCTION_DESCRIPTOR,
    CLUSTER_SPACE,
    LOAD,
    NO_MEMORY,
    OFFSET_MASK,
    RANK_SHIFT,
    STORE,
    Block,
    Hint,
    Thread,
)
from ptxlab.emulate.tensor_state import RECENT, Operation
from ptxlab.isa.descriptor import CHUNK, K_MAJOR, tensor_chunk_offset
from ptxlab.isa.instruction_descriptor import (
    DEPTHS,
    MXF4,
    MXF8F6F4,
    PAIR,
    PLAIN,
    STATIONARY,
    TF32,
    columns_of,
    complain,
    rows_of,
)
from ptxlab.isa.tensor_memory import COLUMNS
from ptxlab.isa.tensor_products import bits_of, each_of, multiply_in_tensor_memory
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, fill_bytes, native, size_of, u8, u32, u64

OPERATION_SIZE = size_of(Operation)
ROOM = 16

# What a piece of work is.
MULTIPLY = 1
COMMIT = 2
COPY = 3

SEVERAL = 1 << 31  # a bit of `blocks` that tells that they are meant

# What else is wrong with an instruction descriptor; the rest is in `isa.instruction_descriptor`.
PACKED_IN_CELLS = 64
ABSOLUTE = 65
NO_MODE = 66
COARSE_MODE = 67
BAD_FACTORS = 68
ROWS_IN_CELLS = 69
NO_PEER = 70


@native
def next_operation(thread: Pointer[Thread], what: u32, instruction: u32) -> Pointer[Operation]:
    """Room for one more piece of work."""
    tensor = thread.block.tensor
    if tensor.operation_count == tensor.operation_room:
        room: u32 = tensor.operation_room * 2 + ROOM
        memory = realloc(cast(Pointer[u8], tensor.operations), u64(room) * OPERATION_SIZE)
        if cast(u64, memory) == 0:
            fail(thread, NO_MEMORY, instruction, 0)
            return cast(Pointer[Operation], 0)
        tensor.operations = cast(Pointer[Operation], memory)
        tensor.operation_room = room
    operation = tensor.operations + tensor.operation_count
    tensor.operation_count += 1
    fill_bytes(cast(Pointer[u8], operation), 0, OPERATION_SIZE)
    operation.what = what
    operation.thread = thread.number
    operation.instruction = instruction
    return operation


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
    reason: u32 = complain(bits, kind, form)
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
    number: u32 = next_number(thread.block.tensor)
    identity: u64 = u64(rows_of(bits, kind) + columns_of(bits)) << 32 | u64(kind | form << 4) << 48
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


@native
def use_operands(
    thread: Pointer[Thread],
    block: Pointer[Block],
    d: u32,
    a: u64,
    a_in_cells: u32,
    b: u64,
    bits: u32,
    kind: u32,
    adds: u32,
    scale_a: u32,
    scale_b: u32,
    factors: u32,
    form: u32,
    number: u32,
    instruction: u32,
) -> boolean:
    """Look at all that a product reads and writes in one block; of a pair, each has half of A, B and D."""
    rows: u32 = rows_of(bits, kind)
    columns: u32 = columns_of(bits)
    if form == PAIR:
        rows = rows // 2
    height: u32 = rows
    width: u32 = columns
    if form != PLAIN:
        height = 128
        width = columns * rows // 128
    if not are_allocated(thread, block, d >> 16, d & 0xFFFF, height, width, ATOMIC, instruction):
        return False
    if a_in_cells != 0:
        held: u32 = DEPTHS[kind] * bits_of(bits >> 7 & 7, kind) // 32
        lanes: u32 = rows if form == PLAIN else u32(128)
        if not use_rows(thread, block, u32(a) >> 16, u32(a) & 0xFFFF, lanes, held, LOAD, number, instruction):
            return False
    elif not read_matrix(thread, block, a, bits >> 15 & 1, rows, kind, 0, number, instruction):
        return False
    own: u32 = columns // 2 if form == PAIR else columns
    if not read_matrix(thread, block, b, bits >> 16 & 1, own, kind, 1, number, instruction):
        return False
    if factors != 0 and not (
        use_factors(thread, scale_a, rows, number, instruction)
        and use_factors(thread, scale_b, columns, number, instruction)
    ):
        return False
    about: u32 = ATOMIC if adds != 0 else STORE
    return use_rows(thread, block, d >> 16, d & 0xFFFF, height, width, about, number, instruction)


@native
def fail_description(thread: Pointer[Thread], reason: u32, bits: u32, kind: u32, instruction: u32) -> None:
    thread.worker.fault.address = u64(bits)
    fail(thread, BAD_INSTRUCTION_DESCRIPTOR, instruction, u64(reason) | u64(kind) << 32)


@native
def are_allocated(
    thread: Pointer[Thread],
    block: Pointer[Block],
    lane: u32,
    column: u32,
    rows: u32,
    columns: u32,
    kind: u32,
    instruction: u32,
) -> boolean:
    """Whether the cells of so many rows are allocated; 64 rows begin at lane 0 or 16 (PTX ISA 9.7.16.10.5)."""
    lanes: u32 = 128 if rows == 128 else u32(112)
    return is_allocated(thread, block, lane, column, lanes, columns, kind, instruction)


@native
def use_rows(
    thread: Pointer[Thread],
    block: Pointer[Block],
    lane: u32,
    column: u32,
    rows: u32,
    columns: u32,
    kind: u32,
    number: u32,
    instruction: u32,
) -> boolean:
    """Look at the cells that the rows of a matrix take; a fault if some are not allocated."""
    if not are_allocated(thread, block, lane, column, rows, columns, kind, instruction):
        return False
    channel: u32 = TENSOR_WORK + thread.number
    if rows == 128:
        note_tensor(thread, block, lane, column, 128, columns, kind, PRODUCT, channel, number, instruction)
        return True
    for part in range(4):
        note_tensor(thread, block, lane + part * 32, column, 16, columns, kind, PRODUCT, channel, number, instruction)
    return True


@native
def use_factors(thread: Pointer[Thread], address: u32, rows: u32, number: u32, instruction: u32) -> boolean:
    """Look at the scale factors of so many rows: they are in all four parts of tensor memory."""
    columns: u32 = (rows + 31) // 32
    lane: u32 = address >> 16
    column: u32 = address & 0xFFFF
    if not is_allocated(thread, thread.block, lane, column, 128, columns, LOAD, instruction):
        return False
    channel: u32 = TENSOR_WORK + thread.number
    note_tensor(thread, thread.block, lane, column, 128, columns, LOAD, PRODUCT, channel, number, instruction)
    return True


@native
def read_matrix(
    thread: Pointer[Thread],
    block: Pointer[Block],
    descriptor: u64,
    major: u32,
    rows: u32,
    kind: u32,
    is_b: u32,
    number: u32,
    instruction: u32,
) -> boolean:
    """Look at all chunks of a matrix in shared memory; a fault if some lie outside, or if the descriptor is none."""
    mode: u32 = u32(descriptor >> 61)
    reason: u32 = 0
    if descriptor >> 52 & 1 != 0:
        reason = ABSOLUTE
    elif mode & 1 != 0 and mode != 1:
        reason = NO_MODE
    elif (mode == 1) != (major != 0 and kind == TF32):
        reason = COARSE_MODE
    if reason != 0:
        fail_description(thread, reason, 0, kind, instruction)
        return False
    each: u32 = each_of(kind)
    lines: u32 = rows
    chunks: u32 = 2
    if major != 0:
        lines = DEPTHS[kind]
        chunks = (rows + each - 1) // each
    channel: u32 = TENSOR_WORK + thread.number
    for row in range(lines):
        for chunk in range(chunks):
            offset: u64 = tensor_chunk_offset(descriptor, row, chunk, major)
            if offset + CHUNK > thread.shared_size:
                about: u32 = major | is_b << 1 | (128 // each) << 2
                fail_descriptor(thread, descriptor, offset, about, row, chunk, instruction)
                return False
            note_shared_work(thread, block, offset, CHUNK, LOAD, channel, number, instruction)
    return True


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
    if descriptor >> 52 & 1 != 0 or mode & 1 != 0:
        fail_description(thread, NO_MODE, 0, 0, instruction)
        return
    if not is_allocated(thread, thread.block, d >> 16, d & 0xFFFF, 128, 4 * chunks, STORE, instruction):
        return
    number: u32 = next_number(thread.block.tensor)
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


# Telling that work is done.


@native
def start_commit(thread: Pointer[Thread], barrier: u64, blocks: u32, instruction: u32) -> None:
    """Have an mbarrier of the cluster hear when this thread's work is done, or (SEVERAL) those of the `blocks`."""
    if blocks == 0 and not has_barrier(thread, barrier, instruction):
        return
    for rank in range(16):
        if blocks >> rank & 1 != 0 and not has_barrier(thread, barrier_in(barrier, rank), instruction):
            return
    if cast(u64, thread.block.tensor) == 0:
        tell_barriers(thread, barrier, blocks, 0, instruction)
        return
    operation = next_operation(thread, COMMIT, instruction)
    if cast(u64, operation) != 0:
        operation.barrier = barrier
        operation.blocks = blocks
        operation.number = thread.block.tensor.begun


@native(inline=True)
def barrier_in(barrier: u64, rank: u32) -> u64:
    """The address at the same place in another block of the cluster."""
    return barrier & OFFSET_MASK | u64(rank + 1) << RANK_SHIFT


@native
def has_barrier(thread: Pointer[Thread], barrier: u64, instruction: u32) -> boolean:
    """Whether there is an mbarrier; a fault otherwise."""
    place = find_memory(thread, barrier, 8, 8, CLUSTER_SPACE, ATOMIC, instruction, cast(Pointer[Hint], 0))
    if cast(u64, place) == 0:
        return False
    if thread.worker.checks != 0:
        note_cluster(thread, barrier, 8, ATOMIC | STRONG | OBJECT | 3 << SIZE_SHIFT, instruction)
    return is_barrier(thread, owner_of(thread, barrier), barrier & OFFSET_MASK, instruction)


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
    """Do the oldest piece of work; what it was."""
    tensor = block.tensor
    operation = tensor.operations
    what: u32 = operation.what
    thread = block.threads + operation.thread
    barrier: u64 = operation.barrier
    blocks: u32 = operation.blocks
    number: u32 = operation.number
    instruction: u32 = operation.instruction
    if what == MULTIPLY and operation.form == PAIR:
        rank: u32 = block.rank & 0xFFFFFFFE
        multiply(operation, block.cluster.blocks[rank], block.cluster.blocks[rank], block.cluster.blocks[rank + 1])
        multiply(operation, block.cluster.blocks[rank + 1], block.cluster.blocks[rank], block.cluster.blocks[rank + 1])
    elif what == MULTIPLY:
        multiply(operation, block, block, block)
    elif what == COPY:
        copy_in(block, operation)
    tensor.operation_count -= 1
    for index in range(tensor.operation_count):
        copy_bytes(
            cast(Pointer[u8], tensor.operations + index),
            cast(Pointer[u8], tensor.operations + (index + 1)),
            OPERATION_SIZE,
        )
    block.moves += 1
    block.worker.deliveries += 1
    if what == COMMIT:
        tell_barriers(thread, barrier, blocks, number, instruction)
    return what


@native
def tell_barriers(thread: Pointer[Thread], barrier: u64, blocks: u32, number: u32, instruction: u32) -> None:
    """Arrive at an mbarrier, or at those of several blocks."""
    if blocks == 0:
        tell_barrier(thread, barrier, number, instruction)
        return
    for rank in range(16):
        if blocks >> rank & 1 != 0:
            tell_barrier(thread, barrier_in(barrier, rank), number, instruction)


@native
def tell_barrier(thread: Pointer[Thread], barrier: u64, number: u32, instruction: u32) -> None:
    """Arrive at an mbarrier: the work of a thread is done, up to a number."""
    to = owner_of(thread, barrier)
    offset: u64 = barrier & OFFSET_MASK
    if thread.worker.checks != 0:
        flag = flag_at(address_of(to.flags), offset + MBARRIER)
        if cast(u64, flag) != 0:
            tell(address_of(flag.known), key_of(thread.block.number, TENSOR_WORK + thread.number), u64(number))
    arrive_at_phase(thread, to, offset, 1, 0, instruction)


@native
def finish_operations(block: Pointer[Block], is_all: u32) -> boolean:
    """Do pieces of work up to one that tells an mbarrier, or all."""
    if cast(u64, block.tensor) == 0 or block.tensor.operation_count == 0:
        return False
    while block.tensor.operation_count != 0:
        if finish_operation(block) == COMMIT and is_all == 0:
            return True
    return True
