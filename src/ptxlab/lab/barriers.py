"""Barriers of a block over time: the state at the start of a window of warp steps, what happens to them, who waits."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from ptxlab.device.trace_format import ARRIVED, AT_BARRIER, COMPLETED, EXPECTED, INITIALIZED, OBSERVED, OPENED, PHASE
from ptxlab.lab.waiting import Waiting
from ptxlab.trace.barriers import BarrierHistory
from ptxlab.trace.columns import Numbers
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

WORDS = {
    INITIALIZED: "initialized", ARRIVED: "arrived", EXPECTED: "expects", COMPLETED: "bytes", PHASE: "phase",
    OBSERVED: "seen", AT_BARRIER: "arrived", OPENED: "phase",
}  # fmt: skip
MOST = 4000  # events of a barrier in one window


class Barriers:
    """The barriers of a recorded launch in warp steps, by block."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.recorded = steps.trace.recorded_barriers
        self.after = lru_cache(maxsize=256)(self._find_after)
        self._at_barrier = lru_cache(maxsize=64)(self._find_at_barrier)

    def _find_after(self, history: BarrierHistory) -> Numbers:
        """The warp step after which each event of a barrier has happened."""
        found: Numbers = np.maximum.accumulate(self.steps.event_steps[history.events])
        return found

    def name(self, history: BarrierHistory) -> str:
        """What a barrier is called: a variable, and where in it, or its number."""
        if not history.is_mbarrier:
            return f"barrier {history.address}"
        names = self.recorded.names
        starts = [start for start in names if start <= history.address]
        if not starts:
            return f"shared+{history.address}"
        offset = history.address - max(starts)
        return names[max(starts)] + (f"+{offset}" if offset else "")

    def window(self, block: int, start: int, end: int) -> list[Json]:
        """The barriers of a block, with what happens to each from a warp step to another."""
        found = []
        for history in self.recorded.histories(block):
            after, states = self.after(history), (history.expected, history.missing, history.bytes, history.phase)
            low, high = (int(np.searchsorted(after, at)) for at in (start, end))
            state = [0, 0, 0, -1] if not low else [int(column[low - 1]) for column in states]
            inside = slice(low, min(high, low + MOST))
            given = self.steps.trace.columns.events[history.events[inside]]
            events = [after[inside], *(given[name] for name in ("kind", "thread", "instruction", "size")),
                      *(column[inside] for column in states)]  # fmt: skip
            happens = [
                [at, WORDS[kind], *rest]
                for at, kind, *rest in zip(*(column.tolist() for column in events), strict=True)
            ]
            found.append({
                "name": self.name(history), "address": history.address, "mbarrier": history.is_mbarrier,
                "state": state, "events": happens,
                "waits": [one for one in self._waits(history) if one[1] <= end and one[2] >= start][:MOST],
            })  # fmt: skip
        return found

    def _waits(self, history: BarrierHistory) -> list[list[int]]:
        """Warps that wait there: the warp, from when, until when, the line, and the parity that is awaited, or -1."""
        if history.is_mbarrier:
            found: list[list[int]] = self.waiting.at_mbarriers().get((history.block, history.address), [])
            return found
        return self._at_barrier(history.block, history.address)

    @cached_property
    def waiting(self) -> Waiting:
        """Which warps wait at mbarriers."""
        return Waiting(self.steps)

    def _find_at_barrier(self, block: int, number: int) -> list[list[int]]:
        """Warps that wait at a barrier of the block."""
        histories = self.recorded.histories(block)
        history = next(one for one in histories if (one.address, one.is_mbarrier) == (number, False))
        given = self.steps.trace.columns.events[history.events]
        seen = np.flatnonzero(given["kind"] == AT_BARRIER)
        if not len(seen):
            return []
        warp = self.steps.warps_of(given["thread"][seen].astype(np.int64))
        each = np.stack([self.after(history)[seen], warp, given["instruction"][seen].astype(np.int64)], axis=1)
        found = []
        for at, own, instruction in sorted(set(map(tuple, each.tolist()))):
            before, after = self.steps.around(own, at + 1)
            is_stuck = after < 0 and not self.steps.trace.is_complete
            until = self.steps.count if is_stuck else after
            if until > before + 1 or is_stuck:
                found.append([own, before + 1, until, self.steps.trace.program.line(instruction), -1])
        return found
