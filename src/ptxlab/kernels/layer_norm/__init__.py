"""Layer norm of the rows of a matrix."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab.device.array_types import type_of
from ptxlab.kernels.layer_norm.kernel import layer_norm
from ptxlab.kernels.layer_norm.plain import layer_norm_plain
from ptxlab.kernels.parts.elements import SIZES
from ptxlab.kernels.parts.rows import launch_rows
from ptxlab.kernels.parts.spreads import Spread, extents, row_entry
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.launch.launches import Arrays, Launch
from ptxlab.measure import Draw, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

EPSILON = 1e-5


def plain(x: Array, weight: Array, bias: Array, y: Array) -> Launch:
    """A warp for each row."""
    rows, columns = extents(x)
    return Launch(layer_norm_plain.specialize(TYPE=type_of(x)), rows, 32, [x, weight, bias, y, columns, EPSILON])


def read_once(x: Array, weight: Array, bias: Array, y: Array, epsilon: float = EPSILON) -> Launch:
    """Some lanes of a warp, a warp, a block or a cluster for each row."""
    rows, columns = extents(x)
    spread = Spread.of([x], [y], [weight, bias])
    arguments = [x, weight, bias, y, rows, columns, epsilon]
    return launch_rows(layer_norm, spread, rows, arguments)


def expression(torch: ModuleType, x: Array, weight: Array, bias: Array, y: Array) -> object:
    """The same in torch."""
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, EPSILON)


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, a weight and a bias for each column, and space for another matrix."""
    return {
        "x": draw.normal((rows, columns), type),
        "weight": draw.uniform(columns, type, 0.5, 1.5),
        "bias": draw.normal(columns, type),
        "y": draw.empty((rows, columns), type),
    }


def reference(xp: ModuleType, x: Array, weight: Array, bias: Array, y: Array) -> Arrays:
    """By the definition."""
    distance = x - x.mean(-1)[:, None]
    return {"y": distance / ((distance * distance).mean(-1)[:, None] + EPSILON) ** 0.5 * weight + bias}


def work(rows: int, columns: int, type: str) -> Work:
    """Each element is read and written once."""
    return Work(8 * rows * columns, 2 * (rows + 1) * columns * SIZES[type], "f32 arithmetic")


entry = row_entry(
    title="y = layer_norm(x) · weight + bias of the rows of a matrix",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"plain": plain, "read once": read_once},
    libraries={"torch.compile": compiled(expression, "y"), "torch": eager(expression, "y")},
)
