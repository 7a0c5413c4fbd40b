"""The warp step after which each event of a recorded launch has happened, found for a block when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from ptxlab.device.trace_format import ISSUED, WRITTEN
from ptxlab.trace.columns import Numbers, stable_order

if TYPE_CHECKING:
    from ptxlab.trace.warp_steps import WarpSteps


class EventSteps:
    """Steps by the numbers of events, as an array has them."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        events = steps.trace.columns.events
        self._blocks: Numbers = events["thread"].astype(np.int64) // steps.trace.accesses.threads_in_block
        is_ordered = bool((self._blocks[1:] >= self._blocks[:-1]).all())
        self._order = np.arange(len(events)) if is_ordered else stable_order(self._blocks)
        self._ordered = self._blocks if is_ordered else self._blocks[self._order]
        self._found: Numbers = np.full(len(events), -1, np.int64)
        self._is_known = np.zeros(int(self._ordered[-1]) + 1 if len(events) else 1, np.bool_)  # by block

    def of_block(self, block: int) -> Numbers:
        """The events that threads of a block have caused, in order."""
        low, high = (int(np.searchsorted(self._ordered, block, side)) for side in ("left", "right"))
        return self._order[low:high]

    @overload
    def __getitem__(self, events: npt.NDArray[np.integer[Any]]) -> Numbers: ...
    @overload
    def __getitem__(self, events: int | np.integer[Any]) -> np.int64: ...
    def __getitem__(self, events: Any) -> Any:
        if self._is_known.all():
            return self._found[events]
        is_wanted = np.zeros(len(self._is_known), np.bool_)
        is_wanted[self._blocks[events]] = True
        for block in np.flatnonzero(is_wanted & ~self._is_known).tolist():
            own = self.of_block(block)
            self._found[own] = self._find(own)
            self._is_known[block] = True
        return self._found[events]

    def _find(self, chosen: Numbers) -> Numbers:
        """The steps of all events of a block."""
        steps, columns = self.steps, self.steps.trace.columns
        if not len(columns):
            return np.full(len(chosen), -1, np.int64)
        is_range = int(chosen[-1]) - int(chosen[0]) == len(chosen) - 1
        events = columns.events[chosen[0] : chosen[-1] + 1] if is_range else columns.events[chosen]
        times = events["time"].astype(np.int64)
        before, after = (np.clip(some, 0, len(columns) - 1) for some in (times - 1, times))
        thread, instruction = events["thread"].astype(np.int64), events["instruction"].astype(np.int64)
        found = np.where(times < len(columns), steps.first[steps.group_of[after]], steps.count) - 1
        is_own = columns.thread[before] == thread
        found = np.where(is_own, steps.first[steps.group_of[before] + 1] - 1, found)
        for entries in (after, before):
            index = steps.index_in(columns.segment[entries], instruction)
            is_there = (columns.thread[entries] == thread) & (index >= 0)
            found = np.where(is_there, steps.first[steps.group_of[entries]] + index, found)
        return _after_issue(events, found)


def _after_issue(events: npt.NDArray[Any], steps: Numbers) -> Numbers:
    """Writes of asynchronous operations come after their issue."""
    operation = events["operation"].astype(np.int64)
    issued, written = (np.flatnonzero(events["kind"] == kind) for kind in (ISSUED, WRITTEN))
    if not len(issued):
        return steps
    order = issued[np.argsort(operation[issued], kind="stable")]
    at = np.minimum(np.searchsorted(operation[order], operation[written]), len(order) - 1)
    is_known = operation[order[at]] == operation[written]
    steps[written[is_known]] = np.maximum(steps[written[is_known]], steps[order[at[is_known]]])
    return steps
