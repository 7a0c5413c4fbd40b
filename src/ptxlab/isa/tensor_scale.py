"""Scale factors of a `tcgen05.mma`: where they are in tensor memory (PTX ISA 9.7.16.10.7).

32 rows of A, or columns of B, are in 32 lanes, the next 32 a column further; a byte of a word is a factor. Each
sub-partition of 32 lanes has a copy of all of them, and what of D is in its lanes is computed with that copy. Where two
blocks have 64 rows each and two sub-partitions compute half of the columns, these have the factors of that half.

The manual says that factors are duplicated to all sub-partitions, and only draws the rest; the numbers are those of
CUTLASS (`tmem_sf_frg`) and Triton (`tensorMemoryScalesToLinearLayout`), the place of D's own copy is what the words
imply. Nothing of this was measured for this program.
"""

from dataclasses import dataclass

from ptxlab.native import Pointer, boolean, native, struct, u32

from .instruction_descriptor import PAIR, columns_of, rows_of
from .multiplication_scaled import UE4M3, UE8M0, unpack_factor
from .tensor_memory import BAND, COLUMNS, LANES
from .tensor_tile import TensorMma, width_of

PARTS = LANES // BAND


@struct
@dataclass
class Factors:
    """The scale factors of A or of B."""

    address: u32  # of a TMEM word
    rows: u32  # of A, or columns of B, that a sub-partition has factors of
    byte: u32  # of a word: the first that is used
    count: u32  # of a row
    format: u32  # UE8M0 or UE4M3


@native
def describe_factors(mma: Pointer[TensorMma], is_b: boolean, into: Factors) -> None:
    """Which scale factors an MMA has for A or B in each block."""
    bits: u32 = mma.instruction_descriptor
    rows: u32 = rows_of(bits, mma.kind)
    if mma.form == PAIR:
        rows = rows // 2
    into.address = mma.scale_b if is_b else mma.scale_a
    into.rows = width_of(rows, columns_of(bits), mma.form, mma.is_sparse) if is_b else rows
    into.byte = bits >> 4 & 3 if is_b else bits >> 29 & 3
    into.count = mma.scale_factors
    into.format = UE8M0 if bits >> 23 & 1 != 0 else UE4M3


@native(inline=True)
def columns_of_factors(factors: Factors) -> u32:
    """The columns of tensor memory that they take."""
    return (factors.rows + BAND - 1) // BAND


@native(inline=True)
def word_of(factors: Factors, part: u32, row: u32) -> u32:
    """The number of the TMEM word that has the factors of a row in a sub-partition."""
    lane: u32 = (factors.address >> 16) + part * BAND + row % BAND
    return lane * COLUMNS + (factors.address & 0xFFFF) + row // BAND


@native
def unpack_factors(cells: Pointer[u32], factors: Factors, part: u32, row: u32, into: Pointer[u32]) -> None:
    """The factors of a row, from the copy of a sub-partition."""
    word: u32 = cells[word_of(factors, part, row)]
    for index in range(factors.count):
        into[index] = unpack_factor(word >> (8 * (factors.byte + index)) & 0xFF, factors.format)
