"""RMS norm of the rows of a matrix."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.elements import SIZES
from ptxlab.kernels.parts.rows import launch_rows
from ptxlab.kernels.parts.spreads import Spread, extents, row_entry
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.kernels.rms_norm.kernel import Form, rms_norm
from ptxlab.kernels.rms_norm.plain import rms_norm_plain
from ptxlab.launch.launches import Arrays, Launch
from ptxlab.measure import Draw, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

EPSILON = 1e-5


def plain(x: Array, weight: Array, y: Array) -> Launch:
    """A warp for each row."""
    rows, columns = extents(x)
    return Launch(rms_norm_plain.specialize(TYPE=type_of(x)), rows, 32, [x, weight, y, columns, EPSILON])


def read_once(x: Array, weight: Array, y: Array) -> Launch:
    """Some lanes of a warp, a warp, a block or a cluster for each row."""
    return fused(x, weight, y, 0, 0, 0, form=Form())


def fused(
    x: Array,
    weight: Array,
    y: Array,
    residual: Array | int,
    summed: Array | int,
    scales: Array | int,
    epsilon: float = EPSILON,
    form: Form = Form(residual=True, scale="row"),  # noqa: B008
) -> Launch:
    """The norm with a residual and scales, as its form says; what it does not need is 0."""
    rows, columns = extents(x)
    read, written = [x, residual][: 1 + form.residual], [y, summed][: 1 + form.residual]
    spread = Spread.of(read, written, [weight])
    arguments = [x, weight, y, residual, summed, scales, rows, columns, epsilon]
    target = "sm_89" if form.scale else "sm_80"
    return launch_rows(rms_norm, spread, rows, arguments, form=form, target=target)


def expression(torch: ModuleType, x: Array, weight: Array, y: Array) -> object:
    """The same in torch."""
    return torch.nn.functional.rms_norm(x, weight.shape, weight, EPSILON)


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, a weight for each column, and space for another matrix."""
    return {
        "x": draw.normal((rows, columns), type),
        "weight": draw.uniform(columns, type, 0.5, 1.5),
        "y": draw.empty((rows, columns), type),
    }


def reference(xp: ModuleType, x: Array, weight: Array, y: Array) -> Arrays:
    """By the definition."""
    return {"y": x / ((x * x).mean(-1)[:, None] + EPSILON) ** 0.5 * weight}


def work(rows: int, columns: int, type: str) -> Work:
    """Each element is read and written once."""
    return Work(4 * rows * columns, (2 * rows + 1) * columns * SIZES[type], "f32 arithmetic")


entry = row_entry(
    title="y = rms_norm(x) · weight of the rows of a matrix",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"plain": plain, "read once": read_once},
    libraries={"torch.compile": compiled(expression, "y"), "torch": eager(expression, "y")},
)
