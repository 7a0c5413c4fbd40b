"""Results of blocks, put together through global memory.

A block that had all keys of a head writes the result. Another leaves its part in global memory and counts; the last of
them puts all parts together, in their order, so that two runs give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import f32, ptx, u32
from ptxlab.kernels.decode_attention.attend import LOWEST, Warp
from ptxlab.kernels.decode_attention.plan import Plan
from ptxlab.kernels.decode_attention.results import Results
from ptxlab.kernels.decode_attention.schedule import Item, Schedule


@dataclass
class Split:
    """A head that several blocks have parts of."""

    first: Any
    """The number of the first part, were it that with which its block starts."""
    second: Any
    """1 if its block starts with another head, else 0."""
    count: Any
    own: Any
    """The number of this block's part."""


class Parts(Results):
    """Where parts of results are."""

    def __init__(self, plan: Plan, warp: Warp, schedule: Schedule, partial: Any, counters: Any, factor: Any) -> None:
        super().__init__(plan, warp, factor)
        self.schedule, self.partial, self.counters = schedule, partial, counters
        self.is_last = ptx.shared(u32, 1, name="is_last")

    def find(self, item: Item) -> Split:
        """Which blocks have parts of this head, and where this block's own is."""
        share = self.schedule.share
        first = item.start // share
        count = (item.start + item.tiles - 1) // share - first + 1
        second = ptx.selp.b32(1, 0, first * share < item.start, out=u32())  # the first block starts with another head
        own = 2 * ptx.ctaid.x + ptx.selp.b32(second, 0, ptx.ctaid.x == first, out=u32())
        return Split(2 * first, second, count, own)

    def finish(self, item: Item, split: Split, o: Any, rows: Any) -> None:
        """Put together what the warps have, and write the result to `o` or a part of it."""
        ptx.cp["async"].wait_all()
        ptx.bar.sync(0)  # all warps have read their last keys
        self.leave()
        ptx.bar.sync(0)
        with ptx.when(item.count == item.tiles):
            for row, column in self.chunks(rows):
                self.write(o, row, column, *self.over_warps(row, column))
        with ptx.otherwise():
            self._write_part(item, split, o, rows)
        ptx.bar.sync(0)  # the next keys may be copied to where results were

    def _write_part(self, item: Item, split: Split, o: Any, rows: Any) -> None:
        """Write a part; the last of a head's blocks puts all of them together."""
        own, count = split.own, split.count
        for row, column in self.chunks(rows):
            sums, highest, total = self.over_warps(row, column)
            ptx.st.global_.v4.f32(self._sums(own, row, column), tuple(sums))
            with ptx.when(column == 0):
                ptx.st.global_.v2.f32(self._scales(own, row), (highest, total))
        ptx.bar.sync(0)
        with ptx.when(self.thread == 0):
            counter = self.counters + (item.batch * self.schedule.heads + item.head)
            before = ptx.atom.acq_rel.gpu.global_.inc.u32(counter, count - 1)
            self.is_last[0] = ptx.selp.b32(1, 0, before == count - 1, out=u32())
        ptx.bar.sync(0)
        with ptx.when(self.is_last[0] == 1):
            for row, column in self.chunks(rows):
                self.write(o, row, column, *self._over_parts(split, row, column))

    def _sums(self, part: Any, row: Any, column: Any) -> Any:
        return self.partial + (part * self.plan.part + row * self.plan.size + column)

    def _scales(self, part: Any, row: Any) -> Any:
        return self.partial + (part * self.plan.part + (self.plan.rows * self.plan.size) + row * 2)

    def _over_parts(self, split: Split, row: Any, column: Any) -> tuple[list[Any], Any, Any]:
        """Four sums over all parts, some of them at a time."""
        highest, total = f32(LOWEST), f32(0.0)
        sums = [f32(0.0) for _ in range(4)]
        for start in ptx.range(u32(0), split.count, self.plan.together):
            read: list[Any] = []
            for number in range(self.plan.together):
                index = start + number
                part = split.first + 2 * index + ptx.selp.b32(split.second, 0, index == 0, out=u32())
                values, maximum, one = tuple(f32(0.0) for _ in range(4)), f32(LOWEST), f32(0.0)
                inside = index < split.count
                ptx.ld.global_.v4.f32(self._sums(part, row, column), out=values, when=inside)
                ptx.ld.global_.v2.f32(self._scales(part, row), out=(maximum, one), when=inside)
                read.append((values, maximum, one))
            joined, most, all = self.together([(tuple(sums), highest, total), *read])
            highest.set(most)
            total.set(all)
            for sum, value in zip(sums, joined, strict=True):
                sum.set(value)
        return sums, highest, total
