"""Attention over sequences of unequal lengths, packed one after the other: its launches, and its operator of torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ptxlab.gpu.arrays import is_torch
from ptxlab.kernels import wgmma_attention
from ptxlab.kernels.functions.attention_launches import (
    address_of,
    argument,
    check,
    complete,
    counter_of,
    form,
    keep,
    space,
)
from ptxlab.kernels.functions.calls import Operator
from ptxlab.kernels.functions.matrices import ROW, Matrix, empty, look, stream_of
from ptxlab.kernels.functions.ready import Ready

SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, bool causal=False, int window=0)"
    " -> (Tensor, Tensor)"
)
_COUNTER, _LOGS, _STARTS, _MEMORY = 4, 11, (12, 13), (16, 17)  # parameters of both kernels
_ready: dict[Any, Both] = {}


class Both(NamedTuple):
    """Both launches, and how many numbers of 4 bytes they need memory for: tensor maps, and the list of tiles."""

    ready: list[Ready]
    counts: tuple[int, int]

    def overlaps(self, arrays: list[int]) -> bool:
        """Whether the result would be written over what is read."""
        one = self.ready[0]
        return one.overlaps(arrays + [0] * (len(one.bytes) - len(arrays)))

    def start(self, arrays: Sequence[int], logs: list[int], starts: Sequence[int], memory: int, stream: int) -> None:
        """Start them; all but the stream are addresses."""
        maps, _ = self.counts
        addresses = [*arrays, *logs, *starts, memory + 4 * maps, memory]
        for one in self.ready:
            one.start(addresses, stream)


def attend_packed(
    given: Sequence[Any], starts: Sequence[Any], out: Any, causal: bool, window: int, logs: bool
) -> tuple[Any, Any]:
    """The answer, a new array or `out`, and the log-sum-exp of each row if it is asked for, heads × length."""
    q = given[0]
    lse = space(q, (q.shape[1], q.shape[0])) if logs and len(q.shape) == 3 else None
    if not all(is_torch(one.__class__) and one.is_cuda for one in (*given, *starts)):
        return _attend_first(given, starts, out, lse, causal, window, None), lse
    key = *map(form, (*given, *starts)), causal, window, logs, None if out is None else form(out)
    both = _ready.get(key)
    made = q.new_empty(q.shape) if out is None else out
    addresses = [one.data_ptr() for one in (*given, made)]
    is_odd = any(address % ROW for address in addresses)
    if both is None or is_odd or (out is not None and both.overlaps(addresses)):
        return _attend_first(given, starts, made, lse, causal, window, key), lse
    memory = space(q, (sum(both.counts),))
    logged = [] if lse is None else [lse.data_ptr()]
    stream = stream_of(q, both.ready[0].gpu)
    both.start(addresses, logged, [one.data_ptr() for one in starts], memory.data_ptr(), stream)
    return made, lse


def _attend_first(
    given: Sequence[Any], starts: Sequence[Any], out: Any, lse: Any, causal: bool, window: int, key: Any
) -> Any:
    """A call that is not ready yet, from top to bottom."""
    q = given[0]
    sides = [_heads_first(look(one, name), name) for one, name in zip(given, "qkv", strict=True)]
    places = [look(one, name, ("s32",)) for one, name in zip(starts, ("cu_seqlens_q", "cu_seqlens_k"), strict=True)]
    made = empty(q, tuple(q.shape)) if out is None else out
    target = _heads_first(look(made, "out"), "out")
    check(dict(zip("qkv", sides, strict=True)), {"out": target})
    for name, one, rows in zip(("cu_seqlens_q", "cu_seqlens_k"), places, (sides[0], sides[1]), strict=True):
        _check_starts(name, one, places[0], rows)
    views = dict(zip("qkvo", (one.view() for one in (*sides, target)), strict=True))
    wgmma_attention.check(**views, causal=causal, window=window)
    if places[0].shape[0] < 2:
        return made
    gpu, counts = target.gpu, wgmma_attention.workspace(sides[0].shape, places[0].shape[0] - 1)
    memory = space(q, (sum(counts),))
    host = argument(memory, None).view(np.uint32) if gpu is None else None
    launches = wgmma_attention.attend_packed(
        **views,
        counter=np.zeros(1, np.uint32) if gpu is None else 0,
        starts=(0, 0) if host is None else (places[0].array, places[1].array),
        sequences=places[0].shape[0] - 1,
        memory=(0, 0) if host is None else (host[counts[0] :], host[: counts[0]].view(np.uint8)),
        causal=causal,
        window=window,
        lse=None if lse is None else argument(lse, gpu),
    )
    if gpu is None:
        for launch in launches:
            launch.run(device="cpu")
        return made
    logs = [] if lse is None else [_LOGS]
    changing = [*range(4), *logs, *_STARTS, *_MEMORY]
    bytes = [*(one.end - one.address for one in (*sides, target)), *[0] * (len(changing) - 4)]
    both = Both([Ready(one, gpu, changing, bytes, 3, lambda stream: counter_of(q, gpu, stream, _COUNTER))
                 for one in launches], counts)  # fmt: skip
    keep(_ready, key, both)
    addresses = [one.address for one in (*sides, target)]
    logged = [] if lse is None else [address_of(lse)]
    both.start(addresses, logged, [one.address for one in places], address_of(memory), stream_of(q, gpu))
    complete(q, gpu)
    return made


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
    if one.gpu != rows.gpu:
        raise ValueError(f"`{name}` is not where `q` is: on {'the host' if one.gpu is None else f'GPU {one.gpu}'}")
    if one.shape[0] > 1 and one.strides != (1,):
        raise ValueError(f"elements of `{name}` have gaps: pass a contiguous array")
    if one.gpu is None:
        numbers = [0, *one.array.tolist(), rows.shape[2]]
        if any(low > high for low, high in pairwise(numbers)):
            raise ValueError(f"`{name}` decreases, or is not between 0 and {rows.shape[2]}, the length of the array")


def describe(q: Any, k: Any, v: Any, *others: Any) -> Any:
    """What comes out, for `torch.compile`."""
    return q.new_empty(q.shape), space(q, (q.shape[1], q.shape[0]))


def of_tensors(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, causal: bool = False, window: int = 0
) -> Any:
    """The operator: `attention` of packed sequences, without `out`."""
    return attend_packed([q, k, v], [cu_seqlens_q, cu_seqlens_k], None, causal, window, True)


operator = Operator("packed_attention", SCHEMA, of_tensors, describe)
