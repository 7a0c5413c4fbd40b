"""D = A·Bᵀ on Hopper's tensor cores, by `wgmma` and tensor copies: f16 and bf16.

A is m by k, B is n by k, D is m by n. Rows of A, B and D are multiples of 16 bytes; m is any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ptxlab
from ptxlab.kernels.wgmma_gemm.kernel import specialize
from ptxlab.kernels.wgmma_gemm.shapes import BLOCKS, Shape
from ptxlab.measure import Draw, Entry, Launch, UnsuitedError, Work
from ptxlab.measure.data import type_of
from ptxlab.measure.entry import Arrays, ceil_div

LARGE, SMALL = Shape(), Shape(groups=1, columns=64, taken=160)


def product(a: Any, b: Any, d: Any, shape: Shape | None = None) -> Launch:
    """The launch that computes D."""
    (m, k), (n, depth) = a.shape, b.shape
    type = type_of(a)
    if type not in ("f16", "bf16") or a.dtype != b.dtype or depth != k:
        raise UnsuitedError(f"no product of {a.dtype} {m}x{k} and {b.dtype} {n}x{depth}, by columns")
    if k % 8 or not k or n % 8:
        raise UnsuitedError(f"k is {k} and n is {n}: rows must be multiples of 16 bytes")
    chosen = shape or (LARGE if m * n >= 256 * 256 else SMALL)
    maps = [
        ptxlab.tensor_map(matrix, box=(rows, 64), swizzle="128B", l2_promotion="256B")
        for matrix, rows in ((a, chosen.rows), (b, chosen.columns), (d, 64))
    ]
    tiles = ceil_div(m, chosen.rows) * ceil_div(n, chosen.columns)
    return Launch(specialize(type, chosen), min(tiles, BLOCKS), chosen.threads, [*maps, m, n, k], shared=chosen.shared)


def by_cublas(torch: Any, a: Any, b: Any, d: Any) -> Callable[[], Any]:
    """cuBLAS through torch."""
    return lambda: torch.matmul(a, b.T, out=d)


def arrays(draw: Draw, type: str, m: int, n: int, k: int) -> Arrays:
    """A, B by columns, and space for D."""
    return {"a": draw.normal((m, k), type), "b": draw.normal((n, k), type), "d": draw.empty((m, n), type)}


def reference(xp: Any, a: Any, b: Any, d: Any) -> Arrays:
    """The same in float64."""
    return {"d": a @ b.T}


def work(type: str, m: int, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    return Work(flops=2 * m * n * k, bytes=2 * (m * k + n * k + m * n), rate=type)


def tolerance(type: str, **_: Any) -> float:
    """Half a unit in the last place of what comes out."""
    return {"f16": 5e-4, "bf16": 4e-3}[type]


entry = Entry(
    title="D = A·Bᵀ by wgmma and tensor copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": product},
    libraries={"cuBLAS": by_cublas},
    sizes=[
        {"type": "f16", "m": 8192, "n": 8192, "k": 8192},
        *({"type": "bf16", "m": extent, "n": extent, "k": extent} for extent in (2048, 4096, 8192)),
    ],
    small=[
        {"type": "bf16", "m": 100, "n": 136, "k": 200},
        {"type": "f16", "m": 64, "n": 64, "k": 64},
        {"type": "bf16", "m": 300, "n": 264, "k": 72},
    ],
    tolerance=tolerance,
)
