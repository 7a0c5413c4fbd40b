"""The machine of lanes that execute a kernel together: what an instruction does beyond arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.runtime.schedule.barrier import ALIGNED
from ptxlab.emulate.translate import lane_memory
from ptxlab.emulate.translate.lane_frames import resume, save
from ptxlab.emulate.translate.lane_text import NotTogetherError
from ptxlab.emulate.translate.machine import LlvmMachine
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.isa.types import type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction


class LaneMachine(LlvmMachine):
    """The machine of lanes: memory is accessed by all of them, and what only a thread can do is refused."""

    function: LaneFunction

    def load(
        self,
        address: LlvmAddress,
        type: str,
        count: int = 1,
        *,
        when: LlvmValue | None = None,
        order: str = "",
    ) -> tuple[LlvmValue, ...]:
        if when is not None:
            raise NotTogetherError("a load under a condition")
        return lane_memory.load(self.function, address, type_named(type), count, order)

    def store(
        self, address: LlvmAddress, values: Sequence[LlvmValue], *, when: LlvmValue | None = None, order: str = ""
    ) -> None:
        if when is not None:
            raise NotTogetherError("a store under a condition")
        lane_memory.store(self.function, address, values, order)

    def barrier(
        self, number: LlvmValue, count: LlvmValue | None, *, value: LlvmValue | None = None, waits: bool = True
    ) -> LlvmValue:
        """Arrive at a barrier of the block with all lanes that have not exited, and stay until it opens."""
        function, builder = self.function, self.function.builder
        assert self.match is not None
        if value is not None or not waits or function.guard is not None or function.waiting[function.block_number]:
            raise NotTogetherError("a barrier that lanes come to one by one")
        if number.text in builder.shapes or (count is not None and count.text in builder.shapes):
            raise NotTogetherError("different barriers for different lanes")
        save(function, function.mask(), function.live.across(function.position))
        how = 1 | (ALIGNED if self.match.effects.aligned else 0)
        with builder.each_lane(function.mask()):
            self.runtime("arrive_at_barrier", number, 0 if count is None else count, how, 0, self.number)
            self.check()
        builder.close("ret void")
        resume(function, function.live.across(function.position))
        return LlvmValue(function, type_named("u64"), "0")  # lanes that bring nothing ask for nothing
