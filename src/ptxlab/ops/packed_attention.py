"""Attention of packed sequences, of unequal lengths one after the other, and its gradients.

For torch both are operators, so that `torch.compile` knows them, and the one is the gradient of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ptxlab.kernels import wgmma_attention, wgmma_attention_backward
from ptxlab.ops import jax_functions
from ptxlab.ops.attention_launches import check, check_nothing, counter, nothing, numbered
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import check_dense, check_extents, check_gpu, require
from ptxlab.ops.matrices import Matrix, argument, empty, filled, look
from ptxlab.ops.operators import Gradient, Operator, is_ordered, is_traced, once
from ptxlab.ops.xla import is_jax

SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, bool causal=False, int window=0)"
    " -> (Tensor, Tensor)"
)
BACKWARD = (
    "(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor cu_seqlens_q, Tensor cu_seqlens_k,"
    " bool causal=False, int window=0, bool ordered=False) -> (Tensor, Tensor, Tensor)"
)
NAMES = ("cu_seqlens_q", "cu_seqlens_k")
LOGS, STARTS, MEMORY = 11, (12, 13), (17, 16)
"""Parameters of the kernels: log-sum-exps, where sequences start, memory for maps and for tiles."""
GRADIENT_STARTS, GRADIENT_MEMORY = (20, 21), range(23, 29)  # the same of the gradients' kernels, after ten arrays


def attend(given: Sequence[Any], starts: tuple[Any, Any], out: Any, how: tuple[bool, int], return_lse: bool) -> Any:
    """The answer, and log-sum-exps if they are asked for."""
    arrays = *given, *both(starts)
    if out is None and is_traced():
        found = _calls.operator(*arrays, *how)
    else:
        found = _calls(arrays, (out, None) if return_lse else (out,), how)
        if found is None:
            found = _calls.operator.differentiate(*arrays, *how)
    return tuple(found) if return_lse else found[0]


def differentiate(given: Sequence[Any], starts: tuple[Any, Any], how: tuple[bool, int, bool]) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v; given are that of the answer, q, k, v, the answer and log-sum-exps."""
    do, q, k, v, o, lse = given
    if is_traced():
        found = _backward.operator(*given, *both(starts), *how)
    elif is_jax(q.__class__):
        return jax_functions.packed_attention_backward(given, both(starts), how)
    else:
        found = _backward((q, k, v, o, do, lse, *both(starts)), (None,) * 3, how)
        if found is None:
            found = _backward.operator.differentiate(*given, *both(starts), *how)
    dq, dk, dv = found
    return dq, dk, dv


def both(starts: tuple[Any, Any]) -> tuple[Any, Any]:
    """Where sequences start among the queries and among the keys, which may be the same."""
    queries, keys = starts
    if queries is None:
        raise ValueError("`cu_seqlens_k` goes with `cu_seqlens_q`")
    return queries, queries if keys is None else keys


def prepare_packed(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int]) -> Call:
    """Attention over sequences of unequal lengths one after the other; the last two arrays say where they start."""
    q, (causal, window) = given[0], how
    read = [(name, _heads_first(look(one, name), name)) for name, one in zip("qkv", given, strict=False)]
    starts = [look(one, name, ("s32",)) for one, name in zip(given[3:], NAMES, strict=True)]
    made = empty(q, (*q.shape[:-1], given[2].shape[-1])) if written[0] is None else written[0]
    target = _heads_first(look(made, "out"), "out")
    rows = q.shape[1], q.shape[0]
    for name, one, side in zip(NAMES, starts, read, strict=False):
        _check_starts(name, one, starts[0], side[1])
    if any(0 in one.shape for _, one in read):
        check_nothing(read, target)
        return nothing(given, [made, *written[1:]], rows)
    check(read, [("out", target)])
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
    )
    arrays = [*(one for _, one in read), *starts, target, *logs]
    parameters = [0, 1, 2, *STARTS, 3, *([LOGS] if logs else []), *MEMORY]
    steps = [BoundLaunch(launch, numbered(parameters)) for launch in launches]
    return Call(results, steps, arrays, workspace=counter(q, gpu), scratch=[4 * count for count in counts])


def prepare_packed_gradients(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int, bool]) -> Call:
    """The gradients of packed sequences; given are q, k, v, o, do, log-sum-exps, and where sequences start."""
    causal, window, ordered = how
    five = ("q", "k", "v", "o", "do")
    read = [(name, _heads_first(look(one, name), name)) for name, one in zip(five, given, strict=False)]
    logs = look(given[5], "lse", ("f32",))
    sides = dict(read)
    q, k = sides["q"], sides["k"]
    starts = [look(one, name, ("s32",)) for one, name in zip(given[6:], NAMES, strict=True)]
    for name, one, side in zip(NAMES, starts, (q, k), strict=True):
        _check_starts(name, one, starts[0], side)
    for name in ("o", "do"):
        require(name, sides[name], (*q.shape[:3], sides["v"].shape[3]), q.type, ", as queries and values are")
    check_extents("lse", logs, q.shape[1:3])
    check_dense("lse", logs)
    check_gpu(read[0], [*read[1:], ("lse", logs)])
    sequences = starts[0].shape[0] - 1
    if any(0 in one.shape for one in sides.values()) or not sequences:
        return Call([filled(one, tuple(one.shape), 0.0) for one in given[:3]])
    made = [empty(one, tuple(one.shape)) for one in given[:3]]
    results = [(name, _heads_first(look(one, name), name)) for name, one in zip(("dq", "dk", "dv"), made, strict=True)]
    check(read, results)
    size, mean = q.shape[3], -(-q.shape[2] // sequences)
    rows = wgmma_attention_backward.choose(size, q.type, causal, bool(window), mean).rows
    counts = wgmma_attention_backward.packed_workspace(q.shape, k.shape, sequences, rows)
    memory = np.zeros(sum(counts), np.uint32) if logs.gpu is None else None
    parts: list[Any] = [0 if memory is None else memory[a:b] for a, b in pairwise(accumulate([0, *counts]))]
    if memory is not None:
        parts = [parts[0].view(np.uint8), parts[1], *(one.view(np.float32) for one in parts[2:5]), parts[5]]
    views: dict[str, Any] = {name: one.view() for name, one in [*read, *results]}
    launches = wgmma_attention_backward.differentiate_packed(
        **views,
        lse=argument(logs),
        starts=(argument(starts[0]), argument(starts[1])),
        sequences=sequences,
        memory=tuple(parts),
        causal=causal,
        window=window,
        ordered=ordered,
    )
    arrays = [*sides.values(), logs, *starts, *(one for _, one in results)]
    numbers = {name: number for number, name in enumerate("q k v o do lse qs ks dq dk dv".split())}
    order = "q do dq k v dk dv o do lse qs ks".split()
    changing = [*range(10), *GRADIENT_STARTS, *GRADIENT_MEMORY]
    which = [*(numbers[name] for name in order), *range(len(arrays), len(arrays) + len(GRADIENT_MEMORY))]
    steps = [BoundLaunch(launch, numbered(changing, which)) for launch in launches]
    return Call(made, steps, arrays, scratch=[4 * count for count in counts])


def _heads_first(one: Matrix, name: str) -> Matrix:
    """An array of length × heads × head size as the kernel takes it: with heads first, in a batch of one."""
    if len(one.shape) != 3:
        raise ValueError(f"`{name}` has {len(one.shape)} dimensions: packed sequences are length × heads × head size")
    (length, heads, size), (row, head, step) = one.shape, one.strides
    turned = one.array.transpose(1, 0, 2)[None] if one.gpu is None else one.array
    strides = max(row * length, head * heads), head, row, step
    return Matrix(one.address, (1, heads, length, size), strides, one.type, one.gpu, turned)


def _check_starts(name: str, one: Matrix, first: Matrix, rows: Matrix) -> None:
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
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, causal: bool = False, window: int = 0
) -> tuple[Any, ...]:
    return tuple(_calls.compute((q, k, v, cu_seqlens_q, cu_seqlens_k), (None, None), (causal, window)))


def _backward_of_tensors(
    do: Any,
    q: Any,
    k: Any,
    v: Any,
    o: Any,
    lse: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    causal: bool = False,
    window: int = 0,
    ordered: bool = False,
) -> tuple[Any, ...]:
    arrays = q, k, v, o, do, lse, cu_seqlens_q, cu_seqlens_k
    return tuple(_backward.compute(arrays, (None,) * 3, (causal, window, ordered)))


def _keep_for_gradients(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, queries, keys, ctx.causal, ctx.window = inputs
    ctx.save_for_backward(q, k, v, *output, queries, keys)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, do: Any, _: Any) -> tuple[Any, ...]:
    if do is None:
        return (None,) * 7
    *kept, queries, keys = ctx.saved_tensors
    how = ctx.causal, ctx.window, is_ordered()
    return *once(differentiate, (do.contiguous(), *kept), (queries, keys), how), *(None,) * 4


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
        lambda do, q, k, v, *others: tuple(one.new_empty(one.shape) for one in (q, k, v)),
    ),
)
