"""y = A x of NVFP4 matrices and vectors, for each of a batch.

A is l by m by k, x is l by k, both e2m1, two a byte, with a factor in e4m3 for every sixteen numbers of a row, in rows
as well; y is l by m, f16. k is a multiple of 32.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab.kernels.nvfp4_gemv.kernel import LANES, WARPS, nvfp4_gemv
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.measure.block_scaled import NVFP4, values
from ptxlab.measure.data import Blank
from ptxlab.measure.steps import OptimizationStep, Steps

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


def product(a: Array, a_factors: Array, x: Array, x_factors: Array, y: Array) -> Launch:
    """The launch that computes y."""
    batch, m, bytes = a.shape
    if tuple(x.shape) != (batch, bytes) or bytes % 16 or not m * bytes:
        raise UnsuitedError(f"no product of {batch} {m}x{2 * bytes} and {tuple(x.shape)} bytes: k is a multiple of 32")
    if tuple(a_factors.shape) != (batch, m, bytes // 8) or tuple(x_factors.shape) != (batch, bytes // 8):
        raise UnsuitedError(f"{tuple(a_factors.shape)} and {tuple(x_factors.shape)} factors: k / 16 a row are needed")
    grid = ceil_div(m, WARPS), batch
    return Launch(nvfp4_gemv, grid, WARPS * LANES, [a, a_factors, x, x_factors, y, m, bytes])


def arrays(draw: Draw, m: int, k: int, l: int) -> Arrays:  # noqa: E741 - as the problem is known
    """A and x with their factors, and space for y."""
    return {
        "a": draw.integers((l, m, k // 2), "u8", 0, 256),
        "a_factors": draw.uniform((l, m, k // NVFP4.group), "e4m3", 0.25, 2.0),
        "x": draw.integers((l, k // 2), "u8", 0, 256),
        "x_factors": draw.uniform((l, k // NVFP4.group), "e4m3", 0.25, 2.0),
        "y": draw.empty((l, m), "f16"),
    }


def reference(xp: ModuleType, a: Array, a_factors: Array, x: Array, x_factors: Array, y: Array) -> Arrays:
    """The same in float64."""
    left, right = values(xp, a, NVFP4.group) * a_factors[..., None], values(xp, x, NVFP4.group) * x_factors[..., None]
    return {"y": (left * right[:, None]).sum((-1, -2))}


def work(m: int, k: int, l: int) -> Work:  # noqa: E741
    """A multiplication and an addition for each number of A, which is read once."""
    return Work(flops=2 * l * m * k, bytes=l * (m + 1) * k * 9 / 16 + 2 * l * m, rate="f16")


def steps() -> Steps:
    """The kernel alone."""
    sizes = (64, 4096, 1), (4096, 7168, 8)
    rows = [OptimizationStep("warp a row", *([product(**arrays(Blank(), *size))] for size in sizes))]
    return Steps(rows, *(f"m {m:,}, k {k:,}, {batch} of a batch" for m, k, batch in sizes))


entry = Entry(
    title="y = A x of NVFP4 matrices",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"warp a row": product},
    sizes=[{"m": 4096, "k": 7168, "l": 8}, {"m": 7168, "k": 2048, "l": 4}, {"m": 7168, "k": 16384, "l": 1}],
    small=[{"m": 16, "k": 1024, "l": 2}, {"m": 11, "k": 1248, "l": 3}, {"m": 28, "k": 512, "l": 1}],
    tolerance=5e-4,
)
