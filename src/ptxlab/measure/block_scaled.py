"""Matrices with a scale factor for every 16 or 32 numbers along a row, as tensor cores of Blackwell multiply them.

| format | numbers | a factor for each | factors |
|---|---|---|---|
| `NVFP4` | e2m1, two a byte | 16 | e4m3 |
| `MXF4` | e2m1, two a byte | 32 | ue8m0, the exponent of a power of two |
| `MXF8` | e4m3 | 32 | ue8m0 |

Factors are in memory as tensor cores read them: blocks of 512 bytes, each for 128 rows and four factors a row; in a
block, rows 32 apart are beside each other. `arrange` makes them so, `numbers` has the matrix back in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.array_types import type_of
from ptxlab.launch.launches import UnsuitedError
from ptxlab.measure import Draw

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 128  # rows of a block of factors
MOST = 124, 130  # exponents of random factors in ue8m0: from 1/8 to 4


@dataclass(frozen=True)
class Format:
    """How numbers and factors are stored, and the MMA that multiplies them."""

    name: str
    kind: str
    type: str
    bits: int
    group: int
    """Numbers that share a factor."""
    factor: str

    @property
    def storage(self) -> str:
        """The type of an array of its numbers."""
        return "u8" if self.bits == 4 else self.type

    @property
    def step(self) -> int:
        """Numbers that one MMA multiplies along k: 32 bytes of them."""
        return 256 // self.bits

    @property
    def scale_factors(self) -> int:
        """Factors of a row that one MMA takes, out of four in a block."""
        return self.step // self.group

    @property
    def size(self) -> str:
        """The modifier that says so."""
        return f"scale_vec::{self.scale_factors}X"

    def extents(self, rows: int, k: int) -> tuple[int, ...]:
        """The extents of the blocks of factors of a matrix."""
        return -(-rows // BLOCK), -(-k // (4 * self.group)), 32, 4, 4


NVFP4 = Format("nvfp4", "mxf4nvf4", "e2m1", 4, 16, "ue4m3")
MXF4 = Format("mxf4", "mxf4", "e2m1", 4, 32, "ue8m0")
MXF8 = Format("mxf8", "mxf8f6f4", "e4m3", 8, 32, "ue8m0")
FORMATS = {format.name: format for format in (NVFP4, MXF4, MXF8)}


def arrange(scale_factors: Array) -> Any:
    """Factors, a row of them for each row of the matrix, in blocks; missing ones are 0."""
    rows, count = scale_factors.shape
    found = np.zeros((-(-rows // BLOCK) * BLOCK, -(-count // 4) * 4), scale_factors.dtype)
    found[:rows, :count] = scale_factors
    parts = found.reshape(len(found) // BLOCK, 4, 32, -1, 4)
    return np.ascontiguousarray(np.moveaxis(parts, (0, 3, 2, 1, 4), (0, 1, 2, 3, 4)))


def numbers(xp: ModuleType, format: Format, stored: Array, scale_factors: Array) -> Any:
    """The matrix in float64, by NumPy or torch; what is stored and its factors are float64, too."""
    found = values(xp, stored, format.group) if format.bits == 4 else stored.reshape(len(stored), -1, format.group)
    scales = scale_factors if format.factor == "ue4m3" else 2.0 ** (scale_factors - 127.0)
    rows = xp.moveaxis(scales, (0, 3, 2, 1, 4), (0, 1, 2, 3, 4)).reshape(scale_factors.shape[0] * BLOCK, -1)
    return (found * rows[: found.shape[0], : found.shape[1], None]).reshape(found.shape[0], -1)


def values(xp: ModuleType, packed: Array, group: int) -> Any:
    """The numbers that bytes of two e2m1 hold, before they are scaled, in groups."""
    bits = xp.stack([packed % 16, packed // 16], -1)
    size = bits % 8
    size = xp.where(size < 4, size / 2, xp.where(size < 6, size - 2, 2 * size - 8))
    return xp.where(bits < 8, size, -size).reshape(*packed.shape[:-1], -1, group)


def matrix(draw: Draw, format: Format, rows: int, k: int) -> tuple[Any, Any]:
    """A random matrix: its numbers as they are stored, and its factors."""
    extents = format.extents(rows, k)
    is_power = format.factor == "ue8m0"
    scale_factors = draw.integers(extents, "u8", *MOST) if is_power else draw.uniform(extents, "e4m3", 0.25, 2.0)
    return draw.integers((rows, k // 2), "u8", 0, 256) if format.bits == 4 else draw.normal(
        (rows, k), "e4m3"
    ), scale_factors


def check(name: str, format: Format, stored: Array, scale_factors: Array) -> tuple[int, int]:
    """Rows and columns of a matrix; `UnsuitedError` if it has another format."""
    rows, k = stored.shape[0], stored.shape[1] * 8 // format.bits
    if type_of(stored) != format.storage or k % 32 or not k:
        raise UnsuitedError(
            f"{name} is {stored.dtype}, {k} numbers a row: {format.storage}, k in steps of 32, is needed"
        )
    wanted = "e4m3" if format.factor == "ue4m3" else "u8"
    if tuple(scale_factors.shape) != format.extents(rows, k) or type_of(scale_factors) != wanted:
        extents = " x ".join(map(str, format.extents(rows, k)))
        given = f"{scale_factors.dtype} {tuple(scale_factors.shape)}"
        raise UnsuitedError(f"scale factors of {name} are {given}, expected {wanted} {extents}")
    return rows, k
