"""In which banks of shared memory a tile is, and what its rows and columns cost to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.isa.units.fragment import ELEMENT_BITS
from ptxlab.isa.units.swizzle import SWIZZLES

LINE = 128  # bytes that all 32 banks hold side by side
PIECE = 16  # bytes that a lane reads at most, and that swizzles move
PIECES = LINE // PIECE
WORDS = PIECE // 4
SHOWN = 32  # rows that are drawn at most


def tile(rows: int, columns: int, type: str = "f16", swizzle: str | None = None, pitch: int | None = None) -> Picture:
    """A tile of `rows` by `columns` elements, in rows of `pitch` elements; `swizzle` is `32B`, `64B` or `128B`.

    The first panel is the tile: in which banks each piece of 16 bytes is. The second is shared memory: which piece
    of the tile is there.
    """
    size, across = _sizes(rows, columns, type, pitch)
    if swizzle is not None and swizzle not in SWIZZLES:
        raise ValueError(f"swizzle {swizzle!r}: expected one of {', '.join(SWIZZLES)}")
    mode = None if swizzle is None else SWIZZLES[swizzle]

    def offset_of(row: int, piece: int) -> int:
        offset = row * across + piece * PIECE
        return offset if mode is None else mode.apply(offset)

    pieces = columns * size // PIECE
    drawn = min(rows, SHOWN)
    named = f"{rows}x{columns} {type}" + (f", swizzle {swizzle}" if swizzle else "")
    padded = f", {across} bytes from row to row" if across != columns * size else ""
    more = f"the first {drawn} rows of " if drawn < rows else ""
    return Picture(
        f"{more}a tile of {named}{padded}",
        [_by_rows(drawn, pieces, PIECE // size, offset_of), _by_banks(drawn, pieces, PIECE // size, offset_of)],
    )


def _sizes(rows: int, columns: int, type: str, pitch: int | None) -> tuple[int, int]:
    """Bytes of an element, and from row to row."""
    bits = ELEMENT_BITS.get(type)
    if bits is None or bits % 8:
        whole = ", ".join(name for name, width in ELEMENT_BITS.items() if width % 8 == 0)
        raise ValueError(f"type {type!r}: a tile has elements of whole bytes: {whole}")
    size = bits // 8
    across = (pitch or columns) * size
    if rows < 1 or columns < 1 or columns * size % PIECE:
        raise ValueError(f"a row of {columns} {type} has {columns * size} bytes: a multiple of {PIECE} can be drawn")
    if across < columns * size or across % PIECE:
        raise ValueError(f"rows {across} bytes apart: at least {columns * size}, and a multiple of {PIECE}, is needed")
    return size, across


OffsetOf = Callable[[int, int], int]


def _by_rows(rows: int, pieces: int, each: int, offset_of: OffsetOf) -> Panel:
    cells = [[_banks(offset_of(row, piece)) for piece in range(pieces)] for row in range(rows)]
    names = [f"{piece * each}-{piece * each + each - 1}" for piece in range(pieces)]
    return Panel(
        "the tile: the banks of its columns",
        cells,
        [str(row) for row in range(rows)],
        names,
        (8, 0),
        _cost(cells),
    )


def _banks(offset: int) -> Cell:
    first = offset % LINE // 4
    return Cell(f"{first}-{first + WORDS - 1}", first)


def _cost(cells: Sequence[Sequence[Cell]]) -> str:
    """How many wavefronts `ldmatrix` takes for a matrix of eight rows."""
    rows = min(len(cells), 8)
    worst = 0
    for column in range(len(cells[0])):
        banks = [cells[row][column].color for row in range(rows)]
        worst = max(worst, max(banks.count(bank) for bank in banks))
    if worst == 1:
        return f"{rows} consecutive rows of 16 bytes are in different banks: `ldmatrix` takes 1 wavefront"
    return f"{rows} consecutive rows of 16 bytes share banks: `ldmatrix` takes {worst} wavefronts, not 1"


def _by_banks(rows: int, pieces: int, each: int, offset_of: OffsetOf) -> Panel:
    """Shared memory in lines of all banks."""
    there = {offset_of(row, piece): (row, piece) for row in range(rows) for piece in range(pieces)}
    lines = max(there) // LINE + 1
    cells: list[list[Cell | None]] = []
    for line in range(lines):
        found = [there.get(line * LINE + piece * PIECE) for piece in range(PIECES)]
        cells.append([None if at is None else Cell(f"{at[0]},{at[1] * each}", at[1] * WORDS) for at in found])
    names = [f"{first}-{first + WORDS - 1}" for first in range(0, 32, WORDS)]
    return Panel(
        "shared memory: the row and first column of what is in each four banks",
        cells,
        [f"+{line * LINE}" for line in range(lines)],
        names,
        (8, 0),
    )
