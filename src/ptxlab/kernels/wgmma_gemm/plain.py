"""D = A·Bᵀ, the plain way: a warpgroup computes one tile of D. It copies, waits, multiplies, waits: nothing overlaps.

Read this before `kernel.py`. Between the two are the five steps of `wgmma_steps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ptxlab
from ptxlab.author import b16, b32, b64, f32, kernel, pointer, ptx, s32, tensor_map, u32
from ptxlab.device.array_types import type_of
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

ROWS, COLUMNS = 64, 128  # of a tile of D: what one wgmma computes
DEPTH = 64  # elements of a row of a K tile: 128 bytes, the width of the swizzle
STEP = 16  # elements that one wgmma multiplies along k
THREADS = 128  # a warpgroup
BYTES = 2 * DEPTH * (ROWS + COLUMNS)  # of a K tile of A and one of B
COPY = ptx.cp.async_.bulk.tensor["2d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]


@kernel(target="sm_90a", maxntid=THREADS)
def gemm_plain(a: tensor_map, b: tensor_map, d: pointer[b16], m: u32, n: u32, k: u32, *, TYPE: str) -> None:  # noqa: N803
    """Block (x, y) computes the tile with the columns from 128·x and the rows from 64·y."""
    memory, copied = ptx.dynamic_shared(b16, align=1024), ptx.shared(b64, 1, name="copied").at(0)
    a_tile = ptx.tile(b16, ROWS, DEPTH, swizzle="128B", at=memory)
    b_tile = ptx.tile(b16, COLUMNS, DEPTH, swizzle="128B", at=memory + ROWS * DEPTH)
    row, column = ptx.ctaid.y * ROWS, ptx.ctaid.x * COLUMNS
    is_first, parity = ptx.tid.x == 0, u32(0)
    ptx.mbarrier.init.shared.b64(copied, 1, when=is_first)
    ptx.bar.sync(0)

    multiply = ptx.wgmma.mma_async.sync.aligned[f"m64n{COLUMNS}k{STEP}"].f32[TYPE][TYPE]
    accumulators = [f32(0.0) for _ in range(COLUMNS // 2)]  # of each thread
    for start in ptx.range(0, k, DEPTH):
        with ptx.when(is_first):  # one thread announces the bytes, and the copies bring them
            ptx.mbarrier.arrive.expect_tx.shared.b64(copied, BYTES)
            COPY(a_tile.at(0, 0), (a.generic, (start.view(s32), row.view(s32))), copied)
            COPY(b_tile.at(0, 0), (b.generic, (start.view(s32), column.view(s32))), copied)
        with ptx.loop():
            ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(copied, parity))
        ptx.xor.b32(parity, 1, out=parity)
        ptx.wgmma.fence.sync.aligned()
        for along in range(0, 2 * DEPTH, 2 * STEP):  # bytes; a descriptor counts 16 at a time
            operands = ptx.descriptor(a_tile) + along // 16, ptx.descriptor(b_tile) + along // 16
            multiply(accumulators, *operands, True, 1, 1, 0, 0)
        ptx.wgmma.commit_group.sync.aligned()
        ptx.wgmma.wait_group.sync.aligned(0)
        ptx.bar.sync(0)  # all four warps have read the K tiles: the next ones may come

    warp, lane = ptx.tid.x >> 5, ptx.laneid
    column = column + (lane & 3) * 2  # the first of two that a thread has of every 8
    for half in range(2):  # a thread has accumulators of two rows
        own = row + warp * 16 + (lane >> 2) + 8 * half
        for number in range(COLUMNS // 8):
            low, high = accumulators[4 * number + 2 * half :][:2]
            word = ptx.cvt.rn[f"{TYPE}x2"].f32(high, low).view(b32)
            is_inside = ptx.and_.pred(own < m, column + 8 * number < n)
            ptx.st.global_.b32(d.at(ptx.mad.lo.u32(own, n, column + 8 * number)), word, when=is_inside)


def plain(a: Array, b: Array, d: Array) -> Launch:
    """A block for each tile of D; rows of A and B run along k."""
    (m, k), (n, _) = a.shape, b.shape
    if k % 8 or n % 2:
        raise UnsuitedError(f"k is {k} and n is {n}: k must be a multiple of 8, and n of 2")
    maps = [ptxlab.tensor_map(one, box=(rows, DEPTH), swizzle="128B") for one, rows in ((a, ROWS), (b, COLUMNS))]
    grid = ceil_div(n, COLUMNS), ceil_div(m, ROWS)
    return Launch(gemm_plain.specialize(TYPE=type_of(a)), grid, THREADS, [*maps, d, m, n, k], BYTES)
