"""D = A·Bᵀ of matrices with scale factors: a persistent kernel with a warp for each role, as `tcgen05_gemm` ends with.

With a stage come the factors of its rows. The thread that multiplies first copies them to tensor memory, where the MMA
reads them: `tcgen05.cp` and `tcgen05.mma` of one thread are executed in their order, and nothing is between the two.

With two matrices B, two products are computed side by side, and `finish` makes one number of two accumulators.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from ptxlab.author import Kernel, Pointer, Scalar, b8, b16, b32, kernel, pred, ptx, s32, tensor_maps, u16, u32
from ptxlab.author.pipelines import Side
from ptxlab.author.tensor_memory import TensorMemory
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS, Finish, write_tiles
from ptxlab.kernels.tcgen05_gemm.parts import BOX, COMMIT, COPY, ROWS
from ptxlab.measure.block_scaled import BLOCK, NVFP4, Format

ROW = 128  # bytes of a row of a K tile
STEPS = 4  # MMAs of a K tile, of 32 bytes of a row each
FACTORS = 512  # bytes of a block of factors
COPY_FACTORS = ptx.cp.async_.bulk.tensor["4d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
TO_CELLS = ptx.tcgen05.cp["cta_group::1"]["32x128b"].warpx4
MULTIPLY = ptx.tcgen05.mma["cta_group::1"]
COMMIT_IN_ALL = ptx.tcgen05.commit["cta_group::1"]["mbarrier::arrive::one"]["shared::cluster"]["multicast::cluster"].b64
TOGETHER = 8


@dataclass(frozen=True)
class Shape:
    """The columns of a tile of D, the stages of the ring, the matrices B, and the sets of accumulators.

    With a `collector`, the tensor core keeps A for the products after the first. So many blocks of a `cluster` compute
    tiles side by side: the first one copies A for all.
    """

    columns: int = 128
    stages: int = 4
    products: int = 1
    buffers: int = 2
    collector: bool = False
    cluster: int = 1
    format: Format = NVFP4

    @property
    def depth(self) -> int:
        """Numbers of a row of a K tile."""
        return ROW * 8 // self.format.bits

    @property
    def scale_factors(self) -> int:
        """Blocks of factors that 128 rows of a K tile have."""
        return STEPS * self.format.scale_factors // 4

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: K tiles of A and of each B, and their factors."""
        return ROW * (ROWS + self.products * self.columns) + self.scale_factors * FACTORS * (
            1 + self.products * self.blocks
        )

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * self.stage_bytes + 2 * ROWS * self.columns

    @property
    def blocks(self) -> int:
        """Blocks of factors beside each other that the columns of a tile have."""
        return self.columns // BLOCK

    @property
    def buffer_columns(self) -> int:
        """Columns of tensor memory of one set of accumulators."""
        return self.products * self.columns


class Maps:
    """The tensor maps of a product in one structure: matrix and factors of A, of each B, then D."""

    def __init__(self, address: Scalar, products: int) -> None:
        self.matrices = [address + 256 * number for number in range(1 + products)]
        self.scale_factors = [address + (256 * number + 128) for number in range(1 + products)]
        self.d = address + 256 * (1 + products)


class Tile(NamedTuple):
    """A tile of D to compute: the maps of its product, its first row and column, and k."""

    maps: Maps
    row: u32
    column: u32
    k: u32


class Stages:
    """The K tiles of A and each B in all stages, and their factors."""

    def __init__(self, shape: Shape, memory: Pointer) -> None:
        self.shape, self.tiles, self.scale_factors = shape, [], []
        rows = [ROWS, *[shape.columns] * shape.products]
        for each in rows:
            self.tiles.append(ptx.tile(b8, each, ROW, swizzle="128B", copies=shape.stages, at=memory))
            memory = memory + shape.stages * each * ROW
        for each in rows:
            count = shape.scale_factors * shape.stages * each // BLOCK
            self.scale_factors.append(
                ptx.tile(b32, 32, 4, copies=count, at=ptx.pointer_to(b32, "shared", memory.address))
            )
            memory = memory + count * FACTORS
        self.after = memory

    def copy(self, stage: Side, tile: Tile, start: u32) -> None:
        """Start the copies of a stage: a K tile of A and of each B, and their factors."""
        index, barrier, cluster = stage.index, stage.barrier, self.shape.cluster
        ptx.mbarrier.arrive.expect_tx.shared.b64(barrier, self.shape.stage_bytes)
        for number, (target, scale_factors) in enumerate(zip(self.tiles, self.scale_factors, strict=True)):
            first, each = tile.column if number else tile.row, self.shape.scale_factors * target.rows // BLOCK
            here = (start // (self.shape.depth // ROW)).view(s32), first.view(s32)
            blocks = 0, 0, (start // (4 * self.shape.format.group)).view(s32), (first // BLOCK).view(s32)
            copies = (
                (COPY, target.at(0, 0, index), (tile.maps.matrices[number], here)),
                (COPY_FACTORS, scale_factors.at(0, 0, index * each), (tile.maps.scale_factors[number], blocks)),
            )
            if number or cluster == 1:
                for copy, to, box in copies:
                    copy(to, box, barrier)
                continue
            with ptx.when(ptx.cluster_ctarank == 0):
                for copy, to, box in copies:
                    copy["multicast::cluster"](to, box, barrier, u16(2**cluster - 1))

    def multiply(self, stage: Side, tmem: TensorMemory, first: u32, adds: pred) -> None:
        """Issue the copies of factors and the MMAs of a stage, into accumulators from column `first` on."""
        shape, format = self.shape, self.shape.format
        a, *right = (ptx.descriptor(tile, copy=stage.index) for tile in self.tiles)
        always = ptx.setp.eq.u32(0, 0)
        issue = MULTIPLY[f"kind::{format.kind}"].block_scale[format.size]
        each = [issue] * shape.products
        if shape.collector:
            uses = "fill", *["use"] * (shape.products - 2), "lastuse"
            each = [issue[f"collector::a::{use}"] for use in uses]
        for step in range(STEPS):
            block, within = divmod(step * format.scale_factors, 4)
            if within == 0:
                moved = [self._move_factors(number, stage, tmem, block) for number in range(len(self.tiles))]
            bits = ptx.instruction_descriptor(
                format.kind, ROWS, shape.columns, format.type, scale=format.factor, a_id=within, b_id=within
            )
            further = step * ROW // STEPS // 16
            for product, (b, b_factors) in enumerate(zip(right, moved[1:], strict=True)):
                d = tmem.at(first + product * shape.columns)
                each[product](d, a + further, b + further, bits, moved[0], b_factors, always if step else adds)

    def _move_factors(self, number: int, stage: Side, tmem: TensorMemory, block: int) -> Any:
        """Copy a block of factors for all rows of a matrix to tensor memory, after the accumulators."""
        shape = self.shape
        beside = [tile.rows // BLOCK for tile in self.tiles]  # blocks, one for each 128 rows
        column = shape.buffers * shape.buffer_columns
        column += 4 * (shape.scale_factors * sum(beside[:number]) + block * beside[number])
        start = ptx.descriptor(self.scale_factors[number], copy=stage.index * (shape.scale_factors * beside[number]))
        for each in range(beside[number]):
            TO_CELLS(tmem.at(column + 4 * each), start + (each * shape.scale_factors + block) * FACTORS // 16)
        return tmem.at(column)


class Tiles:
    """The tiles of one product that a block computes."""

    copiers = 1  # threads that go through them to copy; the first of these copies

    def __init__(self, shape: Shape, maps: Pointer, m: u32, n: u32, k: u32) -> None:
        self.maps, self.k = Maps(maps.generic.address, shape.products), k
        self.order = TileOrder(ROWS, shape.columns, TOGETHER, m, n)

    def each(self) -> Iterator[Tile]:
        """Each of them, on the GPU."""
        for number in self.order.each():
            yield Tile(self.maps, *self.order.origin(number), self.k)

    to_copy = to_write = each


@cache
def specialize(shape: Shape, finish: Finish | None = None) -> Kernel:
    """Build the kernel; its arguments are the tensor maps, as `Maps` reads them, m, n and k."""
    given: Any = tensor_maps(2 * shape.products + 3)

    @kernel(target="sm_100a", maxntid=THREADS, minnctapersm=1)
    def nvfp4_gemm(maps: given, m: u32, n: u32, k: u32) -> None:
        compute(shape, finish, Tiles(shape, maps, m, n, k))

    return nvfp4_gemm


def compute(shape: Shape, finish: Finish | None, tiles: Any) -> None:
    """All roles of a block: each goes through the tiles on its own."""
    thread, warp = ptx.tid.x, ptx.tid.x >> 5
    stages = Stages(shape, ptx.dynamic_shared(b8, align=1024))
    d_tile = ptx.tile(b16, ROWS, BOX, swizzle="128B", copies=shape.columns // BOX, at=stages.after)
    ring = ptx.barrier_pipeline(shape.stages, fills=1, reads=shape.cluster, when=thread == 0)
    accumulators = ptx.barrier_pipeline(shape.buffers, fills=1, reads=4, when=thread == 0)
    tmem = ptx.tensor_memory(512, when=warp == 0)
    if shape.cluster > 1:
        synchronize_cluster()  # the mbarriers of all blocks are initialized
    with ptx.when(thread < tiles.copiers):
        stage = ring.producer()
        for tile in tiles.to_copy():
            with ptx.when(thread == 0) if tiles.copiers > 1 else nullcontext():
                for start in ptx.range(0, tile.k, shape.depth):
                    stage.wait()
                    stages.copy(stage, tile, start)
                    stage.advance()
    with ptx.when(thread == 32):
        stage, buffer = ring.consumer(), accumulators.producer()
        for tile in tiles.each():
            buffer.wait()
            ptx.tcgen05.fence__after_thread_sync()
            for start in ptx.range(0, tile.k, shape.depth):
                stage.wait()
                stages.multiply(stage, tmem, buffer.index * shape.buffer_columns, start > 0)
                if shape.cluster == 1:
                    COMMIT(stage.barrier)
                else:  # the first block copies when all have read
                    COMMIT_IN_ALL(stage.barrier, u16(2**shape.cluster - 1))
                stage.advance()
            COMMIT(buffer.barrier)
            buffer.advance()
    with ptx.when(warp >= 2):
        written = ((tile.maps.d, tile.row, tile.column) for tile in tiles.to_write())
        how: dict[str, Any] = {"products": shape.products, "finish": finish}
        write_tiles("f16", shape.columns, written, accumulators.consumer(), tmem, d_tile, **how)
    tmem.free()
    if shape.cluster > 1:
        synchronize_cluster()  # no block exits while others arrive at its mbarriers


def synchronize_cluster() -> None:
    """Synchronize all threads of the cluster."""
    ptx.barrier.cluster.arrive.release()
    ptx.barrier.cluster.wait.acquire()
