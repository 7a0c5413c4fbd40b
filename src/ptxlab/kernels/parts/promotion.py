"""Sums of 8-bit MMAs, promoted to f32: their accumulators keep 14 bits on Hopper, too few for many summands.

Each thread of a warpgroup adds its accumulators to what it has in shared memory, and the tensor cores start from 0. If
rows were scaled since, as attention scales where a maximum has grown, what is in memory is scaled when it is added.
"""

from __future__ import annotations

from ptxlab.author import Pointer, f32, pred, ptx, u32
from ptxlab.kernels.parts.warpgroups import GROUP

VECTOR = 4  # sums that a thread stores at a time: two of each of its two rows


class PromotedSums:
    """The sums of warpgroup `group` in f32, from `memory` on, to which accumulators are added every so many steps."""

    def __init__(self, sums: list[f32], memory: Pointer, group: u32, every: int) -> None:
        self.sums, self.every, self.group = sums, every, group
        self.since = [f32() for _ in range(2)]  # what rows were multiplied by since sums were promoted
        self.steps = u32()  # since then
        self.are_there = ptx.setp.ne.u32(group, group)
        self.memory = memory + (group * (len(sums) * GROUP) + ptx.tid.x % GROUP * VECTOR)

    def start(self) -> None:
        """Begin with other rows: nothing is promoted."""
        self._restart()
        ptx.setp.ne.u32(self.group, self.group, out=self.are_there)

    def step(self, factors: list[f32]) -> None:
        """The tensor cores have added once, and the sums of each row were scaled."""
        for since, factor in zip(self.since, factors, strict=True):
            since *= factor
        self.steps += 1

    @property
    def is_due(self) -> pred:
        """Whether it is time to promote the sums."""
        return self.steps == self.every

    def promote(self) -> None:
        """Add the accumulators to the sums in memory; the caller lets the tensor cores start from 0."""
        self.add()
        for number, vector in enumerate(self._vectors()):
            ptx.st.shared.v4.f32(self.memory + number * VECTOR * GROUP, vector)
        self._restart()
        ptx.setp.eq.u32(self.group, self.group, out=self.are_there)

    def add(self) -> None:
        """Add the sums in memory to the accumulators."""
        with ptx.when(self.are_there):
            for number, vector in enumerate(self._vectors()):
                stored = ptx.ld.shared.v4.f32(self.memory + number * VECTOR * GROUP)
                for element, (sum, one) in enumerate(zip(vector, stored, strict=True)):
                    ptx.fma.rn.f32(one, self.since[element // 2], sum, out=sum)

    def _restart(self) -> None:
        for since in self.since:
            since.set(1.0)
        self.steps.set(0)

    def _vectors(self) -> list[tuple[f32, ...]]:
        return [tuple(self.sums[number:][:VECTOR]) for number in range(0, len(self.sums), VECTOR)]
