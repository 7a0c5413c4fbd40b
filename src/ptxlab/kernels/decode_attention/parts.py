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
from ptxlab.kernels.decode_attention.plan import PAD, Plan
from ptxlab.kernels.decode_attention.schedule import ALL, Item

SEND = ptx.st.relaxed.gpu.global_
RECEIVE = ptx.ld.relaxed.gpu.global_
NOTHING = [*struct.unpack("<6I", struct.pack("<6f", -0.0, -0.0, -0.0, -0.0, LOWEST, -0.0))]  # what a part may add
Sums = tuple[list[Any], Any, Any]
"""Four sums, the maximum they are relative to, and the total of their weights."""


class Parts:
    """Where results of warps and of blocks are."""

    def __init__(self, plan: Plan, warp: Warp, piece: Any, partial: Any, factor: Any) -> None:
        self.plan, self.warp, self.factor = plan, warp, factor
        self.piece, self.partial = piece, partial
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
        plan, is_first = self.plan, item.tile == 0
        across = plan.size // 4
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
                SEND.v2.b32(self._scale(self.piece + 1 + number // plan.rows, number % plan.rows), (0, 0))

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

    def _over_warps(self, row: Any, column: Any) -> Sums:
        plan = self.plan
        read = []
        for number in range(plan.warps):
            at = row + number * plan.rows
            values = tuple(f32() for _ in range(4))
            ptx.ld.shared.v4.f32(self.held + (at * (plan.size + PAD) + column), out=values)
            read.append((values, self.maxima[at], self.totals[at]))
        return self._together(read)

    def _together(self, read: list[Any]) -> Sums:
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

    def _sums(self, piece: Any, row: Any, column: Any) -> Any:
        """Where a block sends four sums."""
        return self.partial + (piece * self.plan.part + row * self.plan.size + column)

    def _scale(self, piece: Any, row: Any) -> Any:
        """Where a block sends the maximum and the total of a row."""
        return self.partial + (piece * self.plan.part + (self.plan.rows * self.plan.size) + row * 2)

    def _send(self, row: Any, column: Any, sums: list[Any], *scale: Any) -> None:
        """Send a part, without +0."""
        SEND.v4.f32(self._sums(self.piece, row, column), tuple(ptx.selp.f32(-0.0, one, one == 0.0) for one in sums))
        with ptx.when(column == 0):
            SEND.v2.f32(self._scale(self.piece, row), tuple(ptx.selp.f32(-0.0, one, one == 0.0) for one in scale))

    def _with_others(self, own: Sums, others: Any, row: Any, column: Any) -> Sums:
        """The sums of all blocks, some of them at a time."""
        sums, highest, total = own
        for start in ptx.range(u32(0), others, self.plan.together):
            pieces = [start + (1 + index) for index in range(self.plan.together)]
            places = [
                (self._sums(self.piece + piece, row, column), self._scale(self.piece + piece, row)) for piece in pieces
            ]
            read = self._received(places, [piece <= others for piece in pieces])
            joined, most, all = self._together([(tuple(sums), highest, total), *read])
            highest.set(most)
            total.set(all)
            for sum, value in zip(sums, joined, strict=True):
                sum.set(value)
        return sums, highest, total

    def _received(self, places: list[Any], given: list[Any]) -> list[Any]:
        """What other blocks have sent, as soon as it is there."""
        words = [[u32(one) for one in NOTHING] for _ in places]
        with ptx.loop():
            least = u32(ALL)
            for (sums, scale), is_given, part in zip(places, given, words, strict=True):
                RECEIVE.v4.b32(sums, out=tuple(part[:4]), when=is_given)
                RECEIVE.v2.b32(scale, out=tuple(part[4:]), when=is_given)
            for part in words:
                for word in part:
                    least = ptx.min.u32(least, word)
            ptx.repeat_when(least == 0)
        for (sums, _), is_given in zip(places, given, strict=True):
            SEND.v4.b32(sums, (0, 0, 0, 0), when=is_given)
        parts = [[ptx.mov.b32(word, out=f32()) for word in part] for part in words]
        return [(tuple(part[:4]), part[4], part[5]) for part in parts]

    def _write(self, o: Any, sums: list[Any], highest: Any, total: Any) -> None:
        """Write four numbers of a result; zeros where there was no key."""
        inverse = ptx.selp.f32(0.0, ptx.rcp.rn.f32(total) * self.factor, total == 0.0)
        pack = ptx[f"cvt.rn.{self.plan.type}x2.f32"]
        values = [sum * inverse for sum in sums]
        words = tuple(pack(high, low) for low, high in ((values[0], values[1]), (values[2], values[3])))
        ptx.st.global_.v2.b32(o, words)
