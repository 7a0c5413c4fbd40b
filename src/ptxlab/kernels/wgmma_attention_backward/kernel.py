"""The gradients of attention by `wgmma`: a block has 128 keys and their values, and goes over the queries.

One thread of the first warpgroup issues the TMA copies of keys, values, queries and the gradient of O. Two
warpgroups, the consumers, have 64 keys each. They add to the gradient of the queries in memory, in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ptxlab.author import Kernel, Pointer, b64, f32, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.parts.warpgroups import GROUP, start_block
from ptxlab.kernels.wgmma_attention_backward.consumer import Consumer
from ptxlab.kernels.wgmma_attention_backward.order import Work
from ptxlab.kernels.wgmma_attention_backward.plan import GROUPS, STAGES, THREADS, Plan, Tiles
from ptxlab.kernels.wgmma_attention_backward.producer import Producer

KEPT, TAKEN = 24, 240  # registers of a thread of the first warpgroup, and of a consumer


@cache
def specialize(plan: Plan) -> Kernel:
    """Build the kernel that goes over the queries."""

    @kernel(target="sm_90a", maxntid=THREADS, minnctapersm=1)
    def wgmma_attention_backward(
        q: tensor_map,
        k: tensor_map,
        v: tensor_map,
        do: tensor_map,
        dk: tensor_map,
        dv: tensor_map,
        dq: pointer[f32],
        lse: pointer[f32],
        d: pointer[f32],
        queries: u32,
        keys: u32,
        heads: u32,
        all_heads: u32,
        shared_by: u32,
        together: u32,
        window: u32,
        turns: pointer[u32],
        shares: u32,
        slopes: pointer[f32],
    ) -> None:
        def work() -> Work:
            return Work(plan, (queries, keys, heads, all_heads), shared_by, together, window, shares)

        compute(plan, (q, k, v, do, dk, dv), work, (dq, lse, d, turns, slopes))

    return wgmma_attention_backward


def compute(
    plan: Plan,
    maps: tuple[Pointer | None, ...],
    find: Callable[[], Work],
    memory: tuple[Pointer, ...],
    consume: Callable[..., Consumer] = Consumer,
) -> None:
    """The body of all; `find` finds the keys of this block."""
    q, k, v, do, dk, dv = maps
    dq, lse, d, turns, slopes = memory
    thread = ptx.tid.x
    tiles = Tiles(plan)
    barriers = ptx.shared(b64, 2, name="once")
    once = [barriers.at(number) for number in range(2)]
    for barrier in once:
        ptx.mbarrier.init.shared.b64(barrier, 1, when=thread == 0)
    pipelines = [ptx.barrier_pipeline(STAGES, fills=1, reads=4 * GROUPS, when=thread == 0) for _ in range(2)]
    start_block(thread, [map.generic for map in maps if map is not None])
    work = find()
    with ptx.when(thread < GROUP):
        ptx.setmaxnreg.dec.sync.aligned.u32(KEPT)
        with ptx.when(thread == 0):
            sides = [pipeline.producer() for pipeline in pipelines]
            Producer(plan, work, tiles, (q, k, v, do), (lse, d)).run(once, *sides)
    with ptx.otherwise():
        ptx.setmaxnreg.inc.sync.aligned.u32(TAKEN)
        consume(plan, work, tiles, pipelines, dq, turns, slopes).run(once, dk, dv)
