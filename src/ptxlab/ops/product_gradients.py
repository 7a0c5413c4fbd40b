"""The gradients of products, as torch's autograd takes them: made of products themselves.

What the activation of `matmul` is of is not kept: it is computed again. The products of `gated_matmul` are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ptxlab.device.arrays import Context, Functions, Tensor
from ptxlab.kernels.scaled_gemm.scales import BLOCK
from ptxlab.ops.operators import Gradient

MOST = 448.0  # of e4m3


def multiply(a: Tensor, b: Tensor, allow_tf32: bool = False, residual: Tensor | None = None) -> Tensor:
    """A product; where there is nothing to add up, zeros."""
    if not a.numel() or not b.numel():
        return a.new_zeros((*a.shape[:-1], b.shape[1]))
    return _function("products.matmul")(
        a.contiguous() if a.dim() > 2 else a, b, allow_tf32=allow_tf32, residual=residual
    )


def of_weights(rows: Tensor, change: Tensor, weights: Tensor, allow_tf32: bool = False) -> Tensor:
    """The gradient of weights, in memory as these are, so that it can be added to others of them by what is fastest."""
    sides = _rows(rows).T, _rows(change)
    if weights.stride(0) == 1 and weights.stride(1) != 1:
        return multiply(sides[1].T, sides[0].T, allow_tf32).T
    return multiply(*sides, allow_tf32)


def of_activation(name: str, before: Tensor, change: Tensor) -> Tensor:
    """The gradient of what an activation is of, in f32."""
    aten: Functions = import_module("torch").ops.aten
    grad, x = change.float(), before.float()
    if name == "relu":
        return aten.threshold_backward(grad, x, 0)
    if name == "silu":
        return aten.silu_backward(grad, x)
    return aten.gelu_backward(grad, x, approximate="tanh" if name == "gelu_tanh" else "none")


@cache
def _function(name: str) -> Callable[..., Tensor]:
    """What gradients are made of, from modules that import this one."""
    module, _, function = name.partition(".")
    found: Callable[..., Tensor] = getattr(import_module(f"ptxlab.ops.{module}"), function)
    return found


def _rows(tensor: Tensor) -> Tensor:
    return tensor if tensor.dim() == 2 else tensor.reshape(-1, tensor.shape[-1])


def _needed(ctx: Context, count: int) -> list[bool]:
    """Of which arguments gradients are wanted; those that were left out in a call are not among torch's flags."""
    return [*ctx.needs_input_grad, *[False] * count][:count]


def _keep(ctx: Context, inputs: Sequence[object], output: object) -> None:
    a, b, bias, ctx.activation, _, ctx.allow_tf32 = inputs
    ctx.save_for_backward(a, b, bias if ctx.activation is not None else None)


def _backward(ctx: Context, grad: Tensor) -> tuple[object, ...]:
    a, b, bias = ctx.saved_tensors
    for_a, for_b, for_bias, _, for_residual, _ = _needed(ctx, 6)
    of_sum = grad.contiguous()
    if ctx.activation is not None and 0 not in grad.shape:
        before = _function("products.matmul")(a, b, bias=bias, allow_tf32=ctx.allow_tf32)
        of_sum = of_activation(ctx.activation, before, grad).to(grad.dtype)
    return (
        multiply(of_sum, b.T, ctx.allow_tf32) if for_a else None,
        of_weights(a, of_sum, b, ctx.allow_tf32) if for_b else None,
        _rows(of_sum).float().sum(0).to(grad.dtype) if for_bias else None,
        None,
        grad if for_residual else None,
        None,
    )


def _keep_gated(ctx: Context, inputs: Sequence[Any], output: Sequence[Tensor]) -> None:
    x, w1, w2, ctx.activation = inputs
    if x.dtype.itemsize == 1:
        raise ValueError("products of 8-bit floats have no gradient: call this under `torch.no_grad()`")
    ctx.save_for_backward(x, w1, w2, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _backward_gated(ctx: Context, grad: Tensor, *_: object) -> tuple[object, ...]:
    x, w1, w2, first, second = ctx.saved_tensors
    functional = import_module("torch.nn.functional")
    active = {"gelu_tanh": lambda y: functional.gelu(y, approximate="tanh")}.get(ctx.activation) or getattr(
        functional, ctx.activation
    )
    wide = grad.float()
    of_first = of_activation(ctx.activation, first, wide * second.float()).to(x.dtype)
    of_second = (wide * active(first.float())).to(x.dtype)
    for_x, for_first, for_second = _needed(ctx, 3)
    return (
        multiply(of_second, w2.T, residual=multiply(of_first, w1.T)) if for_x else None,
        of_weights(x, of_first, w1) if for_first else None,
        of_weights(x, of_second, w2) if for_second else None,
        None,
    )


def _keep_grouped(ctx: Context, inputs: Sequence[Any], output: object) -> None:
    a, b, offsets, *_ = inputs
    if a.dtype.itemsize == 1:
        raise ValueError("products of 8-bit floats have no gradient: call this under `torch.no_grad()`")
    ctx.save_for_backward(a, b, offsets)


def _backward_grouped(ctx: Context, grad: Tensor) -> tuple[object, ...]:
    a, b, offsets = ctx.saved_tensors
    grouped_matmul = _function("grouped_products.grouped_matmul")
    for_a, for_b, *_ = _needed(ctx, 3)
    of_a = of_b = None
    change = grad.contiguous()
    if b.dim() == 2:  # groups along k
        of_a = grouped_matmul(b, change.mT, offsets, clear_rest=True).T if for_a else None
        of_b = grouped_matmul(a.T, change, offsets, clear_rest=True) if for_b else None
    else:
        of_a = grouped_matmul(change, b.mT, offsets, clear_rest=True) if for_a else None
        if for_b and b.stride(-1) == 1:
            of_b = grouped_matmul(a.T, change, offsets)
        elif for_b:  # in memory as the weights are
            of_b = grouped_matmul(change.T, a, offsets).mT
    return of_a, of_b, *(None,) * 4


def rounded(matrix: Any, scale: Any, is_left: bool) -> Any:
    """A tensor divided by its scale, or those of its blocks, as e4m3; what is beyond it becomes the largest number."""
    small = matrix.float() / _spread(scale, matrix, is_left)
    return small.clamp(-MOST, MOST).to(_e4m3())


def _e4m3() -> Any:
    return import_module("torch").float8_e4m3fn


_e4m3._dynamo_marked_constant = True  # type: ignore[attr-defined]  # `torch.compile` calls it while it traces


def _spread(scale: Any, matrix: Any, is_left: bool) -> Any:
    """Scales as a tensor that the matrix can be multiplied with: one, or one for each element of a block."""
    if scale.numel() == 1:
        return scale.reshape(())
    rows, columns = matrix.shape
    across = scale.repeat_interleave(BLOCK, 1)[:, :columns]
    return across if is_left else across.repeat_interleave(BLOCK, 0)[:rows]


def _keep_scaled(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, small_a, small_b, scale_a, scale_b, _ = inputs
    ctx.types = a.dtype, b.dtype
    ctx.save_for_backward(small_a, small_b, scale_a, scale_b)


def _backward_scaled(ctx: Any, grad: Any) -> tuple[object, ...]:
    a, b, scale_a, scale_b = ctx.saved_tensors
    torch, (for_a, for_b) = import_module("torch"), _needed(ctx, 2)
    type = torch.float16 if grad.dtype == torch.float16 else torch.bfloat16
    change, of_a, of_b = grad.to(type).contiguous(), None, None
    if for_a:
        of_a = _times(lambda other: multiply(change, other.T), b, scale_b, False, type).to(ctx.types[0])
    if for_b:
        of_b = _times(lambda other: of_weights(other, change, b), a, scale_a, True, type).to(ctx.types[1])
    return of_a, of_b, *(None,) * 5


def _times(product: Callable[[Any], Any], small: Any, scale: Any, is_left: bool, type: object) -> Any:
    """A product with a matrix of 8-bit floats, which 16 bits hold; a scale of all of it comes after the product."""
    if scale.numel() == 1:
        return product(small.to(type)).float() * scale.reshape(())
    return product((small.float() * _spread(scale, small, is_left)).to(type))


PRODUCT = Gradient(_backward, _keep)
SCALED = Gradient(_backward_scaled, _keep_scaled)
GROUPED = Gradient(_backward_grouped, _keep_grouped)
GATED = Gradient(_backward_gated, _keep_gated)
