"""Scale factors of a `tcgen05.mma`: where they are in tensor memory (PTX ISA 9.7.16.10.7).

32 rows of A, or columns of B, are in 32 lanes, the next 32 a column further; a byte of a word is a factor. Each
sub-partition of 32 lanes has a copy of all of them, and what of D is in its lanes is computed with that copy. Where two
blocks have 64 rows each and two sub-partitions compute half of the columns, these have the factors of that half. Where
K is 96, the three or six factors of a row start at any or at an even byte, and continue in the next word: four columns
further, or eight where B has more than 128 columns.

The manual says that factors are duplicated to all sub-partitions, and only draws the rest; the numbers are those of
CUTLASS (`tmem_sf_frg`) and Triton (`tensorMemoryScalesToLinearLayout`), the place of D's own copy is what the words
imply. Nothing of this was measured for this program.
"""

from dataclasses import dataclass

from ptxlab.native import Pointer, boolean, native, struct, u32

from .instruction_descriptor import PAIR, columns_of, is_long, rows_of
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
    step: u32  # columns from a word to the next one of a row, where the factors take more than one


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
    into.count = mma.scale_factors * 3 // 2 if is_long(bits, mma.kind) else mma.scale_factors
    into.step = (into.rows + LANES - 1) // LANES * PARTS
    into.format = UE8M0 if bits >> 23 & 1 != 0 else UE4M3


@native(inline=True)
def columns_of_factors(factors: Factors) -> u32:
    """The columns of tensor memory that they take."""
    return (factors.rows + BAND - 1) // BAND + (words_of(factors) - 1) * factors.step


@native(inline=True)
def words_of(factors: Factors) -> u32:
    """The words that have the factors of a row: of three or six of a K of 96, two."""
    return (factors.byte + factors.count + 3) // 4


@native(inline=True)
def mask_of(factors: Factors, word: u32) -> u32:
    """The bits of a word that are factors."""
    first: u32 = factors.byte if word == 0 else u32(0)
    last: u32 = min(factors.byte + factors.count - 4 * word, 4)
    return (u32(0xFFFFFFFF) >> (32 - 8 * (last - first))) << (8 * first)


@native(inline=True)
def word_of(factors: Factors, part: u32, row: u32) -> u32:
    """The number of the TMEM word that has the factors of a row in a sub-partition."""
    lane: u32 = (factors.address >> 16) + part * BAND + row % BAND
    return lane * COLUMNS + (factors.address & 0xFFFF) + row // BAND


@native
def unpack_factors(cells: Pointer[u32], factors: Factors, part: u32, row: u32, into: Pointer[u32]) -> None:
    """The factors of a row, from the copy of a sub-partition."""
    words = cells + word_of(factors, part, row)
    for index in range(factors.count):
        at: u32 = factors.byte + index
        into[index] = unpack_factor(words[at // 4 * factors.step] >> (8 * (at % 4)) & 0xFF, factors.format)
