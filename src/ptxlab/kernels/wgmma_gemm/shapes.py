"""The parameters of the kernel: the size of a tile of D, the ring of stages, the registers of each warpgroup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import ptx

DEPTH = 64  # columns of a K tile: 128 bytes, the width of the swizzle
BOX = 64  # columns of D that one copy stores, for the same reason
BLOCKS = 132  # as many as an H200 has SMs


@dataclass(frozen=True)
class Shape:
    """A tile has 64 rows for each of `groups` warpgroups; `together` rows of tiles are computed at a time."""

    groups: int = 2
    columns: int = 256
    stages: int = 3
    together: int = 12
    kept: int = 40  # registers of a producer thread
    taken: int = 232  # registers of a consumer thread
    spans: int = 0  # of each warp, that a timeline records

    @property
    def rows(self) -> int:
        """Rows of a tile."""
        return 64 * self.groups

    @property
    def threads(self) -> int:
        """Threads of a block: the producer warpgroup and the consumers."""
        return 128 * (1 + self.groups)

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage."""
        return 2 * DEPTH * (self.rows + self.columns)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * self.stage_bytes + 2 * self.rows * self.columns

    def product(self, type: str) -> Any:
        """The instruction."""
        return ptx.wgmma.mma_async.sync.aligned[f"m64n{self.columns}k16"].f32[type][type]
