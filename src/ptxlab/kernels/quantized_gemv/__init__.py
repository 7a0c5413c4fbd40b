"""y = W x for weights of 4 bits, or fp8, with scales, and x in bf16.

W is n by k, x is one vector or a few, y is as many by n.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab.kernels.quantized_gemv.formats import FORMATS, Format
from ptxlab.kernels.quantized_gemv.kernel import LANES, ROWS, VECTORS, Shape, build
from ptxlab.kernels.quantized_gemv.packing import Packed, Quantized, values_of
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SMS = 132  # of an H200


def choose(format: Format, rows: int, columns: int) -> Shape:
    """The shape that was fastest on an H200, or nearly so: as many warps in a block as let an SM hold 32 of them."""
    blocks, chunks = ceil_div(rows, ROWS), columns // format.depth
    warps = next((warps for warps in (16, 8) if blocks * warps <= 32 * SMS), 4)
    each = ceil_div(chunks, warps)
    overlaps = format.name != "fp8"  # which is at the bandwidth of memory, and slower if kernels overlap
    if warps == 4 and overlaps:
        return Shape(warps, resident=28, early=4096)  # with 72 registers a thread, none are spilled
    if each <= 2 or (format.name == "int4" and each % 2 == 0):
        return Shape(warps, ahead=2, sets=1, overlaps=overlaps)
    return Shape(warps, sets=1 if each % 2 and chunks % warps == 0 else 2, overlaps=overlaps)


def product(matrix: Packed, x: Array, y: Array, shape: Shape | None = None) -> Launch:
    """The launch that computes y."""
    format, count = FORMATS[matrix.format], prod(x.shape[:-1])
    chunks = matrix.columns // format.depth
    shape = shape or choose(format, matrix.rows, matrix.columns)
    made = build(format, shape, chunks % (shape.step * shape.sets) == 0)
    args = [matrix.weights, matrix.scales, x, y, matrix.factor * 2.0**format.exponent, matrix.rows, chunks, count]
    grid = ceil_div(matrix.rows, ROWS), ceil_div(count, VECTORS)
    return Launch(made, grid, shape.warps * LANES, args, overlap=shape.overlaps)


def by_tensor_cores(format: str, codes: Array, scales: Array, zeros: Array | None, x: Array, y: Array) -> Launch:
    """The product, of what is packed first."""
    return product(Quantized(format, codes, scales, zeros).pack(), x, y)


def torch_baseline(
    torch: ModuleType, format: str, codes: Array, scales: object, zeros: Array | None, x: object, y: Array
) -> Callable[[], object]:
    """The same matrix in bf16, as torch multiplies it without quantization."""
    dense = Quantized(format, codes, scales, zeros).values().to(torch.bfloat16)
    return lambda: torch.matmul(x, dense.T, out=y)


def arrays(draw: Draw, format: str, n: int, k: int, m: int = 1) -> Arrays:
    """Random weights with random scales, vectors, and space for their products."""
    group = FORMATS[format].group
    scales = {
        "nvfp4": lambda: draw.uniform((n, k // group), "e4m3", 0.25, 2.0),
        "mxfp4": lambda: draw.integers((n, k // group), "u8", 124, 130),
        "int4": lambda: draw.uniform((n, k // group), "bf16", 0.01, 0.02),
        "fp8": lambda: draw.uniform((n,), "f32", 0.5, 2.0),
    }
    return {
        "format": format,
        "codes": draw.normal((n, k), "e4m3") if format == "fp8" else draw.integers((n, k // 2), "u8", 0, 256),
        "scales": scales[format](),
        "zeros": draw.integers((n, k // group), "u8", 0, 16) if format == "int4" else None,
        "x": draw.normal((m, k), "bf16"),
        "y": draw.empty((m, n), "bf16"),
    }


def reference(xp: ModuleType, format: str, codes: Array, scales: Array, zeros: object, x: Array, y: Array) -> Arrays:
    """The same in float64."""
    return {"y": x @ values_of(xp, format, codes, scales, zeros).T}


def work(format: str, n: int, k: int, m: int = 1) -> Work:
    """Each weight and each scale is read once."""
    layout = FORMATS[format]
    scales = n * (k // layout.depth) * layout.scale_bytes // ROWS if layout.group else 4 * n
    return Work(2 * m * n * k, n * k * layout.codes.bits // 8 + scales + 2 * m * (n + k), "f32 arithmetic")


entry = Entry(
    title="y = W x for weights of 4 bits or fp8, x in bf16",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"tensor cores": by_tensor_cores},
    libraries={"torch, bf16": torch_baseline},
    sizes=[
        {"format": format, "n": n, "k": k}
        for (n, k), formats in {
            (4096, 4096): ("int4", "nvfp4"),
            (14336, 4096): ("int4", "nvfp4"),
            (4096, 14336): ("int4", "nvfp4"),
            (7168, 18432): ("fp8", "int4", "mxfp4", "nvfp4"),
            (8192, 28672): ("fp8", "int4", "mxfp4", "nvfp4"),
        }.items()
        for format in formats
    ],
    small=[
        {"format": "nvfp4", "n": 20, "k": 1280},
        {"format": "mxfp4", "n": 16, "k": 640, "m": 3},
        {"format": "int4", "n": 5, "k": 384, "m": 9},
        {"format": "fp8", "n": 33, "k": 320, "m": 2},
    ],
    tolerance=4e-3,
)
