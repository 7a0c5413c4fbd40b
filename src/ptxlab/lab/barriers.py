"""Barriers of a block over time: the state at the start of a window of warp steps, what happens to them, who waits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ptxlab.device.layout import shared_variables
from ptxlab.device.trace_format import ARRIVED, AT_BARRIER, COMPLETED, EXPECTED, INITIALISED, OBSERVED, OPENED, PHASE
from ptxlab.lab.waiting import Waiting
from ptxlab.lab.warp_steps import WarpSteps
from ptxlab.trace.columns import Numbers, stable_order

WORDS = {
    INITIALISED: "initialised", ARRIVED: "arrived", EXPECTED: "expects", COMPLETED: "bytes", PHASE: "phase",
    OBSERVED: "seen", AT_BARRIER: "arrived", OPENED: "phase",
}  # fmt: skip
MOST = 4000  # events of a barrier in one window


@dataclass(frozen=True)
class History:
    """All that happened to a barrier: when, and its state after each event."""

    block: int
    address: int
    is_mbarrier: bool
    events: Numbers
    after: Numbers
    expected: Numbers
    missing: Numbers
    bytes: Numbers
    phase: Numbers

    @property
    def states(self) -> tuple[Numbers, ...]:
        """How many arrivals it expects and misses, pending bytes, and the phase, after each event."""
        return self.expected, self.missing, self.bytes, self.phase


class Barriers:
    """The barriers of a recorded launch, by block."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.histories = lru_cache(maxsize=64)(self._find_histories)
        self._at_barrier = lru_cache(maxsize=64)(self._find_at_barrier)
        self.names = {start: variable.title for variable, start in shared_variables(steps.trace.program.variables)}

    @cached_property
    def _by_block(self) -> tuple[Numbers, Numbers]:
        """The events of barriers, those of the barriers of one block together, and which block that is."""
        events = self.steps.trace.columns.events
        chosen = np.flatnonzero((events["kind"] >= INITIALISED) & (events["kind"] <= OPENED))
        blocks = events["block"][chosen].astype(np.int64)
        order = stable_order(blocks)
        return chosen[order], blocks[order]

    @cached_property
    def has_mbarriers(self) -> bool:
        """Whether any block has one."""
        return bool((self.steps.trace.columns.events["kind"][self._by_block[0]] < AT_BARRIER).any())

    def _find_histories(self, block: int) -> list[History]:
        """Of each barrier of a block, in the order in which they are first used."""
        order, blocks = self._by_block
        chosen = order[np.searchsorted(blocks, block) : np.searchsorted(blocks, block, "right")]
        events = self.steps.trace.columns.events[chosen]
        is_mbarrier = events["kind"] < AT_BARRIER
        addresses = np.where(is_mbarrier, events["address"], events["operation"]).astype(np.int64)
        places = np.stack([is_mbarrier.astype(np.int64), addresses], axis=1)
        found, first, inverse = np.unique(places, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        return [self._history(block, found[number], chosen[inverse == number]) for number in np.argsort(first).tolist()]

    def _history(self, block: int, place: Numbers, events: Numbers) -> History:
        is_mbarrier, address = place.tolist()
        given = self.steps.trace.columns.events[events]
        kinds, sizes = given["kind"], given["size"].astype(np.int64)
        states = np.zeros((len(events), 4), np.int64)
        expected = missing = bytes = phase = 0
        for index, (kind, size) in enumerate(zip(kinds.tolist(), sizes.tolist(), strict=True)):
            if kind == INITIALISED:
                expected, missing, bytes, phase = size, size, 0, 0
            elif kind == ARRIVED:
                missing -= size
            elif kind == EXPECTED:
                bytes += size
            elif kind == COMPLETED:
                bytes -= size
            elif kind == PHASE:
                missing, bytes, phase = expected, 0, phase + 1
            elif kind == AT_BARRIER:
                missing += 1  # of a barrier of the block: how many have arrived
            elif kind == OPENED:
                missing, expected, phase = 0, size, phase + 1
            states[index] = expected, missing, bytes, phase
        after = np.maximum.accumulate(self.steps.event_steps[events])
        return History(block, address, bool(is_mbarrier), events, after, *states.T)

    def name(self, history: History) -> str:
        """What a barrier is called: a variable, and where in it, or its number."""
        if not history.is_mbarrier:
            return f"barrier {history.address}"
        starts = [start for start in self.names if start <= history.address]
        if not starts:
            return f"shared+{history.address}"
        offset = history.address - max(starts)
        return self.names[max(starts)] + (f"+{offset}" if offset else "")

    def window(self, block: int, start: int, end: int) -> list[dict[str, Any]]:
        """The barriers of a block, with what happens to each from a warp step to another."""
        found = []
        for history in self.histories(block):
            low, high = (int(np.searchsorted(history.after, at)) for at in (start, end))
            state = [0, 0, 0, -1] if not low else self._state(history, low - 1)
            inside = slice(low, min(high, low + MOST))
            given = self.steps.trace.columns.events[history.events[inside]]
            events = [history.after[inside], *(given[name] for name in ("kind", "thread", "instruction", "size")),
                      *(column[inside] for column in history.states)]  # fmt: skip
            happens = [
                [after, WORDS[kind], *rest]
                for after, kind, *rest in zip(*(column.tolist() for column in events), strict=True)
            ]
            found.append({
                "name": self.name(history), "address": history.address, "mbarrier": history.is_mbarrier,
                "state": state, "events": happens,
                "waits": [one for one in self._waits(history) if one[1] <= end and one[2] >= start][:MOST],
            })  # fmt: skip
        return found

    def _state(self, history: History, index: int) -> list[int]:
        return [int(column[index]) for column in history.states]

    def _waits(self, history: History) -> list[list[int]]:
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
        history = next(one for one in self.histories(block) if (one.address, one.is_mbarrier) == (number, False))
        given = self.steps.trace.columns.events[history.events]
        seen = np.flatnonzero(given["kind"] == AT_BARRIER)
        if not len(seen):
            return []
        warp = self.steps.warps_of(given["thread"][seen].astype(np.int64))
        each = np.stack([history.after[seen], warp, given["instruction"][seen].astype(np.int64)], axis=1)
        found = []
        for at, own, instruction in sorted(set(map(tuple, each.tolist()))):
            before, after = self.steps.around(own, at + 1)
            is_stuck = after < 0 and not self.steps.trace.is_complete
            until = self.steps.count if is_stuck else after
            if until > before + 1 or is_stuck:
                found.append([own, before + 1, until, self.steps.trace.program.line(instruction), -1])
        return found
