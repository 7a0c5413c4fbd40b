"""Where each element of a matrix is held: which register of which lane, and where in it (PTX ISA 9.7.14).

A `Layout` holds one position for each element, by row and column. One rule covers nearly all fragments of `mma`: a lane
is number `t` of four in group `g` of eight, and the registers of a row's columns go round the four lanes of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property

from ptxlab.values import dataclass

from .fragment import ELEMENT_BITS, extents

RegisterBit = tuple[int, int, int]  # a 32-bit register, a lane, and the lowest bit


@dataclass(frozen=True, eq=False)
class Layout:
    """A matrix in the registers of a warp. `positions` go row by row; a position is `register << 10 | lane << 5 | bit`.

    A register of 64 bits counts as two. `copies` matrices of `rows` by `columns` follow one another.
    """

    rows: int
    columns: int
    bits: int
    positions: tuple[int, ...]
    copies: int = 1

    def position(self, row: int, column: int, copy: int = 0) -> RegisterBit:
        """The register, lane and lowest bit of an element."""
        position = self.positions[(copy * self.rows + row) * self.columns + column]
        return position >> 10, position >> 5 & 31, position & 31

    def elements(self) -> Iterator[tuple[int, int, RegisterBit]]:
        """Every element with its position."""
        for row in range(self.copies * self.rows):
            for column in range(self.columns):
                yield row % self.rows, column, self.position(row % self.rows, column, row // self.rows)

    def held(self, lane: int) -> tuple[tuple[int, int], ...]:
        """The row and column of each element that a lane holds, from its first register on, from the low bits up."""
        return tuple((row, column) for _, _, row, column in self._by_lane.get(lane, ()))

    @cached_property
    def _by_lane(self) -> dict[int, list[tuple[int, int, int, int]]]:
        """The elements of each lane in order: register, bit, row and column."""
        found: dict[int, list[tuple[int, int, int, int]]] = {}
        for row, column, (register, lane, bit) in self.elements():
            found.setdefault(lane, []).append((register, bit, row, column))
        return {lane: sorted(own) for lane, own in found.items()}

    @property
    def registers(self) -> int:
        """How many 32-bit registers a lane has."""
        return max(position >> 10 for position in self.positions) + max(self.bits // 32, 1)

    def after(self, registers: int) -> tuple[int, ...]:
        """The positions when so many other registers come first."""
        return tuple(position + (registers << 10) for position in self.positions)

    def halves(self, chunk: int) -> Layout:
        """Every second `chunk` of columns, from the first on, and then those between."""
        order = sorted(range(self.columns), key=lambda column: column // chunk % 2)
        starts = range(0, len(self.positions), self.columns)
        positions = tuple(self.positions[start + column] for start in starts for column in order)
        return Layout(self.rows, self.columns, self.bits, positions, self.copies)

    @property
    def by_columns(self) -> Layout:
        """The same matrices with their positions column by column: each transposed."""
        size = self.rows * self.columns
        positions = tuple(
            position
            for start in range(0, len(self.positions), size)
            for column in range(self.columns)
            for position in self.positions[start + column : start + size : self.columns]
        )
        return Layout(self.columns, self.rows, self.bits, positions, self.copies)

    @property
    def transposed(self) -> Layout:
        """The same registers, read as the matrix whose rows are the columns of this one."""
        assert self.copies == 1
        return self.by_columns


def laid_out(
    rows: int,
    columns: int,
    bits: int,
    position: Callable[[int, int, int], RegisterBit],
    copies: int = 1,
    padding: int = 0,
) -> Layout:
    """The layout whose elements are at `position(row, column, copy)`."""
    positions = (
        position(row, column, copy) for copy in range(copies) for row in range(rows) for column in range(columns)
    )
    flat = tuple(register << 10 | lane << 5 | bit + padding for register, lane, bit in positions)
    return Layout(rows, columns, bits, flat, copies)


def width(type: str, bits: int | None = None) -> tuple[int, int]:
    """The bits that an element takes in a register, and how many of the lowest carry no value.

    In a byte, e2m1 is in the middle, fp6 at the bottom (PTX ISA 9.7.14.5.14).
    """
    size = bits or ELEMENT_BITS[type]
    return size, 13 if type == "tf32" else 2 if type == "e2m1" and size == 8 else 0


@cache
def multiplicand(rows: int, columns: int, type: str, bits: int | None = None) -> Layout:
    """A, or B transposed: rows whose columns go round the four lanes of a group, a register each.

    With sixteen rows, a register of row `g` is followed by that of row `g + 8`, and only then by further columns; what
    has more rows is made of such blocks of sixteen.
    """
    size, padding = width(type, bits)
    each = max(32 // size, 1)  # elements in a register
    words = max(size // 32, 1)  # registers for an element
    block = min(rows, 16)
    turns = columns // each // 4

    def position(row: int, column: int, copy: int) -> RegisterBit:
        turn, t = divmod(column // each, 4)
        register = (row // block * turns + turn) * (block // 8) + row % block // 8
        return register * words, row % 8 * 4 + t, column % each * size

    return laid_out(rows, columns, size, position, padding=padding)


@cache
def stacked(layout: Layout, count: int) -> Layout:
    """That many such matrices, one below the other, each in registers of its own."""
    positions = tuple(position for index in range(count) for position in layout.after(index * layout.registers))
    return Layout(layout.rows * count, layout.columns, layout.bits, positions)


@cache
def accumulator(rows: int, columns: int, type: str) -> Layout:
    """C or D: each lane holds two neighbours of row `g`, two of row `g + 8`, then those of the next eight columns."""
    size = ELEMENT_BITS[type]

    def position(row: int, column: int, copy: int) -> RegisterBit:
        index = column // 8 * (rows // 4) + row // 8 * 2 + column % 2
        register, bit = divmod(index * size, 32)
        return register, row % 8 * 4 + column % 8 // 2, bit

    return laid_out(rows, columns, size, position)


# mma.m8n8k4 of f16: four products, each by two groups of four lanes, 0-3 with 16-19, 4-7 with 20-23 and so on.


def _quad(lane: int, copy: int, upper: bool) -> int:
    return copy * 4 + lane + (16 if upper else 0)


@cache
def quarter_multiplicand(type: str, along: bool) -> Layout:
    """A, or B transposed, 8x4: a lane holds a row if `along`, else one column of four rows."""
    size, padding = width(type)

    def position(row: int, column: int, copy: int) -> RegisterBit:
        lane, index = (row % 4, column) if along else (column, row % 4)
        register, bit = divmod(index * size, 32)
        return register, _quad(lane, copy, row >= 4), bit

    return laid_out(8, 4, size, position, copies=4, padding=padding)


@cache
def quarter_accumulator(type: str) -> Layout:
    """C or D, 8x8: a row a lane in f16; in f32 a lane holds two neighbours of each of four pieces."""
    size = ELEMENT_BITS[type]

    def position(row: int, column: int, copy: int) -> RegisterBit:
        lane, index = row % 4, column
        if type == "f32":
            lane = row & 1 | column & 2
            index = column & 4 | row & 2 | column & 1
        register, bit = divmod(index * size, 32)
        return register, _quad(lane, copy, row >= 4), bit

    return laid_out(8, 8, size, position, copies=4)


@cache
def metadata(shape: str, type: str, selector: int = 0, bits: int | None = None) -> Layout:
    """For each stored element of a sparse A, the two bits of its column among those of its chunk.

    A chunk has four bits: an index for each of two elements, of 16 bits or of 8; of four elements of 4 bits, an index
    for each pair; of a single tf32 element, indices for both of its halves, the first of which is used here. One
    lane of each group of four supplies them, or two, or all; `selector` says which.
    """
    _, _, k = extents(shape)
    size, _ = width(type, bits)
    kept = kept_of(size)
    suppliers = k // 2 // kept // 4

    def position(row: int, column: int, copy: int) -> RegisterBit:
        chunk, inside = divmod(column, kept)
        upper = row // 8
        if size >= 16:  # four chunks of both rows in each register
            lane, nibble = chunk // 4, upper * 4 + chunk % 4
        else:  # eight chunks of one row
            lane, nibble = chunk // 8 * 2 + upper, chunk % 8
        return 0, row % 8 * 4 + selector * suppliers + lane, nibble * 4 + inside * 2 // kept * 2

    return laid_out(16, k // 2, 2, position)


def kept_of(size: int) -> int:
    """How many elements of `size` bits are stored of each chunk of twice as many."""
    return {32: 1, 4: 4}.get(size, 2)


@dataclass(frozen=True)
class FragmentLayouts:
    """The layouts of a multiplication. B is laid out transposed: a row of `b` is a column of B."""

    a: Layout
    b: Layout
    c: Layout
    d: Layout


@cache
def fragments(
    shape: str,
    atype: str,
    btype: str,
    ctype: str,
    dtype: str,
    *,
    alayout: str = "row",
    blayout: str = "col",
    bits: int | None = None,
    sparse: bool = False,
) -> FragmentLayouts:
    """The layouts of `mma` in this shape; a sparse A is stored without its zeros, in half the columns."""
    m, n, k = extents(shape)
    if shape == "m8n8k4" and atype != "f64":
        return FragmentLayouts(
            quarter_multiplicand(atype, alayout == "row"),
            quarter_multiplicand(btype, blayout == "col"),
            quarter_accumulator(ctype),
            quarter_accumulator(dtype),
        )
    return FragmentLayouts(
        multiplicand(m, k // 2 if sparse else k, atype, bits),
        multiplicand(n, k, btype, bits),
        accumulator(m, n, ctype),
        accumulator(m, n, dtype),
    )


# The fragments of `wmma` are opaque in PTX. These are what an H200 was seen to use: those of the `mma` that it runs.


@cache
def opaque_multiplicand(matrix: str, shape: str, type: str) -> Layout:
    """A, or B transposed. An f16 multiplicand has eight registers; those that it does not need repeat the others."""
    m, n, k = extents(shape)
    rows = m if matrix == "a" else n
    # The shape with eight rows is computed the other way round: there B is what A is elsewhere.
    if matrix == "a" or shape == "m8n32k16":
        return multiplicand(rows, k, type)
    return stacked(multiplicand(8, k, type), rows // 8)


@cache
def opaque_accumulator(shape: str, type: str) -> Layout:
    """C or D."""
    m, n, _ = extents(shape)
    return accumulator(n, m, type).transposed if shape == "m8n32k16" else accumulator(m, n, type)


@cache
def opaque_fragments(shape: str, atype: str, btype: str, ctype: str, dtype: str) -> FragmentLayouts:
    """The layouts of `wmma.mma` in this shape."""
    return FragmentLayouts(
        opaque_multiplicand("a", shape, atype),
        opaque_multiplicand("b", shape, btype),
        opaque_accumulator(shape, ctype),
        opaque_accumulator(shape, dtype),
    )
