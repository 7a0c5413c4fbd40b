"""D = A·Bᵀ by `wgmma`: a persistent, warp-specialized kernel.

A block computes one tile of D after the other. One thread of its first warpgroup, the producer, issues the TMA copies
of K tiles of A and B, as many ahead as there are stages, also those of the next tile while the last is stored. The
other warpgroups, the consumers, have the registers that the first one gave up; each multiplies 64 rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, b32, f16, f32, kernel, ptx, s32, tensor_map, u32
from ptxlab.kernels.tile_order import TileOrder
from ptxlab.kernels.wgmma_gemm.shapes import BLOCKS, BOX, DEPTH, Shape

GROUP = 128  # threads of a warpgroup
COPY_BACK = ptx.cp.async_.bulk.tensor["2d"]["global"]["shared::cta"].bulk_group
COPY = ptx.cp.async_.bulk.tensor["2d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k."""

    @kernel(target="sm_90a", maxntid=shape.threads)
    def wgmma_gemm(
        a: tensor_map,
        b: tensor_map,
        d: tensor_map,
        m: u32,
        n: u32,
        k: u32,
    ) -> None:
        timeline = ptx.timeline(blocks=BLOCKS, warps=shape.threads // 32, spans=shape.spans)
        thread = ptx.tid.x
        memory = ptx.dynamic_shared(b16, align=1024)
        a_tile = ptx.tile(b16, shape.rows, DEPTH, swizzle="128B", copies=shape.stages, at=memory)
        free = memory + shape.stages * shape.rows * DEPTH
        b_tile = ptx.tile(b16, shape.columns, DEPTH, swizzle="128B", copies=shape.stages, at=free)
        free = free + shape.stages * shape.columns * DEPTH
        d_tile = ptx.tile(b16, 64, BOX, swizzle="128B", copies=shape.groups * shape.columns // BOX, at=free)
        pipeline = ptx.barrier_pipeline(shape.stages, fills=1, reads=4 * shape.groups, when=thread == 0)
        ptx.fence.mbarrier_init.release.cluster(when=thread == 0)
        ptx.bar.sync(0)
        tiles = TileOrder(shape.rows, shape.columns, shape.together, m, n)
        with ptx.when(thread < GROUP):
            ptx.setmaxnreg.dec.sync.aligned.u32(shape.kept)
            with ptx.when(thread == 0):
                times = timeline.role("producer")
                produce(shape, pipeline.producer(), tiles, (a.generic, a_tile), (b.generic, b_tile), k, times)
        with ptx.otherwise():
            ptx.setmaxnreg.inc.sync.aligned.u32(shape.taken)
            sides = pipeline.consumer(), pipeline.consumer()
            times = timeline.role("consumer")
            consume(type, shape, sides, tiles, (a_tile, b_tile, d_tile), d.generic, k, times)

    found: Kernel = wgmma_gemm
    return found


def produce(shape: Shape, stage: Any, tiles: TileOrder, a: Any, b: Any, k: Any, times: Any) -> None:
    """The producer: one thread issues the copies of all K tiles, each as soon as a stage is empty."""
    for number in tiles.each():
        row, column = tiles.origin(number)
        for start in ptx.range(0, k, DEPTH):
            with times.span("wait for an empty stage"):
                stage.wait()
            with times.span("start copies"):
                ptx.mbarrier.arrive.expect_tx.shared.b64(stage.barrier, shape.stage_bytes)
                for (source, tile), first in ((a, row), (b, column)):
                    COPY(tile.at(0, 0, stage.index), (source, (start.view(s32), first.view(s32))), stage.barrier)
            stage.advance()


def consume(
    type: str,
    shape: Shape,
    stages: tuple[Any, Any],
    tiles: TileOrder,
    memory: tuple[Any, Any, Any],
    d: Any,
    k: Any,
    times: Any,
) -> None:
    """A consumer warpgroup: multiply its rows of each K tile, and store its part of D.

    While the MMAs of one K tile are in flight, those of the next are issued: `stages` are the one that is multiplied
    and the one that has been read.
    """
    (stage, read), (a_tile, b_tile, d_tile) = stages, memory
    product = shape.product(type)
    held = ptx.warpgroup_fragments(product)
    own = (ptx.tid.x - GROUP) // GROUP * 64  # the first row of this warpgroup in a tile
    for number in tiles.each():
        row, column = tiles.origin(number)
        accumulators = [f32() for _ in held.d.offsets]
        adds = ptx.setp.ne.u32(k, k)  # whether the accumulators have a value
        for start in ptx.range(0, k, DEPTH):
            with times.span("wait for a full stage"):
                stage.wait()
            with times.span("multiply"):
                ptx.wgmma.fence.sync.aligned()
                for step in range(0, DEPTH, 16):
                    left = own_rows(ptx.descriptor(a_tile, 0, step, stage.index), own)
                    product(accumulators, left, ptx.descriptor(b_tile, 0, step, stage.index), adds, 1, 1, 0, 0)
                    ptx.setp.eq.u32(k, k, out=adds)
                ptx.wgmma.commit_group.sync.aligned()
                ptx.wgmma.wait_group.sync.aligned(1)  # the MMAs of the K tile before
            with ptx.when(start > 0):
                release(read)
            stage.advance()
        with times.span("multiply"):
            ptx.wgmma.wait_group.sync.aligned(0)
        release(read)
        with times.span("store"):
            write(type, shape, accumulators, d_tile, d, row + own, column)
    ptx.cp.async_.bulk.wait_group(0, when=ptx.tid.x % GROUP == 0)


def release(stage: Any) -> None:
    """A warp is done with a stage."""
    with ptx.when(ptx.laneid == 0):
        stage.arrive()
    stage.advance()


def own_rows(descriptor: Any, first: Any) -> Any:
    """The same matrix from row `first` on: rows are 128 bytes long, and a descriptor counts in 16."""
    return descriptor + ptx.cvt.u64.u32(first * 8)


def write(type: str, shape: Shape, accumulators: Any, tile: Any, d: Any, row: Any, column: Any) -> None:
    """The part of D that a warpgroup has: rounded, through shared memory, and from there by TMA copies.

    These skip what is out of bounds of D. They run while the next tile is multiplied; before the memory is used again,
    they have read it.
    """
    group, warp = ptx.tid.x // GROUP - 1, ptx.tid.x >> 5 & 3
    first, copies = ptx.tid.x % GROUP == 0, shape.columns // BOX
    ptx.cp.async_.bulk.wait_group.read(0, when=first)
    synchronize(group)
    block = ptx.warpgroup_fragments(ptx.wgmma.mma_async.sync.aligned.m64n16k16.f32[type][type]).d.packed(f16)
    each = 2 * block.registers
    for number in range(0, len(accumulators), each):
        at = number // each * 16
        element = tile.matrices(block, ptx.laneid, warp * 16, at % BOX, group * copies + at // BOX)
        pairs = [accumulators[pair : pair + 2] for pair in range(number, number + each, 2)]
        block.store(element, [ptx.cvt.rn[f"{type}x2"].f32(high, low).view(b32) for low, high in pairs])
    ptx.fence.proxy.async_["shared::cta"]()
    synchronize(group)
    with ptx.when(first):
        for copy in range(copies):
            there = (column + copy * BOX).view(s32), row.view(s32)
            COPY_BACK((d, there), tile.at(0, 0, group * copies + copy))
        ptx.cp.async_.bulk.commit_group()


def synchronize(group: Any) -> None:
    """Synchronize the threads of a warpgroup, at a barrier of their own."""
    ptx.barrier.sync.aligned(group + 1, GROUP)
