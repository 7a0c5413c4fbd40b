"""o = softmax(q·kᵀ/√d)·v by `wgmma`: a persistent, warp-specialized kernel.

A block computes one tile of queries after the other. One thread of its first warpgroup, the producer, issues the TMA
copies of queries, keys and values. Each other warpgroup, a consumer, has 64 queries: it multiplies them with a tile of
keys, and while the tensor cores multiply P of the tile before with its values, computes P of this
one. P is never stored: it is the left operand in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ptxlab.author import Kernel, Pointer, b8, f32, kernel, pointer, ptx, s32, tensor_map, u32
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_attention.consumer import Consumer
from ptxlab.kernels.wgmma_attention.order import Order
from ptxlab.kernels.wgmma_attention.packed import LISTING_THREADS, Listed, PackedOrder, list_tiles
from ptxlab.kernels.wgmma_attention.paged import LANES, PagedProducer
from ptxlab.kernels.wgmma_attention.plan import Plan
from ptxlab.kernels.wgmma_attention.producer import Producer
from ptxlab.kernels.wgmma_attention.tiles import Tiles


@cache
def specialize(plan: Plan) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of q, k, v and o, what `Order` counts by, space for logs.

    The last two are a slope and a sink of each head, where the plan has them.
    """

    @kernel(target="sm_90a", maxntid=plan.threads, minnctapersm=1)
    def wgmma_attention(
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
        slopes: pointer[f32],
        sinks: pointer[f32],
    ) -> None:
        order = Order(plan, counter, (queries, keys, heads, all_heads), together, window)
        compute(plan, order, (q, k, v, o), shared_by, lse, (slopes, sinks), partial(Producer, plan))

    return wgmma_attention


@cache
def specialize_packed(plan: Plan, step: str = "compute") -> Kernel:
    """Build a kernel for sequences one after the other: that which lists tiles, and then that which computes them.

    The last two parameters are the pages of each sequence, where keys are in pages, and the most that a sequence has.
    """

    def packed_attention(
        q: tensor_map,
        k: tensor_map,
        v: tensor_map,
        o: tensor_map,
        counter: pointer[u32],
        queries: u32,
        keys: u32,
        heads: u32,
        shared_by: u32,
        together: u32,
        window: u32,
        lse: pointer[f32],
        query_starts: pointer[s32],
        key_starts: pointer[s32],
        sequences: u32,
        most: u32,
        units: pointer[u32],
        maps: pointer[b8],
        slopes: pointer[f32],
        sinks: pointer[f32],
        table: pointer[s32],
        columns: u32,
    ) -> None:
        if step == "list":
            ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
            listed = Listed(plan, (query_starts, key_starts), (sequences, queries, keys), window)
            list_tiles(listed, most, (units, maps), (v, o))
            return
        order = PackedOrder(plan, counter, (queries, keys, heads, heads), together, window, (units, maps))
        produce = partial(PagedProducer, plan, (table, columns)) if plan.page else partial(Producer, plan)
        compute(plan, order, (q, k, v, o), shared_by, lse, (slopes, sinks), produce)

    threads = plan.threads if step == "compute" else LISTING_THREADS
    packed_attention.__name__ = f"{step}_packed_attention"
    found: Kernel = kernel(target="sm_90a", maxntid=threads, minnctapersm=1)(packed_attention)
    return found


def compute(
    plan: Plan,
    order: Order,
    maps: tuple[Pointer, ...],
    shared_by: u32,
    lse: Pointer,
    of_heads: tuple[Pointer, Pointer],
    produce: Callable[..., Producer],
) -> None:
    """The body of both kernels; `of_heads` are slopes and sinks."""
    q, k, v, o = maps
    thread = ptx.tid.x
    tiles = Tiles(plan, ptx.dynamic_shared(b8, align=1024))
    pipelines = [
        ptx.barrier_pipeline(stages, fills=1, reads=4 * plan.groups, when=thread == 0)
        for stages in (plan.query_stages, plan.stages, plan.stages)
    ]
    ptx.fence.mbarrier_init.release.cluster(when=thread == 0)
    ptx.bar.sync(0)
    order.begin()
    with ptx.when(thread < GROUP):
        if plan.groups > 1:  # with one, every thread has as many as there are
            ptx.setmaxnreg.dec.sync.aligned.u32(plan.kept)
        with ptx.when(thread < LANES if plan.page else thread == 0):
            produce([pipeline.producer() for pipeline in pipelines], tiles, q, k, v, shared_by).run(order)
    with ptx.otherwise():
        if plan.groups > 1:
            ptx.setmaxnreg.inc.sync.aligned.u32(plan.taken)
        Consumer(plan, [pipeline.consumer() for pipeline in pipelines], tiles, o, lse, of_heads).run(order)
