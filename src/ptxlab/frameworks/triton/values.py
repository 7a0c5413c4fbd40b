"""Arguments of Triton's kernels as parameters in PTX: numbers by Triton's types, tensor descriptors as tensor maps."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from ptxlab.device.placing import Encoded
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.frameworks.arrays import Arrays
from ptxlab.isa.units.tensor_map import ELEMENT_TYPES

_FORMATS = {
    "i1": "?", "u1": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d",
}  # fmt: skip
_SWIZZLES = (None, "32B", "64B", "128B")  # as the driver numbers them
_TENSOR_FLOAT = list(ELEMENT_TYPES).index("tf32")


def parameters_of(
    signature: Sequence[tuple[str, object]],
    args: Sequence[object],
    descriptors: Sequence[object] | None,
    arrays: Arrays,
) -> Iterator[object]:
    """The parameters that arguments become, one after the other, without compile-time constants.

    `signature` names each argument and its type; `descriptors` say how the tensor descriptors are laid out, or are None
    where the kernel takes them apart.
    """
    layouts = None if not descriptors else iter(descriptors)
    for index, ((name, type), value) in enumerate(zip(signature, args, strict=True)):
        yield from _parameters(type, value, f"argument {index} (`{name}`)", layouts, arrays)


def _parameters(type: Any, value: Any, name: str, layouts: Iterator[object] | None, arrays: Arrays) -> Iterator[object]:
    if isinstance(type, (tuple, list)):
        for index, (part, given) in enumerate(zip(type, value, strict=True)):
            yield from _parameters(part, given, f"{name}[{index}]", layouts, arrays)
    elif type == "constexpr":
        return
    elif type.startswith("tensordesc"):
        yield from _descriptor(value, None if layouts is None else next(layouts), name, arrays)
    elif type.startswith("*"):
        yield arrays.pointer(value, name)
    else:
        yield number(type, value, name)


def number(type: str, value: object, name: str) -> bytes:
    """A number as the bytes of a parameter, as Triton's own launcher makes them.

    >>> number("bf16", 1.5, "x").hex(), number("i32", -2, "n").hex()
    ('c03f', 'feffffff')
    """
    value = value.item() if hasattr(value, "item") else value
    if type == "bf16":  # cut off, not rounded
        return struct.pack("<f", value)[2:]
    if type not in _FORMATS:
        raise TypeError(f"{name} is of Triton's type `{type}`, which is not supported")
    try:
        return struct.pack(f"<{_FORMATS[type]}", value)
    except (struct.error, OverflowError):
        raise ValueError(f"{name}: {value!r} does not fit `{type}`") from None


def _descriptor(given: Any, layout: object, name: str, arrays: Arrays) -> Iterator[object]:
    """A tensor descriptor: a tensor map, or what the kernel needs instead of one; extents and strides in any case."""
    extents = [struct.pack("<i", int(extent)) for extent in given.shape]
    strides = [struct.pack("<q", int(stride)) for stride in given.strides]
    is_rounded = bool(getattr(given, "round_f32_to_tf32", False))
    if layout is None:
        yield arrays.pointer(given.base, name)
        yield from (struct.pack("<q", int(one)) for one in (*given.shape, *given.strides))
        yield from (struct.pack("<?", flag) for flag in (given.padding == "nan", is_rounded))
    else:
        arrays.pointer(given.base, name)
        yield Encoded(_map(given, layout, is_rounded).encode(arrays.address(given.base, name)))
    yield from extents
    yield from strides


def _map(given: Any, layout: Any, is_rounded: bool) -> TensorMap:
    """The tensor map that Triton's launcher would have the driver make."""
    shape = [int(extent) for extent in given.shape]
    if layout["fp4_padded"]:
        shape[-1] *= 2
    strides = [int(stride) * int(layout["elem_size"]) for stride in given.strides[:-1]]
    block = [int(extent) for extent in layout["block_size"]]
    type = list(ELEMENT_TYPES)[_TENSOR_FLOAT if is_rounded else layout["elem_type"]]
    im2col: dict[str, Any] = {}
    steps = [1] * len(shape)
    if layout.get("is_im2col", False):
        steps = list(given.element_strides or steps)
        lower, upper = (tuple(corner)[::-1] for corner in (given.pixel_box_lower_corner, given.pixel_box_upper_corner))
        im2col = {"pixels": block[0], "lower": lower, "upper": upper}
        block = block[1:]
    return TensorMap(
        array=None,
        offset=0,
        type=type,
        sizes=tuple(shape[::-1]),
        strides=tuple(strides[::-1]),
        box=tuple(block[::-1]),
        steps=tuple(int(step) for step in steps[::-1]),
        swizzle=_SWIZZLES[layout["swizzle"]],
        l2_promotion="128B",
        fill="nan" if given.padding == "nan" else "zeros",
        **im2col,
    )
