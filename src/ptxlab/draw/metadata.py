"""The metadata of a sparse A in tensor memory: which bits of which lanes are of which rows and columns of A."""

from __future__ import annotations

from typing import Any

from ptxlab.draw.palette import apart
from ptxlab.draw.picture import Cell, Panel
from ptxlab.isa.units.instruction_descriptor import TF32
from ptxlab.isa.units.tensor_memory import COLUMNS
from ptxlab.isa.units.tensor_sparsity import KEPT, Sparsity, bits_at, metadata_address, metadata_columns
from ptxlab.isa.units.tensor_tile import lane_rows

CHOICE = 4  # bits that say which elements of a chunk are stored
HALF = 16  # bits that are drawn as one cell
LANES = 8  # that are drawn as one row
HUE = 7


class Bits:
    """Tensor memory whose every word has a 1 at the bits that have a 1 in their own number, at position `weight`.

    Five of them say by the lowest bit of what is read how far a word was shifted.
    """

    def __init__(self, weight: int) -> None:
        self.word = 0
        self.value = sum(1 << bit for bit in range(32) if bit >> weight & 1)

    def __getitem__(self, word: int) -> int:
        self.word = word
        return self.value


def locate(mma: Any, tile: Any, row: int, bit: int) -> tuple[int, int]:
    """The number of the word that has a bit of a row's metadata, and the number of the bit in it."""
    address = metadata_address(mma.metadata, mma.instruction_descriptor, mma.kind)
    shift, word = 0, 0
    for weight in range(5):
        cells = Bits(weight)
        sparsity = Sparsity(
            cells=cells,  # type: ignore[arg-type]
            kept=KEPT[mma.kind],
            lane=address >> 16,
            column=address & 0xFFFF,
            rows=lane_rows(tile),
            has_long_rows=int(mma.kind > TF32),
        )
        shift |= (bits_at(sparsity, row, bit) & 1) << weight
        word = cells.word
    return word, shift


def metadata_panel(mma: Any, tile: Any, first_row: int, whose: str) -> Panel:
    """Lanes by halves of words; a cell says which rows of A, in the order of the lanes, and which columns."""
    count = metadata_columns(mma.kind)
    along = 2 * KEPT[mma.kind]  # columns of A that four bits are about
    found: dict[tuple[int, int, int], list[tuple[int, int]]] = {}  # by lanes, column and half: rows and first columns
    for row in range(tile.rows * tile.columns // tile.width):
        for bit in range(0, 32 * count, HALF):
            word, shift = locate(mma, tile, row, bit)
            key = word // COLUMNS // LANES, word % COLUMNS, shift // HALF
            found.setdefault(key, []).append((first_row + row % tile.rows, bit // CHOICE * along))
    lanes = sorted({lane for lane, _, _ in found})
    columns = sorted({(column, half) for _, column, half in found})
    cells = [[_cell(found.get((lane, *word_half)), HALF // CHOICE * along) for word_half in columns] for lane in lanes]
    names = [f"lanes {lane * LANES}-{lane * LANES + LANES - 1}" for lane in lanes]
    tops = [f"{column}, bits {half * HALF}-{half * HALF + HALF - 1}" for column, half in columns]
    return Panel(f"E{whose}: metadata of rows of A, k; words and bits", cells, names, tops)


def _cell(held: list[tuple[int, int]] | None, width: int) -> Cell | None:
    if held is None:
        return None
    rows = sorted({row for row, _ in held})
    (first,) = {column for _, column in held}
    return Cell(f"{rows[0]}-{rows[-1]}, k {first}-{first + width - 1}", apart(HUE) + first // width % 4)
