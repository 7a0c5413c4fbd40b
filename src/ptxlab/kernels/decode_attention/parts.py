"""Results of warps and of blocks, put together: sums that are relative to different maxima.

Warps leave theirs in shared memory. A block that has the first keys of a head writes the result. Another one that has
keys of it sends its part through global memory, where there is 0 until then: so each number says by itself that it has
arrived, and no counter, fence or second barrier is needed. Parts are added in their order, so that two runs give the
same bits, and become 0 again for the next launch.
"""

from __future__ import annotations

import struct
from typing import Any

from ptxlab.author import f32, ptx, u32
from ptxlab.kernels.decode_attention.attend import LOWEST, Warp
from ptxlab.kernels.decode_attention.plan import Plan
from ptxlab.kernels.decode_attention.schedule import Item
from ptxlab.kernels.mma_attention.softmax import ALL, exchange

SEND = ptx.st.relaxed.gpu.global_
RECEIVE = ptx.ld.relaxed.gpu.global_
NOTHING = [*struct.unpack("<6I", struct.pack("<6f", -0.0, -0.0, -0.0, -0.0, LOWEST, -0.0))]  # what a part may add
Sums = tuple[tuple[Any, ...], Any, Any]
"""Four sums, the maximum they are relative to, and the total of their weights."""


class Parts:
    """Where results of warps and of blocks are."""

    def __init__(self, plan: Plan, warp: Warp, piece: Any, partial: Any, factor: Any) -> None:
        self.plan, self.warp, self.piece, self.partial, self.factor = plan, warp, piece, partial, factor
        self.thread = ptx.tid.x
        self.held: Any = ptx.dynamic_shared(f32) + (plan.ring // 2 if plan.apart else 0)
        self.maxima = ptx.shared(f32, plan.warps * plan.rows, name="maxima")
        self.totals = ptx.shared(f32, plan.warps * plan.rows, name="totals")

    def finish(self, item: Item, o: Any, rows: Any) -> None:
        """Put together what the warps have, and write the result to `o`, or send a part of it."""
        if not self.plan.apart:
            ptx.cp["async"].wait_all()
            ptx.bar.sync(0)  # all warps have read their last keys
        self._leave()
        ptx.bar.sync(0)
        plan, is_first, across = self.plan, item.tile == 0, self.plan.size // 4
        for number in ptx.range(self.thread, rows * across, plan.threads):
            row, column = number // across, number % across * 4
            own = self._over_warps(row, column)
            with ptx.when(is_first):
                self._write(o + (row * plan.size + column), *self._with_others(own, item.others, row, column))
            with ptx.otherwise():
                self._send(row, column, *own)
        with ptx.when(is_first):
            ptx.bar.sync(0)  # all threads have received what belongs to a whole row
            for number in ptx.range(self.thread, item.others * plan.rows, plan.threads):
                _, scale = self._places(self.piece + 1 + number // plan.rows, number % plan.rows, 0)
                SEND.v2.b32(scale, (0, 0))

    def _leave(self) -> None:
        """Write what a warp has to shared memory."""
        warp, pitch = self.warp, self.plan.pitch
        for half in warp.halves:
            row, total = warp.stream.warp * self.plan.rows + (warp.row + 8 * half), warp.totals[half]
            for distance in (1, 2):
                total = total + exchange(total, distance)
            with ptx.when(warp.quad == 0):
                self.maxima[row] = warp.maxima[half]
                self.totals[row] = total
            for column, registers in warp.columns():
                width = len(registers) // 2
                values = tuple(registers[width * half :][:width])
                ptx.st.shared[f"v{width}"].f32(self.held + (row * pitch + column), values)

    def _over_warps(self, row: Any, column: Any) -> Sums:
        read = []
        for number in range(self.plan.warps):
            at, values = row + number * self.plan.rows, tuple(f32() for _ in range(4))
            ptx.ld.shared.v4.f32(self.held + (at * self.plan.pitch + column), out=values)
            read.append((values, self.maxima[at], self.totals[at]))
        return self._together(read)

    def _together(self, read: list[Sums]) -> Sums:
        """Sums relative to one maximum."""
        highest = read[0][1]
        for _, maximum, _ in read[1:]:
            highest = ptx.max.f32(highest, maximum)
        sums, total = tuple(f32(0.0) for _ in range(4)), f32(0.0)
        for values, maximum, part in read:
            factor = ptx.ex2.approx.ftz.f32((maximum - highest) * self.warp.scale)
            for sum, value in zip((total, *sums), (part, *values), strict=True):
                ptx.fma.rn.f32(value, factor, sum, out=sum)
        return sums, highest, total

    def _places(self, piece: Any, row: Any, column: Any) -> tuple[Any, Any]:
        """Where a block sends four sums, and the maximum and the total of their row."""
        plan, start = self.plan, piece * self.plan.part
        sums, scale = start + row * plan.size + column, start + plan.rows * plan.size + row * 2
        return self.partial + sums, self.partial + scale

    def _send(self, row: Any, column: Any, sums: Any, *scale: Any) -> None:
        """Send a part, without +0."""
        values, factors = (tuple(ptx.selp.f32(-0.0, one, one == 0.0) for one in some) for some in (sums, scale))
        to_sums, to_scale = self._places(self.piece, row, column)
        SEND.v4.f32(to_sums, values)
        SEND.v2.f32(to_scale, factors, when=column == 0)

    def _with_others(self, own: Sums, others: Any, row: Any, column: Any) -> Sums:
        """The sums of all blocks, some of them at a time."""
        sums, highest, total = own
        for start in ptx.range(u32(0), others, self.plan.together):
            numbers = [start + (1 + index) for index in range(self.plan.together)]
            places = [self._places(self.piece + number, row, column) for number in numbers]
            read = self._received(places, [number <= others for number in numbers])
            joined, most, all = self._together([own, *read])
            for one, value in zip((*sums, highest, total), (*joined, most, all), strict=True):
                one.set(value)
        return own

    def _received(self, places: list[Any], given: list[Any]) -> list[Sums]:
        """What other blocks have sent, as soon as it is there."""
        words = [[u32(one) for one in NOTHING] for _ in places]
        with ptx.loop():
            least = u32(ALL)
            for (sums, scale), is_given, part in zip(places, given, words, strict=True):
                RECEIVE.v4.b32(sums, out=tuple(part[:4]), when=is_given)
                RECEIVE.v2.b32(scale, out=tuple(part[4:]), when=is_given)
            for word in (word for part in words for word in part):
                least = ptx.min.u32(least, word)
            ptx.repeat_when(least == 0)
        for (sums, _), is_given in zip(places, given, strict=True):
            SEND.v4.b32(sums, (0, 0, 0, 0), when=is_given)
        parts = [[ptx.mov.b32(word, out=f32()) for word in part] for part in words]
        return [(tuple(part[:4]), part[4], part[5]) for part in parts]

    def _write(self, o: Any, sums: Any, highest: Any, total: Any) -> None:
        """Write four numbers of a result; zeros where there was no key."""
        inverse = ptx.selp.f32(0.0, ptx.rcp.rn.f32(total) * self.factor, total == 0.0)
        pack = ptx[f"cvt.rn.{self.plan.type}x2.f32"]
        low, high, next_low, next_high = (sum * inverse for sum in sums)
        ptx.st.global_.v2.b32(o, (pack(high, low), pack(next_high, next_low)))
