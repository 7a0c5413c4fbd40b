"""Kernels of rows as they are called: what they read and write, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.kernels.cross_entropy import find_gradient, read_once, sum_up
from ptxlab.kernels.layer_norm import read_once as layer_norm_of_rows
from ptxlab.kernels.rms_norm import fused
from ptxlab.kernels.rms_norm.kernel import Form as Fusion
from ptxlab.kernels.softmax import read_once as softmax_of_rows
from ptxlab.launch.launches import Launch
from ptxlab.ops.callees import Argument, CalledKernel, Form, prepare_of
from ptxlab.ops.calls import BoundLaunch, Call
from ptxlab.ops.checks import require
from ptxlab.ops.matrices import Matrix, empty, filled, look

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

FLOATS = ("f32", "f16", "bf16")
_X = Argument(FLOATS, 0)


def _check_rows(x: Matrix, *others: object) -> None:
    """Whether `x` has rows."""
    if not x.shape:
        raise ValueError("`x` is one number: rows are its last dimension, and it has none")


def _require_vector(name: str, one: Matrix, x: Matrix) -> None:
    require(name, one, x.shape[-1:], x.type, ": one for each column")


def _like_x(x: Matrix, *others: Matrix | float) -> list[Form]:
    return [(x.shape, x.type)]


SOFTMAX = CalledKernel(
    {"x": _X}, {"out": Argument(FLOATS, 1, in_place="x")}, _check_rows, _like_x, softmax_of_rows
)  # fmt: skip


def _check_layer_norm(x: Matrix, weight: Matrix, bias: Matrix, epsilon: float) -> None:
    _check_rows(x)
    _require_vector("weight", weight, x)
    _require_vector("bias", bias, x)


LAYER_NORM = CalledKernel(
    {"x": _X, "weight": Argument(FLOATS, 1), "bias": Argument(FLOATS, 2)},
    {"out": Argument(FLOATS, 3, in_place="x")},
    _check_layer_norm,
    _like_x,
    layer_norm_of_rows,
)

# The parameters of a kernel of RMS norm: x, weight, out, residual, the sum, the scales.
_WEIGHT, _RESIDUAL = Argument(FLOATS, 1), Argument(FLOATS, 3)
_OUT, _SUM = Argument(FLOATS, 2, in_place="x"), Argument(FLOATS, 4)


def _check_rms_norm(x: Matrix, weight: Matrix, *others: float) -> None:
    _check_rows(x)
    _require_vector("weight", weight, x)


def _rms_norm(x: Array, weight: Array, out: Array, epsilon: float) -> Launch:
    return fused(x, weight, out, 0, 0, 0, epsilon=epsilon, form=Fusion())


RMS_NORM = CalledKernel({"x": _X, "weight": _WEIGHT}, {"out": _OUT}, _check_rms_norm, _like_x, _rms_norm)


def _check_added(x: Matrix, residual: Matrix, weight: Matrix, epsilon: float) -> None:
    _check_rms_norm(x, weight)
    require("residual", residual, x.shape, x.type, ", as `x` is")


def _add_rms_norm(
    x: Array, residual: Array | int, weight: Array, out: Array, summed: Array | int, epsilon: float
) -> Launch:
    return fused(x, weight, out, residual, summed, 0, epsilon=epsilon, form=Fusion(residual=True))


ADD_RMS_NORM = CalledKernel(
    {"x": _X, "residual": _RESIDUAL, "weight": _WEIGHT},
    {"out": _OUT, "the sum": _SUM},
    _check_added,
    lambda x, *_: [(x.shape, x.type)] * 2,
    _add_rms_norm,
)


def _check_quantized(x: Matrix, weight: Matrix, residual: Matrix | None, scale: Matrix | None, epsilon: float) -> None:
    _check_rms_norm(x, weight)
    if residual is not None:
        require("residual", residual, x.shape, x.type, ", as `x` is")
    if scale is not None and math.prod(scale.shape) != 1:
        raise ValueError("`quantize` is an array of more than one number: the scale of all rows is one")


def _quantized_forms(x: Matrix, weight: Matrix, residual: Matrix | None, scale: Matrix | None, _: float) -> list[Form]:
    summed = None if residual is None else (x.shape, x.type)
    return [(x.shape, "e4m3"), summed, (x.shape[:-1], "f32") if scale is None else None]


def _quantized(
    x: Array,
    weight: Array,
    residual: Array | int,
    scale: Array | int,
    out: Array,
    summed: Array | int,
    scales: Array | int,
    epsilon: float,
) -> Launch:
    is_whole, has_residual = not isinstance(scale, int), not isinstance(residual, int)
    fusion = Fusion(has_residual, "tensor" if is_whole else "row")
    return fused(x, weight, out, residual, summed, scale if is_whole else scales, epsilon=epsilon, form=fusion)


QUANTIZED_RMS_NORM = CalledKernel(
    {"x": _X, "weight": _WEIGHT, "residual": _RESIDUAL, "quantize": Argument(("f32",), 5)},
    {"out": Argument(("e4m3",), 2), "the sum": _SUM, "the scales": Argument(("f32",), 5)},
    _check_quantized,
    _quantized_forms,
    _quantized,
)

_CLASSES = Argument(("s64", "s32"), 1)


def _check_cross_entropy(x: Matrix, targets: Matrix, *others: int) -> None:
    _check_rows(x)
    if not x.shape[-1]:
        raise ValueError("`x` has no columns: there are no classes")
    require("targets", targets, x.shape[:-1], targets.type, ": one for each row")


CROSS_ENTROPY = CalledKernel(
    {"x": _X, "targets": _CLASSES},
    {"the loss": Argument(("f32",), 2), "the logarithms": Argument(("f32",), 3)},
    _check_cross_entropy,
    lambda x, targets, _: [(targets.shape, "f32")] * 2,
    read_once,
)


def prepare_sum(read: Sequence[Array], written: Sequence[object], how: tuple[int, bool]) -> Call:
    """The sum or the mean of losses, by a second kernel after that of rows.

    Logarithms and how many rows count are results, too, if three are asked for: gradients need them.
    """
    x, (ignored, is_mean) = read[0], how
    rows = prepare_of(CROSS_ENTROPY)(read, (None, None), (ignored,))
    if not rows.steps:
        nothing = filled(x, (), math.nan if is_mean else 0.0, "f32")
        return Call([nothing, rows.results[1], filled(x, (), 0.0, "f32")][: len(written)])
    total, count = (empty(x, (), "f32") for _ in range(2))
    results = [total, rows.results[1], count][: len(written)]
    sums = [look(one, "the loss", ("f32",)) for one in (total, count)]
    seen, classes, losses, logs = (one for one in rows.arrays if one is not None)
    launch = sum_up(losses.view(), classes.view(), sums[0].view(), sums[1].view(), ignored, is_mean)
    arrays = [seen, classes, *[sums[0], logs, sums[1]][: len(written)]]
    kept, first = len(written) > 1, len(arrays)  # the number of what is in memory of the call alone
    scratch = [4 * math.prod(classes.shape)] * (1 if kept else 2) + ([] if kept else [4])
    numbers = {"total": 2, "losses": first, "logs": 3 if kept else first + 1, "count": 4 if kept else first + 2}
    steps = [
        BoundLaunch(rows.steps[0].launch, [(0, 0), (1, 1), (2, numbers["losses"]), (3, numbers["logs"])]),
        BoundLaunch(launch, [(0, numbers["losses"]), (1, 1), (2, numbers["total"]), (3, numbers["count"])]),
    ]
    return Call(results, steps, arrays, scratch=scratch)


CROSS_ENTROPY_GRADIENT = CalledKernel(
    {
        "x": _X,
        "targets": _CLASSES,
        "the logarithms": Argument(("f32",), 2),
        "the factors": Argument(("f32",), 3),
    },
    {"the gradient": Argument(FLOATS, 4)},
    _check_cross_entropy,
    _like_x,
    find_gradient,
)


def is_by_row(quantize: Array | str) -> bool:
    """Whether each row of the quantized norm has a scale of its own; else `quantize` is the scale of all of them."""
    if isinstance(quantize, str) and quantize != "row":
        raise ValueError(f'quantize={quantize!r}: it is "row", or an array of one float32, the scale')
    return isinstance(quantize, str)
