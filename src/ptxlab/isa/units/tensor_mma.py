"""What Blackwell's tensor core computes: MMAs of matrices in shared and tensor memory, to the bit.

How it adds up is that of MMA-Sim (arXiv 2511.10909) for `tcgen05.mma`: all products of an element and what D held in
one step, 25 bits below the largest exponent. Nothing of it was measured for this program.

Which lanes have which rows is in `tensor_tile`, MMAs with scale factors are in `tensor_mma_scaled`.
"""

from ptxlab.native import Pointer, array, f32, native, s32, s64, scratch, u8, u32, u64
from ptxlab.numbers import parameters, soft
from ptxlab.numbers.parameters import RN
from ptxlab.numbers.tensor_core import F16 as TO_F16
from ptxlab.numbers.tensor_core import F32 as TO_F32
from ptxlab.numbers.tensor_core import MANTISSA_BITS, Accumulation
from ptxlab.numbers.tensor_core_tiles import ROWS_AT_ONCE, Decoded, multiply_tile
from ptxlab.numbers.tensor_core_tiles import TensorCoreTile as Products

from .instruction_descriptor import DEPTHS, I8, MXF4, MXF8F6F4, PAIR, TF32, depth_of
from .tensor_matrix import (
    IN_TENSOR_MEMORY,
    Matrix,
    a_code,
    b_code,
    bits_of,
    each_of,
    fetch_element,
    fetch_row,
    format_of,
    lane_of,
)
from .tensor_memory import COLUMNS
from .tensor_mma_scaled import FRACTION, MOST_COLUMNS, multiply_fp4, multiply_scaled
from .tensor_sparsity import KEPT, Sparsity, column_in_row, is_choice, metadata_address
from .tensor_tile import (
    LONGEST,
    HalvesOfB,
    TensorMma,
    Tile,
    decode_a,
    decode_b,
    describe_tile,
    is_disabled,
    lane_rows,
    row_of,
)
from .warpgroup_multiplication import byte_of
from .zero_column_mask import is_zero_column, shift_of

LARGEST = MOST_COLUMNS * LONGEST


@native
def scale_addend(addend: u32, scale: u32, is_half: u32) -> u32:
    """What D held, times two to the power of minus `scale`."""
    if scale == 0:
        return addend
    if is_half != 0:
        power: u32 = (15 - scale) << 10 if scale < 15 else u32(0x200)
        return u32(soft.mul(u64(addend), u64(power), parameters.F16, RN, 0))
    return u32(soft.mul(u64(addend), u64((127 - u64(scale)) << 23), parameters.F32, RN, 0))


@native
def multiply_in_tensor_memory(
    mma: Pointer[TensorMma],
    cells: Pointer[u32],
    memory: Pointer[u8],
    first_memory: Pointer[u8],
    second_memory: Pointer[u8],
    disabled_lanes: Pointer[u32],
) -> u32:
    """D = A * B, and what it held besides if it accumulates; disabled lanes stay as they are.

    A is in `memory`; so is B, or half of its columns are in each of two blocks, which then have half of A and D, too.
    What it returns is what `find_bad_metadata` finds of a sparse A.
    """
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    tile = Tile(cells=cells, first=0, lane=0, rows=0, columns=0, width=0, disabled_lanes=disabled_lanes)
    describe_tile(mma, tile)
    halves = HalvesOfB(first=first_memory, second=second_memory, columns=tile.columns + shift_of(mma.zero_columns))
    if mma.form == PAIR:
        halves.columns = tile.columns // 2
    a = Matrix(
        start=mma.a,
        memory=memory,
        cells=cells,
        major=IN_TENSOR_MEMORY if mma.a_in_tensor_memory != 0 else bits >> 15 & 1,
        rows=lane_rows(tile),
        bits=bits_of(a_code(bits), kind),
        each=each_of(kind),
        is_shifted=mma.is_shifted,
    )
    b = Matrix(
        start=mma.b,
        memory=memory,
        cells=cells,
        major=bits >> 16 & 1,
        rows=0,
        bits=bits_of(b_code(bits, kind), kind),
        each=each_of(kind),
        is_shifted=0,
    )
    metadata: u32 = metadata_address(mma.metadata, bits, kind)
    sparsity = Sparsity(
        cells=cells,
        kept=KEPT[kind] if mma.is_sparse != 0 else u32(0),
        lane=metadata >> 16,
        column=metadata & 0xFFFF,
        rows=lane_rows(tile),
        has_long_rows=1 if kind > TF32 else 0,
    )
    if kind == I8:
        multiply_bytes(mma, tile, a, b, halves, sparsity)
    elif kind >= MXF4:
        multiply_fp4(mma, tile, a, b, halves, sparsity)
    elif kind == MXF8F6F4:
        multiply_scaled(mma, tile, a, b, halves, sparsity)
    else:
        multiply_floats(mma, tile, a, b, halves, sparsity)
    return find_bad_metadata(kind, tile, a, sparsity) if mma.is_sparse != 0 else u32(0)


@native
def find_bad_metadata(kind: u32, tile: Tile, a: Matrix, sparsity: Sparsity) -> u32:
    """1 + 16 times the row, + the chunk in it, whose metadata choose nothing, though A is not zero there; 0: none.

    Where A is zero, as beyond the end of a matrix, it does not matter what is chosen.
    """
    chunks: u32 = DEPTHS[kind] // sparsity.kept
    for row in range(tile.rows * tile.columns // tile.width):
        for chunk in range(chunks):
            if is_choice(sparsity, row, chunk) == 0:
                for index in range(chunk * sparsity.kept, (chunk + 1) * sparsity.kept):
                    if fetch_element(a, row_of(a, row, tile.rows), index) != 0:
                        return 1 + 16 * row + chunk
    return 0


@native
def multiply_floats(
    mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB, sparsity: Sparsity
) -> None:
    """An MMA on floats without scale factors, sixteen lanes of D at a time."""
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    depth: u32 = depth_of(bits, kind, mma.is_sparse)
    cells = tile.cells
    a_format: u32 = format_of(a_code(bits), kind)
    b_format: u32 = format_of(b_code(bits, kind), kind)
    to_half: u32 = 1 if bits >> 4 & 3 == 0 else 0
    how = Accumulation(
        fraction=FRACTION,
        lacking=s32(FRACTION) - s32(MANTISSA_BITS[a_format] + MANTISSA_BITS[b_format]),
        result=u32(TO_F16) if to_half != 0 else u32(TO_F32),
    )
    rows = Decoded(significands=scratch(f32, ROWS_AT_ONCE * LONGEST), exponents=scratch(s32, ROWS_AT_ONCE * LONGEST))
    columns = Decoded(significands=scratch(f32, LARGEST), exponents=scratch(s32, LARGEST))
    sums: Pointer[u32] = scratch(u32, ROWS_AT_ONCE * MOST_COLUMNS)
    scales: Pointer[s32] = array(s32, MOST_COLUMNS)
    decode_b(mma, tile, b, halves, b_format, columns)
    for m in range(0, tile.rows * tile.columns // tile.width, ROWS_AT_ONCE):
        decode_a(mma, tile, a, m, sparsity, rows)
        for i in range(ROWS_AT_ONCE):
            d = tile.cells + (tile.first + lane_of(m + i, lane_rows(tile)) * COLUMNS)
            for j in range(tile.width):
                held: u32 = d[j] & 0xFFFF if to_half != 0 else d[j]
                sums[j * ROWS_AT_ONCE + i] = scale_addend(held, mma.scale_d, to_half) if mma.accumulate != 0 else u32(0)
        first: u32 = m // tile.rows * tile.width * depth
        part = Decoded(significands=columns.significands + first, exponents=columns.exponents + first)
        products = Products(
            a=rows, b=part, columns=tile.width, depth=depth, step=depth, row_scales=scales, column_scales=scales,
            sums=sums,
        )  # fmt: skip
        multiply_tile(products, how)
        for i in range(ROWS_AT_ONCE):
            lane: u32 = lane_of(m + i, lane_rows(tile))
            d = cells + (tile.first + lane * COLUMNS)
            if is_disabled(tile, tile.lane + lane) == 0:
                for j in range(tile.width):
                    sum: u32 = sums[j * ROWS_AT_ONCE + i]
                    d[j] = d[j] & 0xFFFF0000 | sum if to_half != 0 else sum


@native
def multiply_bytes(
    mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB, sparsity: Sparsity
) -> None:
    """An MMA on integers of eight bits, wrapped around or clamped to 32 bits."""
    bits: u32 = mma.instruction_descriptor
    depth: u32 = depth_of(mma.instruction_descriptor, I8, mma.is_sparse)
    shift: u32 = shift_of(mma.zero_columns)
    cells = tile.cells
    patterns: Pointer[u32] = scratch(u32, LONGEST)
    row: Pointer[s32] = scratch(s32, LONGEST)
    other: Pointer[s32] = scratch(s32, LARGEST)
    for n in range(tile.columns):
        b.memory = halves.first if n + shift < halves.columns else halves.second
        is_zero: u32 = is_zero_column(mma.zero_columns, n, tile.width)
        fetch_row(b, (n + shift) % halves.columns, depth, patterns, 0)
        for k in range(depth):
            other[n * depth + k] = 0 if is_zero != 0 else byte_of(patterns[k], bits >> 10 & 1)
    for m in range(tile.rows * tile.columns // tile.width):
        lane: u32 = lane_of(m, lane_rows(tile))
        if is_disabled(tile, tile.lane + lane) != 0:
            continue
        for k in range(depth):
            row[k] = 0
        for k in range(DEPTHS[I8]):
            row[column_in_row(sparsity, m, k)] = byte_of(fetch_element(a, row_of(a, m, tile.rows), k), bits >> 7 & 1)
        first: u32 = m // tile.rows * tile.width
        for j in range(first, first + tile.width):
            word: u32 = tile.first + lane * COLUMNS + (j - first)
            products: s32 = 0
            for k in range(depth):
                products = products + row[k] * other[j * depth + k]
            sum: s64 = (s64(s32(cells[word])) if mma.accumulate != 0 else s64(0)) + s64(products)
            if bits >> 3 & 1 != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            cells[word] = u32(sum)
