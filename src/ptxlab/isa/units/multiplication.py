"""Multiplication of matrices in the registers of a warp, once for all lanes: the warp collectives of `mma` and `wmma`.

`exchange` holds the registers of all lanes, operands and results one after the other; tables of positions (see
`layouts.py`) say where each element of a matrix is. B is laid out transposed, so that a product runs along rows of
both. Of floats, the positions of A, C and D go column by column: sixteen rows are computed together.
"""

from ptxlab.native import (
    Pointer,
    array,
    bits_float,
    count_ones,
    f32,
    f64,
    float_bits,
    fma,
    native,
    s32,
    s64,
    scratch,
    struct,
    u32,
    u64,
)
from ptxlab.numbers import parameters, soft
from ptxlab.numbers.conversion import convert
from ptxlab.numbers.parameters import RN
from ptxlab.numbers.tensor_core import F16, Accumulation, widen_f16
from ptxlab.numbers.tensor_core_tiles import ROWS_AT_ONCE, Decoded, TensorCoreTile, decode, leave_out, multiply_tile
from ptxlab.values import dataclass

ALL_BITS = 0xFFFFFFFF
LONGEST_ROW = 256
LARGEST_A = 2048  # elements of sixteen rows of floats
LARGEST_B = 1024  # elements
LARGEST_D = 512  # elements of sixteen rows
MOST_COLUMNS = 32


@struct
@dataclass(frozen=True)
class ElementPositions:
    """Where the elements of the matrices are, by row and column."""

    a: Pointer[u32]
    b: Pointer[u32]
    c: Pointer[u32]
    d: Pointer[u32]
    kept: u32  # elements that a sparse A stores of a chunk, see `column_of`; 0: A is dense
    choices: Pointer[u32]  # the metadata of each stored element of a sparse A


@struct
@dataclass
class RowBlock:
    """At most sixteen rows of a matrix."""

    copy: u32  # of matrices side by side
    rows: u32  # of each
    first: u32
    count: u32


@native(inline=True)
def element(exchange: Pointer[u32], position: u32) -> u32:
    """The element at a position, in the lowest bits; the bits above it are not cleared."""
    return exchange[position >> 5] >> (position & 31)


@native(inline=True)
def put(exchange: Pointer[u32], position: u32, bits: u32, value: u32) -> None:
    """Write an element of 16 or 32 bits."""
    if bits == 32:
        exchange[position >> 5] = value
    else:
        others: u32 = u32(0xFFFF0000) >> (position & 31)
        exchange[position >> 5] = (exchange[position >> 5] & others) | u32(value << (position & 31))


@native(inline=True)
def column_of(index: u32, choice: u32, kept: u32) -> u32:
    """The column of a stored element of a sparse row, by the two bits that metadata have for it.

    Of a chunk of twice as many elements, `kept` are stored: 2 of 4, pairs of them, 4 of 8, or one of two.
    """
    return 2 * (index - index % kept) + ((choice * kept) >> 1) + (index & (kept >> 2))


@native
def gather(
    exchange: Pointer[u32], positions: Pointer[u32], at: RowBlock, columns: u32, mask: u32, into: Pointer[u32]
) -> None:
    """The elements of some rows, column by column of sixteen; what is missing of these is zero."""
    start: u32 = at.copy * columns * at.rows + at.first
    rows: u32 = at.rows
    count: u32 = at.count
    for k in range(columns):
        for i in range(count):
            into[k * ROWS_AT_ONCE + i] = element(exchange, positions[start + k * rows + i]) & mask
        for i in range(count, ROWS_AT_ONCE):
            into[k * ROWS_AT_ONCE + i] = 0


@native
def decode_b(
    exchange: Pointer[u32], positions: Pointer[u32], first: u32, count: u32, format: u32, into: Decoded
) -> None:
    """Decode `count` floats of B, whose positions start at `positions[first]`."""
    patterns: Pointer[u32] = scratch(u32, LARGEST_B)
    for i in range(count):
        patterns[i] = element(exchange, positions[first + i])
    decode(patterns, count, format, into, 0)


@native
def decode_a(
    exchange: Pointer[u32], positions: ElementPositions, at: RowBlock, depth: u32, format: u32, into: Decoded
) -> None:
    """Decode rows of A; of a sparse one, half of the elements are stored, and those between them are not there."""
    stored: u32 = depth if positions.kept == 0 else depth >> 1
    patterns: Pointer[u32] = scratch(u32, LARGEST_A)
    gather(exchange, positions.a, at, stored, ALL_BITS, patterns)
    if positions.kept == 0:
        decode(patterns, stored * ROWS_AT_ONCE, format, into, 0)
        return
    significands: Pointer[f32] = scratch(f32, LARGEST_A)
    exponents: Pointer[s32] = scratch(s32, LARGEST_A)
    decode(patterns, stored * ROWS_AT_ONCE, format, Decoded(significands=significands, exponents=exponents), 0)
    gather(exchange, positions.choices, at, stored, 3, patterns)
    leave_out(into, depth * ROWS_AT_ONCE)
    for k in range(stored):
        for i in range(at.count):
            to: u32 = column_of(k, patterns[k * ROWS_AT_ONCE + i], positions.kept) * ROWS_AT_ONCE + i
            into.significands[to] = significands[k * ROWS_AT_ONCE + i]
            into.exponents[to] = exponents[k * ROWS_AT_ONCE + i]


@struct
@dataclass(frozen=True)
class FloatMma:
    """An MMA on floats."""

    rows: u32  # of A and D
    columns: u32  # of B and D
    depth: u32  # products for each element of D
    copies: u32  # matrices side by side, each with its own rows and columns
    a_format: u32  # see `tensor_core.FORMATS`
    b_format: u32
    c_bits: u32
    d_bits: u32  # 16: what is added up in f32 may end in an f16
    step: u32  # products that are added up at a time
    late: u32  # whether C is added to the rest, and does not come first
    accumulation: Accumulation
    positions: ElementPositions


@native
def multiply_floats(exchange: Pointer[u32], members: u32, mma: FloatMma) -> None:
    """D = A * B + C, some products at a time."""
    columns: u32 = mma.columns
    depth: u32 = mma.depth
    positions = mma.positions
    sums: Pointer[u32] = scratch(u32, LARGEST_D)
    addends: Pointer[u32] = scratch(u32, LARGEST_D)
    a = Decoded(significands=scratch(f32, LARGEST_A), exponents=scratch(s32, LARGEST_A))
    b = Decoded(significands=scratch(f32, LARGEST_B), exponents=scratch(s32, LARGEST_B))
    scales: Pointer[s32] = array(s32, MOST_COLUMNS)
    tile = TensorCoreTile(
        a=a, b=b, columns=columns, depth=depth, step=mma.step, row_scales=scales, column_scales=scales, sums=sums
    )
    at = RowBlock(copy=0, rows=mma.rows, first=0, count=min(mma.rows, ROWS_AT_ONCE))
    for copy in range(mma.copies):
        at.copy = copy
        decode_b(exchange, positions.b, copy * columns * depth, columns * depth, mma.b_format, b)
        for first in range(0, mma.rows, ROWS_AT_ONCE):
            at.first = first
            decode_a(exchange, positions, at, depth, mma.a_format, a)
            gather(exchange, positions.c, at, columns, u32(ALL_BITS) >> (32 - mma.c_bits), addends)
            if mma.c_bits == 16 and mma.accumulation.result != F16:
                for e in range(columns * ROWS_AT_ONCE):
                    addends[e] = widen_f16(addends[e])
            is_early: u32 = 1 - mma.late
            for e in range(columns * ROWS_AT_ONCE):
                sums[e] = addends[e] * is_early
            multiply_tile(tile, mma.accumulation)
            finish(mma, addends, sums)
            scatter(exchange, positions.d, at, columns, mma.d_bits, sums)


@native(inline=True)
def finish(mma: FloatMma, addends: Pointer[u32], sums: Pointer[u32]) -> None:
    """Add C where it comes last, and round what is added up in f32 to the f16 that D has."""
    result: u32 = mma.accumulation.result
    if mma.late != 0:
        for e in range(mma.columns * ROWS_AT_ONCE):
            sum: f32 = bits_float(f32, sums[e]) + bits_float(f32, addends[e])
            if result != F16 and sum == sum:
                sums[e] = float_bits(f32, sum)
            else:
                format: u32 = parameters.F16 if result == F16 else parameters.F32
                sums[e] = u32(soft.add(u64(sums[e]), u64(addends[e]), format, RN, 0))
    if mma.d_bits == 16 and result != F16:
        for e in range(mma.columns * ROWS_AT_ONCE):
            sums[e] = u32(convert(u64(sums[e]), parameters.F32, parameters.F16, RN, 0))


@native
def scatter(
    exchange: Pointer[u32], positions: Pointer[u32], at: RowBlock, columns: u32, bits: u32, values: Pointer[u32]
) -> None:
    """Write the elements of some rows, which are column by column of sixteen."""
    start: u32 = at.copy * columns * at.rows + at.first
    rows: u32 = at.rows
    count: u32 = at.count
    for j in range(columns):
        for i in range(count):
            put(exchange, positions[start + j * rows + i], bits, values[j * ROWS_AT_ONCE + i])


@native
def multiply_quarters(
    exchange: Pointer[u32], members: u32, c_bits: u32, d_bits: u32, positions: ElementPositions
) -> None:
    """Four products of 8x4 by 4x8 of f16, as ptxas has them computed from sm_80 on: in f32, by plain instructions."""
    for i in range(32):
        for j in range(8):
            products: Pointer[u64] = array(u64, 8)
            for k in range(4):
                products[k] = u64(widen_f16(element(exchange, positions.a[i * 4 + k]) & 0xFFFF))
                products[k + 4] = u64(widen_f16(element(exchange, positions.b[(i - i % 8 + j) * 4 + k]) & 0xFFFF))
            addend: u64 = u64(element(exchange, positions.c[i * 8 + j]))
            if c_bits == 16:
                addend = u64(widen_f16(u32(addend & 0xFFFF)))
            sum: u64 = 0
            if d_bits == 32:
                for m in range(4):
                    sum = soft.fma(products[m], products[m + 4], sum, parameters.F32, RN, 0)
                sum = soft.add(sum, addend, parameters.F32, RN, 0)
            else:
                sum = addend
                for n in range(0, 4, 2):
                    pair: u64 = soft.mul(products[n], products[n + 4], parameters.F32, RN, 0)
                    pair = soft.fma(products[n + 1], products[n + 5], pair, parameters.F32, RN, 0)
                    sum = soft.add(sum, pair, parameters.F32, RN, 0)
                sum = convert(sum, parameters.F32, parameters.F16, RN, 0)
            put(exchange, positions.d[i * 8 + j], d_bits, u32(sum))


@native(inline=True)
def fused(a: u64, b: u64, c: u64, rounding: u32) -> u64:
    """`a * b + c` in f64; the usual rounding is that of the machine at hand, unless there is a NaN."""
    if rounding == RN:
        sum: f64 = fma(f64, bits_float(f64, a), bits_float(f64, b), bits_float(f64, c))
        if sum == sum:
            return float_bits(f64, sum)
    return soft.fma(a, b, c, parameters.F64, rounding, 0)


@struct
@dataclass(frozen=True)
class DoubleMma:
    """An MMA on f64."""

    rows: u32  # of A and D
    columns: u32  # of B and D
    depth: u32  # products for each element of D
    rounding: u32
    positions: ElementPositions


@native(inline=True)
def double_at(exchange: Pointer[u32], position: u32) -> u64:
    """The f64 at a position: the second word is in the next register."""
    return u64(exchange[position >> 5]) | u64(exchange[(position >> 5) + 32]) << 32


@native
def multiply_doubles(exchange: Pointer[u32], members: u32, mma: DoubleMma) -> None:
    """D = A * B + C in f64: one fused multiplication and addition after the other, from the first column of A on."""
    columns: u32 = mma.columns
    depth: u32 = mma.depth
    positions = mma.positions
    row: Pointer[u64] = scratch(u64, LONGEST_ROW)
    other: Pointer[u64] = scratch(u64, LARGEST_B)
    for e in range(columns * depth):
        other[e] = double_at(exchange, positions.b[e])
    for i in range(mma.rows):
        for k in range(depth):
            row[k] = double_at(exchange, positions.a[i * depth + k])
        for j in range(columns):
            sum: u64 = double_at(exchange, positions.c[i * columns + j])
            for k in range(depth):
                sum = fused(row[k], other[j * depth + k], sum, mma.rounding)
            position: u32 = positions.d[i * columns + j] >> 5
            exchange[position] = u32(sum)
            exchange[position + 32] = u32(sum >> 32)


@native(inline=True)
def integer(exchange: Pointer[u32], position: u32, bits: u32, signed: u32) -> s32:
    """The integer at a position, extended to 32 bits."""
    value: u32 = u32(element(exchange, position) << (32 - bits))
    return s32(value) >> s32(32 - bits) if signed != 0 else s32(value >> (32 - bits))


@struct
@dataclass(frozen=True)
class IntegerMma:
    """An MMA on integers of four or eight bits."""

    rows: u32  # of A and D
    columns: u32  # of B and D
    depth: u32  # products for each element of D
    bits: u32  # of an element of A or B
    a_signed: u32
    b_signed: u32
    saturate: u32  # whether sums are clamped to 32 bits, and do not wrap around
    positions: ElementPositions


@native
def multiply_integers(exchange: Pointer[u32], members: u32, mma: IntegerMma) -> None:
    """D = A * B + C in integers, wrapped around or clamped to 32 bits."""
    columns: u32 = mma.columns
    depth: u32 = mma.depth
    positions = mma.positions
    row: Pointer[s32] = scratch(s32, LONGEST_ROW)
    other: Pointer[s32] = scratch(s32, LARGEST_B)
    for e in range(columns * depth):
        other[e] = integer(exchange, positions.b[e], mma.bits, mma.b_signed)
    for i in range(mma.rows):
        if positions.kept == 0:
            for f in range(depth):
                row[f] = integer(exchange, positions.a[i * depth + f], mma.bits, mma.a_signed)
        else:
            stored: u32 = depth >> 1
            for g in range(depth):
                row[g] = 0
            for h in range(stored):
                column: u32 = column_of(h, element(exchange, positions.choices[i * stored + h]) & 3, positions.kept)
                row[column] = integer(exchange, positions.a[i * stored + h], mma.bits, mma.a_signed)
        for j in range(columns):
            products: s32 = 0
            for k in range(depth):
                products = products + row[k] * other[j * depth + k]
            sum: s64 = s64(s32(element(exchange, positions.c[i * columns + j]))) + s64(products)
            if mma.saturate != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            put(exchange, positions.d[i * columns + j], 32, u32(sum))


@struct
@dataclass(frozen=True)
class BitMma:
    """An MMA on single bits."""

    rows: u32  # of A and D
    columns: u32  # of B and D
    depth: u32  # products for each element of D
    conjunction: u32  # whether two bits are combined by `&`, and not by `^`
    positions: ElementPositions


@native
def multiply_bits(exchange: Pointer[u32], members: u32, mma: BitMma) -> None:
    """D = the number of ones in `a ^ b`, or in `a & b`, of each row and column, added to C; 32 bits at a time."""
    columns: u32 = mma.columns
    depth: u32 = mma.depth
    positions = mma.positions
    for i in range(mma.rows):
        for j in range(columns):
            sum: u32 = element(exchange, positions.c[i * columns + j])
            for k in range(0, depth, 32):
                a: u32 = element(exchange, positions.a[i * depth + k])
                b: u32 = element(exchange, positions.b[j * depth + k])
                sum = u32(sum + count_ones(a & b if mma.conjunction != 0 else a ^ b))
            put(exchange, positions.d[i * columns + j], 32, sum)
