"""How each lane reads and writes its own part of a matrix in memory: wmma.load and wmma.store.

Row and column of what a lane holds are sums of a constant, a multiple of its group `lane // 4` and a multiple of its
number in the group, `lane % 4`. They are read off the layout, from three lanes, which determine the multiples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from ..machine import AccessKind, AddressValue, Machine, Value, Vector
from .layouts import Layout
from .rearrangement import converge
from .warp_mma import ALL_LANES


@dataclass(frozen=True)
class Element:
    """Where an element of a lane is in its matrix: constant, multiple of the group, multiple of the number in it."""

    row: tuple[int, int, int]
    column: tuple[int, int, int]


@cache
def elements_of(layout: Layout) -> tuple[Element, ...]:
    """The elements that each lane holds, in the order of registers and bits."""
    first, next_lane, next_group = layout.held(0), layout.held(1), layout.held(4)
    found = []
    for (row, column), (row_by, column_by), (row_on, column_on) in zip(first, next_lane, next_group, strict=True):
        found.append(Element((row, row_on - row, row_by - row), (column, column_on - column, column_by - column)))
    for lane in range(32):
        wanted = tuple((_at(one.row, lane), _at(one.column, lane)) for one in found)
        assert layout.held(lane) == wanted, "rows and columns are sums of multiples"
    return tuple(found)


def _at(parts: tuple[int, int, int], lane: int) -> int:
    constant, by_group, by_number = parts
    return constant + lane // 4 * by_group + lane % 4 * by_number


@dataclass(frozen=True)
class StridedMatrix:
    """A matrix in memory: its first element, and how many elements are between rows, or columns, of it."""

    k: Machine
    address: AddressValue
    layout: Layout
    by_rows: bool
    stride: Value | int
    line: int = 0
    """Bytes of a row that the hardware accesses at once, each time at a multiple of it; 0: registers of lanes."""

    def require_lines(self, kind: AccessKind) -> None:
        """Stop the lane unless the first line of the row of its group is aligned: then those of all rows are."""
        if self.line * 8 // self.layout.bits > 2 or (self.line and self.has_pairs):
            rows = self.k.cast(self.k.lane, "u64") >> 2
            stride = self.stride if isinstance(self.stride, int) else self.k.cast(self.stride, "u64")
            start = self.address + rows * stride * (self.layout.bits // 8)
            self.k.require(start, self.line, kind)

    def offset(self, element: Element) -> Value:
        """Bytes from the first element to this one."""
        lane = self.k.cast(self.k.lane, "u64")
        group, number = lane >> 2, lane & 3
        major, minor = (element.row, element.column) if self.by_rows else (element.column, element.row)
        along, across = (group * parts[1] + number * parts[2] + parts[0] for parts in (major, minor))
        stride = self.stride if isinstance(self.stride, int) else self.k.cast(self.stride, "u64")
        index = along * stride + across
        return index * (self.layout.bits // 8) if self.layout.bits >= 8 else index // (8 // self.layout.bits)

    def runs(self) -> list[tuple[Element, int]]:
        """The elements at which an access starts, and how many are contiguous: those of a register, or only one."""
        found = elements_of(self.layout)
        each = max(32 // self.layout.bits, 1)
        heads = [found[start : start + each] for start in range(0, len(found), each)]
        together = all(self._follow(head) for head in heads)
        return [(head[0], each) for head in heads] if together else [(one, 1) for one in found]

    @property
    def has_pairs(self) -> bool:
        """Whether each two elements of a lane are adjacent in memory."""
        found = elements_of(self.layout)
        return all(self._follow(found[start : start + 2]) for start in range(0, len(found), 2))

    def _follow(self, elements: tuple[Element, ...]) -> bool:
        """Whether elements of a register are adjacent in memory."""
        minor = [one.column if self.by_rows else one.row for one in elements]
        return all(b[0] == a[0] + 1 for a, b in pairwise(minor))


def load(matrix: StridedMatrix, registers: int) -> Vector:
    """The registers of a lane; if there are more than it takes, they repeat."""
    k = matrix.k
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    matrix.require_lines("load")
    found: list[Value] = []
    parts: list[Value] = []
    for element, count in matrix.runs():
        bits = count * matrix.layout.bits
        (value,) = k.load(matrix.address + matrix.offset(element), f"b{bits}")
        parts.append(value)
        if bits * len(parts) >= 32:
            found.append(parts[0] if len(parts) == 1 else k.pack(parts, "b32"))
            parts = []
    assert not parts, "registers are full"
    return tuple((found * registers)[:registers])


def store(matrix: StridedMatrix, values: Vector) -> None:
    """Write the registers of a lane to memory."""
    k = matrix.k
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    matrix.require_lines("store")
    runs = matrix.runs()
    width = runs[0][1] * matrix.layout.bits
    parts = [part for value in values for part in ([value] if width >= 32 else k.unpack(value, f"b{width}"))]
    for (element, _), part in zip(runs, parts, strict=True):
        k.store(matrix.address + matrix.offset(element), (part,))
