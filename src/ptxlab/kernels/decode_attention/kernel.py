"""Attention of one query token to a cache of keys and values: what to read, and in which order."""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.decode_attention.attend import Warp
from ptxlab.kernels.decode_attention.cluster import InCluster
from ptxlab.kernels.decode_attention.parts import Parts
from ptxlab.kernels.decode_attention.plan import ROWS, Plan
from ptxlab.kernels.decode_attention.schedule import Schedule
from ptxlab.kernels.decode_attention.stream import Cache, Stream


@cache
def specialize(plan: Plan) -> Kernel:
    """Build the kernel; a block has `least` tiles of keys at least."""

    @kernel(target="sm_90a", maxntid=plan.threads, minnctapersm=plan.blocks)
    def decode_attention(
        q: pointer[b16],
        k: pointer[b16],
        v: pointer[b16],
        o: pointer[b16],
        lengths: pointer[u32],
        table: pointer[u32],
        partial: pointer[f32],
        counters: pointer[u32],
        scale: f32,
        factor: f32,
        batch: u32,
        heads: u32,
        shared_by: u32,
        k_step: u64,
        k_position_step: u32,
        k_head_step: u32,
        v_step: u64,
        v_position_step: u32,
        v_head_step: u32,
        table_step: u32,
        page: u32,
        least: u32,
    ) -> None:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        # Groups of heads of queries that share keys: products have 16 rows.
        groups = u32(1) if plan.few else (shared_by + (ROWS - 1)) // ROWS

        def divided(number: Any) -> tuple[Any, Any]:
            """A head of keys, and which group of its heads of queries."""
            return (number, u32(0)) if plan.few else (number // groups, number % groups)

        caches = Cache(k, k_step, k_position_step, k_head_step), Cache(v, v_step, v_position_step, v_head_step)
        stream = Stream(plan, caches, table, table_step, page)
        warp = Warp(plan, stream, scale)
        if plan.cluster > 1:
            shared = InCluster(plan, warp, factor)
            number = ptx.clusterid.x // (heads * groups)
            head, group = divided(ptx.clusterid.x % (heads * groups))
            if plan.fetched:
                stream.prefetch(number, head, shared.rank, page)
        elif plan.fetched:
            for item in Schedule(lengths, batch, heads * groups, plan.tile, least).first():
                with ptx.when(item.head < heads * groups):
                    stream.prefetch(item.batch, divided(item.head)[0], item.tile, page)
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read

        def begin(batch: Any, head: Any, group: Any) -> tuple[Any, Any]:
            """Read the queries; where their result belongs, and its rows."""
            rows = ptx.min.u32(shared_by - group * ROWS, ROWS)
            first = (batch * heads + head) * shared_by + group * ROWS
            offset = ptx.mul.wide.u32(first, plan.size)
            warp.begin(q + offset, rows)
            return o + offset, rows

        def attend(count: Any) -> None:
            """Attend to tiles of keys; copies of the first are under way."""
            for _ in ptx.range(u32(0), count):
                stream.wait()
                stream.fetch()
                warp.attend()
                stream.advance(stream.reading)

        if plan.cluster > 1:
            length = lengths[number]
            stream.open(number, head, shared.rank, length if plan.is_paged else page)
            result = begin(number, head, group)
            if not plan.is_paged:
                stream.limit(length)  # it has arrived while keys are on their way
            attend(shared.count(length))
            shared.finish(*result)
        else:
            schedule = Schedule(lengths, batch, heads * groups, plan.tile, least)
            parts = Parts(plan, warp, schedule, partial, counters, factor)
            for item in schedule.items():
                head, group = divided(item.head)
                stream.open(item.batch, head, item.tile, item.length)
                split = parts.find(item)  # while the first keys are under way
                result = begin(item.batch, head, group)
                attend(item.count)
                parts.finish(item, split, *result)

    return decode_attention
