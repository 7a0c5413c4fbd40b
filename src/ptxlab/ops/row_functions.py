"""`softmax`, `rms_norm`, `layer_norm` and `cross_entropy` of rows, for arrays of torch, CuPy, JAX and NumPy.

A row is the last dimension of an array. Arrays are of f32, f16 or bf16, and arithmetic is f32. Work starts on the
stream that the framework uses now; arrays of the host run on the emulator. Each thread, block and cluster has its
elements by their number alone, and sums in that order: two runs give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab.ops import jax_rows
from ptxlab.ops import row_gradients as gradients
from ptxlab.ops import row_kernels as kernels
from ptxlab.ops.callees import calls_of
from ptxlab.ops.calls import Calls
from ptxlab.ops.jax_functions import refuse_out
from ptxlab.ops.matrices import empty
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.xla import is_jax

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

REDUCTIONS = ("mean", "sum", "none")


def softmax(x: Array | str, *, out: Array | None = None) -> Any:
    """exp(x) / Σ exp(x) over the last dimension; the result is a new array, or `out`, which may be `x`.

    A row with NaN or +inf, or of nothing but -inf, is NaN, as in torch. It has a gradient in torch and JAX.
    """
    if out is None and is_traced():
        return _softmax.operator(x)
    if is_jax(x.__class__):
        refuse_out(out)
        return jax_rows.softmax()(x)
    found = _softmax((x,), (out,), ())
    return _softmax.operator.differentiate(x) if found is None else found[0]


def layer_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5, *, out: Array | None = None) -> Any:
    """(x - mean) / √(variance + eps) · weight + bias over the last dimension, of which weight and bias are vectors.

    The result is a new array, or `out`, which may be `x`. It has a gradient in torch and JAX.
    """
    if out is None and is_traced():
        return _layer_norm.operator(x, weight, bias, eps)
    if is_jax(x.__class__):
        refuse_out(out)
        return jax_rows.layer_norm(eps)(x, weight, bias)
    found = _layer_norm((x, weight, bias), (out,), (eps,))
    return _layer_norm.operator.differentiate(x, weight, bias, eps) if found is None else found[0]


def rms_norm(
    x: Any, weight: Any, eps: float = 1e-6, *, residual: Any = None, quantize: Any = None, out: Any = None
) -> Any:
    """x / √(mean of squares + eps) · weight over the last dimension, of which `weight` is a vector.

    With a `residual`, x + residual takes the place of x, and is the second result. `quantize="row"` makes the first
    result e4m3, divided by a scale for each row, its largest magnitude / 448; these scales are the last result. With
    `quantize` an array of one f32, that is the scale of all rows, and what is too large becomes ±448. The first result
    is a new array or `out`, which may be `x` unless it is e4m3. Without `quantize` it has a gradient in torch.
    """
    as_operator = out is None and is_traced()
    if not as_operator and is_jax(x.__class__):
        return _norm_of_jax(x, weight, eps, residual, quantize, out)
    if quantize is not None:
        return _quantized_norm(x, weight, eps, residual, quantize, out)
    if residual is None:
        if as_operator:
            return _rms_norm.operator(x, weight, eps)
        found = _rms_norm((x, weight), (out,), (eps,))
        return _rms_norm.operator.differentiate(x, weight, eps) if found is None else found[0]
    if as_operator:
        return _add_rms_norm.operator(x, residual, weight, eps)
    found = _add_rms_norm((x, residual, weight), (out, None), (eps,))
    return _add_rms_norm.operator.differentiate(x, residual, weight, eps) if found is None else tuple(found)


def _norm_of_jax(x: Array, weight: Array, eps: float, residual: Array | None, quantize: Array | str, out: Array) -> Any:
    refuse_out(out)
    if quantize is not None:
        return jax_rows.quantized_rms_norm(x, weight, eps, residual, quantize)
    if residual is None:
        return jax_rows.rms_norm(eps)(x, weight)
    return jax_rows.add_rms_norm(eps)(x, residual, weight)


def _quantized_norm(
    x: Array, weight: Array, eps: float, residual: Array | None, quantize: Array | str, out: Any
) -> Any:
    by_row = kernels.is_by_row(quantize)
    scale = None if by_row else quantize
    if out is None and is_traced():
        found = _quantized.operator(x, weight, eps, residual, scale)
    else:
        found = _quantized((x, weight, residual, scale), (out, None, None), (eps,))
        if found is None:
            found = _quantized.operator.differentiate(x, weight, eps, residual, scale)
    made, summed, scales = found
    results = (made, *([] if residual is None else [summed]), *([scales] if by_row else []))
    return results[0] if len(results) == 1 else results


def cross_entropy(x: Array, targets: Any, *, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """log Σ exp(x) - x[target] over the last dimension, with one class of `targets` for each row: its mean over rows.

    `reduction` is "mean", "sum" or "none", which gives the loss of each row. A row whose target is `ignore_index` has
    no loss; another target that is not a class gives NaN. The loss is f32. It has a gradient in torch and JAX.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction={reduction!r}: expected one of {', '.join(map(repr, REDUCTIONS))}")
    if is_traced():
        losses, _ = _cross_entropy.operator(x, targets, ignore_index)
    elif is_jax(x.__class__):
        losses, _ = jax_rows.cross_entropy(ignore_index)(x, targets)
    else:
        calls, how = (_cross_entropy, ()) if reduction == "none" else (_summed_cross_entropy, (reduction == "mean",))
        found = calls((x, targets), (None,) if how else (None, None), (ignore_index, *how))
        return (calls.operator.differentiate(x, targets, ignore_index, *how) if found is None else found)[0]
    if reduction == "none":
        return losses
    total = losses.sum()  # which the compiler joins with what comes after
    return total if reduction == "sum" else total / (targets != ignore_index).sum()


def _quantized_of_tensors(x: Array, weight: Array, eps: float, residual: Array | None, scale: object) -> Any:
    """For torch's operator: always three results, empty ones where there are fewer."""
    made, *others = _quantized.compute((x, weight, residual, scale), (None, None, None), (eps,))
    return made, *(empty(x, (0,), "f32") if one is None else one for one in others)


def _like(x: Any, *others: object) -> Any:
    return x.new_empty(x.shape)


def _describe_quantized(x: Array, weight: Array, eps: float, residual: Array | None, scale: object) -> Any:
    summed = empty(x, (0,), "f32") if residual is None else _like(x)
    scales = empty(x, (0,), "f32") if scale is not None else empty(x, x.shape[:-1], "f32")
    return empty(x, x.shape, "e4m3"), summed, scales


_softmax: Calls = calls_of(
    kernels.SOFTMAX,
    Operator(
        "softmax", "(Tensor x) -> Tensor", lambda x: _softmax.compute((x,), (None,), ())[0], _like, gradients.SOFTMAX
    ),
)
_layer_norm: Calls = calls_of(
    kernels.LAYER_NORM,
    Operator(
        "layer_norm",
        "(Tensor x, Tensor weight, Tensor bias, float eps) -> Tensor",
        lambda x, weight, bias, eps: _layer_norm.compute((x, weight, bias), (None,), (eps,))[0],
        _like,
        gradients.LAYER_NORM,
    ),
)
_rms_norm: Calls = calls_of(
    kernels.RMS_NORM,
    Operator(
        "rms_norm",
        "(Tensor x, Tensor weight, float eps) -> Tensor",
        lambda x, weight, eps: _rms_norm.compute((x, weight), (None,), (eps,))[0],
        _like,
        gradients.RMS_NORM,
    ),
)
_add_rms_norm: Calls = calls_of(
    kernels.ADD_RMS_NORM,
    Operator(
        "add_rms_norm",
        "(Tensor x, Tensor residual, Tensor weight, float eps) -> (Tensor, Tensor)",
        lambda x, residual, weight, eps: tuple(_add_rms_norm.compute((x, residual, weight), (None, None), (eps,))),
        lambda x, *others: (_like(x), _like(x)),
        gradients.ADD_RMS_NORM,
    ),
)
_quantized: Calls = calls_of(
    kernels.QUANTIZED_RMS_NORM,
    Operator(
        "quantized_rms_norm",
        "(Tensor x, Tensor weight, float eps, Tensor? residual, Tensor? scale) -> (Tensor, Tensor, Tensor)",
        _quantized_of_tensors,
        _describe_quantized,
    ),
)
_cross_entropy: Calls = calls_of(
    kernels.CROSS_ENTROPY,
    Operator(
        "cross_entropy",
        "(Tensor x, Tensor targets, int ignored) -> (Tensor, Tensor)",
        lambda x, targets, ignored: tuple(_cross_entropy.compute((x, targets), (None, None), (ignored,))),
        lambda x, targets, ignored: tuple(empty(x, targets.shape, "f32") for _ in range(2)),
        gradients.CROSS_ENTROPY,
    ),
)
_summed_cross_entropy: Calls = Calls(
    kernels.prepare_sum,
    Operator(
        "summed_cross_entropy",
        "(Tensor x, Tensor targets, int ignored, bool is_mean) -> (Tensor, Tensor, Tensor)",
        lambda x, targets, *how: tuple(_summed_cross_entropy.compute((x, targets), (None,) * 3, how)),
        lambda x, targets, *how: tuple(empty(x, shape, "f32") for shape in ((), targets.shape, ())),
        gradients.SUMMED_CROSS_ENTROPY,
    ),
)
_gradient: Calls = calls_of(
    kernels.CROSS_ENTROPY_GRADIENT,
    Operator(
        "cross_entropy_gradient",
        "(Tensor x, Tensor targets, Tensor logarithms, Tensor factors, int ignored) -> Tensor",
        lambda *given: _gradient.compute(given[:4], (None,), given[4:])[0],
        _like,
    ),
)
