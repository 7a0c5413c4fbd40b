"""Step 4: a block computes one tile after the other, with two sets of accumulators.

While four warps write the accumulators of a tile, the MMAs of the next one run; the copies are already further ahead.
"""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, b16, kernel, ptx, tensor_map, u32
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS, write_tiles
from ptxlab.kernels.tcgen05_gemm.parts import BOX, COMMIT, ROWS, Shape
from ptxlab.kernels.tcgen05_gemm.ring import issue, produce

BUFFERS = 2  # sets of accumulators
TOGETHER = 8  # rows of tiles that are computed column after column


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k."""
    bits = ptx.instruction_descriptor("f16", ROWS, shape.columns, type)

    @kernel(target="sm_100a", maxntid=THREADS)
    def persistent(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        thread, warp = ptx.tid.x, ptx.tid.x >> 5
        a_tile, b_tile, free = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        d_tile = ptx.tile(b16, ROWS, BOX, swizzle="128B", copies=shape.columns // BOX, at=free)
        stages = ptx.barrier_pipeline(shape.stages, fills=1, reads=1, when=thread == 0)
        accumulators = ptx.barrier_pipeline(BUFFERS, fills=1, reads=4, when=thread == 0)
        tmem = ptx.tensor_memory(BUFFERS * shape.columns, when=warp == 0)
        tiles = TileOrder(ROWS, shape.columns, TOGETHER, m, n)
        with ptx.when(thread == 0):
            stage = stages.producer()
            for number in tiles.each():
                row, column = tiles.origin(number)
                produce(shape, stage, (a.generic, a_tile, row), (b.generic, b_tile, column), k)
        with ptx.when(thread == 32):
            stage, buffer = stages.consumer(), accumulators.producer()
            for _ in tiles.each():
                buffer.wait()
                ptx.tcgen05.fence__after_thread_sync()
                issue(stage, tmem.at(buffer.index * shape.columns), a_tile, b_tile, bits, k)
                COMMIT(buffer.barrier)
                buffer.advance()
        with ptx.when(warp >= 2):
            written = ((d.generic, *tiles.origin(number)) for number in tiles.each())
            write_tiles(type, shape.columns, written, accumulators.consumer(), tmem, d_tile)
        tmem.free()

    found: Kernel = persistent
    return found
