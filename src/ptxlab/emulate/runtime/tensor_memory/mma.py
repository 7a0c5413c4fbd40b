"""Starting `tcgen05.mma`: whether it can be done, and what it will access (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import ATOMIC
from ptxlab.emulate.abi.faults import DescriptorReason
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tensor_memory import RECENT, TensorAccess
from ptxlab.emulate.runtime.order.tensor_happens_before import PRODUCT
from ptxlab.emulate.runtime.tensor_memory.accesses import is_allocated, next_number
from ptxlab.emulate.runtime.tensor_memory.collectors import use_collector
from ptxlab.emulate.runtime.tensor_memory.operands import fail_description, use_operands
from ptxlab.emulate.runtime.tensor_memory.operations import MULTIPLY, next_operation, note_start
from ptxlab.isa.units.instruction_descriptor import (
    MXF8F6F4,
    PAIR,
    PLAIN,
    TF32,
    columns_of,
    is_long,
    rows_of,
    violation_in,
)
from ptxlab.isa.units.tensor_tile import TensorMma
from ptxlab.isa.units.zero_column_mask import most_shift, shift_of
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, native, size_of, u8, u32, u64

MMA_SIZE = size_of(TensorMma)


@native
def start_mma(thread: Pointer[Thread], mma: Pointer[TensorMma], instruction: u32) -> None:
    """Start D = A * B, or D += A * B."""
    reason: u32 = wrong_with(thread, mma)
    if reason != 0:
        fail_description(thread, reason, mma.instruction_descriptor, mma.kind, instruction)
        return
    if cast(u64, thread.block.tensor) == 0:
        refuse_without_allocation(thread, mma.d, instruction)
        return
    number: u32 = next_number(thread)
    thread.block.tensor.accumulators[number % RECENT] = u64(mma.d) | shape_of(mma)
    if not use_all_operands(thread, mma, number, instruction):
        return
    use_collector(thread, mma, instruction)
    operation = next_operation(thread, MULTIPLY, instruction)
    if cast(u64, operation) == 0:
        return
    copy_bytes(cast(Pointer[u8], address_of(operation.mma)), cast(Pointer[u8], mma), MMA_SIZE)
    note_start(thread)


@native
def wrong_with(thread: Pointer[Thread], mma: Pointer[TensorMma]) -> u32:
    """What is wrong with the instruction descriptor, or with other operands; 0: nothing."""
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    rows: u32 = rows_of(bits, kind)
    reason: u32 = violation_in(bits, kind, mma.form, mma.is_sparse)
    if reason != 0:
        return reason
    if mma.is_shifted != 0 and rows != (256 if mma.form == PAIR else 128):
        return DescriptorReason.SHIFTED_ROWS
    if mma.is_sparse != 0 and kind <= TF32 and mma.metadata & 1 != 0:
        return DescriptorReason.ODD_METADATA
    if uses_half_the_lanes(mma, rows):
        if mma.a_in_tensor_memory != 0 and (u32(mma.a) ^ mma.d) >> 16 & 16 != 0:
            return DescriptorReason.OTHER_HALF
        if mma.is_sparse != 0 and (mma.metadata ^ mma.d) >> 16 & 16 != 0:
            return DescriptorReason.OTHER_HALF
    if shift_of(mma.zero_columns) > min(most_shift(bits), 16 if rows == 32 else 32):
        return DescriptorReason.FAR_SHIFT
    if is_long(bits, kind) and mma.has_long_rows == 0:
        return DescriptorReason.LONG_ROWS
    if is_long(bits, kind) and mma.a_in_tensor_memory != 0:
        return DescriptorReason.LONG_IN_TENSOR_MEMORY
    aligned: u32 = mma.scale_factors // 2 if is_long(bits, kind) else mma.scale_factors
    if kind >= MXF8F6F4 and (bits >> 29 & 3 | bits >> 4 & 3) % aligned != 0:
        return DescriptorReason.BAD_FACTORS
    if mma.form == PAIR and (thread.block.rank | 1) >= thread.block.cluster.count:
        return DescriptorReason.NO_PEER
    return 0


@native(inline=True)
def uses_half_the_lanes(mma: Pointer[TensorMma], rows: u32) -> boolean:
    """Whether D has 16 of each 32 lanes: layouts F and C of PTX ISA 9.7.16.10.5."""
    return rows == 64 if mma.form == PLAIN else mma.form == PAIR and rows == 128 and mma.is_sparse != 0


@native
def refuse_without_allocation(thread: Pointer[Thread], address: u32, instruction: u32) -> None:
    """Note that there is no tensor memory at the address of D."""
    d = TensorAccess(
        lane=address >> 16,
        column=address & 0xFFFF,
        lanes=128,
        columns=1,
        kind=ATOMIC,
        operation=PRODUCT,
        channel=0,
        number=0,
    )
    is_allocated(thread, thread.block, d, instruction)


@native(inline=True)
def shape_of(mma: Pointer[TensorMma]) -> u64:
    """The shape and the kind of an MMA, in bits above those of an address."""
    bits: u32 = mma.instruction_descriptor
    extents: u64 = u64(rows_of(bits, mma.kind) // 16) << 8 | u64(columns_of(bits) // 8)
    return extents << 32 | (u64(mma.kind) | u64(mma.form) << 4) << 48


@native
def use_all_operands(thread: Pointer[Thread], mma: Pointer[TensorMma], number: u32, instruction: u32) -> boolean:
    """Inspect all that an MMA reads and writes, in its block or in both of a pair."""
    if mma.form != PAIR:
        return use_operands(thread, thread.block, mma, number, instruction)
    rank: u32 = thread.block.rank & 0xFFFFFFFE
    for index in range(rank, rank + 2):
        if not use_operands(thread, thread.block.cluster.blocks[index], mma, number, instruction):
            return False
    return True


CALLED = (start_mma,)
