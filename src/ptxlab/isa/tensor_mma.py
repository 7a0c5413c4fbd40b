"""What Blackwell's tensor core computes: MMAs of matrices in shared and tensor memory, to the bit.

How it adds up is that of MMA-Sim (arXiv 2511.10909) for `tcgen05.mma`: all products of an element and what D held in
one step, 25 bits below the largest exponent. Nothing of it was measured for this program.

Row `i` of D is lane `i`; of 64 rows, each 16 have the first half of a warp's lanes (layouts D and F of the manual). In
shared memory sixteen elements of 4, 6 or 8 bits take a chunk of 16 bytes; only kinds of nothing but fp4 pack 32 there.
"""

from ptxlab.native import Pointer, array, native, s32, s64, table, u8, u32, u64
from ptxlab.numbers import parameters, soft
from ptxlab.numbers.parameters import RN
from ptxlab.numbers.tensor_core import F16 as TO_F16
from ptxlab.numbers.tensor_core import F32 as TO_F32
from ptxlab.numbers.tensor_core import MANTISSA_BITS, NUMBER_OF, add_products, unpack

from .descriptor import MN_MAJOR, tensor_chunk_offset
from .instruction_descriptor import DEPTHS, F16, I8, MXF4, MXF8F6F4, PAIR, PLAIN, TF32, columns_of, rows_of
from .multiplication_scaled import UE4M3, UE8M0, add_sums, scale_row, unpack_factor
from .tensor_memory import COLUMNS
from .warpgroup_multiplication import byte_of

FRACTION = 25
LONGEST = 64
LARGEST = 256 * LONGEST
IN_TENSOR_MEMORY = 2  # besides K_MAJOR and MN_MAJOR: how A is there

_SMALL = ("e4m3", "e5m2", "e4m3", "e2m3", "e3m2", "e2m1", "e4m3", "e4m3")
SMALL_FORMATS = table(u32, [NUMBER_OF[name] for name in _SMALL])
SMALL_BITS = (8, 8, 8, 6, 6, 4, 8, 8)
HALF = NUMBER_OF["f16"]
BRAIN = NUMBER_OF["bf16"]
TENSOR = NUMBER_OF["tf32"]
FP4 = NUMBER_OF["e2m1"]


@native
def format_of(code: u32, kind: u32) -> u32:
    """The format of a factor, by its number in an instruction descriptor."""
    if kind == F16:
        return HALF if code == 0 else BRAIN
    if kind == TF32:
        return TENSOR
    if kind >= MXF4:
        return FP4
    return SMALL_FORMATS[code]


@native
def bits_of(code: u32, kind: u32) -> u32:
    """The bits of a factor in shared memory."""
    if kind == F16:
        return 16
    if kind == TF32:
        return 32
    if kind == I8:
        return 8
    if kind >= MXF4:
        return 4
    return SMALL_BITS[code]


@native(inline=True)
def each_of(kind: u32) -> u32:
    """The elements of a chunk of 16 bytes."""
    return DEPTHS[kind] // 2


@native
def fetch(memory: Pointer[u8], descriptor: u64, row: u32, index: u32, bits: u32, each: u32, major: u32) -> u32:
    """Element `index` of a row of A, or of B transposed, in shared memory."""
    at: u64 = 0
    bit: u32 = 0
    if major == MN_MAJOR:
        at = tensor_chunk_offset(descriptor, index, row // each, major)
        bit = row % each * bits
    else:
        at = tensor_chunk_offset(descriptor, row, index // each, major)
        bit = index % each * bits
    value: u32 = 0
    for byte in range((bit % 8 + bits + 7) // 8):
        value = value | u32(memory[at + u64(bit // 8) + u64(byte)]) << (8 * byte)
    return (value >> (bit % 8)) & (u32(0xFFFFFFFF) >> (32 - bits))


@native(inline=True)
def lane_of(row: u32, rows: u32) -> u32:
    """The lane that a row of D, or of A in tensor memory, has, counted from that of its address."""
    return row if rows == 128 else row % 16 + row // 16 * 32


@native(inline=True)
def cell_of(row: u32, column: u32, rows: u32, columns: u32, form: u32) -> u32:
    """The cell of an element of D, counted from that of its address.

    With `.ws`, and of two blocks, what 32 or 64 rows leave of the lanes holds further columns (layouts B, E and G).
    """
    if form == PLAIN:
        return lane_of(row, rows) * COLUMNS + column
    width: u32 = columns * rows // 128
    return (row + column // width * rows) * COLUMNS + column % width


@native
def fetch_a(
    cells: Pointer[u32], memory: Pointer[u8], a: u64, row: u32, rows: u32, index: u32, bits: u32, each: u32, major: u32
) -> u32:
    """An element of A, from either memory; in tensor memory elements are packed into cells, 8, 16 or 32 bits each."""
    if major != IN_TENSOR_MEMORY:
        return fetch(memory, a, row, index, bits, each, major)
    lane: u32 = u32(a >> 16) + lane_of(row, rows)
    cell: u32 = cells[lane * COLUMNS + (u32(a) & 0xFFFF) + index * bits // 32]
    return (cell >> (index * bits % 32)) & (u32(0xFFFFFFFF) >> (32 - bits))


@native
def unpack_matrix(
    cells: Pointer[u32],
    memory: Pointer[u8],
    from_: u64,
    row: u32,
    rows: u32,
    code: u32,
    kind: u32,
    negate: u32,
    major: u32,
    into: Pointer[u32],
    first: u32,
) -> None:
    """One row of A, or of B transposed, as `add_products` takes it."""
    format: u32 = format_of(code, kind)
    bits: u32 = bits_of(code, kind)
    padding: u32 = 13 if kind == TF32 else 0
    for index in range(DEPTHS[kind]):
        pattern: u32 = fetch_a(cells, memory, from_, row, rows, index, bits, each_of(kind), major)
        into[first + index] = unpack((pattern ^ (negate << (bits - 1))) >> padding, format)


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
    cells: Pointer[u32],
    memory: Pointer[u8],
    first_memory: Pointer[u8],
    second_memory: Pointer[u8],
    d: u32,
    a: u64,
    b: u64,
    bits: u32,
    kind: u32,
    a_in_cells: u32,
    adds: u32,
    scale_d: u32,
    masks: Pointer[u32],
    scale_a: u32,
    scale_b: u32,
    blocks: u32,
    form: u32,
) -> None:
    """D = A * B, and what it held besides if `adds`; lanes that `masks` have stay as they are.

    A is in `memory`; so is B, or half of its columns are in each of two blocks, which then have half of A and D, too.
    """
    rows: u32 = rows_of(bits, kind)
    columns: u32 = columns_of(bits)
    own: u32 = columns
    if form == PAIR:
        rows = rows // 2
        own = columns // 2
    depth: u32 = DEPTHS[kind]
    a_major: u32 = IN_TENSOR_MEMORY if a_in_cells != 0 else bits >> 15 & 1
    b_major: u32 = bits >> 16 & 1
    a_code: u32 = bits >> 7 & 7
    b_code: u32 = bits >> 10 & 7 if kind < MXF4 else bits >> 10 & 3
    if kind == I8:
        multiply_bytes(cells, memory, d, a, b, bits, a_major, b_major, adds, masks, form, first_memory, second_memory)
        return
    to_half: u32 = 1 if kind < MXF8F6F4 and bits >> 4 & 3 == 0 else 0
    result: u32 = TO_F16 if to_half != 0 else TO_F32
    mantissas: u32 = MANTISSA_BITS[format_of(a_code, kind)] + MANTISSA_BITS[format_of(b_code, kind)]
    lacking: s32 = s32(FRACTION) - s32(mantissas)
    row: Pointer[u32] = array(u32, LONGEST)
    other: Pointer[u32] = array(u32, LARGEST)
    factors: Pointer[u32] = array(u32, 8)
    first: u32 = (d >> 16) * COLUMNS + (d & 0xFFFF)
    for n in range(columns):
        half = first_memory if n < own else second_memory
        unpack_matrix(cells, half, b, n % own, 0, b_code, kind, bits >> 14 & 1, b_major, other, n * depth)
        if blocks == 1:
            scale_row(other, n * depth, depth, factor_of(cells, scale_b, n, bits >> 4 & 3, bits))
    for m in range(rows):
        lane: u32 = (d >> 16) + lane_of(m, rows if form == PLAIN else u32(128))
        if masks[lane // 32] >> (lane % 32) & 1 != 0:
            continue
        unpack_matrix(
            cells, memory, a, m, rows if form == PLAIN else u32(128), a_code, kind, bits >> 13 & 1, a_major, row, 0
        )
        for s in range(blocks):
            factors[s] = factor_of(cells, scale_a, m, (bits >> 29 & 3) + s, bits)
        if blocks == 1:
            scale_row(row, 0, depth, factors[0])
        for j in range(columns):
            place: u32 = first + cell_of(m, j, rows, columns, form)
            addend: u32 = 0
            if adds != 0:
                addend = scale_addend(cells[place] & 0xFFFF if to_half != 0 else cells[place], scale_d, to_half)
            if blocks > 1:
                for t in range(blocks):
                    factors[blocks + t] = factor_of(cells, scale_b, j, (bits >> 4 & 3) + t, bits)
                cells[place] = add_sums(row, other, j * depth, depth, 16, factors, blocks, addend)
            else:
                sum: u32 = add_products(
                    row, 0, other, u64(j) * u64(depth), u64(depth), addend, FRACTION, lacking, result
                )
                cells[place] = cells[place] & 0xFFFF0000 | sum if to_half != 0 else sum


@native
def factor_of(cells: Pointer[u32], address: u32, row: u32, byte: u32, bits: u32) -> u32:
    """The scale factor of a row: 32 rows are in 32 lanes, the next 32 a column further; a byte of the word is used."""
    cell: u32 = cells[((address >> 16) + row % 32) * COLUMNS + (address & 0xFFFF) + row // 32]
    return unpack_factor(cell >> (8 * byte) & 0xFF, UE8M0 if bits >> 23 & 1 != 0 else UE4M3)


@native
def multiply_bytes(
    cells: Pointer[u32],
    memory: Pointer[u8],
    d: u32,
    a: u64,
    b: u64,
    bits: u32,
    a_major: u32,
    b_major: u32,
    adds: u32,
    masks: Pointer[u32],
    form: u32,
    first_memory: Pointer[u8],
    second_memory: Pointer[u8],
) -> None:
    """The same on integers of eight bits, wrapped around or clamped to 32 bits."""
    rows: u32 = rows_of(bits, I8)
    columns: u32 = columns_of(bits)
    own: u32 = columns
    if form == PAIR:
        rows = rows // 2
        own = columns // 2
    row: Pointer[s32] = array(s32, 32)
    other: Pointer[s32] = array(s32, 256 * 32)
    first: u32 = (d >> 16) * COLUMNS + (d & 0xFFFF)
    for n in range(columns):
        for k in range(32):
            half = first_memory if n < own else second_memory
            other[n * 32 + k] = byte_of(fetch(half, b, n % own, k, 8, 16, b_major), bits >> 10 & 1)
    for m in range(rows):
        lane: u32 = (d >> 16) + lane_of(m, rows if form == PLAIN else u32(128))
        if masks[lane // 32] >> (lane % 32) & 1 != 0:
            continue
        for k in range(32):
            row[k] = byte_of(
                fetch_a(cells, memory, a, m, rows if form == PLAIN else u32(128), k, 8, 16, a_major), bits >> 7 & 1
            )
        for j in range(columns):
            place: u32 = first + cell_of(m, j, rows, columns, form)
            sum: s64 = s64(s32(cells[place])) if adds != 0 else s64(0)
            for k in range(32):
                sum = sum + s64(row[k]) * s64(other[j * 32 + k])
            if bits >> 3 & 1 != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            cells[place] = u32(sum)
