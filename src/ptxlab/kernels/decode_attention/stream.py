"""Keys and values on their way into shared memory: each warp copies its own, and waits for no other warp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, b8, b16, ptx, s32, u32, u64
from ptxlab.kernels.decode_attention.plan import CHUNK, Plan
from ptxlab.kernels.mma_attention.softmax import ALL

if TYPE_CHECKING:
    from ptxlab.author.tiles import TilePointer

LINE = 128  # bytes of the L2 cache that are brought at once
COPY = ptx.cp["async"].cg.shared.global_["L2::cache_hint"]


@dataclass
class Cache:
    """Keys, or values, in memory: steps are in bytes, from a sequence or page to the next, a position, a head."""

    memory: Any
    step: Any
    position_step: u32
    head_step: u32


class Stream:
    """A ring of stages. Rows after the last key are zeros, so that whatever is in memory there counts nothing."""

    def __init__(self, plan: Plan, caches: tuple[Cache, Cache], table: Pointer, page: u32, all_pages: u32) -> None:
        self.plan, self.caches, self.table, self.page, self.all_pages = plan, caches, table, page, all_pages
        self.lane, self.warp = ptx.tid.x & 31, ptx.tid.x >> 5
        memory = ptx.dynamic_shared(b8, align=plan.swizzle.period)
        how = {"swizzle": plan.swizzle, "copies": plan.warps * plan.stages}
        shape = plan.keys, plan.row_bytes // 2
        self.tiles = [ptx.tile(b16, *shape, **how, at=memory + number * plan.ring) for number in range(2)]
        across = plan.row_bytes // CHUNK
        self.rows = 32 // across  # that a warp copies at once
        self.row, self.column = self.lane // across, self.lane % across * (CHUNK // 2)
        starts = range(0, max(8, self.rows), self.rows)  # swizzles are the same after 8 rows
        self.targets = [[tile.at(self.row + start, self.column) for start in starts] for tile in self.tiles]
        self.policy = ptx.createpolicy.fractional["L2::evict_first"].b64(1.0)
        self.filling, self.reading, self.remaining = u32(), u32(), s32()
        self.position, self.bases, self.pages = u32(), [u64() for _ in caches], u64()

    def open(self, batch: u32, head: u32, tile: u32, end: u32, pages: u32) -> None:
        """Begin with a tile of a sequence, which has so many pages; from key number `end` on nothing is read."""
        plan = self.plan
        self.position.set(tile * plan.tile + self.warp * plan.keys)
        self.remaining.set((end - self.position).view(s32))
        for stage in (self.filling, self.reading):
            stage.set(self.warp * plan.stages)
        for cache, base in zip(self.caches, self.bases, strict=True):
            at = ptx.mad.wide.u32(self.column, 2, ptx.mad.wide.u32(head, cache.head_step, cache.memory.address))
            base.set(at if plan.is_paged else ptx.mad.lo.u64(ptx.cvt.u64.u32(batch), cache.step, at))
        if plan.is_paged:
            self.pages.set(ptx.mad.wide.u32(batch * pages, 4, self.table.address))

    def fetch(self, is_early: bool = False) -> None:
        """Copy the next tile; after the last one nothing is copied, but the group counts.

        Early, while an earlier kernel may still write it, it is only brought to the L2 cache, where it changes then.
        """
        with ptx.when(self.remaining > 0):
            for cache, start, targets in zip(self.caches, self._starts(is_early), self.targets, strict=True):
                self._copy(start, cache, [] if is_early else [one.move(copy=self.filling) for one in targets])
        self.remaining -= self.plan.tile
        self.position += self.plan.tile
        if not is_early:
            ptx.cp["async"].commit_group()
            self.advance(self.filling)

    def _starts(self, is_early: bool) -> list[u64]:
        """Where this lane's first keys and values are: a tile of a warp is within a page."""
        bases, position = self.bases, self.position
        if self.plan.is_paged:
            entry = ptx.pointer_to(u32, "global", ptx.mad.wide.u32(position // self.page, 4, self.pages))
            read = ptx.ld.relaxed.gpu.global_.u32 if is_early else ptx.ld.global_.u32
            number = ptx.cvt.u64.u32(ptx.min.u32(read(entry), self.all_pages - 1))  # it may not be there yet
            bases = [ptx.mad.lo.u64(number, cache.step, base) for cache, base in zip(self.caches, bases, strict=True)]
            position = position % self.page
        steps = [cache.position_step for cache in self.caches]
        return [ptx.mad.wide.u32(position + self.row, *one) for one in zip(steps, bases, strict=True)]

    def _copy(self, source: u64, cache: Cache, targets: list[TilePointer]) -> None:
        """Copy the rows of a tile, or have the L2 cache bring them."""
        step = ptx.mul.wide.u32(cache.position_step, self.rows)
        left = self.remaining - self.row.view(s32)
        for number, row in enumerate(range(0, self.plan.keys, self.rows)):
            source = source + step if number else source
            chunk = ptx.pointer_to(b16, "global", source)
            if targets:
                target = targets[number % len(targets)].move(rows=row // 8 * 8)
                COPY(target, chunk, CHUNK, ptx.selp.b32(CHUNK, 0, left > row), self.policy)
            else:
                ptx.prefetch.global_.L2(chunk, when=(left > row) & (self.column % (LINE // 2) == 0))

    def wait(self) -> None:
        """Wait until the stage to read is filled, by all lanes; then the one read before may be filled."""
        ptx.cp["async"].wait_group(self.plan.stages - 2)
        ptx.bar.warp.sync(ALL)

    def advance(self, stage: u32) -> None:
        """Go to the next stage of this warp."""
        stage += 1
        ptx.sub.u32(stage, self.plan.stages, out=stage, when=stage == (self.warp + 1) * self.plan.stages)
