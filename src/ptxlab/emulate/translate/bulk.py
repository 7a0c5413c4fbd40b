"""Bulk copies in the code of a kernel: what is started goes to the runtime, and is counted and tracked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab.device.element_types import TYPES
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.amounts import EXCHANGED, LOADED, MULTICAST, STORED
from ptxlab.emulate.abi.bulk import MODES, AsyncStore, BulkLoad, BulkStore
from ptxlab.emulate.runtime.asynchronous.reductions import OPERATIONS
from ptxlab.emulate.translate.access import SCOPES
from ptxlab.emulate.translate.records import OperationRecord
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.isa.asynchronous import Box, Reduction
from ptxlab.isa.units.tensor_memory import TWO_BLOCKS

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine


class BulkCopies:
    """`k.bulk`, see `isa.asynchronous`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def load(
        self,
        destination: LlvmAddress,
        source: LlvmAddress,
        size: LlvmValue,
        barrier: LlvmAddress,
        blocks: LlvmValue | None,
        ignored: tuple[LlvmValue | int, LlvmValue | int],
    ) -> None:
        function = self._machine.function
        record = OperationRecord(
            BulkLoad,
            destination=self._machine.shared_offset(destination),
            source=source.value,
            barrier=self._machine.shared_offset(barrier),
            size=size,
            left=ignored[0],
            right=ignored[1],
            tracked=function.unit.tracking.tracks(function, 1),
            counter=self._count(destination.space, source.space, *_loaded(blocks)),
            **self._blocks(blocks),
        )
        self._machine.runtime("start_load", record, self._machine.number)
        self._end(destination.space)

    def store(
        self,
        destination: LlvmAddress,
        source: LlvmAddress,
        size: LlvmValue,
        mask: LlvmValue | int,
        reduction: Reduction | None,
    ) -> None:
        machine = self._machine
        given = {"destination": destination.value, "source": machine.shared_offset(source), "size": size, "mask": mask}
        counter = self._count(destination.space, source.space, STORED, kind=_kind(reduction))
        record = OperationRecord(BulkStore, **given, counter=counter, **_numbers(reduction))
        machine.runtime("start_store", record, machine.number)
        machine.function.unit.tracking.note_written(machine.function, 0)
        self._end(destination.space)

    def exchange(
        self,
        destination: LlvmAddress,
        source: LlvmAddress,
        size: LlvmValue,
        barrier: LlvmAddress,
        reduction: Reduction | None,
    ) -> None:
        machine = self._machine
        record = OperationRecord(
            BulkStore,
            destination=machine.shared_offset(destination),
            source=machine.shared_offset(source),
            barrier=machine.shared_offset(barrier),
            size=size,
            counter=self._count(destination.space, source.space, EXCHANGED, kind=_kind(reduction)),
            **_numbers(reduction),
        )
        machine.runtime("start_exchange", record, machine.number)
        self._end(destination.space)

    def put(
        self, destination: LlvmAddress, value: LlvmValue, barrier: LlvmAddress, reduction: Reduction | None
    ) -> None:
        machine = self._machine
        low, high = machine.unpack(value, "b64") if value.type.width == 128 else (value, 0)
        size = value.type.width // 8
        record = OperationRecord(
            AsyncStore,
            destination=machine.shared_offset(destination),
            barrier=machine.shared_offset(barrier),
            low=low,
            high=high,
            size=size,
            **_numbers(reduction),
        )
        machine.runtime("start_async_store", record, machine.number)
        machine.check()
        counting = machine.function.unit.counting
        counting.note_change(machine.function, "shared")
        counting.count_bytes(machine.function, destination, size, _kind(reduction))

    def load_tensor(
        self,
        destination: LlvmAddress,
        map: LlvmAddress,
        box: Box[LlvmValue],
        barrier: LlvmAddress,
        blocks: LlvmValue | None,
    ) -> None:
        machine = self._machine
        function = machine.function
        record = OperationRecord(
            BulkLoad,
            destination=machine.shared_offset(destination),
            source=_generic(map),
            barrier=machine.shared_offset(barrier),
            tracked=function.unit.tracking.watches_map(function, 1),
            map_tracked=function.unit.tracking.tracks(function, 1),
            counter=self._count(destination.space, "global", *_loaded(blocks)),
            **_shape(machine, box),
            **self._blocks(blocks),
        )
        machine.runtime("start_load", record, machine.number)
        self._end(destination.space)

    def store_tensor(
        self, map: LlvmAddress, box: Box[LlvmValue], source: LlvmAddress, reduction: Reduction | None
    ) -> None:
        machine = self._machine
        function = machine.function
        record = OperationRecord(
            BulkStore,
            destination=_generic(map),
            source=machine.shared_offset(source),
            map_tracked=function.unit.tracking.tracks(function, 0),
            counter=self._count("global", source.space, STORED, kind=_kind(reduction)),
            **_shape(machine, box),
            **_numbers(reduction),
        )
        machine.runtime("start_store", record, machine.number)
        function.unit.tracking.note_written_map(function, 0)
        self._end("global")

    def prefetch(self, source: LlvmAddress, size: LlvmValue) -> None:
        self._machine.runtime("check_prefetch", source.value, size, self._machine.number)
        self._machine.check()

    def prefetch_tensor(self, map: LlvmAddress, box: Box[LlvmValue]) -> None:
        function = self._machine.function
        tracked = function.unit.tracking.tracks(function, 0)
        record = OperationRecord(BulkLoad, source=_generic(map), map_tracked=tracked, **_shape(self._machine, box))
        self._machine.runtime("check_map", record, self._machine.number)
        self._machine.check()

    def change_map(self, map: LlvmAddress, is_warp: bool) -> None:
        if map.space != "shared":
            self._machine.runtime("change_map", map.value, int(is_warp), self._machine.number)

    def release_maps(self, scope: str) -> None:
        self._machine.runtime("release_maps", SCOPES[scope])

    def acquire_map(self, map: LlvmAddress, scope: str) -> None:
        self._machine.runtime("acquire_map", map.value, SCOPES[scope], self._machine.number)
        self._machine.check()

    def cancel(self, destination: LlvmAddress, barrier: LlvmAddress, multicast: bool) -> None:
        machine = self._machine
        addresses = (machine.shared_offset(destination), machine.shared_offset(barrier))
        machine.runtime("start_cancel", *addresses, int(multicast), machine.number)
        machine.check()
        machine.function.unit.counting.note_change(machine.function, "shared")
        machine.function.unit.counting.count_bytes(machine.function, destination, 16, address_spaces.STORE)

    def commit(self) -> None:
        self._machine.runtime("commit_transfers")

    def wait(self, groups: int, reads: bool) -> None:
        self._machine.runtime("wait_for_transfers", groups, int(reads), self._machine.number)
        self._machine.check()

    def _blocks(self, blocks: LlvmValue | None) -> dict[str, LlvmValue | int]:
        """The blocks that a copy goes to: one, which may be another one, or those of a mask; and whether in pairs."""
        assert self._machine.instruction is not None
        words = self._machine.instruction.opcode.modifiers
        is_pair = int(TWO_BLOCKS in words)
        if blocks is not None:
            return {"is_multicast": 1, "blocks": blocks, "is_pair": is_pair}
        space = address_spaces.CLUSTER_SPACE if "shared::cluster" in words else address_spaces.SHARED_SPACE
        return {"space": space, "is_pair": is_pair}

    def _count(self, destination: str | None, source: str | None, *names: str, kind: int = address_spaces.STORE) -> int:
        """The counters of what is moved from one state space to another."""
        function = self._machine.function
        return function.unit.counting.count_copy(function, destination, source, kind, names)

    def _end(self, destination: str | None) -> None:
        """Stop if something was wrong; note that it changes memory."""
        self._machine.check()
        self._machine.function.unit.counting.note_change(self._machine.function, destination)


def _loaded(blocks: LlvmValue | None) -> tuple[str, ...]:
    """What the bytes of a load are counted as."""
    return (LOADED,) if blocks is None else (LOADED, MULTICAST)


def _numbers(reduction: Reduction | None) -> dict[str, int]:
    """A reduction as the runtime numbers it."""
    if reduction is None:
        return {}
    return {"reduction": OPERATIONS[reduction.operation], "type": TYPES.get(reduction.type, 0)}


def _shape(machine: LlvmMachine, box: Box[LlvmValue]) -> dict[str, Any]:
    """How a box is cut out of its tensor."""
    found: dict[str, Any] = {"rank": box.rank, "mode": MODES[box.mode], "coordinates": box.coordinates}
    if box.offsets:
        found["offsets"] = [machine.cast(offset, "u32") for offset in box.offsets]
    return found


def _kind(reduction: Reduction | None) -> int:
    return address_spaces.STORE if reduction is None else address_spaces.ATOMIC


def _generic(map: LlvmAddress) -> LlvmValue:
    """The generic address of a tensor map, which may be a parameter."""
    return map.value + address_spaces.PARAMETER_WINDOW if map.space == "param" else map.value
