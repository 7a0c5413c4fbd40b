"""`attention` and `attention_backward`, for arrays of torch, CuPy and JAX on a GPU, and of NumPy on the emulator.

For torch both are operators, so that `torch.compile` knows them, and the one is the gradient of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.device.arrays import Array, Context, Tensor
from ptxlab.ops import fp8_attention, jax_functions, packed_attention, scored_attention
from ptxlab.ops.attention_launches import answer_of, in_rows, prepare, prepare_gradients
from ptxlab.ops.calls import Calls
from ptxlab.ops.matrices import empty, empty_like
from ptxlab.ops.operators import Gradient, Operator, is_ordered, is_traced, once
from ptxlab.ops.xla import is_jax

FORWARD = "(Tensor q, Tensor k, Tensor v, bool causal=False, int window=0) -> (Tensor, Tensor)"
BACKWARD = (
    "(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, bool causal=False, int window=0,"
    " bool ordered=False)"
    " -> (Tensor, Tensor, Tensor)"
)

THREE = (None,) * 3  # results that are made


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    out: Any = None,
    causal: bool = False,
    window: int = 0,
    return_lse: bool = False,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    scale_q: Any = None,
    scale_k: Any = None,
    scale_v: Any = None,
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    sinks: Any = None,
) -> Any:
    """softmax(q·kᵀ/√d)·v in f16, bf16 or e4m3 with f32 accumulators.

    Arrays are batch × heads × length × head size, with any strides but the last, which is 1; k and v may have fewer
    heads, each for as many of q. Heads have a multiple of 8 elements up to 256; those of v, and then of the answer, may
    have fewer than those of q and k. Of e4m3, all have 64, 128 or 256. With `causal`, a query attends to the keys up to
    its own, and with a `window` of n to the last n of these. The result is a new array, or `out`; with `return_lse` the
    log-sum-exp of each row's scores comes after it, which `attention_backward` needs. Work starts on the stream that
    the framework uses now; arrays of the host run on the emulator. Under torch's autograd it has a gradient.

    With `cu_seqlens_q`, arrays are sequences of unequal lengths one after the other: length × heads × head size, as
    `flash_attn_varlen_func` takes them, and log-sum-exps are heads × length. Sequence i has the queries from
    `cu_seqlens_q[i]` up to but without `cu_seqlens_q[i + 1]`, in int32, and the keys by `cu_seqlens_k`, or the same;
    either may be none. Only the kernel reads these numbers, and a call does not wait for the GPU; where they decrease,
    results are wrong, and queries of no sequence are not written, nor are gradients of such elements.

    A score s = q·k/√d, of the query at i and the key at j, is changed before the softmax: with a `softcap` of c to
    c·tanh(s/c), and with `alibi_slopes`, an f32 for each head, by −slope·|i − j| then. `sinks`, an f32 for each head,
    are scores of one more key whose values are 0; they have a gradient. Without these, kernels are as they were.

    Of e4m3, each array has a scale, an array of one positive f32 by which it is multiplied, and the result is bf16.
    Weights are rounded to e4m3, too, and sums of values have the tensor cores' 14 bits. There is no gradient.
    """
    scales = scale_q, scale_k, scale_v
    is_packed, starts = any_given(cu_seqlens_q, cu_seqlens_k), (cu_seqlens_q, cu_seqlens_k)
    is_scored, of_heads = bool(softcap) or any_given(alibi_slopes, sinks), (alibi_slopes, sinks)
    if fp8_attention.is_fp8(q) or any_given(*scales):
        if is_scored:
            raise TypeError("`softcap`, `alibi_slopes` and `sinks` are for float16 and bfloat16")
        if is_packed:
            raise TypeError("packed sequences are of float16 and bfloat16, which have no scales")
        return fp8_attention.attend((q, k, v, *scales), out, (causal, window), return_lse)
    how = causal, window, scored_attention.check_softcap(softcap) if is_scored else 0.0
    if not is_traced() and is_jax(q.__class__):
        output, lse = _of_jax((q, k, v), starts, how, of_heads, out)
        return (output, lse) if return_lse else output
    if is_packed:
        return packed_attention.attend((q, k, v), starts, of_heads, out, how, return_lse)
    if is_scored:
        return scored_attention.attend((q, k, v, *of_heads), out, how, return_lse)
    if out is None and is_traced():
        found = _calls.operator(q, k, v, causal, window)
    else:
        found = _calls((q, k, v), (out, None) if return_lse else (out,), (causal, window))
        if found is None:
            found = _calls.operator.differentiate(q, k, v, causal, window)
    return tuple(found) if return_lse else found[0]


def _of_jax(
    given: tuple[Array, ...], starts: tuple[Any, Any], how: tuple[bool, int, float], of_heads: tuple[Any, Any], out: Any
) -> tuple[object, object]:
    if not any_given(*starts):
        return jax_functions.attention(given, how, of_heads, out)
    return jax_functions.packed_attention(given, packed_attention.both(starts), how, of_heads, out)


def attention_backward(
    do: Array,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    *,
    causal: bool = False,
    window: int = 0,
    deterministic: bool = False,
    cu_seqlens_q: Array | None = None,
    cu_seqlens_k: Array | None = None,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
) -> tuple[Any, ...]:
    """The gradients of q, k and v, from that of `o = attention(q, k, v)`, in f16 or bf16.

    `o` and `lse` are what `attention(..., return_lse=True)` returned, and all options are as they were there. The
    gradient of q is summed in f32 by blocks in the order in which they run: its last bits differ from run to run. With
    `deterministic` they wait for each other, and add in one order. With `sinks`, their gradient comes after the others.
    """
    given, how = (do, q, k, v, o, lse), (causal, window, deterministic)
    is_packed, of_heads = any_given(cu_seqlens_q, cu_seqlens_k), (alibi_slopes, sinks)
    is_of_jax = not is_traced() and is_jax(q.__class__)
    if is_packed or is_of_jax or softcap or any_given(*of_heads):
        options = *how, scored_attention.check_softcap(softcap)
        if is_packed:
            gradients = packed_attention.differentiate(given, (cu_seqlens_q, cu_seqlens_k), of_heads, options)
        elif is_of_jax:
            gradients = jax_functions.attention_backward(given, options, of_heads)
        else:
            gradients = scored_attention.differentiate((*given, *of_heads), options)
        return gradients if sinks is not None else gradients[:3]
    if is_traced():
        found = _backward.operator(*given, *how)
    else:
        found = _backward((q, k, v, o, do, lse), THREE, how)
        if found is None:
            found = _backward.operator.differentiate(*given, *how)
    dq, dk, dv = found
    return dq, dk, dv


def any_given(*arrays: object) -> bool:
    """Whether some of what may be left out is given."""
    for one in arrays:  # noqa: SIM110 - `any` of a generator takes three times as long
        if one is not None:
            return True
    return False


def _of_tensors(q: Array, k: Array, v: Array, causal: bool = False, window: int = 0) -> tuple[object, ...]:
    return tuple(_calls.compute((q, k, v), (None, None), (causal, window)))


def _backward_of_tensors(
    do: Array,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    causal: bool = False,
    window: int = 0,
    ordered: bool = False,
) -> tuple[object, ...]:
    return tuple(_backward.compute((q, k, v, o, do, lse), THREE, (causal, window, ordered)))


def _keep_for_gradients(ctx: Context, inputs: Sequence[object], output: Sequence[Tensor]) -> None:
    q, k, v, ctx.causal, ctx.window = inputs
    ctx.save_for_backward(q, k, v, *output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Context, do: Tensor | None, _: object) -> tuple[object, ...]:
    if do is None:
        return None, None, None, None, None
    how = ctx.causal, ctx.window, is_ordered()
    q, k, v, o, lse = ctx.saved_tensors
    traced = is_traced()
    found = None if traced else _backward((q, k, v, o, do, lse), THREE, how, only_ready=True)
    if found is None:
        do = in_rows(do)
        found = None if traced else _backward((q, k, v, o, do, lse), THREE, how)
    dq, dk, dv = once(_backward.operator, do, q, k, v, o, lse, *how) if found is None else found
    return dq, dk, dv, None, None


_calls = Calls(
    prepare,
    Operator(
        "attention_forward",
        FORWARD,
        _of_tensors,
        lambda q, k, v, *others: (answer_of(q, v), empty(q, q.shape[:3], "f32")),
        Gradient(_differentiate, _keep_for_gradients),
    ),
)
_backward = Calls(
    prepare_gradients,
    Operator(
        "attention_backward",
        BACKWARD,
        _backward_of_tensors,
        lambda do, q, k, v, *others: tuple(map(empty_like, (q, k, v))),
    ),
)
