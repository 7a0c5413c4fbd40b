"""D = A·Bᵀ of 8-bit floats with scales of blocks, by `wgmma` and tensor copies.

A is m by k and has a scale for each 128 elements of a row; B is n by k and has one for each 128 by 128.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import ptxlab
from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import BLOCKS, Layout, Shape
from ptxlab.kernels.scaled_gemm.choice import choose
from ptxlab.kernels.scaled_gemm.kernel import specialize
from ptxlab.kernels.scaled_gemm.scales import BLOCK
from ptxlab.kernels.wgmma_gemm import grid_of, strides_of, workspace_for
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

WORKSPACE = 13, 14  # parameters of the kernel: memory for partial results and for counters
MODELS = (  # m, n and k of layers of DeepSeek-V3, and squares
    (128, 7168, 2048), (128, 24576, 1536), (128, 7168, 4096), (4096, 24576, 1536), (4096, 7168, 2048),
    (4096, 4096, 7168), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 16384),
)  # fmt: skip


def product(
    a: Array, b: Array, scale_a: Array, scale_b: Array, d: Array, shape: Shape | None = None, blocks: int = BLOCKS
) -> Launch:
    """The launch that computes D; rows of A and B run along k."""
    formats = Formats(type_of(a), type_of(b), type_of(d))
    problem = Problem(a.shape[0], b.shape[0], a.shape[1], size=1, out_size=formats.out_size)
    chosen = shape or choose(problem, isinstance(a, np.ndarray))
    workspace = workspace_for(problem, chosen, d)
    return launch(formats, (a, b, d), (scale_a, scale_b), chosen, blocks=blocks, workspace=workspace)


def launch(
    formats: Formats,
    matrices: tuple[Array, Array, Array],
    scales: tuple[Array, Array],
    shape: Shape,
    *,
    blocks: int = BLOCKS,
    aligned: bool | None = None,
    mapped: bool | None = None,
    workspace: tuple[object, object] = (0, 0),
) -> Launch:
    """The launch of one variant; rows of A and B are multiples of 16 bytes, `aligned` is whether those of D are.

    `mapped` is whether scales of A can be copied by TMA: those of neighbouring rows are neighbours in memory.
    """
    (a, b, d), (m, k), (n, _) = matrices, matrices[0].shape, matrices[1].shape
    shape = replace(shape, fresh=max(shape.fresh, 1))
    if shape.swap_ab:
        raise UnsuitedError("rows of a tile are rows of A")
    if ceil_div(k, BLOCK) < shape.split_k:
        raise UnsuitedError(f"k is {k}, and {shape.split_k} blocks need {shape.split_k * BLOCK} at least")
    pitch = strides_of(d)[0]
    aligned = pitch * formats.out_size % 16 == 0 if aligned is None else aligned
    layout = Layout(True, True, aligned, formats.element, formats.out_size)
    maps: list[object] = [one.map(matrix) for one, matrix in zip(shape.operands(layout), (a, b), strict=True)]
    maps.append(shape.boxes(layout).map(d) if aligned else d)
    strides = [*strides_of(scales[0]), *strides_of(scales[1])]
    if mapped is None:
        mapped = strides[0] == 1 and strides[1] % 4 == 0 and strides[1] >= m
    scale_a, scale_b = scales
    first = ptxlab.tensor_map(scale_a.T, box=(1, shape.rows), l2_promotion="256B") if mapped else scale_a
    args = [*maps, m, n, k, pitch, first, scale_b, *strides, *workspace]
    grid = grid_of(Problem(m, n, k).tiles(shape), shape, blocks)
    kernel = specialize(formats, shape, layout, mapped)
    return Launch(kernel, grid, shape.threads, args, shape.shared(layout), overlap=True)


def by_blocks(torch: ModuleType, a: Array, b: Any, scale_a: Array, scale_b: Any, d: Array) -> Callable[[], object]:
    """cuBLASLt with the same scales, which it wants in another layout."""
    if b.shape[0] % BLOCK:
        raise UnsuitedError("only whole blocks")
    wide = torch.empty((scale_b.shape[0], ceil_div(scale_b.shape[1], 4) * 4), device=b.device)[:, : scale_b.shape[1]]
    wide.copy_(scale_b)
    return lambda: {"d": torch._scaled_mm(a, b.T, scale_a, wide.T, out_dtype=d.dtype)}


def by_tensor(torch: ModuleType, a: Any, b: Array, scale_a: Array, scale_b: Array, d: Array) -> Callable[[], object]:
    """cuBLASLt with one scale for each matrix: right where all scales are 1, and adds as the tensor cores do."""
    one = torch.ones((), device=a.device)
    return lambda: {"d": torch._scaled_mm(a, b.T, one, one, out_dtype=d.dtype, use_fast_accum=True)}


def arrays(draw: Draw, m: int, n: int, k: int, type: str = "e4m3", scales: str = "blocks") -> Arrays:
    """A, B by columns, their scales, and space for D; scales of neighbouring rows of A are neighbours in memory."""
    low, high = (1.0, 1.0) if scales == "ones" else (0.5, 2.0)
    along, across = ceil_div(k, BLOCK), ceil_div(n, BLOCK)
    return {
        "a": draw.normal((m, k), type),
        "b": draw.normal((n, k), type),
        "scale_a": draw.uniform((along, m), "f32", low, high).T,
        "scale_b": draw.uniform((across, along), "f32", low, high),
        "d": draw.empty((m, n), "bf16"),
    }


def reference(xp: ModuleType, a: Array, b: Array, scale_a: Array, scale_b: Array, d: Array) -> Arrays:
    """The same in float64."""
    along, down = ([number // BLOCK for number in range(extent)] for extent in (a.shape[1], b.shape[0]))
    return {"d": (a * scale_a[:, along]) @ (b * scale_b[down][:, along]).T}


def work(m: int, n: int, k: int, type: str = "e4m3", scales: str = "blocks") -> Work:
    """A multiplication and an addition for each of m·n·k."""
    return Work(flops=2 * m * n * k, bytes=k * (m + n) + 2 * m * n, rate="e4m3")


entry = Entry(
    title="D = A·Bᵀ of fp8 with scales of blocks, by wgmma",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": product},
    libraries={"cuBLASLt, one scale": by_tensor, "cuBLASLt, by blocks": by_blocks},
    sizes=[{"m": m, "n": n, "k": k, "scales": "ones"} for m, n, k in MODELS],
    small=[{"m": 100, "n": 136, "k": 208}, {"m": 70, "n": 24, "k": 272, "type": "e5m2"}],
    tolerance=4e-3,
)
