"""The registers of a warp, lane by lane: at the start of a window of warp steps, and what is written within it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from ptxlab.lab.encoding import packed
from ptxlab.trace.columns import Numbers, Slot
from ptxlab.trace.warp_registers import RegisterWriter, WarpRegisters
from ptxlab.trace.warp_steps import LANES, WarpSteps, mask_of
from ptxlab.values import Json

ALL = (1 << LANES) - 1


class RegisterHistory(WarpRegisters):
    """What registers hold, by function and name."""

    def __init__(self, steps: WarpSteps) -> None:
        super().__init__(steps)
        self._payload = lru_cache(maxsize=256)(self._find_payload)
        # All that is written down, as many bytes from each one on: rows of it are copied whole.
        self._bytes_from = cache(partial(sliding_window_view, steps.trace.columns.payload))

    def at(self, warp: int, position: int) -> Json:
        """All registers of a warp that are known at a position: the lanes that have a value, and the values."""
        found = _Values(self._read)
        latest = self._latest(warp, position)
        whole = self._whole(np.array([group for own in latest.values() for _, _, group in own], np.int64))
        for (function, name), writers in self.writers.items():
            last = _last_of(writers, latest)
            if last is None:
                continue
            writer, after, group = last
            if writer.slot.guard < 0 and group in whole:
                found.add_whole(function, after, writer.slot, group)
                continue
            one = self._in_some_lanes(warp, writers, position)
            if one is not None:
                found.add(function, name, *one)
        return found.packed()

    def _whole(self, groups: Numbers) -> set[int]:
        """Those of some groups in which all lanes of a warp take part."""
        start = self.steps.start
        return set(groups[start[groups + 1] - start[groups] == LANES].tolist())

    def _read(self, groups: Numbers, offsets: Numbers, size: int) -> bytes:
        """What all lanes of some groups have written down, each at an offset."""
        steps, columns = self.steps, self.steps.trace.columns
        entries = steps.members[steps.start[groups][:, None] + np.arange(LANES)]
        found: npt.NDArray[np.uint8] = self._bytes_from(size)[columns.offset[entries] + offsets[:, None]]
        return found.tobytes()

    def _latest(self, warp: int, position: int) -> dict[int, list[tuple[int, int, int]]]:
        """By segment: its last group that starts before a position, and the one before that, if there are such.

        Of each the step at which it starts, how many steps of it are before the position, and its number.
        """
        steps = self.steps
        groups = steps.groups_of(warp)
        groups = groups[: int(np.searchsorted(steps.first[groups], position, "right"))]
        segments = steps.segment[groups]
        found: dict[int, list[tuple[int, int, int]]] = {}
        for _ in range(2):
            last = np.full(len(steps.tables), -1, np.int64)
            last[segments] = groups
            known = np.flatnonzero(last >= 0)
            for segment, group, first in zip(
                known.tolist(), last[known].tolist(), steps.first[last[known]].tolist(), strict=True
            ):
                found.setdefault(segment, []).append((first, position - first, group))
            is_other = last[segments] != groups
            groups, segments = groups[is_other], segments[is_other]
        return found

    def _in_some_lanes(
        self, warp: int, writers: list[RegisterWriter], position: int
    ) -> tuple[int, int | list[int], Any] | None:
        """A register that lanes have written at different times, or not all."""
        values = np.zeros((LANES, writers[0].slot.bytes), np.uint8)
        when = np.full(LANES, -2, np.int64)
        for writer in writers:
            self.keep_last(warp, writer, position, values, when)
        known = np.flatnonzero(when > -2)
        if not len(known):
            return None
        times = np.maximum(when[known], -1)
        return mask_of(known), int(times[0]) if (times == times[0]).all() else times.tolist(), values[known]

    def _find_payload(self, group: int) -> npt.NDArray[np.uint8]:
        """What the entries of a group have written down, a row for each."""
        columns = self.steps.trace.columns
        size = columns.segments[int(self.steps.segment[group])].size
        entries = self.steps.entries(group)
        if not size:
            return np.zeros((len(entries), 0), np.uint8)
        found: npt.NDArray[np.uint8] = self._bytes_from(size)[columns.offset[entries]]
        return found

    def written(self, warp: int, start: int, end: int) -> Json:
        """What a warp writes after the steps from `start` to `end`, in order."""
        steps, columns = self.steps, self.steps.trace.columns
        groups = steps.groups_of(warp)
        low = max(int(np.searchsorted(steps.first[groups], start)) - 1, 0)
        high = int(np.searchsorted(steps.first[groups], end, "right"))
        groups = groups[low:high]
        whole = self._whole(groups)
        found = [
            (first + after, columns.segments[number].function, slot, group)
            for group, number, first in zip(
                groups.tolist(), steps.segment[groups].tolist(), steps.first[groups].tolist(), strict=True
            )
            for after, slot in self._results[number]
            if start <= first + after < end
        ]
        values = _Values(self._read)
        for after, function, slot, group in sorted(found, key=lambda one: one[0]):
            if slot.guard < 0 and group in whole:
                values.add_whole(function, after, slot, group)
                continue
            lanes, payload = steps.lane_of_entry[steps.entries(group)], self._payload(group)
            if slot.guard >= 0:
                held = payload[:, slot.guard] != 0
                lanes, payload = lanes[held], payload[held]
            if len(lanes):
                data = payload[:, slot.offset : slot.offset + slot.bytes]
                values.add(function, slot.what, mask_of(lanes), after, data)
        return values.packed()

    @cached_property
    def _results(self) -> list[list[tuple[int, Slot]]]:
        """By segment: the registers that it writes, and after which of its steps."""
        return [
            [
                (segment.index(slot) - (slot.instruction not in segment.index_of), slot)
                for slot in segment.slots
                if slot.role == "register"
            ]
            for segment in self.steps.trace.columns.segments
        ]


def _last_of(
    writers: list[RegisterWriter], latest: dict[int, list[tuple[int, int, int]]]
) -> tuple[RegisterWriter, int, int] | None:  # fmt: skip
    """Which of some writers was the last, after which step and in which group; see `_latest`."""
    found, last = None, -1
    for writer in writers:
        for first, inside, group in latest.get(writer.segment, ()):
            if writer.after < inside:
                if first + writer.after > last:
                    found, last = (writer, first + writer.after, group), first + writer.after
                break
    return found


class _Values:
    """Values of registers as columns of an answer; their bytes are one after the other."""

    def __init__(self, read: Callable[[Numbers, Numbers, int], bytes]) -> None:
        self._read = read
        self.functions: list[int] = []
        self.names: list[str] = []
        self.lanes: list[int] = []
        self.after: list[int | list[int]] = []
        self.sizes: list[int] = []
        self._data: list[bytes] = []
        self._pending: dict[int, list[tuple[int, int, int]]] = {}

    def add(self, function: int, name: str, lanes: int, after: int | list[int], data: npt.NDArray[np.uint8]) -> None:
        """A register of a function: the lanes that have a value, after which step, and a row of bytes for each."""
        self.functions.append(function)
        self.names.append(name)
        self.lanes.append(lanes)
        self.after.append(after)
        self.sizes.append(data.shape[1])
        self._data.append(data.tobytes())

    def add_whole(self, function: int, after: int, slot: Slot, group: int) -> None:
        """One that all lanes of a group have written: it is read with the others."""
        self._pending.setdefault(slot.bytes, []).append((len(self._data), group, slot.offset))
        self.functions.append(function)
        self.names.append(slot.what)
        self.lanes.append(ALL)
        self.after.append(after)
        self.sizes.append(slot.bytes)
        self._data.append(b"")

    def packed(self) -> Json:
        """All of them."""
        for size, pending in self._pending.items():
            places, groups, offsets = np.array(pending, np.int64).T
            data, each = self._read(groups, offsets, size), LANES * size
            for number, place in enumerate(places.tolist()):
                self._data[place] = data[number * each : (number + 1) * each]
        return {
            "functions": self.functions, "names": self.names, "lanes": self.lanes, "after": self.after,
            "sizes": self.sizes, "data": packed(b"".join(self._data)),
        }  # fmt: skip
