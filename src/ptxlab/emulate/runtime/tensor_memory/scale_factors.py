"""The scale factors that a `tcgen05.mma` reads: for the detectors, and whether they can be right."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.faults import BAD_SCALE_FACTORS, FactorReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import TensorAccess
from ptxlab.emulate.runtime.memory.memory import fail_because
from ptxlab.emulate.runtime.order.tensor_happens_before import PRODUCT
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_WORK
from ptxlab.emulate.runtime.tensor_memory.accesses import is_allocated
from ptxlab.isa.units.instruction_descriptor import columns_of
from ptxlab.isa.units.tensor_memory import BAND, LANES
from ptxlab.isa.units.tensor_scale import (
    PARTS,
    Factors,
    columns_of_factors,
    describe_factors,
    mask_of,
    word_of,
    words_of,
)
from ptxlab.isa.units.tensor_tile import TensorMma
from ptxlab.native import Pointer, boolean, native, u32, u64


@native
def use_factors(
    thread: Pointer[Thread],
    block: Pointer[Block],
    mma: Pointer[TensorMma],
    is_b: boolean,
    number: u32,
    instruction: u32,
) -> boolean:
    """Inspect the scale factors of A or B that an MMA reads in a block, in all sub-partitions."""
    factors = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    describe_factors(mma, is_b, factors)
    read = TensorAccess(
        lane=factors.address >> 16,
        column=factors.address & 0xFFFF,
        lanes=LANES,
        columns=columns_of_factors(factors),
        kind=LOAD,
        operation=PRODUCT,
        channel=TENSOR_WORK + thread.number,
        number=number,
    )
    if not is_allocated(thread, block, read, instruction):
        return False
    for word in range(words_of(factors)):
        read.lane = factors.address >> 16
        read.column = (factors.address & 0xFFFF) + word * factors.step
        read.lanes = LANES
        note_words(thread, block, read, factors.rows, instruction)
    return True


@native
def note_words(thread: Pointer[Thread], block: Pointer[Block], read: TensorAccess, rows: u32, instruction: u32) -> None:
    """Inspect a word of each of so many rows, in all sub-partitions."""
    read.columns = 1
    for _ in range(rows // BAND):
        note_tensor(thread, block, read, instruction)
        read.column += 1
    if rows % BAND != 0:
        read.lanes = rows % BAND
        for _ in range(PARTS):
            note_tensor(thread, block, read, instruction)
            read.lane += BAND


@native
def are_factors_apart(thread: Pointer[Thread], mma: Pointer[TensorMma], d: TensorAccess, instruction: u32) -> boolean:
    """Whether the scale factors of A, those of B and D are in different columns; a fault otherwise."""
    of_a = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    of_b = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    describe_factors(mma, False, of_a)
    describe_factors(mma, True, of_b)
    a: u64 = span_of(of_a.address, columns_of_factors(of_a))
    b: u64 = span_of(of_b.address, columns_of_factors(of_b))
    accumulators: u64 = span_of(d.column, d.columns)
    reason: u32 = 0
    is_long: boolean = words_of(of_a) > 1 or words_of(of_b) > 1
    if overlap(a, b) and (is_long or (of_a.byte < of_b.byte + of_b.count and of_b.byte < of_a.byte + of_a.count)):
        reason = FactorReason.OVERLAP
    elif overlap(a, accumulators):
        reason = FactorReason.A_IN_D
        b = accumulators
    elif overlap(b, accumulators):
        reason = FactorReason.B_IN_D
        a = b
        b = accumulators
    if reason == 0:
        return True
    fail_because(thread, BAD_SCALE_FACTORS, reason, instruction, a | b << 32)
    return False


@native(inline=True)
def span_of(address: u32, columns: u32) -> u64:
    """The first column and the one after the last, in one word."""
    first: u64 = u64(address & 0xFFFF)
    return first | (first + u64(columns)) << 16


@native(inline=True)
def overlap(first: u64, second: u64) -> boolean:
    """Whether two spans of columns have one in common."""
    return first & 0xFFFF < second >> 16 and second & 0xFFFF < first >> 16


@native
def check_copies(thread: Pointer[Thread], block: Pointer[Block], mma: Pointer[TensorMma], instruction: u32) -> None:
    """Note scale factors that differ from one sub-partition to another.

    What has been found before explains it, as when a copy was never written.
    """
    if thread.worker.checks == 0 or mma.scale_factors == 0 or thread.worker.history.finding_count != 0:
        return
    compare_copies(thread, block, mma, False, instruction)
    compare_copies(thread, block, mma, True, instruction)


@native
def compare_copies(
    thread: Pointer[Thread], block: Pointer[Block], mma: Pointer[TensorMma], is_b: boolean, instruction: u32
) -> None:
    """Note the first scale factors of A or B that are not the same in all sub-partitions that have them."""
    factors = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    describe_factors(mma, is_b, factors)
    is_split: boolean = is_b and factors.rows < columns_of(mma.instruction_descriptor)
    for part in range(1, PARTS):
        like: u32 = part & 2 if is_split else u32(0)
        for index in range(factors.rows * words_of(factors)):
            row: u32 = index % factors.rows
            word: u32 = index // factors.rows
            found: u32 = block.tensor.cells[word_of(factors, part, row) + word * factors.step]
            expected: u32 = block.tensor.cells[word_of(factors, like, row) + word * factors.step]
            if (found ^ expected) & mask_of(factors, word) != 0:
                if thread.worker.fault.kind == 0:
                    thread.worker.fault.cells.lane = part * BAND + row % BAND
                    thread.worker.fault.cells.column = (factors.address & 0xFFFF) + row // BAND + word * factors.step
                    thread.worker.fault.limit = u64(like)
                reason: u32 = FactorReason.UNEQUAL_B if is_b else FactorReason.UNEQUAL_A
                fail_because(thread, BAD_SCALE_FACTORS, reason, instruction, u64(found) | u64(expected) << 32)
                return
