"""`cp.async` in the code of a kernel: what instructions ask for goes to the runtime, and is counted and tracked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine


class AsyncCopies:
    """`k.async_copy`, see `isa.asynchronous`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def start(self, destination: LlvmAddress, source: LlvmAddress, size: int, source_size: LlvmValue) -> None:
        machine = self._machine
        unit = machine.function.unit
        unit.counting.note_change(machine.function, "shared")
        tracked = unit.tracking.tracks(machine.function, 1)
        given = (machine.shared_offset(destination), source.value, size, source_size, tracked)
        machine.runtime("start_copy", *given, machine.number)
        machine.check()
        unit.counting.count_access(machine.function, destination, size, address_spaces.STORE)
        unit.counting.count_access(machine.function, source, source_size, address_spaces.LOAD)

    def commit(self) -> None:
        self._machine.runtime("commit_copies")
        self._machine.check()

    def wait(self, groups: int) -> None:
        self._machine.runtime("wait_for_copies", groups, self._machine.number)
        self._machine.check()

    def arrive(self, barrier: LlvmAddress, noinc: bool) -> None:
        machine = self._machine
        machine.function.unit.counting.note_change(machine.function, "shared")
        machine.runtime("arrive_after_copies", machine.shared_offset(barrier), int(noinc), machine.number)
        machine.check()
