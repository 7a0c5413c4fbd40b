"""Tensor maps: a tensor in global memory and what copies cut out of it, as an argument of a launch.

NumPy names dimensions from the outermost to the innermost, and so do `tensor_map` and `im2col_map`; PTX and the driver
go the other way, and so do the fields of a `TensorMap`: coordinates in an instruction start with the innermost
dimension.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy

from ptxlab.device import tensor_map_checks as checks
from ptxlab.isa.units import tensor_map as layout
from ptxlab.values import dataclass

BYTES = layout.BYTES
# Types of elements by what NumPy, ml_dtypes and torch call them; there are no signed bytes, and 8-bit floats are bytes.
_NAMES = {
    "bool": "u8", "uint8": "u8", "int8": "u8", "uint16": "u16", "int16": "u16", "uint32": "u32", "int32": "s32",
    "uint64": "u64", "int64": "s64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class TensorMap:
    """An argument for `.param .align 64 .b8 map[128]`; all dimensions from the innermost to the outermost."""

    array: Any  # whose memory it is
    offset: int  # in bytes, where the tensor starts there
    type: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes, of all dimensions but the innermost
    box: tuple[int, ...]  # of im2col: only the channels of a pixel
    steps: tuple[int, ...]
    swizzle: str | None
    l2_promotion: str | None
    fill: str
    interleave: str | None = None
    pixels: int = 0  # of im2col: how many a copy moves; 0: the map is for tiles
    lower: tuple[int, ...] = ()  # of im2col: the corners of the bounding box, of all dimensions of an image
    upper: tuple[int, ...] = ()

    @property
    def bits(self) -> int:
        """Of an element in global memory."""
        return layout.ELEMENT_TYPES[self.type].bits

    @property
    def box_bytes(self) -> int:
        """The bytes that a copy of a box moves, also where it is beyond the tensor: what an mbarrier has to expect."""
        if self.pixels:
            return self.box[0] * self.pixels * self.bits // 8
        total = self.bits
        for extent, step in zip(self.box, self.steps, strict=True):
            total *= -(-extent // step)
        return total // 8

    def encode(self, address: int) -> bytes:
        """The map of a tensor at that address, as the driver encodes it."""
        unit = checks.unit_of(self.type, self.interleave)
        if address % unit:
            raise ValueError(f"the tensor starts at {address:#x}, not a multiple of {unit}")
        words = [0] * (BYTES // 4)
        words[0], words[1] = address & 0xFFFFFFFF, address >> 32
        words[layout.FLAGS // 4] = self._flags()
        for number, stride in enumerate(self.strides):
            words[layout.STRIDES // 4 + number] = stride >> layout.STRIDE_UNIT & 0xFFFFFFFF
            words[layout.HIGH_STRIDES // 4] |= stride >> layout.STRIDE_UNIT + 32 << 4 * number
        for number, size in enumerate(self.sizes):
            words[layout.SIZES // 4 + number] = size - 1
        for number, step in enumerate(self.steps):
            words[layout.STEPS // 4] |= step - 1 << layout.STEP_BITS * number
        words[layout.STEPS // 4] |= self.box[0] - 1 << layout.BOX_SHIFT
        for number, extent in enumerate(self.box[1:]):
            words[layout.BOX // 4] |= extent - 1 << 8 * number
        if self.pixels:
            words[layout.CORNERS // 4] = self._corners()
            words[layout.PIXELS // 4] = self.pixels - 1
        words[layout.BOX_BYTES // 4] = self._driver_bytes()
        words[layout.SHARED_ALIGNMENT // 4] = layout.SWIZZLES[self.swizzle].repeats
        return struct.pack(f"<{len(words)}I", *words)

    def _flags(self) -> int:
        type, swizzle = layout.ELEMENT_TYPES[self.type], layout.SWIZZLES[self.swizzle]
        return (
            bool(self.pixels) << layout.IS_IM2COL.shift
            | len(self.sizes) - 1 << layout.RANK.shift
            | type.number << layout.TYPE.shift
            | layout.INTERLEAVES[self.interleave] << layout.INTERLEAVE.shift
            | layout.swizzle_bits(swizzle.mode)
            | layout.FILLS[self.fill] << layout.FILL.shift
            | type.is_tensor_float << layout.TENSOR_FLOAT.shift
            | layout.PROMOTIONS[self.l2_promotion] << layout.PROMOTION.shift
            | swizzle.atomicity << layout.ATOMICITY.shift
        )

    def _corners(self) -> int:
        bits = layout.CORNER_BITS[len(self.sizes) - 3]
        mask, found = (1 << bits) - 1, 0
        for number, (lower, upper) in enumerate(zip(self.lower, self.upper, strict=True)):
            found |= (lower & mask) << bits * number | (upper & mask) << bits * number + layout.CORNER_SHIFT
        return found

    def _driver_bytes(self) -> int:
        """The driver rounds down where element strides do not divide the box; copies round up."""
        if self.pixels:
            return self.box_bytes
        total = self.bits
        for extent, step in zip(self.box, self.steps, strict=True):
            total *= extent // step
        return total // 8


def address_in(encoded: bytes | bytearray) -> int:
    """The address of the tensor that an encoded map describes."""
    return int(struct.unpack_from("<Q", encoded, layout.ADDRESS)[0])


def tensor_map(
    array: object,
    box: Sequence[int],
    *,
    swizzle: str | None = None,
    element_strides: Sequence[int] | None = None,
    l2_promotion: str | None = None,
    fill: str = "zeros",
    interleave: str | None = None,
    type: str | None = None,
) -> TensorMap:
    """A tensor map of an array, for copies of boxes of `box` elements: dimensions in the array's order, as in NumPy.

    In PTX, coordinates come in the opposite order: `[map, {column, row}]`. `type` is the type of elements where the
    array cannot say it: `tf32` or `f32.ftz` of float32, and `b4x16`, `b4x16_p64` or `b6x16_p32` of bytes that hold
    packed elements of 4 or 6 bits. The box then counts these.

    >>> import numpy
    >>> import ptxlab
    >>> map = ptxlab.tensor_map(numpy.zeros((1000, 256), numpy.float16), box=(128, 64), swizzle="128B")
    >>> map.box_bytes, map.sizes, map.strides
    (16384, (256, 1000), (512,))
    """
    found = _Tensor(array, type)
    extents = checks.whole(box, found.rank, "box")
    how = checks.Options(found.type, swizzle, l2_promotion, fill, interleave)
    steps = found.check(how, element_strides)
    checks.check_box(extents, steps, how)
    return found.map(how, steps, box=extents[::-1])


def im2col_map(
    array: object,
    channels: int,
    pixels: int,
    *,
    lower: Sequence[int],
    upper: Sequence[int],
    swizzle: str | None = None,
    element_strides: Sequence[int] | None = None,
    l2_promotion: str | None = None,
    fill: str = "zeros",
    interleave: str | None = None,
    type: str | None = None,
) -> TensorMap:
    """A tensor map of images for copies by im2col, `.im2col::w` and `.im2col::w::128`: `pixels` of `channels` each.

    The array is N(D)(H)WC. `lower` and `upper` are the corners of the bounding box in its order, `(d, h, w)`: pixels
    start from `lower` on, and end before the size of the image plus `upper`. The rest is as in `tensor_map`.

    >>> import numpy
    >>> import ptxlab
    >>> images = numpy.zeros((8, 14, 14, 64), numpy.float16)
    >>> map = ptxlab.im2col_map(images, channels=64, pixels=128, lower=(-1, -1), upper=(-1, -1), swizzle="128B")
    >>> map.box_bytes, map.sizes
    (16384, (64, 14, 14, 8))
    """
    found = _Tensor(array, type)
    if found.rank < 3:
        raise ValueError(f"images have 3 to 5 dimensions, this array has {found.rank}")
    how = checks.Options(found.type, swizzle, l2_promotion, fill, interleave)
    steps = found.check(how, element_strides)
    corners = [checks.whole(given, found.rank - 2, name) for given, name in ((lower, "lower"), (upper, "upper"))]
    checks.check_pixels(found.shape, int(channels), int(pixels), corners[0], corners[1])
    checks.check_row(int(channels), how)
    checks.check_steps(steps, how)
    box = {"box": (int(channels),), "pixels": int(pixels), "lower": corners[0][::-1], "upper": corners[1][::-1]}
    return found.map(how, steps, **box)


class _Tensor:
    """An array as a tensor: its type of elements, sizes and strides, in the array's order."""

    def __init__(self, array: Any, type: str | None) -> None:
        self.strides: tuple[int, ...]
        self.type, self.width, self.strides = _layout(array, type)
        shape = tuple(int(extent) for extent in array.shape)
        self.rank = len(shape)
        if not 1 <= self.rank <= 5:
            raise ValueError(f"a tensor map has 1 to 5 dimensions, this array has {self.rank}")
        bits = layout.ELEMENT_TYPES[self.type].bits
        if bits < 8 and shape[-1] * 8 % bits:
            raise ValueError(f"a row of the array has {shape[-1]} bytes: elements of {bits} bits do not fill them")
        self.shape = (*shape[:-1], shape[-1] * 8 // bits) if bits < 8 else shape
        self.sizes = self.shape[::-1]
        self.outer_strides = self.strides[-2::-1] if self.rank > 1 else ()
        self.owner, self.offset = _owner(array)

    def check(self, how: checks.Options, element_strides: Sequence[int] | None) -> tuple[int, ...]:
        """Refuse what no tensor map has, whatever its box; the steps between the elements of a box."""
        given = element_strides if element_strides is not None else [1] * self.rank
        steps = checks.whole(given, self.rank, "element_strides")
        checks.check_options(how, self.rank)
        checks.check_tensor(self.shape, self.strides, self.width, how)
        return steps

    def map(self, how: checks.Options, steps: tuple[int, ...], **box: Any) -> TensorMap:
        """The tensor map of boxes of one kind."""
        return TensorMap(
            array=self.owner,
            offset=self.offset,
            type=self.type,
            sizes=self.sizes,
            strides=self.outer_strides,
            steps=steps[::-1],
            swizzle=how.swizzle,
            l2_promotion=how.l2_promotion,
            fill=how.fill,
            interleave=how.interleave,
            **box,
        )


def _layout(array: Any, wanted: str | None) -> tuple[str, int, tuple[int, ...]]:
    """The type of elements, the bytes of an element of the array, and the strides in bytes."""
    name = str(getattr(array.dtype, "name", array.dtype)).rpartition(".")[2]
    type = "u8" if name.startswith("float8_") else _NAMES.get(name)
    width = int(getattr(array, "itemsize", 0)) or int(array.element_size())
    if wanted is not None:
        if wanted not in layout.ELEMENT_TYPES:
            raise ValueError(f"type={wanted!r}: expected one of {', '.join(map(repr, layout.ELEMENT_TYPES))}")
        bits = layout.ELEMENT_TYPES[wanted].bits
        if width * 8 != max(bits, 8):
            packed = " that holds packed elements, as of uint8" if bits < 8 else ""
            raise TypeError(f"type={wanted!r} needs an array of {max(bits, 8)}-bit elements{packed}, not of {name}")
        type = wanted
    if type is None:
        raise TypeError(f"a tensor map has no elements of type {name}")
    if callable(getattr(array, "stride", None)):  # torch counts elements
        return type, width, tuple(width * int(stride) for stride in array.stride())
    return type, width, tuple(int(stride) for stride in array.strides)


def _is_whole(array: object) -> bool:
    return bool(getattr(getattr(array, "flags", None), "c_contiguous", False))


def _base(array: object) -> Any:
    """The array that one is a view of, also where NumPy keeps it in an object between them; or None."""
    base = getattr(array, "base", None)
    while base is not None and not hasattr(base, "flags"):
        base = getattr(base, "base", None)
    return base


def _owner(array: Any) -> tuple[Any, int]:
    """The array without gaps that a view of NumPy's belongs to, and where in it that starts, in bytes."""
    owner = array
    while not _is_whole(owner) and (base := _base(owner)) is not None:
        owner = base
    if isinstance(owner, numpy.ndarray) and not _is_whole(owner) and min(owner.strides, default=0) >= 0:
        low, high = numpy.lib.array_utils.byte_bounds(owner)  # memory of another library, of which this is a part
        owner = numpy.lib.stride_tricks.as_strided(owner, ((high - low) // owner.itemsize,), (owner.itemsize,))
    if owner is array:
        return array, 0
    return owner, array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
