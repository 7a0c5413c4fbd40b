"""The order in which the blocks of a persistent kernel compute the tiles of a matrix, and along k the part of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxlab.author import pred, ptx, u32


class TileOrder:
    """Tiles of `rows` by `columns` of an m by n matrix, so that blocks that run together share what they read.

    `raster` rows of tiles are computed column after column; so many `blocks` of a cluster compute a tile together.
    """

    def __init__(self, rows: int, columns: int, raster: int, m: u32, n: u32, blocks: int = 1) -> None:
        self.rows, self.columns, self.raster, self.blocks = rows, columns, raster, blocks
        self.down, self.across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        self.count = self.down * self.across

    def each(self, start: u32 | None = None, every: int = 1) -> Any:
        """The number of each tile of this block, on the GPU; or of every so many of them, from number `start` on."""
        first, step = ptx.ctaid.x, self.step
        if self.blocks > 1:
            first = first // self.blocks
        return ptx.range(
            first if start is None else first + start * step, self.count, step * every if every > 1 else step
        )

    @property
    def step(self) -> u32:
        """From a tile of this block to its next one, on the GPU."""
        return ptx.nctaid.x // self.blocks if self.blocks > 1 else ptx.nctaid.x

    def origin(self, number: u32) -> tuple[u32, u32]:
        """The first row and column of a tile."""
        size = self.across * self.raster
        group, within = number // size, number % size
        first = group * self.raster
        rows = ptx.min.u32(self.down - first, self.raster)
        return (first + within % rows) * self.rows, within // rows * self.columns


class Share:
    """What a block computes: tiles in their order, each along k from `first` to `end`, in K tiles of `depth` elements.

    Blocks of a `cluster` have tiles one below the other, `beside` of them side by side. After a `split_k`, so many
    blocks compute one tile together, this one part number `part` of it, by default its rank in the cluster; each block
    then has one tile. The number of K tiles is a multiple of `multiple`, where the last may be out of bounds.
    """

    def __init__(
        self,
        order: TileOrder,
        k: u32,
        depth: int,
        *,
        rank: Any = None,
        cluster: int = 1,
        beside: int = 1,
        split_k: int = 1,
        part: Any = None,
        multiple: int = 1,
    ) -> None:
        self.order, self.depth, self.rank, self.cluster, self.split_k = order, depth, rank, cluster, split_k
        self.part, self.beside = rank if part is None else part, beside
        self.first, self.end = u32(0), k
        self.upcoming: list[Any] | None = None  # where the next tile is, for the thread that copies
        unit = depth * multiple
        if split_k > 1:
            count = (k + (unit - 1)) // unit
            self.first = self.part * count // split_k * unit
            self.end = (self.part + 1) * count // split_k * unit
        elif multiple > 1:
            self.end = (k + (unit - 1)) // unit * unit

    @property
    def count(self) -> u32:
        """How many K tiles there are."""
        return (self.end - self.first + (self.depth - 1)) // self.depth

    def numbers(self, start: Any = None, every: int = 1) -> Any:
        """The number of each tile; or of every so many of them, from number `start` on."""
        return [ptx.ctaid.x // (self.split_k * self.cluster)] if self.split_k > 1 else self.order.each(start, every)

    def origin(self, number: u32) -> tuple[u32, u32]:
        """The first row and column of a tile."""
        row, column = self.order.origin(number)
        down = self.cluster // self.beside
        if down > 1:
            below = self.rank if self.beside == 1 else self.rank // self.beside
            row = row + below * (self.order.rows // down)
        if self.beside > 1:
            right = self.rank if down == 1 else self.rank % self.beside
            column = column + right * (self.order.columns // self.beside)
        return row, column

    def first_tile(self) -> tuple[u32, u32]:
        """The first row and column of this block's first tile."""
        each = self.split_k * self.cluster if self.split_k > 1 else self.order.blocks
        return self.origin(ptx.ctaid.x // each if each > 1 else ptx.ctaid.x)

    def start(self, when: pred) -> None:
        """Have the thread of `when` compute where the first tile is: early, while others initialize barriers."""
        self.upcoming = [u32(0), u32(0)]
        with ptx.when(when):
            for one, value in zip(self.upcoming, self.first_tile(), strict=True):
                ptx.mov.u32(value, out=one)

    def tiles(self) -> Iterator[tuple[u32, u32]]:
        """The first row and column of each tile."""
        return (self.origin(number) for number in self.numbers())

    def tiles_from_origin(self) -> Any:
        """The same, by the thread of `start`."""
        assert self.upcoming is not None
        if self.split_k > 1:
            yield self.upcoming
        else:
            for number in self.numbers():
                yield self.upcoming
                following = number + self.order.step
                with ptx.when(following < self.order.count):
                    for one, value in zip(self.upcoming, self.origin(following), strict=True):
                        ptx.mov.u32(value, out=one)

    def steps(self) -> Any:
        """Along k, the start of each K tile."""
        return ptx.range(self.first, self.end, self.depth)
