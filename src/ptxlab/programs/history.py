"""What the PEs of a program have done since their last barrier, to be judged as if it had run at the same time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.device import layout
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.regions import Region
from ptxlab.emulate.host.module_memory import ModuleMemory
from ptxlab.programs.queue import Queued, QueuedLaunch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptxlab.programs.device_memory import DeviceMemory
    from ptxlab.programs.runs import Runner

_MOST = 512  # operations that are judged together


class History:
    """Operations of all PEs, each with the number of the run that it was part of."""

    def __init__(self, memory: DeviceMemory, has_network: bool) -> None:
        """With a network, what was sent may be delivered after its kernel has ended."""
        self._memory, self._has_network = memory, has_network
        self._start()

    def _start(self) -> None:
        self._operations: list[Queued] = []
        self._runs: list[int] = []
        self._count = 0  # runs so far
        self._bytes: dict[int, NDArray[Any]] | None = None  # of memory, before the first of them
        self._variables: list[tuple[ModuleMemory, Variables]] = []
        self._regions: dict[int, Region] = {}

    @property
    def is_full(self) -> bool:
        return len(self._operations) >= _MOST

    def begin(self, operations: Sequence[Queued]) -> None:
        """Operations run next; the first time, keep what memory holds before."""
        if self._bytes is None:
            self._bytes = self._held()
        self._regions |= self._memory.regions
        for memory in filter(None, map(_memory_of, operations)):
            if not any(memory is other for other, _ in self._variables):
                self._variables.append((memory, _variables_of(memory)))

    def add(self, operations: Sequence[Queued]) -> None:
        """Operations that run at the same time."""
        self._count += 1
        for one in operations:
            self._operations.append(one)
            self._runs.append(self._count)

    def is_before(self, barrier: Mapping[int, QueuedLaunch]) -> bool:
        """Whether each PE has had all of it complete before its barrier."""
        each = ((one, barrier[one.order.process]) for one in self._operations)
        return all(one is last or last.order.comes_after(one.order) for one, last in each)

    def _is_needed(self) -> bool:
        """Whether operations that nothing orders ran one after the other, and may access the same memory."""
        shared = [(one, run) for one, run in zip(self._operations, self._runs, strict=True) if self._is_shared(one)]
        of_pes: dict[int, set[int]] = {}
        for one, run in shared:
            of_pes.setdefault(run, set()).add(one.order.process)
        if len(of_pes) > 1 and (self._has_network or len(set.union(*of_pes.values())) > 1):
            return True
        return any(
            run != other_run and one.order.process == other.order.process and not one.order.comes_after(other.order)
            for at, (one, run) in enumerate(shared)
            for other, other_run in shared[:at]
        )

    def _is_shared(self, one: Queued) -> bool:
        """Whether an operation may access memory that others access: NVSHMEM's own synchronization does not."""
        if isinstance(one, QueuedLaunch):
            return one.call is None or not one.call.is_synchronization
        if one.is_large:
            return False
        return any(map(self._memory.is_symmetric, (one.to, 0 if one.element or len(one.staged) else one.source)))

    def judge(self, runner: Runner) -> None:
        """Run all of it once more, where that may find something, and forget it; memory stays as it is."""
        if not self._operations or self._bytes is None:
            return
        if not self._is_needed():
            self._start()
            return
        operations, memory = self._operations, self._memory
        put_back = self.kept(operations)
        kept = memory.regions
        memory.regions = {**self._regions, **kept}
        try:
            for base, region in memory.regions.items():
                if region.owner_device is not None:
                    there = memory.bytes_at(base, region.size)
                    there[:] = self._bytes.get(base, 0)
            _restore(self._variables)
            found = runner.judge_pes(operations)
            runner.note([one for one in found if one.code in DETECTORS], ())
        finally:
            memory.regions = kept
            put_back()
            self._start()

    def kept(self, operations: Sequence[Queued]) -> Callable[[], None]:
        """Keep what memory of the GPUs holds, and variables that operations may write: what puts that back."""
        held = self._held()
        memories = {id(one): one for one in map(_memory_of, operations) if one is not None}
        variables = [(one, _variables_of(one)) for one in memories.values()]

        def put_back() -> None:
            for base, data in held.items():
                self._memory.bytes_at(base, len(data))[:] = data
            _restore(variables)

        return put_back

    def _held(self) -> dict[int, NDArray[Any]]:
        """What memory of the GPUs holds."""
        regions = self._memory.regions.items()
        return {
            base: self._memory.bytes_at(base, one.size).copy() for base, one in regions if one.owner_device is not None
        }


Variables = dict[layout.VariableKey, bytes]
"""What variables of a module hold."""


def _memory_of(one: Queued) -> ModuleMemory | None:
    """The variables of the module of a kernel, as its GPU has them."""
    return one.loaded.emulated(one.order.device).memory if isinstance(one, QueuedLaunch) else None


def _variables_of(memory: ModuleMemory) -> Variables:
    return {key: one.raw for key, one in memory.variables.items()}


def _restore(held: Sequence[tuple[ModuleMemory, Variables]]) -> None:
    for memory, variables in held:
        for key, data in variables.items():
            ctypes.memmove(memory.variables[key], data, len(data))
