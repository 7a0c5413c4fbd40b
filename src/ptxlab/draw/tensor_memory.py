"""What is where in tensor memory for a `tcgen05.mma`: accumulators, scale factors, A and its metadata.

Words are found by the functions that the emulator multiplies with: rows of D by `describe_tile` and `lane_of`,
scale factors by `describe_factors` and `word_of`, A and metadata by the words that are read for each element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from ptxlab.draw.metadata import metadata_panel
from ptxlab.draw.mma import started
from ptxlab.draw.palette import apart
from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.isa.asynchronous import Mma
from ptxlab.isa.units.instruction_descriptor import DEPTHS, PAIR, TF32, depth_of
from ptxlab.isa.units.tensor_matrix import IN_TENSOR_MEMORY, Matrix, a_code, bits_of, each_of, fetch_element, lane_of
from ptxlab.isa.units.tensor_memory import BAND, COLUMNS, LANES
from ptxlab.isa.units.tensor_scale import PARTS, Factors, columns_of_factors, describe_factors, word_of, words_of
from ptxlab.isa.units.tensor_sparsity import KEPT, Sparsity, bits_at, metadata_address, metadata_columns
from ptxlab.isa.units.tensor_tile import Tile, describe_tile, lane_rows

HALF_BAND = 16
COLORS = {"SFA": 4, "SFB": 5, "A": 6, "E": 7}
LEGEND = {
    "D": "D: rows, columns",
    "SFA": "SFA: rows of A",
    "SFB": "SFB: columns of B",
    "A": "A: rows, k",
    "E": "E: metadata",
}
COLUMNS_OF_A = 8
MODELLED = "modelled after the manual and CUTLASS, not measured"


@dataclass
class Words:
    """The words that an operand has: the row of each, and the columns from `first` to `last`, exclusive."""

    name: str
    first: int
    last: int
    rows: dict[tuple[int, int], set[int]] = field(default_factory=dict)  # by lane and column

    def note(self, word: int, row: int) -> None:
        self.rows.setdefault((word // COLUMNS, word % COLUMNS), set()).add(row)

    def in_lanes(self, lanes: range) -> list[int]:
        """The rows that have words in some lanes."""
        found = {row for (lane, _), rows in self.rows.items() if lane in lanes for row in rows}
        return sorted(found)


class Cells:
    """Tensor memory that notes which word was read last."""

    word = 0

    def __getitem__(self, word: int) -> int:
        self.word = word
        return 0


@dataclass(frozen=True)
class BlockPart:
    """One block's part of an MMA."""

    mma: Any  # as the emulator has it, with numbers for all operands
    tile: Any
    number: int  # of the block in its pair

    @property
    def row(self) -> int:
        """The row of D, and of A, that this block has first."""
        return int(self.number * self.tile.rows)

    def first_column(self, lane: int) -> int:
        """The column of D that a lane has first, if the lane has any."""
        for m in range(self.tile.rows * self.tile.columns // self.tile.width):
            if self.tile.lane + lane_of(m, lane_rows(self.tile)) == lane:
                return int(m // self.tile.rows * self.tile.width)
        return 0


def tensor_memory(
    instruction: str,
    shape: str | int,
    *,
    d: int = 0,
    a: int | None = None,
    scale_a: int | None = None,
    scale_b: int | None = None,
    metadata: int | None = None,
) -> Picture:
    """Which lanes and columns of tensor memory an MMA uses: for D, scale factors, metadata, and A if it is there.

    `shape` is `128x64`, rows and columns of D, or an instruction descriptor. `d` and the others are addresses in tensor
    memory: the column, and the lane in the upper half; what is not given is placed after D, and A in shared memory.

        draw.tensor_memory("tcgen05.mma.cta_group::1.kind::f16", "128x64")
    """
    mma = started(instruction, shape, d, a, scale_a, scale_b, metadata)
    blocks = [_block(mma, number) for number in range(2 if mma.form == PAIR else 1)]
    panels = []
    for block in blocks:
        words = list(_operands(block))
        _check_apart(words)
        panels.append(_overview(block, words))
        if mma.scale_factors:
            panels += _factors(block, False)
        if block.mma.is_sparse:
            whose = f" of CTA {block.number}" if mma.form == PAIR else ""
            panels.append(metadata_panel(block.mma, block.tile, block.row, whose))
    if mma.scale_factors:
        panels += _factors(blocks[0], True)
    text = instruction.split()[0].rstrip(";")
    return Picture(f"{text}, {shape if isinstance(shape, str) else hex(shape)}", panels)


def _block(mma: Mma[int, int], number: int) -> BlockPart:
    plain = SimpleNamespace(**{name: getattr(mma, name) for name in Mma.__dataclass_fields__})
    plain.is_sparse = int(mma.metadata is not None)
    tile = Tile(cells=Cells(), first=0, lane=0, rows=0, columns=0, width=0, disabled_lanes=())  # type: ignore[arg-type]
    describe_tile(plain, tile)  # type: ignore[arg-type]
    return BlockPart(plain, tile, number)


# Operands.


def _operands(block: BlockPart) -> Iterator[Words]:
    mma, tile = block.mma, block.tile
    column = mma.d & 0xFFFF
    d = Words("D", column, column + tile.width)
    for m in range(tile.rows * tile.columns // tile.width):
        lane = tile.lane + lane_of(m, lane_rows(tile))
        d.note(lane * COLUMNS + column, block.row + m % tile.rows)
    yield d
    if mma.scale_factors:
        for is_b in (False, True):
            yield _scale_words(block, is_b)
    if mma.a_in_tensor_memory:
        yield _matrix_words(block)
    if mma.is_sparse:
        yield _metadata_words(block)


def _scale_words(block: BlockPart, is_b: bool) -> Words:
    factors = _described(block, is_b)
    column = factors.address & 0xFFFF
    found = Words("SFB" if is_b else "SFA", column, column + columns_of_factors(factors))
    for part in range(PARTS):
        for row in range(factors.rows):
            for number in range(words_of(factors)):
                word = word_of(factors, part, row) + number * factors.step
                found.note(word, _row_of_factor(block, is_b, part, row))
    return found


def _described(block: BlockPart, is_b: bool) -> Factors:
    factors = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    describe_factors(block.mma, is_b, factors)
    return factors


def _row_of_factor(block: BlockPart, is_b: bool, part: int, row: int) -> int:
    """The row of A, or the column of B, that a factor in a sub-partition is for."""
    return block.first_column(block.tile.lane % BAND + part * BAND) + row if is_b else block.row + row


def _matrix_words(block: BlockPart) -> Words:
    mma, tile = block.mma, block.tile
    bits = mma.instruction_descriptor
    cells = Cells()
    a = Matrix(
        start=mma.a, memory=b"", cells=cells, major=IN_TENSOR_MEMORY, rows=lane_rows(tile),  # type: ignore[arg-type]
        bits=bits_of(a_code(bits), mma.kind), each=each_of(mma.kind), is_shifted=int(mma.is_shifted),
    )  # fmt: skip
    column = mma.a & 0xFFFF
    found = Words("A", column, column + COLUMNS_OF_A)
    for row in range(tile.rows * tile.columns // tile.width):
        for index in range(DEPTHS[mma.kind]):
            fetch_element(a, row, index)
            found.note(cells.word, block.row + row % tile.rows)
    return found


def _metadata_words(block: BlockPart) -> Words:
    mma, tile = block.mma, block.tile
    address = metadata_address(mma.metadata, mma.instruction_descriptor, mma.kind)
    cells = Cells()
    sparsity = Sparsity(
        cells=cells, kept=KEPT[mma.kind], lane=address >> 16, column=address & 0xFFFF,  # type: ignore[arg-type]
        rows=lane_rows(tile), has_long_rows=int(mma.kind > TF32),
    )  # fmt: skip
    column = address & 0xFFFF
    found = Words("E", column, column + metadata_columns(mma.kind))
    for row in range(tile.rows * tile.columns // tile.width):
        for bit in range(0, 64 if mma.kind > TF32 else 32, 4):
            bits_at(sparsity, row, bit)
            found.note(cells.word, block.row + row % tile.rows)
    return found


def _check_apart(words: list[Words]) -> None:
    """A `ValueError` where operands share columns, or reach beyond tensor memory."""
    ordered = sorted(words, key=lambda one: one.first)
    for one, other in pairwise(ordered):
        if other.first < one.last:
            raise ValueError(
                f"{one.name} has columns {one.first} to {one.last - 1}, and {other.name} from {other.first} on"
            )
    for one in ordered:
        if one.last > COLUMNS or any(lane >= LANES for lane, _ in one.rows):
            raise ValueError(f"{one.name} reaches beyond the {COLUMNS} columns and {LANES} lanes of tensor memory")


# Panels.


def _overview(block: BlockPart, words: list[Words]) -> Panel:
    """Lanes by columns; a cell says which rows are there, of D also which columns."""
    height = BAND if lane_rows(block.tile) == LANES and not block.tile.lane % BAND else HALF_BAND
    ordered = sorted(words, key=lambda one: one.first)
    cells = []
    for first in range(0, LANES, height):
        lanes = range(first, first + height)
        cells.append([_overview_cell(block, one, lanes) for one in ordered])
    names = [f"warp {lane // BAND}, lanes {_span(lane, height)}" for lane in range(0, LANES, height)]
    columns = [f"columns {_span(one.first, one.last - one.first)}" for one in ordered]
    whose = f" of CTA {block.number} of the pair" if block.mma.form == PAIR else ""
    named = [LEGEND[one.name] for one in ordered]
    title = f"tensor memory{whose} ({'; '.join(named)})"
    return Panel(title, cells, names, columns, (BAND // height if height < BAND else 0, 1), MODELLED)


def _overview_cell(block: BlockPart, words: Words, lanes: range) -> Cell | None:
    rows = words.in_lanes(lanes)
    if not rows:
        return None
    text = f"{words.name} {_span(rows[0], rows[-1] - rows[0] + 1)}"
    if words.name == "A":
        text += f", k {_span(0, DEPTHS[block.mma.kind])}"
    if words.name != "D":
        return Cell(text, apart(COLORS[words.name]))
    column = block.first_column(min(lane for lane, _ in words.rows if lane in lanes))
    return Cell(f"{text}, {_span(column, block.tile.width)}", apart(lanes[0] // BAND))


def _factors(block: BlockPart, is_b: bool) -> Iterator[Panel]:
    """The scale factors of A or B, a panel for all sub-partitions that have the same ones."""
    by_content: dict[int, list[int]] = {}
    for part in range(PARTS):
        by_content.setdefault(_row_of_factor(block, is_b, part, 0), []).append(part)
    whose = "" if block.mma.form != PAIR else " of both CTAs" if is_b else f" of CTA {block.number}"
    for parts in by_content.values():
        lanes = [_span(part * BAND, BAND) for part in parts]
        again = f", again in {', '.join(lanes[1:])}" if lanes[1:] else ""
        name, of = ("SFB", "columns of B") if is_b else ("SFA", "rows of A")
        yield _factor_panel(block, is_b, parts[0], f"{name}{whose}: {of}, k; lanes {lanes[0]}{again}")


def _factor_panel(block: BlockPart, is_b: bool, part: int, title: str) -> Panel:
    """A row for each column of tensor memory, a cell for each byte of its words: 32 rows in the order of the lanes."""
    factors = _described(block, is_b)
    depth = depth_of(block.mma.instruction_descriptor, block.mma.kind, block.mma.is_sparse) // factors.count
    color = apart(COLORS["SFB" if is_b else "SFA"])
    cells: list[list[Cell | None]] = []
    names = []
    for number in range(words_of(factors)):
        for start in range(0, factors.rows, BAND):
            span = _span(_row_of_factor(block, is_b, part, start), min(BAND, factors.rows - start))
            cells.append([])
            for index in range(4 * number - factors.byte, 4 * number - factors.byte + 4):
                is_there = 0 <= index < factors.count
                text = f"{span}, k {_span(index * depth, depth)}"
                cells[-1].append(Cell(text, color + index % 4) if is_there else None)
            column = (factors.address & 0xFFFF) + start // BAND + number * factors.step
            names.append(f"column {column}")
    return Panel(title, cells, names, [f"byte {byte}" for byte in range(4)])


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}-{first + count - 1}"
