"""Step 3: a warp for each role. One copies, one multiplies, four write D by TMA copies from shared memory.

The lanes of tensor memory that a warp can read are those of its number modulo four, so that four warps are needed for
128 rows: warps 2 to 5.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, f32, kernel, ptx, s32, tensor_map, u32
from ptxlab.kernels.tcgen05_gemm.parts import BOX, COMMIT, COPY_BACK, ROWS, Shape, pairs
from ptxlab.kernels.tcgen05_gemm.ring import issue, produce

THREADS = 192
WRITERS = 128  # the threads of the last four warps
LOAD = ptx.tcgen05.ld.sync.aligned["32x32b"].x32.b32
BARRIER = 1  # of the four warps


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, and k."""
    bits = ptx.instruction_descriptor("f16", ROWS, shape.columns, type)

    @kernel(target="sm_100a", maxntid=THREADS)
    def specialized(a: tensor_map, b: tensor_map, d: tensor_map, k: u32) -> None:
        thread, warp = ptx.tid.x, ptx.tid.x >> 5
        a_tile, b_tile, free = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        d_tile = ptx.tile(b16, ROWS, BOX, swizzle="128B", copies=shape.columns // BOX, at=free)
        stages = ptx.barrier_pipeline(shape.stages, fills=1, reads=1, when=thread == 0)
        accumulators = ptx.barrier_pipeline(1, fills=1, reads=4, when=thread == 0)
        cells = ptx.tensor_memory(shape.columns, when=warp == 0)
        row, column = ptx.ctaid.y * ROWS, ptx.ctaid.x * shape.columns
        with ptx.when(thread == 0):
            produce(shape, stages.producer(), (a.generic, a_tile, row), (b.generic, b_tile, column), k)
        with ptx.when(thread == 32):
            issue(stages.consumer(), cells.at(), a_tile, b_tile, bits, k)
            COMMIT(accumulators.producer().barrier)
        with ptx.when(warp >= 2):
            buffer = accumulators.consumer()
            buffer.wait()
            ptx.tcgen05.fence__after_thread_sync()
            read(type, shape.columns, cells, 0, d_tile)
            write(shape.columns, d_tile, d.generic, row, column)
            ptx.cp.async_.bulk.wait_group(0, when=thread == THREADS - WRITERS)
        cells.free()

    found: Kernel = specialized
    return found


def read(type: str, columns: int, cells: Any, first: Any, tile: Any) -> None:
    """Copy the accumulators from column `first` on to shared memory, rounded: each thread one row."""
    warp = ptx.tid.x >> 5 & 3
    row = warp * 32 + ptx.laneid
    for column in range(0, columns, 32):
        values = [f32() for _ in range(32)]
        LOAD(cells.rows(warp, first + column), out=[values])
        rounded = pairs(type, values)
        for chunk in range(0, 32, 8):
            at = column + chunk
            ptx.st.shared.v4.b32(tile.at(row, at % BOX, at // BOX), rounded[chunk // 2 : chunk // 2 + 4])
    ptx.tcgen05.wait__ld.sync.aligned()  # the accumulators may be overwritten


def write(columns: int, tile: Any, d: Any, row: Any, column: Any) -> None:
    """Start the copies of a tile to D, when all four warps have written it; they skip what is beyond D."""
    ptx.fence.proxy.async_["shared::cta"]()
    ptx.barrier.sync.aligned(BARRIER, WRITERS)
    with ptx.when(ptx.tid.x == THREADS - WRITERS):
        for part in range(0, columns, BOX):
            COPY_BACK((d, ((column + part).view(s32), row.view(s32))), tile.at(0, 0, part // BOX))
        ptx.cp.async_.bulk.commit_group()
