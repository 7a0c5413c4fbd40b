"""A matrix of floats as weights of 4 or 8 bits with scales."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.gpu.arrays import framework
from ptxlab.kernels.quantized_gemv.packing import Quantized
from ptxlab.kernels.quantized_gemv.typed import convert

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
MOST = {"nvfp4": 6.0, "mxfp4": 6.0, "fp8": 448.0}  # the largest code


def quantize(matrix: Array, format: str = "nvfp4") -> Quantized:
    """A matrix of floats as weights of 4 or 8 bits: each is the code nearest to it, scales follow the largest.

    >>> quantize(np.linspace(-3, 3, 512).reshape(2, 256), "int4").codes.shape
    (2, 128)
    """
    layout = Quantized(format, None, None).layout
    xp = framework(matrix)
    if xp.__name__ == "jax.numpy":
        found = quantize(np.asarray(matrix), format)
        zeros = None if found.zeros is None else xp.asarray(found.zeros)
        return Quantized(format, xp.asarray(found.codes), xp.asarray(found.scales), zeros, found.factor)
    rows, columns = matrix.shape
    if not rows or not columns or columns % layout.depth:
        raise ValueError(f"`matrix` is {rows} by {columns}: {format} needs rows of a multiple of {layout.depth}")
    numbers = convert(matrix, "f32").reshape(rows, -1, layout.group or columns)
    if format == "int4":
        return _quantize_int4(xp, numbers)
    largest, factor = xp.amax(abs(numbers), -1), 1.0
    if format == "nvfp4":
        factor = float(largest.max()) / (MOST[format] * 448) or 1.0
        stored = convert(largest / (MOST[format] * factor), "e4m3")
        scales = convert(stored, "f32") * factor
    elif format == "mxfp4":
        exponents = xp.ceil(xp.log2(largest / MOST[format] + 2.0**-120)).clip(-60, 60)
        stored, scales = convert(exponents + 127, "u8"), 2.0**exponents
    else:
        stored = scales = (largest / MOST[format])[:, 0]
    scaled = numbers / _nonzero(xp, scales).reshape(rows, -1, 1)
    if format == "fp8":
        return Quantized(format, convert(scaled.clip(-448, 448).reshape(rows, columns), "e4m3"), stored)
    return Quantized(format, _two_a_byte(_nearest_e2m1(scaled)), stored, factor=factor)


def _quantize_int4(xp: ModuleType, numbers: object) -> Quantized:
    low, high = xp.amin(numbers, -1).clip(None, 0), xp.amax(numbers, -1).clip(0, None)
    scales = convert((high - low) / 15, "bf16")
    each = _nonzero(xp, convert(scales, "f32"))
    zeros = (-low / each).round().clip(0, 15)
    codes = ((numbers / each[..., None]).round() + zeros[..., None]).clip(0, 15)
    return Quantized("int4", _two_a_byte(convert(codes, "u8")), scales, convert(zeros, "u8"))


def _nearest_e2m1(numbers: Any) -> Any:
    """Codes; a number halfway between two gets the even one."""
    size = abs(numbers)
    code = convert(numbers < 0, "u8") * 8
    for number, (low, high) in enumerate(pairwise(E2M1_VALUES)):
        middle = (low + high) / 2
        code = code + convert(size >= middle if number % 2 else size > middle, "u8")
    return code


def _two_a_byte(codes: Array) -> Any:
    flat = codes.reshape(codes.shape[0], -1)
    return flat[:, ::2] | flat[:, 1::2] << 4


def _nonzero(xp: ModuleType, scales: object) -> Any:
    return xp.where(scales == 0, xp.ones_like(scales), scales)
