"""How a block divides its work: the size of a tile of D, the ring of stages, the registers of each warpgroup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import ptx

DEPTH = 64  # elements of a row that a strip has: 128 bytes, as the swizzle wants it
BOX = 64  # columns of D that one copy stores, for the same reason


@dataclass(frozen=True)
class Shape:
    """A tile has 64 rows for each of `groups` warpgroups; `together` rows of tiles are made at a time."""

    groups: int = 2
    columns: int = 256
    stages: int = 3
    together: int = 12
    kept: int = 40  # registers of a thread that asks for strips
    taken: int = 232  # and of one that multiplies

    @property
    def rows(self) -> int:
        """Of a tile."""
        return 64 * self.groups

    @property
    def threads(self) -> int:
        """Of a block: a warpgroup that fills, and those that multiply."""
        return 128 * (1 + self.groups)

    @property
    def strip(self) -> int:
        """Bytes of a stage."""
        return 2 * DEPTH * (self.rows + self.columns)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * self.strip + 2 * self.rows * self.columns

    def product(self, type: str) -> Any:
        """The instruction."""
        return ptx.wgmma.mma_async.sync.aligned[f"m64n{self.columns}k16"].f32[type][type]
