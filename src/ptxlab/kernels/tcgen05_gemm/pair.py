"""Step 5: two blocks of a cluster compute a tile of 256 rows. Each copies its rows of A and half the columns of B.

The first block multiplies for both: `cta_group::2` reads A and B from the shared memory of both, and writes each half
of the rows to the tensor memory of its own block. So B is copied and read once for 256 rows instead of twice. Copies
of both blocks count at the first one's `filled` barrier, and each commit arrives in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab.author import Kernel, Pointer, b16, kernel, ptx, s32, tensor_map, u16, u32
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS, write_tiles
from ptxlab.kernels.tcgen05_gemm.parts import BOX, DEPTH, ROWS, Shape, multiply
from ptxlab.kernels.tcgen05_gemm.persistent import BUFFERS, TOGETHER

if TYPE_CHECKING:
    from ptxlab.author.pipelines import BarrierPipeline, Side

BLOCKS = 2
COPY = ptx.cp.async_.bulk.tensor["2d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]["cta_group::2"]
MULTIPLY = ptx.tcgen05.mma["cta_group::2"]["kind::f16"]
COMMIT = ptx.tcgen05.commit["cta_group::2"]["mbarrier::arrive::one"]["shared::cluster"]["multicast::cluster"].b64


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k. `shape` is of one block's B."""
    columns = BLOCKS * shape.columns
    bits = ptx.instruction_descriptor("f16", BLOCKS * ROWS, columns, type, blocks=BLOCKS)

    @kernel(target="sm_100a", maxntid=THREADS, reqnctapercluster=BLOCKS)
    def pair(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        thread, warp, rank = ptx.tid.x, ptx.tid.x >> 5, ptx.cluster_ctarank
        a_tile, b_tile, free = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        d_tile = ptx.tile(b16, ROWS, BOX, swizzle="128B", copies=columns // BOX, at=free)
        stages = ptx.barrier_pipeline(shape.stages, fills=1, reads=1, when=thread == 0)
        accumulators = ptx.barrier_pipeline(BUFFERS, fills=1, reads=4 * BLOCKS, when=thread == 0)
        tmem = ptx.tensor_memory(BUFFERS * columns, when=warp == 0, blocks=BLOCKS)
        tiles = TileOrder(BLOCKS * ROWS, columns, TOGETHER, m, n, BLOCKS)
        with ptx.when(thread == 0):
            stage = stages.producer()
            for number in tiles.each():
                row, column = tiles.origin(number)
                firsts = row + rank * ROWS, column + rank * shape.columns
                produce(shape, stage, rank, ((a.generic, a_tile), (b.generic, b_tile)), firsts, k)
        with ptx.when(ptx.and_.pred(thread == 32, rank == 0)):
            for stage, buffer, start in multiplied(tiles, stages, accumulators, k, DEPTH):
                multiply(tmem.at(buffer.index * columns), a_tile, b_tile, stage.index, bits, start > 0, MULTIPLY)
        with ptx.when(warp >= 2):
            origins = (tiles.origin(number) for number in tiles.each())
            written = ((d.generic, row + rank * ROWS, column) for row, column in origins)
            write_tiles(type, columns, written, accumulators.consumer(), tmem, d_tile, arrive=arrive_in_first)
        tmem.free()

    found: Kernel = pair
    return found


def multiplied(
    tiles: TileOrder, stages: BarrierPipeline, accumulators: BarrierPipeline, k: u32, depth: int
) -> Iterator[tuple[Side, Side, u32]]:
    """What the thread that issues MMAs loops over: each stage, the accumulators, and where the K tile starts.

    Both blocks know by a commit when a stage has been read, and when accumulators are complete.
    """
    stage, buffer, both = stages.consumer(), accumulators.producer(), u16(3)
    for _ in tiles.each():
        buffer.wait()
        ptx.tcgen05.fence__after_thread_sync()
        for start in ptx.range(0, k, depth):
            stage.wait()
            yield stage, buffer, start
            COMMIT(stage.barrier, both)
            stage.advance()
        COMMIT(buffer.barrier, both)
        buffer.advance()


def first_block(barrier: Pointer) -> u32:
    """The address of the same mbarrier in the first block."""
    return ptx.mapa.shared__cluster.u32(barrier, 0)


def arrive_in_first(buffer: Side) -> None:
    """Say to the first block, which multiplies, that a warp has read the accumulators."""
    ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(first_block(buffer.barrier))


def produce(shape: Shape, stage: Side, rank: u32, sources: Any, firsts: tuple[u32, u32], k: u32) -> None:
    """Copy the K tiles of this block; the first one also says how many bytes come to both."""
    for start in ptx.range(0, k, DEPTH):
        stage.wait()
        with ptx.when(rank == 0):
            ptx.mbarrier.arrive.expect_tx.shared.b64(stage.barrier, BLOCKS * shape.stage_bytes)
        filled = first_block(stage.barrier)
        for (source, tile), first in zip(sources, firsts, strict=True):
            COPY(tile.at(0, 0, stage.index), (source, (start.view(s32), first.view(s32))), filled)
        stage.advance()
