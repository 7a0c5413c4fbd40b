"""Results of warps, put together in shared memory: sums that are relative to different maxima."""

from __future__ import annotations

from typing import Any

from ptxlab.author import f32, ptx
from ptxlab.kernels.decode_attention.attend import Warp
from ptxlab.kernels.decode_attention.plan import PAD, Plan


class Results:
    """Where results of warps are."""

    def __init__(self, plan: Plan, warp: Warp, factor: Any) -> None:
        self.plan, self.warp, self.factor = plan, warp, factor
        self.thread = ptx.tid.x
        self.held: Any = ptx.dynamic_shared(f32)
        self.maxima = ptx.shared(f32, plan.warps * plan.rows, name="maxima")
        self.totals = ptx.shared(f32, plan.warps * plan.rows, name="totals")

    def leave(self) -> None:
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

    def chunks(self, rows: Any) -> Any:
        """Each row and its first column of four that this thread has."""
        across = self.plan.size // 4
        for number in ptx.range(self.thread, rows * across, self.plan.threads):
            yield number // across, number % across * 4

    def over_warps(self, row: Any, column: Any) -> tuple[list[Any], Any, Any]:
        """Four sums over all warps, their maximum and their total."""
        plan = self.plan
        read = []
        for number in range(plan.warps):
            at = row + number * plan.rows
            values = tuple(f32() for _ in range(4))
            ptx.ld.shared.v4.f32(self.held + (at * (plan.size + PAD) + column), out=values)
            read.append((values, self.maxima[at], self.totals[at]))
        return self.together(read)

    def together(self, read: list[Any]) -> tuple[list[Any], Any, Any]:
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

    def write(self, o: Any, row: Any, column: Any, sums: list[Any], highest: Any, total: Any) -> None:
        """Write four numbers of a result; zeros where there was no key."""
        inverse = ptx.selp.f32(0.0, ptx.rcp.rn.f32(total) * self.factor, total == 0.0)
        pack = ptx[f"cvt.rn.{self.plan.type}x2.f32"]
        values = [sum * inverse for sum in sums]
        words = tuple(pack(high, low) for low, high in ((values[0], values[1]), (values[2], values[3])))
        ptx.st.global_.v2.b32(o + (row * self.plan.size + column), words)
