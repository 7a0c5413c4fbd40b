"""What Blackwell's tensor core computes: MMAs of matrices in shared and tensor memory, to the bit.

How it adds up is that of MMA-Sim (arXiv 2511.10909) for `tcgen05.mma`: all products of an element and what D held in
one step, 25 bits below the largest exponent. Nothing of it was measured for this program.

Row `i` of D is lane `i`; of 64 rows, each 16 have the first half of a warp's lanes (layouts D and F of the manual).
Where the elements of A and B are is in `tensor_matrix`, which of a sparse A are stored in `tensor_sparsity`.
"""

from dataclasses import dataclass

from ptxlab.native import Array, Pointer, array, native, s32, s64, struct, u8, u32, u64
from ptxlab.numbers import parameters, soft
from ptxlab.numbers.parameters import RN
from ptxlab.numbers.tensor_core import F16 as TO_F16
from ptxlab.numbers.tensor_core import F32 as TO_F32
from ptxlab.numbers.tensor_core import MANTISSA_BITS, NOTHING, Accumulation, add_products, unpack

from .instruction_descriptor import DEPTHS, I8, MXF8F6F4, PAIR, PLAIN, TF32, columns_of, depth_of, rows_of
from .multiplication_scaled import UE4M3, UE8M0, add_sums, scale_row, unpack_factor
from .tensor_matrix import (
    IN_TENSOR_MEMORY,
    Matrix,
    a_code,
    b_code,
    bits_of,
    each_of,
    fetch_element,
    format_of,
    lane_of,
)
from .tensor_memory import COLUMNS
from .tensor_sparsity import KEPT, Sparsity, column_in_row, metadata_address
from .warpgroup_multiplication import byte_of
from .zero_column_mask import is_zero_column, shift_of

FRACTION = 25
LONGEST = 128
LONGEST_OF_BYTES = 64
LARGEST = 256 * LONGEST


@struct
class TensorMma:
    """A `tcgen05.mma`: D = A * B, or D += A * B."""

    kind: u32  # F16, TF32, …; see `instruction_descriptor`
    form: u32  # PLAIN, STATIONARY or PAIR
    instruction_descriptor: u32
    a_in_tensor_memory: u32
    a: u64  # a shared memory descriptor, or an address in tensor memory
    b: u64  # a shared memory descriptor
    d: u32  # an address in tensor memory
    accumulate: u32  # whether what D held is added
    scale_d: u32  # what D held is divided by two to this power
    scale_factors: u32  # per row; 0: it has none
    scale_a: u32  # the address of the scale factors of A in tensor memory
    scale_b: u32  # the address of the scale factors of B in tensor memory
    is_sparse: u32  # whether half of A is stored
    metadata: u32  # of a sparse A: the address of its metadata in tensor memory
    is_shifted: u32  # whether a row of A is taken from the lane above its own
    collector: u32  # what is kept of A or B for other MMAs, see `collector`
    zero_columns: u64  # which columns of B count as zeros, see `zero_column_mask`
    disabled_lanes: Array[u32, 8]  # lanes that are not written, a bit for each, of one block or of two


@struct
@dataclass
class Tile:
    """The part of D that one block computes."""

    cells: Pointer[u32]  # the tensor memory of the block
    first: u32  # the cell at the address of D
    lane: u32  # the lane at the address of D
    rows: u32
    columns: u32
    width: u32  # columns that a lane has; with fewer than all, lanes `rows` further have the next ones
    disabled_lanes: Pointer[u32]  # lanes that are not written, a bit for each


@struct
@dataclass
class HalvesOfB:
    """The shared memory that B is in: of one block, or of two that have half of its columns each."""

    first: Pointer[u8]
    second: Pointer[u8]
    columns: u32  # that each has


@native(inline=True)
def width_of(rows: u32, columns: u32, form: u32, is_sparse: u32) -> u32:
    """The columns of D that a lane has.

    With `.ws`, and of two blocks, what 32 or 64 rows leave of the lanes holds further columns (layouts B, E and G), but
    not of two blocks with a sparse A (layout C).
    """
    return columns if form == PLAIN or (form == PAIR and is_sparse != 0) else columns * rows // 128


@native(inline=True)
def lane_rows(tile: Tile) -> u32:
    """The rows by which `lane_of` places rows of D, and of A and its metadata in tensor memory."""
    return tile.rows if tile.width == tile.columns else u32(128)


@native(inline=True)
def is_disabled(tile: Tile, lane: u32) -> u32:
    """Whether a lane of D is not written."""
    return tile.disabled_lanes[lane // 32] >> (lane % 32) & 1


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
) -> None:
    """D = A * B, and what it held besides if it accumulates; disabled lanes stay as they are.

    A is in `memory`; so is B, or half of its columns are in each of two blocks, which then have half of A and D, too.
    """
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    rows: u32 = rows_of(bits, kind)
    columns: u32 = columns_of(bits)
    halves = HalvesOfB(first=first_memory, second=second_memory, columns=columns + shift_of(mma.zero_columns))
    if mma.form == PAIR:
        rows = rows // 2
        halves.columns = columns // 2
    tile = Tile(
        cells=cells,
        first=(mma.d >> 16) * COLUMNS + (mma.d & 0xFFFF),
        lane=mma.d >> 16,
        rows=rows,
        columns=columns,
        width=width_of(rows, columns, mma.form, mma.is_sparse),
        disabled_lanes=disabled_lanes,
    )
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
    else:
        multiply_floats(mma, tile, a, b, halves, sparsity)


@native(inline=True)
def row_of(a: Matrix, lane: u32, rows: u32) -> u32:
    """The row of A that a lane of D is computed with: of copies in tensor memory, the one in these lanes."""
    return lane if a.major == IN_TENSOR_MEMORY else lane % rows


@native
def unpack_b(
    mma: Pointer[TensorMma], tile: Tile, b: Matrix, halves: HalvesOfB, format: u32, into: Pointer[u32]
) -> None:
    """All of B as `add_products` takes it; with one scale factor per row, multiplied by it."""
    bits: u32 = mma.instruction_descriptor
    depth: u32 = depth_of(mma.kind, mma.is_sparse)
    sign: u32 = (bits >> 14 & 1) << (b.bits - 1)
    padding: u32 = 13 if mma.kind == TF32 else 0
    shift: u32 = shift_of(mma.zero_columns)
    for n in range(tile.columns):
        b.memory = halves.first if n + shift < halves.columns else halves.second
        is_zero: u32 = is_zero_column(mma.zero_columns, n, tile.width)
        for k in range(depth):
            pattern: u32 = fetch_element(b, (n + shift) % halves.columns, k) ^ sign
            into[n * depth + k] = unpack(0 if is_zero != 0 else pattern >> padding, format)
        if mma.scale_factors == 1:
            scale_row(into, n * depth, depth, factor_of(tile.cells, mma.scale_b, n, bits >> 4 & 3, bits))


@native
def unpack_a(mma: Pointer[TensorMma], a: Matrix, row: u32, lane: u32, sparsity: Sparsity, into: Pointer[u32]) -> None:
    """A row of A; of a sparse one, half of the elements are not there."""
    bits: u32 = mma.instruction_descriptor
    format: u32 = format_of(a_code(bits), mma.kind)
    sign: u32 = (bits >> 13 & 1) << (a.bits - 1)
    padding: u32 = 13 if mma.kind == TF32 else 0
    if sparsity.kept != 0:
        for i in range(depth_of(mma.kind, 1)):
            into[i] = NOTHING
    for k in range(DEPTHS[mma.kind]):
        pattern: u32 = (fetch_element(a, row, k) ^ sign) >> padding
        into[column_in_row(sparsity, lane, k)] = unpack(pattern, format)


@native
def multiply_floats(
    mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB, sparsity: Sparsity
) -> None:
    """An MMA on floats."""
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    depth: u32 = depth_of(kind, mma.is_sparse)
    cells = tile.cells
    blocks: u32 = mma.scale_factors
    a_format: u32 = format_of(a_code(bits), kind)
    b_format: u32 = format_of(b_code(bits, kind), kind)
    to_half: u32 = 1 if kind < MXF8F6F4 and bits >> 4 & 3 == 0 else 0
    how = Accumulation(
        fraction=FRACTION,
        lacking=s32(FRACTION) - s32(MANTISSA_BITS[a_format] + MANTISSA_BITS[b_format]),
        result=u32(TO_F16) if to_half != 0 else u32(TO_F32),
    )
    row: Pointer[u32] = array(u32, LONGEST)
    other: Pointer[u32] = array(u32, LARGEST)
    factors: Pointer[u32] = array(u32, 8)
    unpack_b(mma, tile, b, halves, b_format, other)
    for m in range(tile.rows * tile.columns // tile.width):
        lane: u32 = lane_of(m, lane_rows(tile))
        if is_disabled(tile, tile.lane + lane) != 0:
            continue
        unpack_a(mma, a, row_of(a, m, tile.rows), m, sparsity, row)
        for s in range(blocks):
            factors[s] = factor_of(cells, mma.scale_a, m % tile.rows, (bits >> 29 & 3) + s, bits)
        if blocks == 1:
            scale_row(row, 0, depth, factors[0])
        first: u32 = m // tile.rows * tile.width
        for j in range(first, first + tile.width):
            place: u32 = tile.first + lane * COLUMNS + (j - first)
            addend: u32 = 0
            if mma.accumulate != 0:
                addend = scale_addend(cells[place] & 0xFFFF if to_half != 0 else cells[place], mma.scale_d, to_half)
            if blocks > 1:
                for t in range(blocks):
                    factors[blocks + t] = factor_of(cells, mma.scale_b, j, (bits >> 4 & 3) + t, bits)
                together: u32 = u32(16) << mma.is_sparse
                cells[place] = add_sums(row, other, j * depth, depth, together, factors, blocks, addend)
            else:
                sum: u32 = add_products(row, 0, other, u64(j) * u64(depth), u64(depth), addend, how)
                cells[place] = cells[place] & 0xFFFF0000 | sum if to_half != 0 else sum


@native
def factor_of(cells: Pointer[u32], address: u32, row: u32, byte: u32, bits: u32) -> u32:
    """The scale factor of a row: 32 rows are in 32 lanes, the next 32 a column further; a byte of the word is used."""
    cell: u32 = cells[((address >> 16) + row % 32) * COLUMNS + (address & 0xFFFF) + row // 32]
    return unpack_factor(cell >> (8 * byte) & 0xFF, UE8M0 if bits >> 23 & 1 != 0 else UE4M3)


@native
def multiply_bytes(
    mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB, sparsity: Sparsity
) -> None:
    """An MMA on integers of eight bits, wrapped around or clamped to 32 bits."""
    bits: u32 = mma.instruction_descriptor
    depth: u32 = depth_of(I8, mma.is_sparse)
    shift: u32 = shift_of(mma.zero_columns)
    cells = tile.cells
    row: Pointer[s32] = array(s32, LONGEST_OF_BYTES)
    other: Pointer[s32] = array(s32, 256 * LONGEST_OF_BYTES)
    for n in range(tile.columns):
        b.memory = halves.first if n + shift < halves.columns else halves.second
        is_zero: u32 = is_zero_column(mma.zero_columns, n, tile.width)
        for k in range(depth):
            value: s32 = byte_of(fetch_element(b, (n + shift) % halves.columns, k), bits >> 10 & 1)
            other[n * depth + k] = 0 if is_zero != 0 else value
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
            place: u32 = tile.first + lane * COLUMNS + (j - first)
            sum: s64 = s64(s32(cells[place])) if mma.accumulate != 0 else s64(0)
            for k in range(depth):
                sum = sum + s64(row[k]) * s64(other[j * depth + k])
            if bits >> 3 & 1 != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            cells[place] = u32(sum)
