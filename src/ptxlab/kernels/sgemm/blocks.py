"""What the steps in Python share: which elements of C a thread has, sums of products, and how they are written.

A thread has pieces of 4 rows and pieces of 4 columns, so that `ld.shared.v4` and `st.global.v4` bring and take a piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxlab.author import Pointer, f32, ptx, u32

PIECE = 4  # elements of 16 bytes
WARP = 32
PAD = 4  # elements that a row of a transposed tile is longer: stores of a warp then go to 32 banks


@dataclass(frozen=True)
class Tiling:
    """How C is cut up: tiles of a block, shares of a thread, and what goes with it; no fewer threads than columns."""

    m: int = 128
    n: int = 128
    k: int = 8
    """How deep a tile of A or B is."""
    thread_m: int = 8
    thread_n: int = 8
    stages: int = 1
    """Tiles of A and B in shared memory at a time."""
    resident: int = 1
    """The minimum number of blocks on an SM."""
    group: int = 8
    """Rows of tiles that are worked on together."""

    @property
    def threads(self) -> int:
        return self.m * self.n // (self.thread_m * self.thread_n)

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.stages * self.k * (self.m + PAD + self.n) * 4

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}_{self.thread_m}x{self.thread_n}_{self.stages}_{self.resident}_{self.group}"


@dataclass(frozen=True)
class Share:
    """The rows and columns of the block's tile that a thread has: pieces that start so far from the first."""

    row: u32
    rows: list[int]
    column: u32
    columns: list[int]


def in_a_square(thread: u32, tiling: Tiling) -> Share:
    """Neighbouring rows and columns: the first thing that comes to mind."""
    across = tiling.n // tiling.thread_n
    return Share(
        thread // across * tiling.thread_m, list(range(0, tiling.thread_m, PIECE)),
        thread % across * tiling.thread_n, list(range(0, tiling.thread_n, PIECE)),
    )  # fmt: skip


def by_warps(thread: u32, tiling: Tiling) -> Share:
    """A tile for each warp, in which neighbouring lanes have neighbouring pieces.

    What a warp reads from shared memory is then one run of 128 bytes at most. Lanes that differ in bit 0 read the same
    of B, and such that differ in bit 1 the same of A; two lanes with one address make a 16-byte read half as expensive.
    """
    lane, warp = thread & (WARP - 1), thread >> 5
    down = 8 if tiling.thread_n > tiling.thread_m else 4  # lanes below each other: a tile nearly square
    across = WARP // down
    if down == 4:
        lane_row, lane_column = lane & 1 | lane >> 4 << 1, lane >> 1 & 7
    else:
        lane_row, lane_column = lane & 1 | lane >> 3 << 1, lane >> 1 & 3
    warps_across = tiling.n // (across * tiling.thread_n)
    return Share(
        warp // warps_across * (down * tiling.thread_m) + lane_row * PIECE,
        list(range(0, down * tiling.thread_m, down * PIECE)),
        warp % warps_across * (across * tiling.thread_n) + lane_column * PIECE,
        list(range(0, across * tiling.thread_n, across * PIECE)),
    )


def tile_of_block(m: u32, n: u32, tiling: Tiling) -> tuple[u32, u32]:
    """The first row and column of this block's tile.

    Blocks run in about the order of their numbers. They go down some rows of tiles and then one column on: those that
    run together need few rows of A and few columns of B, which the L2 cache then has.
    """
    down, across = (m + (tiling.m - 1)) // tiling.m, (n + (tiling.n - 1)) // tiling.n
    size = across * tiling.group  # tiles of a group of rows
    group = ptx.ctaid.x // size
    first = group * tiling.group
    rows = ptx.min.u32(down - first, tiling.group)
    within = ptx.ctaid.x - group * size
    return (first + within % rows) * tiling.m, within // rows * tiling.n


def zeros(tiling: Tiling) -> list[list[f32]]:
    """The sums of a thread, a register each."""
    return [[f32(0.0) for _ in range(tiling.thread_n)] for _ in range(tiling.thread_m)]


def multiply(accumulators: list[list[f32]], left: Sequence[f32], right: Sequence[f32]) -> None:
    """Add the products of a column of A and a row of B, in squares of 4 x 4, each row of one after the other and back.

    ptxas keeps the order. Each instruction then shares an operand with the one before, which spares a read of the
    register file, and ptxas finds registers for which the others do not meet in a bank.
    """
    for top in range(0, len(left), PIECE):
        for start in range(0, len(right), PIECE):
            for row in range(top, top + PIECE):
                columns = range(start, start + PIECE)
                for column in columns if row % 2 == 0 else reversed(columns):
                    total = accumulators[row][column]
                    ptx.fma.rn.f32(left[row], right[column], total, out=total)


def write(
    c: Pointer,
    accumulators: list[list[f32]],
    share: Share,
    row: u32,
    column: u32,
    m: u32,
    n: u32,
    vector: int,
    edges: bool,
) -> None:
    """Store the sums of a thread: a piece at a time, or single elements where rows of C are not aligned."""
    row, column = row + share.row, column + share.column
    for number, below in enumerate(offset + piece for piece in share.rows for offset in range(PIECE)):
        target = c + ptx.mul.wide.u32(row + below, n) + column
        for piece, right in enumerate(share.columns):
            values = accumulators[number][piece * PIECE : (piece + 1) * PIECE]
            for part in range(0, PIECE, vector):
                inside = (row + below < m) & (column + (right + part) < n) if edges else None
                where = target + (right + part)
                if vector == 1:
                    ptx.st.global_.f32(where, values[part], when=inside)
                else:
                    ptx.st.global_.v4.f32(where, tuple(values), when=inside)
