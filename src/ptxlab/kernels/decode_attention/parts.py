"""Results of warps and of blocks, put together: sums that are relative to different maxima.

Warps leave theirs in shared memory. The block with the first keys of a head writes the result; others send it theirs
through global memory, where there is 0 until then, so that each number says by itself that it has arrived.
"""

from __future__ import annotations

import struct
from typing import Any

from ptxlab.author import Pointer, f32, pred, ptx, u32
from ptxlab.kernels.decode_attention.attend import LOWEST, Warp
from ptxlab.kernels.decode_attention.plan import Plan
from ptxlab.kernels.decode_attention.schedule import Item
from ptxlab.kernels.mma_attention.softmax import ALL

SEND = ptx.st.relaxed.gpu.global_
RECEIVE = ptx.ld.relaxed.gpu.global_
NOTHING = [*struct.unpack("<6I", struct.pack("<6f", -0.0, -0.0, -0.0, -0.0, LOWEST, -0.0))]  # what a part may add


class Parts:
    """Where results of warps and of blocks are. A part is four sums, their maximum, and the total of the weights."""

    def __init__(self, plan: Plan, warp: Warp, piece: u32, partial: Pointer, factor: f32) -> None:
        self.plan, self.warp, self.piece, self.partial, self.factor = plan, warp, piece, partial, factor
        self.held: Any = ptx.dynamic_shared(f32) + (plan.ring // 2 if plan.apart else 0)
        self.maxima = ptx.shared(f32, plan.warps * plan.rows, name="maxima")
        self.totals = ptx.shared(f32, plan.warps * plan.rows, name="totals")

    def finish(self, item: Item, o: Pointer, rows: u32) -> None:
        """Put together what the warps have, and write the result to `o`, or send a part of it."""
        plan, is_first, across = self.plan, item.tile == 0, self.plan.size // 4
        if not plan.apart:
            ptx.cp["async"].wait_all()
            ptx.bar.sync(0)  # all warps have read their last keys
        self._leave()
        ptx.bar.sync(0)
        for number in ptx.range(ptx.tid.x, rows * across, plan.threads):
            row, column = number // across, number % across * 4
            own = self._together([self._of_warp(row + warp * plan.rows, column) for warp in range(plan.warps)])
            with ptx.when(is_first):
                self._add_others(own, item.others, row, column)
                self._write(o + (row * plan.size + column), own)
            with ptx.otherwise():
                values = [ptx.selp.f32(-0.0, one, one == 0.0) for one in own]  # no +0 is ever sent
                sums, scale = self._places(self.piece, row, column)
                SEND.v4.f32(sums, tuple(values[:4]))
                SEND.v2.f32(scale, tuple(values[4:]), when=column == 0)
        with ptx.when(is_first):
            ptx.bar.sync(0)  # all threads have received what belongs to a whole row
            for number in ptx.range(ptx.tid.x, item.others * plan.rows, plan.threads):
                _, scale = self._places(self.piece + 1 + number // plan.rows, number % plan.rows, 0)
                SEND.v2.b32(scale, (0, 0))

    def _leave(self) -> None:
        """Write what a warp has to shared memory."""
        warp, softmax = self.warp, self.warp.softmax
        for half in softmax.halves:
            row, total = warp.stream.warp * self.plan.rows + (warp.row + 8 * half), softmax.over_row(0, half)
            with ptx.when(warp.quad == 0):
                self.maxima[row] = softmax.maxima[0][half]
                self.totals[row] = total
            for column, values in warp.columns(half):
                ptx.st.shared[f"v{len(values)}"].f32(self.held + (row * self.plan.pitch + column), values)

    def _of_warp(self, row: u32, column: u32) -> list[f32]:
        sums = [f32() for _ in range(4)]
        ptx.ld.shared.v4.f32(self.held + (row * self.plan.pitch + column), out=tuple(sums))
        return [*sums, self.maxima[row], self.totals[row]]

    def _together(self, parts: list[list[f32]]) -> list[f32]:
        """One part of several, relative to one maximum, always in their order."""
        highest = parts[0][4]
        for part in parts[1:]:
            highest = ptx.max.f32(highest, part[4])
        sums, total = [f32(0.0) for _ in range(4)], f32(0.0)
        for part in parts:
            factor = ptx.ex2.approx.ftz.f32((part[4] - highest) * self.warp.softmax.scale)
            for sum, value in zip((*sums, total), (*part[:4], part[5]), strict=True):
                ptx.fma.rn.f32(value, factor, sum, out=sum)
        return [*sums, highest, total]

    def _places(self, piece: u32, row: u32, column: int | u32) -> tuple[Pointer, Pointer]:
        """Where a block sends four sums, and the maximum and the total of their row."""
        plan, start = self.plan, piece * self.plan.part
        sums, scale = start + row * plan.size + column, start + plan.rows * plan.size + row * 2
        return self.partial + sums, self.partial + scale

    def _add_others(self, own: list[f32], others: u32, row: u32, column: u32) -> None:
        """Add the parts of other blocks, some of them at a time."""
        for start in ptx.range(u32(0), others, self.plan.together):
            numbers = [start + (1 + index) for index in range(self.plan.together)]
            places = [(number <= others, *self._places(self.piece + number, row, column)) for number in numbers]
            for one, value in zip(own, self._together([own, *self._received(places)]), strict=True):
                one.set(value)

    def _received(self, places: list[tuple[pred, Pointer, Pointer]]) -> list[list[f32]]:
        """What other blocks have sent, as soon as it is there; there is 0 again for the next launch."""
        words = [[u32(one) for one in NOTHING] for _ in places]
        with ptx.loop():
            least = u32(ALL)
            for (is_given, sums, scale), part in zip(places, words, strict=True):
                RECEIVE.v4.b32(sums, out=tuple(part[:4]), when=is_given)
                RECEIVE.v2.b32(scale, out=tuple(part[4:]), when=is_given)
            for word in (word for part in words for word in part):
                least = ptx.min.u32(least, word)
            ptx.repeat_when(least == 0)
        for is_given, sums, _ in places:
            SEND.v4.b32(sums, (0, 0, 0, 0), when=is_given)
        return [[ptx.mov.b32(word, out=f32()) for word in part] for part in words]

    def _write(self, o: Pointer, part: list[f32]) -> None:
        """Write four numbers of a result; zeros where there was no key."""
        *sums, _, total = part
        inverse = ptx.selp.f32(0.0, ptx.rcp.rn.f32(total) * self.factor, total == 0.0)
        pack = ptx[f"cvt.rn.{self.plan.type}x2.f32"]
        low, high, next_low, next_high = (sum * inverse for sum in sums)
        ptx.st.global_.v2.b32(o, (pack(high, low), pack(next_high, next_low)))
