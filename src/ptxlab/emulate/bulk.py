"""Bulk copies in the code of a kernel: what is begun goes to the runtime, and is counted and watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.emulate import state
from ptxlab.emulate.runtime.reductions import OPERATIONS, TYPES
from ptxlab.emulate.values import Address, Value

if TYPE_CHECKING:
    from ptxlab.emulate.machine import Machine


def transfer(machine: Machine, operation: str, values: Sequence[Any]) -> None:
    """Begin a copy, or do something with groups of them."""
    _OPERATIONS[operation](machine, *values)


def _load(
    machine: Machine,
    to: Address,
    source: Address,
    size: Value,
    edges: tuple[Value | int, Value | int],
    barrier: Address,
    blocks: Value | None,
) -> None:
    """Copy from global to shared memory, perhaps of several blocks."""
    watched = machine.function.unit.watching.watches(machine.function, 1)
    place, told = machine.shared_offset(to), machine.shared_offset(barrier)
    if blocks is None:
        given = (place, source.value, size, *edges, told, _space(machine), watched)
        machine.runtime("start_load", *given, machine.place)
    else:
        machine.runtime("multicast_load", place, source.value, size, told, blocks, watched, machine.place)
    _end(machine, to, source, size)


def _space(machine: Machine) -> int:
    """Whether a copy may write shared memory of other blocks."""
    assert machine.instruction is not None
    words = machine.instruction.opcode.modifiers
    return state.CLUSTER_SPACE if "shared::cluster" in words else state.SHARED_SPACE


def _store(
    machine: Machine,
    to: Address,
    source: Address,
    size: Value,
    mask: Value | int,
    reduction: str,
    type: str,
) -> None:
    """Copy from shared to global memory."""
    given = (to.value, machine.shared_offset(source), size, mask, OPERATIONS.get(reduction, 0), TYPES.get(type, 0))
    machine.runtime("start_store", *given, machine.place)
    machine.function.unit.watching.note_written(machine.function, 0)
    _end(machine, to, source, size, state.ATOMIC if reduction else state.STORE)


def _exchange(
    machine: Machine, to: Address, source: Address, size: Value, barrier: Address, reduction: str, type: str
) -> None:
    """Copy within shared memory."""
    offsets = (machine.shared_offset(to), machine.shared_offset(source))
    given = (*offsets, size, machine.shared_offset(barrier), OPERATIONS.get(reduction, 0), TYPES.get(type, 0))
    machine.runtime("start_exchange", *given, machine.place)
    _end(machine, to, source, size, state.ATOMIC if reduction else state.STORE)


def _put(machine: Machine, to: Address, value: Value, barrier: Address, reduction: str, type: str) -> None:
    """Send a value to shared memory of the cluster."""
    low, high = machine.unpack(value, "b64") if value.type.width == 128 else (value, 0)
    size = value.type.width // 8
    addresses = (machine.shared_offset(to), machine.shared_offset(barrier))
    given = (*addresses, low, high, size, OPERATIONS.get(reduction, 0), TYPES.get(type, 0))
    machine.runtime("start_async_store", *given, machine.place)
    machine.check()
    counting = machine.function.unit.counting
    counting.note_change(machine.function, "shared")
    counting.count_bytes(machine.function, to, size, state.ATOMIC if reduction else state.STORE)


# Boxes of tensors.


def _tensor_load(
    machine: Machine,
    to: Address,
    map: Address,
    coordinates: Sequence[Value],
    barrier: Address,
    blocks: Value | None,
) -> None:
    """Copy a box of a tensor to shared memory, perhaps of several blocks."""
    function = machine.function
    where = _space(machine) if blocks is None else blocks
    place = (machine.shared_offset(to), machine.shared_offset(barrier), where)
    watched = function.unit.watching.watches_map(function, 1)
    name = "start_tensor_load" if blocks is None else "multicast_tensor_load"
    machine.runtime(name, *_box(machine, map, coordinates), *place, watched, machine.place)
    machine.check()
    function.unit.counting.note_change(function, to.space)


def _tensor_store(
    machine: Machine, map: Address, coordinates: Sequence[Value], source: Address, reduction: str
) -> None:
    """Copy a box in shared memory to a tensor."""
    function = machine.function
    given = (*_box(machine, map, coordinates), machine.shared_offset(source), OPERATIONS.get(reduction, 0))
    machine.runtime("start_tensor_store", *given, machine.place)
    function.unit.watching.note_written_map(function, 0)
    machine.check()
    function.unit.counting.note_change(function, "global")


def _tensor_prefetch(machine: Machine, map: Address, coordinates: Sequence[Value]) -> None:
    machine.runtime("check_map", _generic(map), len(coordinates), machine.place)
    machine.check()


def _box(machine: Machine, map: Address, coordinates: Sequence[Value]) -> list[Value | int]:
    """A tensor map, its rank, and five coordinates, of which it needs as many as that."""
    return [_generic(map), len(coordinates), *coordinates, *[0] * (5 - len(coordinates))]


def _generic(map: Address) -> Value:
    """The generic address of a tensor map, which may be a parameter."""
    return map.value + state.PARAMETER_WINDOW if map.space == "param" else map.value


def _cancel(machine: Machine, to: Address, barrier: Address, everyone: int) -> None:
    """Ask for a cluster that has not begun."""
    addresses = (machine.shared_offset(to), machine.shared_offset(barrier))
    machine.runtime("start_cancel", *addresses, everyone, machine.place)
    machine.check()
    machine.function.unit.counting.note_change(machine.function, "shared")
    machine.function.unit.counting.count_bytes(machine.function, to, 16, state.STORE)


def _end(machine: Machine, to: Address, source: Address, size: Value, kind: int = state.STORE) -> None:
    """Stop if something was wrong; count what is moved, and that it changes memory."""
    machine.check()
    counting = machine.function.unit.counting
    counting.note_change(machine.function, to.space)
    counting.count_bytes(machine.function, to, size, kind)
    counting.count_bytes(machine.function, source, size, state.LOAD)


def _prefetch(machine: Machine, source: Address, size: Value) -> None:
    machine.runtime("check_prefetch", source.value, size, machine.place)
    machine.check()


def _commit(machine: Machine) -> None:
    machine.runtime("commit_transfers")


def _wait(machine: Machine, groups: int, reads: int) -> None:
    machine.runtime("wait_for_transfers", groups, reads)
    machine.check()


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "load": _load,
    "store": _store,
    "exchange": _exchange,
    "put": _put,
    "cancel": _cancel,
    "prefetch": _prefetch,
    "commit": _commit,
    "wait": _wait,
    "tensor load": _tensor_load,
    "tensor store": _tensor_store,
    "tensor prefetch": _tensor_prefetch,
}
