"""The tiles of all groups, as blocks find them: from the ends of the groups, which are in the GPU's memory.

Each block counts the tiles of every group once and adds them up, so that shared memory has for each group the number
of its first tile. A tile's group is then found by bisection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ptxlab.author import Pointer, ptx, u32
from ptxlab.kernels.parts.persistent import Plan
from ptxlab.kernels.parts.reductions import prefix_sum
from ptxlab.kernels.parts.tile_order import TileOrder

LANES = 32


class Rows(NamedTuple):
    """Rows of a tile: the first one, and where its group ends."""

    first: u32
    end: u32


class Columns(NamedTuple):
    """Columns of a tile: the first one, and its group."""

    first: u32
    group: u32


def space_for(groups: int) -> int:
    """Groups that a kernel has space for: a power of two, and one for each lane of a warp at least."""
    return max(LANES, 1 << (groups - 1).bit_length())


class GroupedShare:
    """What a block computes of all groups; all its threads make it, with space for `most` groups.

    `offsets` has the row after the last of each group, `extents` are the number of groups, m, n and k.
    """

    def __init__(self, plan: Plan, most: int, offsets: Pointer, extents: tuple[u32, u32, u32, u32], rank: Any) -> None:
        self.shape, self.depth, self.most, self.rank = plan.shape, plan.formats.depth, most, rank
        self.groups, self.m, self.n, self.k = extents
        self.first = u32(0)
        self.before = ptx.shared(u32, most + 1)  # tiles of all groups before, and at the end of all groups
        self.rows_before = ptx.shared(u32, most + 1)
        self.count_tiles(offsets)
        ptx.bar.sync(0)
        with ptx.when(ptx.tid.x < LANES):
            self.add_up()
        ptx.bar.sync(0)
        self.total = ptx.ld.shared.u32(self.before.at(most))

    def order(self, rows: u32) -> TileOrder:
        """The tiles of a group of so many rows."""
        shape = self.shape
        extents = (self.n, rows) if shape.swap_ab else (rows, self.n)
        return TileOrder(*shape.covered, shape.raster, *extents, shape.cluster)

    def count_tiles(self, offsets: Pointer) -> None:
        """Write the rows before each group, and at the next group how many tiles it has; each thread for some."""
        with ptx.when(ptx.tid.x == 0):
            ptx.st.shared.u32(self.before.at(0), 0)
            ptx.st.shared.u32(self.rows_before.at(0), 0)
        for group in ptx.range(ptx.tid.x, u32(self.most), self.shape.threads):
            start, end = u32(0), u32(0)
            exists = group < self.groups
            ptx.ld.global_.u32(offsets + group, out=end, when=exists)
            ptx.ld.global_.u32(offsets + group - 1, out=start, when=ptx.and_.pred(exists, group > 0))
            end = ptx.min.u32(end, self.m)
            start = ptx.min.u32(start, end)
            ptx.st.shared.u32(self.rows_before.at(group + 1), end)
            ptx.st.shared.u32(self.before.at(group + 1), self.order(end - start).count)

    def add_up(self) -> None:
        """Replace the tiles of each group by those of all up to it: each lane of a warp has some groups in a row."""
        each = self.most // LANES
        places = [self.before.at(ptx.laneid * each + (number + 1)) for number in range(each)]
        counts = [ptx.ld.shared.u32(place) for place in places]
        own = sum(counts[1:], counts[0])
        running = prefix_sum(own) - own
        for place, count in zip(places, counts, strict=True):
            running = running + count
            ptx.st.shared.u32(place, running)

    @property
    def count(self) -> u32:
        """How many K tiles there are."""
        return (self.k + (self.depth - 1)) // self.depth

    def numbers(self, start: Any = None, every: int = 1) -> Any:
        """The number of each tile of this block; or of every so many of them, from number `start` on."""
        first, step = ptx.ctaid.x // self.shape.cluster, ptx.nctaid.x // self.shape.cluster
        if self.shape.even:  # only now is it known how many tiles there are
            rounds = ptx.max.u32((self.total + step - 1) // step, 1)
            step = (self.total + rounds - 1) // rounds
            first = ptx.selp.u32(first, self.total, first < step)
            step = ptx.max.u32(step, 1)
        return ptx.range(first if start is None else first + start * step, self.total, step * every)

    def origin(self, number: u32) -> tuple[Rows, Columns] | tuple[Columns, Rows]:
        """Where a tile is: in the last group that starts with this tile, or before it.

        Where D is stored transposed, the tile's rows are columns of D.
        """
        group, distance = u32(0), self.most // 2
        while distance:
            further = ptx.ld.shared.u32(self.before.at(group + distance))
            ptx.add.u32(group, distance, out=group, when=further <= number)
            distance //= 2
        start, end = (ptx.ld.shared.u32(self.rows_before.at(group + place)) for place in (0, 1))
        row, column = self.order(end - start).origin(number - ptx.ld.shared.u32(self.before.at(group)))
        if self.shape.beside > 1:
            column = column + self.rank * self.shape.columns
        elif self.shape.cluster > 1:
            row = row + self.rank * self.shape.rows
        if self.shape.swap_ab:
            return Columns(row, group), Rows(start + column, end)
        return Rows(start + row, end), Columns(column, group)

    def tiles(self) -> Iterator[tuple[Rows, Columns] | tuple[Columns, Rows]]:
        """Where each tile is."""
        return (self.origin(number) for number in self.numbers())

    def steps(self) -> Any:
        """Along k, the start of each K tile."""
        return ptx.range(self.first, self.k, self.depth)
