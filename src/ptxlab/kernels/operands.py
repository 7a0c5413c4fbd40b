"""A matrix that is multiplied: its K tiles in shared memory, how they come there, and how `wgmma` finds them.

A matrix whose rows run along k comes in boxes of 128 bytes of each row, all rows of a tile at once. One of 16-bit
elements whose rows run across k comes in boxes of 64 by 64; `wgmma` transposes it. Tensor map, copies and descriptors
are all made by one `Operand`, so that they agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ptxlab
from ptxlab.author import Scalar, b16, ptx, s32, u16

LINE = 128  # bytes of a row of a K tile: the width of the swizzle
STRIPE = 64  # rows of one `wgmma`; also the 16-bit elements of a row

COPY = ptx.cp.async_.bulk.tensor["2d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]


@dataclass(frozen=True)
class Operand:
    """One of both: `rows` of it are multiplied by a block; each of `sharers` blocks copies a part, to all of them."""

    rows: int
    along_k: bool
    stages: int
    sharers: int = 1
    element: type[Scalar] = b16

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return self.element.type.width // 8

    @property
    def depth(self) -> int:
        """Elements of a K tile along k."""
        return LINE // self.bytes

    @property
    def boxes(self) -> int:
        """Boxes of a K tile that this block copies."""
        return 1 if self.along_k else -(-self.rows // STRIPE) // self.sharers

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns of a box."""
        return (self.rows // self.sharers, self.depth) if self.along_k else (self.depth, STRIPE)

    def map(self, matrix: Any) -> Any:
        """The tensor map that copies are given."""
        return ptxlab.tensor_map(matrix, box=self.box, swizzle="128B", l2_promotion="256B")

    def tile(self, memory: Any) -> Any:
        """The K tiles of all stages, one box after the other."""
        rows = self.rows if self.along_k else self.depth
        copies = self.stages if self.along_k else self.stages * self.boxes * self.sharers
        return ptx.tile(self.element, rows, self.depth, swizzle="128B", copies=copies, at=memory)

    def copy(self, source: Any, tile: Any, stage: Any, first: Any, start: Any, rank: Any) -> None:
        """Start the copies of a K tile to a stage: rows from `first` on, along k from `start` on."""
        if self.sharers > 1:
            first = first + rank * (self.rows // self.sharers)
        for box in range(self.boxes):
            if self.along_k:
                place = tile.at(rank * self.box[0] if self.sharers > 1 else 0, 0, stage.index)
                there = start, first
            else:
                number = stage.index * (self.boxes * self.sharers) + box
                place = tile.at(0, 0, number + rank * self.boxes if self.sharers > 1 else number)
                there = first + box * STRIPE, start
            coordinates = tuple(one.view(s32) for one in there)
            if self.sharers > 1:
                everyone = u16((1 << self.sharers) - 1)
                COPY["multicast::cluster"](place, (source, coordinates), stage.barrier, everyone)
            else:
                COPY(place, (source, coordinates), stage.barrier)

    def descriptor(self, tile: Any, stage: Any, step: int) -> Any:
        """What `wgmma` is given for 32 bytes along k, from element `step` on."""
        if self.along_k:
            return ptx.descriptor(tile, 0, step, stage.index)
        return ptx.descriptor(tile, step, 0, stage.index * (self.boxes * self.sharers), transposed=True)
