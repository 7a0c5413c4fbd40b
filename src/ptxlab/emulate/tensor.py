"""Tensor memory in the code of a kernel: what instructions ask for goes to the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxlab.emulate import state
from ptxlab.emulate.runtime.clocks import TENSOR_LOADS, TENSOR_STORES
from ptxlab.emulate.runtime.tensor_before import MOVE
from ptxlab.emulate.runtime.tensor_work import SEVERAL
from ptxlab.emulate.values import Address, Value
from ptxlab.isa.types import type_named

if TYPE_CHECKING:
    from ptxlab.emulate.machine import Machine


def use(machine: Machine, operation: str, values: tuple[Address | Value | int, ...]) -> Value | None:
    """Do something with tensor memory."""
    return _OPERATIONS[operation](machine, *values)


def _address(machine: Machine, address: Address) -> Value:
    return machine.cast(address.value, "u32")


def _allocate(machine: Machine, columns: Value) -> Value | None:
    found = machine.runtime("allocate_columns", columns, machine.place, result="u32")
    machine.check()
    return found


def _free(machine: Machine, address: Value, columns: Value) -> None:
    machine.runtime("free_columns", address, columns, machine.place)
    machine.check()


def _relinquish(machine: Machine) -> None:
    machine.runtime("relinquish_columns")


def _load(machine: Machine, address: Value, is_uniform: Value, lanes: int, columns: int, split: int) -> None:
    given = (address, is_uniform, lanes, columns, split)
    machine.runtime("access_cells", *given, state.LOAD, MOVE, TENSOR_LOADS, machine.place)
    machine.check()


def _store(machine: Machine, address: Value, is_uniform: Value, lanes: int, columns: int, split: int) -> None:
    given = (address, is_uniform, lanes, columns, split)
    machine.runtime("access_cells", *given, state.STORE, MOVE, TENSOR_STORES, machine.place)
    machine.check()


def _read(machine: Machine, cell: Value) -> Value | None:
    return machine.runtime("read_cell", cell, result="u32")


def _write(machine: Machine, cell: Value, value: Value, mask: int) -> None:
    machine.runtime("write_cell", cell, Value(machine.function, type_named("u32"), value.text), mask)


def _multiply(machine: Machine, *values: Address | Value | int) -> None:
    given = [machine.cast(value.value, "u32") if isinstance(value, Address) else value for value in values]
    machine.runtime("start_product", *given, machine.place)
    machine.check()
    machine.function.unit.counting.note_change(machine.function, "shared")


def _copy(machine: Machine, address: Address, *values: Value | int) -> None:
    machine.runtime("start_tensor_copy", machine.cast(address.value, "u32"), *values, machine.place)
    machine.check()


def _commit(machine: Machine, barrier: Address, blocks: Value | None = None) -> None:
    given = 0 if blocks is None else blocks | SEVERAL
    machine.runtime("start_commit", machine.shared_offset(barrier), given, machine.place)
    machine.check()
    machine.function.unit.counting.note_change(machine.function, "shared")


def _wait(machine: Machine, stores: int) -> None:
    machine.runtime("wait_for_cells", stores)


def _fence(machine: Machine, is_after: int) -> None:
    machine.runtime("fence_after" if is_after else "fence_before")


_OPERATIONS: dict[str, Callable[..., Value | None]] = {
    "address": _address,
    "allocate": _allocate,
    "free": _free,
    "relinquish": _relinquish,
    "load": _load,
    "store": _store,
    "read": _read,
    "write": _write,
    "multiply": _multiply,
    "copy": _copy,
    "commit": _commit,
    "wait": _wait,
    "fence": _fence,
}
