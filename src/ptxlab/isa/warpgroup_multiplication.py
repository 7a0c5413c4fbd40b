"""Multiplication of matrices in shared memory by a warp of a warpgroup, once for all lanes: what `wgmma` collects.

Each of four warps computes sixteen rows of D. B, and A if it is not in registers, are found by descriptors (see
`descriptor.py`) that follow the accumulators in the lane exchange buffer; `memory` is the shared memory of the block.
"""

from ptxlab.native import Pointer, array, count_ones, native, s32, s64, u8, u32, u64
from ptxlab.numbers.tensor_core import NOTHING, add_products, unpack

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


@native
def fetch_row(
    exchange: Pointer[u32],
    memory: Pointer[u8],
    places: Pointer[u32],
    word: u32,
    row: u32,
    count: u32,
    bits: u32,
    major: u32,
    into: Pointer[u32],
) -> None:
    """The elements of one of sixteen rows of A, from registers at `places`, or by the descriptor at `word`.

    The number of the warp, which determines its rows, is after the descriptor.
    """
    if major == IN_REGISTERS:
        for index in range(count):
            into[index] = element(exchange, places[row * count + index])
    else:
        first: u32 = exchange[32 * (word + 2)] % 4 * ROWS
        fetch(memory, descriptor_at(exchange, word), first + row, count, bits, major, into)


@native
def multiply_shared_floats(
    exchange: Pointer[u32],
    members: u32,
    memory: Pointer[u8],
    columns: u32,
    depth: u32,
    bits: u32,
    padding: u32,
    a_format: u32,
    b_format: u32,
    a_sign: u32,
    b_sign: u32,
    d_bits: u32,
    result: u32,
    fraction: s32,
    lacking: s32,
    a_major: u32,
    b_major: u32,
    words: u32,
    results: u32,
    kept: u32,
    a_places: Pointer[u32],
    d_places: Pointer[u32],
    choices: Pointer[u32],
) -> None:
    """D = A * B + D in one step for each element; `a_sign` and `b_sign` are XORed with the factors, of which the lowest
    bits, `padding`, carry no value.

    `words` come before what says where A is, `results` before the new D. If A is sparse, `kept` is not 0 and `choices`
    are the places of metadata.
    """
    stored: u32 = depth if kept == 0 else depth >> 1
    raw: Pointer[u32] = array(u32, LONGEST_ROW)
    rows: Pointer[u32] = array(u32, ROWS * LONGEST_ROW)
    column: Pointer[u32] = array(u32, LONGEST_ROW)
    for i in range(ROWS):
        fetch_row(exchange, memory, a_places, words, i, stored, bits, a_major, raw)
        if kept == 0:
            for k in range(depth):
                rows[i * depth + k] = unpack((raw[k] ^ a_sign) >> padding, a_format)
        else:
            for k in range(depth):
                rows[i * depth + k] = NOTHING
            for k in range(stored):
                choice: u32 = element(exchange, choices[i * stored + k]) & 3
                rows[i * depth + column_of(k, choice, kept)] = unpack((raw[k] ^ a_sign) >> padding, a_format)
    descriptor: u64 = descriptor_at(exchange, words + 3)
    adds: u32 = exchange[32 * (words + 5)]
    for j in range(columns):
        fetch(memory, descriptor, j, depth, bits, b_major, raw)
        for k in range(depth):
            column[k] = unpack((raw[k] ^ b_sign) >> padding, b_format)
        for i in range(ROWS):
            place: u32 = d_places[i * columns + j]
            addend: u32 = 0
            if adds != 0:
                addend = element(exchange, place)
                if d_bits == 16:
                    addend = addend & 0xFFFF
            sum: u32 = add_products(rows, u64(i) * u64(depth), column, 0, u64(depth), addend, fraction, lacking, result)
            put(exchange, place + (results << 10), d_bits, sum)


@native
def multiply_shared_integers(
    exchange: Pointer[u32],
    members: u32,
    memory: Pointer[u8],
    columns: u32,
    depth: u32,
    a_signed: u32,
    b_signed: u32,
    saturate: u32,
    a_major: u32,
    b_major: u32,
    words: u32,
    results: u32,
    kept: u32,
    a_places: Pointer[u32],
    d_places: Pointer[u32],
    choices: Pointer[u32],
) -> None:
    """D = A * B + D in bytes, wrapped around or clamped to 32 bits."""
    stored: u32 = depth if kept == 0 else depth >> 1
    raw: Pointer[u32] = array(u32, LONGEST_ROW)
    rows: Pointer[s32] = array(s32, ROWS * LONGEST_ROW)
    for i in range(ROWS):
        fetch_row(exchange, memory, a_places, words, i, stored, 8, a_major, raw)
        for k in range(depth):
            rows[i * depth + k] = 0
        for k in range(stored):
            at: u32 = k
            if kept != 0:
                at = column_of(k, element(exchange, choices[i * stored + k]) & 3, kept)
            rows[i * depth + at] = byte_of(raw[k], a_signed)
    descriptor: u64 = descriptor_at(exchange, words + 3)
    adds: u32 = exchange[32 * (words + 5)]
    for j in range(columns):
        fetch(memory, descriptor, j, depth, 8, b_major, raw)
        for i in range(ROWS):
            place: u32 = d_places[i * columns + j]
            sum: s64 = s64(s32(exchange[place >> 5])) if adds != 0 else s64(0)
            for k in range(depth):
                sum = sum + s64(rows[i * depth + k]) * s64(byte_of(raw[k], b_signed))
            if saturate != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            put(exchange, place + (results << 10), 32, u32(sum))


@native(inline=True)
def byte_of(value: u32, signed: u32) -> s32:
    """The lowest byte, as a signed or an unsigned integer."""
    byte: s32 = s32(value & 0xFF)
    return byte - 256 if signed != 0 and byte > 127 else byte


@native
def multiply_shared_bits(
    exchange: Pointer[u32],
    members: u32,
    memory: Pointer[u8],
    columns: u32,
    depth: u32,
    a_major: u32,
    b_major: u32,
    words: u32,
    results: u32,
    a_places: Pointer[u32],
    d_places: Pointer[u32],
) -> None:
    """D = the number of ones in `a & b` of each row and column, added to D; `depth` words of 32 bits make a row."""
    rows: Pointer[u32] = array(u32, ROWS * 8)
    column: Pointer[u32] = array(u32, 8)
    for i in range(ROWS):
        fetch_row(exchange, memory, a_places, words, i, depth, 32, a_major, column)
        for k in range(depth):
            rows[i * depth + k] = column[k]
    descriptor: u64 = descriptor_at(exchange, words + 3)
    adds: u32 = exchange[32 * (words + 5)]
    for j in range(columns):
        fetch(memory, descriptor, j, depth, 32, b_major, column)
        for i in range(ROWS):
            place: u32 = d_places[i * columns + j]
            sum: u32 = exchange[place >> 5] if adds != 0 else u32(0)
            for k in range(depth):
                sum = u32(sum + count_ones(rows[i * depth + k] & column[k]))
            put(exchange, place + (results << 10), 32, sum)
