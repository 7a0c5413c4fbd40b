"""Tensor maps: a tensor in global memory and the box that copies cut out of it, as an argument of a launch.

NumPy names dimensions from the outermost to the innermost, and so does `tensor_map`; PTX and the driver go the other
way, and so do the fields of a `TensorMap`: coordinates in an instruction begin with the innermost dimension.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab.device.element_types import NO_TYPE, TYPES

BYTES = 128
TENSOR_MAP_MARK = 0x50414D54  # the first word of a map as the emulator reads it
ALIGNMENT = 16  # of the tensor, its strides and the rows of a box
MOST_ALONG = 256  # elements of a box along a dimension
MOST_STEP = 8
MOST_BYTES = 232448  # of a box: what a block has of shared memory on Hopper
SWIZZLES = {None: 0, "32B": 1, "64B": 2, "128B": 3}
PROMOTIONS = {None: 0, "64B": 1, "128B": 2, "256B": 3}
FILLS = ("zeros", "nan")

# Types of elements by what NumPy, ml_dtypes and torch call them; there are no signed bytes, and 8-bit floats are bytes.
_NAMES = {
    "bool": "u8", "uint8": "u8", "int8": "u8", "uint16": "u16", "int16": "u16", "uint32": "u32", "int32": "s32",
    "uint64": "u64", "int64": "s64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip
# What elements out of bounds of the tensor are with `fill="nan"`, on an H200.
_NANS = {"f16": 0x7FF7, "bf16": 0x7FF7, "f32": 0x7FF7_7FF7, "f64": 0x7FF7_7FF7_7FF7_7FF7}


@dataclass(frozen=True, eq=False)
class TensorMap:
    """An argument for `.param .align 64 .b8 map[128]`; all dimensions from the innermost to the outermost."""

    array: Any  # whose memory it is
    offset: int  # in bytes, where the tensor begins there
    type: str
    width: int  # of an element, in bytes
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes, of all dimensions but the innermost
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: str | None
    l2_promotion: str | None
    fill: str

    @property
    def box_bytes(self) -> int:
        """The bytes that a copy of a box moves, also where it is beyond the tensor: what an mbarrier has to expect."""
        total = self.width
        for extent, step in zip(self.box, self.steps, strict=True):
            total *= -(-extent // step)
        return total

    def encode(self, address: int) -> bytes:
        """The map as the emulator reads it, of a tensor at that address; a GPU has an encoding of its own."""
        if address % ALIGNMENT:
            raise ValueError(f"the tensor begins at {address:#x}, no multiple of {ALIGNMENT}")

        def padded(values: Sequence[int], count: int) -> list[int]:
            return [*values, *[0] * (count - len(values))]

        return struct.pack(
            "<IIQ4QQ5I5I5I3I",
            TENSOR_MAP_MARK,
            len(self.sizes),
            address,
            *padded(self.strides, 4),
            _NANS[self.type] if self.fill == "nan" else 0,
            *padded(self.sizes, 5),
            *padded(self.box, 5),
            *padded(self.steps, 5),
            self.width,
            SWIZZLES[self.swizzle],
            TYPES.get(self.type, NO_TYPE),
        )


def address_in(encoded: bytes | bytearray) -> int:
    """The address of the tensor that an encoded map describes."""
    return int(struct.unpack_from("<Q", encoded, 8)[0])


def tensor_map(
    array: Any,
    box: Sequence[int],
    *,
    swizzle: str | None = None,
    element_strides: Sequence[int] | None = None,
    l2_promotion: str | None = None,
    fill: str = "zeros",
) -> TensorMap:
    """A tensor map of an array, for copies of boxes of `box` elements: dimensions in the array's order, as in NumPy.

    In PTX, coordinates come in the opposite order: `[map, {column, row}]`.

    >>> import numpy
    >>> import ptxlab
    >>> map = ptxlab.tensor_map(numpy.zeros((1000, 256), numpy.float16), box=(128, 64), swizzle="128B")
    >>> map.box_bytes, map.sizes, map.strides
    (16384, (256, 1000), (512,))
    """
    shape = tuple(int(extent) for extent in array.shape)
    type, width, strides = _layout(array)
    rank = len(shape)
    if not 1 <= rank <= 5:
        raise ValueError(f"a tensor map has 1 to 5 dimensions, this array has {rank}")
    extents = _whole(box, rank, "box")
    steps = _whole(element_strides if element_strides is not None else [1] * rank, rank, "element_strides")
    _check_tensor(shape, strides, width)
    _check_box(extents, steps, width, swizzle)
    for name, value, known in (
        ("swizzle", swizzle, SWIZZLES), ("l2_promotion", l2_promotion, PROMOTIONS), ("fill", fill, FILLS),
    ):  # fmt: skip
        if value not in known:
            raise ValueError(f"{name}={value!r}: there are {', '.join(map(repr, known))}")
    if fill == "nan" and type not in _NANS:
        raise ValueError(f"fill='nan' is for floats of 16, 32 or 64 bits, not for elements of type `.{type}`")
    owner, offset = _owner(array)
    return TensorMap(
        array=owner,
        offset=offset,
        type=type,
        width=width,
        sizes=shape[::-1],
        strides=strides[-2::-1] if rank > 1 else (),
        box=extents[::-1],
        steps=steps[::-1],
        swizzle=swizzle,
        l2_promotion=l2_promotion,
        fill=fill,
    )


def _layout(array: Any) -> tuple[str, int, tuple[int, ...]]:
    """The type of elements, their width, and the strides in bytes."""
    name = str(getattr(array.dtype, "name", array.dtype)).rpartition(".")[2]
    type = "u8" if name.startswith("float8_") else _NAMES.get(name)
    if type is None:
        raise TypeError(f"a tensor map has no elements of type {name}")
    width = int(getattr(array, "itemsize", 0)) or int(array.element_size())
    if callable(getattr(array, "stride", None)):  # torch counts elements
        return type, width, tuple(width * int(stride) for stride in array.stride())
    return type, width, tuple(int(stride) for stride in array.strides)


def _owner(array: Any) -> tuple[Any, int]:
    """The array without gaps that a view of NumPy's belongs to, and where in it that begins, in bytes."""
    owner = array
    while (
        not getattr(getattr(owner, "flags", None), "c_contiguous", False) and getattr(owner, "base", None) is not None
    ):
        owner = owner.base
    if owner is array:
        return array, 0
    return owner, array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]


def _whole(numbers: Sequence[int], rank: int, name: str) -> tuple[int, ...]:
    found = tuple(int(number) for number in numbers)
    if len(found) != rank:
        raise ValueError(f"{name} has {len(found)} dimensions, the array has {rank}")
    return found


def _check_tensor(shape: Sequence[int], strides: Sequence[int], width: int) -> None:
    """Whether the driver can describe a tensor; dimensions from the outermost to the innermost."""
    for number, extent in enumerate(shape):
        if not 1 <= extent < 1 << 32:
            raise ValueError(f"dimension {number} of the array has {extent} elements: there are 1 to {(1 << 32) - 1}")
    if shape[-1] > 1 and strides[-1] != width:
        raise ValueError("elements of the last dimension of the array must lie side by side")
    for number, stride in enumerate(strides[:-1]):
        if stride % ALIGNMENT or not 0 <= stride < 1 << 40:
            raise ValueError(
                f"dimension {number} of the array has a stride of {stride} bytes: it must be a multiple of {ALIGNMENT} "
                f"below 2**40; pad the rows, as with a view of a wider array"
            )


def _check_box(box: Sequence[int], steps: Sequence[int], width: int, swizzle: str | None) -> None:
    """Whether a box can be copied; dimensions from the outermost to the innermost."""
    for number, (extent, step) in enumerate(zip(box, steps, strict=True)):
        if not 1 <= extent <= MOST_ALONG:
            raise ValueError(f"dimension {number} of the box has {extent} elements: there are 1 to {MOST_ALONG}")
        if not 1 <= step <= MOST_STEP:
            raise ValueError(f"dimension {number} of element_strides is {step}: there are 1 to {MOST_STEP}")
    if steps[-1] != 1:
        raise ValueError("the last of element_strides is 1: elements of a row are copied side by side")
    row = box[-1] * width
    if row % ALIGNMENT:
        raise ValueError(f"a row of the box has {row} bytes: it must be a multiple of {ALIGNMENT}")
    total = width
    for extent, step in zip(box, steps, strict=True):
        total *= -(-extent // step)
    if total > MOST_BYTES:
        raise ValueError(f"the box has {total} bytes: shared memory has room for {MOST_BYTES}")
    span = ALIGNMENT << SWIZZLES.get(swizzle, 0)
    if SWIZZLES.get(swizzle) and row > span:
        raise ValueError(f"a row of the box has {row} bytes: a swizzle of {swizzle} has room for {span}")
