"""Step 1: a block computes one tile of D with one stage. Copy, wait, multiply, wait: nothing overlaps.

Thread 0 issues everything; all four warps read the accumulators, each its 32 lanes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ptxlab.author import Kernel, Pointer, b16, b64, f32, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.tcgen05_gemm.parts import COMMIT, DEPTH, ROWS, Shape, copy, multiply, pairs

if TYPE_CHECKING:
    from ptxlab.author.tensor_memory import TensorMemory

LOAD = ptx.tcgen05.ld.sync.aligned["32x32b"].x8.b32


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A and B, D, m, n and k."""
    bits = ptx.instruction_descriptor("f16", ROWS, shape.columns, type)

    @kernel(target="sm_100a", maxntid=128)
    def one_tile(a: tensor_map, b: tensor_map, d: pointer[b16], m: u32, n: u32, k: u32) -> None:
        first, warp = ptx.tid.x == 0, ptx.tid.x >> 5
        a_tile, b_tile, _ = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        full, done = ptx.shared(b64, 1), ptx.shared(b64, 1)
        ptx.mbarrier.init.shared.b64(full.at(0), 1, when=first)
        ptx.mbarrier.init.shared.b64(done.at(0), 1, when=first)
        tmem = ptx.tensor_memory(shape.columns, when=warp == 0)
        row, column = ptx.ctaid.y * ROWS, ptx.ctaid.x * shape.columns
        with ptx.when(first):
            parity = u32(0)
            for start in ptx.range(0, k, DEPTH):
                ptx.mbarrier.arrive.expect_tx.shared.b64(full.at(0), shape.stage_bytes)
                copy(a.generic, a_tile, 0, row, start, full.at(0))
                copy(b.generic, b_tile, 0, column, start, full.at(0))
                wait(full, parity)
                multiply(tmem.at(), a_tile, b_tile, 0, bits, start > 0)
                COMMIT(done.at(0))
                wait(done, parity)
                ptx.xor.b32(parity, 1, out=parity)
        ptx.bar.sync(0)
        ptx.tcgen05.fence__after_thread_sync()
        store(type, shape, tmem, warp, d, (row, column), (m, n))
        tmem.free()

    found: Kernel = one_tile
    return found


def wait(barrier: Pointer, parity: int | u32) -> None:
    """Wait for a phase of an mbarrier."""
    with ptx.loop():
        ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(barrier.at(0), parity))


def store(
    type: str, shape: Shape, tmem: TensorMemory, warp: u32, d: Pointer, at: tuple[u32, u32], extents: tuple[u32, u32]
) -> None:
    """Store a row of the tile from each thread, eight columns at a time, where D has them."""
    (row, column), (m, n) = at, extents
    row = row + ptx.tid.x % ROWS
    for part in ptx.range(0, shape.columns, 8):
        values = [f32() for _ in range(8)]
        LOAD(tmem.rows(warp, part), out=[values])
        with ptx.when(ptx.and_.pred(row < m, column + part < n)):
            ptx.st.global_.v4.b32(d.at(ptx.mad.lo.u32(row, n, column + part)), pairs(type, values))
    ptx.tcgen05.wait__ld.sync.aligned()
