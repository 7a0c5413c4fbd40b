"""The product by pairs of blocks (2SM): a tile of 256 rows, for which the first block of a cluster multiplies.

Each block copies its 128 rows of A and half of the columns of B, so that B is copied once for 256 rows. Scale factors
go where accumulators are: each block has those of its own rows, and those of all columns. `tcgen05.cp` with
`cta_group::2` copies them in both blocks, each from its own shared memory.
"""

from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, b8, b16, b32, kernel, pred, ptx, s32, tensor_maps, u32
from ptxlab.author.pipelines import Side
from ptxlab.author.tensor_memory import TensorMemory
from ptxlab.kernels.nvfp4_gemm.kernel import COPY_FACTORS, FACTORS, ROW, STEPS, TOGETHER, Maps, Shape
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS, write_tiles
from ptxlab.kernels.tcgen05_gemm.pair import BLOCKS, COPY, arrive_in_first, first_block, multiplied
from ptxlab.kernels.tcgen05_gemm.parts import BOX, ROWS
from ptxlab.measure.block_scaled import BLOCK

TO_TMEM = ptx.tcgen05.cp["cta_group::2"]["32x128b"].warpx4
MULTIPLY = ptx.tcgen05.mma["cta_group::2"]
BUFFERS = 1  # sets of accumulators: 256 columns of tensor memory


def stage_bytes(shape: Shape) -> int:
    """Bytes of a stage in one block."""
    return ROW * (ROWS + shape.columns) + FACTORS * shape.scale_factors * (1 + BLOCKS * shape.blocks)


def shared_bytes(shape: Shape) -> int:
    """Bytes of dynamic shared memory."""
    return shape.stages * stage_bytes(shape) + 2 * ROWS * BLOCKS * shape.columns


class Stages:
    """What one block has of the K tiles and of the factors, in all stages; `shape` is of one block's B."""

    def __init__(self, shape: Shape, memory: Pointer) -> None:
        self.shape, self.tiles, self.scale_factors = shape, [], []
        for rows in (ROWS, shape.columns):
            self.tiles.append(ptx.tile(b8, rows, ROW, swizzle="128B", copies=shape.stages, at=memory))
            memory = memory + shape.stages * rows * ROW
        self.each = [shape.scale_factors, shape.scale_factors * BLOCKS * shape.blocks]  # blocks of factors in a stage
        for count in self.each:
            at = ptx.pointer_to(b32, "shared", memory.address)
            self.scale_factors.append(ptx.tile(b32, 32, 4, copies=count * shape.stages, at=at))
            memory = memory + count * shape.stages * FACTORS
        self.after = memory

    def copy(self, stage: Side, maps: Maps, firsts: tuple[u32, u32], columns: u32, start: u32) -> None:
        """Start the copies of a stage; `firsts` are the first rows of this block in A and B, `columns` that of both."""
        with ptx.when(ptx.cluster_ctarank == 0):
            ptx.mbarrier.arrive.expect_tx.shared.b64(stage.barrier, BLOCKS * stage_bytes(self.shape))
        filled, depth = first_block(stage.barrier), self.shape.depth
        for number, (own, of_factors) in enumerate(zip(firsts, (firsts[0], columns), strict=True)):
            here = (start // (depth // ROW)).view(s32), own.view(s32)
            COPY(self.tiles[number].at(0, 0, stage.index), (maps.matrices[number], here), filled)
            blocks = 0, 0, (start // (4 * self.shape.format.group)).view(s32), (of_factors // BLOCK).view(s32)
            target = self.scale_factors[number].at(0, 0, stage.index * self.each[number])
            COPY_FACTORS["cta_group::2"](target, (maps.scale_factors[number], blocks), filled)

    def multiply(self, stage: Side, tmem: TensorMemory, adds: pred) -> None:
        """Issue the copies of factors and the MMAs of a stage, for both blocks."""
        shape, format = self.shape, self.shape.format
        a, b = (ptx.descriptor(tile, copy=stage.index) for tile in self.tiles)
        issue, always = MULTIPLY[f"kind::{format.kind}"].block_scale[format.size], ptx.setp.eq.u32(0, 0)
        for step in range(STEPS):
            block, within = divmod(step * format.scale_factors, 4)
            if within == 0:
                factors = [self._move_factors(number, stage, tmem, block) for number in range(2)]
            bits = ptx.instruction_descriptor(
                format.kind, BLOCKS * ROWS, BLOCKS * shape.columns, format.type, blocks=BLOCKS, scale=format.factor,
                a_id=within, b_id=within,
            )  # fmt: skip
            further = step * ROW // STEPS // 16
            issue(tmem.at(), a + further, b + further, bits, *factors, always if step else adds)

    def _move_factors(self, number: int, stage: Side, tmem: TensorMemory, block: int) -> Any:
        """Copy a block of factors for all rows of a matrix to tensor memory, after the accumulators."""
        shape, beside = self.shape, BLOCKS * self.shape.blocks if number else 1
        column = BUFFERS * BLOCKS * shape.columns + 4 * (number * shape.scale_factors + block * beside)
        start = ptx.descriptor(self.scale_factors[number], copy=stage.index * self.each[number])
        for each in range(beside):
            TO_TMEM(tmem.at(column + 4 * each), start + (each * shape.scale_factors + block) * FACTORS // 16)
        return tmem.at(column)


@cache
def specialize(shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps, as `Maps` reads them, m, n and k."""
    given: Any = tensor_maps(5)
    columns = BLOCKS * shape.columns

    @kernel(target="sm_100a", maxntid=THREADS, minnctapersm=1, reqnctapercluster=BLOCKS)
    def nvfp4_gemm_pair(maps: given, m: u32, n: u32, k: u32) -> None:
        thread, warp, rank = ptx.tid.x, ptx.tid.x >> 5, ptx.cluster_ctarank
        stages, all_maps = Stages(shape, ptx.dynamic_shared(b8, align=1024)), Maps(maps.generic.address, 1)
        d_tile = ptx.tile(b16, ROWS, BOX, swizzle="128B", copies=columns // BOX, at=stages.after)
        ring = ptx.barrier_pipeline(shape.stages, fills=1, reads=1, when=thread == 0)
        accumulators = ptx.barrier_pipeline(BUFFERS, fills=1, reads=4 * BLOCKS, when=thread == 0)
        tmem = ptx.tensor_memory(512, when=warp == 0, blocks=BLOCKS)
        tiles = TileOrder(BLOCKS * ROWS, columns, TOGETHER, m, n, BLOCKS)
        with ptx.when(thread == 0):
            stage = ring.producer()
            for number in tiles.each():
                row, column = tiles.origin(number)
                firsts = row + rank * ROWS, column + rank * shape.columns
                for start in ptx.range(0, k, shape.depth):
                    stage.wait()
                    stages.copy(stage, all_maps, firsts, column, start)
                    stage.advance()
        with ptx.when(ptx.and_.pred(thread == 32, rank == 0)):
            for stage, _, start in multiplied(tiles, ring, accumulators, k, shape.depth):
                stages.multiply(stage, tmem, start > 0)
        with ptx.when(warp >= 2):
            origins = (tiles.origin(number) for number in tiles.each())
            written = ((all_maps.d, row + rank * ROWS, column) for row, column in origins)
            write_tiles("f16", columns, written, accumulators.consumer(), tmem, d_tile, arrive=arrive_in_first)
        tmem.free()

    return nvfp4_gemm_pair
