"""Which warps wait at mbarriers, from when until when, and for what: one wait, or a loop of polls."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ptxlab import ir
from ptxlab.device.trace_format import OBSERVED
from ptxlab.trace.columns import Numbers
from ptxlab.trace.finder import Finder
from ptxlab.trace.warp_steps import WarpSteps

_LOOP = 16  # steps of a warp after its last poll: more, and it does something else


class Waiting:
    """The waits of a recorded launch."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.finder = Finder(steps.trace)
        self.at_mbarriers = cache(self._find)

    def _find(self) -> dict[tuple[int, int], list[list[int]]]:
        """By block and address: the warp, from when, until when, the line, and the parity that is awaited, or -1."""
        found: dict[tuple[int, int], list[list[int]]] = {}
        polls = self._polls()
        events = self.steps.trace.columns.events
        seen = np.flatnonzero(events["kind"] == OBSERVED)
        warps = self.steps.warps_of(events["thread"][seen].astype(np.int64))
        order = np.lexsort((self.steps.event_steps[seen], warps))
        seen, warps = seen[order], warps[order]
        for warp, own in polls.items():
            low, high = np.searchsorted(warps, [warp, warp + 1])
            for place, wait in self._of_warp(warp, own, seen[low:high]):
                found.setdefault(place, []).append(wait)
        return found

    def _polls(self) -> dict[int, list[tuple[int, int]]]:
        """The steps of each warp that wait, in order, and their instructions."""
        steps, found = self.steps, dict[int, list[tuple[int, int]]]()
        for number, index, instruction in steps.places("mbarrier", "wait", "test"):
            groups = np.flatnonzero(steps.segment == number)
            for group, warp in zip(groups.tolist(), steps.warp[groups].tolist(), strict=True):
                found.setdefault(warp, []).append((int(steps.first[group]) + index, instruction))
        return {warp: sorted(own) for warp, own in found.items()}

    def _of_warp(self, warp: int, polls: list[tuple[int, int]], seen: Numbers) -> Any:
        """Periods of a warp: polls by one instruction until an event says that the wait is over."""
        steps, events = self.steps, self.steps.trace.columns.events
        when = steps.event_steps[seen]
        first: tuple[int, int] | None = None
        for number, (step, instruction) in enumerate(polls):
            if first is None or first[1] != instruction:
                first = step, instruction
            later = polls[number + 1][0] if number + 1 < len(polls) else steps.count + 1
            over = seen[(when >= step) & (when < later) & (events["instruction"][seen] == instruction)]
            if len(over):
                event = events[over[0]]
                start, until = steps.around(warp, first[0])[0] + 1, int(steps.event_steps[over[0]])
                if until > start:
                    place = int(event["block"]), int(event["address"])
                    yield place, [warp, start, until, steps.trace.program.line(instruction), self._parity(warp, *first)]
                first = None
        if (
            first is not None
            and not steps.trace.is_complete
            and steps.around(warp, steps.count)[0] <= polls[-1][0] + _LOOP
        ):
            stuck_at = self._place(warp, *first)
            if stuck_at is not None:
                start = steps.around(warp, first[0])[0] + 1
                line = steps.trace.program.line(first[1])
                yield stuck_at, [warp, start, steps.count, line, self._parity(warp, *first)]

    def _executed(self, step: int) -> tuple[int, int]:
        """A thread that executes a step, and before when its registers count."""
        group, index = self.steps.locate(step)
        entry = int(self.steps.entries(group)[0])
        columns = self.steps.trace.columns
        return int(columns.thread[entry]), 2 * (int(columns.first_step[entry]) + index) + 1

    def _parity(self, warp: int, step: int, instruction: int) -> int:
        thread, key = self._executed(step)
        match = self.finder.program.match(instruction)
        is_by_parity = match is not None and any(expected.name == "parity" for expected in match.expected)
        found = self.finder.operand(thread, instruction, "parity", key) if is_by_parity else None
        return -1 if found is None else found & 1

    def _place(self, warp: int, step: int, instruction: int) -> tuple[int, int] | None:
        """The mbarrier that a poll is of: its block, and its address there."""
        thread, key = self._executed(step)
        program, accesses = self.finder.program, self.finder.accesses
        match = program.match(instruction)
        assert match is not None
        for expected, given in zip(match.expected, program.instructions[instruction][1].operands, strict=True):
            if expected.name == "a" and isinstance(given, ir.Address):
                base = self.finder.operand(thread, instruction, "a", key)
                base = self._variable(given) if base is None else base + given.offset
                if base is None:
                    return None
                space = "generic" if base >> 32 else "shared"
                _, (owner,), (address,) = accesses.resolve(space, np.array([base]), np.array([thread]))
                return int(owner), int(address)
        return None

    def _variable(self, given: ir.Address) -> int | None:
        """The address of an operand that names a variable of shared memory."""
        from ptxlab.device.layout import shared_variables

        name = getattr(given.base, "name", None)
        starts = {variable.name: start for variable, start in shared_variables(self.finder.program.variables)}
        return None if name not in starts else starts[name] + given.offset
