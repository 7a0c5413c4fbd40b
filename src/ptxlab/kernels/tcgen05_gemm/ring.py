"""Step 2: a ring of stages. Copies run ahead of the MMAs, which free a stage by `tcgen05.commit`.

Thread 0 issues the copies and thread 32 the MMAs. All four warps wait for the last commit and read the accumulators.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab.author import Kernel, Pointer, b16, b64, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.tcgen05_gemm.one_tile import store, wait
from ptxlab.kernels.tcgen05_gemm.parts import COMMIT, DEPTH, ROWS, Shape, copy, multiply

if TYPE_CHECKING:
    from ptxlab.author.operand import Text
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A and B, D, m, n and k."""
    bits = ptx.instruction_descriptor("f16", ROWS, shape.columns, type)

    @kernel(target="sm_100a", maxntid=128)
    def ring(a: tensor_map, b: tensor_map, d: pointer[b16], m: u32, n: u32, k: u32) -> None:
        thread, warp = ptx.tid.x, ptx.tid.x >> 5
        a_tile, b_tile, _ = shape.tiles(ptx.dynamic_shared(b16, align=1024))
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
        wait(done, 0)
        ptx.tcgen05.fence__after_thread_sync()
        store(type, shape, tmem, warp, d, (row, column), (m, n))
        tmem.free()

    found: Kernel = ring
    return found


def produce(shape: Shape, stage: Side, a: tuple[Pointer, Tile, u32], b: Any, k: u32) -> None:
    """Copy the K tiles of a tile of D, each as soon as a stage is empty; A and B are map, tile and first row."""
    for start in ptx.range(0, k, DEPTH):
        stage.wait()
        ptx.mbarrier.arrive.expect_tx.shared.b64(stage.barrier, shape.stage_bytes)
        for source, tile, first in (a, b):
            copy(source, tile, stage.index, first, start, stage.barrier)
        stage.advance()


def issue(stage: Side, d: Text, a_tile: Tile, b_tile: Tile, bits: int, k: u32) -> None:
    """Multiply the K tiles of a tile of D, each as soon as its stage is full, and free the stage when that is done."""
    for start in ptx.range(0, k, DEPTH):
        stage.wait()
        multiply(d, a_tile, b_tile, stage.index, bits, start > 0)
        COMMIT(stage.barrier)
        stage.advance()
