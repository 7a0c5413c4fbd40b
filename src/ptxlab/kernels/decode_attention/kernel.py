"""Attention of one query token to a cache of keys and values: what to read, and in which order."""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.decode_attention.attend import Warp
from ptxlab.kernels.decode_attention.parts import Parts
from ptxlab.kernels.decode_attention.plan import ROWS, Plan
from ptxlab.kernels.decode_attention.schedule import Item, Schedule
from ptxlab.kernels.decode_attention.stream import Cache, Stream


@cache
def specialize(plan: Plan) -> Kernel:
    """Build the kernel. `pages` are those of a sequence, of so many positions, and `all_pages` those of the cache."""

    @kernel(target="sm_90a", maxntid=plan.threads, minnctapersm=plan.blocks)
    def decode_attention(
        q: pointer[b16],
        k: pointer[b16],
        v: pointer[b16],
        o: pointer[b16],
        lengths: pointer[u32],
        table: pointer[u32],
        partial: pointer[f32],
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
        pages: u32,
        positions: u32,
        all_pages: u32,
    ) -> None:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        groups = (shared_by + (plan.rows - 1)) // plan.rows if plan.rows == ROWS else u32(1)
        caches = Cache(k, k_step, k_position_step, k_head_step), Cache(v, v_step, v_position_step, v_head_step)
        stream = Stream(plan, caches, table, positions, all_pages)
        warp = Warp(plan, stream, scale)
        most = pages * positions if plan.is_paged else positions
        schedule = Schedule(lengths, batch, heads * groups, most, plan.tile)
        parts = Parts(plan, warp, schedule.piece, partial, factor)

        def divided(number: Any) -> tuple[Any, Any]:
            """A head of keys, and the first of its heads of queries that are in a group."""
            return (number // groups, number % groups * ROWS) if plan.rows == ROWS else (number, u32(0))

        def place(item: Item) -> tuple[Any, Any]:
            """Where the queries of an item are, and its result, and how many rows there are."""
            head, first = divided(item.head)
            row = (item.batch * heads + head) * shared_by + first
            return ptx.mul.wide.u32(row, plan.size), ptx.min.u32(shared_by - first, plan.rows)

        def keys_of(item: Item) -> tuple[Any, ...]:
            """The keys of an item: sequence, head, first tile, where they end, and how many pages a sequence has."""
            end = ptx.min.u32(item.length, (item.tile + item.count) * plan.tile)
            return item.batch, divided(item.head)[0], item.tile, end, pages

        def start(item: Item) -> None:
            """Copy the first keys, and read the queries."""
            stream.open(*keys_of(item))
            offset, rows = place(item)
            warp.begin(q + offset, rows)

        item = schedule.find()
        stream.prefetch(*keys_of(item))
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
        lengths_now = schedule.read()
        if not plan.is_paged:
            start(item)  # within the cache, whatever the lengths were
        with ptx.when(schedule.may_have_changed(lengths_now)):
            now = schedule.find()
            with ptx.when(item.is_not(now)):
                ptx.cp["async"].wait_all()
                item.set(now)
                if not plan.is_paged:
                    start(item)
        if plan.is_paged:
            start(item)
        with ptx.when(item.count > 0), ptx.loop():
            for _ in ptx.range(u32(0), item.count):
                stream.wait()
                stream.fetch()
                warp.attend()
                stream.advance(stream.reading)
            offset, rows = place(item)
            parts.finish(item, o + offset, rows)
            ptx.leave_when(item.left == 0)
            schedule.next(item)
            ptx.bar.sync(0)  # keys may be copied to where results were
            start(item)

    return decode_attention
