"""The machine of lanes that execute a kernel together: what an instruction does beyond arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import thread_parts
from ptxlab.emulate.abi.barriers import ALIGNED
from ptxlab.emulate.abi.code import WARP
from ptxlab.emulate.translate import lane_memory
from ptxlab.emulate.translate.lane_frames import resume, resume_point, save
from ptxlab.emulate.translate.lane_shapes import NotTogetherError
from ptxlab.emulate.translate.machine import LlvmMachine
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.isa.types import type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction
    from ptxlab.isa.machine import Statics
    from ptxlab.isa.undefined import Following


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
        if self.function.builder.is_alone:
            return super().load(address, type, count, when=when, order=order)
        if when is None:
            return lane_memory.load(self.function, address, type_named(type), count, order)
        with self._where(when) as condition:
            found = lane_memory.load(self.function, self._own(address), type_named(type), count, order, condition)
        return tuple(self.select(when, value, 0) for value in found)

    def store(
        self, address: LlvmAddress, values: Sequence[LlvmValue], *, when: LlvmValue | None = None, order: str = ""
    ) -> None:
        if self.function.builder.is_alone:
            super().store(address, values, when=when, order=order)
            return
        if when is None:
            lane_memory.store(self.function, address, values, order)
            return
        with self._where(when) as condition:
            lane_memory.store(self.function, self._own(address), values, order, condition)

    @contextmanager
    def _where(self, when: LlvmValue) -> Iterator[int]:
        """Have only those lanes execute in which a condition holds; the number of a counter of them."""
        lanes, outside = self.function, self.function.guard
        lanes.guard = lanes.part_of_active(lanes.builder.widened("i1", when.text), False)
        yield lanes.unit.counting.count_here(lanes)
        lanes.guard = outside

    def _own(self, address: LlvmAddress) -> LlvmAddress:
        """An address that each lane has for itself, since perhaps none uses it."""
        builder, text = self.function.builder, address.value.text
        own = text if text in builder.shapes else builder.widened("i64", text)
        return LlvmAddress(address.space, LlvmValue(self.function, type_named("u64"), own))

    def barrier(
        self, number: LlvmValue, count: LlvmValue | None, *, value: LlvmValue | None = None, waits: bool = True
    ) -> LlvmValue:
        """Arrive at a barrier of the block with all lanes that have not exited, and stay until it opens."""
        function, builder = self.function, self.function.builder
        assert self.match is not None
        if value is not None or not waits or not self._are_all_here():
            raise NotTogetherError("a barrier that lanes come to one by one")
        if number.text in builder.shapes or (count is not None and count.text in builder.shapes):
            raise NotTogetherError("different barriers for different lanes")
        save(function, function.mask(), function.live.across(function.position))
        how = 1 | (ALIGNED if self.match.effects.aligned else 0)
        with builder.each_lane(function.mask()):
            function.store_field("resume", "i32", resume_point(function))
            self.runtime("arrive_at_barrier", number, 0 if count is None else count, how, 0, self.number)
            self.check()
        builder.close("ret void")
        resume(function, function.live.across(function.position))
        return LlvmValue(function, type_named("u64"), "0")  # lanes that bring nothing ask for nothing

    def _are_all_here(self) -> bool:
        """Whether all lanes that have not exited execute this instruction."""
        return self.function.guard is None and not self.function.waiting[self.function.block_number]

    def collect(
        self,
        function: Callable[..., object],
        members: LlvmValue | int,
        inputs: Sequence[LlvmValue],
        results: Sequence[str],
        *,
        statics: Statics = (),
        aligned: bool = False,
        reads_shared: bool = False,
        orders: bool = False,
        following: Following | None = None,
    ) -> tuple[LlvmValue, ...]:
        """Do at once what lanes do together, if they are all of the warp; otherwise wait for the others, as threads."""
        lanes, builder = self.function, self.function.builder
        if not self._are_all_here():
            raise NotTogetherError("a warp collective that lanes come to one by one")
        given, word = self._given(members), self._bring(inputs)
        types = [type_named(name) for name in results]
        total = word + sum(-(-type.width // 32) for type in types)
        direct, wait, on = (builder.new_label(name) for name in ("direct", "wait", "on"))
        is_whole = self._is_whole(given)
        if is_whole != "true":
            builder.branch(is_whole, direct, wait, likely=True)
            builder.label(direct)
        name = lanes.unit.calls.collective(function, statics, (word, total), reads_shared, None)
        builder.lines.append(f"  call void {name}(ptr %exchange, i32 -1, ptr %shared)")
        if lanes.unit.tracking.checks:
            order = lanes.unit.calls.runtime("order_warp")
            builder.lines.append(f"  call void @{order}(ptr %thread, i32 {int(orders)})")
        if is_whole != "true":
            builder.jump(on)
            builder.label(wait)
            self._wait_for_others(given, total)
            builder.jump(on)
            builder.label(on)
        return tuple(self._fetch(types, word))

    def _given(self, members: LlvmValue | int) -> str:
        """The lanes that are to converge, as a text; all of them are -1."""
        text = str(members) if isinstance(members, int) else members.text
        return "-1" if text == str((1 << WARP) - 1) else text

    def _is_whole(self, members: str) -> str:
        """Whether all lanes of the warp converge, and are here."""
        builder, is_full = self.function.builder, self.function.is_full()
        if members == "-1":
            return is_full
        if members in builder.shapes:
            return "false"
        return builder.plain(f"and i1 {is_full}, {builder.plain(f'icmp eq i32 {members}, -1')}")

    def _wait_for_others(self, members: str, total: int) -> None:
        """Wait, as threads do, until other lanes of the warp have come to the same collective, or have exited."""
        lanes, builder, mask = self.function, self.function.builder, self.function.mask()
        site, follows = lanes.single.sites.get(lanes.position, (0, False))  # known once it is translated for threads
        if follows:
            builder.lines.append(f"  store {lanes.wide('i32')} zeroinitializer, ptr {self._exchange(total)}, align 4")
        each = builder.buffer("i32", builder.widened("i32", members)) if members in builder.shapes else ""
        save(lanes, mask, lanes.live.across(lanes.position))
        with builder.each_lane(mask):
            lanes.store_field("resume", "i32", resume_point(lanes))
            lanes.store_field("waiting.members", "i32", builder.element("i32", each) if each else members)
            lanes.store_field("waiting.site", "i32", site)
            lanes.store_field("waiting.instruction", "i32", self.number)
            lanes.store_field("status", "i32", thread_parts.AT_COLLECTIVE)
        builder.close("ret void")
        resume(lanes, lanes.live.across(lanes.position))
        lanes.frame.epoch += 1

    def _bring(self, inputs: Sequence[LlvmValue]) -> int:
        builder = self.function.builder
        words = [part for value in inputs for part in self._words(value)]
        for number, word in enumerate(words):
            vector = builder.widened("i32", word)
            builder.lines.append(f"  store {self.function.wide('i32')} {vector}, ptr {self._exchange(number)}, align 4")
        return len(words)

    def _word(self, number: int) -> str:
        return self.function.builder.vector(f"load {self.function.wide('i32')}, ptr {self._exchange(number)}, align 4")
