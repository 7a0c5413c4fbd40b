"""Barriers of a recorded launch at any time: mbarriers with their phases, arrivals and bytes, and those of a block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.layout import shared_variables
from ptxlab.device.trace_format import ARRIVED, AT_BARRIER, COMPLETED, EXPECTED, INITIALIZED, OBSERVED, OPENED, PHASE
from ptxlab.trace.columns import Numbers, stable_order

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace


@dataclass(frozen=True)
class MbarrierState:
    """An mbarrier: which phase it is in, and what that still waits for."""

    block: int
    address: int
    name: str
    expected: int
    """Arrivals that this phase expects."""
    missing: int
    """Arrivals that this phase waits for."""
    bytes: int = 0
    """Bytes that this phase waits for."""
    phase: int = 0
    """Phases that are complete."""
    waits: int = 0
    """Waits of threads that have seen the last complete phase."""

    def __str__(self) -> str:
        seen = f"{self.expected - self.missing} of {self.expected} arrivals"
        return f"{self.name or self.address}: phase {self.phase}, {seen}, {self.bytes} bytes pending"


@dataclass(frozen=True)
class BarrierState:
    """One of the sixteen barriers of a block: how many threads have arrived, and how often it was complete."""

    block: int
    number: int
    arrived: int
    completed: int

    def __str__(self) -> str:
        return f"barrier {self.number}: {self.arrived} arrived, complete {self.completed} times"


@dataclass(frozen=True, eq=False)
class BarrierHistory:
    """All that happened to a barrier: the events, and its state after each; see `MbarrierState`.

    Of a barrier of the block, `missing` are the threads that have arrived, and `phase` is how often it was complete.
    """

    block: int
    address: int
    is_mbarrier: bool
    events: Numbers
    expected: Numbers
    missing: Numbers
    bytes: Numbers
    phase: Numbers
    waits: Numbers

    def at(self, index: int, name: str) -> MbarrierState | BarrierState:
        """The barrier after one of the events."""
        columns = self.expected, self.missing, self.bytes, self.phase, self.waits
        expected, missing, bytes, phase, waits = (int(column[index]) for column in columns)
        if not self.is_mbarrier:
            return BarrierState(self.block, self.address, missing, phase)
        return MbarrierState(self.block, self.address, name, expected, missing, bytes, phase, waits)


class BarriersByBlock:
    """All that happened to barriers, by block."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._events = trace.columns.events
        self.histories = lru_cache(maxsize=64)(self._find_histories)
        self.names = {start: variable.title for variable, start in shared_variables(trace.program.variables)}

    @cached_property
    def _by_block(self) -> tuple[Numbers, Numbers]:
        """The events of barriers, those of the barriers of one block together, and which block that is."""
        chosen = np.flatnonzero((self._events["kind"] >= INITIALIZED) & (self._events["kind"] <= OPENED))
        blocks = self._events["block"][chosen].astype(np.int64)
        order = stable_order(blocks)
        return chosen[order], blocks[order]

    @cached_property
    def has_mbarriers(self) -> bool:
        """Whether any block has one."""
        return bool((self._events["kind"][self._by_block[0]] < AT_BARRIER).any())

    def at(self, key: int) -> list[MbarrierState | BarrierState]:
        """The barriers of all blocks before `key`, in the order in which they were first used."""
        columns = self._trace.columns
        past = int(np.searchsorted(columns.first_step[np.minimum(self._times, len(columns))] * 2, key))
        found = [
            (int(one.events[0]), one.at(count - 1, self.names.get(one.address, "")))
            for block in np.unique(self._by_block[1]).tolist()
            for one in self.histories(block)
            if (count := int(np.searchsorted(one.events, past)))
        ]
        return [one for _, one in sorted(found, key=lambda first: first[0])]

    @cached_property
    def _times(self) -> Numbers:
        found: Numbers = self._events["time"].astype(np.int64)
        return found

    def _find_histories(self, block: int) -> list[BarrierHistory]:
        """Of each barrier of a block, in the order in which they are first used."""
        order, blocks = self._by_block
        chosen = order[np.searchsorted(blocks, block) : np.searchsorted(blocks, block, "right")]
        events = self._events[chosen]
        is_mbarrier = events["kind"] < AT_BARRIER
        addresses = np.where(is_mbarrier, events["address"], events["operation"]).astype(np.int64)
        places = np.stack([is_mbarrier.astype(np.int64), addresses], axis=1)
        found, first, inverse = np.unique(places, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        return [self._history(block, found[number], chosen[inverse == number]) for number in np.argsort(first).tolist()]

    def _history(self, block: int, place: Numbers, events: Numbers) -> BarrierHistory:
        is_mbarrier, address = place.tolist()
        states = self._mbarrier_states(events) if is_mbarrier else self._barrier_states(events)
        return BarrierHistory(block, address, bool(is_mbarrier), events, *states)

    def _mbarrier_states(self, events: Numbers) -> tuple[Numbers, ...]:
        """Arrivals expected and missing, pending bytes, complete phases, and waits, after each event."""
        kinds, sizes = self._events["kind"][events], self._events["size"][events].astype(np.int64)
        starts, ends = kinds == INITIALIZED, kinds == PHASE
        arrived = np.where(kinds == ARRIVED, sizes, 0)
        dropped = np.where(self._drops[self._events["instruction"][events]], arrived, 0)
        # What threads have dropped out of, phases after it do not expect.
        fewer = _since(starts, dropped) - _since(starts | ends, dropped)
        expected = _since(starts, np.where(starts, sizes, 0), is_included=True) - fewer
        bytes = np.where(kinds == EXPECTED, sizes, 0) - np.where(kinds == COMPLETED, sizes, 0)
        resets = starts | ends
        return (
            expected, expected - _since(resets, arrived), _since(resets, bytes), _since(starts, ends),
            _since(resets, kinds == OBSERVED),
        )  # fmt: skip

    def _barrier_states(self, events: Numbers) -> tuple[Numbers, ...]:
        kinds, sizes = self._events["kind"][events], self._events["size"][events].astype(np.int64)
        opened, nothing = kinds == OPENED, np.zeros(len(events), np.int64)
        expected = _since(opened, np.where(opened, sizes, 0), is_included=True)
        return expected, _since(opened, kinds == AT_BARRIER), nothing, np.cumsum(opened), nothing

    @cached_property
    def _drops(self) -> Any:
        """By instruction: whether it arrives, and drops out of the phases that follow."""
        program = self._trace.program
        matches = [program.match(number) for number in range(len(program.instructions))]
        return np.array([one is not None and one.effects.does("mbarrier", "drop") for one in matches] or [False])


def _since(starts: Any, amounts: Any, *, is_included: bool = False) -> Numbers:
    """Sums of amounts after the last start before each of them, or from that on."""
    total = np.cumsum(amounts)
    last = np.maximum.accumulate(np.where(starts, np.arange(len(total)), -1))
    before: Numbers = np.where(last >= 0, total[last] - (amounts[last] if is_included else 0), 0)
    return total - before
