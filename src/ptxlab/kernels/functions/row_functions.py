"""`softmax`, `rms_norm`, `layer_norm` and `cross_entropy` of rows, for arrays of torch, CuPy, JAX and NumPy.

A row is the last dimension of an array. Arrays are of f32, f16 or bf16, and arithmetic is f32. Work starts on the
stream that the framework uses now; arrays of the host run on the emulator. Each thread, block and cluster has its
elements by their number alone, and sums in that order: two runs give the same bits.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from ptxlab.kernels.cross_entropy import find_gradient as gradient_of_rows
from ptxlab.kernels.cross_entropy import read_once as cross_entropy_of_rows
from ptxlab.kernels.functions import row_operators as operators
from ptxlab.kernels.functions.callees import Argument, Callee
from ptxlab.kernels.functions.calls import times
from ptxlab.kernels.functions.matrices import Matrix, empty
from ptxlab.kernels.layer_norm import read_once as layer_norm_of_rows
from ptxlab.kernels.rms_norm import fused
from ptxlab.kernels.rms_norm.kernel import Form
from ptxlab.kernels.softmax import read_once as softmax_of_rows
from ptxlab.measure.data import TORCH_NAMES

FLOATS = ("f32", "f16", "bf16")
REDUCTIONS = ("mean", "sum", "none")
_MATRIX = Argument(FLOATS)
_RESULT = Argument(FLOATS, is_written=True, in_place="x")


def _check_rows(x: Matrix, *others: Matrix | None, **options: Any) -> None:
    """Whether `x` has rows."""
    if not x.shape:
        raise ValueError("`x` is one number: rows are its last dimension, and it has none")


def _check_softmax(x: Matrix, out: Matrix) -> None:
    _check_rows(x)
    _require(out, "out", x.shape, x.type)


def _check_layer_norm(x: Matrix, weight: Matrix, bias: Matrix, out: Matrix, epsilon: float) -> None:
    _check_softmax(x, out)
    for name, one in (("weight", weight), ("bias", bias)):
        _require(one, name, x.shape[-1:], x.type, ": one for each column")


def _check_rms_norm(
    x: Matrix,
    weight: Matrix,
    out: Matrix,
    residual: Matrix | None,
    summed: Matrix | None,
    scales: Matrix | None,
    epsilon: float,
    form: Form,
) -> None:
    _check_rows(x)
    _require(out, "out", x.shape, "e4m3" if form.scale else x.type)
    _require(weight, "weight", x.shape[-1:], x.type, ": one for each column")
    if residual is not None:
        _require(residual, "residual", x.shape, x.type, ", as `x` is")
    if form.scale == "tensor" and scales is not None and math.prod(scales.shape) != 1:
        raise ValueError("`quantise` is an array of more than one number: the scale of all rows is one")


def _check_cross_entropy(x: Matrix, targets: Matrix, *others: Matrix, ignored: int) -> None:
    _check_rows(x)
    if not x.shape[-1]:
        raise ValueError("`x` has no columns: there are no classes")
    _require(targets, "targets", x.shape[:-1], targets.type, ": one for each row")


def _require(one: Matrix, name: str, shape: tuple[int, ...], type: str, why: str = "") -> None:
    if one.shape != shape:
        raise ValueError(f"`{name}` is {times(one.shape)}, and must be {times(shape)}{why}")
    if one.type != type:
        raise TypeError(f"`{name}` is of type {TORCH_NAMES[one.type]}, and must be of {TORCH_NAMES[type]}")


def _shape(x: Any, name: str = "x") -> tuple[int, ...]:
    if not hasattr(x, "shape"):
        raise TypeError(f"`{name}` is a {type(x).__name__}, not an array of torch, CuPy, JAX or NumPy")
    return tuple(x.shape)


_softmax = Callee({"x": _MATRIX, "out": _RESULT}, softmax_of_rows, _check_softmax)
_layer_norm = Callee(
    {"x": _MATRIX, "weight": _MATRIX, "bias": _MATRIX, "out": _RESULT}, layer_norm_of_rows, _check_layer_norm
)
_rms_norm = Callee(
    {
        "x": _MATRIX,
        "weight": _MATRIX,
        "out": Argument((*FLOATS, "e4m3"), is_written=True, in_place="x"),
        "residual": _MATRIX,
        "the sum": Argument(FLOATS, is_written=True, in_place="residual"),
        "quantise": Argument(("f32",), is_written=True),
    },
    fused,
    _check_rms_norm,
)
_CLASSES = Argument(("s64", "s32"))
_LOSSES = Argument(("f32",), is_written=True)
_cross_entropy = Callee(
    {"x": _MATRIX, "targets": _CLASSES, "the loss": _LOSSES, "the logarithms": _LOSSES},
    cross_entropy_of_rows,
    _check_cross_entropy,
)
_gradient = Callee(
    {
        "x": _MATRIX,
        "targets": _CLASSES,
        "the logarithms": Argument(("f32",)),
        "the factors": Argument(("f32",)),
        "the gradient": _RESULT,
    },
    gradient_of_rows,
    _check_cross_entropy,
)


def softmax(x: Any, out: Any = None) -> Any:
    """exp(x) / Σ exp(x) over the last dimension; the result is a new array, or `out`, which may be `x`.

    A row with NaN or +inf, or of nothing but -inf, is NaN, as in torch. It has a gradient in torch.
    """
    if out is None and operators.is_wanted(x):
        return operators.softmax(x)
    return compute_softmax(x, out)


def compute_softmax(x: Any, out: Any = None) -> Any:
    """The same, unknown to torch."""
    made = empty(x, _shape(x)) if out is None else out
    _softmax.start([x, made])
    return made


def layer_norm(x: Any, weight: Any, bias: Any, eps: float = 1e-5, out: Any = None) -> Any:
    """(x - mean) / √(variance + eps) · weight + bias over the last dimension, of which weight and bias are vectors.

    The result is a new array, or `out`, which may be `x`. It has a gradient in torch.
    """
    if out is None and operators.is_wanted(x, weight, bias):
        return operators.layer_norm(x, weight, bias, eps)
    return compute_layer_norm(x, weight, bias, eps, out)


def compute_layer_norm(x: Any, weight: Any, bias: Any, eps: float, out: Any = None) -> Any:
    """The same, unknown to torch."""
    made = empty(x, _shape(x)) if out is None else out
    _layer_norm.start([x, weight, bias, made], epsilon=eps)
    return made


def rms_norm(
    x: Any, weight: Any, eps: float = 1e-6, *, residual: Any = None, quantise: Any = None, out: Any = None
) -> Any:
    """x / √(mean of squares + eps) · weight over the last dimension, of which `weight` is a vector.

    With a `residual`, x + residual takes the place of x, and is the second result. `quantise="row"` makes the first
    result e4m3, divided by a scale for each row, its largest magnitude / 448; these scales are the last result. With
    `quantise` an array of one f32, that is the scale of all rows, and what is too large becomes ±448. The first result
    is a new array or `out`, which may be `x`. Without `quantise` it has a gradient in torch.
    """
    if out is None and operators.is_wanted(x, weight, residual):
        if quantise is not None:
            return operators.quantised_rms_norm(x, weight, eps, residual, quantise)
        return operators.rms_norm(x, weight, eps, residual)
    return compute_rms_norm(x, weight, eps, residual, quantise, out)


def compute_rms_norm(
    x: Any, weight: Any, eps: float, residual: Any = None, quantise: Any = None, out: Any = None
) -> Any:
    """The same, unknown to torch."""
    shape = _shape(x)
    by_row = isinstance(quantise, str)
    if by_row and quantise != "row":
        raise ValueError(f'quantise={quantise!r}: it is "row", or an array of one float32, the scale')
    made = empty(x, shape, None if quantise is None else "e4m3") if out is None else out
    summed = None if residual is None else empty(x, shape)
    scales = empty(x, shape[:-1], "f32") if by_row else quantise
    form = Form(residual is not None, "row" if by_row else "" if quantise is None else "tensor")
    _rms_norm.start([x, weight, made, residual, summed, scales], epsilon=eps, form=form)
    results = [made] + ([summed] if residual is not None else []) + ([scales] if by_row else [])
    return results[0] if len(results) == 1 else tuple(results)


def compute_quantised(x: Any, weight: Any, eps: float, residual: Any, quantise: Any) -> Any:
    """The quantised norm for torch's operator: always three results, empty ones where there are fewer."""
    found = compute_rms_norm(x, weight, eps, residual, quantise)
    results = list(found) if isinstance(found, tuple) else [found]
    summed = results.pop(1) if residual is not None else None
    return results[0], *with_empty(x, summed, results[1] if len(results) > 1 else None)


def with_empty(x: Any, *results: Any) -> list[Any]:
    """An empty array for each result that is None."""
    return [empty(x, (0,), "f32") if one is None else one for one in results]


def cross_entropy(x: Any, targets: Any, *, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """log Σ exp(x) - x[target] over the last dimension, with one class of `targets` for each row: its mean over rows.

    `reduction` is "mean", "sum" or "none", which gives the loss of each row. A row whose target is `ignore_index` has
    no loss; another target that is not a class gives NaN. The loss is f32. It has a gradient in torch.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction={reduction!r}: there are {', '.join(map(repr, REDUCTIONS))}")
    if operators.is_wanted(x):
        losses = operators.cross_entropy(x, targets, ignore_index)
    else:
        losses = find_losses(x, targets, ignore_index)[0]
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / (targets != ignore_index).sum()


def find_losses(x: Any, targets: Any, ignored: int) -> tuple[Any, Any]:
    """The loss of each row, and the logarithm of its sum of powers."""
    losses, logarithms = (empty(x, _shape(targets, "targets"), "f32") for _ in range(2))
    _cross_entropy.start([x, targets, losses, logarithms], ignored=ignored)
    return losses, logarithms


def find_gradient(x: Any, targets: Any, logarithms: Any, factors: Any, ignored: int) -> Any:
    """The gradient of the losses, each by its factor."""
    found = empty(x, _shape(x))
    _gradient.start([x, targets, logarithms, factors, found], ignored=ignored)
    return found


if hasattr(sys.modules.get("torch"), "compiler"):
    operators.register()
