"""The registers of a warp, lane by lane: at the start of a window of warp steps, and what is written within it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.lab.encoding import packed
from ptxlab.lab.warp_steps import LANES, WarpSteps, mask_of
from ptxlab.trace.columns import Numbers, Slot

ALL = (1 << LANES) - 1
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
        self._payload = lru_cache(maxsize=256)(self._find_payload)

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
        latest = self._latest(warp, position)
        for (function, name), writers in self._writers.items():
            one = self._in_all_lanes(writers, latest) or self._in_some_lanes(warp, writers, position)
            if one is not None:
                found.append({"function": function, "name": name, **one})
        return found

    def _latest(self, warp: int, position: int) -> dict[int, tuple[int, int, int]]:
        """By segment: when its last group before a position starts, this group, and the one before it (or -1)."""
        groups = self.steps.groups_of(warp)
        groups = groups[: int(np.searchsorted(self.steps.first[groups], position, "right"))]
        found = {}
        for segment in np.unique(self.steps.segment[groups]).tolist():
            own = self._groups_of(warp, segment)
            past = int(np.searchsorted(own, groups[-1], "right"))
            group = int(own[past - 1])
            found[segment] = position - int(self.steps.first[group]), group, int(own[past - 2]) if past > 1 else -1
        return found

    def _in_all_lanes(
        self, writers: list[_Writer], latest: dict[int, tuple[int, int, int]]
    ) -> dict[str, Any] | None:  # fmt: skip
        """A register that all lanes have written together last; None if it is not so simple."""
        last, chosen, by = -1, -1, writers[0]
        for writer in writers:
            inside, group, before = latest.get(writer.segment, (0, -1, -1))
            group = group if writer.after < inside else before
            after = int(self.steps.first[group]) + writer.after if group >= 0 else -1
            if after > last:
                last, chosen, by = after, group, writer
        if chosen < 0 or by.slot.guard >= 0 or self.steps.start[chosen + 1] - self.steps.start[chosen] != LANES:
            return None
        data = self._payload(chosen)[:, by.slot.offset : by.slot.offset + by.slot.bytes]
        return {"lanes": ALL, "data": packed(data), "after": last}

    def _in_some_lanes(self, warp: int, writers: list[_Writer], position: int) -> dict[str, Any] | None:
        """A register that lanes have written at different times, or not all."""
        values = np.zeros((LANES, writers[0].slot.bytes), np.uint8)
        when = np.full(LANES, -2, np.int64)
        for writer in writers:
            self._last(warp, writer, position, values, when)
        known = np.flatnonzero(when > -2)
        if not len(known):
            return None
        times = np.maximum(when[known], -1)
        return {
            "lanes": mask_of(known), "data": packed(values[known]),
            "after": int(times[0]) if (times == times[0]).all() else times.tolist(),
        }  # fmt: skip

    def _find_payload(self, group: int) -> npt.NDArray[np.uint8]:
        """What the entries of a group have written down, a row for each."""
        columns = self.steps.trace.columns
        size = columns.segments[int(self.steps.segment[group])].size
        found: npt.NDArray[np.uint8] = columns.payload[
            columns.offset[self.steps.entries(group)][:, None] + np.arange(size)
        ]
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
            first, lanes = int(steps.first[group]), steps.lane_of_entry[steps.entries(group)]
            every = mask_of(lanes)
            for slot in segment.slots:
                after = first + segment.index(slot) - (slot.instruction not in segment.index_of)
                if slot.role != "register" or not start <= after < end:
                    continue
                payload, mask = self._payload(group), every
                if slot.guard >= 0:
                    held = payload[:, slot.guard] != 0
                    payload, mask = payload[held], mask_of(lanes[held])
                if mask:
                    found.append((after, {
                        "after": after, "function": segment.function, "name": slot.what, "lanes": mask,
                        "data": packed(payload[:, slot.offset : slot.offset + slot.bytes]),
                    }))  # fmt: skip
        return (one for _, one in sorted(found, key=lambda one: one[0]))
