"""D = A·Bᵀ of fp8, tf32 and s8 on Hopper's tensor cores: the kernel of `wgmma_gemm` with other types.

A is m by k, B is n by k, D is m by n; rows of A and B are multiples of 16 bytes. 8-bit floats have a scale for each
matrix, and D is bf16; of tf32 it is f32, of s8 it is s32.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.finishing import Extras
from ptxlab.kernels.parts.formats import Formats, bytes_of
from ptxlab.kernels.parts.shapes import BLOCKS, Shape
from ptxlab.kernels.wgmma_gemm import launch, workspace_for
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.launch.launches import Arrays, Launch
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

FORMATS = {
    "e4m3": Formats("e4m3", "e4m3", "bf16"), "e5m2": Formats("e5m2", "e4m3", "bf16"),
    "tf32": Formats("tf32", "tf32", "f32"), "s8": Formats("s8", "s8", "s32"),
}  # fmt: skip
SIZES = (
    (128, 7168, 2048), (128, 7168, 4096), (4096, 7168, 2048), (4096, 4096, 7168), (2048, 2048, 2048),
    (4096, 4096, 4096), (8192, 8192, 8192),
)  # fmt: skip
FEW_ROWS = (16, 7168, 4096), (64, 7168, 4096), (256, 7168, 4096), (512, 4096, 7168), (128, 7168, 16384)


def problem_of(type: str, m: int, n: int, k: int) -> Problem:
    """What `choose` is asked for."""
    formats = FORMATS[type]
    return Problem(m, n, k, size=bytes_of(formats.left), out_size=formats.out_size, integers=type == "s8")


def product(
    a: Array,
    b: Array,
    d: Array,
    scale_a: Array | None = None,
    scale_b: Array | None = None,
    shape: Shape | None = None,
    blocks: int = BLOCKS,
) -> Launch:
    """The launch that computes D."""
    (m, k), n, found = a.shape, b.shape[0], type_of(a)
    type = "tf32" if found == "f32" else found
    problem = problem_of(type, m, n, k)
    chosen = shape or choose(problem, isinstance(a, np.ndarray))
    is_scaled = scale_a is not None
    return launch(
        FORMATS[type],
        (a, b, d),
        (m, n, k),
        chosen,
        blocks=blocks,
        extras=Extras(scales=True) if is_scaled else None,
        scales=(scale_a, scale_b) if is_scaled else (0, 0),
        workspace=workspace_for(problem, chosen, d),
    )


def by_cublas(
    torch: ModuleType, a: Array, b: Array, d: Array, scale_a: object = None, scale_b: object = None
) -> Callable[[], Any]:
    """cuBLAS through torch; of fp8 it adds as the kernel does, which torch calls fast."""
    if scale_a is not None:
        return lambda: {"d": torch._scaled_mm(a, b.T, scale_a, scale_b, out_dtype=d.dtype, use_fast_accum=True)}
    if type_of(a) == "s8":
        return lambda: {"d": torch._int_mm(a, b.T)}

    def run() -> None:
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            torch.mm(a, b.T, out=d)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    return run


def arrays(draw: Draw, type: str, m: int, n: int, k: int) -> Arrays:
    """A, B by columns, scales if they are fp8, and space for D."""
    formats = FORMATS[type]
    if type == "s8":
        found = {"a": draw.integers((m, k), "s8", -128, 128), "b": draw.integers((n, k), "s8", -128, 128)}
    else:
        left, right = ("f32", "f32") if type == "tf32" else (formats.left, formats.right)
        found = {"a": draw.normal((m, k), left), "b": draw.normal((n, k), right)}
    found["d"] = draw.empty((m, n), formats.out)
    if bytes_of(formats.left) == 1 and type != "s8":
        found |= {name: draw.uniform((1,), "f32", 0.5, 2.0) for name in ("scale_a", "scale_b")}
    return found


def reference(
    xp: ModuleType, a: Array, b: Array, d: Array, scale_a: Array | None = None, scale_b: Array | None = None
) -> Arrays:
    """The same in float64."""
    return {"d": a @ b.T if scale_a is None else a @ b.T * (scale_a * scale_b)}


def work(type: str, m: int, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    formats = FORMATS[type]
    size = bytes_of(formats.left)
    return Work(flops=2 * m * n * k, bytes=size * k * (m + n) + formats.out_size * m * n, rate=type)


def tolerance(type: str, **_: object) -> float:
    """That of sums with 14 bits for fp8, of operands with 11 bits for tf32; whole numbers are exact."""
    return {"e4m3": 4e-3, "e5m2": 4e-3, "tf32": 4e-4, "s8": 0.0}[type]


entry = Entry(
    title="D = A·Bᵀ of fp8, tf32 and s8 by wgmma",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": product},
    libraries={"cuBLAS": by_cublas},
    sizes=[
        {"type": type, "m": m, "n": n, "k": k}
        for type, sizes in (("s8", SIZES), ("tf32", SIZES), ("e4m3", (*FEW_ROWS, *SIZES)))
        for m, n, k in sizes
    ],
    small=[
        {"type": "e4m3", "m": 70, "n": 24, "k": 144},
        {"type": "e5m2", "m": 9, "n": 72, "k": 144},
        {"type": "tf32", "m": 70, "n": 20, "k": 40},
        {"type": "s8", "m": 70, "n": 20, "k": 144},
    ],
    tolerance=tolerance,
)
