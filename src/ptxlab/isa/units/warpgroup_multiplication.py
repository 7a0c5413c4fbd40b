"""Multiplication of matrices in shared memory by a warp of a warpgroup, once for all lanes: what `wgmma` collects.

Each of four warps computes sixteen rows of D. B, and A if it is not in registers, are found by descriptors (see
`descriptor.py`) that follow the accumulators in the lane exchange buffer; `memory` is the shared memory of the block.
"""

from dataclasses import dataclass

from ptxlab.native import Pointer, array, count_ones, f32, native, s32, s64, scratch, struct, u8, u32, u64
from ptxlab.numbers.tensor_core import Accumulation
from ptxlab.numbers.tensor_core_tiles import ROWS_AT_ONCE, Decoded, TensorCoreTile, decode, leave_out, multiply_tile

from .descriptor import MN_MAJOR, chunk_offset
from .multiplication import column_of, element, put

ROWS = 16  # of A and D, in each warp
LONGEST_ROW = 64
MOST_COLUMNS = 256
IN_REGISTERS = 2  # besides K_MAJOR and MN_MAJOR: how A is there


@native(inline=True)
def descriptor_at(exchange: Pointer[u32], word: u32) -> u64:
    """The descriptor in two words of the lane exchange buffer; it is the same in all lanes."""
    return u64(exchange[32 * word]) | u64(exchange[32 * (word + 1)]) << 32


@native(inline=True)
def value_at(memory: Pointer[u8], at: u64, size: u32) -> u32:
    """The element of 1, 2 or 4 bytes at an address."""
    value: u32 = u32(memory[at])
    if size >= 2:
        value = value | u32(memory[at + 1]) << 8
    if size == 4:
        value = value | u32(memory[at + 2]) << 16 | u32(memory[at + 3]) << 24
    return value


@native
def fetch(
    memory: Pointer[u8], descriptor: u64, first: u32, rows: u32, count: u32, bits: u32, major: u32, into: Pointer[u32]
) -> None:
    """The first `count` elements of some rows of a matrix in shared memory, row after row, a chunk at a time.

    Elements have 8, 16 or 32 bits; of 16 where the matrix is MN-major, and then `first` and `rows` are multiples of 8.
    """
    size: u32 = bits // 8
    each: u32 = 128 // bits
    if major == MN_MAJOR:
        for index in range(count):
            for row in range(0, rows, each):
                at: u64 = chunk_offset(descriptor, index, (first + row) // each, major)
                for e in range(each):
                    into[(row + e) * count + index] = value_at(memory, at + u64(e) * u64(size), size)
        return
    for row in range(rows):
        for index in range(0, count, each):
            start: u64 = chunk_offset(descriptor, first + row, index // each, major)
            for e in range(each):
                into[row * count + index + e] = value_at(memory, start + u64(e) * u64(size), size)


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
    d_positions: Pointer[u32]  # column by column
    choices: Pointer[u32]  # positions of the metadata of each stored element of a sparse A


@native(inline=True)
def stored_of(mma: SharedMma) -> u32:
    """The elements that are stored of a row of A."""
    return mma.depth if mma.kept == 0 else mma.depth >> 1


@native
def fetch_rows(exchange: Pointer[u32], memory: Pointer[u8], mma: SharedMma, into: Pointer[u32]) -> None:
    """The stored elements of the sixteen rows of A, row after row, from registers or by its descriptor.

    The number of the warp, which determines its rows, is after the descriptor.
    """
    count: u32 = stored_of(mma)
    if mma.a_major == IN_REGISTERS:
        for index in range(ROWS * count):
            into[index] = element(exchange, mma.a_positions[index])
    else:
        first: u32 = exchange[32 * (mma.words + 2)] % 4 * ROWS
        fetch(memory, descriptor_at(exchange, mma.words), first, ROWS, count, mma.bits, mma.a_major, into)


@native(inline=True)
def fetch_columns(exchange: Pointer[u32], memory: Pointer[u8], mma: SharedMma, into: Pointer[u32]) -> None:
    """The elements of all columns of B, by its descriptor."""
    descriptor: u64 = descriptor_at(exchange, mma.words + 3)
    fetch(memory, descriptor, 0, mma.columns, mma.depth, mma.bits, mma.b_major, into)


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


@native
def decode_rows(exchange: Pointer[u32], memory: Pointer[u8], mma: SharedFloatMma, into: Decoded) -> None:
    """Decode the sixteen rows of A, a column after the other; those that a sparse A does not store are not there."""
    stored: u32 = stored_of(mma.common)
    raw: Pointer[u32] = scratch(u32, ROWS * LONGEST_ROW)
    patterns: Pointer[u32] = scratch(u32, ROWS * LONGEST_ROW)
    fetch_rows(exchange, memory, mma.common, raw)
    for k in range(stored):
        for i in range(ROWS_AT_ONCE):
            patterns[k * ROWS_AT_ONCE + i] = (raw[i * stored + k] ^ mma.a_sign) >> mma.padding
    if mma.common.kept == 0:
        decode(patterns, ROWS_AT_ONCE * stored, mma.a_format, into, 0)
        return
    significands: Pointer[f32] = scratch(f32, ROWS * LONGEST_ROW)
    exponents: Pointer[s32] = scratch(s32, ROWS * LONGEST_ROW)
    decode(patterns, ROWS_AT_ONCE * stored, mma.a_format, Decoded(significands=significands, exponents=exponents), 0)
    leave_out(into, ROWS_AT_ONCE * mma.common.depth)
    for k in range(stored):
        for i in range(ROWS_AT_ONCE):
            to: u32 = column_in_row(exchange, mma.common, i, k) * ROWS_AT_ONCE + i
            into.significands[to] = significands[k * ROWS_AT_ONCE + i]
            into.exponents[to] = exponents[k * ROWS_AT_ONCE + i]


@native
def multiply_shared_floats(exchange: Pointer[u32], members: u32, memory: Pointer[u8], mma: SharedFloatMma) -> None:
    """D = A * B + D in one step for each element."""
    common = mma.common
    columns: u32 = common.columns
    depth: u32 = common.depth
    a = Decoded(significands=scratch(f32, ROWS * LONGEST_ROW), exponents=scratch(s32, ROWS * LONGEST_ROW))
    b = Decoded(
        significands=scratch(f32, MOST_COLUMNS * LONGEST_ROW), exponents=scratch(s32, MOST_COLUMNS * LONGEST_ROW)
    )
    patterns: Pointer[u32] = scratch(u32, MOST_COLUMNS * LONGEST_ROW)
    sums: Pointer[u32] = scratch(u32, MOST_COLUMNS * ROWS_AT_ONCE)
    scales: Pointer[s32] = array(s32, MOST_COLUMNS)
    decode_rows(exchange, memory, mma, a)
    fetch_columns(exchange, memory, common, patterns)
    for m in range(columns * depth):
        patterns[m] = (patterns[m] ^ mma.b_sign) >> mma.padding
    decode(patterns, columns * depth, mma.b_format, b, 0)
    adds: u32 = adds_to_d(exchange, common)
    mask: u32 = u32(0xFFFFFFFF) >> (32 - mma.d_bits)
    for e in range(columns * ROWS_AT_ONCE):
        sums[e] = element(exchange, common.d_positions[e]) & mask if adds != 0 else u32(0)
    tile = TensorCoreTile(
        a=a, b=b, columns=columns, depth=depth, step=depth, row_scales=scales, column_scales=scales, sums=sums
    )
    multiply_tile(tile, mma.accumulation)
    for e in range(columns * ROWS_AT_ONCE):
        put(exchange, common.d_positions[e] + (common.results << 10), mma.d_bits, sums[e])


@struct
@dataclass(frozen=True)
class SharedIntegerMma:
    """An MMA by a warp of a warpgroup on bytes."""

    common: SharedMma
    a_signed: u32
    b_signed: u32
    saturate: u32  # whether sums are clamped to 32 bits, and do not wrap around


@native
def multiply_shared_integers(exchange: Pointer[u32], members: u32, memory: Pointer[u8], mma: SharedIntegerMma) -> None:
    """D = A * B + D in bytes, wrapped around or clamped to 32 bits."""
    common = mma.common
    columns: u32 = common.columns
    depth: u32 = common.depth
    stored: u32 = stored_of(common)
    raw: Pointer[u32] = scratch(u32, MOST_COLUMNS * LONGEST_ROW)
    rows: Pointer[s32] = array(s32, ROWS * LONGEST_ROW)
    others: Pointer[s32] = scratch(s32, MOST_COLUMNS * LONGEST_ROW)
    fetch_rows(exchange, memory, common, raw)
    for i in range(ROWS):
        for k in range(stored):
            to: u32 = i * depth + column_in_row(exchange, common, i, k)
            rows[to] = byte_of(raw[i * stored + k], mma.a_signed)
    fetch_columns(exchange, memory, common, raw)
    for e in range(columns * depth):
        others[e] = byte_of(raw[e], mma.b_signed)
    adds: u32 = adds_to_d(exchange, common)
    for j in range(columns):
        for i in range(ROWS):
            position: u32 = common.d_positions[j * ROWS + i]
            products: s32 = 0
            for k in range(depth):
                products = products + rows[i * depth + k] * others[j * depth + k]
            sum: s64 = (s64(s32(exchange[position >> 5])) if adds != 0 else s64(0)) + s64(products)
            if mma.saturate != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            put(exchange, position + (common.results << 10), 32, u32(sum))


@native(inline=True)
def byte_of(value: u32, signed: u32) -> s32:
    """The lowest byte, as a signed or an unsigned integer."""
    byte: s32 = s32(value & 0xFF)
    return byte - 256 if signed != 0 and byte > 127 else byte


@native
def multiply_shared_bits(exchange: Pointer[u32], members: u32, memory: Pointer[u8], mma: SharedMma) -> None:
    """D = the number of ones in `a & b` of each row and column, added to D; an element is a word of 32 bits."""
    columns: u32 = mma.columns
    depth: u32 = mma.depth
    rows: Pointer[u32] = scratch(u32, ROWS * 8)
    others: Pointer[u32] = scratch(u32, MOST_COLUMNS * 8)
    fetch_rows(exchange, memory, mma, rows)
    fetch_columns(exchange, memory, mma, others)
    adds: u32 = adds_to_d(exchange, mma)
    for j in range(columns):
        for i in range(ROWS):
            position: u32 = mma.d_positions[j * ROWS + i]
            sum: u32 = exchange[position >> 5] if adds != 0 else u32(0)
            for k in range(depth):
                sum = u32(sum + count_ones(rows[i * depth + k] & others[j * depth + k]))
            put(exchange, position + (mma.results << 10), 32, sum)
