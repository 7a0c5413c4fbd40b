"""Results of warps and of blocks, put together: sums that are relative to different maxima.

Warps leave theirs in shared memory. A block that had all keys of a head writes the result. Another leaves its part in
global memory and counts; the last of them puts all parts together, in their order, so that two runs give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import f32, ptx, u32
from ptxlab.kernels.decode_attention.attend import LOWEST, Warp
from ptxlab.kernels.decode_attention.plan import PAD, Plan
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


class Parts:
    """Where parts of results are."""

    def __init__(self, plan: Plan, warp: Warp, schedule: Schedule, partial: Any, counters: Any, factor: Any) -> None:
        self.plan, self.warp, self.schedule = plan, warp, schedule
        self.partial, self.counters, self.factor = partial, counters, factor
        self.thread = ptx.tid.x
        self.held = ptx.dynamic_shared(f32)
        self.maxima = ptx.shared(f32, plan.warps * plan.rows, name="maxima")
        self.totals = ptx.shared(f32, plan.warps * plan.rows, name="totals")
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
        self._leave()
        ptx.bar.sync(0)
        with ptx.when(item.count == item.tiles):
            for row, column in self._chunks(rows):
                self._write(o, row, column, *self._over_warps(row, column))
        with ptx.otherwise():
            self._write_part(item, split, o, rows)
        ptx.bar.sync(0)  # the next keys may be copied to where results were

    def _leave(self) -> None:
        """Write sums, maxima and totals of a warp to shared memory."""
        plan, warp = self.plan, self.warp
        first = warp.stream.warp * plan.rows
        for half in warp.halves:
            row = first + warp.row + 8 * half
            total = warp.totals[half]
            for distance in (1, 2):
                total = total + ptx.shfl.sync.bfly.b32(total, distance, 31, 0xFFFFFFFF, out=f32())
            with ptx.when(warp.quad == 0):
                self.maxima[row] = warp.maxima[half]
                self.totals[row] = total
            for column, registers in warp.columns():
                width = len(registers) // 2
                target = self.held + (row * (plan.size + PAD) + column)
                ptx.st.shared[f"v{width}"].f32(target, tuple(registers[width * half :][:width]))

    def _chunks(self, rows: Any) -> Any:
        """Each row and its first column of four that this thread has."""
        across = self.plan.size // 4
        for number in ptx.range(self.thread, rows * across, self.plan.threads):
            yield number // across, number % across * 4

    def _over_warps(self, row: Any, column: Any) -> tuple[list[Any], Any, Any]:
        """Four sums over all warps, their maximum and their total."""
        plan = self.plan
        read = []
        for number in range(plan.warps):
            at = row + number * plan.rows
            values = tuple(f32() for _ in range(4))
            ptx.ld.shared.v4.f32(self.held + (at * (plan.size + PAD) + column), out=values)
            read.append((values, self.maxima[at], self.totals[at]))
        return self._together(read)

    def _together(self, read: list[Any]) -> tuple[list[Any], Any, Any]:
        """Sums relative to one maximum."""
        highest = read[0][1]
        for _, maximum, _ in read[1:]:
            highest = ptx.max.f32(highest, maximum)
        sums, total = [f32(0.0) for _ in range(4)], f32(0.0)
        for values, maximum, part in read:
            factor = ptx.ex2.approx.ftz.f32((maximum - highest) * self.warp.scale)
            ptx.fma.rn.f32(part, factor, total, out=total)
            for sum, value in zip(sums, values, strict=True):
                ptx.fma.rn.f32(value, factor, sum, out=sum)
        return sums, highest, total

    def _write(self, o: Any, row: Any, column: Any, sums: list[Any], highest: Any, total: Any) -> None:
        """Write four numbers of a result; zeros where there was no key."""
        inverse = ptx.selp.f32(0.0, ptx.rcp.rn.f32(total) * self.factor, total == 0.0)
        pack = ptx[f"cvt.rn.{self.plan.type}x2.f32"]
        values = [sum * inverse for sum in sums]
        words = tuple(pack(high, low) for low, high in ((values[0], values[1]), (values[2], values[3])))
        ptx.st.global_.v2.b32(o + (row * self.plan.size + column), words)

    def _write_part(self, item: Item, split: Split, o: Any, rows: Any) -> None:
        """Write a part; the last of a head's blocks puts all of them together."""
        own, count = split.own, split.count
        for row, column in self._chunks(rows):
            sums, highest, total = self._over_warps(row, column)
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
            for row, column in self._chunks(rows):
                self._write(o, row, column, *self._over_parts(split, row, column))

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
            joined, most, all = self._together([(tuple(sums), highest, total), *read])
            highest.set(most)
            total.set(all)
            for sum, value in zip(sums, joined, strict=True):
                sum.set(value)
        return sums, highest, total
