"""What Blackwell's tensor core computes: MMAs of matrices in shared and tensor memory, to the bit.

How it adds up is that of MMA-Sim (arXiv 2511.10909) for `tcgen05.mma`: all products of an element and what D held in
one step, 25 bits below the largest exponent. Nothing of it was measured for this program.

Row `i` of D is lane `i`; of 64 rows, each 16 have the first half of a warp's lanes (layouts D and F of the manual).
Where the elements of A and B are is in `tensor_matrix`.
"""

from dataclasses import dataclass

from ptxlab.native import Array, Pointer, array, native, s32, s64, struct, u8, u32, u64
from ptxlab.numbers import parameters, soft
from ptxlab.numbers.parameters import RN
from ptxlab.numbers.tensor_core import F16 as TO_F16
from ptxlab.numbers.tensor_core import F32 as TO_F32
from ptxlab.numbers.tensor_core import MANTISSA_BITS, Accumulation, add_products

from .instruction_descriptor import DEPTHS, I8, MXF8F6F4, PAIR, PLAIN, columns_of, rows_of
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
    unpack_row,
)
from .tensor_memory import COLUMNS
from .warpgroup_multiplication import byte_of

FRACTION = 25
LONGEST = 64
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
    form: u32  # PLAIN, STATIONARY or PAIR
    disabled_lanes: Pointer[u32]  # lanes that are not written, a bit for each


@struct
@dataclass
class HalvesOfB:
    """The shared memory that B is in: of one block, or of two that have half of its columns each."""

    first: Pointer[u8]
    second: Pointer[u8]
    columns: u32  # that each has


@native(inline=True)
def cell_of(row: u32, column: u32, rows: u32, columns: u32, form: u32) -> u32:
    """The cell of an element of D, counted from that of its address.

    With `.ws`, and of two blocks, what 32 or 64 rows leave of the lanes holds further columns (layouts B, E and G).
    """
    if form == PLAIN:
        return lane_of(row, rows) * COLUMNS + column
    width: u32 = columns * rows // 128
    return (row + column // width * rows) * COLUMNS + column % width


@native(inline=True)
def rows_in_lanes(tile: Tile) -> u32:
    """The rows by which `lane_of` places rows of D, and of A in tensor memory."""
    return tile.rows if tile.form == PLAIN else u32(128)


@native(inline=True)
def is_disabled(tile: Tile, row: u32) -> u32:
    """Whether the lane of a row of D is not written."""
    lane: u32 = tile.lane + lane_of(row, rows_in_lanes(tile))
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
    halves = HalvesOfB(first=first_memory, second=second_memory, columns=columns)
    if mma.form == PAIR:
        rows = rows // 2
        halves.columns = columns // 2
    tile = Tile(
        cells=cells,
        first=(mma.d >> 16) * COLUMNS + (mma.d & 0xFFFF),
        lane=mma.d >> 16,
        rows=rows,
        columns=columns,
        form=mma.form,
        disabled_lanes=disabled_lanes,
    )
    a = Matrix(
        start=mma.a,
        memory=memory,
        cells=cells,
        major=IN_TENSOR_MEMORY if mma.a_in_tensor_memory != 0 else bits >> 15 & 1,
        rows=rows_in_lanes(tile),
        bits=bits_of(a_code(bits), kind),
        each=each_of(kind),
    )
    b = Matrix(
        start=mma.b,
        memory=memory,
        cells=cells,
        major=bits >> 16 & 1,
        rows=0,
        bits=bits_of(b_code(bits, kind), kind),
        each=each_of(kind),
    )
    if kind == I8:
        multiply_bytes(mma, tile, a, b, halves)
    else:
        multiply_floats(mma, tile, a, b, halves)


@native
def unpack_b(
    mma: Pointer[TensorMma], tile: Tile, b: Matrix, halves: HalvesOfB, format: u32, into: Pointer[u32]
) -> None:
    """All of B as `add_products` takes it; with one scale factor per row, multiplied by it."""
    bits: u32 = mma.instruction_descriptor
    depth: u32 = DEPTHS[mma.kind]
    sign: u32 = (bits >> 14 & 1) << (b.bits - 1)
    for n in range(tile.columns):
        b.memory = halves.first if n < halves.columns else halves.second
        unpack_row(b, n % halves.columns, mma.kind, format, sign, into, n * depth)
        if mma.scale_factors == 1:
            scale_row(into, n * depth, depth, factor_of(tile.cells, mma.scale_b, n, bits >> 4 & 3, bits))


@native
def multiply_floats(mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB) -> None:
    """An MMA on floats."""
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    depth: u32 = DEPTHS[kind]
    columns: u32 = tile.columns
    cells = tile.cells
    blocks: u32 = mma.scale_factors
    a_format: u32 = format_of(a_code(bits), kind)
    b_format: u32 = format_of(b_code(bits, kind), kind)
    sign: u32 = (bits >> 13 & 1) << (a.bits - 1)
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
    for m in range(tile.rows):
        if is_disabled(tile, m) != 0:
            continue
        unpack_row(a, m, kind, a_format, sign, row, 0)
        for s in range(blocks):
            factors[s] = factor_of(cells, mma.scale_a, m, (bits >> 29 & 3) + s, bits)
        if blocks == 1:
            scale_row(row, 0, depth, factors[0])
        for j in range(columns):
            place: u32 = tile.first + cell_of(m, j, tile.rows, columns, tile.form)
            addend: u32 = 0
            if mma.accumulate != 0:
                addend = scale_addend(cells[place] & 0xFFFF if to_half != 0 else cells[place], mma.scale_d, to_half)
            if blocks > 1:
                for t in range(blocks):
                    factors[blocks + t] = factor_of(cells, mma.scale_b, j, (bits >> 4 & 3) + t, bits)
                cells[place] = add_sums(row, other, j * depth, depth, 16, factors, blocks, addend)
            else:
                sum: u32 = add_products(row, 0, other, u64(j) * u64(depth), u64(depth), addend, how)
                cells[place] = cells[place] & 0xFFFF0000 | sum if to_half != 0 else sum


@native
def factor_of(cells: Pointer[u32], address: u32, row: u32, byte: u32, bits: u32) -> u32:
    """The scale factor of a row: 32 rows are in 32 lanes, the next 32 a column further; a byte of the word is used."""
    cell: u32 = cells[((address >> 16) + row % 32) * COLUMNS + (address & 0xFFFF) + row // 32]
    return unpack_factor(cell >> (8 * byte) & 0xFF, UE8M0 if bits >> 23 & 1 != 0 else UE4M3)


@native
def multiply_bytes(mma: Pointer[TensorMma], tile: Tile, a: Matrix, b: Matrix, halves: HalvesOfB) -> None:
    """An MMA on integers of eight bits, wrapped around or clamped to 32 bits."""
    bits: u32 = mma.instruction_descriptor
    columns: u32 = tile.columns
    cells = tile.cells
    row: Pointer[s32] = array(s32, 32)
    other: Pointer[s32] = array(s32, 256 * 32)
    for n in range(columns):
        b.memory = halves.first if n < halves.columns else halves.second
        for k in range(32):
            other[n * 32 + k] = byte_of(fetch_element(b, n % halves.columns, k), bits >> 10 & 1)
    for m in range(tile.rows):
        if is_disabled(tile, m) != 0:
            continue
        for k in range(32):
            row[k] = byte_of(fetch_element(a, m, k), bits >> 7 & 1)
        for j in range(columns):
            place: u32 = tile.first + cell_of(m, j, tile.rows, columns, tile.form)
            sum: s64 = s64(s32(cells[place])) if mma.accumulate != 0 else s64(0)
            for k in range(32):
                sum = sum + s64(row[k]) * s64(other[j * 32 + k])
            if bits >> 3 & 1 != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            cells[place] = u32(sum)
