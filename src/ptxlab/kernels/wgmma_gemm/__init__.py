"""D = A·Bᵀ on Hopper's tensor cores, by `wgmma` and tensor copies: f16 and bf16.

A is m by k, B is n by k, D is m by n. Rows of A, B and D are multiples of 16 bytes; m is any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ptxlab
from ptxlab.kernels.wgmma_gemm.finish import Extras
from ptxlab.kernels.wgmma_gemm.kernel import needs_more, operands, specialize
from ptxlab.kernels.wgmma_gemm.shapes import BLOCKS, DEPTH, Layout, Shape
from ptxlab.measure import Draw, Entry, Launch, UnsuitedError, Work
from ptxlab.measure.data import type_of
from ptxlab.measure.entry import Arrays, ceil_div

LARGE, SMALL = Shape(), Shape(groups=1, columns=64)


def product(a: Any, b: Any, d: Any, shape: Shape | None = None) -> Launch:
    """The launch that computes D."""
    (m, k), (n, depth) = a.shape, b.shape
    type = type_of(a)
    if type not in ("f16", "bf16") or a.dtype != b.dtype or depth != k:
        raise UnsuitedError(f"no product of {a.dtype} {m}x{k} and {b.dtype} {n}x{depth}, by columns")
    if k % 8 or not k:
        raise UnsuitedError(f"k is {k}: rows must be multiples of 16 bytes")
    return launch(type, (a, b, d), (m, n, k), shape or (LARGE if m * n >= 256 * 256 else SMALL))


def launch(
    type: str,
    matrices: tuple[Any, Any, Any],
    extents: tuple[int, int, int],
    shape: Shape,
    *,
    a_along_k: bool = True,
    b_along_k: bool = True,
    blocks: int = BLOCKS,
    extras: Extras | None = None,
    bias: Any = 0,
    residual: Any = 0,
    pitches: tuple[int, int] | None = None,
    aligned: bool | None = None,
    workspace: tuple[Any, Any] = (0, 0),
) -> Launch:
    """The launch of one variant. An operand that is not along k is given as it is in memory: its rows run across k.

    `pitches` are the distances of rows of D and of the residual, `aligned` is whether rows of D start at multiples of
    16 bytes.
    """
    (a, b, d), (m, n, k) = matrices, extents
    if ceil_div(k, DEPTH) < shape.split:
        raise UnsuitedError(f"k is {k}, and {shape.split} blocks of a cluster need {shape.split * DEPTH} at least")
    pitch, residual_pitch = pitches or (n, n)
    aligned = n % 8 == 0 if aligned is None else aligned
    sides = (a, a_along_k), (b, b_along_k)
    (left, left_along), (right, right_along) = reversed(sides) if shape.swapped else sides
    high, wide = (n, m) if shape.swapped else (m, n)
    layout = Layout(left_along, right_along, aligned)
    maps = [one.map(matrix) for one, matrix in zip(operands(shape, layout), (left, right), strict=True)]
    rest = [ptxlab.tensor_map(d, box=shape.box, swizzle=shape.box_swizzle)] if aligned else [d]
    tiles = ceil_div(high, shape.rows * shape.cluster) * ceil_div(wide, shape.columns)
    grid = (
        tiles * shape.split
        if shape.split > 1
        else min(tiles, shape.occupancy * blocks // shape.cluster) * shape.cluster
    )
    args = [*maps, *rest, high, wide, k]
    if needs_more(shape, layout, extras):
        args += [pitch, bias, residual, residual_pitch, *workspace]
    kernel = specialize(type, shape, layout, extras)
    return Launch(kernel, grid, shape.threads, args, shape.shared(layout), overlap=True)


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
