"""What `tcgen05.mma` reads and writes: whether it can, and for the detectors."""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.emulate.abi.address_spaces import ATOMIC, LOAD, STORE
from ptxlab.emulate.abi.faults import BAD_INSTRUCTION_DESCRIPTOR, DescriptorReason, FaultyChunk
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import TensorAccess
from ptxlab.emulate.abi.tiles import TileRead
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_shared_work
from ptxlab.emulate.runtime.asynchronous.wgmma import fail_chunk
from ptxlab.emulate.runtime.memory.memory import fail_because
from ptxlab.emulate.runtime.order.k_slices import compare_slices, note_slice
from ptxlab.emulate.runtime.order.tensor_happens_before import PRODUCT
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.order.tile_layouts import check_layout, check_shared
from ptxlab.emulate.runtime.order.unread_accumulators import check_unread
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_WORK
from ptxlab.emulate.runtime.schedule.quiescence import mixed
from ptxlab.emulate.runtime.tensor_memory.accesses import is_allocated
from ptxlab.emulate.runtime.tensor_memory.scale_factors import are_factors_apart, use_factors
from ptxlab.isa.units.descriptor import ABSOLUTE, CHUNK, tensor_chunk_offset
from ptxlab.isa.units.instruction_descriptor import (
    F16,
    LONG,
    PAIR,
    TF32,
    columns_of,
    depth_of,
    rows_of,
    stored_depth_of,
)
from ptxlab.isa.units.tensor_map import BF16 as BF16_ELEMENTS
from ptxlab.isa.units.tensor_map import F16 as F16_ELEMENTS
from ptxlab.isa.units.tensor_map import F32 as F32_ELEMENTS
from ptxlab.isa.units.tensor_matrix import each_of
from ptxlab.isa.units.tensor_sparsity import metadata_address, metadata_columns
from ptxlab.isa.units.tensor_tile import TensorMma, width_of
from ptxlab.isa.units.zero_column_mask import shift_of
from ptxlab.native import Pointer, boolean, cast, native, struct, u32, u64

COLUMNS_OF_A = 8  # that rows of A take in tensor memory


@struct
@dataclass
class MatrixRead:
    """A matrix in shared memory that an MMA reads."""

    descriptor: u64 = 0
    major: u32 = 0
    rows: u32 = 0
    depth: u32 = 0  # columns of A that are stored, or rows of B
    kind: u32 = 0  # of the MMA, see `isa.units.instruction_descriptor`
    is_b: u32 = 0  # whether it is B, and not A
    number: u32 = 0  # of the MMA among the operations of its block
    type: u32 = 0  # of its elements, see `mapped_type`
    unused: u32 = 0


@native
def use_operands(
    thread: Pointer[Thread], block: Pointer[Block], mma: Pointer[TensorMma], number: u32, instruction: u32
) -> boolean:
    """Inspect all that an MMA reads and writes in one block; of a pair, each has half of A, B and D."""
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    rows: u32 = rows_of(bits, kind)
    columns: u32 = columns_of(bits)
    own: u32 = columns + shift_of(mma.zero_columns)
    if mma.form == PAIR:
        rows = rows // 2
        own = columns // 2
    width: u32 = width_of(rows, columns, mma.form, mma.is_sparse)
    d = TensorAccess(
        lane=mma.d >> 16,
        column=mma.d & 0xFFFF,
        lanes=rows if width == columns else u32(128),
        columns=width,
        kind=ATOMIC,
        operation=PRODUCT,
        channel=TENSOR_WORK + thread.number,
        number=number,
    )
    if not are_allocated(thread, block, d, instruction):
        return False
    depth: u32 = depth_of(bits, kind, mma.is_sparse)
    b = MatrixRead(
        descriptor=mma.b,
        major=bits >> 16 & 1,
        rows=own,
        depth=depth,
        kind=kind,
        is_b=1,
        number=number,
        type=mapped_type(kind, bits >> 10 & 7),
    )
    if mma.a_in_tensor_memory != 0:
        if not read_rows(thread, block, d, u32(mma.a), COLUMNS_OF_A, instruction):
            return False
    else:
        a = MatrixRead(
            descriptor=mma.a,
            major=bits >> 15 & 1,
            rows=rows,
            depth=stored_depth_of(bits, kind),
            kind=kind,
            number=number,
            type=mapped_type(kind, bits >> 7 & 7),
        )
        if not read_matrix(thread, block, a, instruction):
            return False
        compare_matrices(thread, a, b, instruction)
    if not read_matrix(thread, block, b, instruction):
        return False
    if mma.is_sparse != 0 and not read_rows(
        thread, block, d, metadata_address(mma.metadata, bits, kind), metadata_columns(kind), instruction
    ):
        return False
    if mma.scale_factors != 0 and not (
        are_factors_apart(thread, mma, d, instruction)
        and use_factors(thread, block, mma, False, number, instruction)
        and use_factors(thread, block, mma, True, number, instruction)
    ):
        return False
    d.kind = u32(ATOMIC) if mma.accumulate != 0 else u32(STORE)
    if has_disabled_lanes(mma):
        block.tensor.is_masked = 1
    if mma.accumulate == 0:
        check_unread(thread, block, d, instruction)
    return use_rows(thread, block, d, instruction)


@native
def has_disabled_lanes(mma: Pointer[TensorMma]) -> boolean:
    """Whether an MMA leaves lanes of D as they are."""
    lanes: u32 = 0
    for index in range(8):
        lanes = lanes | mma.disabled_lanes[index]
    return lanes != 0


@native
def read_rows(
    thread: Pointer[Thread], block: Pointer[Block], d: TensorAccess, address: u32, columns: u32, instruction: u32
) -> boolean:
    """Inspect what an MMA reads at an address of tensor memory, in as many lanes as it writes `d`."""
    read = TensorAccess(
        lane=address >> 16,
        column=address & 0xFFFF,
        lanes=d.lanes,
        columns=columns,
        kind=LOAD,
        operation=PRODUCT,
        channel=d.channel,
        number=d.number,
    )
    return use_rows(thread, block, read, instruction)


@native
def fail_description(thread: Pointer[Thread], reason: u32, bits: u32, kind: u32, instruction: u32) -> None:
    """Note what is wrong with a descriptor: a `DescriptorReason`, or one of `isa.units.instruction_descriptor`."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.mma_kind = kind
    fail_because(thread, BAD_INSTRUCTION_DESCRIPTOR, reason, instruction, u64(bits))


@native
def are_allocated(thread: Pointer[Thread], block: Pointer[Block], rows: TensorAccess, instruction: u32) -> boolean:
    """Whether the cells of so many rows are allocated; 64 rows start at lane 0 or 16 (PTX ISA 9.7.16.10.5)."""
    lanes: u32 = rows.lanes
    rows.lanes = 128 if lanes == 128 else 112
    found: boolean = is_allocated(thread, block, rows, instruction)
    rows.lanes = lanes
    return found


@native
def use_rows(thread: Pointer[Thread], block: Pointer[Block], rows: TensorAccess, instruction: u32) -> boolean:
    """Inspect the cells that so many rows of a matrix take; a fault if some are not allocated."""
    if not are_allocated(thread, block, rows, instruction):
        return False
    if rows.lanes == 128:
        note_tensor(thread, block, rows, instruction)
        return True
    rows.lanes = 16
    for _ in range(4):
        note_tensor(thread, block, rows, instruction)
        rows.lane += 32
    return True


@native
def wrong_mode(descriptor: u64, depth: u32) -> u32:
    """What is wrong with how a descriptor says that a matrix is laid out, of `depth` columns; 0: nothing."""
    if descriptor & ABSOLUTE != 0 and depth != LONG:
        return DescriptorReason.ABSOLUTE
    mode: u32 = u32(descriptor >> 61)
    return u32(DescriptorReason.NO_MODE) if mode & 1 != 0 and mode != 1 else u32(0)


@native
def describe(tile: TileRead, read: MatrixRead) -> None:
    """Say of a tile which matrix it is, and how many lines of chunks that has."""
    each: u32 = each_of(read.kind)
    tile.descriptor = read.descriptor
    tile.major = read.major
    tile.is_b = read.is_b
    tile.type = read.type
    tile.lines = read.rows
    tile.chunks = read.depth // each
    if read.major != 0:
        tile.lines = read.depth
        tile.chunks = (read.rows + each - 1) // each


@native
def mapped_type(kind: u32, code: u32) -> u32:
    """The type that a tensor map has for elements of a kind, by their number in a descriptor; 0: any may do."""
    if kind == F16:
        return BF16_ELEMENTS if code != 0 else u32(F16_ELEMENTS)
    return F32_ELEMENTS if kind == TF32 else u32(0)


@native
def compare_matrices(thread: Pointer[Thread], a: MatrixRead, b: MatrixRead, instruction: u32) -> None:
    """Inspect whether A and B are apart."""
    left = TileRead(is_tensor=1)
    describe(left, a)
    right = TileRead(is_tensor=1)
    describe(right, b)
    check_shared(thread, left, right, instruction)
    if thread.worker.checks != 0:
        compare_slices(thread, thread.block, left, right, instruction)


@native
def read_matrix(thread: Pointer[Thread], block: Pointer[Block], read: MatrixRead, instruction: u32) -> boolean:
    """Inspect all chunks of a matrix in shared memory; a fault if some are outside, or if the descriptor is not one."""
    mode: u32 = u32(read.descriptor >> 61)
    reason: u32 = wrong_mode(read.descriptor, read.depth)
    if reason == 0 and (mode == 1) != (read.major != 0 and read.kind == TF32):
        reason = DescriptorReason.COARSE_MODE
    if reason != 0:
        fail_description(thread, reason, mode, read.kind, instruction)
        return False
    each: u32 = each_of(read.kind)
    tile = TileRead(is_tensor=1)
    describe(tile, read)
    check_layout(thread, block, tile, instruction)
    if thread.worker.checks != 0:
        note_slice(block, tile, instruction)
    channel: u32 = TENSOR_WORK + thread.number
    for row in range(tile.lines):
        chunk: u32 = 0
        while chunk < tile.chunks:
            offset: u64 = tensor_chunk_offset(read.descriptor, row, chunk, read.major)
            if offset + CHUNK > thread.memory.shared_size:
                outside = FaultyChunk(
                    descriptor=read.descriptor,
                    row=row,
                    chunk=chunk,
                    major=read.major,
                    is_b=read.is_b,
                    bits=128 // each,
                )
                fail_chunk(thread, outside, offset, instruction)
                return False
            chunk += 1
            bytes: u32 = CHUNK
            beside: u64 = offset ^ CHUNK
            is_inside: boolean = chunk < tile.chunks and beside + CHUNK <= thread.memory.shared_size
            if is_inside and tensor_chunk_offset(read.descriptor, row, chunk, read.major) == beside:
                offset = min(offset, beside)  # two side by side are inspected at once
                bytes = 2 * CHUNK
                chunk += 1
            note_shared_work(thread, block, offset, bytes, LOAD, channel, read.number, instruction)
    return True


@native
def contents_of(block: Pointer[Block], read: MatrixRead) -> u64:
    """A mark of the elements of a matrix in shared memory, which was inspected: as good as never equal for others."""
    tile = TileRead(is_tensor=1)
    describe(tile, read)
    mark: u64 = 0
    for row in range(tile.lines):
        for chunk in range(tile.chunks):
            offset: u64 = tensor_chunk_offset(read.descriptor, row, chunk, read.major)
            words = cast(Pointer[u64], block.memory.shared + offset)
            mark = mixed(mixed(mark, words[0]), words[1])
    return mark
