"""Functions of rows as operators of torch, `torch.ops.ptxlab.softmax` and so on, with their gradients.

They are registered when a function is first called with a tensor that needs a gradient or under `torch.compile`, and
by `import ptxlab.kernels` where torch was imported before. The gradients of cross entropy are a kernel; those of the
others are torch's own operations.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ptxlab.gpu.arrays import is_torch


def _never() -> bool:
    return False


_operators: Any = None
_is_compiling: Any = _never
_is_grad_enabled: Any = _never


def is_wanted(*arrays: Any) -> bool:
    """Whether a call is to be known to torch: it compiles now, or a gradient will be asked for."""
    if _is_compiling():
        return True
    if not is_torch(arrays[0].__class__):
        return False
    register()
    return _is_grad_enabled() and any(getattr(one, "requires_grad", False) for one in arrays)


def register() -> Any:
    """Register all of them, once, and return where they are."""
    if _operators is None:
        _register(import_module("torch"))
    return _operators


def _register(torch: Any) -> None:
    global _operators, _is_compiling, _is_grad_enabled
    rows = import_module("ptxlab.kernels.functions.row_functions")

    def define(name: str, schema: str, run: Any, describe: Any, backward: Any = None, keep: Any = None) -> None:
        made = torch.library.custom_op(f"ptxlab::{name}", run, mutates_args=(), schema=schema)
        made.register_fake(describe)
        if backward is not None:
            made.register_autograd(backward, setup_context=keep)

    def like(x: Any, *_: Any) -> Any:
        return x.new_empty(x.shape)

    def losses(x: Any, targets: Any, _: int) -> Any:
        return tuple(x.new_empty(targets.shape, dtype=torch.float32) for _ in range(2))

    def add_rms_norm(x: Any, residual: Any, weight: Any, eps: float) -> Any:
        return rows.compute_rms_norm(x, weight, eps, residual)

    def quantised(x: Any, weight: Any, eps: float, residual: Any, scale: Any) -> Any:
        return rows.compute_quantised(x, weight, eps, residual, "row" if scale is None else scale)

    def quantised_like(x: Any, weight: Any, eps: float, residual: Any, scale: Any) -> Any:
        summed = None if residual is None else like(x)
        scales = x.new_empty(x.shape[:-1], dtype=torch.float32) if scale is None else None
        return x.new_empty(x.shape, dtype=torch.float8_e4m3fn), *rows.with_empty(x, summed, scales)

    for name, schema, run, describe, *rest in (
        ("softmax", "(Tensor x) -> Tensor", rows.compute_softmax, like, _softmax_backward, _keep_output),
        ("layer_norm", "(Tensor x, Tensor weight, Tensor bias, float eps) -> Tensor", rows.compute_layer_norm, like,
         _layer_norm_backward, _keep_inputs),
        ("rms_norm", "(Tensor x, Tensor weight, float eps) -> Tensor", rows.compute_rms_norm, like,
         _rms_norm_backward, _keep_inputs),
        ("add_rms_norm", "(Tensor x, Tensor residual, Tensor weight, float eps) -> (Tensor, Tensor)", add_rms_norm,
         lambda x, *_: (like(x), like(x)), _add_rms_norm_backward, _keep_sum),
        ("quantised_rms_norm", "(Tensor x, Tensor weight, float eps, Tensor? residual, Tensor? scale)"
         " -> (Tensor, Tensor, Tensor)", quantised, quantised_like),
        ("cross_entropy", "(Tensor x, Tensor targets, int ignored) -> (Tensor, Tensor)", rows.find_losses, losses,
         _cross_entropy_backward, _keep_losses),
        ("cross_entropy_gradient", "(Tensor x, Tensor targets, Tensor logarithms, Tensor factors, int ignored)"
         " -> Tensor", rows.find_gradient, like),
    ):  # fmt: skip
        define(name, schema, run, describe, *rest)
    _operators, _is_compiling, _is_grad_enabled = torch.ops.ptxlab, torch.compiler.is_compiling, torch.is_grad_enabled


def _keep_output(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output)


def _keep_inputs(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.eps = inputs
    ctx.save_for_backward(*tensors)


def _keep_sum(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.eps = inputs[3]
    ctx.save_for_backward(output[1], inputs[2])


def _keep_losses(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.ignored = inputs[2]
    ctx.save_for_backward(inputs[0], inputs[1], output[1])
    ctx.mark_non_differentiable(output[1])


def _softmax_backward(ctx: Any, grad: Any) -> Any:
    (y,) = ctx.saved_tensors
    weighted = y.float() * grad.float()
    return (weighted - y.float() * weighted.sum(-1, keepdim=True)).to(y.dtype)


def _layer_norm_backward(ctx: Any, grad: Any) -> Any:
    x, weight, bias = ctx.saved_tensors
    distance = x.float() - x.float().mean(-1, keepdim=True)
    scale = (distance.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()
    normal, given = distance * scale, grad.float()
    inner = given * weight.float()
    found = (inner - inner.mean(-1, keepdim=True) - normal * (inner * normal).mean(-1, keepdim=True)) * scale
    return found.to(x.dtype), _over_rows(given * normal, weight), _over_rows(given, bias), None


def _rms_norm_backward(ctx: Any, grad: Any) -> Any:
    x, weight = ctx.saved_tensors
    return *_of_rms_norm(x, weight, ctx.eps, grad), None


def _add_rms_norm_backward(ctx: Any, grad: Any, of_sum: Any) -> Any:
    summed, weight = ctx.saved_tensors
    found, of_weight = _of_rms_norm(summed, weight, ctx.eps, grad)
    found = found + of_sum
    return found, found, of_weight, None


def _of_rms_norm(x: Any, weight: Any, eps: float, grad: Any) -> tuple[Any, Any]:
    scale = (x.float().square().mean(-1, keepdim=True) + eps).rsqrt()
    normal, given = x.float() * scale, grad.float()
    inner = given * weight.float()
    found = (inner - normal * (inner * normal).mean(-1, keepdim=True)) * scale
    return found.to(x.dtype), _over_rows(given * normal, weight)


def _over_rows(values: Any, like: Any) -> Any:
    return values.reshape(-1, values.shape[-1]).sum(0).to(like.dtype)


def _cross_entropy_backward(ctx: Any, grad: Any, _: Any) -> Any:
    x, targets, logarithms = ctx.saved_tensors
    factors = grad.float().contiguous()
    return _operators.cross_entropy_gradient(x, targets, logarithms, factors, ctx.ignored), None, None


def softmax(x: Any) -> Any:
    """As an operator."""
    return _operators.softmax(x)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """As an operator."""
    return _operators.layer_norm(x, weight, bias, eps)


def rms_norm(x: Any, weight: Any, eps: float, residual: Any) -> Any:
    """As an operator."""
    if residual is None:
        return _operators.rms_norm(x, weight, eps)
    return _operators.add_rms_norm(x, residual, weight, eps)


def quantised_rms_norm(x: Any, weight: Any, eps: float, residual: Any, quantise: Any) -> Any:
    """As an operator, whose results are always three."""
    by_row = isinstance(quantise, str)
    made, summed, scales = _operators.quantised_rms_norm(x, weight, eps, residual, None if by_row else quantise)
    results = (made, *([summed] if residual is not None else []), *([scales] if by_row else []))
    return results[0] if len(results) == 1 else results


def cross_entropy(x: Any, targets: Any, ignored: int) -> Any:
    """As an operator."""
    return _operators.cross_entropy(x, targets, ignored)[0]
