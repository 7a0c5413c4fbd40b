"""Multiplication of matrices in the registers of a warp, once for all lanes: the warp collectives of `mma` and `wmma`.

`exchange` holds the registers of all lanes, operands and results one after the other; tables of places (see
`layouts.py`) say where each element of a matrix is. B is laid out transposed, so that a product runs along rows of
both.
"""

from ptxlab.native import Pointer, array, bits_float, count_ones, f64, float_bits, fma, native, s32, s64, u32, u64
from ptxlab.numbers import parameters, soft
from ptxlab.numbers.conversion import convert
from ptxlab.numbers.parameters import RN
from ptxlab.numbers.tensor_core import F16, NOTHING, add_products, unpack, widen_f16

LONGEST_ROW = 256
LARGEST_B = 1024  # elements


@native(inline=True)
def element(exchange: Pointer[u32], place: u32) -> u32:
    """The element at a place, in the lowest bits; the bits above it are not cleared."""
    return exchange[place >> 5] >> (place & 31)


@native(inline=True)
def put(exchange: Pointer[u32], place: u32, bits: u32, value: u32) -> None:
    """Write an element of 16 or 32 bits."""
    if bits == 32:
        exchange[place >> 5] = value
    else:
        others: u32 = u32(0xFFFF0000) >> (place & 31)
        exchange[place >> 5] = (exchange[place >> 5] & others) | u32(value << (place & 31))


@native(inline=True)
def column_of(index: u32, choice: u32, kept: u32) -> u32:
    """The column of a stored element of a sparse row, by the two bits that metadata have for it.

    Of a chunk of twice as many elements, `kept` are stored: 2 of 4, pairs of them, 4 of 8, or one of two.
    """
    return 2 * (index - index % kept) + ((choice * kept) >> 1) + (index & (kept >> 2))


@native
def unpack_row(
    exchange: Pointer[u32], places: Pointer[u32], first: u32, count: u32, format: u32, row: Pointer[u32]
) -> None:
    """Unpack `count` floats, whose places begin at `places[first]`, into `row`."""
    for i in range(count):
        row[i] = unpack(element(exchange, places[first + i]), format)


@native
def unpack_sparse_row(
    exchange: Pointer[u32],
    places: Pointer[u32],
    choices: Pointer[u32],
    first: u32,
    count: u32,
    kept: u32,
    format: u32,
    row: Pointer[u32],
) -> None:
    """Unpack the `count` floats that are stored of a row; the elements between them are not there."""
    for i in range(2 * count):
        row[i] = NOTHING
    for j in range(count):
        column: u32 = column_of(j, element(exchange, choices[first + j]) & 3, kept)
        row[column] = unpack(element(exchange, places[first + j]), format)


@native
def multiply_floats(
    exchange: Pointer[u32],
    members: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    copies: u32,
    a_format: u32,
    b_format: u32,
    c_bits: u32,
    d_bits: u32,
    result: u32,
    step: u32,
    fraction: s32,
    lacking: s32,
    late: u32,
    kept: u32,
    a_places: Pointer[u32],
    b_places: Pointer[u32],
    c_places: Pointer[u32],
    d_places: Pointer[u32],
    choices: Pointer[u32],
) -> None:
    """D = A * B + C, `step` products at a time; C comes first, or is added to the rest if `late`.

    What is added up in f32 (see `result`) may end in an f16. If A is sparse, `kept` is not 0 and `choices` are the
    places of metadata.
    """
    row: Pointer[u32] = array(u32, LONGEST_ROW)
    other: Pointer[u32] = array(u32, LARGEST_B)
    for copy in range(copies):
        unpack_row(exchange, b_places, copy * columns * depth, columns * depth, b_format, other)
        for i in range(copy * rows, (copy + 1) * rows):
            if kept == 0:
                unpack_row(exchange, a_places, i * depth, depth, a_format, row)
            else:
                stored: u32 = depth >> 1
                unpack_sparse_row(exchange, a_places, choices, i * stored, stored, kept, a_format, row)
            for j in range(columns):
                addend: u32 = element(exchange, c_places[i * columns + j])
                if c_bits == 16:
                    addend = addend & 0xFFFF
                    if result != F16:
                        addend = widen_f16(addend)
                sum: u32 = 0 if late != 0 else addend
                for k in range(0, depth, step):
                    sum = add_products(
                        row, u64(k), other, u64(j) * u64(depth) + u64(k), u64(step), sum, fraction, lacking, result
                    )
                if late != 0:
                    format: u32 = parameters.F16 if result == F16 else parameters.F32
                    sum = u32(soft.add(u64(sum), u64(addend), format, RN, 0))
                if d_bits == 16 and result != F16:
                    sum = u32(convert(u64(sum), parameters.F32, parameters.F16, RN, 0))
                put(exchange, d_places[i * columns + j], d_bits, sum)


@native
def multiply_quarters(
    exchange: Pointer[u32],
    members: u32,
    c_bits: u32,
    d_bits: u32,
    a_places: Pointer[u32],
    b_places: Pointer[u32],
    c_places: Pointer[u32],
    d_places: Pointer[u32],
) -> None:
    """Four products of 8x4 by 4x8 of f16, as ptxas has them computed from sm_80 on: in f32, by plain instructions."""
    for i in range(32):
        for j in range(8):
            products: Pointer[u64] = array(u64, 8)
            for k in range(4):
                products[k] = u64(widen_f16(element(exchange, a_places[i * 4 + k]) & 0xFFFF))
                products[k + 4] = u64(widen_f16(element(exchange, b_places[(i - i % 8 + j) * 4 + k]) & 0xFFFF))
            addend: u64 = u64(element(exchange, c_places[i * 8 + j]))
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
            put(exchange, d_places[i * 8 + j], d_bits, u32(sum))


@native(inline=True)
def fused(a: u64, b: u64, c: u64, rounding: u32) -> u64:
    """`a * b + c` in f64; the usual rounding is that of the machine at hand, unless there is a NaN."""
    if rounding == RN:
        sum: f64 = fma(f64, bits_float(f64, a), bits_float(f64, b), bits_float(f64, c))
        if sum == sum:
            return float_bits(f64, sum)
    return soft.fma(a, b, c, parameters.F64, rounding, 0)


@native
def multiply_doubles(
    exchange: Pointer[u32],
    members: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    rounding: u32,
    a_places: Pointer[u32],
    b_places: Pointer[u32],
    c_places: Pointer[u32],
    d_places: Pointer[u32],
) -> None:
    """D = A * B + C in f64: one fused multiplication and addition after the other, from the first column of A on."""
    for i in range(rows):
        for j in range(columns):
            place: u32 = c_places[i * columns + j] >> 5
            sum: u64 = u64(exchange[place]) | u64(exchange[place + 32]) << 32
            for k in range(depth):
                left: u32 = a_places[i * depth + k] >> 5
                right: u32 = b_places[j * depth + k] >> 5
                a: u64 = u64(exchange[left]) | u64(exchange[left + 32]) << 32
                b: u64 = u64(exchange[right]) | u64(exchange[right + 32]) << 32
                sum = fused(a, b, sum, rounding)
            place = d_places[i * columns + j] >> 5
            exchange[place] = u32(sum)
            exchange[place + 32] = u32(sum >> 32)


@native(inline=True)
def integer(exchange: Pointer[u32], place: u32, bits: u32, signed: u32) -> u32:
    """The integer at a place, extended to 32 bits."""
    value: u32 = u32(element(exchange, place) << (32 - bits))
    return u32(s32(value) >> s32(32 - bits)) if signed != 0 else value >> (32 - bits)


@native
def multiply_integers(
    exchange: Pointer[u32],
    members: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    bits: u32,
    a_signed: u32,
    b_signed: u32,
    saturate: u32,
    kept: u32,
    a_places: Pointer[u32],
    b_places: Pointer[u32],
    c_places: Pointer[u32],
    d_places: Pointer[u32],
    choices: Pointer[u32],
) -> None:
    """D = A * B + C in integers, wrapped around or clamped to 32 bits."""
    row: Pointer[u32] = array(u32, LONGEST_ROW)
    other: Pointer[u32] = array(u32, LARGEST_B)
    for e in range(columns * depth):
        other[e] = integer(exchange, b_places[e], bits, b_signed)
    for i in range(rows):
        if kept == 0:
            for f in range(depth):
                row[f] = integer(exchange, a_places[i * depth + f], bits, a_signed)
        else:
            stored: u32 = depth >> 1
            for g in range(depth):
                row[g] = 0
            for h in range(stored):
                column: u32 = column_of(h, element(exchange, choices[i * stored + h]) & 3, kept)
                row[column] = integer(exchange, a_places[i * stored + h], bits, a_signed)
        for j in range(columns):
            sum: s64 = s64(s32(element(exchange, c_places[i * columns + j])))
            for k in range(depth):
                sum = sum + s64(s32(row[k])) * s64(s32(other[j * depth + k]))
            if saturate != 0:
                sum = min(max(sum, -0x80000000), 0x7FFFFFFF)
            put(exchange, d_places[i * columns + j], 32, u32(sum))


@native
def multiply_bits(
    exchange: Pointer[u32],
    members: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    conjunction: u32,
    a_places: Pointer[u32],
    b_places: Pointer[u32],
    c_places: Pointer[u32],
    d_places: Pointer[u32],
) -> None:
    """D = the number of ones in `a ^ b`, or in `a & b`, of each row and column, added to C; 32 bits at a time."""
    for i in range(rows):
        for j in range(columns):
            sum: u32 = element(exchange, c_places[i * columns + j])
            for k in range(0, depth, 32):
                a: u32 = element(exchange, a_places[i * depth + k])
                b: u32 = element(exchange, b_places[j * depth + k])
                sum = u32(sum + count_ones(a & b if conjunction != 0 else a ^ b))
            put(exchange, d_places[i * columns + j], 32, sum)
