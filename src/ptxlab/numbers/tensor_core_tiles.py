"""MMAs of a tensor core for many elements of D at once, to the bit what `tensor_core.add_products` computes of each.

A factor is a significand, an f32, and an exponent, both as `unpack` has them. Sixteen rows of D are computed together,
one column after the other: the loops over `ROWS_AT_ONCE` are those that LLVM makes vectors of.

The product of two significands is exact in f32. Multiplied by a power of two, so that the last bit that is kept has the
weight one, it is cut by a conversion to an integer. The sum of sixteen such integers fits 32 bits; the sum of all is
exact in f64, in which it is rounded, too. Steps with infinities and NaNs are left to `add_specials`.
"""

from ptxlab.native import (
    Pointer,
    bits_float,
    f32,
    f64,
    float_bits,
    native,
    s32,
    scratch,
    struct,
    table,
    truncate,
    u32,
    u64,
    unlikely,
)
from ptxlab.values import dataclass

from .tensor_core import (
    ABSENT,
    EXPONENT_BITS,
    F16,
    F32_SHORT,
    FORMATS,
    INFINITIES,
    LEAST_EXPONENT,
    LOWEST_F16,
    LOWEST_F32,
    MANTISSA_BITS,
    NAN_F32,
    NUMBERS,
    SPECIAL,
    ZERO,
    Accumulation,
    add_specials,
)

ROWS_AT_ONCE = 16  # rows of D that are computed together
TOGETHER = 16  # products whose sum fits 32 bits: each is below four and has at most 25 fraction bits
LONGEST_STEP = 256
WHOLE = 2.0**52  # the sum with a smaller number has no fraction bits in f64

# The magnitudes from which on a pattern is infinite or NaN, and of infinity.
SPECIAL_MAGNITUDE = table(u32, [
    1 << e + m if use == NUMBERS else ((1 << e) - 1 << m) + (0 if use == INFINITIES else (1 << m) - 1)
    for e, m, use, _ in FORMATS.values()
])  # fmt: skip
INFINITY = table(u32, [(1 << e) - 1 << m if use == INFINITIES else 0 for e, m, use, _ in FORMATS.values()])


@struct
@dataclass
class Decoded:
    """The elements of A or of B. Of A, a column of sixteen rows is one after the other; of B, a whole column."""

    significands: Pointer[f32]
    exponents: Pointer[s32]


@native
def decode(patterns: Pointer[u32], count: u32, format: u32, into: Decoded, first: u32) -> None:
    """Write factors from their patterns, from `first` on; see `unpack`. Bits above those of the format are ignored."""
    exponent_bits: u32 = EXPONENT_BITS[format]
    mantissa_bits: u32 = MANTISSA_BITS[format]
    sign_bit: u32 = exponent_bits + mantissa_bits
    bias: s32 = s32((u32(1) << (exponent_bits - 1)) - 1)
    least: s32 = LEAST_EXPONENT[format]
    special: u32 = SPECIAL_MAGNITUDE[format]
    infinity: u32 = INFINITY[format]
    significands, exponents = into.significands, into.exponents
    for i in range(count):
        pattern: u32 = patterns[i]
        magnitude: u32 = pattern & ((u32(1) << sign_bit) - 1)
        field: s32 = s32(magnitude >> mantissa_bits)
        mantissa: u32 = magnitude & ((u32(1) << mantissa_bits) - 1)
        plain: f32 = bits_float(f32, 0x3F800000 | mantissa << (23 - mantissa_bits)) - (1.0 if field == 0 else 0.0)
        found: u32 = float_bits(f32, plain)
        own: s32 = max(field, 1) - bias
        exponent: s32 = max(own + s32(found >> 23) - 127, least)
        found = u32(found + u32((own - exponent) << 23))
        found = 0 if magnitude == 0 else found
        exponent = ZERO if magnitude == 0 else exponent
        found = (0x3F800000 if magnitude == infinity else 0) if magnitude >= special else found
        exponents[first + i] = SPECIAL if magnitude >= special else exponent
        significands[first + i] = bits_float(f32, found | ((pattern >> sign_bit) & 1) << 31)


@native
def leave_out(into: Decoded, count: u32) -> None:
    """Have elements not be there: those that a sparse A does not store."""
    for i in range(count):
        into.significands[i] = 0.0
        into.exponents[i] = ABSENT


@struct
@dataclass
class TensorCoreTile:
    """Sixteen rows of A, all columns of B, and the columns of sixteen accumulators each that they make."""

    a: Decoded
    b: Decoded
    columns: u32
    depth: u32  # products for each element
    step: u32  # products that are added up at a time
    row_scales: Pointer[s32]  # exponents of the scale factors of A, added to those of products; NaN is `SPECIAL`
    column_scales: Pointer[s32]  # those of B
    sums: Pointer[u32]  # what products are added to, and then the results: f32, or f16


@native
def multiply_tile(tile: TensorCoreTile, how: Accumulation) -> None:
    """Add the products of rows of A and columns of B to the accumulators, `step` products at a time."""
    for j in range(tile.columns):
        for k in range(0, tile.depth, tile.step):
            add_step(tile, j, k, how)


@native(inline=True)
def add_step(tile: TensorCoreTile, j: u32, first: u32, how: Accumulation) -> None:
    """One step of sixteen elements of column `j`: see `add_products`."""
    a_significands, a_exponents = tile.a.significands, tile.a.exponents
    b_significands, b_exponents = tile.b.significands, tile.b.exponents
    sums, row_scales = tile.sums, tile.row_scales
    step: u32 = tile.step
    scale: s32 = tile.column_scales[j]
    own: u32 = j * ROWS_AT_ONCE
    of_a: u32 = first * ROWS_AT_ONCE
    of_b: u32 = j * tile.depth + first
    fraction: s32 = how.fraction
    result: u32 = how.result
    mantissa_bits: u32 = 10 if result == F16 else 23
    sign_bit: u32 = 15 if result == F16 else 31
    top: s32 = 0x1F if result == F16 else 0xFF
    lowest: s32 = LOWEST_F16 if result == F16 else LOWEST_F32
    highest: Pointer[s32] = scratch(s32, ROWS_AT_ONCE)
    weights: Pointer[s32] = scratch(
        s32, ROWS_AT_ONCE
    )  # the exponent field by which a product with exponent 0 is multiplied
    parts: Pointer[s32] = scratch(s32, ROWS_AT_ONCE)
    totals: Pointer[f64] = scratch(f64, ROWS_AT_ONCE)
    for i in range(ROWS_AT_ONCE):
        highest[i] = ZERO
    for k in range(step):
        column_exponent: s32 = b_exponents[of_b + k]
        for i in range(ROWS_AT_ONCE):
            highest[i] = max(highest[i], column_exponent + a_exponents[of_a + k * ROWS_AT_ONCE + i])
    most: s32 = 0
    for i in range(ROWS_AT_ONCE):
        pattern: u32 = sums[own + i]
        field: s32 = s32(pattern >> mantissa_bits) & top
        mantissa: u32 = (pattern & ((u32(1) << mantissa_bits) - 1)) << (23 - mantissa_bits)
        addend: f32 = bits_float(f32, 0x3F800000 | mantissa) - (1.0 if field == 0 else 0.0)
        exponent: s32 = SPECIAL if field == top else max(field, 1) - (top >> 1)
        exponent = lowest if addend == 0.0 else exponent
        moved: s32 = scale + row_scales[i]
        highest[i] = max(max(highest[i] + moved, exponent), lowest)
        most = max(most, highest[i])
        weight: s32 = fraction + 127 - highest[i]
        magnitude: s32 = truncate(s32, addend * bits_float(f32, u32(max(weight + exponent, 0)) << 23))
        totals[i] = f64(-magnitude if (pattern >> sign_bit) & 1 != 0 else magnitude)
        weights[i] = weight + moved
    for start in range(0, step, TOGETHER):
        for i in range(ROWS_AT_ONCE):
            parts[i] = 0
        for k in range(start, min(start + TOGETHER, step)):
            significand: f32 = b_significands[of_b + k]
            column_exponent = b_exponents[of_b + k]
            for i in range(ROWS_AT_ONCE):
                at: u32 = of_a + k * ROWS_AT_ONCE + i
                power: u32 = u32(max(weights[i] + (column_exponent + a_exponents[at]), 0)) << 23
                parts[i] = parts[i] + truncate(s32, significand * a_significands[at] * bits_float(f32, power))
        for i in range(ROWS_AT_ONCE):
            totals[i] = totals[i] + f64(parts[i])
    if unlikely(most >= SPECIAL // 2):
        for i in range(ROWS_AT_ONCE):
            if highest[i] >= SPECIAL // 2:
                add_special_lane(tile, i, j, first, result)
    for i in range(ROWS_AT_ONCE):
        value: f64 = totals[i] * bits_float(f64, u64(u32(min(highest[i], 1000) + (1023 - fraction))) << 52)
        found: u32 = round_half(value) if result == F16 else round_single(value, 39 if result == F32_SHORT else 29)
        sums[own + i] = sums[own + i] if highest[i] >= SPECIAL // 2 else found


@native(inline=True)
def round_single(value: f64, dropped: u32) -> u32:
    """A number as f32, cut towards zero: without so many bits of an f64, and more where it is subnormal."""
    bits: u64 = float_bits(f64, value)
    below: s32 = max(897 - (s32(bits >> 52) & 0x7FF), 0)
    cut: u64 = u64(dropped) + u64(u32(below))
    kept: u64 = (bits >> cut) << cut if cut <= 52 else u64(0)  # what is cut to nothing loses its sign, too
    return float_bits(f32, f32(bits_float(f64, kept)))


@native(inline=True)
def round_half(value: f64) -> u32:
    """A number as f16, rounded to the nearest, ties to even."""
    bits: u64 = float_bits(f64, value)
    sign: u32 = u32(bits >> 63) << 15
    exponent: s32 = max((s32(bits >> 52) & 0x7FF) - 1023, -14)
    whole: f64 = abs(value) * bits_float(f64, u64(u32(1033 - min(exponent, 16))) << 52) + WHOLE - WHOLE
    significand: u32 = truncate(u32, whole) if exponent <= 15 else u32(0)
    # A carry out of the significand raises the exponent by itself, up to infinity.
    found: u32 = sign + (u32(exponent + 14) << 10) + significand
    return (sign | 0x7C00 if exponent > 15 else found) if whole != 0.0 else u32(0)


@native
def add_special_lane(tile: TensorCoreTile, i: u32, j: u32, first: u32, result: u32) -> None:
    """One step of an element that becomes infinite or NaN."""
    if tile.row_scales[i] + tile.column_scales[j] >= SPECIAL // 2:
        tile.sums[j * ROWS_AT_ONCE + i] = NAN_F32
        return
    row: Pointer[u32] = scratch(u32, LONGEST_STEP)
    column: Pointer[u32] = scratch(u32, LONGEST_STEP)
    for k in range(tile.step):
        row[k] = packed(tile.a, (first + k) * ROWS_AT_ONCE + i)
        column[k] = packed(tile.b, j * tile.depth + first + k)
    addend: u32 = tile.sums[j * ROWS_AT_ONCE + i]
    tile.sums[j * ROWS_AT_ONCE + i] = add_specials(row, 0, column, 0, u64(tile.step), addend, result)


@native
def packed(factors: Decoded, index: u32) -> u32:
    """A factor as `unpack` has it, with ten fraction bits."""
    significand: s32 = truncate(s32, factors.significands[index] * 1024.0)
    return u32(u32(factors.exponents[index]) << 16) | u32(significand) & 0xFFFF
