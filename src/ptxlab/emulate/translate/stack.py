"""The stack of a thread in the code of a kernel: `alloca` and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.translate.values import LlvmValue
from ptxlab.isa.types import type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine


class Stack:
    """`k.stack`, see `isa.asynchronous`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def save(self, type: str) -> LlvmValue:
        function = self._machine.function
        function.unit.uses_stack = True
        return self._machine.cast(
            LlvmValue(function, type_named("u64"), function.load_field("memory.local_top", "i64")), type
        )

    def restore(self, pointer: LlvmValue) -> None:
        self._machine.function.unit.uses_stack = True
        self._machine.runtime("restore_stack", pointer)

    def allocate(self, size: LlvmValue, alignment: int, type: str) -> LlvmValue:
        machine = self._machine
        machine.function.unit.uses_stack = True
        found = machine.ask_runtime("grow_stack", size, alignment, machine.number, result=type)
        machine.check()
        return found
