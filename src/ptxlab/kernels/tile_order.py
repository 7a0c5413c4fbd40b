"""The order in which the blocks of a persistent kernel compute the tiles of a matrix."""

from __future__ import annotations

from typing import Any

from ptxlab.author import ptx


class TileOrder:
    """Tiles of `rows` by `columns` of an m by n matrix, so that blocks that run together share what they read.

    `together` rows of tiles are computed column after column.
    """

    def __init__(self, rows: int, columns: int, together: int, m: Any, n: Any) -> None:
        self.rows, self.columns, self.together = rows, columns, together
        self.down, self.across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        self.count = self.down * self.across

    def each(self) -> Any:
        """The number of each tile of this block, on the GPU."""
        return ptx.range(ptx.ctaid.x, self.count, ptx.nctaid.x)

    def origin(self, number: Any) -> tuple[Any, Any]:
        """The first row and column of a tile."""
        size = self.across * self.together
        group, within = number // size, number % size
        first = group * self.together
        rows = ptx.min.u32(self.down - first, self.together)
        return (first + within % rows) * self.rows, within // rows * self.columns
