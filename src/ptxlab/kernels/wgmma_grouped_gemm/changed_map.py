"""A tensor map of D that the kernel changes itself, by `tensormap.replace`: it ends where the group of a tile does.

Each warpgroup has a copy of the map in shared memory, in which one thread replaces the number of rows.
`tensormap.cp_fenceproxy` copies it to global memory, where TMA reads it, and releases it; the acquire after that makes
the copies of this thread see it. A map may be overwritten when no copy reads it any more.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import b8, ptx, u32
from ptxlab.kernels.parts.tile_stores import CopyBack, TileStore
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_grouped_gemm.groups import Columns, Rows

MAP = 128  # bytes
REPLACE = ptx.tensormap.replace.tile
RELEASE = ptx.tensormap.cp_fenceproxy["global"]["shared::cta"]["tensormap::generic"].release.gpu.sync.aligned
ACQUIRE = ptx.fence.proxy["tensormap::generic"].acquire.gpu


class ChangedMapStore(TileStore):
    """Stores tiles by TMA, with a map that ends where the group of the tile does."""

    def __init__(self, type: str, boxes: Any, memory: Any, template: Any, space: Any) -> None:
        held = ptx.shared(b8, boxes.groups, MAP, align=128)
        own = ptx.tid.x // GROUP
        self.held = held.at(own, 0)
        self.there = space.address + ptx.mul.wide.u32(ptx.ctaid.x * boxes.groups + own, MAP)
        super().__init__(type, boxes, memory, CopyBack(self.there))
        self.last = u32(0xFFFFFFFF)  # the group that the map is of
        self.is_changer = self.warp == 0
        with ptx.when(self.is_changer):
            word = ptx.ld.b32(template.address + ptx.mul.wide.u32(ptx.laneid, 4))
            ptx.st.shared.b32(self.held + ptx.laneid * 4, word)

    def prepare(self, row: Rows, column: Columns) -> None:
        """Nothing is added to a tile."""

    def write(self, accumulators: list[list[Any]], row: Rows, column: Columns) -> None:
        """Store a tile whose first element is there."""
        with ptx.when(ptx.and_.pred(self.is_changer, column.group != self.last)):
            ptx.cp.async_.bulk.wait_group(0, when=self.is_first)  # no store reads the map any more
            ptx.bar.warp.sync(-1)
            with ptx.when(self.is_first):
                REPLACE.global_dim["shared::cta"].b1024.b32(self.held, 1, row.end)
            ptx.bar.warp.sync(-1)  # the change is that of one lane
            RELEASE(self.there, self.held, MAP)
            ACQUIRE(self.there, MAP)
        ptx.mov.u32(column.group, out=self.last)
        super().write(accumulators, row.first, column.first)
