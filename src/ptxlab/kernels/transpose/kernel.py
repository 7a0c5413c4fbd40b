"""The transpose of a matrix, in Python: through shared memory, so that reads and writes are both pieces of rows."""

from __future__ import annotations

from ptxlab.author import b16, b32, kernel, pointer, ptx, u32
from ptxlab.kernels.parts.elements import SIZES, WIDEST, keep_what_is_read

TILE, LINES = 32, 8  # a block of 32 x 8 threads has a tile of 32 x 32


@kernel(target="sm_80")
def transpose_elements(x: pointer[b32], y: pointer[b32], rows: u32, columns: u32, *, TYPE: str) -> None:  # noqa: N803
    """One element at a time, any size. A column more in shared memory, or a column of the tile would be in one bank."""
    element = b32 if SIZES[TYPE] == 4 else b16
    tile = ptx.shared(element, TILE, TILE + 1)
    across, down = ptx.tid.x, ptx.tid.y
    source, target = x.view(element), y.view(element)
    row, column = ptx.ctaid.y * TILE + down, ptx.ctaid.x * TILE + across
    for line in range(0, TILE, LINES):
        with ptx.when((row + line < rows) & (column < columns)):
            tile[down + line, across] = source[ptx.mul.wide.u32(row + line, columns) + ptx.cvt.u64.u32(column)]
    ptx.bar.sync(0)
    row, column = ptx.ctaid.x * TILE + down, ptx.ctaid.y * TILE + across
    for line in range(0, TILE, LINES):
        with ptx.when((row + line < columns) & (column < rows)):
            target[ptx.mul.wide.u32(row + line, rows) + ptx.cvt.u64.u32(column)] = tile[across, down + line]


@kernel(target="sm_80")
def transpose_squares(
    x: pointer[b32],
    y: pointer[b32],
    rows: u32,
    columns: u32,
    *,
    TYPE: str,  # noqa: N803
    ACROSS: int,  # noqa: N803
) -> None:
    """Squares of 16 bytes each way: a thread turns one in registers, a block ACROSS x ACROSS of them in shared memory.

    Rows and columns are multiples of the side of a square, 4 or 8 elements. In shared memory a square's lines are 16
    bytes wide below each other; which of the ACROSS places of a line one has is its own number XOR that of its column
    of squares, so that neither the writes nor the reads of a warp meet in a bank.
    """
    side = WIDEST // SIZES[TYPE]
    across, down = ptx.tid.x & (ACROSS - 1), ptx.tid.x // ACROSS
    tile = ptx.shared(b32, ACROSS * side, ACROSS, 4, align=WIDEST)
    element = b32 if SIZES[TYPE] == 4 else b16

    extent = ACROSS * side
    row, column = ptx.ctaid.x * extent + down * side, ptx.ctaid.y * extent + across * side
    source = (x.view(element) + ptx.mul.wide.u32(row, columns) + column).copy()
    inside = (row < rows) & (column < columns)
    policy = keep_what_is_read()
    lines = []
    for _ in range(side):
        words = [b32(0) for _ in range(4)]
        ptx.ld.global_["L2::cache_hint"].v4.b32(source, policy, out=tuple(words), when=inside)
        lines.append(words)
        source += columns
    for number, words in enumerate(turned(lines)):
        tile.at(across * side + number, down ^ (across & 7), 0).v4[0] = words
    ptx.bar.sync(0)

    column = ptx.ctaid.x * extent + across * side
    for number in range(side):
        line = down + number * ACROSS  # of the tile
        row = ptx.ctaid.y * extent + line
        words = tile.at(line, across ^ ((line // side) & 7), 0).v4[0]
        start = y.view(element) + ptx.mul.wide.u32(row, rows) + column
        ptx.st.global_.v4.b32(start, words, when=(row < columns) & (column < rows))


def turned(lines: list[list[b32]]) -> list[list[b32]]:
    """The transpose of a square in registers. Words only change their names; halves are put together anew."""
    if len(lines) == 4:
        return [list(column) for column in zip(*lines, strict=True)]
    low, high = 0x5410, 0x7632  # which bytes of two words: both lower halves, both upper halves
    return [
        [ptx.prmt.b32(first[word], second[word], half) for first, second in zip(lines[::2], lines[1::2], strict=True)]
        for word in range(4)
        for half in (low, high)
    ]
