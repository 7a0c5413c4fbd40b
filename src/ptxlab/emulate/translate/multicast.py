"""Multicast addresses in the code of a kernel: what they refer to on each device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.translate.values import LlvmAddress

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine


class MulticastUnit:
    """`k.multicast`, see `isa.units.multicast_unit`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def replica(self, operand: LlvmAddress, number: int, bytes: int) -> LlvmAddress:
        machine = self._machine
        found = machine.ask_runtime("locate_replica", operand.value, number, bytes, machine.number, result="u64")
        if number == 0:
            machine.check()
        return LlvmAddress("global", found)
