"""Keys and values on their way into shared memory: each warp copies its own, and waits for no other warp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import b8, b16, ptx, s32, u32, u64
from ptxlab.kernels.decode_attention.plan import CHUNK, Plan
from ptxlab.kernels.mma_attention.softmax import ALL

LINE = 128  # bytes of the L2 cache that are brought at once
MANY = 8  # tiles
COPY = ptx.cp["async"].cg.shared.global_["L2::cache_hint"]


@dataclass
class Cache:
    """Keys, or values, in memory: steps are in bytes, from a sequence or page to the next, a position, a head."""

    memory: Any
    step: Any
    position_step: Any
    head_step: Any


class Stream:
    """A ring of stages. Rows after the last key are zeros, so that whatever is in memory there counts nothing."""

    def __init__(self, plan: Plan, caches: tuple[Cache, Cache], table: Any, page: Any, all_pages: Any) -> None:
        self.plan, self.caches, self.table, self.page, self.all_pages = plan, caches, table, page, all_pages
        thread = ptx.tid.x
        self.lane, self.warp = thread & 31, thread >> 5
        memory = ptx.dynamic_shared(b8, align=plan.swizzle.period)
        shape = plan.keys, plan.row_bytes // 2
        how: Any = {"swizzle": plan.swizzle, "copies": plan.warps * plan.stages}
        self.tiles = [ptx.tile(b16, *shape, **how, at=memory + number * plan.ring) for number in range(2)]
        across = plan.row_bytes // CHUNK
        self.rows = 32 // across  # that a warp copies at once
        self.row, self.column = self.lane // across, self.lane % across * (CHUNK // 2)
        starts = range(0, max(8, self.rows), self.rows)  # swizzles are the same after 8 rows
        self.targets = [[tile.at(self.row + start, self.column) for start in starts] for tile in self.tiles]
        self.policy = ptx.createpolicy.fractional["L2::evict_first"].b64(1.0)
        self.filling, self.reading, self.remaining = u32(), u32(), s32()
        self.sources = [u64() for _ in caches]
        self.offset, self.row_of_table = u32(), u64()  # of pages

    def open(self, batch: Any, head: Any, tile: Any, end: Any, pages: Any) -> None:
        """Begin with a tile of a sequence, which has so many pages, and copy all but one stage.

        Nothing from key number `end` on is copied.
        """
        plan = self.plan
        first = tile * plan.tile + self.warp * plan.keys
        self.filling.set(self.warp * plan.stages)
        self.reading.set(self.warp * plan.stages)
        self.remaining.set((end - first).view(s32))
        for cache, source in zip(self.caches, self.sources, strict=True):
            at = ptx.mad.wide.u32(head, cache.head_step, cache.memory.address)
            at = ptx.mad.wide.u32(self.column, 2, at)
            if not plan.is_paged:
                at = ptx.mad.lo.u64(ptx.cvt.u64.u32(batch), cache.step, at)
                at = ptx.mad.wide.u32(first + self.row, cache.position_step, at)
            source.set(at)
        if plan.is_paged:
            self.offset.set(first)
            self.row_of_table.set(ptx.mad.wide.u32(batch * pages, 4, self.table.address))
        for _ in range(plan.stages - 1):
            self.fetch()

    def prefetch(self, batch: Any, head: Any, tile: Any, end: Any, pages: Any) -> None:
        """Have the first tile brought to the L2 cache, and if there are many the second.

        It changes there if an earlier kernel still writes it. A page that is not there yet counts as the last.
        """
        plan = self.plan
        tiles = ptx.selp.b32(2, 1, end - tile * plan.tile >= MANY * plan.tile, out=u32())
        for number in ptx.range(ptx.tid.x, tiles * plan.tile, plan.threads):
            position = tile * plan.tile + number
            with ptx.when(position < end):
                outer, inner = ptx.cvt.u64.u32(batch), position
                if plan.is_paged:
                    entry = self.table + (batch * pages + position // self.page)
                    number = ptx.min.u32(ptx.ld.relaxed.gpu.global_.u32(entry), self.all_pages - 1)
                    outer, inner = ptx.cvt.u64.u32(number), position % self.page
                for cache in self.caches:
                    row = ptx.mad.wide.u32(head, cache.head_step, cache.memory.address)
                    row = ptx.mad.wide.u32(inner, cache.position_step, ptx.mad.lo.u64(outer, cache.step, row))
                    for at in range(0, plan.row_bytes, LINE):
                        ptx.prefetch.global_.L2(ptx.pointer_to(b8, "global", row) + at)

    def fetch(self) -> None:
        """Copy the next tile; after the last one nothing is copied, but the group counts."""
        plan = self.plan
        with ptx.when(self.remaining > 0):
            starts = self._in_page() if plan.is_paged else self.sources
            for cache, start, targets in zip(self.caches, starts, self.targets, strict=True):
                self._copy(start, cache, [target.move(copy=self.filling) for target in targets])
        ptx.cp["async"].commit_group()
        self.remaining -= plan.tile
        if plan.is_paged:
            self.offset += plan.tile
        else:
            for cache, source in zip(self.caches, self.sources, strict=True):
                source.set(ptx.mad.wide.u32(cache.position_step, plan.tile, source))
        self.advance(self.filling)

    def _in_page(self) -> list[Any]:
        """Where the rows of this lane are: a tile of a warp is within a page."""
        entry = ptx.pointer_to(u32, "global", ptx.mad.wide.u32(self.offset // self.page, 4, self.row_of_table))
        number = ptx.cvt.u64.u32(ptx.ld.global_.nc.u32(entry))
        position = self.offset % self.page + self.row
        return [
            ptx.mad.wide.u32(position, cache.position_step, ptx.mad.lo.u64(number, cache.step, source))
            for cache, source in zip(self.caches, self.sources, strict=True)
        ]

    def _copy(self, start: Any, cache: Cache, targets: list[Any]) -> None:
        step = ptx.mul.wide.u32(cache.position_step, self.rows)
        source = start
        left = self.remaining - self.row.view(s32)
        for number, row in enumerate(range(0, self.plan.keys, self.rows)):
            if number:
                source = source + step
            given = ptx.selp.b32(CHUNK, 0, left > row)
            target = targets[number % len(targets)].move(rows=row // 8 * 8)
            COPY(target, ptx.pointer_to(b16, "global", source), CHUNK, given, self.policy)

    def wait(self) -> None:
        """Wait until the stage to read is filled, by all lanes; then the one read before may be filled."""
        ptx.cp["async"].wait_group(self.plan.stages - 2)
        ptx.bar.warp.sync(ALL)

    def advance(self, stage: Any) -> None:
        """Go to the next stage of this warp."""
        stage += 1
        end = (self.warp + 1) * self.plan.stages
        ptx.sub.u32(stage, self.plan.stages, out=stage, when=stage == end)
