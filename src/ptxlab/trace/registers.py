"""The registers of a thread at any time of a recorded launch, and all that were written to one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxlab.device.trace_format import ENTERS, LEAVES
from ptxlab.trace.columns import Columns, Numbers, Slot


@dataclass(frozen=True, slots=True)
class Written:
    """A register that was written: in which entry, to which slot, and when; see `Columns.keys`."""

    entry: int
    slot: Slot
    key: int


def depths(columns: Columns, entries: Numbers) -> tuple[Numbers, Numbers]:
    """How many calls each of a thread's entries is inside of, and how many after it; `entries` start with its first."""
    flags = np.array([segment.flags for segment in columns.segments] or [0])[columns.segment[entries]]
    leaves = (flags & LEAVES != 0).astype(np.int64)
    after: Numbers = np.cumsum(flags & ENTERS != 0) - np.cumsum(leaves)
    return after + leaves, after


def by_number(name: str) -> tuple[str, int]:
    """A key that sorts `%r2` before `%r10`."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or -1)


def frame_of(columns: Columns, thread: int, key: int) -> Numbers:
    """The entries before `key` of the function that a thread runs then, in order."""
    entries = columns.entries_by(thread)
    entries = entries[: np.searchsorted(2 * columns.first_step[entries], key)]
    if not columns.has_calls or not len(entries):
        return entries
    depth, after = depths(columns, entries)
    now = int(after[-1])
    below = np.flatnonzero(depth < now)
    start = int(below[-1]) + 1 if len(below) else 0
    frame: Numbers = entries[start:][depth[start:] == now]
    return frame


def depth_of(columns: Columns, thread: int, key: int) -> int:
    """How many functions have been called, and not returned from, by a thread before `key`."""
    if not columns.has_calls:
        return 0
    entries = columns.entries_by(thread)
    entries = entries[: np.searchsorted(2 * columns.first_step[entries], key)]
    _, after = depths(columns, entries)
    return int(after[-1]) if len(after) else 0


def last_writes(columns: Columns, thread: int, key: int) -> dict[str, Written]:
    """For each register of the running function, its last write before `key`."""
    entries = frame_of(columns, thread, key)
    found: dict[str, Written] = {}
    segments = columns.segment[entries]
    last = np.full(len(columns.segments), -1)
    last[segments] = np.arange(len(entries))
    for number in np.flatnonzero(last >= 0):
        for name, slots in columns.segments[number].registers.items():
            for slot in slots:
                written = _last(columns, entries, int(number), int(last[number]), slot, key)
                if written is not None and (name not in found or _order(found[name]) <= _order(written)):
                    found[name] = written
    return found


def last_write(columns: Columns, thread: int, name: str, key: int) -> Written | None:
    """The last write of one register before `key`."""
    frame = frame_of(columns, thread, key) if columns.has_calls else None
    best: Written | None = None
    for number in columns.writers(name):
        entries = columns.entries_by_segment(thread, number)
        if frame is not None:
            entries = np.intersect1d(entries, frame, assume_unique=True)
        entries = entries[: np.searchsorted(2 * columns.first_step[entries], key)]
        for slot in columns.segments[number].registers[name]:
            written = _last(columns, entries, number, len(entries) - 1, slot, key) if len(entries) else None
            if written is not None and (best is None or _order(best) <= _order(written)):
                best = written
    return best


def _order(written: Written) -> tuple[int, int]:
    return written.key, written.entry


def _last(columns: Columns, entries: Numbers, number: int, position: int, slot: Slot, key: int) -> Written | None:
    """The last write of a slot, in the entry at a position of some or before, earlier than `key`."""
    segment = columns.segments[number]
    entry = int(entries[position])
    when = int(columns.keys(entries[position : position + 1], segment, slot)[0])
    if when < key and columns.holds(entry, slot.guard):
        return Written(entry, slot, when)
    before = entries[:position]
    before = columns.held(before[columns.segment[before] == number], slot.guard)
    if not len(before):
        return None
    return Written(int(before[-1]), slot, int(columns.keys(before[-1:], segment, slot)[0]))


def history(columns: Columns, thread: int, name: str) -> list[Written]:
    """All writes of a register by a thread, in order."""
    entries = columns.entries_by(thread)
    segments = columns.segment[entries]
    found: list[Written] = []
    for number, segment in enumerate(columns.segments):
        own = entries[segments == number]
        for slot in segment.registers.get(name, ()):
            held = columns.held(own, slot.guard)
            keys = columns.keys(held, segment, slot)
            found += [Written(int(e), slot, int(k)) for e, k in zip(held, keys, strict=True)]
    return sorted(found, key=_order)
