"""The functions of rows for arrays of JAX, with their gradients; see `jax_functions.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from ptxlab.device.arrays import Array, Tensor
from ptxlab.ops.jax_functions import differentiable
from ptxlab.ops.row_kernels import is_by_row
from ptxlab.ops.xla import execute, jax, shaped


@cache
def softmax() -> Callable[..., object]:
    """`ptxlab.kernels.softmax`, a function of `x`."""

    def gradients(arrays: object, y: Tensor, change: Tensor) -> Iterator[Tensor]:
        weighted = y.astype("float32") * change.astype("float32")
        yield (weighted - y.astype("float32") * weighted.sum(-1, keepdims=True)).astype(y.dtype)

    return differentiable(lambda x: execute("softmax", (x,), _like(x)), gradients)


@cache
def layer_norm(eps: float) -> Callable[..., object]:
    """`ptxlab.kernels.layer_norm`, a function of `x`, `weight` and `bias`."""

    def forward(x: Array, weight: Array, bias: Array) -> object:
        return execute("layer_norm", (x, weight, bias, eps), _like(x))

    def gradients(arrays: Sequence[Tensor], _: object, change: Tensor) -> tuple[Tensor, ...]:
        x, weight, bias = arrays
        distance = x.astype("float32") - x.astype("float32").mean(-1, keepdims=True)
        scale = jax().lax.rsqrt((distance * distance).mean(-1, keepdims=True) + eps)
        normal, given = distance * scale, change.astype("float32")
        inner = given * weight.astype("float32")
        found = inner - inner.mean(-1, keepdims=True) - normal * (inner * normal).mean(-1, keepdims=True)
        return (found * scale).astype(x.dtype), _over_rows(given * normal, weight), _over_rows(given, bias)

    return differentiable(forward, gradients)


@cache
def rms_norm(eps: float) -> Callable[..., object]:
    """`ptxlab.kernels.rms_norm`, a function of `x` and `weight`."""

    def gradients(arrays: Sequence[Tensor], _: object, change: Tensor) -> tuple[Tensor, ...]:
        return _of_rms_norm(arrays[0], arrays[1], eps, change)

    return differentiable(lambda x, weight: execute("rms_norm", (x, weight, eps), _like(x)), gradients)


@cache
def add_rms_norm(eps: float) -> Callable[..., object]:
    """`ptxlab.kernels.rms_norm` with a residual, a function of `x`, `residual` and `weight`."""

    def forward(x: Array, residual: Array, weight: Array) -> tuple[object, ...]:
        return tuple(execute("add_rms_norm", (x, residual, weight, eps), [_like(x)] * 2))

    def gradients(arrays: Sequence[Tensor], found: Sequence[Tensor], change: Sequence[Tensor]) -> tuple[Tensor, ...]:
        of_norm, of_weight = _of_rms_norm(found[1], arrays[2], eps, change[0])
        of_sum = of_norm + change[1]
        return of_sum, of_sum, of_weight

    return differentiable(forward, gradients)


def _of_rms_norm(x: Tensor, weight: Tensor, eps: float, change: Tensor) -> tuple[Tensor, Tensor]:
    wide = x.astype("float32")
    scale = jax().lax.rsqrt((wide * wide).mean(-1, keepdims=True) + eps)
    normal, given = wide * scale, change.astype("float32")
    inner = given * weight.astype("float32")
    found = (inner - normal * (inner * normal).mean(-1, keepdims=True)) * scale
    return found.astype(x.dtype), _over_rows(given * normal, weight)


def quantized_rms_norm(x: Array, weight: Array, eps: float, residual: Array | None, quantize: Array | str) -> object:
    """`ptxlab.kernels.rms_norm` with `quantize`, which has no gradient."""
    by_row = is_by_row(quantize)
    nothing = shaped((0,), "float32")
    results = [
        shaped(x.shape, "float8_e4m3fn"),
        nothing if residual is None else _like(x),
        shaped(x.shape[:-1], "float32") if by_row else nothing,
    ]
    made, *others = execute("quantized_rms_norm", (x, weight, eps, residual, None if by_row else quantize), results)
    wanted = [one for one, form in zip(others, results[1:], strict=True) if form is not nothing]
    return (made, *wanted) if wanted else made


@cache
def cross_entropy(ignored: int) -> Callable[..., Any]:
    """The loss of each row, and the logarithm of its sum of powers."""

    def forward(x: Array, targets: Array) -> tuple[object, ...]:
        made = [shaped(targets.shape, "float32")] * 2
        return tuple(execute("cross_entropy", (x, targets, ignored), made))

    def gradients(arrays: Sequence[Tensor], found: Sequence[Tensor], change: Sequence[Tensor]) -> tuple[object, ...]:
        x, targets = arrays
        return execute("cross_entropy_gradient", (x, targets, found[1], change[0], ignored), _like(x)), None

    return differentiable(forward, gradients)


def _like(x: Array) -> object:
    return shaped(x.shape, x.dtype)


def _over_rows(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, values.shape[-1]).sum(0).astype(like.dtype)
