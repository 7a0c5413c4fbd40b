"""The consumers: each warpgroup has 64 keys and values, and multiplies them with one tile of queries after the other.

Scores are computed transposed, keys down and queries across: so they are, rounded, the left operand in registers of
the products that give the gradients of keys and values, which stay in registers, too. Only the gradient of the queries
sums over keys of both warpgroups: for it the gradient of the scores goes through shared memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, b32, f16, f32, ptx, s32, u32, u64
from ptxlab.kernels.parts.warpgroups import GROUP, pack
from ptxlab.kernels.wgmma_attention.scoring import as_number
from ptxlab.kernels.wgmma_attention.softmax import row_of
from ptxlab.kernels.wgmma_attention_backward.order import QueryStep, Work
from ptxlab.kernels.wgmma_attention_backward.plan import BOX, GROUP_KEYS, GROUPS, KEYS, STAGES, Plan, Tiles

if TYPE_CHECKING:
    from ptxlab.author.pipelines import BarrierPipeline
    from ptxlab.author.tiles import Tile

COPY_BACK = ptx.cp.async_.bulk.tensor["4d"]["global"]["shared::cta"].bulk_group
BOTH, OWN = 1, 2  # barriers of all consumers, and of each warpgroup
FAR = 1 << 30  # more than any number of queries


class Consumer:
    """A warpgroup with 64 keys."""

    slope: f32  # of the head whose queries are multiplied

    def __init__(
        self,
        plan: Plan,
        work: Work,
        tiles: Tiles,
        pipelines: list[BarrierPipeline],
        dq: Pointer,
        turns: Pointer,
        slopes: Pointer,
    ) -> None:
        self.plan, self.work, self.tiles, self.turns, self.slopes = plan, work, tiles, turns, slopes
        self.queries, self.gradients = pipelines
        self.group, self.warp, self.thread = ptx.tid.x // GROUP - 1, ptx.tid.x >> 5 & 3, ptx.tid.x % GROUP
        self.layout = ptx.warpgroup_fragments(plan.scores).d
        self.scores, self.dp = ([f32() for _ in self.layout.offsets] for _ in range(2))
        self.p, self.ds = ([b32() for _ in range(len(self.scores) // 2)] for _ in range(2))
        sums = ptx.warpgroup_fragments(plan.sums).d.offsets
        self.dk, self.dv = ([f32(0.0) for _ in sums] for _ in range(2))
        self.sums = [f32() for _ in ptx.warpgroup_fragments(plan.queries).d.offsets]
        self.part = ptx.warpgroup_fragments(plan.mma(16)).d.packed(f16)  # what one `stmatrix` stores
        down, self.column = self.layout.first(ptx.laneid)
        self.key = work.key + self.group * GROUP_KEYS + self.warp * 16 + down  # the lane's first
        down, right = self.part.transposed.row_of(ptx.laneid)
        self.written = tiles.ds.at(down, right + self.warp * 16, self.group)
        self.dq = dq + (work.part * GROUPS + self.group) * (plan.rows * plan.own // GROUPS) + self.thread * 4
        self.turn = u32(0)  # counts tiles of queries: stages follow from it

    def run(self, once: list[Pointer], dk: Pointer | None, dv: Pointer | None) -> None:
        """Sum over all queries, and store."""
        for barrier in once:
            await_phase(barrier, 0)
        for step in self.work.each():
            self.iterate(step)
            self.turn += 1
        synchronize()
        self.finish(dk, dv)

    def finish(self, dk: Pointer | None, dv: Pointer | None) -> None:
        """Store the gradients of keys and values, and wait until they are stored."""
        self.store_keys(dk, dv)
        ptx.cp.async_.bulk.wait_group(0, when=self.thread == 0)

    def store_keys(self, dk: Pointer | None, dv: Pointer | None) -> None:
        """Start to store the gradients of keys and values."""
        self.store(self.tiles.v, self.dv, self.work.map_of("dv", dv), 1.0)
        self.store(self.tiles.k, self.dk, self.work.map_of("dk", dk), 1 / math.sqrt(self.plan.size))

    def iterate(self, step: QueryStep) -> None:
        """One tile of queries: five products. Each wait leaves those running whose results are not needed yet."""
        self.multiply_keys()
        self.multiply_values()
        ptx.wgmma.wait_group.sync.aligned(1)
        self.compute_p(step)
        ptx.wgmma.wait_group.sync.aligned(0)
        self.differentiate(step)
        self.store_scores()
        self.add_values()
        ptx.fence.proxy.async_["shared::cta"]()
        synchronize()
        self.multiply_scores()
        ptx.wgmma.wait_group.sync.aligned(1)
        self.release(self.gradients)
        self.add_keys()
        ptx.wgmma.wait_group.sync.aligned(1)
        self.add_queries(step)
        ptx.wgmma.wait_group.sync.aligned(0)
        self.release(self.queries)

    def stage(self) -> u32:
        """Where the tile is."""
        return self.turn % STAGES

    def row_stage(self) -> u32:
        """Where the numbers of its rows are."""
        return self.stage()

    def wait(self, pipeline: BarrierPipeline) -> None:
        """Wait until the tile is there."""
        await_phase(pipeline.filled.at(self.stage()), self.turn // STAGES & 1)

    def release(self, pipeline: BarrierPipeline) -> None:
        """The warp is done with the tile."""
        ptx.mbarrier.arrive.shared.b64(pipeline.emptied.at(self.stage()), when=ptx.laneid == 0)

    def multiply_keys(self) -> None:
        """Scores, transposed: keys times queries."""
        self.wait(self.queries)
        self.multiply(self.scores, self.tiles.k, self.tiles.q)

    def multiply_values(self) -> None:
        """The gradient of P, transposed: values times the gradient of O."""
        self.wait(self.gradients)
        self.multiply(self.dp, self.tiles.v, self.tiles.do)

    def multiply(self, sums: list[f32], keys: Tile, queries: Tile) -> None:
        """The warpgroup's rows of one tile times those of another."""
        plan = self.plan
        left = ptx.descriptor(keys, copy=self.group)
        right = ptx.descriptor(queries, copy=self.stage() * plan.boxes)
        ptx.wgmma.fence.sync.aligned()
        for start in range(0, plan.width, 16):
            box, column = divmod(start, BOX)
            ahead = box * GROUPS * keys.copy_bytes + 2 * column, box * queries.copy_bytes + 2 * column
            plan.scores(sums, left + (ahead[0] >> 4), right + (ahead[1] >> 4), start > 0, 1, 1, 0, 0)
        ptx.wgmma.commit_group.sync.aligned()

    def compute_p(self, step: QueryStep) -> None:
        """Turn scores into P, and round it."""
        scoring, size = self.plan.scoring, self.plan.size
        for score in self.scores if scoring.softcap else ():
            scoring.cap(score, size)
        if scoring.alibi:
            self.slope = scoring.slope(self.slopes, self.work.head * self.work.shared_by + step.head, size)
            for number, score in enumerate(self.scores):
                scoring.bend(score, self.slope, self.distance(step, number))
        self.mask(step)
        scale = scoring.scale(size)
        for number, offset in self.columns(self.tiles.lse):
            score = self.scores[number]
            ptx.ex2.approx.ftz.f32(ptx.fma.rn.f32(score, scale, offset), out=score)
        self.round(self.scores, self.p)

    def differentiate(self, step: QueryStep) -> None:
        """The gradient of the scores: weight × (its gradient − the sum of weight × gradient over the row)."""
        for number, total in self.columns(self.tiles.d):
            self.dp[number].set((self.dp[number] - total) * self.scores[number])
        scoring = self.plan.scoring
        for number, offset in self.columns(self.tiles.lse) if scoring.softcap else ():
            bias = self.slope * ptx.abs.f32(self.distance(step, number)) if scoring.alibi else None
            self.dp[number] *= scoring.steepness(self.scores[number], offset, self.plan.size, bias)
        self.round(self.dp, self.ds)

    def distance(self, step: QueryStep, number: int) -> f32:
        """From the key of an element of the lane's scores to its query."""
        first = step.tile * self.plan.rows + self.column - (self.key + 8 * row_of(number))
        return as_number(first.view(s32), self.layout.offsets[number][1])

    def store_scores(self) -> None:
        """The gradient of the scores to shared memory, queries down and keys across."""
        at = self.written.move(copy=self.stage() * GROUPS)
        for number in range(0, len(self.ds), 4):
            self.part.transposed.store(at.move(rows=4 * number), self.ds[number:][:4])

    def columns(self, memory: Pointer) -> Any:
        """Each element of the lane's scores, and the number that `memory` has for its query."""
        first = memory.at(self.row_stage() * self.plan.rows + self.column)
        for number in range(0, len(self.scores), 4):
            pair = ptx.ld.shared.v2.f32(first + number * 2)
            for element in range(4):
                yield number + element, pair[element % 2]

    def round(self, values: list[f32], out: list[b32]) -> None:
        """Pairs of numbers, rounded, as the left operand of a product has them."""
        for number, register in enumerate(out):
            ptx.mov.b32(pack(self.plan.type, *values[2 * number :][:2]), out=register)

    def mask(self, step: QueryStep) -> None:
        """Where some query of the tile does not attend to some key, weigh that with 0."""
        plan, work = self.plan, self.work
        row = step.tile * plan.rows
        cut = work.key + KEYS > work.keys
        if plan.causal:
            cut = cut | (row < work.key + (KEYS - 1))
        if plan.window:
            cut = cut | (row + (plan.rows - 1) >= work.key + work.window)
        with ptx.when(cut):
            keys = [self.key, self.key + 8]
            first = (row + self.column).view(s32)
            starts = [key.view(s32) - first if plan.causal else s32(0) for key in keys]
            starts = [ptx.selp.s32(FAR, start, key >= work.keys) for start, key in zip(starts, keys, strict=True)]
            for number, (_, right) in enumerate(self.layout.offsets):
                ptx.mov.f32(-math.inf, out=self.scores[number], when=starts[row_of(number)] > right)
            if plan.window:
                ends = [(key + work.window).view(s32) - first for key in keys]
                for number, (_, right) in enumerate(self.layout.offsets):
                    ptx.mov.f32(-math.inf, out=self.scores[number], when=ends[row_of(number)] <= right)

    def add_values(self) -> None:
        """The gradient of the values: P times the gradient of O."""
        self.add(self.dv, self.p, self.tiles.do)

    def add_keys(self) -> None:
        """The gradient of the keys: that of the scores times queries."""
        self.add(self.dk, self.ds, self.tiles.q)

    def add(self, sums: list[f32], p: list[b32], queries: Tile) -> None:
        """Add a product with a tile, whose rows are summed over."""
        plan = self.plan
        first = self.stage() * plan.boxes + self.work.part * (plan.own // BOX)
        right = ptx.descriptor(queries, copy=first, transposed=True)
        ptx.wgmma.fence.sync.aligned()
        for number in range(plan.rows // 16):
            left = p[4 * number :][:4]
            plan.sums(sums, left, right + (number * 16 * 2 * BOX >> 4), True, 1, 1, 1)
        ptx.wgmma.commit_group.sync.aligned()

    def multiply_scores(self) -> None:
        """The gradient of the queries, transposed: keys times the gradient of the scores of both warpgroups.

        A warpgroup has 64 of the columns of a head, or where there are no more, its part of the queries.
        """
        plan, tiles = self.plan, self.tiles
        box = self.work.part * GROUPS + self.group if plan.boxes > 1 else u32(0)
        left = ptx.descriptor(tiles.k, copy=box * GROUPS, transposed=True)
        right = ptx.descriptor(tiles.ds, copy=self.stage() * GROUPS)
        if plan.split > 1:
            part = plan.rows // plan.split * 2 * BOX >> 4
            right = right + ptx.cvt.u64.u32(self.group * part).view(u64)
        ptx.wgmma.fence.sync.aligned()
        for start in range(0, KEYS, 16):
            group, column = divmod(start, GROUP_KEYS)
            ahead = start * 2 * BOX >> 4, group * tiles.ds.copy_bytes + 2 * column >> 4
            plan.queries(self.sums, left + ahead[0], right + ahead[1], start > 0, 1, 1, 1, 0)
        ptx.wgmma.commit_group.sync.aligned()

    def add_queries(self, step: QueryStep) -> None:
        """Add the product to the gradient of the queries in memory."""
        plan = self.plan
        vectors = [tuple(self.sums[number:][:4]) for number in range(0, len(self.sums), 4)]
        target = self.dq + step.number * (plan.rows * plan.width)
        if plan.ordered:
            self.await_turn(step)
        for number, vector in enumerate(vectors):
            ptx.red.relaxed.gpu["global"].add.v4.f32(target + number * 4 * GROUP, vector)
        if plan.ordered:
            synchronize()
            ptx.red.release.gpu["global"].add.u32(self.turn_of(step), 1, when=ptx.tid.x == GROUP)

    def turn_of(self, step: QueryStep) -> Pointer:
        """What counts the blocks that have added to these columns of the tile."""
        return self.turns + (step.number * self.plan.parts + self.work.part)

    def await_turn(self, step: QueryStep) -> None:
        """Wait until the blocks with the keys before have added to this tile: they started before this one."""
        work, row = self.work, step.tile * self.plan.rows
        before = work.key // KEYS
        if self.plan.window:  # the first keys that some query of the tile attends to
            before = before - (ptx.max.u32(row + 1, work.window) - work.window) // KEYS
        with ptx.when(ptx.tid.x == GROUP), ptx.loop():
            ptx.repeat_when(ptx.ld.acquire.gpu["global"].u32(self.turn_of(step)) != before)
        synchronize()

    def store(self, tile: Tile, sums: list[f32], target: Pointer | u64, scale: float) -> None:
        """A gradient: scaled, rounded, through the memory of what it is the gradient of, and from there by TMA copies.

        These skip what is out of bounds.
        """
        plan = self.plan
        each = 2 * self.part.registers
        for number in range(0, len(sums), each):
            box, column = divmod(number // each * 16, BOX)
            at = tile.matrices(self.part, ptx.laneid, self.warp * 16, column, self.group + box * GROUPS)
            scaled = [value * scale for value in sums[number:][:each]]
            self.part.store(at, [pack(plan.type, *scaled[pair:][:2]) for pair in range(0, each, 2)])
        ptx.fence.proxy.async_["shared::cta"]()
        ptx.barrier.sync.aligned(self.group + OWN, GROUP)
        with ptx.when(self.thread == 0):
            row = (self.work.first_key + self.work.key + self.group * GROUP_KEYS).view(s32)
            for box in range(plan.own // BOX):
                there = (
                    (self.work.part * plan.own + box * BOX).view(s32),
                    row,
                    self.work.target.view(s32),
                    self.work.batch.view(s32),
                )
                COPY_BACK((target, there), tile.at(0, 0, self.group + box * GROUPS))
            ptx.cp.async_.bulk.commit_group()


def synchronize() -> None:
    """Synchronize all consumers of the block."""
    ptx.barrier.sync.aligned(BOTH, GROUPS * GROUP)


def await_phase(barrier: Pointer, parity: int | u32) -> None:
    """Wait for a phase of a barrier."""
    with ptx.loop():
        ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(barrier, parity))
