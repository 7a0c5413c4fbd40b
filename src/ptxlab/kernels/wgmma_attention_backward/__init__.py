"""The gradients of attention on Hopper's tensor cores, by `wgmma` and tensor copies: f16 and bf16."""

from __future__ import annotations

from typing import Any

import ptxlab
from ptxlab.kernels.mma_attention import half_of
from ptxlab.kernels.wgmma_attention_backward.kernel import specialize
from ptxlab.kernels.wgmma_attention_backward.plan import BOX, GROUP_KEYS, KEYS, THREADS, Plan
from ptxlab.kernels.wgmma_attention_backward.rows import THREADS as ROW_THREADS
from ptxlab.kernels.wgmma_attention_backward.rows import convert, prepare
from ptxlab.measure import Launch
from ptxlab.measure.entry import ceil_div

L2 = 32 << 20


def differentiate(
    q: Any, k: Any, v: Any, o: Any, lse: Any, do: Any, dq: Any, dk: Any, dv: Any, sums: Any, rows: Any,
    causal: bool = False, window: int = 0, plan: Plan | None = None, together: int = 0,
) -> list[Launch]:
    (batch, heads, queries, size), (_, key_heads, keys, _) = q.shape, k.shape
    plan = plan or choose(size, half_of(q), causal, bool(window))
    tiles = ceil_div(queries, plan.rows)
    grid = tiles, heads, batch
    padded = batch * heads * tiles * plan.rows
    offsets, d = rows[:padded], rows[padded : 2 * padded]
    steps = [stride for array in (o, do) for stride in strides(array)[2::-1]]
    first = Launch(prepare(plan), grid, ROW_THREADS, [o, do, lse, offsets, d, sums, queries, *steps])
    maps = [
        ptxlab.tensor_map(array, box=(1, 1, count, BOX), swizzle="128B", l2_promotion="256B")
        for array, count in (
            (q, plan.rows), (k, GROUP_KEYS), (v, GROUP_KEYS), (do, plan.rows), (dk, GROUP_KEYS), (dv, GROUP_KEYS),
        )
    ]
    shared_by = heads // key_heads
    all_heads = batch * key_heads
    together = together or max(1, L2 // (8 * queries * size * shared_by))
    args = [*maps, sums, offsets, d, queries, keys, key_heads, all_heads, shared_by, together, window]
    main = Launch(specialize(plan), all_heads * ceil_div(keys, KEYS), THREADS, args, shared=plan.shared)
    map = ptxlab.tensor_map(dq, box=(1, 1, plan.rows, BOX), swizzle="128B")
    return [first, main, Launch(convert(plan), grid, ROW_THREADS, [sums, map])]


def strides(array: Any) -> list[int]:
    """Steps from one element to the next along each dimension, in elements."""
    if hasattr(array, "stride"):
        return list(array.stride())
    return [step // array.itemsize for step in array.strides]


def choose(size: int, type: str, causal: bool, window: bool) -> Plan:
    return Plan(size, type, causal, window, rows=128 if size == 64 else 64)
