"""Calls of attention, of packed sequences and of its gradients: what is checked, and what is launched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ptxlab.kernels import wgmma_attention, wgmma_attention_backward
from ptxlab.kernels.functions.calls import Call, Step
from ptxlab.kernels.functions.checks import (
    Named,
    check_apart,
    check_dense,
    check_extents,
    check_gpu,
    check_result,
    require,
)
from ptxlab.kernels.functions.matrices import ROW, Matrix, argument, empty, filled, look
from ptxlab.kernels.functions.ready import Workspace

COUNTER, LOGS, PACKED_LOGS, STARTS, MEMORY = 4, 12, 11, (12, 13), (17, 16)
"""Parameters of the kernels: what counts tiles, log-sum-exps, where sequences start, memory for maps and for tiles."""


def counter(like: Any, gpu: int | None) -> Workspace | None:
    """What counts the tiles that blocks have taken."""
    return None if gpu is None else Workspace("attention", like, gpu, {COUNTER: ROW})


def numbered(parameters: Sequence[int], arrays: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """Each parameter with the number of its array: the first has the first one unless others are given."""
    return list(zip(parameters, range(len(parameters)) if arrays is None else arrays, strict=True))


def _nothing(given: Sequence[Any], written: Sequence[Any], rows: tuple[int, ...]) -> Call:
    """Where there are no keys, or no queries: every row attends to none."""
    q = given[0]
    answer = filled(q, tuple(q.shape), 0.0, out=written[0])
    return Call([answer, *(filled(q, rows, -math.inf, "f32") for _ in written[1:])])


def _check_nothing(read: Sequence[Named], target: Matrix) -> None:
    """Whether arrays go together of which one has no elements, as the kernels check it of others."""
    (_, q), (_, k), (_, v) = read
    check_gpu(read[0], [*read[1:], ("out", target)])
    if (
        len(q.shape) != 4
        or len(k.shape) != 4
        or k.shape != v.shape
        or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3])
    ):
        shapes = f"queries {q.shape}, keys {k.shape}, values {v.shape}"
        raise ValueError(f"arrays are batch × heads × length × head size, and these do not fit: {shapes}")
    if not q.shape[3] or q.type != k.type or q.type != v.type:
        raise ValueError("queries, keys and values are of one type, and heads have elements")
    require("out", target, q.shape, q.type)


def prepare(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int]) -> Call:
    """Attention; `written` is the answer, and log-sum-exps if they are asked for."""
    q, (causal, window) = given[0], how
    read = [(name, look(one, name)) for name, one in zip("qkv", given, strict=True)]
    made = empty(q, tuple(q.shape)) if written[0] is None else written[0]
    target = look(made, "out")
    if any(0 in one.shape for _, one in read):
        _check_nothing(read, target)
        return _nothing(given, [made, *written[1:]], tuple(q.shape[:-1]))
    check(read, [("out", target)])
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
    )
    arrays = [*(one for _, one in read), target, *logs]
    step = Step(launch, numbered([0, 1, 2, 3, LOGS][: len(arrays)]))
    return Call([made, lse][: len(written)], [step], arrays, workspace=counter(q, gpu))


def prepare_packed(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int]) -> Call:
    """Attention over sequences of unequal lengths one after the other; the last two arrays say where they start."""
    q, (causal, window) = given[0], how
    names = ("cu_seqlens_q", "cu_seqlens_k")
    read = [(name, _heads_first(look(one, name), name)) for name, one in zip("qkv", given, strict=False)]
    starts = [look(one, name, ("s32",)) for one, name in zip(given[3:], names, strict=True)]
    made = empty(q, tuple(q.shape)) if written[0] is None else written[0]
    target = _heads_first(look(made, "out"), "out")
    rows = q.shape[1], q.shape[0]
    for name, one, side in zip(names, starts, read, strict=False):
        _check_starts(name, one, starts[0], side[1])
    if any(0 in one.shape for _, one in read):
        _check_nothing(read, target)
        return _nothing(given, [made, *written[1:]], rows)
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
    parameters = [0, 1, 2, *STARTS, 3, *([PACKED_LOGS] if logs else []), *MEMORY]
    steps = [Step(launch, numbered(parameters)) for launch in launches]
    return Call(results, steps, arrays, workspace=counter(q, gpu), scratch=[4 * count for count in counts])


def prepare_gradients(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int, bool]) -> Call:
    """The gradients of q, k and v, by three kernels; given are these, the answer, its gradient and log-sum-exps."""
    lse, (causal, window, ordered) = given[-1], how
    read = [(name, look(one, name)) for name, one in zip(("q", "k", "v", "o", "do"), given, strict=False)]
    logs = look(lse, "lse", ("f32",))
    sides = dict(read)
    made = [empty(one, tuple(one.shape)) for one in given[:3]]
    for name in ("o", "do"):
        require(name, sides[name], sides["q"].shape, sides["q"].type, ", as `q` is")
    check_extents("lse", logs, sides["q"].shape[:3])
    check_dense("lse", logs)
    check_gpu(read[0], [*read[1:], ("lse", logs)])
    if any(0 in one.shape for one in sides.values()):
        _check_nothing(read[:3], sides["q"])
        return Call([filled(one, tuple(one.shape), 0.0) for one in given[:3]])
    results = [(name, look(one, name)) for name, one in zip(("dq", "dk", "dv"), made, strict=True)]
    check(read, results)
    gpu, (_, _, queries, size) = logs.gpu, sides["q"].shape
    rows = wgmma_attention_backward.choose(size, sides["q"].type, causal, bool(window), queries).rows
    counts = wgmma_attention_backward.workspace(sides["q"].shape, rows)
    memory = np.zeros(sum(counts), np.float32) if gpu is None else None
    parts = [0 if memory is None else memory[a:b] for a, b in pairwise(accumulate([0, *counts]))]
    views: dict[str, Any] = {name: one.view() for name, one in [*read, *results]}
    launches = wgmma_attention_backward.differentiate(
        **views,
        lse=argument(logs),
        **dict[str, Any](zip(("sums", "offsets", "totals", "turns"), parts, strict=True)),
        causal=causal,
        window=window,
        ordered=ordered,
    )
    numbers = {name: number for number, name in enumerate("q k v o do lse dq dk dv sums offsets totals turns".split())}
    orders = (
        (range(7), "o do lse offsets totals sums turns"),
        ([*range(9), 16], "q k v do dk dv sums offsets totals turns"),
        (range(2), "sums dq"),
    )
    steps = [
        Step(launch, numbered(parameters, [numbers[name] for name in names.split()]))
        for launch, (parameters, names) in zip(launches, orders, strict=True)
    ]
    arrays = [*sides.values(), logs, *(one for _, one in results)]
    return Call(made, steps, arrays, scratch=[4 * count for count in counts])


def check(read: Sequence[Named], written: Sequence[Named]) -> None:
    """Whether the kernels can read and write all of them, where they are."""
    check_gpu(read[0], [*read[1:], *written])
    for name, one in (*read, *written):
        steps = [2 * step % ROW for extent, step in zip(one.shape[:-1], one.strides, strict=False) if extent > 1]
        if one.strides[-1:] != (1,) or any(steps) or one.address % ROW:
            raise ValueError(f"`{name}` is not in rows that begin at multiples of {ROW} bytes: pass a contiguous array")
    for name, one in written:
        check_result(name, one)
        check_apart(one, read, name)


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
