"""The way of accumulators to D: four warps load them, round them, and store them by TMA copies from shared memory.

A warp reaches the lanes of tensor memory of its number modulo four, so that it takes four of them for 128 rows: warps 2
to 5 of a block of six.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, Scalar, f32, ptx, s32, u32
from ptxlab.author.pipelines import Side
from ptxlab.kernels.tcgen05_gemm.parts import BOX, COPY_BACK, pairs

if TYPE_CHECKING:
    from ptxlab.author.tensor_memory import TensorMemory
    from ptxlab.author.tiles import Tile

THREADS = 192
WRITERS = 128  # the threads of the last four warps
BARRIER = 1  # of these
LOAD = ptx.tcgen05.ld.sync.aligned["32x32b"].x32.b32

Finish = Callable[[Sequence[Any]], Any]


def write_tiles(
    type: str,
    columns: int,
    tiles: Iterable[tuple[Any, u32, u32]],
    buffer: Side,
    tmem: TensorMemory,
    tile: Tile,
    *,
    products: int = 1,
    finish: Finish | None = None,
    arrive: Callable[[Any], None] = Side.arrive,
) -> None:
    """Write tile after tile, each a map of D, a row and a column; copies run while the next accumulators are awaited.

    A buffer of accumulators has `products` results side by side, of which `finish` makes one. `arrive` says that a
    warp has read it, by default at the `buffer`'s own mbarrier.
    """
    for d, row, column in tiles:
        buffer.wait()
        ptx.tcgen05.fence__after_thread_sync()
        ptx.cp.async_.bulk.wait_group.read(0, when=ptx.tid.x == THREADS - WRITERS)
        ptx.barrier.sync.aligned(BARRIER, WRITERS)  # the last copies have read the tile
        read(type, columns, tmem, buffer.index * (products * columns), tile, products, finish)
        with ptx.when(ptx.laneid == 0):
            arrive(buffer)  # for the warp: it has loaded and waited as one
        buffer.advance()
        write(columns, tile, d, row, column)
    ptx.cp.async_.bulk.wait_group(0, when=ptx.tid.x == THREADS - WRITERS)


def read(
    type: str,
    columns: int,
    tmem: TensorMemory,
    first: int | u32,
    tile: Tile,
    products: int = 1,
    finish: Finish | None = None,
) -> None:
    """Copy the accumulators from column `first` on to shared memory, rounded: each thread one row."""
    warp = ptx.tid.x >> 5 & 3
    row = warp * 32 + ptx.laneid
    for column in range(0, columns, 32):
        held = [[f32() for _ in range(32)] for _ in range(products)]
        for product, values in enumerate(held):
            LOAD(tmem.rows(warp, first + (product * columns + column)), out=[values])
        rounded = pairs(type, held[0] if finish is None else [finish(each) for each in zip(*held, strict=True)])
        for chunk in range(0, 32, 8):
            at = column + chunk
            ptx.st.shared.v4.b32(tile.at(row, at % BOX, at // BOX), rounded[chunk // 2 : chunk // 2 + 4])
    ptx.tcgen05.wait__ld.sync.aligned()  # the accumulators may be overwritten


def write(columns: int, tile: Tile, d: Pointer | Scalar, row: u32, column: u32) -> None:
    """Start the copies of a tile to D, when all four warps have written it; they skip what is beyond D."""
    ptx.fence.proxy.async_["shared::cta"]()
    ptx.barrier.sync.aligned(BARRIER, WRITERS)
    with ptx.when(ptx.tid.x == THREADS - WRITERS):
        for part in range(0, columns, BOX):
            COPY_BACK((d, ((column + part).view(s32), row.view(s32))), tile.at(0, 0, part // BOX))
        ptx.cp.async_.bulk.commit_group()
