"""A residual that comes through the ring of stages: after the last K tile of each tile, by TMA.

Loaded from global memory by each thread for its own accumulators, a residual takes 8 lines of the cache for each
instruction of a warp. In shared memory it is where a K tile would be, and `ldmatrix` gives it as the accumulators are.
The copies are issued as many stages ahead as those of K tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ptxlab
from ptxlab.author import Pointer, b16, f16, ptx, s32, u32
from ptxlab.kernels.parts.finishing import Finish
from ptxlab.kernels.parts.operands import COPIES, LINE, STRIPE

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side


TOO_MANY = 256  # registers of a thread


@dataclass(frozen=True)
class RingBoxes:
    """How a tile of `rows` by `columns` is in stages, which have `more` rows of 128 bytes after the first `rows`.

    Boxes are 64 by 64 elements: one column of them in the first rows, and others after it.
    """

    rows: int
    columns: int
    more: int
    stages: int

    @property
    def across(self) -> int:
        """Columns of boxes of a tile."""
        return -(-self.columns // STRIPE)

    @property
    def each(self) -> int:
        """Columns of boxes of a stage."""
        return 1 + self.more // self.rows

    @property
    def count(self) -> int:
        """Stages of a tile."""
        return -(-self.across // self.each)

    def map(self, residual: Pointer) -> object:
        """The tensor map that copies are given."""
        return ptxlab.tensor_map(residual, box=(STRIPE, STRIPE), swizzle="128B")


class RingResidual:
    """The residual of each tile, from the producer to the consumers; `finish` has what is added besides.

    For consumers it takes the place of `finish`, between `begin` and `end` of each tile.
    """

    def __init__(self, boxes: RingBoxes, memory: Pointer, source: Pointer, finish: Finish) -> None:
        self.boxes, self.source, self.finish = boxes, source, finish
        first = ptx.tile(b16, boxes.rows, STRIPE, swizzle="128B", copies=boxes.stages, at=memory)
        after = memory + boxes.stages * boxes.rows * STRIPE
        self.tiles = first, ptx.tile(b16, boxes.more, STRIPE, swizzle="128B", copies=boxes.stages, at=after)
        self.indexes: list[Any] = []

    def place(self, box: int) -> tuple[Any, int]:
        """The tile that a column of boxes of a stage is in, and its first row there."""
        return (self.tiles[0], 0) if box == 0 else (self.tiles[1], (box - 1) * self.boxes.rows)

    def produce(self, stage: Side, row: u32, column: u32) -> None:
        """Issue the copies for the tile whose first element is there."""
        boxes = self.boxes
        for start in range(0, boxes.across, boxes.each):
            some = range(start, min(start + boxes.each, boxes.across))
            stage.wait()
            stage.expect(len(some) * boxes.rows * LINE)
            for number in some:
                tile, first = self.place(number - start)
                for down in range(0, boxes.rows, STRIPE):
                    there = (column + number * STRIPE).view(s32), (row + down).view(s32)
                    COPIES[1](tile.at(first + down, 0, stage.index), (self.source, there), stage.barrier)
            stage.advance()

    def begin(self, stage: Side, own: Any) -> None:
        """Wait for the residual of a tile; `own` is the first of this warpgroup's 64 rows of it.

        Copies may complete in another order than they were issued. So a warpgroup that hands over its turn has waited
        before: the next one would take a stage that is not filled for one that was filled a turn of the ring later.
        """
        self.row, self.indexes = own * STRIPE + (ptx.tid.x >> 5 & 3) * 16, []
        for _ in range(self.boxes.count):
            stage.wait()
            self.indexes.append(ptx.mov.u32(stage.index))
            stage.advance()

    def registers(self, results: int) -> int:
        """Too many to load ahead: it is in shared memory already."""
        return TOO_MANY

    def inside(self, column: u32, width: int) -> u32:
        """As `Finish.inside`."""
        return self.finish.inside(column, width)

    def load(self, fragment: Any, row: u32, first: u32, place: tuple[int, int], at: int) -> list[list[Any]]:
        """What is added to a block of columns, in the tile at 64 rows number `place[0]` and column `place[1]`."""
        box, right = divmod(place[1], STRIPE)
        stage, box = divmod(box, self.boxes.each)
        halves, (tile, start) = fragment.packed(f16), self.place(box)
        down = self.row + (start + place[0] * STRIPE)
        words = halves.load(tile.matrices(halves, ptx.laneid, down, right, self.indexes[stage]))
        loaded = self.finish.load(fragment, row, first, place, at)
        return [[*some, [word]] for some, word in zip(loaded, words, strict=True)]

    def apply(self, values: list[Any], loaded: list[list[Any]]) -> list[Any]:
        """The results, with what `load` has loaded for them."""
        return self.finish.apply(values, loaded)

    def end(self, read: Side, cluster: int) -> None:
        """Release the stages of a tile; the warpgroup has synchronized since it read them."""
        for _ in range(self.boxes.count):
            read.release(cluster)
