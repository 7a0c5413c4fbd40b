"""What copies by tensor maps bring to shared memory: boxes before and after their swizzle, and the pixels of im2col.

The map is read, its rows are walked and each 16 bytes are placed by the functions that the emulator copies with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ptxlab.device.tensor_maps import TensorMap
from ptxlab.draw.palette import apart
from ptxlab.draw.picture import Cell, Mark, Panel, Picture
from ptxlab.emulate.abi.bulk import GATHER, IM2COL, MODES
from ptxlab.emulate.abi.faults import CoordinateReason, TensorMapReason
from ptxlab.emulate.explain import encoded_maps
from ptxlab.emulate.explain.tensor_map_faults import word_field, word_start
from ptxlab.emulate.runtime.asynchronous.tensor_boxes import (
    CHUNK,
    enter_row,
    find_row,
    rows_of,
    shared_bytes_of_row,
    swizzled,
)
from ptxlab.emulate.runtime.asynchronous.tensor_maps import illegal_start, unfit_field, value_of
from ptxlab.isa.units import tensor_map as layout

ADDRESS = 1 << 20  # any that a tensor can have
LINE = 128
SHOWN = 32  # rows of a box that are drawn at most
WIDEST = 24  # pixels of an image that are drawn beside each other; of a larger one, those that are copied


@dataclass(frozen=True, slots=True)
class BoxRow:
    """A row of a box, or a pixel: where it is in the tensor, innermost dimension first, and whether it is there."""

    number: int
    position: tuple[int, ...]
    is_inside: bool


@dataclass(frozen=True)
class Copy:
    """A copy of a box, as the emulator has it."""

    map: Any
    transfer: Any
    said: TensorMap | None

    @property
    def each(self) -> int:
        """Elements of 16 bytes in shared memory."""
        return int(self.map.unit) * 8 // layout.ELEMENT_BITS[self.map.type]

    @property
    def chunks(self) -> int:
        """Pieces of 16 bytes of a row in shared memory."""
        return int(shared_bytes_of_row(self.map)) // CHUNK

    @property
    def first(self) -> int:
        """The first element of a row in the innermost dimension."""
        return int(_signed(self.transfer.coordinates[0]))

    @property
    def size(self) -> int:
        """The elements that the innermost dimension has."""
        return self.each * self.chunks if self.map.interleave else int(self.map.sizes[0])

    def rows(self) -> Iterator[BoxRow]:
        """All rows, in the order in which they are in shared memory."""
        position: Any = [0] * 6
        for number in range(self.transfer.rows):
            enter_row(self.transfer, position, number)
            yield BoxRow(number, tuple(self._moved(position)), find_row(self.transfer, position) != 0)

    def _moved(self, position: Sequence[int]) -> Iterator[int]:
        """Where a row is, with the offsets of im2col."""
        offsets = self.transfer.offsets
        for dimension in range(1, self.map.dimensions):
            by = 0
            if self.transfer.mode == IM2COL and dimension < self.map.rank - 1:
                by = offsets[dimension - 1]
            elif self.transfer.mode > IM2COL and dimension == 1:
                by = offsets[1]
            yield position[dimension] + by

    def offset(self, row: int, chunk: int) -> int:
        """Where in shared memory a piece is, counted from the start of the box."""
        return int(swizzled(self.map, row * self.map.pitch + chunk * CHUNK))


def box(map: TensorMap, at: Sequence[int] | None = None, *, rows: Sequence[int] | None = None) -> Picture:
    """A box of a tensor that starts `at` some element: how it is in the tensor, and in shared memory.

    `map` is of `ptxlab.tensor_map`; `at` is in the order of the array, as its shape is. With four `rows` it is the copy
    of `.tile::gather4`.
    """
    if map.pixels:
        raise ValueError("this tensor map is for im2col: `draw.im2col` draws it")
    copy = _copy(map, "tile::gather4" if rows is not None else "tile", at, (), rows)
    found = list(copy.rows())
    shown = found[:SHOWN]
    more = f", the first {len(shown)} of {len(found)} rows" if len(shown) < len(found) else ""
    return Picture(f"{_named(copy)}{more}", [_before(copy, shown), _after(copy, shown)])


def im2col(
    map: TensorMap, at: Sequence[int] | None = None, offsets: Sequence[int] | None = None, *, mode: str = "im2col"
) -> Picture:
    """The pixels that a copy by im2col gathers, numbered in the order in which they are in shared memory.

    `map` is of `ptxlab.im2col_map`; `at` and `offsets` are in the order of the array: (n, h, w, c) and (h, w). Of the
    modes `im2col::w` and `im2col::w::128`, the offsets are the halo and the one along w.
    """
    if not map.pixels:
        raise ValueError("this tensor map is for tiles: `draw.box` draws it")
    if mode not in MODES or MODES[mode] < IM2COL:
        raise ValueError(f"mode {mode!r}: there are im2col, im2col::w and im2col::w::128")
    copy = _copy(map, mode, at, offsets, None)
    found = list(copy.rows())
    images: dict[tuple[int, ...], list[BoxRow]] = {}
    for row in found:
        images.setdefault(row.position[min(2, copy.map.rank - 2) :], []).append(row)
    panels = [_image(copy, outer, own) for outer, own in images.items()]
    return Picture(f"{_named(copy)}, {len(found)} pixels", [*panels, _after(copy, found[:SHOWN], by_number=True)])


# The copy.


def _copy(
    map: TensorMap, mode: str, at: Sequence[int] | None, offsets: Sequence[int] | None, rows: Sequence[int] | None
) -> Copy:
    """A copy as the emulator starts it; a `ValueError` where coordinates are missing."""
    plain, wrong = encoded_maps.read(map.encode(ADDRESS))
    assert wrong == 0
    rank, number = int(plain.rank), MODES[mode]
    start = list(at) if at is not None else _first(map, rank)
    if len(start) != rank:
        raise ValueError(f"at={tuple(start)}: the tensor has {rank} dimensions")
    given = [value & 0xFFFFFFFF for value in reversed(start)]
    if rows is not None:
        if len(rows) != 4 or rank != 2 or plain.box[1] != 1:
            raise ValueError("four rows are gathered of a tensor with 2 dimensions, by a map with a box of one row")
        given = [given[0], *(row & 0xFFFFFFFF for row in rows)]
    if plain.dimensions != rank:
        given = [0, *given]
    moved = _offsets(plain, number, offsets)
    coordinates = given + [0] * (6 - len(given))
    transfer = _transfer(plain, number, coordinates, moved)
    _check(transfer)
    return Copy(plain, transfer, map)


def _transfer(plain: Any, mode: int, coordinates: Sequence[int], offsets: Sequence[int]) -> Any:
    return SimpleNamespace(map=plain, mode=mode, rank=int(plain.rank), coordinates=coordinates, offsets=offsets,
                           rows=int(rows_of(plain, mode, offsets[0])))  # fmt: skip


def executed(encoded: bytes, mode: str, coordinates: Sequence[int], offsets: Sequence[int]) -> Copy | None:
    """The copy of an instruction, by the bytes of its tensor map and its operands; None if they are not of a copy."""
    plain, wrong = encoded_maps.read(encoded)
    if wrong:
        return None
    given = [*([0] if plain.dimensions != plain.rank else []), *(value & 0xFFFFFFFF for value in coordinates)]
    transfer = _transfer(plain, MODES[mode], (given + [0] * 6)[:6], ([*offsets] + [0] * 3)[:3])
    if unfit_field(transfer)[0]:
        return None
    return Copy(plain, transfer, None)


def _first(map: TensorMap, rank: int) -> list[int]:
    """Where a copy starts, if that is not said: of im2col, at the lower corner."""
    if not map.pixels:
        return [0] * rank
    corner = list(reversed(map.lower))
    return [0, 0, *corner] if map.interleave else [0, *corner, 0]


def _check(transfer: Any) -> None:
    """A `ValueError` where a copy of the emulator would fault."""
    field, dimension = unfit_field(transfer)
    if field:
        value = value_of(transfer.map, field, dimension)
        raise ValueError(word_field(TensorMapReason(field), value, dimension, transfer.mode).message)
    reason, dimension, value, limit = illegal_start(transfer)
    if reason:
        signed = value - (value >> 63 << 64)
        raise ValueError(word_start(CoordinateReason(reason), signed, dimension, limit).message)


def _offsets(plain: Any, mode: int, offsets: Sequence[int] | None) -> list[int]:
    """What is added to pixels, innermost dimension first."""
    if mode < IM2COL:
        return [0, 0, 0]
    count = plain.rank - 2 if mode == IM2COL else 2
    given = list(offsets) if offsets is not None else [0] * count
    if len(given) != count or any(not 0 <= value < 1 << 16 for value in given):
        raise ValueError(f"offsets={tuple(given)}: there are {count} of 16 bits, not negative")
    return (given[::-1] if mode == IM2COL else given) + [0] * (3 - count)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _named(copy: Copy) -> str:
    """What is copied: extents in the order of the array."""
    said = copy.said
    assert said is not None
    shape = "x".join(map(str, reversed(said.sizes)))
    if said.pixels:
        mode = next(name for name, number in MODES.items() if number == copy.transfer.mode)
        what = f"{mode} of {shape} {said.type}, {said.box[0]} channels"
    elif copy.transfer.mode == GATHER:
        what = f"four rows of {said.box[0]} of {shape} {said.type}"
    else:
        what = f"a box of {'x'.join(map(str, reversed(said.box)))} of {shape} {said.type}"
    more = [f"swizzle {said.swizzle}"] if said.swizzle else []
    more += [f"interleave {said.interleave}"] if said.interleave else []
    return ", ".join([what, *more])


# Boxes.


def _before(copy: Copy, rows: Sequence[BoxRow]) -> Panel:
    """The box in the tensor: a row for each of its rows, a cell for each 16 bytes in shared memory."""
    cells = [[_label(copy, row, chunk) for chunk in range(copy.chunks)] for row in rows]
    names = [_span(copy.first + chunk * copy.each, copy.each) for chunk in range(copy.chunks)]
    note = f"{_fill(copy)}: outside of the tensor" if _has_outside(copy, rows) else ""
    return Panel("in the tensor", cells, [_coordinates(row) for row in rows], names, (0, 0), note)


def _span(first: int, count: int) -> str:
    if count == 1:
        return str(first)
    return f"{first}-{first + count - 1}" if first >= 0 else f"{first}..{first + count - 1}"


def _fill(copy: Copy) -> str:
    """What is written for elements outside of the tensor."""
    return "NaN" if copy.map.fills else "zeros"


def _has_outside(copy: Copy, rows: Sequence[BoxRow]) -> bool:
    end = copy.first + copy.chunks * copy.each
    return copy.first < 0 or end > copy.size or not all(row.is_inside for row in rows)


def _coordinates(row: BoxRow) -> str:
    return ",".join(map(str, reversed(row.position))) or "0"


def _label(copy: Copy, row: BoxRow, chunk: int, name: str | None = None) -> Cell:
    """What is in 16 bytes: the row, and its elements from one on, or up to where the tensor ends."""
    start = copy.first + chunk * copy.each
    low, high = max(start, 0), min(start + copy.each, copy.size)
    color = apart(chunk) if name is None or len(row.position) < 3 else apart(row.position[1])
    if not row.is_inside or low >= high:
        return Cell(_fill(copy), color)
    known = name if name is not None else _coordinates(row)
    part = str(low) if high - low == copy.each else f"{low}-{high - 1}"
    return Cell(f"{known},{part}", color)


def _after(copy: Copy, rows: Sequence[BoxRow], *, by_number: bool = False) -> Panel:
    """Shared memory in lines of 128 bytes."""
    there: dict[int, Cell] = {}
    for row in rows:
        for chunk in range(copy.chunks):
            offset = copy.offset(row.number, chunk)
            cell = _label(copy, row, chunk, str(row.number) if by_number else None)
            if copy.map.flip and offset >> 7 & 1:
                cell = Cell(f"{cell.text}*", cell.color)
            there[offset] = cell
    lines = max(there) // LINE + 1
    cells = [[there.get(line * LINE + offset) for offset in range(0, LINE, CHUNK)] for line in range(lines)]
    what = "pixel and channel" if by_number else "row and element"
    note = "*: the two halves of 8 bytes are swapped" if copy.map.flip else ""
    return Panel(
        f"in shared memory, the {what} that each 16 bytes start with",
        cells,
        [f"+{line * LINE}" for line in range(lines)],
        [f"+{offset}" for offset in range(0, LINE, CHUNK)],
        (0, 0),
        note,
    )


# Images.


def _image(copy: Copy, outer: tuple[int, ...], rows: Sequence[BoxRow]) -> Panel:
    """One image, or of one with depth a slice: the numbers of its pixels in the copy; W is to the right."""
    has_height = copy.map.rank > 3
    wide, high = _extent(copy, rows, 0), _extent(copy, rows, 1) if has_height else range(1)
    numbers: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        numbers.setdefault((row.position[1] if has_height else 0, row.position[0]), []).append(row.number)
    cells = [[_pixel(copy, outer, h, w, numbers.get((h, w))) for w in wide] for h in high]
    letters = "ncd" if copy.map.interleave else "nd"
    title = ", ".join(f"{name} {value}" for name, value in zip(letters, reversed(outer), strict=False))
    note = f"(in parentheses): outside of the image, {_fill(copy)}"
    is_outside = any(cell is not None and cell.text.startswith("(") for line in cells for cell in line)
    return Panel(
        f"image {title}: pixels in the order of the copy",
        cells,
        [f"h {h}" for h in high] if has_height else [""],
        [f"w {w}" for w in wide],
        (0, 0),
        note if is_outside else "",
        _corners(copy, 1, high, "h") if has_height else [],
        _corners(copy, 0, wide, "w"),
    )


def _extent(copy: Copy, rows: Sequence[BoxRow], number: int) -> range:
    """What is drawn along a dimension of an image: all of it, its corners and all that is copied."""
    found = [row.position[number] for row in rows]
    size = int(copy.map.sizes[number + 1])
    if size <= WIDEST:
        found += [0, size - 1]
    first, last = _bounds(copy, number)
    if last - first <= WIDEST:
        found += [first, last - 1]
    return range(min(found), max(found) + 1)


def _bounds(copy: Copy, number: int) -> tuple[int, int]:
    """From where to where a pixel starts along a dimension of an image, before offsets."""
    map = copy.map
    return _signed(map.lower[number]), int(map.sizes[number + 1]) + _signed(map.upper[number])


def _pixel(copy: Copy, outer: tuple[int, ...], h: int, w: int, numbers: list[int] | None) -> Cell | None:
    sizes = copy.map.sizes
    is_inside = 0 <= w < sizes[1] and (copy.map.rank == 3 or 0 <= h < sizes[2])
    first = 1 + min(2, copy.map.rank - 2)
    is_inside &= all(0 <= value < size for value, size in zip(outer, sizes[first : copy.map.dimensions], strict=True))
    if numbers is None:
        return Cell("", 0, strong=False) if is_inside else None
    text = "+".join(map(str, numbers))
    return Cell(text if is_inside else f"({text})", apart(h if copy.map.rank > 3 else 0))


def _corners(copy: Copy, number: int, extent: range, name: str) -> list[Mark]:
    """The bounding box along a dimension, where it is drawn."""
    first, last = _bounds(copy, number)
    if copy.transfer.mode > IM2COL and number > 0:
        return []
    if first not in extent or last - 1 not in extent:
        return []
    return [Mark(f"bounding box, {name} {first} to {last - 1}", first - extent.start, last - extent.start)]
