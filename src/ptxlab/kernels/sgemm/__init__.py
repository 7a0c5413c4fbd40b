"""C = A·B in f32: a series of optimization steps, one file each.

The first steps are PTX text, the others are written in Python. Each is the one before with one idea more; README.md
says which.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.kernels.sgemm import authored
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.syntax import load

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


@cache
def kernel(file: str, name: str) -> ir.Function:
    """The kernel of a file of this folder."""
    return load(Path(__file__).with_name(file))[name]


def naive(a: Array, b: Array, c: Array) -> Launch:
    """An element a thread, neighbouring threads in neighbouring rows."""
    m, n, k = extents(a, b)
    return Launch(kernel("naive.ptx", "naive"), (ceil_div(m, 32), ceil_div(n, 32)), (32, 32), [a, b, c, m, n, k])


def coalesced(a: Array, b: Array, c: Array) -> Launch:
    """An element a thread, neighbouring threads in neighbouring columns."""
    m, n, k = extents(a, b)
    grid = (ceil_div(n, 32), ceil_div(m, 32))
    return Launch(kernel("coalesced.ptx", "coalesced"), grid, (32, 32), [a, b, c, m, n, k])


def shared_memory(a: Array, b: Array, c: Array) -> Launch:
    """Tiles of 32 by 32 in shared memory."""
    m, n, k = extents(a, b)
    grid = (ceil_div(n, 32), ceil_div(m, 32))
    return Launch(kernel("shared.ptx", "shared_memory"), grid, (32, 32), [a, b, c, m, n, k])


def tiled_1d(a: Array, b: Array, c: Array) -> Launch:
    """Eight elements a thread, one below the other."""
    m, n, k = extents(a, b)
    grid = (ceil_div(n, 64), ceil_div(m, 64))
    return Launch(kernel("tiled_1d.ptx", "tiled_1d"), grid, 512, [a, b, c, m, n, k])


def extents(a: Array, b: Array) -> tuple[int, int, int]:
    """m, n and k of a product."""
    return a.shape[0], b.shape[1], a.shape[1]


def by_cublas(torch: ModuleType, a: Array, b: Array, c: Array) -> Callable[[], object]:
    """cuBLAS through torch, in f32 throughout: torch's default is to leave TF32 off."""
    return lambda: torch.matmul(a, b, out=c)


def arrays(draw: Draw, m: int, n: int, k: int) -> Arrays:
    """Two matrices, row by row, and space for their product."""
    return {"a": draw.normal((m, k), "f32"), "b": draw.normal((k, n), "f32"), "c": draw.empty((m, n), "f32")}


def reference(xp: ModuleType, a: Array, b: Array, c: Array) -> Arrays:
    """The product."""
    return {"c": a @ b}


def work(m: int, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    return Work(flops=2 * m * n * k, bytes=4 * (m * k + k * n + m * n), rate="f32")


entry = Entry(
    title="C = A·B for f32 matrices",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        "naive": naive,
        "coalesced": coalesced,
        "shared memory": shared_memory,
        "1-D tiling": tiled_1d,
        "2-D tiling": authored.tiles,
        "vectorised": authored.vectorised,
        "warp tiling": authored.warp_tiles,
        "double buffering": authored.double_buffered,
    },
    libraries={"cuBLAS": by_cublas},
    sizes=[{"m": extent, "n": extent, "k": extent} for extent in (2048, 4096, 8192)],
    small=[
        {"m": 1, "n": 1, "k": 1},
        {"m": 33, "n": 65, "k": 17},
        {"m": 64, "n": 256, "k": 64},
        {"m": 70, "n": 100, "k": 41},
    ],
    tolerance=1e-5,
)
