"""Softmax of the rows of a matrix."""

from __future__ import annotations

from typing import Any

from ptxlab.kernels.parts.elements import SIZES
from ptxlab.kernels.parts.rows import launch_rows
from ptxlab.kernels.parts.spreads import MEASURED, SMALL, Capacity, Part, Spread, extents, tolerance
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.kernels.softmax.kernel import softmax
from ptxlab.measure import Draw, Entry, Launch, Work
from ptxlab.measure.entry import Arrays

IN_CLUSTER = Part(256, held=8, where="registers", at_a_time=1024)
CAPACITY = Capacity(parts={"f32": Part(256, held=8, where="registers"), "f16": IN_CLUSTER, "bf16": IN_CLUSTER})


def read_once(x: Any, y: Any) -> Launch:
    """A warp, a block or a cluster for each row."""
    rows, columns = extents(x)
    spread = Spread.of(CAPACITY, columns, x, y)
    return launch_rows(softmax, spread, rows, [x, y, rows, columns])


def expression(torch: Any, x: Any, y: Any) -> Any:
    """The same in torch."""
    return torch.softmax(x, dim=-1)


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, and space for another."""
    return {"x": draw.normal((rows, columns), type), "y": draw.empty((rows, columns), type)}


def reference(xp: Any, x: Any, y: Any) -> Arrays:
    """exp(x) / Σ exp(x), with the largest x of a row taken away from all, which changes nothing but the range."""
    powers = xp.exp(x - xp.amax(x, -1)[:, None])
    return {"y": powers / powers.sum(-1)[:, None]}


def work(rows: int, columns: int, type: str) -> Work:
    """Each element is read and written once."""
    return Work(5 * rows * columns, 2 * rows * columns * SIZES[type], "f32 arithmetic")


entry = Entry(
    title="y = softmax(x) of the rows of a matrix",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"read once": read_once},
    libraries={"torch.compile": compiled(expression, "y"), "torch": eager(expression, "y")},
    sizes=MEASURED,
    small=SMALL,
    tolerance=tolerance,
)
