"""Attention of e4m3 with scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxlab.device.arrays import Array
from ptxlab.kernels import wgmma_attention_fp8
from ptxlab.ops.attention_launches import LOGS, check, check_nothing, counter, nothing, numbered
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import scales_of
from ptxlab.ops.matrices import HALVES, argument, empty, look
from ptxlab.ops.operators import Operator, is_traced

NAMES = ("scale_q", "scale_k", "scale_v")
SCALES = (13, 14, 15)  # parameters of the kernel
SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor? scale_q, Tensor? scale_k, Tensor? scale_v, bool causal=False, int window=0)"
    " -> (Tensor, Tensor)"
)


def is_fp8(array: Array) -> bool:
    """Whether an array has elements of 8 bits."""
    return "float8" in str(getattr(array, "dtype", ""))


def attend(given: Sequence[object], out: Any, how: tuple[bool, int], return_lse: bool) -> Any:
    """The answer, and log-sum-exps if they are asked for; given are q, k, v and their scales."""
    if out is None and is_traced():
        found = _calls.operator(*given, *how)
    else:
        found = _calls.compute(given, (out, None) if return_lse else (out,), how)
    return tuple(found) if return_lse else found[0]


def prepare_fp8(given: Sequence[Array], written: Sequence[Array], how: tuple[bool, int]) -> Call:
    """Attention of e4m3, whose last three arrays are scales; the answer is bf16."""
    q, (causal, window) = given[0], how
    first = ("q", look(q, "q", ("e4m3", *HALVES)))
    scales = scales_of(first, [(name, one, (1,)) for name, one in zip(NAMES, given[3:], strict=True)])
    read = [first, *((name, look(one, name, ("e4m3",))) for name, one in zip("kv", given[1:3], strict=True))]
    made = empty(q, tuple(q.shape), "bf16") if written[0] is None else written[0]
    target = look(made, "out", ("bf16",))
    if any(0 in one.shape for _, one in read):
        check_nothing(read, target, "bf16")
        return nothing(given, [made, *written[1:]], tuple(q.shape[:-1]))
    check(read, [("out", target)])
    lse = empty(q, tuple(q.shape[:3]), "f32") if len(written) > 1 else None
    logs = [] if lse is None else [look(lse, "lse", ("f32",))]
    gpu = target.gpu
    named: dict[str, Any] = {name: one.view() for name, one in read}
    named |= {name: argument(scale) for name, scale in zip(NAMES, scales, strict=True)}
    launch = wgmma_attention_fp8.attend(
        **named,
        o=target.view(),
        counter=np.zeros(1, np.uint32) if gpu is None else 0,
        causal=causal,
        window=window,
        lse=argument(logs[0]) if logs else None,
    )
    arrays = [*(one for _, one in read), *scales, target, *logs]
    step = BoundLaunch(launch, numbered([0, 1, 2, *SCALES, 3, LOGS][: len(arrays)]))
    return Call([made, lse][: len(written)], [step], arrays, workspace=counter(q, gpu))


def _of_tensors(
    q: Array, k: Array, v: Array, scale_q: Array, scale_k: Array, scale_v: Array, causal: bool = False, window: int = 0
) -> tuple[object, ...]:
    return tuple(_calls.compute((q, k, v, scale_q, scale_k, scale_v), (None, None), (causal, window)))


_calls = Calls(
    prepare_fp8,
    Operator(
        "attention_fp8",
        SCHEMA,
        _of_tensors,
        lambda q, *others: (empty(q, q.shape, "bf16"), empty(q, q.shape[:3], "f32")),
    ),
)
