"""The producer: one thread that issues all TMA copies into shared memory, in the order in which consumers read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, ptx, s32, u64
from ptxlab.kernels.wgmma_attention_backward.order import QueryStep, Work
from ptxlab.kernels.wgmma_attention_backward.plan import BOX, GROUP_KEYS, GROUPS, KEYS, Plan, Tiles

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile

COPY = ptx.cp.async_.bulk.tensor["4d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
NAMES = ("q", "k", "v", "do")
COPY_ROW = ptx.cp.async_.bulk["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]


class Producer:
    """The thread that issues the copies of keys and values, and of one tile of queries after the other."""

    def __init__(
        self, plan: Plan, work: Work, tiles: Tiles, maps: tuple[Pointer | None, ...], rows: tuple[Pointer, ...]
    ) -> None:
        self.plan, self.work, self.tiles = plan, work, tiles
        self.q, self.k, self.v, self.do = (work.map_of(name, map) for name, map in zip(NAMES, maps, strict=True))
        self.lse, self.d = rows

    def run(self, once: list[Pointer], queries: Side, gradients: Side) -> None:
        """Copy all that the block needs, in the order in which consumers read it."""
        tiles = self.tiles
        self.copy_keys(once[0], tiles.k, self.k)
        self.copy_keys(once[1], tiles.v, self.v)
        for step in self.work.each():
            self.copy(queries, tiles.q, self.q, tiles.lse, self.lse, step)
            self.copy(gradients, tiles.do, self.do, tiles.d, self.d, step)

    def copy_keys(self, barrier: Pointer, tile: Tile, source: Pointer | u64) -> None:
        """Keys or values: a box for each warpgroup and 64 columns."""
        ptx.mbarrier.arrive.expect_tx.shared.b64(barrier, KEYS * self.plan.width * 2)
        for number in range(self.plan.boxes * GROUPS):
            box, group = divmod(number, GROUPS)
            row = (self.work.first_key + self.work.key + group * GROUP_KEYS).view(s32)
            at = s32(box * BOX), row, self.work.head.view(s32), self.work.batch.view(s32)
            COPY(tile.at(0, 0, number), (source, at), barrier)

    def copy(self, stage: Side, tile: Tile, source: Pointer | u64, memory: Any, rows: Pointer, step: QueryStep) -> None:
        """A tile of queries, or of the gradient of O, and a number for each of its rows."""
        plan, work = self.plan, self.work
        stage.wait()
        bytes = 0 if plan.shares else plan.rows * 4
        ptx.mbarrier.arrive.expect_tx.shared.b64(stage.barrier, plan.tile_bytes + bytes)
        head = work.head * work.shared_by + step.head
        row = work.first_query + step.tile * plan.rows
        for box in range(plan.boxes):
            at = s32(box * BOX), row.view(s32), head.view(s32), work.batch.view(s32)
            COPY(tile.at(0, 0, stage.index * plan.boxes + box), (source, at), stage.barrier)
        if bytes:
            COPY_ROW(memory.at(stage.index * plan.rows), rows + step.number * plan.rows, bytes, stage.barrier)
        stage.advance()
