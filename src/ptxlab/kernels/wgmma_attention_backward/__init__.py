"""The gradients of attention on Hopper's tensor cores, by `wgmma` and tensor copies: f16 and bf16.

Given the gradient of o = softmax(q·kᵀ/√d)·v, and the log-sum-exp of each row that the forward pass stored, three
kernels compute those of q, k and v: one sums answer × its gradient over each row, one goes over queries and keys, one
rounds the gradient of the queries. That is a sum in memory to which blocks add in the order in which they run: its last
bits differ from run to run, unless they wait for each other. Those of keys and values are the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ptxlab.kernels import wgmma_attention
from ptxlab.kernels.wgmma_attention import attended, sized
from ptxlab.kernels.wgmma_attention_backward.kernel import specialize
from ptxlab.kernels.wgmma_attention_backward.launches import (
    check,
    choose,
    differentiate,
    differentiate_packed,
    packed_workspace,
    workspace,
)
from ptxlab.kernels.wgmma_attention_backward.packed_kernels import specialize_packed
from ptxlab.measure import Draw, Entry, UnsuitedError, Work
from ptxlab.measure.checking import as_float64
from ptxlab.measure.entry import Arrays

__all__ = [
    "arrays",
    "check",
    "choose",
    "differentiate",
    "differentiate_packed",
    "entry",
    "packed_workspace",
    "reference",
    "specialize",
    "specialize_packed",
    "workspace",
]


def torch_baseline(backend: str, torch: Any, causal: bool, window: int, **arrays: Any) -> Callable[[], Any]:
    """The gradients by one of torch's backends; the forward pass is not measured."""
    if window:
        raise UnsuitedError("torch's backends have no window")
    choice = torch.nn.attention
    q, k, v = (arrays[name].detach().requires_grad_() for name in "qkv")
    with torch.enable_grad(), choice.sdpa_kernel(getattr(choice.SDPBackend, backend)):
        try:
            found = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
            )
        except RuntimeError as reason:
            if "No available kernel" not in str(reason):
                raise
            raise UnsuitedError(f"torch's backend has no gradients for heads of {q.shape[3]} elements") from reason

    def run() -> Arrays:
        gradients = torch.autograd.grad(found, (q, k, v), arrays["do"], retain_graph=True)
        return dict(zip(("dq", "dk", "dv"), gradients, strict=True))

    return run


def arrays(
    draw: Draw, type: str, batch: int, heads: tuple[int, int], length: int, size: int, causal: bool, window: int = 0
) -> Arrays:
    """Queries, keys, values and the gradient of the answer; the answer, as the forward pass leaves it; and space."""
    shapes = {name: (batch, count, length, size) for name, count in zip("qkv", (*heads, heads[1]), strict=True)}
    given = {name: draw.normal(shape, type) for name, shape in shapes.items()}
    given |= {"do": draw.normal(shapes["q"], type), "causal": causal, "window": window}
    o, lse = draw.empty(shapes["q"], type), draw.empty(shapes["q"][:3], "f32")
    xp = getattr(draw, "torch", np)
    exact = {name: as_float64(xp, given[name]) for name in "qkv"}
    for at, own, weights, logs in each_head(xp, **exact, causal=causal, window=window):
        o[at] = weights @ exact["v"][own]
        lse[at] = logs
    counts = workspace(shapes["q"], choose(size, type, causal, bool(window), length).rows)
    space = {name: draw.empty(n, "f32") for name, n in zip(("sums", "offsets", "totals", "turns"), counts, strict=True)}
    return {**given, "o": o, "lse": lse, **space, **{f"d{name}": draw.empty(shapes[name], type) for name in "qkv"}}


def each_head(xp: Any, q: Any, k: Any, v: Any, causal: bool, window: int) -> Iterator[tuple[Any, ...]]:
    """Where each head of queries and its keys are, and of each its weights, and the log-sum-exp of its rows."""
    shared_by = q.shape[1] // k.shape[1]
    for batch, head in product(range(q.shape[0]), range(q.shape[1])):
        own = batch, head // shared_by
        scores = attended(xp, q[batch, head] @ k[own].T / math.sqrt(q.shape[3]), causal, window)
        top = xp.amax(scores, 1)
        weights = xp.exp(scores - top[:, None])
        total = weights.sum(1)
        yield (batch, head), own, weights / total[:, None], top + xp.log(total)


def reference(xp: Any, q: Any, k: Any, v: Any, do: Any, causal: bool, window: int, **others: Any) -> Arrays:
    """The gradients, head by head."""
    dq, dk, dv = xp.empty_like(q), xp.zeros_like(k), xp.zeros_like(v)
    scale = 1 / math.sqrt(q.shape[3])
    for at, own, weights, _ in each_head(xp, q, k, v, causal, window):
        dv[own] += weights.T @ do[at]
        inner = do[at] @ v[own].T
        gradient = weights * (inner - (weights * inner).sum(1)[:, None]) * scale
        dq[at] = gradient @ k[own]
        dk[own] += gradient.T @ q[at]
    return {"dq": dq, "dk": dk, "dv": dv}


def work(type: str, batch: int, heads: tuple[int, int], length: int, size: int, causal: bool, window: int = 0) -> Work:
    """Five products, of which a mask leaves a part; twice what the forward pass moves, and more."""
    forward = wgmma_attention.work(type, batch, heads, length, size, causal, window)
    return Work(flops=2.5 * forward.flops, bytes=2 * forward.bytes, rate=type)


entry = Entry(
    title="the gradients of softmax(q·kᵀ/√d)·v by wgmma and tensor copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": differentiate},
    libraries={
        "torch, cuDNN": partial(torch_baseline, "CUDNN_ATTENTION"),
        "torch, flash": partial(torch_baseline, "FLASH_ATTENTION"),
    },
    sizes=[
        *(sized(4096, 64, causal) for causal in (False, True)),
        *(sized(4096, 256, causal, (8, 8)) for causal in (False, True)),
        sized(4096, 128, causal=True, heads=(32, 8)),
        sized(4096, 128, causal=False, type="f16"),
        *(sized(length, 128, causal) for length in (1024, 2048, 8192, 16384, 4096) for causal in (False, True)),
    ],
    small=[
        {"type": "f16", "batch": 1, "heads": (1, 1), "length": 140, "size": 64, "causal": True},
        {"type": "bf16", "batch": 1, "heads": (2, 1), "length": 100, "size": 128, "causal": True, "window": 40},
    ],
    tolerance=5e-3,
)
