"""Attention of packed sequences, of unequal lengths one after the other, and its gradients.

For torch both are operators, so that `torch.compile` knows them, and the one is the gradient of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ptxlab.device.arrays import Array, Context, Tensor
from ptxlab.kernels import wgmma_attention, wgmma_attention_backward
from ptxlab.ops import jax_functions
from ptxlab.ops.attention_launches import (
    check,
    check_nothing,
    counter,
    given_of_heads,
    nothing,
    numbered,
    numbers_of_heads,
)
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import check_dense, check_extents, check_gpu, require
from ptxlab.ops.matrices import Matrix, argument, empty, filled, look
from ptxlab.ops.operators import Gradient, Operator, is_ordered, is_traced, once
from ptxlab.ops.xla import is_jax

SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, bool causal=False, int window=0,"
    " float softcap=0.0, Tensor? alibi_slopes=None, Tensor? sinks=None) -> (Tensor, Tensor)"
)
BACKWARD = (
    "(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor cu_seqlens_q, Tensor cu_seqlens_k,"
    " bool causal=False, int window=0, bool ordered=False, float softcap=0.0, Tensor? alibi_slopes=None,"
    " Tensor? sinks=None) -> Tensor[]"
)
NAMES = ("cu_seqlens_q", "cu_seqlens_k")
LOGS, STARTS, MEMORY, OF_HEADS = 11, (12, 13), (17, 16), (18, 19)
"""Parameters of the kernels: log-sum-exps, where sequences start, memory for maps and for tiles, slopes and sinks."""
GRADIENT_STARTS, GRADIENT_MEMORY, SLOPES = (20, 21), range(23, 29), 29
"""The same of the gradients' kernels, after ten arrays."""
FOUR = (None,) * 4  # results that are made


def attend(
    given: Sequence[Any],
    starts: tuple[Any, Any],
    of_heads: tuple[Any, Any],
    out: Any,
    how: tuple[bool, int, float],
    return_lse: bool,
) -> Any:
    """The answer, and log-sum-exps if they are asked for; `of_heads` are slopes and sinks."""
    arrays = *given, *both(starts)
    if out is None and is_traced():
        found = _calls.operator(*arrays, *how, *of_heads)
    else:
        found = _calls((*arrays, *of_heads), (out, None) if return_lse else (out,), how)
        if found is None:
            found = _calls.operator.differentiate(*arrays, *how, *of_heads)
    return tuple(found) if return_lse else found[0]


def differentiate(
    given: Sequence[Any], starts: tuple[Any, Any], of_heads: tuple[Any, Any], how: tuple[bool, int, bool, float]
) -> tuple[Any, ...]:
    """The gradients of q, k, v and of sinks, which is None where there are none.

    Given are the gradient of the answer, q, k, v, the answer and log-sum-exps.
    """
    do, q, k, v, o, lse = given
    if is_traced():
        found = _backward.operator(*given, *both(starts), *how, *of_heads)
    elif is_jax(q.__class__):
        return jax_functions.packed_attention_backward(given, both(starts), how, of_heads)
    else:
        found = _backward((q, k, v, o, do, lse, *both(starts), *of_heads), FOUR, how)
        if found is None:
            found = _backward.operator.differentiate(*given, *both(starts), *how, *of_heads)
    dq, dk, dv, *others = found
    return dq, dk, dv, others[0] if others else None


def both(starts: tuple[object, object]) -> tuple[object, object]:
    """Where sequences start among the queries and among the keys, which may be the same."""
    queries, keys = starts
    if queries is None:
        raise ValueError("`cu_seqlens_k` goes with `cu_seqlens_q`")
    return queries, queries if keys is None else keys


def prepare_packed(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int, float]) -> Call:
    """Attention over sequences of unequal lengths one after the other.

    After queries, keys and values come arrays of where sequences start, slopes and sinks.
    """
    q, (causal, window, softcap) = given[0], how
    read = [(name, heads_first(look(one, name), name)) for name, one in zip("qkv", given, strict=False)]
    starts = [look(one, name, ("s32",)) for one, name in zip(given[3:5], NAMES, strict=True)]
    made = empty(q, (*q.shape[:-1], given[2].shape[-1])) if written[0] is None else written[0]
    target = heads_first(look(made, "out"), "out")
    rows = q.shape[1], q.shape[0]
    for name, one, side in zip(NAMES, starts, read, strict=False):
        check_starts(name, one, starts[0], side[1])
    if any(0 in one.shape for _, one in read):
        check_nothing(read, target)
        return nothing(given, [made, *written[1:]], rows)
    check(read, [("out", target)])
    of_heads = numbers_of_heads(given[5:], read[0])
    views = dict(zip("qkvo", (one.view() for _, one in [*read, ("out", target)]), strict=True))
    wgmma_attention.check(**views, causal=causal, window=window)
    lse = empty(q, rows, "f32") if len(written) > 1 else None
    sequences = starts[0].shape[0] - 1
    results = [made, lse][: len(written)]
    if not sequences:
        return Call(results)
    logs = [] if lse is None else [look(lse, "lse", ("f32",))]
    gpu, counts = target.gpu, wgmma_attention.workspace(read[0][1].shape, sequences)
    memory = np.zeros(sum(counts), np.uint32) if gpu is None else None
    launches = wgmma_attention.attend_packed(
        **views,
        counter=np.zeros(1, np.uint32) if gpu is None else 0,
        starts=(argument(starts[0]), argument(starts[1])),
        sequences=sequences,
        memory=(0, 0) if memory is None else (memory[counts[0] :], memory[: counts[0]].view(np.uint8)),
        causal=causal,
        window=window,
        lse=argument(logs[0]) if logs else None,
        softcap=softcap,
        **given_of_heads(of_heads),
    )
    arrays = [*(one for _, one in read), *starts, *of_heads, target, *logs]
    parameters = [0, 1, 2, *STARTS, *OF_HEADS, 3, *([LOGS] if logs else []), *MEMORY]
    left_out = [5 + at for at, one in enumerate(of_heads) if one is None]
    changing = [pair for pair in numbered(parameters) if pair[1] not in left_out]
    steps = [BoundLaunch(launch, changing) for launch in launches]
    return Call(results, steps, arrays, workspace=counter(q, gpu), scratch=[4 * count for count in counts])


def prepare_packed_gradients(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int, bool, float]) -> Call:
    """The gradients of packed sequences.

    Given are q, k, v, o, do, log-sum-exps, where sequences start, slopes and sinks.
    """
    causal, window, ordered, softcap = how
    five = ("q", "k", "v", "o", "do")
    read = [(name, heads_first(look(one, name), name)) for name, one in zip(five, given, strict=False)]
    logs = look(given[5], "lse", ("f32",))
    sides = dict(read)
    q, k = sides["q"], sides["k"]
    starts = [look(one, name, ("s32",)) for one, name in zip(given[6:8], NAMES, strict=True)]
    for name, one, side in zip(NAMES, starts, (q, k), strict=True):
        check_starts(name, one, starts[0], side)
    for name in ("o", "do"):
        require(name, sides[name], (*q.shape[:3], sides["v"].shape[3]), q.type, ", as queries and values are")
    check_extents("lse", logs, q.shape[1:3])
    check_dense("lse", logs)
    check_gpu(read[0], [*read[1:], ("lse", logs)])
    sequences = starts[0].shape[0] - 1
    slopes, sinks = numbers_of_heads(given[8:], read[0])
    if any(0 in one.shape for one in sides.values()) or not sequences:
        return Call([None if one is None else filled(one, tuple(one.shape), 0.0) for one in (*given[:3], given[9])])
    made = [None if one is None else empty(one, tuple(one.shape)) for one in (*given[:3], given[9])]
    dsinks = None if made[3] is None else look(made[3], "dsinks", ("f32",))
    results = [(name, heads_first(look(one, name), name)) for name, one in zip(("dq", "dk", "dv"), made, strict=False)]
    check(read, results)
    size, mean = q.shape[3], -(-q.shape[2] // sequences)
    rows = wgmma_attention_backward.choose(size, q.type, causal, bool(window), mean).rows
    counts = wgmma_attention_backward.packed_workspace(q.shape, k.shape, sequences, rows)
    memory = np.zeros(sum(counts), np.uint32) if logs.gpu is None else None
    parts: list[Any] = [0 if memory is None else memory[a:b] for a, b in pairwise(accumulate([0, *counts]))]
    if memory is not None:
        parts = [parts[0].view(np.uint8), parts[1], *(one.view(np.float32) for one in parts[2:5]), parts[5]]
    views: dict[str, Any] = {name: one.view() for name, one in [*read, *results]}
    views |= given_of_heads((slopes, sinks, dsinks), ("slopes", "sinks", "dsinks"))
    backward = wgmma_attention_backward.Backward(**views, lse=argument(logs), softcap=softcap)
    both = argument(starts[0]), argument(starts[1])
    launches = wgmma_attention_backward.differentiate_packed(backward, both, sequences, parts, causal, window, ordered)
    arrays = [*sides.values(), logs, *starts, slopes, sinks, *(one for _, one in results), dsinks]
    names = "q k v o do lse qs ks slopes sinks dq dk dv dsinks maps owners sums offsets totals turns"
    numbers = {name: number for number, name in enumerate(names.split())}
    order = "q do dq k v dk dv o do lse qs ks maps owners sums offsets totals turns"
    orders = [([*range(10), *GRADIENT_STARTS, *GRADIENT_MEMORY], order)] * 4
    if slopes is not None:
        orders = [([*parameters, SLOPES], f"{order} slopes") for parameters, order in orders]
    if sinks is not None:
        orders.append(([*range(4)], "offsets totals sinks dsinks"))
    steps = [
        BoundLaunch(launch, numbered(parameters, [numbers[name] for name in order.split()]))
        for launch, (parameters, order) in zip(launches, orders, strict=True)
    ]
    return Call(made, steps, arrays, scratch=[4 * count for count in counts])


def heads_first(one: Matrix, name: str) -> Matrix:
    """An array of length × heads × head size as the kernel takes it: with heads first, in a batch of one."""
    if len(one.shape) != 3:
        raise ValueError(f"`{name}` has {len(one.shape)} dimensions: packed sequences are length × heads × head size")
    (length, heads, size), (row, head, step) = one.shape, one.strides
    turned = one.array.transpose(1, 0, 2)[None] if one.gpu is None else one.array
    strides = max(row * length, head * heads), head, row, step
    return Matrix(one.address, (1, heads, length, size), strides, one.type, one.gpu, turned)


def check_starts(name: str, one: Matrix, first: Matrix, rows: Matrix) -> None:
    """Whether the kernels can read where sequences start; numbers on the host must be those of sequences."""
    if len(one.shape) != 1 or not one.shape[0] or one.shape != first.shape:
        raise ValueError(f"`{name}` is {one.shape}: it has one number more than there are sequences")
    check_gpu(("q", rows), [(name, one)])
    if one.shape[0] > 1 and one.strides != (1,):
        raise ValueError(f"elements of `{name}` have gaps: pass a contiguous array")
    if one.gpu is None:
        numbers = [0, *one.array.tolist(), rows.shape[2]]
        if any(low > high for low, high in pairwise(numbers)):
            raise ValueError(f"`{name}` decreases, or is not between 0 and {rows.shape[2]}, the length of the array")


def _of_tensors(
    q: Array,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    causal: bool = False,
    window: int = 0,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
) -> tuple[Any, ...]:
    arrays = q, k, v, cu_seqlens_q, cu_seqlens_k, alibi_slopes, sinks
    return tuple(_calls.compute(arrays, (None, None), (causal, window, softcap)))


def _backward_of_tensors(
    do: Array,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    causal: bool = False,
    window: int = 0,
    ordered: bool = False,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
) -> list[Any]:
    arrays = q, k, v, o, do, lse, cu_seqlens_q, cu_seqlens_k, alibi_slopes, sinks
    found = _backward.compute(arrays, FOUR, (causal, window, ordered, softcap))
    return [one for one in found if one is not None]


def _keep_for_gradients(ctx: Context, inputs: Sequence[object], output: Sequence[Tensor]) -> None:
    q, k, v, queries, keys, ctx.causal, ctx.window, ctx.softcap, slopes, sinks = inputs
    ctx.save_for_backward(q, k, v, *output, queries, keys, slopes, sinks)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Context, do: Tensor | None, _: object) -> tuple[object, ...]:
    if do is None:
        return (None,) * 10
    *kept, queries, keys, slopes, sinks = ctx.saved_tensors
    how = ctx.causal, ctx.window, is_ordered(), ctx.softcap
    *found, of_sinks = once(differentiate, (do.contiguous(), *kept), (queries, keys), (slopes, sinks), how)
    return *found, *(None,) * 6, of_sinks


_calls = Calls(
    prepare_packed,
    Operator(
        "packed_attention",
        SCHEMA,
        _of_tensors,
        lambda q, k, v, *others: (q.new_empty((*q.shape[:2], v.shape[2])), empty(q, (q.shape[1], q.shape[0]), "f32")),
        Gradient(_differentiate, _keep_for_gradients),
    ),
)
_backward = Calls(
    prepare_packed_gradients,
    Operator(
        "packed_attention_backward",
        BACKWARD,
        _backward_of_tensors,
        lambda do, q, k, v, o, lse, queries, keys, *others: [
            one.new_empty(one.shape) for one in (q, k, v, *others[5:]) if one is not None
        ],
    ),
)
