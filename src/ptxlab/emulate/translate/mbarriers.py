"""mbarriers in the code of a kernel: what instructions ask for goes to the runtime, and is counted and tracked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.translate import access
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.isa.chapters.mbarrier import RELAXED_ORDER
from ptxlab.isa.types import type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine

Located = tuple[str, LlvmValue]  # the block that an mbarrier belongs to, and its offset in shared memory


class Mbarriers:
    """`k.mbarrier`, see `isa.asynchronous`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def initialize(self, barrier: LlvmAddress, count: LlvmValue, layout: int) -> None:
        self._change("initialize_phase", self._own(barrier, address_spaces.STORE), count, layout)

    def invalidate(self, barrier: LlvmAddress) -> None:
        self._change("invalidate_phase", self._own(barrier, address_spaces.STORE))

    def layout(self, barrier: LlvmAddress) -> LlvmValue:
        machine = self._machine
        found = machine.ask_runtime(
            "layout_of_phase", *self._own(barrier, address_spaces.LOAD), machine.number, result="u32"
        )
        machine.function.unit.counting.note_look(machine.function, "shared")
        machine.check()
        return found

    def expect(self, barrier: LlvmAddress, bytes: LlvmValue, order: int = 0) -> None:
        self._change_bytes("expect_bytes", barrier, bytes, order)

    def complete(self, barrier: LlvmAddress, bytes: LlvmValue, order: int) -> None:
        self._change_bytes("complete_bytes", barrier, bytes, order)

    def arrive(self, barrier: LlvmAddress, count: LlvmValue | int, order: int) -> LlvmValue:
        return self._arrive("arrive_at_phase", barrier, count, order)

    def drop(self, barrier: LlvmAddress, count: LlvmValue | int, order: int) -> LlvmValue:
        return self._arrive("drop_from_phase", barrier, count, order)

    def test(self, barrier: LlvmAddress, parity: LlvmValue, order: int) -> LlvmValue:
        return self.wait(barrier, parity, order)  # a test that fails may take as long as a wait does

    def wait(self, barrier: LlvmAddress, parity: LlvmValue, order: int) -> LlvmValue:
        machine = self._machine
        machine.runtime("wait_for_phase", *self._own(barrier, address_spaces.LOAD), parity, order, machine.number)
        machine.function.unit.counting.note_look(machine.function, "shared")
        machine.wait()
        answer = LlvmValue(machine.function, type_named("u64"), machine.function.load_field("waiting.answer", "i64"))
        return answer != 0

    def _arrive(self, name: str, barrier: LlvmAddress, count: LlvmValue | int, order: int) -> LlvmValue:
        machine = self._machine
        located = self._any(barrier)
        if order & RELAXED_ORDER:
            machine.runtime("release_tensor_work", *located)
        found = machine.ask_runtime(name, *located, count, order, machine.number, result="u64")
        self._end_change()
        return found

    def _change_bytes(self, name: str, barrier: LlvmAddress, bytes: LlvmValue, order: int) -> None:
        located = self._any(barrier)
        if order:
            self._machine.runtime("release_to_phase", *located, order)
        self._change(name, located, bytes)

    def _change(self, name: str, located: Located, *values: LlvmValue | int) -> None:
        self._machine.runtime(name, *located, *values, self._machine.number)
        self._end_change()

    def _end_change(self) -> None:
        self._machine.function.unit.counting.note_change(self._machine.function, "shared")
        self._machine.check()

    def _own(self, barrier: LlvmAddress, kind: int) -> Located:
        """An mbarrier that must be in the block's own shared memory."""
        machine = self._machine
        offset = machine.shared_offset(barrier)
        if barrier.space != "shared":
            offset = machine.own_offset(offset)
        return self._track(LlvmAddress("shared", offset), kind)

    def _any(self, barrier: LlvmAddress) -> Located:
        """An mbarrier that may be in another block of the cluster."""
        machine = self._machine
        offset = machine.shared_offset(barrier)
        return self._track(
            LlvmAddress("shared" if barrier.space == "shared" else "shared::cluster", offset), address_spaces.ATOMIC
        )

    def _track(self, address: LlvmAddress, kind: int) -> Located:
        machine = self._machine
        access.locate(machine.function, address, 8, kind)
        located: Located = "%block", address.value
        if address.space == "shared::cluster":
            located = machine.owner(address.value), address.value & address_spaces.OFFSET_MASK
        if kind != address_spaces.STORE and machine.function.unit.tracking.checks:
            machine.runtime("check_intact", *located, machine.number)
        machine.function.unit.tracking.note_access(machine.function, address, 8, kind, "barrier", 8)
        access.log(machine.function, address, 8, kind, "false" if kind == address_spaces.LOAD else "true")
        return located
