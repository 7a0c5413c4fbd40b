"""The gradients of functions of rows, as torch's autograd takes them.

That of cross entropy is a kernel; those of the others are torch's own operations: of norms, what a compiler makes a
kernel of, and where nothing is compiled, the kernels of torch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ptxlab.device.arrays import Context, Tensor
from ptxlab.ops.operators import Gradient, is_traced, once


def _keep_output(ctx: Context, inputs: object, output: object) -> None:
    ctx.save_for_backward(output)


def _keep_inputs(ctx: Context, inputs: Sequence[Tensor], output: object) -> None:
    *tensors, ctx.eps = inputs
    ctx.save_for_backward(*tensors)


def _keep_sum(ctx: Context, inputs: Sequence[Tensor], output: Sequence[Tensor]) -> None:
    ctx.eps = inputs[3]
    ctx.save_for_backward(output[1], inputs[2])


def _keep_sum_of_losses(ctx: Context, inputs: Sequence[Tensor], output: Sequence[Tensor]) -> None:
    x, targets, ctx.ignored, ctx.is_mean = inputs
    ctx.save_for_backward(x, targets, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _keep_losses(ctx: Context, inputs: Sequence[Tensor], output: Sequence[Tensor]) -> None:
    ctx.ignored = inputs[2]
    ctx.save_for_backward(inputs[0], inputs[1], output[1])
    ctx.mark_non_differentiable(output[1])


def _softmax_backward(ctx: Context, grad: Tensor) -> object:
    (y,) = ctx.saved_tensors
    return _aten()._softmax_backward_data(grad, y, -1, y.dtype)


def _layer_norm_backward(ctx: Context, grad: Tensor) -> object:
    x, weight, bias = ctx.saved_tensors
    if _is_for_kernels(x, weight):
        extents = x.shape[-1:]
        _, *moments = _aten().native_layer_norm(x, extents, weight, bias, ctx.eps)
        return *_aten().native_layer_norm_backward(grad, x, extents, *moments, weight, bias, [True] * 3), None
    distance = x.float() - x.float().mean(-1, keepdim=True)
    scale = (distance.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()
    normal, given = distance * scale, grad.float()
    inner = given * weight.float()
    found = (inner - inner.mean(-1, keepdim=True) - normal * (inner * normal).mean(-1, keepdim=True)) * scale
    return found.to(x.dtype), _over_rows(given * normal, weight), _over_rows(given, bias), None


def _rms_norm_backward(ctx: Context, grad: Tensor) -> object:
    x, weight = ctx.saved_tensors
    return *_of_rms_norm(x, weight, ctx.eps, grad), None


def _add_rms_norm_backward(ctx: Context, grad: Tensor, of_sum: Tensor) -> object:
    summed, weight = ctx.saved_tensors
    found, of_weight = _of_rms_norm(summed, weight, ctx.eps, grad)
    found = found + of_sum
    return found, found, of_weight, None


def _aten() -> Any:
    return sys.modules["torch"].ops.aten


def _is_for_kernels(x: Tensor, weight: Tensor) -> bool:
    """Whether torch's kernels for norms compute a gradient: where nothing is compiled, on a GPU."""
    return x.is_cuda and x.dtype == weight.dtype and not is_traced()


def _of_rms_norm(x: Tensor, weight: Tensor, eps: float, grad: Tensor) -> tuple[Tensor, Tensor]:
    if _is_for_kernels(x, weight) and hasattr(_aten(), "_fused_rms_norm_backward"):
        extents = x.shape[-1:]
        _, scale = _aten()._fused_rms_norm(x, extents, weight, eps)
        of_x, of_weight = _aten()._fused_rms_norm_backward(grad, x, extents, scale, weight, [True, True])
        return of_x, of_weight
    scale = (x.float().square().mean(-1, keepdim=True) + eps).rsqrt()
    normal, given = x.float() * scale, grad.float()
    inner = given * weight.float()
    found = (inner - normal * (inner * normal).mean(-1, keepdim=True)) * scale
    return found.to(x.dtype), _over_rows(given * normal, weight)


def _over_rows(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, values.shape[-1]).sum(0).to(like.dtype)


def _cross_entropy_backward(ctx: Context, grad: Tensor, _: object) -> object:
    x, targets, logarithms = ctx.saved_tensors
    factors = grad.float().contiguous()
    gradient = sys.modules["torch"].ops.ptxlab.cross_entropy_gradient
    return once(gradient, x, targets, logarithms, factors, ctx.ignored), None, None


def _summed_cross_entropy_backward(ctx: Context, grad: Tensor, *others: object) -> object:
    x, targets, logarithms, count = ctx.saved_tensors
    factor = grad / count if ctx.is_mean else grad
    gradient = sys.modules["torch"].ops.ptxlab.cross_entropy_gradient
    factors = factor.expand(targets.shape).contiguous()
    return once(gradient, x, targets, logarithms, factors, ctx.ignored), None, None, None


SOFTMAX = Gradient(_softmax_backward, _keep_output)
LAYER_NORM = Gradient(_layer_norm_backward, _keep_inputs)
RMS_NORM = Gradient(_rms_norm_backward, _keep_inputs)
ADD_RMS_NORM = Gradient(_add_rms_norm_backward, _keep_sum)
CROSS_ENTROPY = Gradient(_cross_entropy_backward, _keep_losses)
SUMMED_CROSS_ENTROPY = Gradient(_summed_cross_entropy_backward, _keep_sum_of_losses)
