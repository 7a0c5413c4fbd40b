"""D = A·Bᵀ of matrices with scale factors, by the `mma.sync` of sm_120a: numbers of four, six and eight bits.

A is m by k and B is n by k, as bytes: numbers of four bits two a byte, if both matrices have them, and one a byte
otherwise. Each row of factors has one for every 16 or 32 numbers of a row. D is m by n, f32.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import type_of
from ptxlab.kernels.block_scaled_mma.kernel import ACROSS, BYTES, COLUMNS, ROWS, WARPS, Format, specialize
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.measure.data import Blank
from ptxlab.measure.steps import OptimizationStep, Steps, spell_size

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

FORMATS = {
    "nvfp4": Format("mxf4nvf4", "e2m1", "e2m1", 16, "ue4m3"),
    "mxf4": Format("mxf4", "e2m1", "e2m1", 32, "ue8m0"),
    "mxf6": Format("mxf8f6f4", "e3m2", "e2m3", 32, "ue8m0"),
    "mxf8": Format("mxf8f6f4", "e4m3", "e5m2", 32, "ue8m0"),
    "mxf8-mxf4": Format("mxf8f6f4", "e4m3", "e2m1", 32, "ue8m0"),
}
# Of each type the bits of exponent and mantissa, the bias, and the range of random numbers, without their sign.
TYPES = {
    "e2m1": (2, 1, 1, 0, 8),
    "e2m3": (2, 3, 1, 0, 32),
    "e3m2": (3, 2, 3, 0, 32),
    "e4m3": (4, 3, 7, 0x20, 0x50),
    "e5m2": (5, 2, 15, 0x30, 0x48),
}


def product(a: Array, a_factors: Array, b: Array, b_factors: Array, d: Array, format: str = "nvfp4") -> Launch:
    """The launch that computes D."""
    chosen = FORMATS[format]
    (m, bytes), (n, depth) = a.shape, b.shape
    wanted = [(rows, bytes // BYTES * chosen.scale_factors) for rows in (m, n)]
    if bytes % BYTES or not bytes or depth != bytes or n % 8 or type_of(a) != "u8":
        raise UnsuitedError(f"{m}x{bytes} and {n}x{depth} bytes: rows must be multiples of {BYTES}, n one of 8")
    if [tuple(a_factors.shape), tuple(b_factors.shape)] != wanted:
        raise UnsuitedError(f"factors are {tuple(a_factors.shape)} and {tuple(b_factors.shape)}: {wanted} are needed")
    grid = ceil_div(n, ACROSS * COLUMNS), ceil_div(m, WARPS * ROWS)
    return Launch(specialize(chosen), grid, 32 * WARPS, [a, a_factors, b, b_factors, d, m, n, bytes])


def decode(xp: ModuleType, type: str, codes: Any) -> Any:
    """The numbers that codes of a type mean; both are float64.

    >>> import numpy as np
    >>> decode(np, "e2m1", np.arange(16.0)).tolist()[:8]
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """
    exponent_bits, mantissa_bits, bias, *_ = TYPES[type]
    one, half = 2.0**mantissa_bits, 2.0 ** (exponent_bits + mantissa_bits)
    exponent, mantissa = codes % half // one, codes % one
    is_normal = exponent > 0
    size = (mantissa / one + xp.where(is_normal, 1.0, 0.0)) * 2.0 ** (xp.where(is_normal, exponent, 1.0) - bias)
    return xp.where(codes < half, size, -size)


def numbers(xp: ModuleType, format: Format, type: str, stored: Array, scale_factors: Array) -> Any:
    """A matrix in float64; what is stored and its factors are float64, too. In a byte, e2m1 is in the middle."""
    if format.bits == 4:
        codes = xp.stack([stored % 16, stored // 16], -1).reshape(stored.shape[0], -1)
    else:
        codes = stored // 4 if type == "e2m1" else stored
    scales = decode(xp, "e4m3", scale_factors) if format.factor == "ue4m3" else 2.0 ** (scale_factors - 127.0)
    parts = decode(xp, type, codes).reshape(stored.shape[0], -1, format.group)
    return (parts * scales[..., None]).reshape(stored.shape[0], -1)


def matrix(draw: Draw, format: Format, type: str, rows: int, k: int) -> tuple[Any, Any]:
    """A random matrix: its numbers as they are stored, and its factors."""
    scale_factors = draw.integers(
        (rows, k // format.group), "u8", *((0x28, 0x40) if format.group == 16 else (124, 130))
    )
    if format.bits == 4:
        return draw.integers((rows, k // 2), "u8", 0, 256), scale_factors
    exponent_bits, mantissa_bits, _, low, high = TYPES[type]
    sign = draw.integers((rows, k), "u8", 0, 2) << exponent_bits + mantissa_bits
    return draw.integers((rows, k), "u8", low, high) + sign << (2 if type == "e2m1" else 0), scale_factors


def arrays(draw: Draw, format: str, m: int, n: int, k: int) -> Arrays:
    """A and B with their factors, and space for D."""
    chosen = FORMATS[format]
    (a, a_factors), (b, b_factors) = (
        matrix(draw, chosen, type, rows, k) for type, rows in ((chosen.a, m), (chosen.b, n))
    )
    d = draw.empty((m, n), "f32")
    return {"a": a, "a_factors": a_factors, "b": b, "b_factors": b_factors, "d": d, "format": format}


def reference(xp: ModuleType, a: Array, a_factors: Array, b: Array, b_factors: Array, d: Array, format: str) -> Arrays:
    """The same in float64."""
    chosen = FORMATS[format]
    return {"d": numbers(xp, chosen, chosen.a, a, a_factors) @ numbers(xp, chosen, chosen.b, b, b_factors).T}


def work(format: str, m: int, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    chosen = FORMATS[format]
    stored = (m + n) * k * (chosen.bits / 8 + 1 / chosen.group)
    return Work(flops=2 * m * n * k, bytes=stored + 4 * m * n, rate=chosen.a)


def steps() -> Steps:
    """All formats."""
    size = 64, 64, 512
    rows = [OptimizationStep(format, [product(**arrays(Blank(), format, *size))]) for format in FORMATS]
    return Steps(rows, spell_size(*size), targets=["sm_120a"])


entry = Entry(
    title="D = A·Bᵀ of matrices with scale factors by mma.sync",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"mma.sync": product},
    sizes=[{"format": format, "m": 4096, "n": 4096, "k": 4096} for format in FORMATS],
    small=[{"format": format, "m": 77, "n": 40, "k": 192} for format in FORMATS],
    tolerance=1e-6,
)
