"""2-D tiling, vectorised access and warp tiling: one kernel in Python, and what each idea adds is an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.sgemm.blocks import PAD, PIECE, Tiling, by_warps, in_a_square, multiply, tile_of_block, write, zeros

if TYPE_CHECKING:
    from ptxlab.author.tiles import Tile


@kernel(target="sm_80", maxntid=256)
def tiled_2d(
    a: pointer[f32], b: pointer[f32], c: pointer[f32], m: u32, n: u32, k: u32,
    *, tiling: Tiling, vector: int, wide: bool, warps: bool,
) -> None:  # fmt: skip
    """A block has a tile of C, and a thread 8 x 8 of it: 16 numbers from shared memory serve 64 multiplications.

    `vector` elements of global memory are read or written at a time; `wide` reads shared memory 16 bytes at a time;
    `warps` gives each warp a tile of its own.
    """
    a_tile = ptx.tile(f32, tiling.k, tiling.m, pitch=tiling.m + PAD, name="a_tile")  # transposed
    b_tile = ptx.tile(f32, tiling.k, tiling.n, name="b_tile")
    thread = ptx.tid.x
    row, column = tile_of_block(m, n, tiling)
    share = (by_warps if warps else in_a_square)(thread, tiling)
    a_read, b_read = a_tile.at(0, share.row), b_tile.at(0, share.column)
    accumulators = zeros(tiling)
    for start in ptx.range(0, k, tiling.k):
        fill_transposed(a_tile, (a, m, k), thread, row, start, tiling, vector)
        fill(b_tile, (b, k, n), thread, start, column, tiling, vector)
        ptx.bar.sync(0)
        for step in range(tiling.k):
            left = read(a_read.move(rows=step), share.rows, wide)
            right = read(b_read.move(rows=step), share.columns, wide)
            multiply(accumulators, left, right)
        ptx.bar.sync(0)
    write(c, accumulators, share, row, column, m, n, vector, edges=True)


def fill_transposed(
    tile: Tile, matrix: tuple[Pointer, u32, u32], thread: u32, row: u32, column: u32, tiling: Tiling, vector: int
) -> None:
    """Bring a tile of A, with its rows and columns, into shared memory; what was a row there is a column here."""
    across = tiling.k // vector  # vectors of a row
    right, down = thread % across * vector, thread // across
    for below in range(0, tiling.m, tiling.threads // across):
        values = read_global(*matrix, row + down + below, column + right, vector)
        for offset, value in enumerate(values):
            tile.at(right, down).move(rows=offset, columns=below).store(value)


def fill(
    tile: Tile, matrix: tuple[Pointer, u32, u32], thread: u32, row: u32, column: u32, tiling: Tiling, vector: int
) -> None:
    """Bring a tile of B, with its rows and columns, into shared memory."""
    across = tiling.n // vector
    right, down = thread % across * vector, thread // across
    for below in range(0, tiling.k, tiling.threads // across):
        values = read_global(*matrix, row + down + below, column + right, vector)
        element = tile.at(down, right).move(rows=below)
        if vector == 1:
            element.store(values[0])
        else:
            element.vector(vector).store(tuple(values))


def read_global(matrix: Pointer, rows: u32, columns: u32, row: u32, column: u32, vector: int) -> list[f32]:
    """So many elements of a matrix, zeros outside of it."""
    values = [f32(0.0) for _ in range(vector)]
    inside = (row < rows) & (column < columns)
    element = matrix + ptx.mul.wide.u32(row, columns) + column
    load = ptx.ld.global_.f32 if vector == 1 else ptx.ld.global_.v4.f32
    load(element, out=values[0] if vector == 1 else tuple(values), when=inside)
    return values


def read(element: Any, pieces: list[int], wide: bool) -> list[f32]:
    """A thread's numbers of a row of shared memory."""
    if wide:
        return [value for piece in pieces for value in element.move(columns=piece).v4[0]]
    return [element.move(columns=piece + offset).load() for piece in pieces for offset in range(PIECE)]
