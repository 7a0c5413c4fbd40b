"""MMAs of matrices with a scale factor for each block of elements, as Blackwell's tensor core computes them.

How it adds up is that of MMA-Sim (arXiv 2511.10909): with one factor in a row, it only moves the exponents of the
products, which are added as others are. Of kinds that have nothing but fp4, sixteen products are added without loss and
multiplied by the factors of their block. Nothing of it was measured for this program.
"""

from ptxlab.native import Pointer, array, f32, native, s16, s32, scratch, table, u32
from ptxlab.numbers.tensor_core import F32 as TO_F32
from ptxlab.numbers.tensor_core import MANTISSA_BITS, Accumulation
from ptxlab.numbers.tensor_core_tiles import ROWS_AT_ONCE, Decoded, multiply_tile
from ptxlab.numbers.tensor_core_tiles import TensorCoreTile as Products

from .instruction_descriptor import depth_of, stored_depth_of
from .multiplication_scaled import MOST_SUMS, scale_exponent, scale_sums
from .tensor_matrix import Matrix, a_code, b_code, fetch_element, fetch_row, format_of, lane_of
from .tensor_memory import BAND, COLUMNS
from .tensor_scale import PARTS, Factors, describe_factors, unpack_factors
from .tensor_sparsity import Sparsity, column_in_row
from .tensor_tile import (
    LONGEST,
    HalvesOfB,
    TensorMma,
    Tile,
    decode_a,
    decode_b,
    is_disabled,
    lane_rows,
    row_of,
)

FRACTION = 25
LONGEST_FP4 = 128
SUMMED = 16  # products that are added without loss
MOST_COLUMNS = 256
MOST_FACTORS = 6  # of a row

# Twice the value of e2m1, by its four bits.
DOUBLED = table(s32, [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])


@native
def multiply_scaled(
    mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB, sparsity: Sparsity
) -> None:
    """An MMA with one scale factor for each row of A and each column of B."""
    bits: u32 = mma.instruction_descriptor
    depth: u32 = depth_of(mma.instruction_descriptor, mma.kind, mma.is_sparse)
    a_format: u32 = format_of(a_code(bits), mma.kind)
    b_format: u32 = format_of(b_code(bits, mma.kind), mma.kind)
    lacking: s32 = s32(FRACTION) - s32(MANTISSA_BITS[a_format] + MANTISSA_BITS[b_format])
    how = Accumulation(fraction=FRACTION, lacking=lacking, result=TO_F32)
    of_a = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    of_b = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    describe_factors(mma, False, of_a)
    describe_factors(mma, True, of_b)
    rows = Decoded(significands=scratch(f32, ROWS_AT_ONCE * LONGEST), exponents=scratch(s32, ROWS_AT_ONCE * LONGEST))
    columns = Decoded(significands=scratch(f32, MOST_COLUMNS * LONGEST), exponents=scratch(s32, MOST_COLUMNS * LONGEST))
    sums: Pointer[u32] = scratch(u32, ROWS_AT_ONCE * MOST_COLUMNS)
    row_scales: Pointer[s32] = scratch(s32, ROWS_AT_ONCE)
    column_scales: Pointer[s32] = scratch(s32, MOST_COLUMNS)
    factor: Pointer[u32] = array(u32, 1)
    decode_b(mma, tile, b, halves, b_format, columns)
    for m in range(0, tile.rows * tile.columns // tile.width, ROWS_AT_ONCE):
        part: u32 = (tile.lane + lane_of(m, lane_rows(tile))) // BAND
        for j in range(tile.width):
            unpack_factors(tile.cells, of_b, part, j, factor)
            column_scales[j] = scale_exponent(factor[0])
        decode_a(mma, tile, a, m, sparsity, rows)
        for i in range(ROWS_AT_ONCE):
            unpack_factors(tile.cells, of_a, part, (m + i) % tile.rows, factor)
            row_scales[i] = scale_exponent(factor[0])
            d = tile.cells + (tile.first + lane_of(m + i, lane_rows(tile)) * COLUMNS)
            for j in range(tile.width):
                sums[j * ROWS_AT_ONCE + i] = d[j] if mma.accumulate != 0 else u32(0)
        first: u32 = m // tile.rows * tile.width * depth
        own = Decoded(significands=columns.significands + first, exponents=columns.exponents + first)
        products = Products(
            a=rows, b=own, columns=tile.width, depth=depth, step=depth, row_scales=row_scales,
            column_scales=column_scales, sums=sums,
        )  # fmt: skip
        multiply_tile(products, how)
        for i in range(ROWS_AT_ONCE):
            lane: u32 = lane_of(m + i, lane_rows(tile))
            d = tile.cells + (tile.first + lane * COLUMNS)
            if is_disabled(tile, tile.lane + lane) == 0:
                for j in range(tile.width):
                    d[j] = sums[j * ROWS_AT_ONCE + i]


@native
def multiply_fp4(
    mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB, sparsity: Sparsity
) -> None:
    """An MMA on fp4, with several scale factors for each row of A and each column of B."""
    depth: u32 = depth_of(mma.instruction_descriptor, mma.kind, mma.is_sparse)
    of_a = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    of_b = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    describe_factors(mma, False, of_a)
    describe_factors(mma, True, of_b)
    blocks: u32 = of_a.count
    row: Pointer[s16] = scratch(s16, LONGEST_FP4)
    other: Pointer[s16] = scratch(s16, MOST_COLUMNS * LONGEST_FP4)
    left: Pointer[u32] = scratch(u32, MOST_FACTORS)
    right: Pointer[u32] = scratch(u32, MOST_COLUMNS * MOST_FACTORS)
    sums: Pointer[s32] = scratch(s32, MOST_SUMS)
    together: u32 = u32(SUMMED) << mma.is_sparse
    double_b(mma, tile, b, halves, other)
    part: u32 = PARTS
    for m in range(tile.rows * tile.columns // tile.width):
        lane: u32 = lane_of(m, lane_rows(tile))
        if (tile.lane + lane) // BAND != part:
            part = (tile.lane + lane) // BAND
            for n in range(tile.width):
                unpack_factors(tile.cells, of_b, part, n, right + n * blocks)
        if is_disabled(tile, tile.lane + lane) != 0:
            continue
        double_a(mma, a, row_of(a, m, tile.rows), m, sparsity, row)
        unpack_factors(tile.cells, of_a, part, m % tile.rows, left)
        d = tile.cells + (tile.first + lane * COLUMNS)
        column = other + m // tile.rows * tile.width * depth
        for j in range(tile.width):
            addend: u32 = d[j] if mma.accumulate != 0 else u32(0)
            for index in range(depth // together):
                at: u32 = index * together
                sums[index] = sum_of_products(row + at, column + (j * depth + at), together)
            d[j] = scale_sums(sums, depth // together, left, right, 0, j * blocks, blocks, addend)


@native(inline=True)
def sum_of_products(row: Pointer[s16], column: Pointer[s16], together: u32) -> s32:
    """The sum of so many products, in quarters."""
    sum: s32 = 0
    for start in range(0, together, SUMMED):
        for i in range(SUMMED):
            sum = sum + s32(row[start + i]) * s32(column[start + i])
    return sum


@native
def double_b(mma: Pointer[TensorMma], tile: Tile, b: Matrix, halves: HalvesOfB, into: Pointer[s16]) -> None:
    """All of B, twice its values."""
    depth: u32 = depth_of(mma.instruction_descriptor, mma.kind, mma.is_sparse)
    sign: u32 = (mma.instruction_descriptor >> 14 & 1) << 3
    patterns: Pointer[u32] = scratch(u32, LONGEST_FP4)
    for n in range(tile.columns):
        b.memory = halves.first if n < halves.columns else halves.second
        fetch_row(b, n % halves.columns, depth, patterns, 0)
        for k in range(depth):
            into[n * depth + k] = s16(DOUBLED[patterns[k] ^ sign])


@native
def double_a(mma: Pointer[TensorMma], a: Matrix, row: u32, lane: u32, sparsity: Sparsity, into: Pointer[s16]) -> None:
    """A row of A, twice its values; of a sparse one, half of the elements are zeros."""
    sign: u32 = (mma.instruction_descriptor >> 13 & 1) << 3
    if sparsity.kept != 0:
        for i in range(depth_of(mma.instruction_descriptor, mma.kind, 1)):
            into[i] = 0
    for k in range(stored_depth_of(mma.instruction_descriptor, mma.kind)):
        into[column_in_row(sparsity, lane, k)] = s16(DOUBLED[fetch_element(a, row, k) ^ sign])
