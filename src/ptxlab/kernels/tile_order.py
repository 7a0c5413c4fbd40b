"""The order in which the blocks of a persistent kernel compute the tiles of a matrix."""

from __future__ import annotations

from typing import Any

from ptxlab.author import ptx


class TileOrder:
    """Tiles of `rows` by `columns` of an m by n matrix, so that blocks that run together share what they read.

    `together` rows of tiles are computed column after column; so many `blocks` of a cluster compute a tile together.
    """

    def __init__(self, rows: int, columns: int, together: int, m: Any, n: Any, blocks: int = 1) -> None:
        self.rows, self.columns, self.together, self.blocks = rows, columns, together, blocks
        self.down, self.across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        self.count = self.down * self.across

    def each(self) -> Any:
        """The number of each tile of this block, on the GPU."""
        first, step = ptx.ctaid.x, ptx.nctaid.x
        if self.blocks > 1:
            first, step = first // self.blocks, step // self.blocks
        return ptx.range(first, self.count, step)

    def origin(self, number: Any) -> tuple[Any, Any]:
        """The first row and column of a tile."""
        size = self.across * self.together
        group, within = number // size, number % size
        first = group * self.together
        rows = ptx.min.u32(self.down - first, self.together)
        return (first + within % rows) * self.rows, within // rows * self.columns
