"""Functions of torch on arrays of expressions, each as NumPy has it; torch itself is not needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def call(function: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """What a function of torch makes of expressions."""
    name = function.__name__.strip("_")
    if name not in FUNCTIONS:
        raise TypeError(f"equal: `torch.{name}` of an input has no rule")
    return FUNCTIONS[name](*map(_plain, args), **{key: _plain(one) for key, one in named.items()})


def _plain(given: Any) -> Any:
    """A tensor as an array of NumPy; expressions, and all else, as they are."""
    if isinstance(given, (list, tuple)):
        return [_plain(one) for one in given]
    return given.detach().numpy() if hasattr(given, "untyped_storage") else given


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Any, dim: int, **_: Any) -> Any:
    powers = np.exp(x - x.max(dim, True))
    return powers / powers.sum(dim, True)


def _logsumexp(x: Any, dim: int, keepdim: bool = False) -> Any:
    top = x.max(dim, True)
    total = np.log(np.exp(x - top).sum(dim, True)) + top
    return total if keepdim else np.squeeze(total, dim)


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate != "tanh":
        raise TypeError('equal: `gelu` of an input has a rule with approximate="tanh" only')
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


def _layer_norm(x: Any, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, **_: Any) -> Any:
    axes = tuple(range(-len(shape), 0))
    return _affine((x - x.mean(axes, True)) / np.sqrt(x.var(axes, True) + eps), weight, bias)


def _rms_norm(x: Any, shape: Sequence[int], weight: Any = None, eps: float = 1.1920929e-07) -> Any:
    return _affine(x / np.sqrt((x * x).mean(tuple(range(-len(shape), 0)), True) + eps), weight, None)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    found = x @ np.swapaxes(weight, -1, -2)
    return found if bias is None else found + bias


def _attention(q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
               scale: float | None = None, **_: Any) -> Any:  # fmt: skip
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = np.where(np.tri(scores.shape[-2], scores.shape[-1], dtype=bool), scores, -np.inf)
    return _softmax(scores if attn_mask is None else scores + attn_mask, -1) @ v


def _var(x: Any, dim: Any = None, correction: int = 1, keepdim: bool = False, unbiased: bool | None = None) -> Any:
    """Unlike that of NumPy, it divides by n - 1."""
    return x.var(dim, keepdim, ddof=correction if unbiased is None else int(unbiased))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, alpha=1: x + (y if alpha == 1 else alpha * y), "sub": lambda x, y: x - y,
    "rsub": lambda x, y: y - x, "mul": lambda x, y: x * y, "rmul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "truediv": lambda x, y: x / y, "true_divide": lambda x, y: x / y, "rtruediv": lambda x, y: y / x,
    "radd": lambda x, y: x + y, "pow": lambda x, y: x**y, "square": lambda x: x * x, "neg": lambda x: 0.0 - x,
    "matmul": np.matmul, "mm": np.matmul, "bmm": np.matmul, "mv": np.matmul, "dot": np.matmul,
    "addmm": lambda c, a, b: c + a @ b, "outer": lambda x, y: x[:, None] * y, "einsum": np.einsum,
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "abs": np.abs, "reciprocal": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": _sigmoid, "relu": lambda x, inplace=False: np.maximum(x, 0), "silu": lambda x, **_: x * _sigmoid(x),
    "gelu": _gelu, "clamp": _clamp, "softmax": _softmax, "logsumexp": _logsumexp,
    "log_softmax": lambda x, dim, **_: x - _logsumexp(x, dim, True), "layer_norm": _layer_norm, "rms_norm": _rms_norm,
    "linear": _linear, "scaled_dot_product_attention": _attention, "var": _var,
    "leaky_relu": lambda x, negative_slope=0.01, **_: np.where(x > 0, x, negative_slope * x),
    "mse_loss": lambda x, y, **_: ((x - y) * (x - y)).mean(), "cumsum": lambda x, dim, **_: np.cumsum(x, dim),
    "maximum": np.maximum, "minimum": np.minimum, "amax": lambda x, dim=None, keepdim=False: x.max(dim, keepdim),
    "amin": lambda x, dim=None, keepdim=False: x.min(dim, keepdim), "where": np.where,
    "sum": lambda x, dim=None, keepdim=False, **_: x.sum(dim, keepdim),
    "mean": lambda x, dim=None, keepdim=False, **_: x.mean(dim, keepdim),
    "cat": lambda parts, dim=0: np.concatenate(parts, dim), "stack": lambda parts, dim=0: np.stack(parts, dim),
    "transpose": np.swapaxes, "t": np.transpose, "permute": lambda x, *dims: np.transpose(x, _flat(dims)),
    "view": lambda x, *shape: np.reshape(x, _flat(shape)), "reshape": lambda x, *shape: np.reshape(x, _flat(shape)),
    "unsqueeze": np.expand_dims, "squeeze": np.squeeze, "float": lambda x: x, "double": lambda x: x,
    "to": lambda x, *_, **__: x, "contiguous": lambda x: x,
}  # fmt: skip


def _flat(given: Sequence[Any]) -> tuple[int, ...]:
    return tuple(given[0]) if len(given) == 1 and not isinstance(given[0], int) else tuple(given)
