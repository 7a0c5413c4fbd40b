"""The matrices that `tcgen05.mma` multiplies: where their elements are in shared and tensor memory, and their formats.

In shared memory sixteen elements of 4, 6 or 8 bits take a chunk of 16 bytes; kinds of nothing but fp4 pack 32 there.
"""

from ptxlab.native import Pointer, native, struct, table, u8, u32, u64
from ptxlab.numbers.tensor_core import NUMBER_OF
from ptxlab.values import dataclass

from .descriptor import MN_MAJOR, tensor_chunk_offset
from .instruction_descriptor import DEPTHS, F16, I8, MXF4, TF32
from .tensor_memory import BAND, COLUMNS

IN_TENSOR_MEMORY = 2  # besides K_MAJOR and MN_MAJOR: how A is there

_SMALL = ("e4m3", "e5m2", "e4m3", "e2m3", "e3m2", "e2m1", "e4m3", "e4m3")
SMALL_FORMATS = table(u32, [NUMBER_OF[name] for name in _SMALL])
SMALL_BITS = (8, 8, 8, 6, 6, 4, 8, 8)
HALF = NUMBER_OF["f16"]
BRAIN = NUMBER_OF["bf16"]
TENSOR = NUMBER_OF["tf32"]
FP4 = NUMBER_OF["e2m1"]


@struct
@dataclass
class Matrix:
    """A, or B transposed: where its elements are."""

    start: u64  # a shared memory descriptor, or an address in tensor memory
    memory: Pointer[u8]  # the shared memory of the block that holds it
    cells: Pointer[u32]  # the tensor memory of the block
    major: u32  # K_MAJOR, MN_MAJOR or IN_TENSOR_MEMORY
    rows: u32  # of a matrix in tensor memory: which lanes its rows have, see `lane_of`
    bits: u32  # the width of an element
    each: u32  # elements of a chunk of 16 bytes
    is_shifted: u32  # of a matrix in tensor memory: whether a row is taken from the lane above its own (`.ashift`)


@native(inline=True)
def a_code(bits: u32) -> u32:
    """The number of the type of A in an instruction descriptor."""
    return bits >> 7 & 7


@native(inline=True)
def b_code(bits: u32, kind: u32) -> u32:
    """The number of the type of B in an instruction descriptor."""
    return bits >> 10 & 7 if kind < MXF4 else bits >> 10 & 3


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


@native(inline=True)
def value_at(memory: Pointer[u8], at: u64, bit: u32, bits: u32) -> u32:
    """The element of so many bits that starts at a bit after an address."""
    value: u32 = 0
    for byte in range((bit % 8 + bits + 7) // 8):
        value = value | u32(memory[at + u64(bit // 8) + u64(byte)]) << (8 * byte)
    return (value >> (bit % 8)) & (u32(0xFFFFFFFF) >> (32 - bits))


@native
def fetch(memory: Pointer[u8], descriptor: u64, row: u32, index: u32, bits: u32, each: u32, major: u32) -> u32:
    """Element `index` of a row of A, or of B transposed, in shared memory."""
    if major == MN_MAJOR:
        return value_at(memory, tensor_chunk_offset(descriptor, index, row // each, major), row % each * bits, bits)
    return value_at(memory, tensor_chunk_offset(descriptor, row, index // each, major), index % each * bits, bits)


@native
def fetch_row(matrix: Matrix, row: u32, count: u32, into: Pointer[u32], first: u32) -> None:
    """The first `count` elements of a row of a matrix in shared memory, at `into[first]` and further on."""
    each: u32 = matrix.each
    bits: u32 = matrix.bits
    if matrix.major == MN_MAJOR:
        for index in range(count):
            into[first + index] = fetch(matrix.memory, matrix.start, row, index, bits, each, MN_MAJOR)
        return
    for index in range(0, count, each):
        at: u64 = tensor_chunk_offset(matrix.start, row, index // each, matrix.major)
        for e in range(min(each, count - index)):
            into[first + index + e] = value_at(matrix.memory, at, e * bits, bits)


@native(inline=True)
def lane_of(row: u32, rows: u32) -> u32:
    """The lane that a row of D, or of A in tensor memory, has, counted from that of its address."""
    return row if rows == 128 else row % 16 + row // 16 * 32


@native(inline=True)
def fetch_element(matrix: Matrix, row: u32, index: u32) -> u32:
    """An element, from either memory; in tensor memory the elements of a row take eight columns.

    There a byte holds an element of four or six bits, but of kinds that have nothing but fp4: fp6 at its bottom, fp4 in
    its middle, as in the registers of `mma.sync` (PTX ISA 9.7.16.10.4.3, 9.7.14.5.14).
    """
    bits: u32 = matrix.bits
    if matrix.major != IN_TENSOR_MEMORY:
        return fetch(matrix.memory, matrix.start, row, index, bits, matrix.each, matrix.major)
    lane: u32 = u32(matrix.start >> 16) + lane_of(row, matrix.rows)
    if matrix.is_shifted != 0 and lane % BAND != BAND - 1:
        lane += 1
    size: u32 = 128 // matrix.each
    bit: u32 = index * size
    cell: u32 = matrix.cells[lane * COLUMNS + (u32(matrix.start) & 0xFFFF) + bit // 32]
    if bits == 4 and size == 8:
        bit += 2
    return (cell >> (bit % 32)) & (u32(0xFFFFFFFF) >> (32 - bits))
