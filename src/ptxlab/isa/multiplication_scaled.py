"""Multiplication of matrices that carry a scale factor for each block, once for all lanes of a warp.

Two ways of adding up, as MMA-Sim (arXiv 2511.10909) found them on sm_120: with one block in a row, the factors only
move the exponents of the products. With several, sixteen products are added without loss, multiplied by the factors of
their block, and only then aligned with the others and with C.
"""

from dataclasses import dataclass

from ptxlab.native import Pointer, array, native, s16, s32, s64, struct, u32, u64
from ptxlab.numbers.tensor_core import (
    ABSENT,
    NAN_F32,
    SPECIAL,
    Accumulation,
    add_products,
    round_to_f32,
    unpack,
)

from .multiplication import LARGEST_B, LONGEST_ROW, ElementPositions, element, put, unpack_a_row, unpack_row

UE8M0 = 0
UE4M3 = 1

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


@native
def scale_row(row: Pointer[u32], first: u32, count: u32, scale: u32) -> None:
    """Multiply floats by a power of two: unpacked, all of them, but for those that are not there."""
    for i in range(first, first + count):
        if scale == NOT_A_NUMBER:
            row[i] = NOT_A_NUMBER
        elif s32(row[i]) >> 16 != ABSENT:
            row[i] = u32(row[i] + (scale & 0xFFFF0000))


@native(inline=True)
def quarters(a: u32, b: u32) -> s32:
    """The product of two unpacked e2m1, in quarters: numbers of one fraction bit and exponents from 0 to 2."""
    if s32(a) >> 16 < 0 or s32(b) >> 16 < 0:
        return 0
    return (s32(s16(a)) * s32(s16(b))) << ((s32(a) >> 16) + (s32(b) >> 16))


@native
def add_sums(
    row: Pointer[u32],
    other: Pointer[u32],
    first: u32,
    depth: u32,
    together: u32,
    factors: Pointer[u32],
    blocks: u32,
    addend: u32,
) -> u32:
    """`addend` and the sums of `together` products each, every one multiplied by the two factors of its block."""
    sums: Pointer[s32] = array(s32, MOST_SUMS)
    for start in range(0, depth, together):
        sum: s32 = 0
        for i in range(start, start + together):
            sum = sum + quarters(row[i], other[first + i])
        sums[start // together] = sum
    return scale_sums(sums, depth // together, factors, factors, blocks, blocks, addend)


@native
def scale_sums(
    sums: Pointer[s32], count: u32, left: Pointer[u32], right: Pointer[u32], first: u32, blocks: u32, addend: u32
) -> u32:
    """`addend` and some sums, in quarters, each multiplied by the two factors of its block; those of B from `first`."""
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
        if left[block] >> 16 == SPECIAL or right[first + block] >> 16 == SPECIAL:
            return NAN_F32
        highest = max(highest, (s32(left[block]) >> 16) + (s32(right[first + block]) >> 16))
    total: s64 = s64(u64(significand) << (SUM_FRACTION - 23) >> u64(min(highest - exponent, 63)))
    if addend >> 31 != 0:
        total = -total
    for index in range(count):
        block = index * blocks // count
        # Two fraction bits of the products, three of each factor.
        scaled: s64 = s64(sums[index]) * s64(s32(s16(left[block]))) * s64(s32(s16(right[first + block])))
        below: s32 = highest - ((s32(left[block]) >> 16) + (s32(right[first + block]) >> 16))
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


@native(inline=True)
def multiply_scaled(exchange: Pointer[u32], members: u32, mma: ScaledMma) -> None:
    """D = A * B + C.

    From register `scales` on are the factors of A, which bytes and which lanes of four supply them, and the same for B.
    Row `g` of A finds its factors in the first of the two lanes that supply them, row `g + 8` in the second.
    """
    depth: u32 = mma.depth
    blocks: u32 = mma.blocks
    scales: u32 = mma.scales
    positions = mma.positions
    together: u32 = 16 if positions.kept == 0 else 32
    row: Pointer[u32] = array(u32, LONGEST_ROW)
    other: Pointer[u32] = array(u32, LARGEST_B)
    factors: Pointer[u32] = array(u32, 8)
    unpack_row(exchange, positions.b, 0, 8 * depth, mma.b_format, other)
    first_byte: u32 = exchange[scales * 32 + 32] & 0xFFFF
    first_lane: u32 = (exchange[scales * 32 + 64] & 0xFFFF) * 2
    other_byte: u32 = exchange[scales * 32 + 128] & 0xFFFF
    other_lane: u32 = exchange[scales * 32 + 160] & 0xFFFF
    if blocks == 1:
        for n in range(8):
            scale: u32 = factor(exchange, scales + 3, n * 4 + other_lane, other_byte)
            scale_row(other, n * depth, depth, unpack_factor(scale, mma.scale_format))
    for i in range(16):
        unpack_a_row(exchange, positions, i, depth, mma.a_format, row)
        lane: u32 = i % 8 * 4 + first_lane + i // 8
        for s in range(blocks):
            factors[s] = unpack_factor(factor(exchange, scales, lane, first_byte + s), mma.scale_format)
        if blocks == 1:
            scale_row(row, 0, depth, factors[0])
        for j in range(8):
            sum: u32 = element(exchange, positions.c[i * 8 + j])
            if blocks == 1:
                sum = add_products(row, 0, other, u64(j) * u64(depth), u64(depth), sum, mma.accumulation)
            else:
                for t in range(blocks):
                    pattern: u32 = factor(exchange, scales + 3, j * 4 + other_lane, other_byte + t)
                    factors[blocks + t] = unpack_factor(pattern, mma.scale_format)
                sum = add_sums(row, other, j * depth, depth, together, factors, blocks, sum)
            put(exchange, positions.d[i * 8 + j], 32, sum)
