"""D = A·Bᵀ on Hopper's tensor cores, by `wgmma` and tensor copies: f16 and bf16.

A is m by k, B is n by k, D is m by n. Rows of A and B, or their columns if those are in memory one after the other, are
multiples of 16 bytes.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.array_types import type_of
from ptxlab.kernels.gemv import rows_by_blocks
from ptxlab.kernels.parts.finishing import Activation, Extras
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import BLOCKS, Layout, Shape
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.kernels.wgmma_gemm.kernel import needs_more, specialize
from ptxlab.kernels.wgmma_gemm.measured import SIZES, arrays, by_cublas, by_inductor, reference, tolerance, work
from ptxlab.kernels.wgmma_gemm.plain import plain
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div
from ptxlab.measure import Entry

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SMALL = Shape(groups=1, columns=64)


def product(
    a: Any,
    b: Any,
    d: Any,
    shape: Shape | None = None,
    bias: Any = None,
    residual: Any = None,
    activation: str | Activation | None = None,
) -> Launch:
    """The launch that computes D; rows of A and B run along k, or their columns do."""
    (m, k), (n, depth) = a.shape, b.shape
    type = type_of(a)
    if type not in ("f16", "bf16") or a.dtype != b.dtype or depth != k:
        raise UnsuitedError(f"no product of {a.dtype} {m}x{k} and {b.dtype} {n}x{depth}, by columns")
    along = [has_rows(one) for one in (a, b)]
    lengths = [one.shape[1] if rows else one.shape[0] for one, rows in zip((a, b), along, strict=True)]
    if not k or any(length % 8 for length in lengths):
        raise UnsuitedError(f"rows have {lengths[0]} and {lengths[1]} elements: they must be multiples of 16 bytes")
    extras = Extras(bias is not None, activation, residual is not None, paired=n % 8 == 0)
    is_plain = extras == Extras(paired=extras.paired)
    if shape is None and is_plain and is_for_gemv(type, m, pitch_of(b), k, along[1]):
        return rows_by_blocks(b[None], a, d)
    problem = Problem(m, n, k, *along)
    chosen = shape or choose(problem, isinstance(d, np.ndarray), residual is not None, activation is not None)
    if residual is not None and n % 8 == 0 and chosen.takes_residuals(problem.layout(chosen)):
        extras = replace(extras, in_ring=True)
    stored = [one if rows else one.T for one, rows in zip((a, b), along, strict=True)]
    workspace = workspace_for(problem, chosen, d)
    return launch(
        type,
        (*stored, d),
        (m, n, k),
        chosen,
        a_along_k=along[0],
        b_along_k=along[1],
        workspace=workspace,
        extras=None if is_plain else extras,
        bias=0 if bias is None else bias,
        residual=0 if residual is None else residual,
    )


def has_rows(matrix: Array) -> bool:
    """Whether elements of a row follow each other in memory, and not those of a column."""
    return strides_of(matrix)[1] == 1 or matrix.shape[1] == 1


def pitch_of(matrix: Array) -> int:
    """Elements from one row to the next."""
    return strides_of(matrix)[0]


def strides_of(matrix: Any) -> tuple[int, int]:
    """Strides in elements."""
    if hasattr(matrix, "data_ptr"):
        return int(matrix.stride(0)), int(matrix.stride(1))
    return matrix.strides[0] // matrix.itemsize, matrix.strides[1] // matrix.itemsize


def is_for_gemv(type: str, m: int, b_pitch: int, k: int, b_along_k: bool) -> bool:
    """Whether `gemv` computes a product faster: one row, which each row of B is multiplied with."""
    return type in ("f16", "bf16") and m == 1 and b_along_k and b_pitch == k


def workspace_for(problem: Problem, shape: Shape, like: Any) -> tuple[Any, Any]:
    """Memory for partial results, and counters that are 0, where blocks exchange results through it."""
    if shape.split_k == 1 or shape.clustered:
        return 0, 0
    tiles = problem.tiles(shape)
    numbers = tiles * shape.cluster * shape.split_k * shape.parts.bytes // 4
    if hasattr(like, "data_ptr"):
        torch = import_module("torch")
        partial = like.new_empty(numbers, dtype=torch.float32)
        return partial, like.new_zeros(tiles * shape.cluster, dtype=torch.int32)
    return np.zeros(numbers, np.float32), np.zeros(tiles * shape.cluster, np.uint32)


def launch(
    type: str | Formats,
    matrices: tuple[Any, Any, Any],
    extents: tuple[int, int, int],
    shape: Shape,
    *,
    a_along_k: bool = True,
    b_along_k: bool = True,
    blocks: int = BLOCKS,
    extras: Extras | None = None,
    bias: Array | int = 0,
    residual: Any = 0,
    pitches: tuple[int, int] | None = None,
    aligned: bool | None = None,
    workspace: tuple[int, int] = (0, 0),
    scales: tuple[Any, Any] = (0, 0),
) -> Launch:
    """The launch of one variant. An operand that is not along k is given as it is in memory: its rows run across k.

    `pitches` are the distances of rows of D and of the residual, `aligned` is whether rows of D start at multiples of
    16 bytes.
    """
    (a, b, d), (m, n, k), formats = matrices, extents, Formats.of(type)
    if ceil_div(k, formats.depth) < shape.split_k:
        least = shape.split_k * formats.depth
        raise UnsuitedError(f"k is {k}, and {shape.split_k} blocks of a cluster need {least} at least")
    pitch, residual_pitch = pitches or (n, n)
    aligned = n * formats.out_size % 16 == 0 if aligned is None else aligned
    sides = (a, a_along_k), (b, b_along_k)
    (left, left_along), (right, right_along) = reversed(sides) if shape.swap_ab else sides
    high, wide = (n, m) if shape.swap_ab else (m, n)
    layout = Layout(left_along, right_along, aligned, formats.element, formats.out_size)
    maps = [one.map(matrix) for one, matrix in zip(shape.operands(layout), (left, right), strict=True)]
    rest = [shape.boxes(layout).map(d)] if aligned else [d]
    if extras is not None and extras.bias and extras.paired and not shape.swap_ab:
        extras = replace(extras, boxed=n % shape.boxes(layout).extents[1] == 0)
    if extras is not None and extras.in_ring:
        residual = shape.ring_boxes(layout).map(residual)
    tiles = Problem(m, n, k, a_along_k, b_along_k).tiles(shape)
    grid = grid_of(tiles, shape, blocks)
    args = [*maps, *rest, high, wide, k]
    if needs_more(shape, layout, extras):
        args += [pitch, bias, residual, residual_pitch, *workspace, *scales]
    kernel = specialize(formats, shape, layout, extras)
    return Launch(kernel, grid, shape.threads, args, shape.shared(layout), overlap=True)


def grid_of(tiles: int, shape: Shape, blocks: int = BLOCKS) -> int:
    """How many blocks there are: all that an SM can have at a time, or one for each part of a tile."""
    if shape.split_k > 1:
        return tiles * shape.split_k * shape.cluster
    most = shape.occupancy * min(blocks, shape.sms) // shape.cluster
    if shape.even:
        most = ceil_div(tiles, ceil_div(tiles, most))
    return min(tiles, most) * shape.cluster


entry = Entry(
    title="D = A·Bᵀ by wgmma and tensor copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"plain": plain, "wgmma": product},
    libraries={"cuBLAS": by_cublas, "torch.compile": by_inductor},
    sizes=SIZES,
    small=[
        {"type": "bf16", "m": 100, "n": 136, "k": 200},
        {"type": "f16", "m": 64, "n": 64, "k": 64},
        {"type": "bf16", "m": 300, "n": 264, "k": 72},
    ],
    tolerance=tolerance,
)
