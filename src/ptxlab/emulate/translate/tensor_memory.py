"""Tensor memory in the code of a kernel: what instructions ask for goes to the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import state
from ptxlab.emulate.runtime.order.tensor_happens_before import MOVE
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_LOADS, TENSOR_STORES
from ptxlab.emulate.runtime.tensor_memory.commits import SEVERAL
from ptxlab.emulate.translate.values import Address, Value
from ptxlab.isa.asynchronous import MatrixCopy, Mma
from ptxlab.isa.types import type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import Machine


class TensorMemory:
    """`k.tensor_memory`, see `isa.asynchronous`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def address(self, taddr: Address) -> Value:
        return self._machine.cast(taddr.value, "u32")

    def allocate(self, columns: Value) -> Value:
        found = self._machine.ask_runtime("allocate_columns", columns, self._machine.place, result="u32")
        self._machine.check()
        return found

    def free(self, address: Value, columns: Value) -> None:
        self._machine.runtime("free_columns", address, columns, self._machine.place)
        self._machine.check()

    def relinquish(self) -> None:
        self._machine.runtime("relinquish_columns")

    def route(self, address: Value) -> Value:
        return self._machine.ask_runtime("route_lanes", address, result="u32")

    def start_load(self, address: Value, is_uniform: Value, lanes: int, columns: int, split: int) -> None:
        given = (address, is_uniform, lanes, columns, split)
        self._machine.runtime("access_cells", *given, state.LOAD, MOVE, TENSOR_LOADS, self._machine.place)
        self._machine.check()

    def start_store(self, address: Value, is_uniform: Value, lanes: int, columns: int, split: int) -> None:
        given = (address, is_uniform, lanes, columns, split)
        self._machine.runtime("access_cells", *given, state.STORE, MOVE, TENSOR_STORES, self._machine.place)
        self._machine.check()

    def read(self, word: Value) -> Value:
        return self._machine.ask_runtime("read_cell", word, result="u32")

    def write(self, word: Value, value: Value, mask: int) -> None:
        bits = Value(self._machine.function, type_named("u32"), value.text)
        self._machine.runtime("write_cell", word, bits, mask)

    def multiply(self, mma: Mma[Value, Address]) -> None:
        machine = self._machine
        masks: list[Value | int] = [*mma.disabled_lanes]
        masks += [0] * (8 - len(masks))
        scales = [0 if scale is None else self.address(scale) for scale in (mma.scale_a, mma.scale_b)]
        machine.runtime(
            "start_product",
            self.address(mma.d),
            mma.a,
            int(mma.a_in_tensor_memory),
            mma.b,
            mma.instruction_descriptor,
            mma.kind,
            machine.cast(mma.accumulate, "u32"),
            mma.scale_d,
            *masks,
            *scales,
            mma.scale_factors,
            mma.form,
            machine.place,
        )
        machine.check()
        machine.function.unit.counting.note_change(machine.function, "shared")

    def copy(self, copy: MatrixCopy[Value, Address]) -> None:
        machine = self._machine
        given = (copy.descriptor, copy.rows, copy.chunks, copy.step, copy.stride, copy.copies)
        machine.runtime("start_tensor_copy", self.address(copy.address), *given, machine.place)
        machine.check()

    def commit(self, barrier: Address, blocks: Value | None = None) -> None:
        machine = self._machine
        given = 0 if blocks is None else blocks | SEVERAL
        machine.runtime("start_commit", machine.shared_offset(barrier), given, machine.place)
        machine.check()
        machine.function.unit.counting.note_change(machine.function, "shared")

    def wait(self, stores: bool) -> None:
        self._machine.runtime("wait_for_cells", int(stores))

    def fence(self, after: bool) -> None:
        self._machine.runtime("fence_after" if after else "fence_before")
