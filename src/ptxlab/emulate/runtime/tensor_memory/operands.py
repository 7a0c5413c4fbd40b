"""What `tcgen05.mma` reads and writes: whether it can, and for the detectors."""

from __future__ import annotations

from ptxlab.emulate.abi.state import ATOMIC, BAD_INSTRUCTION_DESCRIPTOR, LOAD, STORE, Block, Thread
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work
from ptxlab.emulate.runtime.asynchronous.wgmma import fail_descriptor
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.order.tensor_happens_before import PRODUCT
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_WORK
from ptxlab.emulate.runtime.tensor_memory.allocation import is_allocated
from ptxlab.isa.descriptor import CHUNK, tensor_chunk_offset
from ptxlab.isa.instruction_descriptor import DEPTHS, PAIR, PLAIN, TF32, columns_of, rows_of
from ptxlab.isa.tensor_mma import bits_of, each_of
from ptxlab.native import Pointer, boolean, native, u32, u64

# What is wrong with a descriptor of an instruction or a matrix; the rest is in `isa.instruction_descriptor`.
PACKED_IN_CELLS = 64
ABSOLUTE = 65
NO_MODE = 66
COARSE_MODE = 67
BAD_FACTORS = 68
ROWS_IN_CELLS = 69
NO_PEER = 70


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
def wrong_mode(descriptor: u64) -> u32:
    """What is wrong with how a descriptor says that a matrix is laid out; 0: nothing."""
    if descriptor >> 52 & 1 != 0:
        return ABSOLUTE
    mode: u32 = u32(descriptor >> 61)
    return u32(NO_MODE) if mode & 1 != 0 and mode != 1 else u32(0)


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
    reason: u32 = wrong_mode(descriptor)
    if reason == 0 and (mode == 1) != (major != 0 and kind == TF32):
        reason = COARSE_MODE
    if reason != 0:
        fail_description(thread, reason, mode, kind, instruction)
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
