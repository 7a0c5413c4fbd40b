"""The stack of a thread in the code of a kernel: `alloca` and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.translate.values import Value
from ptxlab.isa.types import type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import Machine


class Stack:
    """`k.stack`, see `isa.asynchronous`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def save(self, type: str) -> Value:
        function = self._machine.function
        function.unit.uses_stack = True
        return self._machine.cast(
            Value(function, type_named("u64"), function.load_field("memory.local_top", "i64")), type
        )

    def restore(self, pointer: Value) -> None:
        self._machine.function.unit.uses_stack = True
        self._machine.runtime("restore_stack", pointer)

    def allocate(self, size: Value, alignment: int, type: str) -> Value:
        machine = self._machine
        machine.function.unit.uses_stack = True
        found = machine.ask_runtime("grow_stack", size, alignment, machine.place, result=type)
        machine.check()
        return found
