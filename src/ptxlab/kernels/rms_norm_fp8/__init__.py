"""The RMS norm of the rows of x + residual, rounded to e4m3 with a scale for each row."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.kernels.parts.elements import SIZES
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.kernels.rms_norm import EPSILON, fused
from ptxlab.kernels.rms_norm.kernel import LARGEST
from ptxlab.launch.launches import Arrays
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


def expression(
    torch: ModuleType, x: Array, weight: Any, y: Array, residual: Array, summed: Array, scales: Array
) -> Any:
    """The same in torch."""
    added = x + residual
    normal = torch.nn.functional.rms_norm(added.float(), weight.shape, weight.float(), EPSILON)
    found = normal.abs().amax(-1) / LARGEST
    return (normal / found[:, None]).to(torch.float8_e4m3fn), added, found


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """Two matrices and a weight for each column; space for the result, the sum, and a scale for each row."""
    return {
        "x": draw.normal((rows, columns), type),
        "weight": draw.uniform(columns, type, 0.5, 1.5),
        "y": draw.empty((rows, columns), "e4m3"),
        "residual": draw.normal((rows, columns), type),
        "summed": draw.empty((rows, columns), type),
        "scales": draw.empty(rows, "f32"),
    }


def reference(
    xp: ModuleType, x: Array, weight: Array, y: Array, residual: Array, summed: Array, scales: Array
) -> Arrays:
    """By the definition; nothing is rounded."""
    added = x + residual
    normal = added / ((added * added).mean(-1)[:, None] + EPSILON) ** 0.5 * weight
    found = xp.amax(abs(normal), -1) / LARGEST
    return {"y": normal / found[:, None], "summed": added, "scales": found}


def work(rows: int, columns: int, type: str) -> Work:
    """Three matrices, and one of bytes."""
    return Work(8 * rows * columns, rows * (columns * (3 * SIZES[type] + 1) + 4), "f32 arithmetic")


entry = Entry(
    title="y, scales = e4m3(rms_norm(x + residual) · weight) of the rows of two matrices",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"read once": fused},
    libraries={
        "torch.compile": compiled(expression, "y", "summed", "scales"),
        "torch": eager(expression, "y", "summed", "scales"),
    },
    sizes=[
        {"rows": 65536, "columns": 2048, "type": "bf16"},
        {"rows": 16384, "columns": 16384, "type": "bf16"},
        {"rows": 4096, "columns": 32768, "type": "bf16"},
        {"rows": 32768, "columns": 4096, "type": "bf16"},
    ],
    small=[
        {"rows": 3, "columns": 520, "type": "bf16"},
        {"rows": 2, "columns": 301, "type": "f16"},
        {"rows": 2, "columns": 17000, "type": "bf16"},
    ],
    tolerance=0.03,  # three bits after the first
)
