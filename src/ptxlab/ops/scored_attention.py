"""Attention whose scores are changed before the softmax: a soft cap, ALiBi's slopes, sinks; and its gradients.

For torch both are operators, so that `torch.compile` knows them, and the one is the gradient of the other. Attention
without these has operators of its own, which are called with less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ptxlab.device.arrays import Array, Context, Tensor
from ptxlab.ops.attention_launches import answer_of, in_rows, prepare, prepare_gradients
from ptxlab.ops.calls import Calls
from ptxlab.ops.matrices import empty, empty_like
from ptxlab.ops.operators import Gradient, Operator, is_ordered, is_traced, once

FORWARD = (
    "(Tensor q, Tensor k, Tensor v, Tensor? alibi_slopes=None, Tensor? sinks=None, bool causal=False, int window=0,"
    " float softcap=0.0) -> (Tensor, Tensor)"
)
BACKWARD = (
    "(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor? alibi_slopes=None, Tensor? sinks=None,"
    " bool causal=False, int window=0, bool ordered=False, float softcap=0.0) -> Tensor[]"
)
FOUR = (None,) * 4  # results that are made


def check_softcap(softcap: float) -> float:
    """A soft cap as a number, 0 where scores have no cap."""
    if not (isinstance(softcap, int | float) and 0 <= softcap < math.inf):
        raise ValueError(f"`softcap` is {softcap!r}: it is a positive number, or 0 for none")
    return float(softcap)


def attend(given: Sequence[Any], out: Any, how: tuple[bool, int, float], return_lse: bool) -> Any:
    """The answer, and log-sum-exps if they are asked for; given are q, k, v, slopes and sinks."""
    if out is None and is_traced():
        found = _calls.operator(*given, *how)
    else:
        found = _calls(given, (out, None) if return_lse else (out,), how)
        if found is None:
            found = _calls.operator.differentiate(*given, *how)
    return tuple(found) if return_lse else found[0]


def differentiate(given: Sequence[object], how: tuple[bool, int, bool, float]) -> tuple[Any, ...]:
    """The gradients of q, k, v and of sinks, which is None where there are none.

    Given are the gradient of the answer, q, k, v, the answer, log-sum-exps, slopes and sinks.
    """
    do, q, k, v, o, lse, *of_heads = given
    found = None if is_traced() else _backward((q, k, v, o, do, lse, *of_heads), FOUR, how)
    dq, dk, dv, *others = once(_backward.operator, *given, *how) if found is None else found
    return dq, dk, dv, others[0] if others else None


def _of_tensors(
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
    causal: bool = False,
    window: int = 0,
    softcap: float = 0.0,
) -> tuple[Any, ...]:
    return tuple(_calls.compute((q, k, v, alibi_slopes, sinks), (None, None), (causal, window, softcap)))


def _backward_of_tensors(
    do: Array,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
    causal: bool = False,
    window: int = 0,
    ordered: bool = False,
    softcap: float = 0.0,
) -> list[Any]:
    arrays, how = (q, k, v, o, do, lse, alibi_slopes, sinks), (causal, window, ordered, softcap)
    return [one for one in _backward.compute(arrays, FOUR, how) if one is not None]


def _keep_for_gradients(ctx: Context, inputs: Sequence[object], output: Sequence[Tensor]) -> None:
    *arrays, ctx.causal, ctx.window, ctx.softcap = inputs
    ctx.save_for_backward(*arrays, *output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Context, do: Tensor | None, _: object) -> tuple[object, ...]:
    if do is None:
        return (None,) * 8
    q, k, v, slopes, sinks, o, lse = ctx.saved_tensors
    how = ctx.causal, ctx.window, is_ordered(), ctx.softcap
    dq, dk, dv, of_sinks = differentiate((in_rows(do), q, k, v, o, lse, slopes, sinks), how)
    return dq, dk, dv, None, of_sinks, None, None, None


_calls = Calls(
    prepare,
    Operator(
        "scored_attention",
        FORWARD,
        _of_tensors,
        lambda q, k, v, *others: (answer_of(q, v), empty(q, q.shape[:3], "f32")),
        Gradient(_differentiate, _keep_for_gradients),
    ),
)
_backward = Calls(
    prepare_gradients,
    Operator(
        "scored_attention_backward",
        BACKWARD,
        _backward_of_tensors,
        lambda do, q, k, v, o, lse, slopes=None, sinks=None, *others: [
            empty_like(one) for one in (q, k, v, sinks) if one is not None
        ],
    ),
)
