"""One block's part of a `tcgen05.mma`: which lanes and columns of tensor memory D has, and rows of A and B, unpacked.

Row `i` of D is lane `i`; of 64 rows, each 16 have the first half of a warp's lanes (layouts D and F of the manual).
Where the elements of A and B are is in `tensor_matrix`, which of a sparse A are stored in `tensor_sparsity`.
"""

from ptxlab.native import Array, Pointer, f32, native, s32, scratch, struct, u8, u32, u64
from ptxlab.numbers.tensor_core_tiles import ROWS_AT_ONCE, Decoded, decode, leave_out
from ptxlab.values import dataclass

from .instruction_descriptor import DEPTHS, PAIR, PLAIN, TF32, columns_of, depth_of, rows_of
from .tensor_matrix import IN_TENSOR_MEMORY, Matrix, a_code, fetch_element, fetch_row, format_of
from .tensor_memory import COLUMNS
from .tensor_sparsity import Sparsity, column_in_row
from .zero_column_mask import is_zero_column, shift_of

LONGEST = 64  # elements of a row, other than fp4: of a sparse A of bytes


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
    has_long_rows: u32  # whether the target has a K of 96


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


@native
def describe_tile(mma: Pointer[TensorMma], into: Tile) -> None:
    """Where in the tensor memory of a block its part of D is; `cells` and `disabled_lanes` stay as they are."""
    bits: u32 = mma.instruction_descriptor
    rows: u32 = rows_of(bits, mma.kind)
    if mma.form == PAIR:
        rows = rows // 2
    into.first = (mma.d >> 16) * COLUMNS + (mma.d & 0xFFFF)
    into.lane = mma.d >> 16
    into.rows = rows
    into.columns = columns_of(bits)
    into.width = width_of(rows, into.columns, mma.form, mma.is_sparse)


@native(inline=True)
def lane_rows(tile: Tile) -> u32:
    """The rows by which `lane_of` places rows of D, and of A and its metadata in tensor memory."""
    return tile.rows if tile.width == tile.columns else u32(128)


@native(inline=True)
def is_disabled(tile: Tile, lane: u32) -> u32:
    """Whether a lane of D is not written."""
    return tile.disabled_lanes[lane // 32] >> (lane % 32) & 1


@native(inline=True)
def row_of(a: Matrix, lane: u32, rows: u32) -> u32:
    """The row of A that a lane of D is computed with: of copies in tensor memory, the one in these lanes."""
    return lane if a.major == IN_TENSOR_MEMORY else lane % rows


@native
def decode_b(mma: Pointer[TensorMma], tile: Tile, b: Matrix, halves: HalvesOfB, format: u32, into: Decoded) -> None:
    """All of B, column by column."""
    bits: u32 = mma.instruction_descriptor
    depth: u32 = depth_of(mma.instruction_descriptor, mma.kind, mma.is_sparse)
    sign: u32 = (bits >> 14 & 1) << (b.bits - 1)
    padding: u32 = 13 if mma.kind == TF32 else 0
    shift: u32 = shift_of(mma.zero_columns)
    patterns: Pointer[u32] = scratch(u32, LONGEST)
    for n in range(tile.columns):
        b.memory = halves.first if n + shift < halves.columns else halves.second
        is_zero: u32 = is_zero_column(mma.zero_columns, n, tile.width)
        fetch_row(b, (n + shift) % halves.columns, depth, patterns, 0)
        for k in range(depth):
            patterns[k] = 0 if is_zero != 0 else (patterns[k] ^ sign) >> padding
        decode(patterns, depth, format, into, n * depth)


@native
def decode_a(mma: Pointer[TensorMma], tile: Tile, a: Matrix, first: u32, sparsity: Sparsity, into: Decoded) -> None:
    """The rows of A that sixteen lanes of D are computed with; of a sparse one, half of the elements are not there."""
    bits: u32 = mma.instruction_descriptor
    format: u32 = format_of(a_code(bits), mma.kind)
    sign: u32 = (bits >> 13 & 1) << (a.bits - 1)
    padding: u32 = 13 if mma.kind == TF32 else 0
    stored: u32 = DEPTHS[mma.kind]
    patterns: Pointer[u32] = scratch(u32, ROWS_AT_ONCE * LONGEST)
    for i in range(ROWS_AT_ONCE):
        row: u32 = row_of(a, first + i, tile.rows)
        for k in range(stored):
            patterns[k * ROWS_AT_ONCE + i] = (fetch_element(a, row, k) ^ sign) >> padding
    if sparsity.kept == 0:
        decode(patterns, stored * ROWS_AT_ONCE, format, into, 0)
        return
    significands: Pointer[f32] = scratch(f32, ROWS_AT_ONCE * LONGEST)
    exponents: Pointer[s32] = scratch(s32, ROWS_AT_ONCE * LONGEST)
    decode(patterns, stored * ROWS_AT_ONCE, format, Decoded(significands=significands, exponents=exponents), 0)
    leave_out(into, 2 * stored * ROWS_AT_ONCE)
    for k in range(stored):
        for i in range(ROWS_AT_ONCE):
            to: u32 = column_in_row(sparsity, first + i, k) * ROWS_AT_ONCE + i
            into.significands[to] = significands[k * ROWS_AT_ONCE + i]
            into.exponents[to] = exponents[k * ROWS_AT_ONCE + i]
