"""The 128 bytes of a tensor map: where its fields are, as the CUDA driver and `tensormap.replace` write them.

A field is some bits of a 32-bit word. NVIDIA documents none of this: ptxas compiles `tensormap.replace` to loads and
stores of these words, for each target, and `evidence/tensor_maps.json` has what a driver encoded.
"""

from typing import NamedTuple

BYTES = 128
ALIGNMENT = 64

# Bytes from the start of the map.
ADDRESS = 0  # of the tensor, 64 bits
FLAGS = 8  # all fields that are small numbers
STRIDES = 12  # of all dimensions but the innermost, in units of 16 bytes: the low 32 bits of each
HIGH_STRIDES = 28  # and 4 bits above them
SIZES = 32  # of the tensor, less 1
STEPS = 52  # element strides, less 1, 3 bits for each dimension; in the highest byte the innermost box size, less 1
BOX = 56  # tiled: box sizes of the other dimensions, less 1, a byte for each
CORNERS = 56  # im2col: the lower corners in the low half, the upper ones in the high half
PIXELS = 60  # im2col: pixels of a column, less 1
BOX_BYTES = 64  # what a copy moves, as the driver computes it; copies do not read it
SHARED_ALIGNMENT = 72  # of a box in shared memory, so that its swizzle starts anew; copies do not read it

STRIDE_UNIT = 4  # as an exponent of two
STEP_BITS = 3
BOX_SHIFT = 24  # of the innermost box size
CORNER_SHIFT = 16  # of the upper corners
CORNER_BITS = (16, 8, 5)  # of each corner, by the dimensions of an image

MOST_ALONG = 256  # elements of a box along a dimension
MOST_STEP = 8
MOST_PIXELS = 1024
ADDRESS_BITS = 57


class FlagBits(NamedTuple):
    """Bits of `FLAGS`."""

    shift: int
    bits: int

    @property
    def mask(self) -> int:
        """All of its bits, where they are."""
        return ((1 << self.bits) - 1) << self.shift


IS_IM2COL = FlagBits(0, 1)  # `.im2col::w` and `.im2col::w::128` have the same maps
RANK = FlagBits(4, 3)  # less 1
TYPE = FlagBits(7, 4)
INTERLEAVE = FlagBits(11, 2)
SWIZZLE = FlagBits(13, 2)
FILL = FlagBits(15, 1)
TENSOR_FLOAT = FlagBits(16, 1)  # f32 is rounded to tf32
PROMOTION = FlagBits(17, 2)
ATOMICITY = FlagBits(19, 3)
SWIZZLE_96 = FlagBits(22, 1)
FIELDS = (
    IS_IM2COL, RANK, TYPE, INTERLEAVE, SWIZZLE, FILL, TENSOR_FLOAT, PROMOTION, ATOMICITY, SWIZZLE_96,
)  # fmt: skip
FLAGS_MASK = sum(field.mask for field in FIELDS)


class ElementType(NamedTuple):
    """A type of elements: its number in a map, whether f32 is rounded to tf32, and its bits in global memory."""

    number: int
    is_tensor_float: bool
    bits: int


U8, U16, U32, S32, U64, S64, F16, F32, F32_FTZ, F64, BF16, B4X16, B4X16_P64, B6X16_P32 = range(14)
# By name, in the order of `.elemtype`.
ELEMENT_TYPES = {
    "u8": ElementType(U8, False, 8),
    "u16": ElementType(U16, False, 16),
    "u32": ElementType(U32, False, 32),
    "s32": ElementType(S32, False, 32),
    "u64": ElementType(U64, False, 64),
    "s64": ElementType(S64, False, 64),
    "f16": ElementType(F16, False, 16),
    "f32": ElementType(F32, False, 32),
    "f32.ftz": ElementType(F32_FTZ, False, 32),
    "f64": ElementType(F64, False, 64),
    "bf16": ElementType(BF16, False, 16),
    "tf32": ElementType(F32, True, 32),
    "tf32.ftz": ElementType(F32_FTZ, True, 32),
    "b4x16": ElementType(B4X16, False, 4),
    "b4x16_p64": ElementType(B4X16_P64, False, 4),
    "b6x16_p32": ElementType(B6X16_P32, False, 6),
}
# Of each type by its number: its bits, and the bytes in global memory that become 16 in shared memory.
ELEMENT_BITS = (8, 16, 32, 32, 64, 64, 16, 32, 32, 64, 16, 4, 4, 6)
ELEMENT_UNITS = (16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 8, 12)
NAN = 0x7FF7  # elements out of bounds, if the fill is NaN: wider ones have it several times


class Swizzle(NamedTuple):
    """How a box is laid out in shared memory, as the map says it."""

    mode: int  # as `.swizzle_mode` has it
    atomicity: int  # as `.swizzle_atomicity` has it
    span: int  # the bytes that a row may have
    repeats: int  # the bytes after which the pattern repeats


SWIZZLE_96_MODE = 4
SWIZZLES = {
    None: Swizzle(0, 0, 0, 16),
    "32B": Swizzle(1, 0, 32, 256),
    "64B": Swizzle(2, 0, 64, 512),
    "96B": Swizzle(SWIZZLE_96_MODE, 0, 96, 256),
    "128B": Swizzle(3, 0, 128, 1024),
    "128B_ATOM_32B": Swizzle(3, 1, 128, 1024),
    "128B_ATOM_32B_FLIP_8B": Swizzle(3, 2, 128, 1024),
    "128B_ATOM_64B": Swizzle(3, 3, 128, 1024),
}
INTERLEAVES = {None: 0, "16B": 1, "32B": 2}
PROMOTIONS = {None: 0, "64B": 1, "128B": 2, "256B": 3}
FILLS = {"zeros": 0, "nan": 1}


class Change(NamedTuple):
    """What `tensormap.replace` does to a word: `bits` replace those of `mask`."""

    word: int
    mask: int
    bits: int


def change_flags(field: str, value: int) -> Change:
    """What replaces a field whose values are immediates.

    >>> change_flags("swizzle_mode", 3)
    Change(word=8, mask=4218880, bits=24576)
    """
    if field == "elemtype":
        type = list(ELEMENT_TYPES.values())[value]
        bits = type.number << TYPE.shift
        if type.is_tensor_float:
            return Change(FLAGS, TYPE.mask | TENSOR_FLOAT.mask, bits | TENSOR_FLOAT.mask)
        return Change(FLAGS, TYPE.mask, bits)  # the bit of tf32 stays as it is
    if field == "swizzle_mode":
        return Change(FLAGS, SWIZZLE.mask | SWIZZLE_96.mask, swizzle_bits(value))
    where = {"interleave_layout": INTERLEAVE, "swizzle_atomicity": ATOMICITY, "fill_mode": FILL}[field]
    return Change(FLAGS, where.mask, value << where.shift)


def swizzle_bits(mode: int) -> int:
    """A `.swizzle_mode` as bits of `FLAGS`."""
    return SWIZZLE_96.mask if mode == SWIZZLE_96_MODE else mode << SWIZZLE.shift
