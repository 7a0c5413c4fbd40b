"""Barriers of a recorded launch at any time: mbarriers with their phases, arrivals and bytes, and those of a block."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ptxlab.trace.columns import Columns

INITIALISED, ARRIVED, EXPECTED, COMPLETED, PHASE, OBSERVED, AT_BARRIER, OPENED = range(4, 12)


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


def barriers_at(columns: Columns, names: dict[int, str], key: int) -> list[Mbarrier | Barrier]:
    """The barriers before `key`, in the order in which they were first used."""
    found: dict[tuple[int, int, str], Mbarrier | Barrier] = {}
    last = len(columns)
    for event in columns.events:
        kind = int(event["kind"])
        if kind < INITIALISED or kind > OPENED:
            continue
        if 2 * int(columns.first_step[min(int(event["time"]), last)]) >= key:
            break
        block, address, size = int(event["block"]), int(event["address"]), int(event["size"])
        if kind >= AT_BARRIER:
            number = int(event["operation"])
            place = block, number, "barrier"
            barrier = found.get(place, Barrier(block, number))
            assert isinstance(barrier, Barrier)
            found[place] = _change_barrier(barrier, kind)
            continue
        place = block, address, "mbarrier"
        if kind == INITIALISED:
            found[place] = Mbarrier(block, address, names.get(address, ""), size, size)
            continue
        mbarrier = found.get(place)
        if isinstance(mbarrier, Mbarrier):
            found[place] = _change_mbarrier(mbarrier, kind, size, int(event["extra"]))
    return list(found.values())


def _change_barrier(barrier: Barrier, kind: int) -> Barrier:
    if kind == OPENED:
        return replace(barrier, arrived=0, completed=barrier.completed + 1)
    return replace(barrier, arrived=barrier.arrived + 1)


def _change_mbarrier(barrier: Mbarrier, kind: int, size: int, extra: int) -> Mbarrier:
    if kind == ARRIVED:
        return replace(barrier, missing=extra)
    if kind in (EXPECTED, COMPLETED):
        return replace(barrier, bytes=barrier.bytes + (size if kind == EXPECTED else -size))
    if kind == PHASE:
        return replace(barrier, missing=barrier.expected, bytes=0, phase=barrier.phase + 1, waits=0)
    return replace(barrier, waits=barrier.waits + 1)
