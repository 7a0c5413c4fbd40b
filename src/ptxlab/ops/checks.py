"""What functions ask of the arrays that they are given: types, devices, extents, gaps, overlaps; in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.device.array_types import TORCH_NAMES
from ptxlab.ops.matrices import ROW, Matrix, dense, look

Named = tuple[str, Matrix]


def check_type(first: Named, others: Sequence[Named]) -> None:
    """Whether arrays have the type of the first one."""
    for name, one in others:
        if one.type != first[1].type:
            raise TypeError(f"`{name}` is of type {one.type}, and `{first[0]}` of {first[1].type}")


def check_gpu(first: Named, others: Sequence[Named]) -> None:
    """Whether arrays are where the first one is."""
    for name, one in others:
        if one.gpu != first[1].gpu:
            places = ["the host" if gpu is None else f"GPU {gpu}" for gpu in (one.gpu, first[1].gpu)]
            raise ValueError(f"`{name}` is on {places[0]}, and `{first[0]}` on {places[1]}")


def check_extents(name: str, one: Matrix, shape: tuple[int, ...]) -> None:
    """Whether an array has the extents that it must have."""
    if one.shape != shape:
        raise ValueError(f"`{name}` is {times(one.shape)}, and must be {times(shape)}")


def require(name: str, one: Matrix, shape: tuple[int, ...], type: str, why: str = "") -> None:
    """Refuse an array of other extents or of another type."""
    if one.shape != shape:
        raise ValueError(f"`{name}` is {times(one.shape)}, and must be {times(shape)}{why}")
    if one.type != type:
        raise TypeError(f"`{name}` is of type {TORCH_NAMES[one.type]}, and must be of {TORCH_NAMES[type]}")


def scales_of(first: Named, scales: Sequence[tuple[str, object, tuple[int, ...]]]) -> list[Matrix]:
    """The scales of arrays of 8-bit floats, each with the extents that it must have; other arrays have none."""
    if first[1].size > 1:
        for name, scale, _ in scales:
            if scale is not None:
                raise ValueError(f"`{name}` is for arrays of float8_e4m3fn, and `{first[0]}` is of {first[1].type}")
        return []
    found = []
    for name, scale, shape in scales:
        if scale is None:
            raise ValueError(f"`{first[0]}` is of float8_e4m3fn, which needs `{name}`")
        one = look(scale, name, ("f32",))
        if shape != (1,) or one.shape not in ((), (1,), (1, 1)):
            check_extents(name, one, shape)
        check_gpu(first, [(name, one)])
        if one.shape and one.strides != dense(one.shape):
            raise ValueError(f"elements of `{name}` have gaps: pass a contiguous array")
        found.append(one)
    return found


def check_apart(target: Matrix, others: Sequence[Named], named: str = "out") -> None:
    """Whether what is written is not read."""
    for name, read in others:
        if overlap(read, target):
            raise ValueError(f"`{named}` overlaps `{name}`: what is written would be read")


def overlap(one: Matrix, other: Matrix) -> bool:
    """Whether two arrays have memory in common."""
    return one.address < other.end and other.address < one.end and 0 not in (*one.shape, *other.shape)


def check_result(name: str, one: Matrix) -> None:
    """Whether a result that is given can be written: it is not read-only, and no element is in the place of another."""
    if one.gpu is None and not one.array.flags.writeable:
        raise ValueError(f"`{name}` is read-only: pass another array, or none")
    reach = 1
    for step, extent in sorted(
        (step, extent) for step, extent in zip(one.strides, one.shape, strict=True) if extent > 1
    ):
        if step < reach and 0 not in one.shape:
            what = "run backwards" if step < 0 else "are in the place of others"
            raise ValueError(f"elements of `{name}` {what}: pass a contiguous array")
        reach += step * (extent - 1)


def check_address(name: str, one: Matrix) -> None:
    """Whether an array begins where vectors of 16 bytes do."""
    if one.address % ROW:
        raise ValueError(f"`{name}` does not begin at a multiple of {ROW} bytes: pass a copy of it")


def check_dense(name: str, one: Matrix) -> None:
    """Whether an array is without gaps, with its dimensions in order."""
    pairs = zip(one.shape, one.strides, dense(one.shape), strict=True)
    if 0 not in one.shape and any(extent > 1 and step != wanted for extent, step, wanted in pairs):
        raise ValueError(f"`{name}` has gaps between its elements, or is transposed: pass a contiguous array")


def times(shape: Sequence[int]) -> str:
    """Extents in words."""
    return " by ".join(map(str, shape)) + (" long" if len(shape) == 1 else "")


def named(activation: object) -> Any:
    """The name of an activation; a function has no gradient, and is not a value that a graph of torch or JAX holds."""
    if callable(activation):
        raise TypeError(
            "an activation that is a function has no gradient, and no place in a traced graph: pass arrays that need "
            "no gradient, or register an operator of your own (docs/own-kernel.md)"
        )
    return activation
