"""Double buffering, twice: tiles come into shared memory while others are multiplied, and registers one step ahead."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab.author import Kernel, Pointer, b8, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.sgemm.blocks import PAD, PIECE, Tiling, by_warps, multiply, tile_of_block, write, zeros

if TYPE_CHECKING:
    from ptxlab.author.tiles import Tile

COPY, COPY_16 = ptx.cp["async"].ca.shared.global_, ptx.cp["async"].cg.shared.global_
ALONG_K = 8  # lanes that copy neighbouring elements of a row of A: 32 bytes, what memory moves at least

Fill = Callable[[Any, Any], None]  # a stage, and where along k it starts


@cache
def pipelined(tiling: Tiling, vector: int, edges: bool) -> Kernel:
    """The kernel for a tiling; `edges` where tiles reach beyond the matrices."""
    made: Kernel = kernel(target="sm_80", maxntid=tiling.threads, minnctapersm=tiling.resident)(sgemm)
    return made.specialize(tiling=tiling, vector=vector, edges=edges)


def sgemm(
    a: pointer[f32], b: pointer[f32], c: pointer[f32], m: u32, n: u32, k: u32,
    *, tiling: Tiling, vector: int, edges: bool,
) -> None:  # fmt: skip
    """The tile of C of a block; all but one stage of shared memory are ahead of the one that is multiplied."""
    memory = ptx.dynamic_shared(b8, align=16)
    a_tile = ptx.tile(f32, tiling.k, tiling.m, pitch=tiling.m + PAD, copies=tiling.stages, at=memory)
    b_tile = ptx.tile(f32, tiling.k, tiling.n, copies=tiling.stages, at=memory + a_tile.bytes)
    thread = ptx.tid.x
    row, column = tile_of_block(m, n, tiling)
    share = by_warps(thread, tiling)
    pipeline = ptx.copy_pipeline(tiling.stages)
    fill_a = transposed_copy(a_tile, a, thread, row, m, k, tiling, edges)
    fill_b = plain_copy(b_tile, b, thread, column, k, n, tiling, vector, edges)

    def fill(stage: int | u32, start: u32) -> None:
        fill_a(stage, start)
        fill_b(stage, start)
        pipeline.commit()

    for stage in pipeline.ahead:
        fill(stage, u32(stage * tiling.k))
    pipeline.wait()
    a_read, b_read = a_tile.at(0, share.row), b_tile.at(0, share.column)
    a_now, b_now = a_read.copy(), b_read.copy()
    # What is multiplied, and what is multiplied next.
    buffers = [(f32.several(tiling.thread_m), f32.several(tiling.thread_n)) for _ in range(2)]

    def read(step: int) -> None:
        left, right = buffers[step % 2]
        read_pieces(left, a_now + step % tiling.k * a_tile.pitch, share.rows)
        read_pieces(right, b_now + step % tiling.k * b_tile.pitch, share.columns)

    read(0)
    accumulators = zeros(tiling)
    for start in ptx.range(0, k, tiling.k):
        fill(pipeline.filling.index, start + tiling.k * (tiling.stages - 1))
        for step in range(tiling.k):
            if step == tiling.k - 1:  # what comes next is of the next tile
                pipeline.advance()
                pipeline.wait()
                for now, first, tile in ((a_now, a_read, a_tile), (b_now, b_read, b_tile)):
                    ptx.mad.lo.u32(pipeline.reading.index, tile.copy_bytes, first.address, out=now.address)
            read(step + 1)
            multiply(accumulators, *buffers[step % 2])
    write(c, accumulators, share, row, column, m, n, vector, edges)


def read_pieces(values: list[f32], element: Pointer, pieces: list[int]) -> None:
    """A thread's numbers of a row of shared memory, 16 bytes at a time."""
    for number, piece in enumerate(pieces):
        ptx.ld.shared.v4.f32(element + piece, out=tuple(values[number * PIECE : (number + 1) * PIECE]))


def transposed_copy(
    tile: Tile, matrix: Pointer, thread: u32, row: u32, rows: u32, columns: u32, tiling: Tiling, edges: bool
) -> Fill:
    """What fills a stage with a tile of A, an element at a time: what is a row there is a column here."""
    right, down = thread % ALONG_K, thread // ALONG_K
    step = tiling.threads // ALONG_K  # rows that the block copies at a time
    element = tile.at(right, down)
    source = (matrix + ptx.mul.wide.u32(row + down, columns) + right).copy()
    stride = columns * step
    outside = [row + down + below >= rows for below in range(0, tiling.m, step)] if edges else []

    def fill(stage: int | u32, start: u32) -> None:
        nonlocal source
        target, line = element.move(copy=stage), source.copy()
        parts = range(0, tiling.k, ALONG_K)
        beyond = [start + right + across >= columns for across in parts] if edges else [start >= columns] * len(parts)
        for number, below in enumerate(range(0, tiling.m, step)):
            for across, past in zip(parts, beyond, strict=True):
                ignored = past | outside[number] if edges else past
                COPY(target.move(rows=across, columns=below), line + across, 4, ignored)
            line = line + stride
        source += tiling.k

    return fill


def plain_copy(
    tile: Tile,
    matrix: Pointer,
    thread: u32,
    column: u32,
    rows: u32,
    columns: u32,
    tiling: Tiling,
    vector: int,
    edges: bool,
) -> Fill:
    """What fills a stage with a tile of B."""
    across = tiling.n // vector  # copies for a row
    right, down = thread % across * vector, thread // across
    step = tiling.threads // across
    element = tile.at(down, right)
    source = (matrix + ptx.mul.wide.u32(down, columns) + (column + right)).copy()
    stride, depth = columns * step, columns * tiling.k
    outside = column + right >= columns if edges else None

    def fill(stage: int | u32, start: u32) -> None:
        nonlocal source
        target, line = element.move(copy=stage), source.copy()
        for below in range(0, tiling.k, step):
            ignored = (start + down + below >= rows) | outside if edges else start >= rows
            (COPY if vector == 1 else COPY_16)(target.move(rows=below), line, 4 * vector, ignored)
            line = line + stride
        source += depth

    return fill
