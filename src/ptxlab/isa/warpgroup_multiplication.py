"""Multiplication of matrices in shared memory by a warp of a warpgroup, once for all lanes: what `wgmma` collects.

Each of four warps computes sixteen rows of D. B, and A if it is not in registers, are found by descriptors (see
`descriptor.py`) that follow the accumulators in the lane exchange buffer; `memory` is the shared memory of the block.
"""

from dataclasses import dataclass

from ptxlab.native import Pointer, array, count_ones, native, s32, s64, struct, u8, u32, u64
from ptxlab.numbers.tensor_core import NOTHING, Accumulation, add_products, unpack

from .descriptor import MN_MAJOR, chunk_offset
from .multiplication import column_of, element, put

ROWS = 16  # of A and D, in each warp
LONGEST_ROW = 64
IN_REGISTERS = 2  # besides K_MAJOR and MN_MAJOR: how A is there


@native(inline=True)
def descriptor_at(exchange: Pointer[u32], word: u32) -> u64:
    """The descriptor in two words of the lane exchange buffer; it is the same in all lanes."""
    return u64(exchange[32 * word]) | u64(exchange[32 * (word + 1)]) << 32


@native
def fetch(
    memory: Pointer[u8], descriptor: u64, row: u32, count: u32, bits: u32, major: u32, into: Pointer[u32]
) -> None:
    """The first `count` elements of a row of a matrix in shared memory, of 8, 16 or 32 bits each."""
    size: u32 = bits // 8
    each: u32 = 128 // bits
    for index in range(count):
        at: u64 = 0
        if major == MN_MAJOR:
            at = chunk_offset(descriptor, index, row // each, major) + u64(row % each) * u64(size)
        else:
            at = chunk_offset(descriptor, row, index // each, major) + u64(index % each) * u64(size)
        value: u32 = 0
        for byte in range(size):
            value = value | u32(memory[at + u64(byte)]) << (8 * byte)
        into[index] = value


@struct
@dataclass(frozen=True)
class SharedMma:
    """An MMA by a warp of a warpgroup: what all types of elements have in common."""

    columns: u32  # of B and D
    depth: u32  # elements of a row of A or a column of B, those that a sparse A does not store included
    bits: u32  # of an element of A or B in shared memory
    a_major: u32  # K_MAJOR, MN_MAJOR or IN_REGISTERS
    b_major: u32
    words: u32  # before the descriptor of A
    results: u32  # words before the new D
    kept: u32  # elements that a sparse A stores of a chunk, see `column_of`; 0: A is dense
    a_positions: Pointer[u32]  # of A in registers
    d_positions: Pointer[u32]
    choices: Pointer[u32]  # positions of the metadata of each stored element of a sparse A


@native(inline=True)
def stored_of(mma: SharedMma) -> u32:
    """The elements that are stored of a row of A."""
    return mma.depth if mma.kept == 0 else mma.depth >> 1


@native
def fetch_row(exchange: Pointer[u32], memory: Pointer[u8], mma: SharedMma, row: u32, into: Pointer[u32]) -> None:
    """The stored elements of one of sixteen rows of A, from registers or by its descriptor.

    The number of the warp, which determines its rows, is after the descriptor.
    """
    count: u32 = stored_of(mma)
    if mma.a_major == IN_REGISTERS:
        for index in range(count):
            into[index] = element(exchange, mma.a_positions[row * count + index])
    else:
        first: u32 = exchange[32 * (mma.words + 2)] % 4 * ROWS
        fetch(memory, descriptor_at(exchange, mma.words), first + row, count, mma.bits, mma.a_major, into)


@native(inline=True)
def fetch_column(exchange: Pointer[u32], memory: Pointer[u8], mma: SharedMma, column: u32, into: Pointer[u32]) -> None:
    """The elements of a column of B, by its descriptor."""
    fetch(memory, descriptor_at(exchange, mma.words + 3), column, mma.depth, mma.bits, mma.b_major, into)


@native(inline=True)
def adds_to_d(exchange: Pointer[u32], mma: SharedMma) -> u32:
    """Whether what D held is added."""
    return exchange[32 * (mma.words + 5)]


@native(inline=True)
def column_in_row(exchange: Pointer[u32], mma: SharedMma, row: u32, index: u32) -> u32:
    """The column of a stored element of A."""
    if mma.kept == 0:
        return index
    return column_of(index, element(exchange, mma.choices[row * stored_of(mma) + index]) & 3, mma.kept)


@struct
@dataclass(frozen=True)
class SharedFloatMma:
    """An MMA by a warp of a warpgroup on floats."""

    common: SharedMma
    padding: u32  # lowest bits of an element that carry no value
    a_format: u32  # see `tensor_core.FORMATS`
    b_format: u32
    a_sign: u32  # is XORed with each element of A
    b_sign: u32
    d_bits: u32
    accumulation: Accumulation


@native(inline=True)
def multiply_shared_floats(exchange: Pointer[u32], members: u32, memory: Pointer[u8], mma: SharedFloatMma) -> None:
    """D = A * B + D in one step for each element."""
    common = mma.common
    columns: u32 = common.columns
    depth: u32 = common.depth
    stored: u32 = stored_of(common)
    raw: Pointer[u32] = array(u32, LONGEST_ROW)
    rows: Pointer[u32] = array(u32, ROWS * LONGEST_ROW)
    column: Pointer[u32] = array(u32, LONGEST_ROW)
    for i in range(ROWS):
        fetch_row(exchange, memory, common, i, raw)
        if common.kept != 0:
            for n in range(depth):
                rows[i * depth + n] = NOTHING
        for k in range(stored):
            pattern: u32 = (raw[k] ^ mma.a_sign) >> mma.padding
            rows[i * depth + column_in_row(exchange, common, i, k)] = unpack(pattern, mma.a_format)
    adds: u32 = adds_to_d(exchange, common)
    for j in range(columns):
        fetch_column(exchange, memory, common, j, raw)
        for m in range(depth):
            column[m] = unpack((raw[m] ^ mma.b_sign) >> mma.padding, mma.b_format)
        for i in range(ROWS):
            position: u32 = common.d_positions[i * columns + j]
            addend: u32 = 0
            if adds != 0:
                addend = element(exchange, position)
                if mma.d_bits == 16:
                    addend = addend & 0xFFFF
            sum: u32 = add_products(rows, u64(i) * u64(depth), column, 0, u64(depth), addend, mma.accumulation)
            put(exchange, position + (common.results << 10), mma.d_bits, sum)


@struct
@dataclass(frozen=True)
class SharedIntegerMma:
    """An MMA by a warp of a warpgroup on bytes."""

    common: SharedMma
    a_signed: u32
    b_signed: u32
    saturate: u32  # whether sums are clamped to 32 bits, and do not wrap around


@native(inline=True)
def multiply_shared_integers(exchange: Pointer[u32], members: u32, memory: Pointer[u8], mma: SharedIntegerMma) -> None:
    """D = A * B + D in bytes, wrapped around or clamped to 32 bits."""
    common = mma.common
    columns: u32 = common.columns
    depth: u32 = common.depth
    raw: Pointer[u32] = array(u32, LONGEST_ROW)
    rows: Pointer[s32] = array(s32, ROWS * LONGEST_ROW)
    for i in range(ROWS):
        fetch_row(exchange, memory, common, i, raw)
        for k in range(depth):
            rows[i * depth + k] = 0
        for k in range(stored_of(common)):
            rows[i * depth + column_in_row(exchange, common, i, k)] = byte_of(raw[k], mma.a_signed)
    adds: u32 = adds_to_d(exchange, common)
    for j in range(columns):
        fetch_column(exchange, memory, common, j, raw)
        for i in range(ROWS):
            position: u32 = common.d_positions[i * columns + j]
            sum: s64 = s64(s32(exchange[position >> 5])) if adds != 0 else s64(0)
            for k in range(depth):
                sum = sum + s64(rows[i * depth + k]) * s64(byte_of(raw[k], mma.b_signed))
            if mma.saturate != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            put(exchange, position + (common.results << 10), 32, u32(sum))


@native(inline=True)
def byte_of(value: u32, signed: u32) -> s32:
    """The lowest byte, as a signed or an unsigned integer."""
    byte: s32 = s32(value & 0xFF)
    return byte - 256 if signed != 0 and byte > 127 else byte


@native(inline=True)
def multiply_shared_bits(exchange: Pointer[u32], members: u32, memory: Pointer[u8], mma: SharedMma) -> None:
    """D = the number of ones in `a & b` of each row and column, added to D; an element is a word of 32 bits."""
    columns: u32 = mma.columns
    depth: u32 = mma.depth
    rows: Pointer[u32] = array(u32, ROWS * 8)
    column: Pointer[u32] = array(u32, 8)
    for i in range(ROWS):
        fetch_row(exchange, memory, mma, i, column)
        for k in range(depth):
            rows[i * depth + k] = column[k]
    adds: u32 = adds_to_d(exchange, mma)
    for j in range(columns):
        fetch_column(exchange, memory, mma, j, column)
        for i in range(ROWS):
            position: u32 = mma.d_positions[i * columns + j]
            sum: u32 = exchange[position >> 5] if adds != 0 else u32(0)
            for k in range(depth):
                sum = u32(sum + count_ones(rows[i * depth + k] & column[k]))
            put(exchange, position + (mma.results << 10), 32, sum)
