"""Weights of 4 or 8 bits with their scales, as frameworks store them, and packed as the kernel reads them.

`Quantized.pack` arranges them: 16 rows at a time, in chunks of 64 bytes a
row, in the order in which the lanes of a warp read them, and each word so that it is decoded by few instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.array_types import type_of
from ptxlab.device.arrays import Tensor
from ptxlab.gpu.arrays import framework
from ptxlab.kernels.quantized_gemv.formats import FORMATS, PIECE, Format
from ptxlab.kernels.quantized_gemv.kernel import CHUNK, ROWS
from ptxlab.kernels.quantized_gemv.typed import convert, view_as
from ptxlab.measure.block_scaled import values

if TYPE_CHECKING:
    pass

_SCALES = {"nvfp4": ("e4m3", "u8"), "mxfp4": ("u8",), "int4": ("bf16",), "fp8": ("f32",)}
_EXPONENTS = 60, 190  # of ue8m0 scales: from 2^-67 to 2^63


@dataclass(frozen=True)
class Packed:
    """A matrix for `quantized_matvec`, made by `Quantized.pack`."""

    format: str
    rows: int
    columns: int
    weights: Any
    """Bytes: for each 16 rows, for each chunk of 64 bytes a row, 1024."""
    scales: Any
    """Bytes: for each 16 rows, for each chunk, those of its scales; for fp8 an f32 a row."""
    factor: float

    @property
    def extents(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the extents of `weights` and `scales` are."""
        layout = FORMATS[self.format]
        tiles, chunks = -(-self.rows // ROWS), self.columns // layout.depth
        scales = (tiles, chunks, layout.scale_bytes) if layout.group else (self.rows,)
        return (tiles, chunks, CHUNK), scales

    @property
    def nbytes(self) -> int:
        """Bytes that a product reads."""
        return int(self.weights.nbytes + self.scales.nbytes)


@dataclass(frozen=True)
class Quantized:
    """A matrix of n by k weights, by rows, as frameworks have them; arrays of NumPy, torch, CuPy or JAX.

    | format | codes | scales | zeros |
    |---|---|---|---|
    | nvfp4 | n by k/2 bytes, two e2m1 each, the first in the lower half | n by k/16, e4m3 | |
    | mxfp4 | the same | n by k/32 bytes, exponents + 127 | |
    | int4 | n by k/2 bytes, two numbers from 0 to 15 each | n by k/128, bf16 | n by k/128 bytes, 0 to 15 |
    | fp8 | n by k, e4m3 | n, f32 | |

    A weight is its code, for int4 less its zero point, times its scale times `factor`.
    """

    format: str
    codes: Any
    scales: Any
    zeros: Any = None
    factor: float = 1.0

    @property
    def layout(self) -> Format:
        """How the kernel reads it."""
        if self.format not in FORMATS:
            raise ValueError(f"format={self.format!r}: expected one of {', '.join(map(repr, FORMATS))}")
        return FORMATS[self.format]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows, bytes = self.codes.shape
        return int(rows), int(bytes) * 8 // self.layout.codes.bits

    def values(self) -> Any:
        """The weights in float64, an array of NumPy or torch."""
        codes = view_as(self.codes, "e4m3") if self.format == "fp8" else self.codes
        scales = view_as(self.scales, "e4m3") if self.format == "nvfp4" else self.scales
        given = (None if one is None else convert(one, "f64") for one in (codes, scales, self.zeros))
        return values_of(framework(codes), self.format, *given) * self.factor

    def pack(self) -> Packed:
        """The same matrix as the kernel reads it."""
        self._check()
        xp = framework(self.codes)
        if xp.__name__ == "jax.numpy":  # which has no integers of 64 bits by itself
            return self._pack_on_host()
        (rows, columns), layout = self.shape, self.layout
        tiles, chunks = -(-rows // ROWS), columns // layout.depth
        more = tiles * ROWS - rows
        units = _units(xp, layout, _padded(xp, view_as(self.codes, "u8"), more))
        parts = units.reshape(tiles, 2, 8, chunks, layout.depth // (4 * PIECE), 4, -1)
        weights = view_as(_ordered(xp, parts, (0, 3, 1, 2, 5, 4, 6)), "u8").reshape(tiles, chunks, CHUNK)
        scales = self.scales
        if self.format == "int4":
            zeros = convert(convert(self.zeros, "f32") + 128, "bf16")
            pairs = [view_as(one, "u8").reshape(rows, chunks, 2) for one in (scales, zeros)]
            bytes = _padded(xp, xp.concatenate(pairs, -1), more).reshape(tiles, 2, 8, chunks, 4)
            scales = _ordered(xp, bytes, (0, 3, 2, 1, 4)).reshape(tiles, chunks, layout.scale_bytes)
        elif layout.group:
            bytes = _padded(xp, view_as(scales, "u8"), more).reshape(tiles, 2, 8, chunks, 2, -1)
            scales = _ordered(xp, bytes, (0, 3, 2, 5, 1, 4)).reshape(tiles, chunks, layout.scale_bytes)
        return Packed(self.format, rows, columns, weights, scales, self.factor)

    def _pack_on_host(self) -> Packed:
        zeros = None if self.zeros is None else np.asarray(self.zeros)
        found = Quantized(self.format, np.asarray(self.codes), np.asarray(self.scales), zeros, self.factor).pack()
        put, device = import_module("jax").device_put, next(iter(self.codes.devices()))
        return replace(found, weights=put(found.weights, device), scales=put(found.scales, device))

    def _check(self) -> None:
        """Whether the arrays have the extents, types and values that the format says."""
        layout, (rows, columns) = self.layout, self.shape
        if not rows or not columns or columns % layout.depth:
            raise ValueError(f"{rows} by {columns} weights: {self.format} needs rows of a multiple of {layout.depth}")
        wanted = (rows, columns // layout.group) if layout.group else (rows,)
        given = {"scales": (self.scales, _SCALES[self.format])}
        if self.format == "int4":
            given["zeros"] = self.zeros, ("u8",)
        for name, (array, types) in given.items():
            if array is None or tuple(array.shape) != wanted:
                found = "missing" if array is None else f"{tuple(array.shape)}"
                raise ValueError(f"`{name}` of {rows} by {columns} weights are {found}, and must be {wanted}")
            if type_of(array) not in types:
                raise TypeError(f"`{name}` are of type {type_of(array)}, and must be {' or '.join(types)}")
        if type_of(self.codes) not in (("e4m3", "u8") if self.format == "fp8" else ("u8",)):
            raise TypeError(f"`codes` are of type {type_of(self.codes)}, and must be bytes")
        if (
            self.format == "mxfp4"
            and not _EXPONENTS[0] <= int(self.scales.min()) <= int(self.scales.max()) <= _EXPONENTS[1]
        ):
            raise ValueError("`scales` are beyond 2^-67 or 2^63: scale the matrix by `factor` instead")
        if self.format == "nvfp4" and bool((view_as(self.scales, "u8") >= 0x7F).any()):
            raise ValueError("some of `scales` are negative or NaN")
        if self.format == "int4" and bool((self.zeros > 15).any()):
            raise ValueError("some of `zeros` are above 15")


def values_of(xp: ModuleType, format: str, codes: Any, scales: Any, zeros: Any) -> Any:
    """The weights of codes and scales; all arrays are float64."""
    if format == "fp8":
        return codes * scales[:, None]
    rows, group = codes.shape[0], FORMATS[format].group
    if format == "int4":
        numbers = xp.stack([codes % 16, codes // 16], -1).reshape(rows, -1, group) - zeros[..., None]
    else:
        numbers = values(xp, codes, group)
    return (numbers * (2.0 ** (scales - 127) if format == "mxfp4" else scales)[..., None]).reshape(rows, -1)


def _units(xp: ModuleType, layout: Format, codes: Any) -> Any:
    """The words of all units, as integers of 32 or 64 bits."""
    bits, width = layout.codes.bits, 32 * layout.codes.words
    each = codes.reshape(codes.shape[0], -1, width // 8)
    total: Any = 0
    for number, table in enumerate(layout.codes.tables()):
        index = (each[..., number * bits // 8] >> (number * bits % 8)) & ((1 << bits) - 1)
        words = np.array(table, f"u{width // 8}").view(f"i{width // 8}")
        if xp.__name__ == "torch":
            total = total ^ xp.from_numpy(words).to(codes.device)[index.long()]
        else:
            total = total ^ xp.asarray(words)[index]
    return total


def _padded(xp: ModuleType, array: Tensor, more: int) -> Any:
    """So many rows of zeros after it."""
    if not more:
        return array
    device = {"device": array.device} if xp.__name__ == "torch" else {}
    return xp.concatenate([array, xp.zeros((more, *array.shape[1:]), dtype=array.dtype, **device)])


def _ordered(xp: ModuleType, array: Tensor, axes: tuple[int, ...]) -> Any:
    return array.permute(axes).contiguous() if xp.__name__ == "torch" else xp.ascontiguousarray(array.transpose(axes))
