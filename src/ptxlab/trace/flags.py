"""Flags: words of global memory by which launches that run at the same time wait for each other.

A flag is read by strong accesses, and is written by a strong access of another launch, or polled. A wait is a row of
reads by one instruction of a warp; it is over once a read has seen what it waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ptxlab.trace.accesses import GLOBAL, Rows
from ptxlab.trace.columns import Numbers

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace
    from ptxlab.trace.traces import Clock

_WEAK = ("weak", "constant")
_LOOP = 16  # groups of entries of a warp between two polls: more, and it does something else


@dataclass(frozen=True)
class FlagWrite:
    """A value that a warp of a launch wrote to a flag, when, and by which instruction."""

    time: int
    launch: int
    warp: int
    instruction: int
    value: int


@dataclass(frozen=True)
class FlagWait:
    """Reads of a flag by one instruction of a warp, until one saw what it waits for."""

    start: int
    end: int
    launch: int
    warp: int
    instruction: int
    polls: int
    is_over: bool
    seen: int
    """Which write of the flag the last of them saw; -1: none."""


@dataclass(frozen=True)
class Flag:
    """A word by which launches wait for each other; times are those of the clock of all launches."""

    name: str
    address: int
    size: int
    initial: int
    writes: Sequence[FlagWrite] = field(repr=False)
    waits: Sequence[FlagWait] = field(repr=False)

    def value(self, time: int) -> int:
        """What it holds at a time."""
        return next((write.value for write in reversed(self.writes) if write.time < time), self.initial)


@dataclass(frozen=True, eq=False)
class _Strong:
    """Strong accesses of a launch to global memory, of a kind."""

    address: Numbers
    size: Numbers
    time: Numbers
    launch: Numbers
    warp: Numbers
    instruction: Numbers
    place: Numbers
    """Which of the groups of its warp it is of."""
    row: Numbers


def flags_of(traces: Sequence[Trace], clocks: Sequence[Clock]) -> list[Flag]:
    """The flags of launches that ran at the same time, in the order in which they are first used."""
    each = list(zip(traces, clocks, strict=True))
    reads = _joined([_strong(trace, clock, number, trace.accesses.reads) for number, (trace, clock) in enumerate(each)])
    writes = _joined(
        [_strong(trace, clock, number, trace.accesses.writes) for number, (trace, clock) in enumerate(each)]
    )
    found = []
    for address in np.unique(reads.address).tolist():
        own, written = (_at(one, address) for one in (reads, writes))
        done = [_write(traces, written, at) for at in range(len(written.time))]
        waits = _waits(traces, own, np.array([one.time for one in done], np.int64))
        readers = set(own.launch.tolist())
        is_between = any({one.launch} != readers for one in done)
        if is_between or any(wait.polls > 1 for wait in waits):
            size = int(own.size.max())
            name, initial = _named(traces[int(own.launch[0])], address, size)
            found.append(Flag(name, address, size, initial, done, waits))
    return sorted(found, key=lambda flag: min([one.start for one in flag.waits] + [one.time for one in flag.writes]))


def _strong(trace: Trace, clock: Clock, number: int, rows: Rows) -> _Strong:
    """The strong accesses of a launch among some of its accesses, in their order."""
    program, steps = trace.program, trace.warp_steps
    matches = [program.match(at) for at in range(len(program.instructions))]
    strong = [
        one is not None and any(access.order not in _WEAK for access in one.effects.accesses) for one in matches
    ]  # fmt: skip
    is_strong = np.array([*strong, False])
    chosen = np.flatnonzero((rows.space == GLOBAL) & (rows.event < 0) & is_strong[rows.instruction])
    chosen = chosen[~trace.accesses.are_of_module(rows.address[chosen])]
    rows = rows.take(chosen)
    groups = steps.group_of[rows.entry] if len(rows) else rows.entry
    places = np.zeros(len(steps.warp), np.int64)
    for warp in steps.warps:
        own = steps.groups_of(warp)
        places[own] = np.arange(len(own))
    time = clock.times_of(steps.when(rows)) if len(rows) else rows.entry
    warps = steps.warp[groups] if len(rows) else rows.entry
    launch = np.full(len(rows), number, np.int64)
    place = places[groups] if len(rows) else rows.entry
    return _Strong(rows.address, rows.size, time, launch, warps, rows.instruction, place, chosen)


def _joined(parts: Sequence[_Strong]) -> _Strong:
    names = _Strong.__dataclass_fields__
    joined = _Strong(*(np.concatenate([getattr(one, name) for one in parts]) for name in names))
    return _taken(joined, np.lexsort((joined.time, joined.address)))


def _taken(given: _Strong, chosen: Numbers | slice) -> _Strong:
    return _Strong(*(getattr(given, name)[chosen] for name in _Strong.__dataclass_fields__))


def _at(given: _Strong, address: int) -> _Strong:
    low, high = (int(np.searchsorted(given.address, address, side)) for side in ("left", "right"))
    return _taken(given, slice(low, high))


def _write(traces: Sequence[Trace], written: _Strong, at: int) -> FlagWrite:
    launch = int(written.launch[at])
    accesses = traces[launch].accesses
    value = int.from_bytes(accesses.bytes_of(accesses.writes, int(written.row[at])), "little")
    return FlagWrite(int(written.time[at]), launch, int(written.warp[at]), int(written.instruction[at]), value)


def _waits(traces: Sequence[Trace], reads: _Strong, written: Numbers) -> list[FlagWait]:
    """Rows of reads by one instruction of a warp, near each other."""
    order = np.lexsort((reads.time, reads.instruction, reads.warp, reads.launch))
    own = _taken(reads, order)
    same = [np.diff(column, prepend=-1) != 0 for column in (own.launch, own.warp, own.instruction)]
    starts = np.flatnonzero(np.logical_or.reduce(same) | (np.diff(own.place, prepend=0) > _LOOP))
    found = []
    for first, past in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        last, launch, warp = past - 1, int(own.launch[first]), int(own.warp[first])
        steps = traces[launch].warp_steps
        is_last = int(own.place[last]) + _LOOP >= len(steps.groups_of(warp))
        end = int(own.time[last])
        found.append(FlagWait(
            int(own.time[first]), end, launch, warp, int(own.instruction[first]), past - first,
            traces[launch].is_complete or not is_last, int(np.searchsorted(written, end)) - 1,
        ))  # fmt: skip
    return sorted(found, key=lambda wait: wait.start)


def _named(trace: Trace, address: int, size: int) -> tuple[str, int]:
    """What a word is called, and what it holds before anything is written."""
    region = trace.accesses.region_at(address)
    if region is None:
        return f"{address:#x}", 0
    start = address - region.base
    where = region.element(address, size).removeprefix(region.short)
    return f"{region.name.replace('`', '')}{where}", int.from_bytes(region.data[start : start + size], "little")
