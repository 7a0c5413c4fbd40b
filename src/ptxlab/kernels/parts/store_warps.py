"""Warps that store what consumers have staged: a consumer continues with its next tile, and need not know where one is.

Each consumer warpgroup has such a warp. Two named barriers pass the boxes of a tile between them: the warpgroup arrives
when it has written all of them, and the warp when its copies have read them.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import Pointer, ptx, u32
from ptxlab.kernels.parts.tile_stores import TileStore
from ptxlab.kernels.parts.warpgroups import GROUP

LANES = 32
EMPTY, FULL = 1, 9  # barriers of the first warpgroup; each one has the next
ALL = GROUP + LANES


class StagedStore(TileStore):
    """The consumers' side: there is memory for all boxes of a tile."""

    def write(self, accumulators: list[list[Any]], row: u32, column: u32) -> None:
        """Stage a tile; the place of it is the storing warp's concern."""
        ptx.barrier.sync.aligned(self.group + EMPTY, ALL)
        for number in range(self.boxes.tall * self.boxes.each):
            part, box = divmod(number, self.boxes.each)
            values = accumulators[part][self.values * box :][: self.values]
            self.stage(values, self.group * self.boxes.kept + number, (), box)
        ptx.fence.proxy.async_["shared::cta"]()
        ptx.barrier.arrive.aligned(self.group + FULL, ALL)

    def finish_all(self) -> None:
        """The other side does that."""


class StoringWarp(TileStore):
    """The storing warp's side: lanes of one warp for each warpgroup, from thread `first` on."""

    def __init__(self, type: str, boxes: Any, memory: Pointer, store: object, first: int) -> None:
        super().__init__(type, boxes, memory, store)
        self.group, self.is_first = (ptx.tid.x - first) // LANES, ptx.laneid == 0

    def store_all(self, share: Any) -> None:
        """Store each tile of the block."""
        boxes = self.boxes
        for number in share.numbers():
            row, column = share.origin(number)
            ptx.cp.async_.bulk.wait_group.read(0, when=self.is_first)
            ptx.barrier.arrive.aligned(self.group + EMPTY, ALL)
            ptx.barrier.sync.aligned(self.group + FULL, ALL)
            with ptx.when(self.is_first):
                for box in range(boxes.tall * boxes.each):
                    self.store.copy(self, self.group * boxes.kept + box, self.first(box, row, column))
                ptx.cp.async_.bulk.commit_group()
        self.finish_all()
