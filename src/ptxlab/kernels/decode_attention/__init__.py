"""o = softmax(q·kᵀ·scale)·v for one query token of each sequence, with keys and values in a cache.

Queries are batch × heads × head size. The cache is batch × positions × heads × head size, or, in pages, pages ×
positions × heads × head size with a table of the pages of each sequence; elements are those of the queries, or e4m3.
Heads of keys may be fewer, each for as many heads of queries. Two runs give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial as bind
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import type_of
from ptxlab.device.arrays import Tensor
from ptxlab.kernels.decode_attention.kernel import specialize
from ptxlab.kernels.decode_attention.plain import plain
from ptxlab.kernels.decode_attention.plan import Plan, choose
from ptxlab.kernels.parts.strided import byte_strides, flat
from ptxlab.kernels.parts.torch_baselines import torch_attention
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SMS = 132  # of an H200
SIZES = (64, 128, 256)  # of heads
HOST_BLOCKS = 5  # on the emulator


def attend(
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lengths: Array,
    partial: Array,
    table: Array | None = None,
    scale: float | None = None,
    factors: tuple[float, float] = (1.0, 1.0),
    plan: Plan | None = None,
    blocks: int | None = None,
) -> Launch:
    """The launch.

    `factors` are what keys and values were divided by when they were rounded to e4m3. `partial`, which is 0 and becomes
    0 again, is memory for blocks that share a head: `workspace_of` says how much.
    """
    batch, heads, size = q.shape
    all_pages, page, key_heads, _ = k.shape
    pages = 0 if table is None else table.shape[1]
    chosen = plan or plan_for(q, k, page if pages else 0, page * max(pages, 1))
    scaled = (1 / math.sqrt(size) if scale is None else scale) * math.log2(math.e) * factors[0]
    steps = [step for one in (k, v) for step in byte_strides(one)[:3]]
    memory = [q, flat(k), flat(v), o, lengths, 0 if table is None else table, partial]
    args = [*memory, scaled, factors[1], batch, key_heads, heads // key_heads, *steps, pages, page, all_pages]
    count = blocks or even(chosen.blocks * SMS, heads_of(q, k, chosen))
    return Launch(specialize(chosen), count, chosen.threads, args, chosen.shared, overlap=True)


def plan_for(q: Array, k: Array, page: int, positions: int = 1 << 20) -> Plan:
    """The plan for queries and a cache, with pages or none, that has so many positions for a sequence."""
    shared_by, heads = q.shape[1] // k.shape[2], q.shape[0] * k.shape[2]
    return choose(q.shape[2], type_of(q), type_of(k), page, shared_by, heads, heads * positions)


def heads_of(q: Array, k: Array, plan: Plan) -> int:
    """Heads of keys in all sequences; one whose heads of queries are split counts several times."""
    return int(q.shape[0] * k.shape[2]) * ceil_div(q.shape[1] // k.shape[2], plan.rows)


def even(blocks: int, heads: int) -> int:
    """As many blocks or a few less, so that each has the same part of a head, or as many heads, if all are as long.

    Blocks are then at the same positions of different heads, which are beside each other in memory.
    """
    if heads <= blocks:
        found = blocks // heads * heads
    else:
        found, rest = divmod(heads, ceil_div(heads, blocks))
        found = found if not rest else blocks
    return found if found >= 0.95 * blocks else blocks


def workspace_of(q: Array, k: Array, page: int, blocks: int | None = None) -> int:
    """Numbers of `partial`."""
    plan = plan_for(q, k, page)
    return (blocks or plan.blocks * SMS) * plan.part


def by_streams(q: Array, k: Array, v: Array, o: Array, lengths: Array, partial: Array, table: Array | None) -> Launch:
    """As many blocks as fit on the GPU, each with as many keys."""
    if hasattr(q, "data_ptr"):
        return attend(q, k, v, o, lengths, partial, table)
    plan = replace(plan_for(q, k, 0 if table is None else k.shape[1]), together=2)
    return attend(q, k, v, o, lengths, partial, table, plan=plan, blocks=HOST_BLOCKS)


def torch_baseline(
    backend: str, torch: ModuleType, q: Tensor, k: Array, v: Array, table: Tensor | None, **_: object
) -> Callable[[], object]:
    """torch's attention by one of its backends, with the cache as it likes it best: no pages, nor elements of e4m3."""
    given = q[:, :, None], *(in_order(one, table, q.dtype) for one in (k, v))
    torch_attention(torch, backend, *given)  # refused here if it has no kernel
    return lambda: {"o": torch_attention(torch, backend, *given)[:, :, 0]}


def in_order(cache: Any, table: Any, type: Any) -> Any:
    """A cache of torch as batch × heads × positions × head size, without gaps."""
    wide = cache.to(type)
    if table is not None:
        wide = wide[table.long()].flatten(1, 2)
    return wide.transpose(1, 2).contiguous()


def arrays(
    draw: Draw, type: str, cache: str, batch: int, heads: tuple[int, int], length: int, size: int = 128, page: int = 0
) -> Arrays:
    """Queries, a full cache, and space for the answer; pages are in an order that is not theirs."""
    count = batch * ceil_div(length, page) if page else batch
    shape = (count, page or length, heads[1], size)
    q, (k, v) = draw.normal((batch, heads[0], size), type), (draw.normal(shape, cache) for _ in "kv")
    table = None
    if page:
        table = draw.integers(count, "s32", 0, 1)
        table += draw.normal(count, "f32").argsort()
        table = table.reshape(batch, -1)
    numbers = workspace_of(q, k, page, None if hasattr(q, "data_ptr") else HOST_BLOCKS)
    return {
        "q": q,
        "k": k,
        "v": v,
        "o": draw.empty((batch, heads[0], size), type),
        "lengths": draw.integers(batch, "s32", length, length + 1),
        "partial": draw.integers(numbers, "u32", 0, 1),
        "table": table,
    }


def reference(
    xp: ModuleType, q: Array, k: Array, v: Array, o: Array, lengths: Array, partial: Array, table: Array | None
) -> Arrays:
    """The formula, sequence by sequence."""
    output = xp.zeros_like(q)
    _, heads, size = q.shape
    key_heads = k.shape[2]
    for number, length in enumerate(int(one) for one in lengths):
        pages = [number] if table is None else [int(page) for page in table[number]]
        keys, values = (one[pages].reshape(-1, key_heads, size)[:length] for one in (k, v))
        for head in range(key_heads if length else 0):
            rows = slice(head * heads // key_heads, (head + 1) * heads // key_heads)
            scores = q[number, rows] @ keys[:, head].T / math.sqrt(size)
            p = xp.exp(scores - xp.amax(scores, 1)[:, None])
            output[number, rows] = p @ values[:, head] / p.sum(1)[:, None]
    return {"o": output}


def work(
    type: str, cache: str, batch: int, heads: tuple[int, int], length: int, size: int = 128, page: int = 0
) -> Work:
    """Keys and values are read once."""
    elements = 2 * batch * length * heads[1] * size
    moved = elements * (1 if cache == "e4m3" else 2) + 4 * batch * heads[0] * size
    flops = 4 * batch * heads[0] * length * size
    return Work(flops, bytes=moved, rate="f32 arithmetic", only_reads=True)


def sized(
    batch: int, length: int, cache: str = "bf16", page: int = 0, heads: tuple[int, int] = (32, 8)
) -> dict[str, object]:
    """Queries of bf16, with four of their heads for each head of keys."""
    return {"type": "bf16", "cache": cache, "batch": batch, "heads": heads, "length": length, "page": page}


entry = Entry(
    title="o = softmax(q·kᵀ/√d)·v for one query token of each sequence",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"plain": plain, "equal shares": by_streams},
    libraries={
        "torch, flash": bind(torch_baseline, "FLASH_ATTENTION"),
        "torch, cuDNN": bind(torch_baseline, "CUDNN_ATTENTION"),
        "torch, efficient": bind(torch_baseline, "EFFICIENT_ATTENTION"),
    },
    sizes=[
        *(sized(1, length) for length in (1024, 8192, 32768, 131072)),
        *(sized(8, length) for length in (1024, 131072)),
        *(sized(64, length) for length in (1024, 8192)),
        sized(16, 8192, heads=(16, 16)),
        *(sized(batch, length, page=64) for batch, length in ((1, 8192), (8, 16384), (64, 1024))),
        *(sized(batch, length, "e4m3") for batch, length in ((1, 8192), (1, 131072), (64, 1024))),
        sized(8, 16384, "e4m3", page=64),
        sized(8, 16384, "e4m3"),
        sized(8, 16384),
    ],
    small=[
        {"type": "f16", "cache": "f16", "batch": 2, "heads": (4, 2), "length": 700, "size": 64},
        {"type": "f16", "cache": "e4m3", "batch": 1, "heads": (2, 1), "length": 150, "size": 64, "page": 16},
        {"type": "bf16", "cache": "bf16", "batch": 2, "heads": (4, 2), "length": 40, "size": 64, "page": 16},
    ],
    tolerance=5e-3,
)
