"""The gradients by one kernel, for few and short heads, where launches take longer than what they compute.

It differs from the others in three things. A block computes what each row of its queries needs before it multiplies,
also where others do the same. It stores its part of the gradient of the queries, and the last of those that have a part
of a tile, as a counter says, adds them. Blocks that share the queries of a tile of keys are a cluster: when all have
stored their parts of dK and dV, each adds some of the rows. All sums are in one order: two runs give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ptxlab.author import Kernel, Pointer, b16, f32, kernel, pointer, ptx, tensor_map, u32, u64
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_attention_backward.consumer import Consumer, synchronize
from ptxlab.kernels.wgmma_attention_backward.kernel import compute
from ptxlab.kernels.wgmma_attention_backward.order import QueryStep, Work
from ptxlab.kernels.wgmma_attention_backward.plan import KEYS, MOST_ROWS, THREADS, Plan
from ptxlab.kernels.wgmma_attention_backward.rows import (
    ROW_THREADS,
    VECTOR,
    Rows,
    add_parts,
    copy_rows,
    round_rows,
    sum_rows,
    wide,
)

Strides = tuple[u64, u64, u64]  # of rows, heads and the batch


@dataclass(frozen=True)
class Given:
    """What the kernel has besides: the answer and its gradient, log-sum-exps, and where gradients are stored."""

    rows: Sequence[tuple[Pointer, Strides]]
    lse: Pointer
    dq: Pointer
    parts: Sequence[tuple[Pointer, Pointer, Strides]]
    """Of keys and of values: the parts of blocks, the gradient, its strides."""


@cache
def specialize_at_once(plan: Plan) -> Kernel:
    """Build the kernel."""

    @kernel(target="sm_90a", maxntid=THREADS, minnctapersm=1)
    def wgmma_attention_backward_at_once(
        q: tensor_map,
        k: tensor_map,
        v: tensor_map,
        do: tensor_map,
        dk: tensor_map,
        dv: tensor_map,
        dq: tensor_map,
        o_array: pointer[b16],
        do_array: pointer[b16],
        lse: pointer[f32],
        dq_parts: pointer[f32],
        counters: pointer[u32],
        slopes: pointer[f32],
        dk_parts: pointer[b16],
        dv_parts: pointer[b16],
        dk_array: pointer[b16],
        dv_array: pointer[b16],
        queries: u32,
        keys: u32,
        heads: u32,
        all_heads: u32,
        shared_by: u32,
        o_row: u64,
        o_head: u64,
        o_batch: u64,
        do_row: u64,
        do_head: u64,
        do_batch: u64,
        dk_row: u64,
        dk_head: u64,
        dk_batch: u64,
        dv_row: u64,
        dv_head: u64,
        dv_batch: u64,
    ) -> None:
        def work() -> Work:
            sizes = queries, keys, heads, all_heads
            return Work(plan, sizes, shared_by, all_heads, u32(0), plan.shares if plan.shares > 1 else None)

        rows = [(o_array, (o_row, o_head, o_batch)), (do_array, (do_row, do_head, do_batch))]
        parts = [
            (dk_parts, dk_array, (dk_row, dk_head, dk_batch)),
            (dv_parts, dv_array, (dv_row, dv_head, dv_batch)),
        ]
        given = Given(rows, lse, dq.generic, parts)
        memory = dq_parts, lse, lse, counters, slopes
        compute(plan, (q, k, v, do, dk, dv), work, memory, partial(WholeConsumer, given, all_heads, heads))

    return wgmma_attention_backward_at_once


class WholeConsumer(Consumer):
    """A consumer that also computes what rows need, and adds the parts of gradients."""

    def __init__(self, given: Given, all_heads: u32, heads: u32, *others: Any) -> None:
        super().__init__(*others)
        _, _, _, _, self.parts, *_ = others
        self.given, self.heads, work = given, heads, self.work
        self.number = self.group * GROUP + self.thread  # of the thread, among all consumers
        self.all_tiles = all_heads * work.shared_by * work.tiles
        self.key_tiles = (work.keys + (KEYS - 1)) // KEYS
        self.is_last = ptx.shared(u32, MOST_ROWS // self.plan.rows, name="is_last")

    def run(self, once: list[Pointer], dk: Pointer | None, dv: Pointer | None) -> None:
        """Sum over rows, then over queries, and store."""
        self.sum_rows()
        super().run(once, dk, dv)

    def finish(self, dk: Pointer | None, dv: Pointer | None) -> None:
        """Store what is complete, and the sums of parts where this block has stored the last one."""
        self.count_parts()
        self.store_keys(dk, dv)
        if self.plan.shares > 1:
            ptx.cp.async_.bulk.wait_group(0, when=self.thread == 0)
            ptx.barrier.cluster.arrive.release()
        synchronize()
        number = u32(0)
        for step in self.work.each():
            with ptx.when(ptx.ld.shared.u32(self.is_last.at(number)) != 0):
                self.add_parts_of_queries(step)
            number += 1
        if self.plan.shares > 1:
            ptx.barrier.cluster.wait.acquire()
            self.add_shares()
        ptx.cp.async_.bulk.wait_group(0, when=self.thread == 0)

    def row_stage(self) -> u32:
        return self.turn

    def sum_rows(self) -> None:
        """What each row of the block's queries needs, to shared memory."""
        plan, work, tiles = self.plan, self.work, self.tiles
        first = u32(0)
        for step in work.each():
            head = work.head * work.shared_by + step.head
            sides = [
                array + (wide(work.batch) * batch + wide(head) * over) for array, (_, over, batch) in self.given.rows
            ]
            rows = Rows(step.number, work.first_query_head + step.head, step.tile * plan.rows, work.queries)
            down = self.given.rows[0][1][0], self.given.rows[1][1][0]
            logs, written = (self.given.lse, work.queries), (tiles.lse.at(first), tiles.d.at(first))
            sum_rows(plan, rows, self.number, sides, down, logs, written)
            first += plan.rows
        synchronize()

    def add_queries(self, step: QueryStep) -> None:
        """Store the product, a part of the gradient of the queries."""
        target = self.part_of(self.dq, self.work.key // KEYS, step)
        for number in range(0, len(self.sums), 4):
            ptx.st["global"].v4.f32(target + number * GROUP, tuple(self.sums[number:][:4]))

    def part_of(self, parts: Pointer, key_tile: u32, step: QueryStep) -> Pointer:
        """Where the part of a tile of keys is."""
        return parts + (key_tile * self.all_tiles + step.number) * (self.plan.rows * self.plan.width)

    def count_parts(self) -> None:
        """Count the block's part of each tile of its queries: the last one is to add them, and sets the count to 0."""
        work = self.work
        with ptx.when(self.number < work.count):
            index, each = work.first + self.number, ptx.max.u32(work.end - work.start, 1)
            tile, head = work.start + index % each, work.first_query_head + index // each
            counter = self.turns + (head * work.tiles + tile)
            before = ptx.atom.acq_rel.gpu["global"].add.u32(counter, 1)
            is_last = before + 1 == self.attended(tile) * self.plan.parts
            ptx.st["global"].u32(counter, 0, when=is_last)
            ptx.st.shared.u32(self.is_last.at(self.number), ptx.selp.u32(1, 0, is_last))

    def attended(self, tile: u32) -> u32:
        """How many tiles of keys a tile of queries attends to."""
        if not self.plan.causal:
            return self.key_tiles
        return ptx.min.u32((tile * self.plan.rows + (self.plan.rows - 1)) // KEYS + 1, self.key_tiles)

    def add_parts_of_queries(self, step: QueryStep) -> None:
        """Add the parts of a tile of the gradient of the queries, and store it."""
        plan, work, tile = self.plan, self.work, self.tiles.q
        count = self.attended(step.tile)

        def load(source: Pointer) -> list[Any]:
            sums = [[f32(0.0) for _ in range(4)] for _ in range(plan.vectors)]
            for key_tile in ptx.range(u32(0), count, 1):
                first = source + key_tile * self.all_tiles * (plan.rows * plan.width)
                loaded = [ptx.ld["global"].v4.f32(first + vector * 4 * GROUP) for vector in range(plan.vectors)]
                for own, vector in zip(sums, loaded, strict=True):
                    for value, more in zip(own, vector, strict=True):
                        ptx.add.rn.f32(value, more, out=value)
            return sums

        ptx.cp.async_.bulk.wait_group.read(0, when=self.number == 0)
        synchronize()  # the tile before has been read
        round_rows(plan, self.number, self.part_of(self.parts, u32(0), step), tile, load)
        synchronize()
        with ptx.when(self.number == 0):
            head = work.head * work.shared_by + step.head
            copy_rows(plan, self.given.dq, tile, (step.tile * plan.rows, head, work.batch))

    def add_shares(self) -> None:
        """Add what the blocks of the cluster have stored of dK and dV: each has some of the rows."""
        plan, work = self.plan, self.work
        lanes, blocks, sizes = plan.size // VECTOR, plan.shares * plan.parts, (plan.size, plan.values or plan.size)
        for start in range(0, KEYS * lanes, ROW_THREADS * blocks):
            own = (ptx.cluster_ctarank * ROW_THREADS + self.number) + start
            row, within = own // lanes, own % lanes * VECTOR
            at = ptx.selp.u32(work.keys, work.key + row, row >= KEYS), within, work.head, work.batch
            for (parts, array, steps), size in zip(self.given.parts, sizes, strict=True):
                add_parts(plan.type, size, plan.shares, (work.keys, self.heads), parts, (array, steps), at)
