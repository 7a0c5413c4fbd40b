"""Step 3: a warp for each role. One copies, one multiplies, four write D by TMA copies from shared memory.

The four are warps 2 to 5; what they do is in `epilogue.py`.
"""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, b16, b64, kernel, ptx, tensor_map, u32
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS, WRITERS, read, write
from ptxlab.kernels.tcgen05_gemm.one_tile import wait
from ptxlab.kernels.tcgen05_gemm.parts import BOX, COMMIT, ROWS, Shape
from ptxlab.kernels.tcgen05_gemm.ring import issue, produce


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
        done = ptx.shared(b64, 1)
        ptx.mbarrier.init.shared.b64(done.at(0), 1, when=thread == 0)
        tmem = ptx.tensor_memory(shape.columns, when=warp == 0)
        row, column = ptx.ctaid.y * ROWS, ptx.ctaid.x * shape.columns
        with ptx.when(thread == 0):
            produce(shape, stages.producer(), (a.generic, a_tile, row), (b.generic, b_tile, column), k)
        with ptx.when(thread == 32):
            issue(stages.consumer(), tmem.at(), a_tile, b_tile, bits, k)
            COMMIT(done.at(0))
        with ptx.when(warp >= 2):
            wait(done, 0)
            ptx.tcgen05.fence__after_thread_sync()
            read(type, shape.columns, tmem, 0, d_tile)
            write(shape.columns, d_tile, d.generic, row, column)
            ptx.cp.async_.bulk.wait_group(0, when=thread == THREADS - WRITERS)
        tmem.free()

    found: Kernel = specialized
    return found
