"""The consumers: each warpgroup multiplies its 64 queries with one tile of keys after the other.

While the tensor cores multiply P of a tile with its values, the threads compute P of the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, b32, f16, f32, pred, ptx, s32, u32
from ptxlab.kernels.parts.warpgroups import GROUP, pack
from ptxlab.kernels.wgmma_attention.order import Found, Order, Received
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, Plan
from ptxlab.kernels.wgmma_attention.scoring import LOG2_E, as_number
from ptxlab.kernels.wgmma_attention.softmax import Softmax, row_of
from ptxlab.kernels.wgmma_attention.tiles import Tiles

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side

COPY_BACK = ptx.cp.async_.bulk.tensor["4d"]["global"]["shared::cta"].bulk_group


class Current:
    """The tile that is computed: what it is, the lane's first row, and its tile of keys, in registers."""

    def __init__(self, found: Found, own: u32) -> None:
        self.own = own
        self.order, self.row, self.first = found.order, s32(), u32()
        self.keys = u32() if self.order.plan.packed else self.order.keys
        self.head, self.batch, self.start, self.block = (u32() for _ in range(4))
        start, end = self.order.span(found)
        self._set(found, start, end - 1)

    def set(self, other: Current) -> None:
        """Continue with another tile."""
        self._set(other, other.start, other.block)

    def _set(self, tile: Found | Current, start: u32, block: u32) -> None:
        self.row.set(tile.row)
        self.first.set(self.own + tile.row.view(u32))
        for register, value in (
            (self.head, tile.head),
            (self.batch, tile.batch),
            (self.start, start),
            (self.block, block),
        ):
            register.set(value)
        if self.order.plan.packed:
            self.keys.set(tile.keys)


class Consumer:
    """A warpgroup with 64 queries."""

    def __init__(
        self, plan: Plan, stages: list[Side], tiles: Tiles, o: Pointer, lse: Pointer, of_heads: tuple[Pointer, ...] = ()
    ) -> None:
        self.plan, self.tiles, self.o, self.lse, self.of_heads = plan, tiles, o.generic, lse, of_heads
        self.slope = f32() if plan.scoring.alibi else None  # of the head whose scores are computed
        self.queries, self.keys, self.values = stages
        self.group = ptx.tid.x // GROUP - 1
        self.softmax = Softmax(plan.size, plan.scoring)
        self.layout = ptx.warpgroup_fragments(plan.scores).d
        self.scores = [f32() for _ in self.layout.offsets]
        self.accumulators = [f32() for _ in ptx.warpgroup_fragments(plan.output).d.offsets]
        self.p = [b32() for _ in range(len(self.scores) * plan.bytes // 4)]
        self.adds = ptx.setp.ne.u32(self.group, self.group)  # whether the sums have a value

    def run(self, order: Order) -> None:
        """Compute the tiles."""
        down, self.column = self.layout.first(ptx.laneid)
        own = down + ((ptx.tid.x >> 5 & 3) << 4) + self.group * GROUP_ROWS  # the lane's first row in a tile
        if self.plan.overlaps:
            self.run_overlapped(order, own)
        else:
            self.run_apart(order, own)
        ptx.cp.async_.bulk.wait_group(0, when=ptx.tid.x % GROUP == 0)

    def run_apart(self, order: Order, own: u32) -> None:
        """One tile after the other."""
        upcoming, numbers = Found(order, ptx.ctaid.x), Received(order)
        with ptx.loop():
            tile = Current(upcoming, own)
            self.begin(order, tile)
            upcoming.find(numbers.next())
            self.finish_keys(order, tile)
            self.finish(order, tile)
            ptx.cp.async_.bulk.wait_group.read(0, when=ptx.tid.x % GROUP == 0)
            ptx.bar.warp.sync(-1)
            self.queries.release()
            ptx.leave_when(upcoming.number >= order.count)

    def run_overlapped(self, order: Order, own: u32) -> None:
        """The first scores of each tile, while the last values of the one before are multiplied."""
        upcoming, numbers = Found(order, ptx.ctaid.x), Received(order)
        tile = Current(upcoming, own)
        self.begin(order, tile)
        upcoming.find(numbers.next())
        with ptx.loop():
            self.finish_keys(order, tile)
            self.release_queries()
            ptx.leave_when(upcoming.number >= order.count)
            ahead = Current(upcoming, own)
            self.take_queries()
            self.multiply_keys()
            self.multiply_values()
            upcoming.find(numbers.next())
            inverses = self.softmax.inverses()
            self.store_logs(order, tile)
            ptx.wgmma.wait_group.sync.aligned(1)
            self.keys.release()
            self.reset(ahead)
            grows, _ = self.compute_p(order, ahead, masked=True)
            packed = self.packed() if self.plan.packs_early else None
            self.await_sums(grows)
            ptx.setp.ne.u32(self.group, self.group, out=self.adds)
            self.store(tile, inverses)
            self.set_p(packed or self.packed())
            tile.set(ahead)
        self.finish(order, tile)

    def begin(self, order: Order, tile: Current) -> None:
        """P of the first keys."""
        self.reset(tile)
        ptx.setp.ne.u32(self.group, self.group, out=self.adds)
        self.take_queries()
        self.multiply_keys()
        ptx.wgmma.wait_group.sync.aligned(0)
        self.keys.release()
        self.compute_p(order, tile, masked=True)
        self.set_p(self.packed())

    def finish_keys(self, order: Order, tile: Current) -> None:
        """All other keys, and the values but for the last."""
        plan, row = self.plan, self.plan.row(tile.row)
        if plan.causal and (plan.page or plan.rows != plan.keys):
            whole = (row + 1) // plan.keys  # tiles of keys that are before all queries
            self.iterate(order, tile, ptx.max.u32(whole, tile.start), masked=True)
        inner = tile.start
        if plan.window:  # tiles of keys that no query's window cuts
            inner = (plan.above(row + plan.rows, order.window) + (plan.keys - 1)) // plan.keys
        self.iterate(order, tile, inner, masked=False)
        if plan.window:
            self.iterate(order, tile, tile.start, masked=True)

    def finish(self, order: Order, tile: Current) -> None:
        """The last values, and the answer."""
        self.multiply_values()
        self.store_logs(order, tile)
        ptx.wgmma.wait_group.sync.aligned(0)
        self.values.release()
        self.store(tile, self.softmax.inverses())

    def iterate(self, order: Order, tile: Current, end: u32, *, masked: bool) -> None:
        """The tiles of keys down to `end`: scores of one, and the sums of the one before."""
        with ptx.loop():
            ptx.leave_when(tile.block <= end)
            tile.block -= 1
            self.multiply_keys()
            self.multiply_values()
            self.compute_next_p(order, tile, masked=masked)

    def compute_next_p(self, order: Order, tile: Current, *, masked: bool) -> None:
        """P of the scores that are multiplied, and after that O, rescaled."""
        ptx.wgmma.wait_group.sync.aligned(1)
        self.keys.release()
        grows, factors = self.compute_p(order, tile, masked=masked)
        packed = self.packed() if self.plan.packs_early else None
        self.finish_p(packed)
        self.await_sums(grows, factors)
        self.set_p(packed or self.packed())

    def finish_p(self, packed: list[b32] | None) -> None:
        """Nothing: ptxas may compute P before or after it waits for O."""

    def take_queries(self) -> None:
        """Wait for the queries of a tile."""
        self.queries.wait()

    def release_queries(self) -> None:
        """The queries of a tile have been multiplied."""
        self.queries.release()

    def await_sums(self, grows: pred, factors: list[f32] | None = None) -> None:
        """Wait for the sums, and scale them where a maximum has grown."""
        ptx.wgmma.wait_group.sync.aligned(0)
        self.values.release()
        if factors:
            with ptx.when(grows):
                for number, sum in enumerate(self.accumulators):
                    sum *= factors[row_of(number)]

    def multiply_keys(self) -> None:
        """Scores: the queries times a tile of keys."""
        plan, keys = self.plan, self.tiles.k
        self.keys.wait()
        left, right = self.left_operands(), ptx.descriptor(keys, copy=self.keys.index * plan.boxes)
        as_they_are = (0, 0) if plan.bytes == 2 else ()  # operands of 8 bits cannot be transposed
        ptx.wgmma.fence.sync.aligned()
        for number, ((box, column), queries) in enumerate(zip(plan.steps, left, strict=True)):
            there = right + (box * keys.copy_bytes + column >> 4)
            plan.scores(self.scores, queries, there, number > 0, 1, 1, *as_they_are)
        ptx.wgmma.commit_group.sync.aligned()

    def left_operands(self) -> Iterable[object]:
        """The queries of each MMA: descriptors, or registers."""
        plan, tile = self.plan, self.tiles.q
        first = ptx.descriptor(tile, copy=(self.queries.index * plan.groups + self.group) * plan.boxes)
        return (first + (box * tile.copy_bytes + column >> 4) for box, column in plan.steps)

    def multiply_values(self) -> None:
        """O: P times the values of the tile before."""
        plan = self.plan
        self.values.wait()
        right = ptx.descriptor(self.tiles.v, copy=self.values.index * plan.value_boxes, transposed=True)
        ptx.wgmma.fence.sync.aligned()
        for step in range(plan.keys // 16):
            left = self.p[4 * step :][:4]
            plan.output(self.accumulators, left, right + (step * 16 * 2 * BOX >> 4), self.adds, 1, 1, 1)
            if step == 0:
                ptx.setp.eq.u32(plan.keys, plan.keys, out=self.adds)
        ptx.wgmma.commit_group.sync.aligned()

    def reset(self, tile: Current) -> None:
        """Begin with the rows of a tile, with the slope and the sink of its head where it has them."""
        scoring, size = self.plan.scoring, self.plan.size
        sink = None
        if scoring.sinks:
            sink = ptx.ld["global"].nc.f32(self.of_heads[1] + tile.head) * (LOG2_E / scoring.scale(size))
        self.softmax.reset(sink)
        if self.slope is not None:
            self.slope.set(scoring.slope(self.of_heads[0], tile.head, size))

    def change_scores(self, tile: Current) -> None:
        """A soft cap, and a bias by distance."""
        scoring = self.plan.scoring
        for score in self.scores if scoring.softcap else ():
            scoring.cap(score, self.plan.size)
        if self.slope is not None:
            start = tile.block * self.plan.keys + self.column
            rows = [as_number((tile.first + down - start).view(s32)) for down in (0, 8)]
            for number, (score, (_, right)) in enumerate(zip(self.scores, self.layout.offsets, strict=True)):
                scoring.bend(score, self.slope, rows[row_of(number)] - float(right))

    def compute_p(self, order: Order, tile: Current, *, masked: bool) -> tuple[pred, list[f32]]:
        """Turn scores into P."""
        self.change_scores(tile)
        if masked:
            start = tile.block * self.plan.keys + self.column
            rows = [(tile.first + down - start).view(s32) for down in (0, 8)]
            ends = [(tile.keys - 1 - start).view(s32)] * 2
            if self.plan.causal:
                ends = [ptx.min.s32(end, row) for end, row in zip(ends, rows, strict=True)]
            starts = [row - order.window.view(s32) for row in rows] if self.plan.window else None
            if self.plan.causal:
                self.softmax.mask(self.scores, self.layout.offsets, starts, ends)
            else:
                with ptx.when((tile.block + 1) * self.plan.keys > tile.keys):
                    self.softmax.mask(self.scores, self.layout.offsets, starts, ends)
        return self.softmax.compute_p(self.scores)

    def packed(self) -> list[b32]:
        """P as the left operand of a product has them."""
        return [pack(self.plan.type, *self.scores[number:][:2]) for number in range(0, len(self.scores), 2)]

    def set_p(self, packed: list[b32]) -> None:
        """Write them where no product reads any more."""
        for own, value in zip(self.p, packed, strict=True):
            ptx.mov.b32(value, out=own)

    def store(self, work: Current, inverses: list[f32]) -> None:
        """The answer: divided, rounded, through shared memory, and from there by TMA copies.

        These skip what is out of bounds. They run while the next tile is computed; before the memory is used again,
        they have read it.
        """
        plan, tile = self.plan, self.tiles.o
        warp, first = ptx.tid.x >> 5 & 3, ptx.tid.x % GROUP == 0
        ptx.cp.async_.bulk.wait_group.read(0, when=first)
        self.synchronize()
        block = ptx.warpgroup_fragments(ptx.wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16).d.packed(f16)
        each = 2 * block.registers
        for number in range(0, plan.columns // 2, each):
            box, column = divmod(number // each * 16, BOX)
            at = tile.matrices(block, ptx.laneid, warp * 16, column, self.group * plan.answer_step + box)
            block.store(at, [self.rounded(pair, inverses[row_of(pair)]) for pair in range(number, number + each, 2)])
        ptx.fence.proxy.async_["shared::cta"]()
        self.synchronize()
        with ptx.when(first):
            own, head, batch = work.order.queries_at(work)
            row, there_is = own + (self.group * GROUP_ROWS).view(s32), work.order.output_map(work, self.o)
            for box in range(plan.answer_boxes):
                there = s32(box * BOX), row, head.view(s32), batch.view(s32)
                COPY_BACK((there_is, there), tile.at(0, 0, self.group * plan.answer_step + box))
            ptx.cp.async_.bulk.commit_group()

    def rounded(self, pair: int, inverse: f32) -> Any:
        """Two neighbours of the answer."""
        low, high = (value * inverse for value in self.accumulators[pair : pair + 2])
        return pack(self.plan.type, low, high)

    def store_logs(self, order: Order, tile: Current, logs: list[f32] | None = None) -> None:
        """The log-sum-exp of each row: the first of the four lanes that share it stores it."""
        if not self.plan.logs:
            return
        first, rows = order.logs_at(tile, tile.first)
        for down, log in zip((0, 8), logs or self.softmax.logs(), strict=True):
            inside = (ptx.laneid % 4 == 0) & (tile.first + down < rows)
            ptx.st["global"].f32(self.lse + first + down, log, when=inside)

    def synchronize(self) -> None:
        """Synchronize the threads of a warpgroup, at a barrier of their own."""
        ptx.barrier.sync.aligned(self.group + 1, GROUP)
