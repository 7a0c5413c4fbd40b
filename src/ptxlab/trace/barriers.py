"""Barriers of a recorded launch at any time: mbarriers with their phases, arrivals and bytes, and those of a block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxlab.device.trace_format import ARRIVED, AT_BARRIER, COMPLETED, EXPECTED, INITIALISED, OBSERVED, OPENED, PHASE
from ptxlab.trace.columns import Columns, Numbers


@dataclass(frozen=True)
class Mbarrier:
    """An mbarrier: which phase it is in, and what that still waits for."""

    block: int
    address: int
    name: str
    expected: int
    """Arrivals that each phase expects."""
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
class Barrier:
    """One of the sixteen barriers of a block: how many threads have arrived, and how often it was complete."""

    block: int
    number: int
    arrived: int = 0
    completed: int = 0

    def __str__(self) -> str:
        return f"barrier {self.number}: {self.arrived} arrived, complete {self.completed} times"


class Barriers:
    """All that happened to barriers, by barrier."""

    def __init__(self, columns: Columns) -> None:
        events = columns.events
        self._times = 2 * columns.first_step[np.minimum(events["time"].astype(np.int64), len(columns))]
        chosen = np.flatnonzero((events["kind"] >= INITIALISED) & (events["kind"] <= OPENED))
        is_mbarrier = events["kind"][chosen] < AT_BARRIER
        places = np.zeros(len(chosen), [("block", "u8"), ("address", "u8"), ("is_mbarrier", "?")])
        places["block"], places["is_mbarrier"] = events["block"][chosen], is_mbarrier
        places["address"] = np.where(is_mbarrier, events["address"][chosen], events["operation"][chosen])
        self._events = events
        found, first, inverse = np.unique(places, return_index=True, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        cuts = np.searchsorted(inverse[order], np.arange(len(found) + 1))
        self._of = [
            (found[number], chosen[order[cuts[number] : cuts[number + 1]]]) for number in np.argsort(first).tolist()
        ]

    def at(self, names: dict[int, str], key: int) -> list[Mbarrier | Barrier]:
        """The barriers before `key`, in the order in which they were first used."""
        past = int(np.searchsorted(self._times, key))
        found: list[Mbarrier | Barrier] = []
        for place, events in self._of:
            before = events[: np.searchsorted(events, past)]
            if len(before):
                block, address = int(place["block"]), int(place["address"])
                one = self._mbarrier(block, address, names, before) if place["is_mbarrier"] else None
                found.append(one or self._barrier(block, address, before))
        return found

    def _after_last(self, events: Numbers, kinds: tuple[int, ...]) -> Numbers:
        """The events after the last of some kinds."""
        of = np.flatnonzero(np.isin(self._events["kind"][events], kinds))
        return events[of[-1] + 1 :] if len(of) else events

    def _barrier(self, block: int, number: int, events: Numbers) -> Barrier:
        completed = int((self._events["kind"][events] == OPENED).sum())
        return Barrier(block, number, len(self._after_last(events, (OPENED,))), completed)

    def _mbarrier(self, block: int, address: int, names: dict[int, str], events: Numbers) -> Mbarrier:
        first = np.flatnonzero(self._events["kind"][events] == INITIALISED)
        start = int(first[-1]) if len(first) else 0
        expected = int(self._events["size"][events[start]])
        since = events[start + 1 :]
        phase = int((self._events["kind"][since] == PHASE).sum())
        now = self._after_last(since, (PHASE,))
        kinds, sizes = self._events["kind"][now], self._events["size"][now].astype(np.int64)
        arrived = now[kinds == ARRIVED]
        missing = int(self._events["offset"][arrived[-1]]) if len(arrived) else expected
        bytes = int(sizes[kinds == EXPECTED].sum() - sizes[kinds == COMPLETED].sum())
        waits = int((kinds == OBSERVED).sum())
        return Mbarrier(block, address, names.get(address, ""), expected, missing, bytes, phase, waits)
