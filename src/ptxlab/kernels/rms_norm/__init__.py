"""RMS norm of the rows of a matrix."""

from __future__ import annotations

from typing import Any

from ptxlab.kernels.elements import SIZES
from ptxlab.kernels.rms_norm.kernel import rms_norm
from ptxlab.kernels.rows import MEASURED, SMALL, Capacity, Spread, launch_rows, tolerance
from ptxlab.kernels.torch_baselines import compiled, eager
from ptxlab.measure import Draw, Entry, Launch, Work
from ptxlab.measure.entry import Arrays

EPSILON = 1e-5
CAPACITY = Capacity(shares={"f32": 32, "bf16": 32}, threads=1024, registers=4 << 10, at_a_time=2048)


def read_once(x: Any, weight: Any, y: Any) -> Launch:
    """A warp or a block for each row."""
    rows, columns = x.shape
    spread = Spread.of(CAPACITY, columns, x, weight, y)
    arguments = [x, weight, y, rows, columns, EPSILON]
    return launch_rows(rms_norm, spread, rows, arguments)


def expression(torch: Any, x: Any, weight: Any, y: Any) -> Any:
    """The same in torch."""
    return torch.nn.functional.rms_norm(x, weight.shape, weight, EPSILON)


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, a weight for each column, and space for another matrix."""
    return {
        "x": draw.normal((rows, columns), type),
        "weight": draw.uniform(columns, type, 0.5, 1.5),
        "y": draw.empty((rows, columns), type),
    }


def reference(xp: Any, x: Any, weight: Any, y: Any) -> Arrays:
    """By the definition."""
    return {"y": x / ((x * x).mean(-1)[:, None] + EPSILON) ** 0.5 * weight}


def work(rows: int, columns: int, type: str) -> Work:
    """Each element is read and written once."""
    return Work(4 * rows * columns, (2 * rows + 1) * columns * SIZES[type], "f32 arithmetic")


entry = Entry(
    title="y = rms_norm(x) · weight of the rows of a matrix",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"read once": read_once},
    libraries={"torch.compile": compiled(expression, "y"), "torch": eager(expression, "y")},
    sizes=MEASURED,
    small=SMALL,
    tolerance=tolerance,
)
