"""D = A·Bᵀ on Blackwell's tensor cores, by `tcgen05` and TMA copies, in five steps: f16 and bf16.

A is m by k, B is n by k, D is m by n. Rows of A, B and D are multiples of 16 bytes; m is any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import ptxlab
from ptxlab.device.array_types import type_of
from ptxlab.kernels.tcgen05_gemm import one_tile, pair, persistent, ring, specialized
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS
from ptxlab.kernels.tcgen05_gemm.parts import BOX, DEPTH, ROWS, Shape
from ptxlab.kernels.wgmma_gemm.measured import arrays, by_cublas, reference, tolerance, work
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div
from ptxlab.measure import Entry
from ptxlab.measure.steps import OptimizationStep, Steps

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

STEPS = ("one_tile", "ring", "specialized", "persistent", "pair")
BLOCKS = 148  # as many as a B200 has SMs


def product(
    a: Array, b: Array, d: Array, step: str = "persistent", shape: Shape | None = None, blocks: int = 0
) -> Launch:
    """The launch that computes D, by one of the steps; of the persistent kernel, by so many blocks."""
    (m, k), (n, depth) = a.shape, b.shape
    type = type_of(a)
    if type not in ("f16", "bf16") or a.dtype != b.dtype or depth != k:
        raise UnsuitedError(f"no product of {a.dtype} {m}x{k} and {b.dtype} {n}x{depth}, by columns")
    if k % 8 or not k or n % 8:
        raise UnsuitedError(f"k is {k} and n is {n}: rows must be multiples of 16 bytes")
    shape = shape or (Shape() if m * n >= 256 * 256 else Shape(columns=64, stages=2))
    if step == "one_tile":
        shape = Shape(shape.columns, stages=1)
    sources = [
        ptxlab.tensor_map(matrix, box=(rows, DEPTH), swizzle="128B") for matrix, rows in ((a, ROWS), (b, shape.columns))
    ]
    grid, shared = (ceil_div(n, shape.columns), ceil_div(m, ROWS)), shape.stages * shape.stage_bytes
    if step == "one_tile":
        return Launch(one_tile.specialize(type, shape), grid, 128, [*sources, d, m, n, k], shared)
    if step == "ring":
        return Launch(ring.specialize(type, shape), grid, 128, [*sources, d, m, n, k], shared)
    maps, shared = [*sources, ptxlab.tensor_map(d, box=(ROWS, BOX), swizzle="128B")], shared + 2 * ROWS * shape.columns
    if step == "specialized":
        return Launch(specialized.specialize(type, shape), grid, THREADS, [*maps, k], shared)
    if step == "pair":
        tiles = ceil_div(m, 2 * ROWS) * ceil_div(n, 2 * shape.columns)
        count, shared = 2 * min(tiles, (blocks or BLOCKS) // 2), shared + 2 * ROWS * shape.columns
        args = [*maps, m, n, k]
        return Launch(pair.specialize(type, shape), count, THREADS, args, shared, cluster=2)
    count = min(grid[0] * grid[1], blocks or BLOCKS)
    return Launch(persistent.specialize(type, shape), count, THREADS, [*maps, m, n, k], shared)


def steps() -> Steps:
    """All steps, with four blocks of the persistent ones."""
    rows = [OptimizationStep(step, [blank(512, 512, step, blocks=4)], [blank(8192, 8192, step)]) for step in STEPS]
    return Steps(rows, "512³", "8192³")


def blank(extent: int, depth: int, step: str, blocks: int = 0) -> Launch:
    """A launch on zeros."""
    a, b, d = (np.zeros((extent, columns), np.float16) for columns in (depth, depth, extent))
    return product(a, b, d, step, Shape(), blocks)


entry = Entry(
    title="D = A·Bᵀ by tcgen05 and TMA copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={step: partial(product, step=step) for step in STEPS},
    libraries={"cuBLAS": by_cublas},
    sizes=[{"type": "bf16", "m": extent, "n": extent, "k": extent} for extent in (2048, 4096, 8192)],
    small=[{"type": "bf16", "m": 130, "n": 72, "k": 200}],
    tolerance=tolerance,
)
