"""The transpose of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.elements import SIZES, WIDEST, vector_of
from ptxlab.kernels.parts.torch_baselines import compiled
from ptxlab.kernels.transpose.kernel import LINES, TILE, transpose_elements, transpose_squares
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

ACROSS = 16  # squares that a block has in each direction


def elements(x: Array, y: Array) -> Launch:
    """Tiles of 32 x 32, one element at a time."""
    rows, columns = x.shape
    grid = ceil_div(columns, TILE), ceil_div(rows, TILE)
    return Launch(transpose_elements.specialize(TYPE=type_of(x)), grid, (TILE, LINES), [x, y, rows, columns])


def squares(x: Array, y: Array) -> Launch:
    """16 bytes at a time, where the sizes allow it."""
    rows, columns = x.shape
    if min(vector_of(columns, x, y), vector_of(rows, x, y)) == 1:
        return elements(x, y)
    extent = ACROSS * WIDEST // SIZES[type_of(x)]
    kernel = transpose_squares.specialize(TYPE=type_of(x), ACROSS=ACROSS)
    return Launch(kernel, (ceil_div(rows, extent), ceil_div(columns, extent)), ACROSS**2, [x, y, rows, columns])


def torch_baseline(torch: ModuleType, x: Any, y: Any) -> Callable[[], object]:
    """A copy of a view with the other order."""
    return lambda: y.copy_(x.t())


def expression(torch: ModuleType, x: Any, y: Array) -> object:
    """The same as an expression."""
    return x.t().contiguous()


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, and space for its transpose."""
    return {"x": draw.normal((rows, columns), type), "y": draw.empty((columns, rows), type)}


def reference(xp: ModuleType, x: Array, y: Array) -> Arrays:
    """Rows become columns."""
    return {"y": x.T}


def work(rows: int, columns: int, type: str) -> Work:
    """Each element is read and written once."""
    return Work(0, 2 * rows * columns * SIZES[type], "f32 arithmetic")


entry = Entry(
    title="y = xᵀ",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"elements": elements, "squares": squares},
    libraries={"torch.compile": compiled(expression, "y"), "torch": torch_baseline},
    sizes=[
        {"rows": 8192, "columns": 8192, "type": "f32"},
        {"rows": 8192, "columns": 24000, "type": "bf16"},
        {"rows": 16384, "columns": 16384, "type": "bf16"},
        {"rows": 16384, "columns": 16384, "type": "f32"},
    ],
    small=[
        {"rows": 33, "columns": 70, "type": "f32"},
        {"rows": 68, "columns": 132, "type": "f32"},
        {"rows": 40, "columns": 136, "type": "bf16"},
        {"rows": 1, "columns": 3, "type": "bf16"},
    ],
    tolerance=0.0,
)
