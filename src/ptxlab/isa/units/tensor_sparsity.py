"""Where in tensor memory `tcgen05.mma.sp` finds which elements of a sparse A are stored (PTX ISA 9.7.16.10.8).

The manual only draws it; the numbers are those of CUTLASS (`tmem_e_frg`), and JAX's Mosaic has the same. A row of the
kinds of 16 bits and of tf32 has 32 bits: two halves, of which the first is in lanes 0 to 7 of every sixteen and the
second in lanes 8 to 15, rows 8 to 15 in the upper half of each word. Rows of smaller types have 64 bits, in their own
lanes. With `.ws`, lanes that 32 or 64 rows leave have a copy. Nothing of this was measured for this program.
"""

from ptxlab.native import Pointer, native, struct, u32
from ptxlab.values import dataclass

from .instruction_descriptor import TF32
from .multiplication import column_of
from .tensor_matrix import lane_of
from .tensor_memory import COLUMNS

KEPT = (2, 1, 2, 2, 2, 4, 4)  # by kind: elements that are stored of a chunk of twice as many, see `column_of`

# The four bits of metadata that say something (PTX ISA 9.7.16.10.8), a bit for each value: of tf32, and of others.
CHOICES_OF_ONE = 1 << 0b0100 | 1 << 0b1110
CHOICES_OF_TWO = 1 << 0b0100 | 1 << 0b1000 | 1 << 0b1100 | 1 << 0b1001 | 1 << 0b1101 | 1 << 0b0110 | 1 << 0b1110


@struct
@dataclass
class Sparsity:
    """The metadata of A."""

    cells: Pointer[u32]  # the tensor memory of the block
    kept: u32  # elements that are stored of a chunk, see `column_of`; 0: A is dense
    lane: u32  # the first
    column: u32  # the first
    rows: u32  # which lanes they have, see `lane_of`
    has_long_rows: u32  # whether a row has 64 bits in its own lane, and not 32 in two lanes


@native(inline=True)
def metadata_columns(kind: u32) -> u32:
    """The columns of tensor memory that metadata take."""
    return 1 if kind <= TF32 else 2


@native(inline=True)
def metadata_address(address: u32, bits: u32, kind: u32) -> u32:
    """Where metadata are, by their address and the selector of an instruction descriptor: one of two columns."""
    return address + (bits & 1) if kind <= TF32 else address


@native(inline=True)
def bits_at(sparsity: Sparsity, row: u32, bit: u32) -> u32:
    """The metadata of a row from a bit on."""
    if sparsity.has_long_rows != 0:
        lane: u32 = sparsity.lane + lane_of(row, sparsity.rows)
        return sparsity.cells[lane * COLUMNS + sparsity.column + bit // 32] >> (bit % 32)
    first: u32 = sparsity.lane + lane_of(row - row % 16, sparsity.rows)
    word: u32 = sparsity.cells[(first + row % 8 + bit // 16 * 8) * COLUMNS + sparsity.column]
    return word >> (row // 8 % 2 * 16 + bit % 16)


@native(inline=True)
def choice_of(sparsity: Sparsity, row: u32, index: u32) -> u32:
    """The two bits that metadata have for a stored element."""
    bit: u32 = 2 * index
    if sparsity.kept == 1:
        bit = 4 * index
    elif sparsity.kept == 4:
        bit = index & 0xFFFFFFFE
    return bits_at(sparsity, row, bit) & 3


@native
def is_choice(sparsity: Sparsity, row: u32, chunk: u32) -> u32:
    """Whether the four bits of metadata of a chunk are some that the manual has."""
    chosen: u32 = bits_at(sparsity, row, 4 * chunk) & 15
    choices: u32 = CHOICES_OF_ONE if sparsity.kept == 1 else CHOICES_OF_TWO
    return choices >> chosen & 1


@native(inline=True)
def column_in_row(sparsity: Sparsity, row: u32, index: u32) -> u32:
    """The column of a stored element of A."""
    if sparsity.kept == 0:
        return index
    return column_of(index, choice_of(sparsity, row, index), sparsity.kept)
