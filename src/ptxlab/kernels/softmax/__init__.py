"""Softmax of the rows of a matrix."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.elements import SIZES
from ptxlab.kernels.parts.rows import launch_rows
from ptxlab.kernels.parts.spreads import Spread, extents, row_entry
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.kernels.softmax.kernel import softmax
from ptxlab.kernels.softmax.plain import softmax_plain
from ptxlab.launch.launches import Arrays, Launch
from ptxlab.measure import Draw, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


def plain(x: Array, y: Array) -> Launch:
    """A warp for each row."""
    rows, columns = extents(x)
    return Launch(softmax_plain.specialize(TYPE=type_of(x)), rows, 32, [x, y, columns])


def read_once(x: Array, y: Array) -> Launch:
    """Some lanes of a warp, a warp, a block or a cluster for each row."""
    rows, columns = extents(x)
    return launch_rows(softmax, Spread.of([x], [y]), rows, [x, y, rows, columns])


def expression(torch: ModuleType, x: Array, y: Array) -> object:
    """The same in torch."""
    return torch.softmax(x, dim=-1)


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, and space for another."""
    return {"x": draw.normal((rows, columns), type), "y": draw.empty((rows, columns), type)}


def reference(xp: ModuleType, x: Array, y: Array) -> Arrays:
    """exp(x) / Σ exp(x), with the largest x of a row taken away from all, which changes nothing but the range."""
    powers = xp.exp(x - xp.amax(x, -1)[:, None])
    return {"y": powers / powers.sum(-1)[:, None]}


def work(rows: int, columns: int, type: str) -> Work:
    """Each element is read and written once."""
    return Work(5 * rows * columns, 2 * rows * columns * SIZES[type], "f32 arithmetic")


entry = row_entry(
    title="y = softmax(x) of the rows of a matrix",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"plain": plain, "read once": read_once},
    libraries={"torch.compile": compiled(expression, "y"), "torch": eager(expression, "y")},
)
