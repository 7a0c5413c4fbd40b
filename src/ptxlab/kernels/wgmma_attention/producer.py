"""The producer: one thread that issues all TMA copies into shared memory, in the order in which consumers read."""

from __future__ import annotations

from typing import Any

from ptxlab.author import ptx, s32
from ptxlab.kernels.wgmma_attention.order import Order, Work
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, Plan
from ptxlab.kernels.wgmma_attention.tiles import Tiles

COPY = ptx.cp.async_.bulk.tensor["4d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]


class Producer:
    """One thread that issues all copies, in the order in which consumers read."""

    def __init__(self, plan: Plan, stages: list[Any], tiles: Tiles, q: Any, k: Any, v: Any, shared_by: Any) -> None:
        self.plan, self.tiles, self.shared_by = plan, tiles, shared_by
        self.queries, self.keys, self.values = stages
        self.maps = q.generic, k.generic, v.generic

    def run(self, order: Order) -> None:
        """Copy what each tile needs."""
        q, k, v = self.maps
        for work in order.produced():
            head = work.head // self.shared_by
            self.copy_queries(q, work)
            last = (work.end - 1) * self.plan.keys
            self.copy(self.keys, self.tiles.k, k, self.plan.key_bytes, (last.view(s32), head, work.batch))
            first = (work.start * self.plan.keys).view(s32)
            row = s32()
            row.set(last.view(s32))
            with ptx.loop():
                ptx.leave_when(row <= first)
                self.copy(self.keys, self.tiles.k, k, self.plan.key_bytes, (row - self.plan.keys, head, work.batch))
                self.copy(self.values, self.tiles.v, v, self.plan.key_bytes, (row, head, work.batch))
                row -= self.plan.keys
            self.copy(self.values, self.tiles.v, v, self.plan.key_bytes, (row, head, work.batch))

    def copy_queries(self, source: Any, work: Work) -> None:
        """The queries of a tile, in a box for each warpgroup and 64 columns."""
        stage, plan = self.queries, self.plan
        stage.wait()
        stage.expect(plan.query_bytes)
        for number in range(plan.groups * plan.boxes):
            group, box = divmod(number, plan.boxes)
            at = s32(box * BOX), work.row + group * GROUP_ROWS, work.head.view(s32), work.batch.view(s32)
            copy = stage.index * (plan.groups * plan.boxes) + number
            COPY(self.tiles.q.at(0, 0, copy), (source, at), stage.barrier)
        stage.advance()

    def copy(self, stage: Any, tile: Any, source: Any, bytes: int, there: tuple[Any, ...]) -> None:
        """Fill a stage as soon as it is empty."""
        row, head, batch = there
        stage.wait()
        stage.expect(bytes)
        for box in range(self.plan.boxes):
            at = s32(box * BOX), row, head.view(s32), batch.view(s32)
            COPY(tile.at(0, 0, stage.index * self.plan.boxes + box), (source, at), stage.barrier)
        stage.advance()
