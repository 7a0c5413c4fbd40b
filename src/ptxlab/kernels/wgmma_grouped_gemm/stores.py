"""How tiles of a group are stored: the last rows of a tile may be those of the next group, and are left alone.

There is one tensor map, for which the end of any group is out of bounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptxlab.author import Pointer, f32, pred, ptx, s32, u32
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.kernels.parts.tile_stores import CopyBack, TileStore

FAR = 1 << 30  # rows: where the end of a group is for `RaggedCopy`
STEP = 1 << 34  # bytes: FAR times it is a multiple of 2⁶⁴
COPY_4D = ptx.cp.async_.bulk.tensor["4d"]["global"]["shared::cta"].bulk_group


class GroupedStore(TileStore):
    """Stores the rows of a tile that are its group's."""

    def prepare(self, row: Any, column: Any) -> None:
        """Load the factors of the first boxes of a tile whose first element is there."""
        if self.finish is not None:
            self.finish.group = (row if self.boxes.swap_ab else column).group
        super().prepare(row.first, column.first)

    def write(self, accumulators: list[list[f32]], row: Any, column: Any) -> None:
        """Store a tile whose first element is there: `Rows` and `Columns`, the other way round if D is transposed."""
        self.store.end = (column if self.boxes.swap_ab else row).end
        super().write(accumulators, row.first, column.first)


class Scales:
    """Factors of results: one of each row of A, and one of each column of each group's matrix."""

    group: u32 | None = None  # of the tile that is stored

    def __init__(self, rows: Pointer, columns: Pointer, m: u32, n: u32, swap_ab: bool) -> None:
        self.rows, self.columns, self.m, self.n, self.swap_ab = rows, columns, m, n, swap_ab

    def registers(self, results: int) -> int:
        """Registers of the factors of so many results in two rows."""
        return results

    def inside(self, column: u32, width: int) -> u32:
        """The first column of a box, which may be out of bounds."""
        return column

    def load(self, fragment: Any, row: u32, first: u32, place: object, more: int) -> list[tuple[f32, f32]]:
        """Load the factors of the results at `row` and `more` columns after the first, as a fragment holds them."""
        down, right = fragment.first(ptx.laneid)
        column = first + more
        factors: dict[tuple[str, int], Any] = {}
        for along, across in fragment.offsets:
            for side, offset, at in (("row", along, row + down), ("column", across, column + right)):
                if (side, offset) not in factors:
                    load = self.of_row if (side == "row") != self.swap_ab else self.of_column
                    factors[side, offset] = load(at + offset)
        return [(factors["row", along], factors["column", across]) for along, across in fragment.offsets]

    def of_row(self, row: u32) -> f32:
        """The factor of a row of D."""
        return self.factor(self.rows + row, row < self.m)

    def of_column(self, column: u32) -> f32:
        """The factor of a column of D, in the group."""
        place = self.columns + ptx.mad.wide.u32(self.group, self.n, ptx.cvt.u64.u32(column))
        return self.factor(place, column < self.n)

    def apply(self, values: list[f32], loaded: list[tuple[f32, f32]]) -> list[f32]:
        """The results, with what `load` has loaded for them."""
        return [value * (row * column) for value, (row, column) in zip(values, loaded, strict=True)]

    def factor(self, place: object, inside: pred) -> f32:
        """A factor; 0 where there is none."""
        value = f32(0)
        ptx.ld.global_.f32(place, out=value, when=inside)
        return value


class RaggedCopy(CopyBack):
    """All boxes are stored by TMA, and what is after the end of the group is out of bounds.

    The tensor map has D's rows in two dimensions with the same stride. In one, a box starts as far before FAR as it
    starts before the end of the group, and the map ends at FAR; the other adds the end of the group. A third dimension
    takes FAR rows back, modulo 2⁶⁴: it multiplies FAR by a stride of 2³⁴ less a row.
    """

    end: Any = None

    def copy(self, of: TileStore, copy: u32, first: tuple[u32, u32]) -> None:
        """Start the copy of a box, by this thread."""
        row, column = first
        there = column, *ragged_rows(row, self.end)
        COPY_4D((self.d, tuple(one.view(s32) for one in there)), of.tile.at(0, 0, copy))


def ragged_rows(row: u32, end: u32 | None) -> tuple[Any, Any, Any]:
    """Coordinates of a row of a group with that end, after that of the column."""
    return row - end + FAR, end, u32(FAR)


def ragged_map(plain: TensorMap) -> TensorMap:
    """The tensor map for `RaggedCopy`, from that of D."""
    (columns, _), (pitch,) = plain.sizes, plain.strides
    return replace(
        plain,
        sizes=(columns, FAR, 2 * FAR - 1, 2 * FAR - 1),
        strides=(pitch, pitch, STEP - pitch),
        box=(*plain.box, 1, 1),
        steps=(1, 1, 1, 1),
    )
