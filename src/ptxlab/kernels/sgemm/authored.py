"""The optimization steps that are written in Python: how each is launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.kernels.parts.elements import vector_of
from ptxlab.kernels.sgemm.blocks import Tiling
from ptxlab.kernels.sgemm.pipelined import pipelined
from ptxlab.kernels.sgemm.tiled_2d import tiled_2d
from ptxlab.launch.launches import Launch, ceil_div

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SYNCHRONOUS = Tiling()
PIPELINED = Tiling(m=64, n=256, k=16, stages=3, resident=2)


def tiles(a: Array, b: Array, c: Array) -> Launch:
    """2-D tiling: 8 x 8 elements a thread."""
    return synchronous(a, b, c, vector=1, wide=False, warps=False)


def vectorised(a: Array, b: Array, c: Array) -> Launch:
    """The same, 16 bytes at a time."""
    return synchronous(a, b, c, vector=alignment(a, b, c), wide=True, warps=False)


def warp_tiles(a: Array, b: Array, c: Array) -> Launch:
    """The same, with a tile for each warp."""
    return synchronous(a, b, c, vector=alignment(a, b, c), wide=True, warps=True)


def double_buffered(a: Array, b: Array, c: Array, tiling: Tiling = PIPELINED) -> Launch:
    """The same, with copies that run ahead."""
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    edges = bool(m % tiling.m or n % tiling.n or k % tiling.k)
    kernel = pipelined(tiling, alignment(b, b, c), edges)
    return Launch(kernel, blocks(m, n, tiling), tiling.threads, [a, b, c, m, n, k], shared=tiling.shared)


def synchronous(a: Array, b: Array, c: Array, **how: object) -> Launch:
    """A launch of the kernel that waits for each tile."""
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    kernel = tiled_2d.specialize(tiling=SYNCHRONOUS, **how)
    return Launch(kernel, blocks(m, n, SYNCHRONOUS), SYNCHRONOUS.threads, [a, b, c, m, n, k])


def blocks(m: int, n: int, tiling: Tiling) -> int:
    """How many tiles cover C."""
    return ceil_div(m, tiling.m) * ceil_div(n, tiling.n)


def alignment(a: Array, b: Array, c: Array) -> int:
    """How many elements of a row one access may take, in all three matrices."""
    return min(vector_of(matrix.shape[1], matrix) for matrix in (a, b, c))
