"""`attention` and `attention_backward`, for arrays of torch, CuPy and JAX on a GPU, and of NumPy on the emulator.

For torch both are operators, so that `torch.compile` knows them, and the one is the gradient of the other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from ptxlab.gpu.arrays import is_torch
from ptxlab.kernels.functions.attention_launches import attend, differentiate, space
from ptxlab.kernels.functions.matrices import empty, framework
from ptxlab.kernels.functions.packed_attention import attend_packed, operator

FORWARD = "(Tensor q, Tensor k, Tensor v, bool causal=False, int window=0) -> (Tensor, Tensor)"
BACKWARD = (
    "(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, bool causal=False, int window=0,"
    " bool ordered=False)"
    " -> (Tensor, Tensor, Tensor)"
)
_operators: tuple[Any, Any] | None = None  # of torch, once torch is imported
_is_compiling: Callable[[], bool] = bool


def attention(
    q: Any,
    k: Any,
    v: Any,
    out: Any = None,
    *,
    causal: bool = False,
    window: int = 0,
    return_lse: bool = False,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
) -> Any:
    """softmax(q·kᵀ/√d)·v in f16 or bf16 with f32 accumulators, for heads of 64, 128 or 256 elements.

    Arrays are batch × heads × length × head size, with any strides but the last, which is 1; k and v may have fewer
    heads, each for as many of q. With `causal`, a query attends to the keys up to its own, and with a `window` of n to
    the last n of these. The result is a new array, or `out`; with `return_lse` the log-sum-exp of each row's scores
    comes after it, which `attention_backward` needs. Work starts on the stream that the framework uses now; arrays of
    the host run on the emulator. Under torch's autograd it has a gradient, for heads of 64 and 128 elements.

    With `cu_seqlens_q`, arrays are sequences of unequal lengths one after the other: length × heads × head size, as
    `flash_attn_varlen_func` takes them, and log-sum-exps are heads × length. Sequence i has the queries from
    `cu_seqlens_q[i]` up to but without `cu_seqlens_q[i + 1]`, in int32, and the keys by `cu_seqlens_k`, or the same;
    either may be none. Only the kernel reads these numbers, and a call does not wait for the GPU; where they decrease,
    results are wrong, and queries of no sequence are not written. There is no gradient.
    """
    given = [q, k, v]
    if cu_seqlens_q is not None or cu_seqlens_k is not None:
        return _packed(given, out, (cu_seqlens_q, cu_seqlens_k), causal, window, return_lse)
    if _is_compiling() and out is None:
        forward, _ = _operators or register_with_torch()
        answer, lse = forward(q, k, v, causal, window)
    elif is_torch(q.__class__) and _is_differentiated(given):
        if out is not None:
            raise ValueError("a result in `out` has no gradient: leave it out, or call this under `torch.no_grad()`")
        answer, lse = _differentiable().apply(q, k, v, causal, window)
    else:
        answer, lse = _attend(given, out, causal, window, return_lse)
    return (answer, lse) if return_lse else answer


def _packed(
    given: Sequence[Any], out: Any, starts: tuple[Any, Any], causal: bool, window: int, return_lse: bool
) -> Any:
    """Sequences of unequal lengths."""
    queries, keys = starts
    if queries is None:
        raise ValueError("`cu_seqlens_k` goes with `cu_seqlens_q`")
    both = queries, queries if keys is None else keys
    if operator.is_compiling() and out is None:
        answer, lse = operator.made(*given, *both, causal, window)
        return (answer, lse) if return_lse else answer
    for one in given:
        operator.check(one)
    if 0 in (*getattr(given[0], "shape", ()), *getattr(given[1], "shape", ())):
        q = given[0]
        answer = filled(q, tuple(q.shape), 0.0, out)
        lse = filled(q, (q.shape[1], q.shape[0]), -math.inf, space(q, (q.shape[1], q.shape[0])))
    else:
        answer, lse = attend_packed(given, both, out, causal, window, return_lse)
    return (answer, lse) if return_lse else answer


def attention_backward(
    do: Any,
    q: Any,
    k: Any,
    v: Any,
    o: Any,
    lse: Any,
    *,
    causal: bool = False,
    window: int = 0,
    deterministic: bool = False,
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, from that of `o = attention(q, k, v)`, for heads of 64 or 128 elements.

    `o` and `lse` are what `attention(..., return_lse=True)` returned, `causal` and `window` as they were there. The
    gradient of q is summed in f32 by blocks in the order in which they run: its last bits differ from run to run. With
    `deterministic` they wait for each other, and add in one order.
    """
    given = [q, k, v, o]
    if _is_compiling():
        _, backward = _operators or register_with_torch()
        found: tuple[Any, Any, Any] = backward(do, *given, lse, causal, window, deterministic)
        return found
    if 0 in (*q.shape, *k.shape):
        dq, dk, dv = (filled(one, tuple(one.shape), 0.0) for one in (q, k, v))
        return dq, dk, dv
    return differentiate(do, given, lse, causal=causal, window=window, ordered=deterministic)


def _attend(given: Sequence[Any], out: Any, causal: bool, window: int, logs: bool) -> tuple[Any, Any]:
    """Attention; where there are no keys, every row attends to none."""
    q, k, _ = given
    if 0 not in (*getattr(q, "shape", ()), *getattr(k, "shape", ())):
        return attend(given, out, causal, window, logs)
    made = filled(q, tuple(q.shape), 0.0, out)
    lse = filled(q, tuple(q.shape[:3]), -math.inf, space(q, tuple(q.shape[:3]))) if logs else None
    return made, lse


def filled(like: Any, shape: tuple[int, ...], value: float, out: Any = None) -> Any:
    """An array of the same framework, or `out`, that holds one number everywhere."""
    if hasattr(like, "unsafe_buffer_pointer"):
        return framework(like).full(shape, value, like.dtype if out is None else out.dtype)
    made = empty(like, shape) if out is None else out
    made[...] = value
    return made


def _is_differentiated(tensors: Sequence[Any]) -> bool:
    register_with_torch()  # a later call may be compiled
    return any(one.requires_grad for one in tensors) and bool(sys.modules["torch"].is_grad_enabled())


def register_with_torch() -> tuple[Any, Any]:
    """Make both operators of torch, `torch.ops.ptxlab.attention_forward` and `attention_backward`.

    That is done by itself where torch was imported before this module, and at the first call that needs them.
    """
    global _operators, _is_compiling
    if _operators is None:
        torch = import_module("torch")
        forward = torch.library.custom_op("ptxlab::attention_forward", _forward, mutates_args=(), schema=FORWARD)
        forward.register_fake(lambda q, k, v, causal=False, window=0: (q.new_empty(q.shape), space(q, q.shape[:3])))
        backward = torch.library.custom_op("ptxlab::attention_backward", _backward, mutates_args=(), schema=BACKWARD)
        backward.register_fake(lambda do, q, k, v, *others: tuple(one.new_empty(one.shape) for one in (q, k, v)))
        _operators = torch.ops.ptxlab.attention_forward, torch.ops.ptxlab.attention_backward
        forward.register_autograd(partial(_differentiate, _operators[1]), setup_context=_keep_for_gradients)
        _is_compiling = torch.compiler.is_compiling
    return _operators


def _forward(q: Any, k: Any, v: Any, causal: bool = False, window: int = 0) -> tuple[Any, Any]:
    return _attend([one.detach() for one in (q, k, v)], None, causal, window, True)


def _backward(
    do: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, causal: bool = False, window: int = 0, ordered: bool = False
) -> tuple[Any, Any, Any]:
    return attention_backward(do, q, k, v, o, lse, causal=causal, window=window, deterministic=ordered)


def _keep_for_gradients(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, ctx.causal, ctx.window = inputs
    if q.shape[-1] > 128:
        raise ValueError(f"heads of {q.shape[-1]} elements have no gradient: call this under `torch.no_grad()`")
    ctx.save_for_backward(q, k, v, *output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate(backward: Callable[..., tuple[Any, Any, Any]], ctx: Any, do: Any, _: Any) -> tuple[Any, ...]:
    if do is None:
        return None, None, None, None, None
    is_ordered = sys.modules["torch"].are_deterministic_algorithms_enabled()
    return (*backward(do.contiguous(), *ctx.saved_tensors, ctx.causal, ctx.window, is_ordered), None, None)


@cache
def _differentiable() -> Any:
    """The same for torch's autograd without a compiler: a call of an operator costs more time than this."""
    parts: dict[str, Any] = {
        "forward": _forward,
        "setup_context": _keep_for_gradients,
        "backward": partial(_differentiate, _backward),
    }
    function = import_module("torch").autograd.Function
    return type("Attention", (function,), {name: staticmethod(part) for name, part in parts.items()})


if hasattr(sys.modules.get("torch"), "compiler"):
    register_with_torch()
