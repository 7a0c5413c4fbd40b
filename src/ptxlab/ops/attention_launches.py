"""Calls of attention and of its gradients: what is checked, and what is launched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ptxlab.device.array_types import DTYPES
from ptxlab.device.arrays import Array
from ptxlab.kernels import wgmma_attention, wgmma_attention_backward
from ptxlab.ops.calls import BoundLaunch, Call
from ptxlab.ops.checks import (
    Named,
    check_apart,
    check_dense,
    check_extents,
    check_gpu,
    check_result,
    require,
)
from ptxlab.ops.matrices import ROW, Matrix, argument, dense, empty, empty_like, filled, look
from ptxlab.ops.ready import Workspace

COUNTER, LOGS, OF_HEADS = 4, 12, (13, 14)  # parameters of the kernel: what counts tiles, log-sum-exps, slopes, sinks
SLOPES = 18  # the same of the gradients' kernel
AT_ONCE, PARTS = 11, 10  # what counts parts in the kernel that computes all gradients, and memory for them


def counter(like: object, gpu: int | None) -> Workspace | None:
    """What counts the tiles that blocks have taken."""
    return None if gpu is None else Workspace("attention", like, gpu, {COUNTER: ROW})


def numbered(parameters: Sequence[int], arrays: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """Each parameter with the number of its array: the first has the first one unless others are given."""
    return list(zip(parameters, range(len(parameters)) if arrays is None else arrays, strict=True))


def nothing(given: Sequence[Array], written: Sequence[Array], rows: tuple[int, ...]) -> Call:
    """Where there are no keys, or no queries: every row attends to none."""
    q, _, v, *_ = given
    output = filled(q, (*q.shape[:-1], v.shape[-1]), 0.0, out=written[0])
    return Call([output, *(filled(q, rows, -math.inf, "f32") for _ in written[1:])])


def check_nothing(read: Sequence[Named], target: Matrix, type: str = "") -> None:
    """Whether arrays go together of which one has no elements, as the kernels check it of others."""
    (_, q), (_, k), (_, v) = read
    check_gpu(read[0], [*read[1:], ("out", target)])
    if (
        len(q.shape) != 4
        or len(k.shape) != 4
        or k.shape[:3] != v.shape[:3]
        or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3])
    ):
        shapes = f"queries {q.shape}, keys {k.shape}, values {v.shape}"
        raise ValueError(f"arrays are batch × heads × length × head size, and these do not fit: {shapes}")
    if not q.shape[3] or not v.shape[3] or q.type != k.type or q.type != v.type:
        raise ValueError("queries, keys and values are of one type, and heads have elements")
    require("out", target, (*q.shape[:3], v.shape[3]), type or q.type)


def numbers_of_heads(arrays: Sequence[Array], q: Named) -> list[Matrix | None]:
    """Slopes and sinks, a number of f32 for each head of the queries, where they are given."""
    found: list[Matrix | None] = []
    for name, one in zip(("alibi_slopes", "sinks"), arrays, strict=False):
        number = None if one is None else look(one, name, ("f32",))
        if number is not None:
            check_extents(name, number, q[1].shape[1:2])
            check_dense(name, number)
            check_gpu(q, [(name, number)])
        found.append(number)
    return found


def given_of_heads(numbers: Sequence[Matrix | None], names: Sequence[str] = ("slopes", "sinks")) -> dict[str, Any]:
    """These as launches take them."""
    return {name: None if one is None else argument(one) for name, one in zip(names, numbers, strict=False)}


def prepare(given: Sequence[Any], written: Sequence[Any], how: Sequence[Any]) -> Call:
    """Attention; `written` is the answer, and log-sum-exps if they are asked for.

    After queries, keys and values may come slopes and sinks, each of them or None; after the masks the soft cap.
    """
    q, (causal, window, *caps) = given[0], how
    read = [(name, look(one, name)) for name, one in zip("qkv", given, strict=False)]
    made = answer_of(q, given[2]) if written[0] is None else written[0]
    target = look(made, "out")
    if any(0 in one.shape for _, one in read):
        check_nothing(read, target)
        return nothing(given, [made, *written[1:]], tuple(q.shape[:-1]))
    check(read, [("out", target)])
    of_heads = numbers_of_heads(given[3:], read[0])
    lse = empty(q, tuple(q.shape[:3]), "f32") if len(written) > 1 else None
    logs = [] if lse is None else [look(lse, "lse", ("f32",))]
    gpu = target.gpu
    views = dict(zip("qkvo", (one.view() for _, one in [*read, ("out", target)]), strict=True))
    launch = wgmma_attention.attend(
        **views,
        counter=np.zeros(1, np.uint32) if gpu is None else 0,
        causal=causal,
        window=window,
        lse=argument(logs[0]) if logs else None,
        softcap=caps[0] if caps else 0.0,
        **given_of_heads(of_heads),
    )
    arrays = [*(one for _, one in read), *of_heads, target, *logs]
    parameters = [0, 1, 2, *OF_HEADS[: len(of_heads)], 3, LOGS]
    pairs = [(parameter, at) for at, (parameter, one) in enumerate(zip(parameters, arrays, strict=False)) if one]
    step = BoundLaunch(launch, pairs)
    return Call([made, lse][: len(written)], [step], arrays, workspace=counter(q, gpu))


def answer_of(q: Array, v: Array) -> Any:
    """Space for the answer, in memory as the queries are; its heads are as long as those of the values."""
    return empty_like(q, v.shape[-1]) if q.shape and v.shape else empty_like(q)


def prepare_gradients(given: Sequence[Any], written: Sequence[Any], how: Sequence[Any]) -> Call:
    """The gradients of q, k and v, by three kernels; given are these, the answer, its gradient and log-sum-exps.

    After these may come slopes and sinks, and after other options the soft cap; sinks have a gradient, too.
    """
    lse, (causal, window, ordered, *caps) = given[5], how
    read = [(name, look(one, name)) for name, one in zip(("q", "k", "v", "o", "do"), given, strict=False)]
    logs = look(lse, "lse", ("f32",))
    sides = dict(read)
    made = [empty_like(one) for one in given[:3]]
    for name in ("o", "do"):
        shape = *sides["q"].shape[:3], *sides["v"].shape[3:]
        require(name, sides[name], shape, sides["q"].type, ", as queries and values are")
    check_extents("lse", logs, sides["q"].shape[:3])
    check_dense("lse", logs)
    check_gpu(read[0], [*read[1:], ("lse", logs)])
    of_heads = numbers_of_heads(given[6:], read[0])
    if any(0 in one.shape for one in sides.values()):
        check_nothing(read[:3], sides["o"])
        zeros = [None if one is None else filled(one, tuple(one.shape), 0.0) for one in (*given[:3], *given[7:])]
        return Call(zeros)
    sinks = of_heads[1] if of_heads else None
    of_sinks = None if sinks is None else empty_like(given[7])
    dsinks = None if of_sinks is None else look(of_sinks, "dsinks", ("f32",))
    results = [(name, look(one, name)) for name, one in zip(("dq", "dk", "dv"), made, strict=True)]
    check(read, results)
    views: dict[str, Any] = {name: one.view() for name, one in [*read, *results]}
    wgmma_attention_backward.check(**{name: views[name] for name in "qkvo"}, causal=causal, window=window)
    gpu, (_, _, queries, size) = logs.gpu, sides["q"].shape
    plan = wgmma_attention_backward.choose(size, sides["q"].type, causal, bool(window), queries)
    kernels = wgmma_attention_backward
    at_once = 0 if sinks is not None else kernels.share_at_once(sides["q"].shape, sides["k"].shape, plan)
    shares = at_once or kernels.share(sides["q"].shape, sides["k"].shape, plan, window)
    split = [divided(one, shares) for _, one in results[1:]] if shares > 1 else []
    halves = [2 * math.prod(one.shape) for one in split]
    views |= {f"{name}_parts": one.view() for (name, _), one in zip(results[1:], split, strict=False)}
    views |= {"lse": argument(logs), "softcap": caps[0] if caps else 0.0}
    views |= given_of_heads([*of_heads, dsinks] if of_heads else [], ("slopes", "sinks", "dsinks"))
    backward = kernels.Backward(**views)
    arrays = [*sides.values(), logs, *of_heads, *(one for _, one in results)]
    names = "q k v o do lse slopes sinks dq dk dv dsinks" if of_heads else "q k v o do lse dq dk dv"
    if of_heads:
        arrays.append(dsinks)
        made.append(of_sinks)
    parts = " dk_parts dv_parts" if split else ""
    stored, has_slopes = parts or " dk dv", bool(of_heads) and of_heads[0] is not None
    if at_once:
        count, counters = kernels.parts_at_once(sides["q"].shape, sides["k"].shape, plan)
        own = (np.zeros(count, np.float32), np.zeros(counters, np.uint32)) if gpu is None else (0, 0)
        launch = kernels.differentiate_at_once(backward, own[0], own[1], replace(plan, shares=at_once))
        order = dict(enumerate(f"q k v do{stored} dq o do lse".split()))
        order |= {AT_ONCE + 1: "slopes"} if has_slopes else {}
        order |= dict(enumerate("dk_parts dv_parts dk dv".split(), AT_ONCE + 2)) if split else {}
        numbers = {name: number for number, name in enumerate(f"{names}{parts}".split())}
        steps = [BoundLaunch(launch, [(parameter, numbers[name]) for parameter, name in order.items()])]
        sizes = {AT_ONCE: 4 * counters}, {PARTS: 4 * count}
        workspace = None if gpu is None else Workspace("attention_backward", given[0], gpu, *sizes)
        return Call(made, steps, arrays, workspace=workspace, scratch=halves)
    counts = kernels.workspace(sides["q"].shape, plan.rows)
    memory = np.zeros(sum(counts), np.float32) if gpu is None else None
    each = [0 if memory is None else memory[a:b] for a, b in pairwise(accumulate([0, *counts]))]
    launches = kernels.differentiate(backward, each, causal, window, ordered)
    numbers = {name: number for number, name in enumerate(f"{names}{parts} sums offsets totals turns".split())}
    orders: list[tuple[Sequence[int], str]] = [
        (range(7), "o do lse offsets totals sums turns"),
        ([*range(9), 16], f"q k v do{stored} sums offsets totals turns"),
        (range(2), "sums dq"),
    ]
    if has_slopes:
        orders[1] = ([*orders[1][0], SLOPES], f"{orders[1][1]} slopes")
    orders += [(range(4), "dk_parts dv_parts dk dv")] if split else []
    orders += [] if sinks is None else [(range(4), "offsets totals sinks dsinks")]
    steps = [
        BoundLaunch(launch, numbered(parameters, [numbers[name] for name in names.split()]))
        for launch, (parameters, names) in zip(launches, orders, strict=True)
    ]
    return Call(made, steps, arrays, scratch=[*halves, *(4 * count for count in counts)])


def in_rows(tensor: Any) -> Any:
    """A tensor that the kernels can read, without a copy where it is one."""
    batch, heads, rows, last = tensor.stride()
    is_aligned = not (batch | heads | rows | tensor.storage_offset()) % (ROW // tensor.element_size())
    return tensor if last == 1 and is_aligned else tensor.contiguous()


def divided(one: Matrix, shares: int) -> Matrix:
    """Memory for so many times its heads: on a GPU of no address yet, which only has to be a multiple of 16."""
    batch, heads, keys, size = one.shape
    shape = batch, heads * shares, keys, size
    array = np.zeros(shape, DTYPES[one.type]) if one.gpu is None else one.array
    return Matrix(one.address, shape, dense(shape), one.type, one.gpu, array)


def check(read: Sequence[Named], written: Sequence[Named]) -> None:
    """Whether the kernels can read and write all of them, where they are."""
    check_gpu(read[0], [*read[1:], *written])
    for name, one in (*read, *written):
        steps = [one.size * step % ROW for extent, step in zip(one.shape[:-1], one.strides, strict=False) if extent > 1]
        if one.strides[-1:] != (1,) or any(steps) or one.address % ROW:
            raise ValueError(f"`{name}` is not in rows that begin at multiples of {ROW} bytes: pass a contiguous array")
    for name, one in written:
        check_result(name, one)
        check_apart(one, read, name)
