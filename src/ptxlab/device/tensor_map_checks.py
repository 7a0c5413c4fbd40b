"""What a tensor map can be: the rules of the driver, each broken one by its name.

Dimensions are from the outermost to the innermost, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxlab.isa.units import tensor_map as layout

MOST_BYTES = 232448  # of a box: what a block has of shared memory on Hopper
_ROW = 16  # a row of a box is a multiple of these bytes
_FLOATS = ("f16", "bf16", "f32", "f32.ftz", "tf32", "tf32.ftz", "f64")
_PADDED = {"b4x16_p64": 64, "b6x16_p32": 96}
_PADDED_ROW = 128  # elements of a row


class Options(NamedTuple):
    """What a map has beside sizes: each by its name."""

    type: str
    swizzle: str | None
    l2_promotion: str | None
    fill: str
    interleave: str | None


def unit_of(type: str, interleave: str | None) -> int:
    """The address of the tensor and its strides are multiples of these bytes."""
    return 32 if interleave == "32B" or type in _PADDED else 16


def whole(numbers: Sequence[int], count: int, name: str) -> tuple[int, ...]:
    """As many integers as there are dimensions."""
    found = tuple(int(number) for number in numbers)
    if len(found) != count:
        raise ValueError(f"{name} has {len(found)} dimensions, the array has {count}")
    return found


def check_options(how: Options, rank: int) -> None:
    """Whether all words are known, and go together."""
    for name, value, known in (
        ("swizzle", how.swizzle, layout.SWIZZLES), ("l2_promotion", how.l2_promotion, layout.PROMOTIONS),
        ("fill", how.fill, layout.FILLS), ("interleave", how.interleave, layout.INTERLEAVES),
    ):  # fmt: skip
        if value not in known:
            raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, known))}")
    if how.fill == "nan" and how.type not in _FLOATS:
        raise ValueError(f"fill='nan' is for floats of 16, 32 or 64 bits, not for elements of type `.{how.type}`")
    if how.interleave and rank < 3:
        raise ValueError(f"interleave={how.interleave!r} needs 3 dimensions or more, the array has {rank}")
    if how.type in _PADDED and how.swizzle not in (None, "128B", "128B_ATOM_32B", "128B_ATOM_64B"):
        raise ValueError(f"elements of type `.{how.type}` have no swizzle of {how.swizzle}, only of 128B")


def check_tensor(shape: Sequence[int], strides: Sequence[int], width: int, how: Options) -> None:
    """Whether the driver can describe a tensor."""
    for number, extent in enumerate(shape):
        if not 1 <= extent <= 1 << 32:
            raise ValueError(f"dimension {number} of the array has {extent} elements: there are 1 to {1 << 32}")
    if shape[-1] > 1 and strides[-1] != width:
        raise ValueError("elements of the last dimension of the array must be contiguous")
    if how.type in _PADDED and shape[-1] % _PADDED_ROW:
        raise ValueError(f"a row of the array has {shape[-1]} elements of type `.{how.type}`: it must be a multiple of "
                         f"{_PADDED_ROW}")  # fmt: skip
    unit = unit_of(how.type, how.interleave)
    for number, stride in enumerate(strides[:-1]):
        if stride % unit or not 0 <= stride < 1 << 40:
            raise ValueError(
                f"dimension {number} of the array has a stride of {stride} bytes: it must be a multiple of {unit} "
                f"below 2**40; pad the rows, as with a view of a wider array"
            )


def check_steps(steps: Sequence[int], how: Options) -> None:
    """Whether element strides can be had."""
    for number, step in enumerate(steps):
        if not 1 <= step <= layout.MOST_STEP:
            raise ValueError(f"dimension {number} of element_strides is {step}: there are 1 to {layout.MOST_STEP}")
    if steps[-1] != 1 and not how.interleave:
        raise ValueError("the last of element_strides is 1: elements of a row are copied side by side")


def check_box(box: Sequence[int], steps: Sequence[int], how: Options) -> None:
    """Whether a box can be copied."""
    for number, extent in enumerate(box):
        if not 1 <= extent <= layout.MOST_ALONG:
            raise ValueError(f"dimension {number} of the box has {extent} elements: there are 1 to {layout.MOST_ALONG}")
    check_steps(steps, how)
    check_row(box[-1], how)
    total = layout.ELEMENT_TYPES[how.type].bits
    for extent, step in zip(box, steps, strict=True):
        total *= -(-extent // step)
    if total // 8 > MOST_BYTES:
        raise ValueError(f"the box has {total // 8} bytes: shared memory has room for {MOST_BYTES}")


def check_row(elements: int, how: Options) -> None:
    """Whether a row of a box, or the channels of a pixel, can be copied."""
    if how.type in _PADDED and elements != _PADDED_ROW:
        raise ValueError(f"a row of the box has {elements} elements of type `.{how.type}`: it must be {_PADDED_ROW}")
    row = elements * layout.ELEMENT_TYPES[how.type].bits // 8
    text = f"a row of the box has {elements} elements of type `.{how.type}`, {row} bytes"
    if row % _ROW and how.type not in _PADDED:
        raise ValueError(f"{text}: it must be a multiple of {_ROW}")
    if how.interleave or how.type in _PADDED:
        return
    span = layout.SWIZZLES[how.swizzle].span
    if span and row > span:
        raise ValueError(f"{text}: a swizzle of {how.swizzle} has room for {span}")


def check_pixels(shape: Sequence[int], channels: int, pixels: int, lower: Sequence[int], upper: Sequence[int]) -> None:
    """Whether pixels can be copied."""
    if not 1 <= channels <= layout.MOST_ALONG:
        raise ValueError(f"channels={channels}: there are 1 to {layout.MOST_ALONG}")
    if not 1 <= pixels <= layout.MOST_PIXELS:
        raise ValueError(f"pixels={pixels}: there are 1 to {layout.MOST_PIXELS}")
    most = 1 << layout.CORNER_BITS[len(shape) - 3] - 1
    for number, (size, low, high) in enumerate(zip(shape[1:-1], lower, upper, strict=True)):
        for name, value in (("lower", low), ("upper", high)):
            if not -most <= value < most:
                raise ValueError(f"{name}[{number}] is {value}: there are {-most} to {most - 1}")
        if size + high <= low:
            raise ValueError(f"no pixel is between lower[{number}]={low} and upper[{number}]={high}: "
                             f"the image has {size}")  # fmt: skip
