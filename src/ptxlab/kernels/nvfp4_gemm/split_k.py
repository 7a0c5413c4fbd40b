"""The product with k split over the two blocks of a cluster, which add their parts through distributed shared memory.

Few tiles leave most SMs idle: with two blocks for a tile, twice as many are at work. Each block multiplies half of the
K tiles. The second block's epilogue then stores its accumulators to the shared memory of the first, whose epilogue adds
them to its own; a barrier of the cluster is between the two. A cluster computes one tile.
"""

from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, b8, b16, f32, kernel, ptx, tensor_maps, u32
from ptxlab.author.tensor_memory import TensorMemory
from ptxlab.author.tiles import Tile as SharedTile
from ptxlab.kernels.nvfp4_gemm.kernel import Maps, Shape, Stages, Tile, synchronize_cluster
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.tcgen05_gemm.epilogue import LOAD, THREADS, WRITERS, write
from ptxlab.kernels.tcgen05_gemm.parts import BOX, COMMIT, ROWS, pairs

BLOCKS = 2  # of a cluster
PIECE = 32  # columns that a thread loads at a time
RASTER = 8


def shared_bytes(shape: Shape) -> int:
    """Bytes of dynamic shared memory: as without the split, and the accumulators of the other block."""
    return shape.shared + 4 * ROWS * shape.columns


@cache
def specialize(shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps, as `Maps` reads them, m, n and k."""
    given: Any = tensor_maps(5)

    @kernel(target="sm_100a", maxntid=THREADS, minnctapersm=1, reqnctapercluster=BLOCKS)
    def nvfp4_gemm_split_k(maps: given, m: u32, n: u32, k: u32) -> None:
        thread, warp, rank = ptx.tid.x, ptx.tid.x >> 5, ptx.cluster_ctarank
        stages = Stages(shape, ptx.dynamic_shared(b8, align=1024))
        d_tile = ptx.tile(b16, ROWS, BOX, swizzle="128B", copies=shape.columns // BOX, at=stages.after)
        received = ptx.pointer_to(f32, "shared", (stages.after + 2 * ROWS * shape.columns).address)
        ring = ptx.barrier_pipeline(shape.stages, fills=1, reads=1, when=thread == 0)
        done = ptx.barrier_pipeline(1, fills=1, reads=1, when=thread == 0)
        tmem = ptx.tensor_memory(512, when=warp == 0)
        synchronize_cluster()  # the first block has started
        order = TileOrder(ROWS, shape.columns, RASTER, m, n, BLOCKS)
        row, column = order.origin(ptx.ctaid.x // BLOCKS)
        tile = Tile(Maps(maps.generic.address, 1), row, column, k)
        half = (k + (BLOCKS * shape.depth - 1)) // (BLOCKS * shape.depth) * shape.depth
        first, end = rank * half, ptx.min.u32(k, (rank + 1) * half)
        with ptx.when(thread == 0):
            stage = ring.producer()
            for start in ptx.range(first, end, shape.depth):
                stage.wait()
                stages.copy(stage, tile, start)
                stage.advance()
        with ptx.when(thread == 32):
            stage, buffer = ring.consumer(), done.producer()
            for start in ptx.range(first, end, shape.depth):
                stage.wait()
                stages.multiply(stage, tmem, u32(0), start > first)
                COMMIT(stage.barrier)
                stage.advance()
            COMMIT(buffer.barrier)
        with ptx.when(warp >= 2):
            done.consumer().wait()
            ptx.tcgen05.fence__after_thread_sync()
            with ptx.when(rank == 1):
                send(shape, tmem, received)
        synchronize_cluster()  # the first block has the accumulators of the second
        with ptx.when(warp >= 2), ptx.when(rank == 0):
            add(shape, tmem, received, d_tile)
            write(shape.columns, d_tile, tile.maps.d, row, column)
            ptx.cp.async_.bulk.wait_group(0, when=thread == THREADS - WRITERS)
        tmem.free()

    return nvfp4_gemm_split_k


def send(shape: Shape, tmem: TensorMemory, received: Pointer) -> None:
    """Store the accumulators of this thread's row in the first block, four at a time: 32 rows side by side."""
    for column, values in loaded(shape, tmem):
        for part in range(0, PIECE, 4):
            there = ptx.mapa.shared__cluster.u32(_at(received, column + part), 0)
            ptx.st.shared__cluster.v4.f32(there, values[part : part + 4])


def add(shape: Shape, tmem: TensorMemory, received: Pointer, tile: SharedTile) -> None:
    """Add what was received to the accumulators, and copy them to shared memory, rounded."""
    row = (ptx.tid.x >> 5 & 3) * 32 + ptx.laneid
    for column, values in loaded(shape, tmem):
        summed = []
        for part in range(0, PIECE, 4):
            others = ptx.ld.shared.v4.f32(_at(received, column + part))
            summed += [ptx.add.rn.f32(own, other) for own, other in zip(values[part : part + 4], others, strict=True)]
        rounded = pairs("f16", summed)
        for chunk in range(0, PIECE, 8):
            at = column + chunk
            ptx.st.shared.v4.b32(tile.at(row, at % BOX, at // BOX), rounded[chunk // 2 : chunk // 2 + 4])


def loaded(shape: Shape, tmem: TensorMemory) -> Any:
    """The accumulators of this thread's row, some columns at a time, each with its first column."""
    warp = ptx.tid.x >> 5 & 3
    for column in range(0, shape.columns, PIECE):
        values = [f32() for _ in range(PIECE)]
        LOAD(tmem.rows(warp, column), out=[values])
        ptx.tcgen05.wait__ld.sync.aligned()
        yield column, values


def _at(received: Pointer, column: int) -> Pointer:
    """Where four columns of this thread's row are: those of all rows side by side."""
    row = (ptx.tid.x >> 5 & 3) * 32 + ptx.laneid
    return received + (row * 4 + column * ROWS)
