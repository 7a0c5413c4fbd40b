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
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.kernels import wgmma_attention
from ptxlab.kernels.parts.torch_baselines import torch_attention
from ptxlab.kernels.wgmma_attention import attended, sized
from ptxlab.kernels.wgmma_attention.problem import heads_of, inputs, packed_baseline
from ptxlab.kernels.wgmma_attention.problem import packed as in_sequences
from ptxlab.kernels.wgmma_attention_backward.kernel import specialize
from ptxlab.kernels.wgmma_attention_backward.launches import (
    Backward,
    check,
    choose,
    differentiate,
    differentiate_at_once,
    differentiate_packed,
    packed_workspace,
    parts_at_once,
    share,
    share_at_once,
    workspace,
)
from ptxlab.kernels.wgmma_attention_backward.packed_kernels import specialize_packed
from ptxlab.kernels.wgmma_attention_backward.plan import Plan
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.measure.checking import as_float64

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

__all__ = [
    "Backward",
    "arrays",
    "check",
    "choose",
    "differentiate",
    "differentiate_at_once",
    "differentiate_packed",
    "entry",
    "packed_workspace",
    "parts_at_once",
    "reference",
    "share",
    "share_at_once",
    "specialize",
    "specialize_packed",
    "workspace",
]


ROWS = ("q", "k", "v", "o", "do", "dq", "dk", "dv")
MEMORY = ("sums", "offsets", "totals", "turns")


def start(
    starts: Array | None = None,
    maps: Array | None = None,
    owners: Array | None = None,
    causal: bool = False,
    window: int = 0,
    ordered: bool = False,
    plan: Plan | None = None,
    **given: Any,
) -> list[Launch]:
    """The launches of an entry's arrays; packed sequences have their length before their heads."""
    memory, how = [given.pop(name) for name in MEMORY], (causal, window, ordered, plan)
    if starts is None:
        return differentiate(Backward(**given), memory, *how)
    turned = {name: given[name].swapaxes(0, 1)[None] for name in ROWS}
    both, sequences = (starts, starts), starts.shape[0] - 1
    return differentiate_packed(Backward(**{**given, **turned}), both, sequences, [maps, owners, *memory], *how)


def torch_baseline(
    backend: str, torch: ModuleType, causal: bool, window: int, starts: Array | None = None, **arrays: Any
) -> Callable[[], object]:
    """The gradients by one of torch's backends; the forward pass is not measured."""
    if window:
        raise UnsuitedError("torch's backends have no window")
    q, k, v = (arrays[name].detach().requires_grad_() for name in "qkv")
    with torch.enable_grad():
        if starts is None:
            found = torch_attention(torch, backend, q, k, v, causal)
        else:
            found = packed_baseline(backend, torch, (q, k, v), causal, starts)()["o"]

    def run() -> Arrays:
        gradients = torch.autograd.grad(found, (q, k, v), arrays["do"], retain_graph=True)
        return dict(zip(("dq", "dk", "dv"), gradients, strict=True))

    return run


def arrays(
    draw: Draw,
    type: str,
    batch: int,
    heads: tuple[int, int],
    length: int,
    size: int,
    causal: bool,
    window: int = 0,
    sequences: int = 0,
) -> Arrays:
    """Queries, keys, values and the gradient of O; the answer, as the forward pass leaves it; and space."""
    given = inputs(draw, type, batch, heads, length, size, sequences)
    shapes = {name: tuple(given[name].shape) for name in "qkv"}
    given |= {"do": draw.normal(shapes["q"], type), "causal": causal, "window": window}
    plan = choose(size, type, causal, bool(window), ceil_div(length, max(sequences, 1)))
    rows = plan.rows
    if sequences:
        maps, owners, *numbers = packed_workspace(
            (1, heads[0], length, size), (1, heads[1], length, size), sequences, rows
        )
        given |= {"maps": draw.empty(4 * maps, "u8"), "owners": draw.empty(owners, "u32")}
    else:
        numbers = workspace(shapes["q"], rows)
        shares = share(shapes["q"], shapes["k"], plan, window)
        if shares > 1:
            extents = batch, heads[1] * shares, length, size
            given |= {name: draw.empty(extents, type) for name in ("dk_parts", "dv_parts")}
    o, lse = draw.empty(shapes["q"], type), draw.empty((heads[0], length) if sequences else shapes["q"][:3], "f32")
    xp = getattr(draw, "torch", np)
    exact = {name: as_float64(xp, given[name]) for name in "qkv"}
    for at, own, p, logs in each_head(xp, **exact, causal=causal, window=window, starts=given.get("starts")):
        o[at] = p @ exact["v"][own]
        lse[at[::-1] if sequences else at] = logs
    space = {name: draw.empty(n, "f32") for name, n in zip(MEMORY, numbers, strict=True)}
    return {**given, "o": o, "lse": lse, **space, **{f"d{name}": draw.empty(shapes[name], type) for name in "qkv"}}


def each_head(
    xp: ModuleType, q: Array, k: Array, v: Array, causal: bool, window: int, starts: Array | None
) -> Iterator[tuple[Any, ...]]:
    """Where each head of queries and its keys are, and of each its weights, and the log-sum-exp of its rows."""
    for at, own in heads_of(q, k, starts):
        scores = attended(xp, q[at] @ k[own].T / math.sqrt(q.shape[-1]), causal, window)
        top = xp.amax(scores, 1)
        p = xp.exp(scores - top[:, None])
        total = p.sum(1)
        yield at, own, p / total[:, None], top + xp.log(total)


def reference(
    xp: ModuleType,
    q: Array,
    k: Array,
    v: Array,
    do: Array,
    causal: bool,
    window: int,
    starts: Any = None,
    **others: Any,
) -> Arrays:
    """The gradients, head by head."""
    dq, dk, dv = xp.empty_like(q), xp.zeros_like(k), xp.zeros_like(v)
    scale = 1 / math.sqrt(q.shape[-1])
    for at, own, p, _ in each_head(xp, q, k, v, causal, window, starts):
        dv[own] += p.T @ do[at]
        inner = do[at] @ v[own].T
        gradient = p * (inner - (p * inner).sum(1)[:, None]) * scale
        dq[at] = gradient @ k[own]
        dk[own] += gradient.T @ q[at]
    return {"dq": dq, "dk": dk, "dv": dv}


def work(**size: Any) -> Work:
    """Five products, of which a mask leaves a part; twice what the forward pass moves, and more."""
    forward = wgmma_attention.work(**size)
    return Work(flops=2.5 * forward.flops, bytes=2 * forward.bytes, rate=forward.rate)


entry = Entry(
    title="the gradients of softmax(q·kᵀ/√d)·v by wgmma and tensor copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": start},
    libraries={
        "torch, cuDNN": partial(torch_baseline, "CUDNN_ATTENTION"),
        "torch, flash": partial(torch_baseline, "FLASH_ATTENTION"),
    },
    sizes=[
        *(sized(4096, 64, causal) for causal in (False, True)),
        *(sized(4096, 256, causal, (8, 8)) for causal in (False, True)),
        sized(4096, 128, causal=True, heads=(32, 8)),
        sized(4096, 128, causal=False, type="f16"),
        *(in_sequences(16, 128, causal) for causal in (False, True)),
        *(sized(length, 128, causal) for length in (1024, 2048, 8192, 16384, 4096) for causal in (False, True)),
    ],
    small=[
        {"type": "f16", "batch": 1, "heads": (1, 1), "length": 140, "size": 64, "causal": True},
        {"type": "bf16", "batch": 1, "heads": (2, 1), "length": 100, "size": 128, "causal": True, "window": 40},
        {"type": "bf16", "batch": 1, "heads": (2, 1), "length": 90, "size": 64, "causal": True, "sequences": 2},
    ],
    tolerance=5e-3,
)
