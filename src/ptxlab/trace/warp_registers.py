"""The registers of a warp, lane by lane, at any position in warp steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ptxlab.trace.columns import Numbers, Slot
from ptxlab.trace.warp_steps import LANES, WarpSteps

_BACK = 6  # groups that are inspected one by one before all of them are


@dataclass(frozen=True)
class RegisterWriter:
    """A slot of a segment that is a register: when it is written, counted from the first step of a group."""

    segment: int
    slot: Slot
    after: int


class WarpRegisters:
    """What registers hold, by function and name."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self._groups: dict[tuple[int, int], Numbers] = {}

    @cached_property
    def writers(self) -> dict[tuple[int, str], list[RegisterWriter]]:
        """What writes each register of each function."""
        found: dict[tuple[int, str], list[RegisterWriter]] = {}
        for number, segment in enumerate(self.steps.trace.columns.segments):
            for slot in segment.slots:
                if slot.role == "register":
                    after = segment.index(slot) - (slot.instruction not in segment.index_of)
                    found.setdefault((segment.function, slot.what), []).append(RegisterWriter(number, slot, after))
        return found

    def _groups_of(self, warp: int, segment: int) -> Numbers:
        known = warp, segment
        if known not in self._groups:
            groups = self.steps.groups_of(warp)
            self._groups[known] = groups[self.steps.segment[groups] == segment]
        return self._groups[known]

    def named(self, warp: int, names: list[str], position: int) -> dict[str, npt.NDArray[np.uint32]]:
        """What some registers of 32 bits hold in all lanes of a warp, of those that are known; 0 where one is not."""
        found: dict[str, npt.NDArray[np.uint32]] = {}
        for (_, name), writers in self.writers.items():
            if name in names and writers[0].slot.bytes == 4:
                values, when = np.zeros((LANES, 4), np.uint8), np.full(LANES, -2, np.int64)
                for writer in writers:
                    self.keep_last(warp, writer, position, values, when)
                if (when > -2).any():
                    found[name] = values.view("<u4")[:, 0]
        return found

    def keep_last(
        self, warp: int, writer: RegisterWriter, position: int, values: npt.NDArray[np.uint8], when: Numbers
    ) -> None:
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

    def _keep(self, entries: Numbers, writer: RegisterWriter, values: npt.NDArray[np.uint8], when: Numbers) -> int:
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
