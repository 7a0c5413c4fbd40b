"""Multiplication of matrices that carry a scale factor for each block, once for all lanes of a warp.

Two ways of adding up, as MMA-Sim (arXiv 2511.10909) found them on sm_120: with one block in a row, the factors only
move the exponents of the products. With several, sixteen products are added without loss, multiplied by the factors of
their block, and only then aligned with the others and with C.
"""

from dataclasses import dataclass

from ptxlab.native import Pointer, f32, native, s16, s32, s64, scratch, struct, truncate, u32, u64
from ptxlab.numbers.tensor_core import ABSENT, NAN_F32, SPECIAL, Accumulation, round_to_f32, unpack
from ptxlab.numbers.tensor_core_tiles import ROWS_AT_ONCE, Decoded, TensorCoreTile, multiply_tile

from .multiplication import LARGEST_A, LARGEST_B, ElementPositions, RowBlock, decode_a, decode_b, element, put

UE8M0 = 0
UE4M3 = 1

COLUMNS = 8  # of B and D; A and D have 16 rows
MOST_BLOCKS = 8
NOT_A_NUMBER = 0x40000000  # unpacked: the exponent SPECIAL, the significand 0
MOST_SUMS = 8  # of sixteen products each
SUM_FRACTION = 35  # bits kept below the largest exponent, where sums of sixteen are added


@native(inline=True)
def factor(exchange: Pointer[u32], scales: u32, lane: u32, byte: u32) -> u32:
    """The scale factor in a byte of the register `scales` of a lane."""
    return exchange[scales * 32 + lane] >> (byte * 8) & 0xFF


@native
def unpack_factor(pattern: u32, format: u32) -> u32:
    """A scale factor as an unpacked float with three fraction bits. ue8m0 has neither a zero nor a fraction."""
    if format == UE4M3:
        return unpack(pattern & 0x7F, UNPACKED_E4M3)
    if pattern == 0xFF:
        return NOT_A_NUMBER
    return u32(u32(s32(pattern) - 127) << 16) | 8


UNPACKED_E4M3 = 4  # the number of e4m3 in tensor_core.FORMATS


@native(inline=True)
def scale_exponent(factor: u32) -> s32:
    """The exponent of an unpacked scale factor that is a power of two; `SPECIAL` if it is NaN."""
    return s32(factor) >> 16


@native(inline=True)
def doubled(elements: Decoded, index: u32) -> s32:
    """Twice an e2m1, which is an integer: exponents are from 0 to 2."""
    exponent: s32 = elements.exponents[index]
    return truncate(s32, elements.significands[index] * f32(s32(2) << max(exponent, 0))) if exponent >= 0 else s32(0)


@native
def scale_sums(
    sums: Pointer[s32],
    count: u32,
    left: Pointer[u32],
    right: Pointer[u32],
    row: u32,
    first: u32,
    blocks: u32,
    addend: u32,
) -> u32:
    """`addend` and some sums, in quarters, each multiplied by the two factors of its block.

    Those of A are at `left[row]` and further on, those of B at `right[first]`.
    """
    significand: u32 = addend & 0x7FFFFF
    field: s32 = s32(addend >> 23) & 0xFF
    if field == 0xFF:
        return NAN_F32 if significand != 0 else addend
    exponent: s32 = field - 127
    if field != 0:
        significand = significand | 0x800000
    else:
        exponent = -126
    highest: s32 = exponent if significand != 0 else ABSENT
    for block in range(blocks):
        if left[row + block] >> 16 == SPECIAL or right[first + block] >> 16 == SPECIAL:
            return NAN_F32
        highest = max(highest, (s32(left[row + block]) >> 16) + (s32(right[first + block]) >> 16))
    total: s64 = s64(u64(significand) << (SUM_FRACTION - 23) >> u64(min(highest - exponent, 63)))
    if addend >> 31 != 0:
        total = -total
    for index in range(count):
        block = index * blocks // count
        # Two fraction bits of the products, three of each factor.
        scaled: s64 = s64(sums[index]) * s64(s32(s16(left[row + block]))) * s64(s32(s16(right[first + block])))
        below: s32 = highest - ((s32(left[row + block]) >> 16) + (s32(right[first + block]) >> 16))
        magnitude: s64 = (abs(scaled) << (SUM_FRACTION - 8)) >> s64(min(below, 63))
        total = total + (-magnitude if scaled < 0 else magnitude)
    return round_to_f32(total, highest - SUM_FRACTION, 23)


@struct
@dataclass(frozen=True)
class ScaledMma:
    """An MMA of 16 rows and 8 columns, whose A and B carry scale factors."""

    depth: u32  # products for each element of D
    a_format: u32  # see `tensor_core.FORMATS`
    b_format: u32
    blocks: u32  # in a row, each with a scale factor
    scale_format: u32  # UE8M0 or UE4M3
    scales: u32  # the first register of the scale factors
    accumulation: Accumulation
    positions: ElementPositions


@native
def multiply_scaled(exchange: Pointer[u32], members: u32, mma: ScaledMma) -> None:
    """D = A * B + C.

    From register `scales` on are the factors of A, which bytes and which lanes of four supply them, and the same for B.
    Row `g` of A finds its factors in the first of the two lanes that supply them, row `g + 8` in the second.
    """
    depth: u32 = mma.depth
    blocks: u32 = mma.blocks
    scales: u32 = mma.scales
    positions = mma.positions
    at = RowBlock(copy=0, rows=ROWS_AT_ONCE, first=0, count=ROWS_AT_ONCE)
    a = Decoded(significands=scratch(f32, LARGEST_A), exponents=scratch(s32, LARGEST_A))
    b = Decoded(significands=scratch(f32, LARGEST_B), exponents=scratch(s32, LARGEST_B))
    decode_a(exchange, positions, at, depth, mma.a_format, a)
    decode_b(exchange, positions.b, 0, COLUMNS * depth, mma.b_format, b)
    left: Pointer[u32] = scratch(u32, ROWS_AT_ONCE * MOST_BLOCKS)
    right: Pointer[u32] = scratch(u32, COLUMNS * MOST_BLOCKS)
    first_byte: u32 = exchange[scales * 32 + 32] & 0xFFFF
    first_lane: u32 = (exchange[scales * 32 + 64] & 0xFFFF) * 2
    other_byte: u32 = exchange[scales * 32 + 128] & 0xFFFF
    other_lane: u32 = exchange[scales * 32 + 160] & 0xFFFF
    for s in range(blocks):
        for i in range(ROWS_AT_ONCE):
            pattern: u32 = factor(exchange, scales, i % 8 * 4 + first_lane + i // 8, first_byte + s)
            left[i * blocks + s] = unpack_factor(pattern, mma.scale_format)
        for j in range(COLUMNS):
            pattern = factor(exchange, scales + 3, j * 4 + other_lane, other_byte + s)
            right[j * blocks + s] = unpack_factor(pattern, mma.scale_format)
    sums: Pointer[u32] = scratch(u32, COLUMNS * ROWS_AT_ONCE)
    for e in range(COLUMNS * ROWS_AT_ONCE):
        sums[e] = element(exchange, positions.c[e])
    if blocks == 1:
        row_scales: Pointer[s32] = scratch(s32, ROWS_AT_ONCE)
        column_scales: Pointer[s32] = scratch(s32, COLUMNS)
        for i in range(ROWS_AT_ONCE):
            row_scales[i] = scale_exponent(left[i])
        for j in range(COLUMNS):
            column_scales[j] = scale_exponent(right[j])
        tile = TensorCoreTile(
            a=a, b=b, columns=COLUMNS, depth=depth, step=depth, row_scales=row_scales, column_scales=column_scales,
            sums=sums,
        )  # fmt: skip
        multiply_tile(tile, mma.accumulation)
    else:
        add_sums(a, b, depth, 16 if positions.kept == 0 else 32, left, right, blocks, sums)
    for e in range(COLUMNS * ROWS_AT_ONCE):
        put(exchange, positions.d[e], 32, sums[e])


@native
def add_sums(
    a: Decoded, b: Decoded, depth: u32, together: u32, left: Pointer[u32], right: Pointer[u32], blocks: u32,
    addends: Pointer[u32],
) -> None:  # fmt: skip
    """Add to each addend sums of `together` products, every one multiplied by the two factors of its block."""
    rows: Pointer[s32] = scratch(s32, LARGEST_A)
    columns: Pointer[s32] = scratch(s32, LARGEST_B)
    sums: Pointer[s32] = scratch(s32, MOST_SUMS)
    for k in range(depth):
        for i in range(ROWS_AT_ONCE):
            rows[i * depth + k] = doubled(a, k * ROWS_AT_ONCE + i)
    for e in range(COLUMNS * depth):
        columns[e] = doubled(b, e)
    for j in range(COLUMNS):
        for i in range(ROWS_AT_ONCE):
            for index in range(depth // together):
                sum: s32 = 0
                for k in range(index * together, (index + 1) * together):
                    sum = sum + rows[i * depth + k] * columns[j * depth + k]
                sums[index] = sum
            count: u32 = depth // together
            addends[j * ROWS_AT_ONCE + i] = scale_sums(
                sums, count, left, right, i * blocks, j * blocks, blocks, addends[j * ROWS_AT_ONCE + i]
            )
