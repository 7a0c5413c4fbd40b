"""o = softmax(q·kᵀ/√d)·v of e4m3 by `wgmma`: the kernel of `wgmma_attention`, and two warps that transpose values."""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, Pointer, b8, b32, f32, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.parts.transposing import Transposer
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_attention.order import Order
from ptxlab.kernels.wgmma_attention.plan import STEP
from ptxlab.kernels.wgmma_attention.producer import Producer
from ptxlab.kernels.wgmma_attention_fp8.consumer import POWER, Fp8Consumer
from ptxlab.kernels.wgmma_attention_fp8.plan import Fp8Plan, Fp8Tiles

ONES = 0x38383838  # four times 1.0


@cache
def specialize(plan: Fp8Plan) -> Kernel:
    """Build the kernel; its arguments are those of `wgmma_attention`, and three scales."""

    @kernel(target="sm_90a", maxntid=plan.threads, minnctapersm=1)
    def wgmma_attention_fp8(
        q: tensor_map,
        k: tensor_map,
        v: tensor_map,
        o: tensor_map,
        counter: pointer[u32],
        queries: u32,
        keys: u32,
        heads: u32,
        all_heads: u32,
        shared_by: u32,
        together: u32,
        window: u32,
        lse: pointer[f32],
        scale_q: pointer[f32],
        scale_k: pointer[f32],
        scale_v: pointer[f32],
    ) -> None:
        order = Order(plan, counter, (queries, keys, heads, all_heads), together, window)
        compute(plan, order, (q, k, v, o), shared_by, lse, (scale_q, scale_k, scale_v))

    return wgmma_attention_fp8


def compute(
    plan: Fp8Plan,
    order: Order,
    maps: tuple[Pointer, ...],
    shared_by: u32,
    lse: Pointer,
    scales: tuple[Pointer, Pointer, Pointer],
) -> None:
    """The body of the kernel."""
    q, k, v, o = maps
    thread, warp, is_first = ptx.tid.x, ptx.tid.x >> 5, ptx.tid.x == 0
    tiles = Fp8Tiles(plan, ptx.dynamic_shared(b8, align=1024))
    ends = ptx.shared(u32, plan.value_stages, name="ends")
    all = 4 * plan.groups
    queries = ptx.barrier_pipeline(plan.query_stages, fills=1, reads=all, when=is_first)
    keys = ptx.barrier_pipeline(plan.stages, fills=1, reads=all, when=is_first)
    values = ptx.barrier_pipeline(plan.value_stages, fills=1, reads=plan.transposers, when=is_first)
    transposed = ptx.barrier_pipeline(plan.stages, fills=plan.transposers, reads=all, when=is_first)
    ptx.fence.mbarrier_init.release.cluster(when=is_first)
    with ptx.when(thread < plan.value_stages):
        ends[thread] = u32(0)
    with ptx.when(thread < 8 * STEP // 4):
        ptx.st.shared.b32(tiles.ones.memory.view(b32) + thread, b32(ONES))
    if plan.turns:
        ptx.st.shared.f32(tiles.power, POWER, when=is_first)
    ptx.fence.proxy.async_["shared::cta"]()
    ptx.bar.sync(0)
    with ptx.when(thread < GROUP):
        ptx.setmaxnreg.dec.sync.aligned.u32(plan.kept)
        with ptx.when(is_first):
            sides = [queries.producer(), keys.producer(), values.producer()]
            Producer(plan, sides, tiles, q, k, v, shared_by).run(order)
            sides[2].wait()
            ends[sides[2].index] = u32(1)  # there are no more values
            sides[2].arrive()
        with ptx.when((warp > 0) & (warp <= plan.transposers)):
            stages = values.consumer(), transposed.producer()
            Transposer(tiles.v, tiles.transposed, *stages, warp - 1, plan.transposers).run(ends)
    with ptx.otherwise():
        ptx.setmaxnreg.inc.sync.aligned.u32(plan.taken)
        sides = [queries.consumer(), keys.consumer(), transposed.consumer()]
        Fp8Consumer(plan, sides, tiles, o, lse, scales).run(order)
