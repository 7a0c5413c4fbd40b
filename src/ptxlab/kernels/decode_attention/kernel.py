"""Attention of one query token to a cache of keys and values: what to read, and in which order."""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, b16, f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.decode_attention.attend import Warp
from ptxlab.kernels.decode_attention.parts import Parts
from ptxlab.kernels.decode_attention.plan import ROWS, Plan
from ptxlab.kernels.decode_attention.schedule import Schedule
from ptxlab.kernels.decode_attention.stream import Cache, Stream

MANY = 8  # tiles, of which two are brought to the L2 cache early


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
        is_split = plan.rows == ROWS  # heads of queries, where more share a head of keys than a product has rows
        groups = (shared_by + (ROWS - 1)) // ROWS if is_split else u32(1)
        caches = Cache(k, k_step, k_position_step, k_head_step), Cache(v, v_step, v_position_step, v_head_step)
        stream = Stream(plan, caches, table, positions, all_pages)
        warp = Warp(plan, stream, scale)
        most = pages * positions if plan.is_paged else positions
        schedule = Schedule(lengths, batch, heads * groups, most, plan.tile)
        parts = Parts(plan, warp, schedule.piece, partial, factor)
        item = schedule.item

        def rows_of_item() -> tuple[u64, u32]:
            """Where its queries are, and its result, and how many rows there are."""
            head, first = (item.head // groups, item.head % groups * ROWS) if is_split else (item.head, u32(0))
            row = (item.batch * heads + head) * shared_by + first
            return ptx.mul.wide.u32(row, plan.size), ptx.min.u32(shared_by - first, plan.rows)

        def start(is_early: bool = False) -> None:
            """Copy the first keys of the item: from within the cache, whatever the lengths and the table were."""
            end = ptx.min.u32(item.length, (item.tile + item.count) * plan.tile)
            stream.open(item.batch, item.head // groups if is_split else item.head, item.tile, end, pages)
            for _ in range(1 if is_early else plan.stages - 1):
                stream.fetch(is_early)

        schedule.find()
        start(is_early=True)
        with ptx.when(item.count >= MANY):
            stream.fetch(is_early=True)
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
        schedule.read_again()
        with ptx.loop():
            with ptx.loop():
                start()
                offset, rows = rows_of_item()
                warp.begin(q + offset, rows)
                is_other = schedule.find_again()
                with ptx.when(is_other):
                    ptx.cp["async"].wait_all()
                ptx.repeat_when(is_other)
            ptx.leave_when(item.count == 0)
            for _ in ptx.range(u32(0), item.count):
                stream.wait()
                stream.fetch()
                warp.attend()
                stream.advance(stream.reading)
            parts.finish(item, o + offset, rows)
            ptx.leave_when(item.left == 0)
            schedule.next()
            ptx.bar.sync(0)  # keys may be copied to where results were

    return decode_attention
