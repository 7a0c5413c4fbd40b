"""Tiles: matrices in shared memory with padded or swizzled rows, and addresses in them.

A tile is data: `tile.offset(row, column)` says where an element is, and `tile.at(row, column)` writes the few
instructions that compute it on the GPU. What is the same in each iteration of a loop is computed before the loop by the
author; `pointer.move(...)` then continues from there, by a number in the address or by one instruction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

from ptxlab.author.arrays import declare
from ptxlab.author.elements import element_of
from ptxlab.author.emit import emit
from ptxlab.author.fragments import Fragment
from ptxlab.author.lines import refuse
from ptxlab.author.pointers import Pointer
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar, u32
from ptxlab.isa.units.swizzle import SWIZZLES, Swizzle

CHUNK = 16  # bytes: what `cp.async` and `ldmatrix` move at once, and no swizzle takes apart


@dataclass(frozen=True, eq=False)
class Tile:
    """`copies` matrices of `rows` by `columns` elements, in rows of `pitch` elements."""

    memory: Pointer
    rows: int
    columns: int
    pitch: int
    swizzle: Swizzle | None
    copies: int

    @property
    def element(self) -> type[Scalar]:
        """The type of an element."""
        return self.memory.element

    @property
    def row_bytes(self) -> int:
        """Bytes from one row to the next."""
        return self.pitch * self.memory.size

    @property
    def copy_bytes(self) -> int:
        """Bytes from one copy to the next."""
        return _copy_bytes(self.rows, self.row_bytes, self.swizzle)

    @property
    def bytes(self) -> int:
        """Bytes of all copies."""
        return self.copies * self.copy_bytes

    def offset(self, row: int, column: int, copy: int = 0) -> int:
        """The offset of an element, in bytes from the start."""
        within = row * self.row_bytes + column * self.memory.size
        return copy * self.copy_bytes + (self.swizzle.apply(within) if self.swizzle else within)

    def at(self, row: Any, column: Any, copy: Any = 0, *, below: int | None = None) -> TilePointer:
        """The address of an element; numbers and registers may be mixed.

        `below` promises that `column`, a register, is less than that; then columns can be moved by (see `move`).
        """
        limits = ((row, self.rows, "rows"), (column, self.columns, "columns"), (copy, self.copies, "copies"))
        for index, extent, what in limits:
            if isinstance(index, int) and not 0 <= index < extent:
                refuse("outside-array", f"{index} is outside of the tile, which has {extent} {what}")
        base = self.memory._advance([(copy, self.copy_bytes)])
        if below is None and not isinstance(column, Scalar):
            below = column + 1
        low = None if below is None else 1 << ((below - 1) * self.memory.size).bit_length()
        if not isinstance(row, Scalar) and not isinstance(column, Scalar):
            pointer = base._advance([(self.offset(row, column), 1)])
            return TilePointer(self, pointer, low, (row, column))
        steps = [(row, self.row_bytes), (column, self.memory.size)]
        if self.swizzle is None:
            return TilePointer(self, base._advance(steps), low)
        return TilePointer(self, base._advance([(_swizzled(steps, self.swizzle), 1)]), low)

    def matrices(self, fragment: Fragment, lane: Any, row: Any = 0, column: int = 0, copy: Any = 0) -> TilePointer:
        """The address that a lane gives to `ldmatrix` or `stmatrix` for the fragment whose first element is there."""
        if self.memory.size * 8 != fragment.bits:
            refuse(
                "type-clash",
                f"the tile has elements of {self.memory.size * 8} bits, the fragment of {fragment.bits}",
                helps=["make the tile of the type that is multiplied"],
            )
        down, right = fragment.row_of(lane)
        below = 1 + max(start for _, start in fragment.matrices)
        if isinstance(row, Scalar):
            return self.at(down + row, right, copy, below=below).move(columns=column)
        return self.at(down, right, copy, below=below).move(rows=row, columns=column)


def _swizzled(steps: list[tuple[Any, int]], swizzle: Swizzle) -> Scalar:
    """The sum of each index times its bytes, swizzled: a `mad` for each register, then three instructions."""
    total = sum(index * size for index, size in steps if not isinstance(index, Scalar))
    for index, size in steps:
        if not isinstance(index, Scalar):
            continue
        if not isinstance(index, u32):
            refuse(
                "not-an-index", f"a `{index.type.name}` is not an index of a swizzled tile", helps=["an index is a u32"]
            )
        is_first = not isinstance(total, Scalar) and total == 0
        total = index * size if is_first else emit("mad.lo.u32", [index, size, total])
    offset: Scalar = total ^ (total >> swizzle.shift & swizzle.mask)
    return offset


class TilePointer(Pointer):
    """The address of an element of a tile."""

    def __init__(self, tile: Tile, pointer: Pointer, low: int | None, position: tuple[int, int] | None = None) -> None:
        super().__init__(pointer.element, pointer.space, pointer.register, pointer.symbol, pointer.offset)
        self.tile = tile
        self._low = low  # the bytes of the column are less, a power of two; None if not known
        self._position = position  # row and column, where Python knows both

    def move(self, rows: int | u32 = 0, columns: int = 0, copy: int | u32 = 0) -> TilePointer:
        """The element so many rows and columns on, in the tile so many copies on.

        Rows become part of the address. Columns do too, unless the tile is swizzled: then they cost one `xor`. A copy
        whose number is in a register costs one `mad`. Rows and columns are Python numbers; in a tile without a
        swizzle they may be registers, each for one `mad`.
        """
        tile = self.tile
        self._check_numbers(rows=rows, columns=columns)
        base = self._advance([(copy, tile.copy_bytes)])
        if isinstance(rows, Scalar) or isinstance(columns, Scalar):
            return TilePointer(tile, base._advance([(rows, tile.row_bytes), (columns, self.size)]), None)
        if self._position is not None:
            row, column = self._position
            moved = tile.offset(row + rows, column + columns) - tile.offset(row, column)
            pointer = base._advance([(moved, 1)])
            return TilePointer(tile, pointer, self._low, (row + rows, column + columns))
        right = columns * self.size
        if tile.swizzle is None:
            return TilePointer(tile, base._advance([(rows, tile.row_bytes), (right, 1)]), self._low)
        down = rows * tile.row_bytes
        if down % tile.swizzle.period:
            every = tile.swizzle.period // tile.row_bytes
            refuse(
                "not-an-index",
                f"{rows} rows on, the swizzle is another one: it repeats every {every} rows",
                helps=[f"move by a multiple of {every} rows", "`tile.at(row, column)` computes any address"],
            )
        if right:
            self._check_columns(right)
            assert base.register is not None
            base = base._moved(base.register ^ tile.swizzle.apply(right), None, base.offset)
        return TilePointer(tile, base._advance([(down, 1)]), self._low)

    def _check_numbers(self, **steps: object) -> None:
        for name, step in steps.items():
            if isinstance(step, Scalar) and self.tile.swizzle is not None:
                refuse(
                    "not-an-index",
                    f"`{name}=` takes a Python number in a swizzled tile, and `{step.name}` is a register",
                    helps=["`tile.at(row, column)` and `tile.matrices(fragment, lane, row)` take registers"],
                )

    def _check_columns(self, right: int) -> None:
        if self._low is None:
            refuse(
                "not-an-index",
                "columns can be moved by where the first column is known to be small enough, and here it is any",
                helps=["say what it is less than: `tile.at(row, column, below=16)`"],
            )
        if right % self._low or right >= self.tile.row_bytes:
            refuse(
                "not-an-index",
                f"{right // self.size} columns on is not a step of {self._low // self.size} columns within the row",
                helps=["`tile.at(row, column)` computes any address"],
            )

    def __add__(self, index: object) -> Pointer:
        if self.tile.swizzle is not None:
            self._refuse_counting()
        return super().__add__(index)

    __radd__ = __add__

    def _refuse_counting(self) -> NoReturn:
        refuse(
            "no-operator",
            "elements of a swizzled tile do not follow each other",
            helps=["`pointer.move(rows=..., columns=...)` continues from here"],
        )


def tile(
    element: type[Scalar],
    rows: int,
    columns: int,
    *,
    pitch: int | None = None,
    swizzle: str | Swizzle | None = None,
    copies: int = 1,
    at: Pointer | None = None,
    name: str = "tile",
) -> Tile:
    """A matrix in shared memory: of its own, or where `at` points to.

    `pitch` is the distance between rows in elements, `swizzle` is "32B", "64B", "128B" or a `Swizzle`.
    """
    size = max(element_of(element).type.width // 8, 1)
    chosen = pitch or columns
    pattern = SWIZZLES.get(swizzle) if isinstance(swizzle, str) else swizzle
    if isinstance(swizzle, str) and pattern is None:
        known = ", ".join(f'"{name}"' for name in SWIZZLES)
        message = f"there is no swizzle `{swizzle}`"
        refuse("unknown-name", message, helps=[f"expected one of {known}, or `Swizzle(...)`"])
    if min(rows, columns, copies) < 1 or chosen < columns:
        refuse(
            "illegal-declaration", f"{copies} tiles of {rows} by {columns} in rows of {chosen} elements are not tiles"
        )
    align = CHUNK if pattern is None else pattern.period
    if pattern is not None and (chosen * size & (chosen * size - 1) or not CHUNK <= chosen * size <= align):
        refuse(
            "illegal-declaration",
            f"rows of {chosen * size} bytes are not swizzled over {align} bytes",
            helps=["rows of a swizzled tile have a power of two of bytes, 16 or more, and no more than the swizzle"],
        )
    if at is not None:
        _check_alignment(at, align)
        return Tile(at.view(element), rows, columns, chosen, pattern, copies)
    count = copies * _copy_bytes(rows, chosen * size, pattern) // size
    return Tile(declare("shared", element, (count,), align, name), rows, columns, chosen, pattern, copies)


def _copy_bytes(rows: int, row_bytes: int, swizzle: Swizzle | None) -> int:
    align = CHUNK if swizzle is None else swizzle.period
    return math.ceil(rows * row_bytes / align) * align


def _check_alignment(at: Pointer, align: int) -> None:
    if at.space is None or at.space.partition("::")[0] != "shared":
        refuse("operand-type", "a tile is in shared memory, and `at` points elsewhere")
    declared = current("`ptx.tile`").alignments.get(at.symbol or "", align)
    if at.offset % align or declared % align:
        refuse(
            "misaligned-tile",
            f"a tile of this swizzle begins at a multiple of {align} bytes",
            helps=[f"`ptx.dynamic_shared(b8, align={align})`, and only whole tiles before it"],
        )
