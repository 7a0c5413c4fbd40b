"""The registers of a warp, lane by lane: at the start of a window of warp steps, and what is written within it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.lab.encoding import packed
from ptxlab.lab.warp_steps import LANES, WarpSteps, mask_of
from ptxlab.trace.columns import Numbers, Slot

_BACK = 6  # groups that are inspected one by one before all of them are


@dataclass(frozen=True)
class _Writer:
    """A slot of a segment that is a register: when it is written, counted from the first step of a group."""

    segment: int
    slot: Slot
    after: int


class Registers:
    """What registers hold, by function and name."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self._groups: dict[tuple[int, int], Numbers] = {}

    @cached_property
    def _writers(self) -> dict[tuple[int, str], list[_Writer]]:
        found: dict[tuple[int, str], list[_Writer]] = {}
        for number, segment in enumerate(self.steps.trace.columns.segments):
            for slot in segment.slots:
                if slot.role == "register":
                    writer = _Writer(number, slot, segment.index(slot) - (slot.instruction not in segment.index_of))
                    found.setdefault((segment.function, slot.what), []).append(writer)
        return found

    def _groups_of(self, warp: int, segment: int) -> Numbers:
        known = warp, segment
        if known not in self._groups:
            groups = self.steps.groups_of(warp)
            self._groups[known] = groups[self.steps.segment[groups] == segment]
        return self._groups[known]

    def at(self, warp: int, position: int) -> list[dict[str, Any]]:
        """All registers of a warp that are known at a position: the lanes that have a value, and the values."""
        found = []
        for (function, name), writers in self._writers.items():
            values = np.zeros((LANES, writers[0].slot.bytes), np.uint8)
            when = np.full(LANES, -2, np.int64)
            for writer in writers:
                self._last(warp, writer, position, values, when)
            known = np.flatnonzero(when > -2)
            if len(known):
                times = np.maximum(when[known], -1)
                found.append({
                    "function": function, "name": name, "lanes": mask_of(known), "data": packed(values[known]),
                    "after": int(times[0]) if (times == times[0]).all() else times.tolist(),
                })  # fmt: skip
        return found

    def named(self, warp: int, names: list[str], position: int) -> dict[str, npt.NDArray[np.uint32]]:
        """What some registers of 32 bits hold in all lanes of a warp, of those that are known; 0 where one is not."""
        found: dict[str, npt.NDArray[np.uint32]] = {}
        for (_, name), writers in self._writers.items():
            if name in names and writers[0].slot.bytes == 4:
                values, when = np.zeros((LANES, 4), np.uint8), np.full(LANES, -2, np.int64)
                for writer in writers:
                    self._last(warp, writer, position, values, when)
                if (when > -2).any():
                    found[name] = values.view("<u4")[:, 0]
        return found

    def _last(self, warp: int, writer: _Writer, position: int, values: npt.NDArray[np.uint8], when: Numbers) -> None:
        """Keep what a slot wrote last in each lane, where that is later than what is known."""
        steps, groups = self.steps, self._groups_of(warp, writer.segment)
        past = int(np.searchsorted(steps.first[groups] + writer.after, position))
        missing = LANES
        for index in range(past - 1, max(past - 1 - _BACK, -1), -1):
            group = int(groups[index])
            if int(steps.first[group]) + writer.after <= int(when.min()):
                return
            missing = LANES - self._keep(steps.entries(group), writer, values, when)
            if not missing:
                return
        if past > _BACK and missing:
            chosen = groups[: past - _BACK]
            self._keep(np.concatenate([steps.entries(int(group)) for group in chosen]), writer, values, when)

    def _keep(self, entries: Numbers, writer: _Writer, values: npt.NDArray[np.uint8], when: Numbers) -> int:
        """Values of some entries, the later ones win; returns how many lanes have one."""
        steps, columns = self.steps, self.steps.trace.columns
        entries = columns.held(entries, writer.slot.guard)
        lanes = steps.lane_of_entry[entries]
        written = steps.first[steps.group_of[entries]] + writer.after
        last = np.full(LANES, -1, np.int64)
        last[lanes] = np.arange(len(entries))
        chosen = last[last >= 0]
        chosen = chosen[written[chosen] > when[lanes[chosen]]]
        values[lanes[chosen]] = self._bytes(entries[chosen], writer.slot)
        when[lanes[chosen]] = written[chosen]
        return int((last >= 0).sum())

    def _bytes(self, entries: Numbers, slot: Slot) -> npt.NDArray[np.uint8]:
        columns = self.steps.trace.columns
        found: npt.NDArray[np.uint8] = columns.payload[
            columns.offset[entries][:, None] + slot.offset + np.arange(slot.bytes)
        ]
        return found

    def written(self, warp: int, start: int, end: int) -> Iterator[dict[str, Any]]:
        """What a warp writes after the steps from `start` to `end`, in order."""
        steps, columns = self.steps, self.steps.trace.columns
        groups = steps.groups_of(warp)
        low = max(int(np.searchsorted(steps.first[groups], start)) - 1, 0)
        high = int(np.searchsorted(steps.first[groups], end, "right"))
        found: list[tuple[int, dict[str, Any]]] = []
        for group in groups[low:high].tolist():
            segment = columns.segments[int(steps.segment[group])]
            first = int(steps.first[group])
            for slot in segment.slots:
                after = first + segment.index(slot) - (slot.instruction not in segment.index_of)
                if slot.role != "register" or not start <= after < end:
                    continue
                entries = columns.held(steps.entries(group), slot.guard)
                if len(entries):
                    mask = mask_of(steps.lane_of_entry[entries])
                    found.append((after, {
                        "after": after, "function": segment.function, "name": slot.what, "lanes": mask,
                        "data": packed(self._bytes(entries, slot)),
                    }))  # fmt: skip
        return (one for _, one in sorted(found, key=lambda one: one[0]))
