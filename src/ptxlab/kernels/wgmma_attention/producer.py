"""The producer: one thread that issues all TMA copies into shared memory, in the order in which consumers read."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, ptx, s32, u32, u64
from ptxlab.kernels.wgmma_attention.order import Dealt, Found, Order
from ptxlab.kernels.wgmma_attention.plan import GROUP_ROWS, Plan
from ptxlab.kernels.wgmma_attention.tiles import Tiles

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile

COPY = ptx.cp.async_.bulk.tensor["4d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]


class Producer:
    """One thread that issues all copies, in the order in which consumers read."""

    def __init__(
        self, plan: Plan, stages: list[Side], tiles: Tiles, q: Pointer, k: Pointer, v: Pointer, shared_by: u32
    ) -> None:
        self.plan, self.tiles, self.shared_by = plan, tiles, shared_by
        self.queries, self.keys, self.values = stages
        self.maps = q.generic, k.generic, v.generic

    def run(self, order: Order) -> None:
        """Copy what each tile needs; the next one's queries as soon as there is memory for them."""
        tile, numbers = Found(order, ptx.ctaid.x), self.deal(order)
        following, later = u32(), u32()
        following.set(numbers.draw())
        self.copy_queries(tile)
        with ptx.loop():
            row, first, values, there = self.begin(tile)
            numbers.hand(following)
            with ptx.when(row > first):
                self.copy_both(row, values, there)
            upcoming = Found(order, following)
            is_last = following >= order.count
            if self.plan.overlaps:
                with ptx.when(~is_last):
                    self.queries.wait()
                    self.copy_queries(upcoming)
            with ptx.loop():
                ptx.leave_when(row <= first)
                self.copy_both(row, values, there)
            with ptx.when(~is_last):
                later.set(numbers.draw())
            self.copy(self.values, self.tiles.v, values, (row, *there))
            ptx.leave_when(is_last)
            if not self.plan.overlaps:
                self.queries.wait()
                self.copy_queries(upcoming)
            tile.set(upcoming)
            following.set(later)

    def deal(self, order: Order) -> Dealt:
        """What gives the numbers of tiles."""
        return Dealt(order)

    def alone(self) -> AbstractContextManager[object]:
        """What one thread does: the only one."""
        return nullcontext()

    def begin(self, tile: Found) -> tuple[Any, ...]:
        """Copy the last keys of a tile.

        Return their row, the row of its first keys, the map of its values, and the head and batch of both.
        """
        start, end = tile.order.span(tile)
        offset, batch = tile.order.keys_at(tile)
        first = (offset + start * self.plan.keys).view(s32)
        row = s32()
        row.set((offset + (end - 1) * self.plan.keys).view(s32))
        there = tile.head // self.shared_by, batch
        self.copy(self.keys, self.tiles.k, self.maps[1], (row, *there))
        return row, first, tile.order.values_map(tile, self.maps[2]), there

    def copy_both(self, row: s32, values: Pointer | u64, there: tuple[u32, u32]) -> None:
        """The keys before a row, and the values from it on; the row is then that of these keys."""
        self.copy(self.keys, self.tiles.k, self.maps[1], (row - self.plan.keys, *there))
        self.copy(self.values, self.tiles.v, values, (row, *there))
        row -= self.plan.keys

    def copy_queries(self, tile: Found) -> None:
        """The queries of a tile into an empty stage, in a box for each warpgroup and 64 columns."""
        stage, plan = self.queries, self.plan
        row, head, batch = tile.order.queries_at(tile)
        with self.alone():
            stage.expect(plan.query_bytes)
            for number in range(plan.groups * plan.boxes):
                group, box = divmod(number, plan.boxes)
                at = s32(box * plan.box), row + group * GROUP_ROWS, head.view(s32), batch.view(s32)
                copy = stage.index * (plan.groups * plan.boxes) + number
                COPY(self.tiles.q.at(0, 0, copy), (self.maps[0], at), stage.barrier)
        stage.advance()

    def copy(self, stage: Side, tile: Tile, source: Pointer | u64, there: tuple[Any, ...]) -> None:
        """Fill a stage as soon as it is empty."""
        plan, (row, head, batch) = self.plan, there
        is_keys = stage is self.keys
        boxes = plan.boxes if is_keys else plan.value_boxes
        stage.wait()
        stage.expect(plan.key_bytes if is_keys else plan.value_bytes)
        for box in range(boxes):
            at = s32(box * plan.box), row, head.view(s32), batch.view(s32)
            COPY(tile.at(0, 0, stage.index * boxes + box), (source, at), stage.barrier)
        stage.advance()
