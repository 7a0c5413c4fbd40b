"""D = A·Bᵀ by `wgmma`: a persistent, warp-specialized kernel.

A block computes one tile of D after the other. One thread of its first warpgroup, the producer, issues the TMA copies
of K tiles of A and B, as many ahead as there are stages, also those of the next tile while the last is stored. The
other warpgroups, the consumers, have the registers that the first one gave up; each multiplies 64 rows, or twice that.

Blocks of a cluster either share the K tiles of B, each copying a part of them to all (`Shape.cluster`), or compute one
tile together, each a part of k (`Shape.split`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, b32, f32, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.parts.block_sums import ThroughCluster, ThroughMemory
from ptxlab.kernels.parts.finishing import Extras, Finish
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.main_loop import MainLoop, consume, consume_in_turns, produce
from ptxlab.kernels.parts.operands import LINE
from ptxlab.kernels.parts.residuals import RingResidual
from ptxlab.kernels.parts.tile_order import Share, TileOrder
from ptxlab.kernels.parts.tile_stores import CopyBack, PlainStore, TileStore
from ptxlab.kernels.parts.warpgroups import Turns, meet, start_block
from ptxlab.kernels.wgmma_gemm.shapes import BLOCKS, Layout, Shape

ALONG_K = Layout()


@cache
def specialize(type: str | Formats, shape: Shape, layout: Layout = ALONG_K, extras: Extras | None = None) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k.

    Where `needs_more` says so, there are others: D is a tensor map or a pointer, and after k come the distance of its
    rows, the bias, the residual, the distance of its rows, memory for partial results and for counters, which are 0,
    and the scales of A and B.
    """
    formats = Formats.of(type)
    wanted: dict[str, Any] = {"maxntid": shape.threads}
    wanted |= {"reqnctapercluster": shape.blocks} if shape.blocks > 1 else {}
    wanted |= {"minnctapersm": shape.occupancy} if shape.occupancy > 1 else {}
    element: Any = {2: b16, 4: b32}[layout.out_size]
    target: Any = tensor_map if layout.aligned else pointer[element]
    matrix: Any = tensor_map if extras is not None and extras.in_ring else pointer[b16]

    @kernel(target="sm_90a", **wanted)
    def wgmma_gemm(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        block(formats, shape, layout, (a, b), CopyBack(d.generic), None, (m, n, k))

    @kernel(target="sm_90a", **wanted)
    def wgmma_gemm_with_extras(
        a: tensor_map,
        b: tensor_map,
        d: target,
        m: u32,
        n: u32,
        k: u32,
        pitch: u32,
        bias: pointer[b16],
        residual: matrix,
        residual_pitch: u32,
        partial: pointer[f32],
        counters: pointer[u32],
        scale_a: pointer[f32],
        scale_b: pointer[f32],
    ) -> None:
        is_map = target is tensor_map
        store = CopyBack(d.generic) if is_map else PlainStore(d, *((n, m) if shape.swapped else (m, n)), pitch)
        finish = None
        if extras is not None:
            added = (bias.view(element), residual if matrix is tensor_map else residual.view(element), residual_pitch)
            finish = Finish(formats.out, extras, shape.swapped, (m, n), *added, (scale_a, scale_b))
        block(formats, shape, layout, (a, b), store, finish, (m, n, k), (partial, counters))

    found: Kernel = wgmma_gemm_with_extras if needs_more(shape, layout, extras) else wgmma_gemm
    return found


def needs_more(shape: Shape, layout: Layout, extras: Extras | None) -> bool:
    """Whether there are other arguments than those of a plain product."""
    return not layout.aligned or extras is not None or (shape.split > 1 and not shape.clustered)


def block(
    formats: Formats,
    shape: Shape,
    layout: Layout,
    maps: Any,
    store: Any,
    finish: Finish | None,
    extents: Any,
    workspace: Any = None,
    more: Any = None,
) -> None:
    """What a block does; `extents` are m, n and k.

    `more` is what another kernel adds: `loop` makes the main loop of consumers, by default `MainLoop`; `fill` is what
    warps after the producer's do, so that a stage has `fills` arrivals; K tiles are a `multiple` of some.
    """
    (m, n, k), thread = extents, ptx.tid.x
    rank = ptx.cluster_ctarank if shape.blocks > 1 else None
    memory = ptx.dynamic_shared(b16, align=1024)
    left, right = shape.operands(layout)
    a_tile = left.tile(memory)
    b_tile = right.tile(memory + shape.stages * shape.rows * (LINE // 2))
    free = memory + shape.stored_from(layout) // 2
    reads = 4 * shape.readers * shape.cluster
    fills = 1 if more is None else more.fills
    pipeline = ptx.barrier_pipeline(shape.stages, fills=fills, reads=reads, when=thread == 0)
    turns = Turns(shape.groups, thread == 0) if shape.alternate else None
    is_summed = shape.split > 1 and shape.clustered
    barriers = ThroughCluster.barriers(shape.parts, thread == 0) if is_summed else ()
    sources = [([one.generic], tile) for one, tile in zip(maps, (a_tile, b_tile), strict=True)]
    start_block(thread, [one for group, _ in sources for one in group], shape.blocks)
    order = TileOrder(*shape.covered, shape.together, m, n, shape.blocks)
    is_through_memory = shape.split > 1 and not shape.clustered
    part = ptx.ctaid.x // shape.cluster % shape.split if is_through_memory else rank
    share = Share(
        order,
        k,
        formats.depth,
        rank=rank,
        cluster=shape.cluster,
        beside=shape.beside,
        split=shape.split,
        part=part,
        multiple=1 if more is None else more.multiple,
    )
    residual = None
    if finish is not None and finish.extras.in_ring:
        residual = RingResidual(shape.ring_boxes(layout), memory, finish.residual.generic, finish)
    timeline = ptx.timeline(blocks=shape.occupancy * BLOCKS, warps=shape.threads // 32, spans=shape.spans)
    with ptx.when(thread >= shape.consumers):
        if shape.registers:
            ptx.setmaxnreg.dec.sync.aligned.u32(shape.registers[0])
        with ptx.when(thread == shape.consumers):
            times = timeline.role("producer")
            produce(share, pipeline.producer(), (left, right), sources, shape.stage_bytes(layout), times, residual)
        if more is not None:
            more.fill(share, pipeline.producer())
    with ptx.otherwise():
        if shape.registers:
            ptx.setmaxnreg.inc.sync.aligned.u32(shape.registers[1])
        store = TileStore(formats.out, shape.boxes(layout), free, store, residual or (finish and finish.begin()))
        sides = pipeline.consumer(), pipeline.consumer()
        exchange: Any = None
        if shape.split > 1:
            through = ThroughCluster if shape.clustered else ThroughMemory
            places = (memory, *barriers) if shape.clustered else workspace
            exchange = through(formats.accumulator, shape.parts, share.part, *places)
        times = timeline.role("consumer")
        made = (MainLoop if more is None else more.loop)(
            formats, shape, share, sides, (left, right), (a_tile, b_tile), times
        )
        made.residual = residual
        if turns is None:
            consume(made, store, exchange)
        else:
            consume_in_turns(made, store, turns)
    if shape.blocks > 1:
        meet()  # no block exits while another one reads its memory, or arrives at its barriers
