"""What warps and asynchronous operations of a block do when: periods on tracks, at a level of detail.

At level n, what is shorter than 2 ** n steps is drawn as one with what is beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ptxlab.device.trace_format import ISSUED, PHASE, WRITTEN
from ptxlab.lab.barriers import Barriers
from ptxlab.trace.columns import Numbers
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

TILE = 512  # times 2 ** level: steps of a tile
RUNS, WAITS, OPERATION, MANY, PHASED = range(5)
_TRACKS = 8  # of operations of a kind that are at the same time


@dataclass(frozen=True)
class Track:
    """What one warp does, or operations that are not at the same time."""

    name: str
    kind: str
    warp: int
    start: Numbers
    end: Numbers
    what: Numbers
    """`RUNS`, `WAITS`, …"""
    instruction: Numbers


class Tracks:
    """The tracks of the blocks of a launch."""

    def __init__(self, steps: WarpSteps, barriers: Barriers) -> None:
        self.steps = steps
        self.barriers = barriers
        self._tracks = lru_cache(maxsize=16)(self._find_tracks)

    def tile(self, block: int, level: int, tile: int) -> list[Json]:
        """What is on the tracks of a block, in a part of the time."""
        start, end = tile * TILE << level, (tile + 1) * TILE << level
        return [
            {"name": track.name, "kind": track.kind, "warp": track.warp, "periods": drawn(track, start, end, level)}
            for track in self._tracks(block)
        ]

    def _find_tracks(self, block: int) -> list[Track]:
        own = range(block * self.steps.warps_in_block, (block + 1) * self.steps.warps_in_block)
        found = [self._warp(warp) for warp in own if len(self.steps.groups_of(warp))]
        copies = self._copies(block)
        products = self._products(own)
        for name, periods in (("copy", copies), ("tensor cores", products)):
            found += _beside(name, periods)
        return [*found, *self._phases(block)]

    def _warp(self, warp: int) -> Track:
        """When a warp runs, and between that, where it waits."""
        steps = self.steps
        groups = steps.groups_of(warp)
        groups = groups[steps.first[groups + 1] > steps.first[groups]]
        first, past = steps.first[groups], steps.first[groups + 1]
        cuts = np.flatnonzero(first[1:] != past[:-1]) + 1
        starts = first[np.concatenate([[0], cuts]).astype(np.int64)] if len(first) else first
        ends = past[np.concatenate([cuts - 1, [len(past) - 1]]).astype(np.int64)] if len(past) else past
        firsts = groups[np.concatenate([[0], cuts]).astype(np.int64)] if len(groups) else groups
        lead = np.array([steps.tables[int(steps.segment[group])][0] for group in firsts], np.int64)
        waits = np.array([self._is_wait(int(one)) for one in lead[1:]], np.bool_)
        gap = np.flatnonzero(waits)
        start = np.concatenate([starts, ends[:-1][gap]])
        end = np.concatenate([ends, starts[1:][gap]])
        what = np.concatenate([np.full(len(starts), RUNS), np.full(len(gap), WAITS)])
        order = np.argsort(start, kind="stable")
        instruction = np.concatenate([lead, lead[1:][gap]])
        name = f"warp {warp % steps.warps_in_block}"
        return Track(name, "warp", warp, start[order], end[order], what[order], instruction[order])

    def _is_wait(self, instruction: int) -> bool:
        match = self.steps.trace.program.match(instruction)
        return match is not None and bool(match.effects.converges or match.effects.steps)

    def _copies(self, block: int) -> list[tuple[int, int, int]]:
        """Asynchronous copies: from their issue to their last byte."""
        own = self.steps.events_of(block)
        events, when = self.steps.trace.columns.events, self.steps.event_steps[own]
        happened = events["kind"][own]  # of all events it takes long to take whole records
        issued, written = (np.flatnonzero(happened == kind) for kind in (ISSUED, WRITTEN))
        if not len(issued):
            return []
        operation = events["operation"][own].astype(np.int64)
        order = issued[np.argsort(operation[issued], kind="stable")]
        ends = np.full(len(order), -1, np.int64)
        at = np.searchsorted(operation[order], operation[written])
        known = (at < len(order)) & (operation[order[np.minimum(at, len(order) - 1)]] == operation[written])
        np.maximum.at(ends, at[known], when[written[known]] + 1)
        ends = np.where(ends < 0, self._last(block), ends)
        starts = when[order]
        return _together(starts, np.maximum(ends, starts + 1), events["instruction"][own[order]].astype(np.int64))

    def _last(self, block: int) -> int:
        own = range(block * self.steps.warps_in_block, (block + 1) * self.steps.warps_in_block)
        groups = [self.steps.groups_of(warp) for warp in own]
        return max((int(self.steps.first[one[-1] + 1]) for one in groups if len(one)), default=0)

    def _steps_that(self, warp: int, subject: str, *actions: str) -> list[tuple[int, int]]:
        """The steps of a warp whose instruction does something, and the instruction."""
        steps, found = self.steps, []
        groups = steps.groups_of(warp)
        for number, index, instruction in steps.places(subject, *actions):
            own = groups[steps.segment[groups] == number]
            found += [(int(at) + index, instruction) for at in steps.first[own]]
        return sorted(found)

    def _products(self, warps: range) -> list[tuple[int, int, int]]:
        """MMAs: by `wgmma` until the warp waits for them, by `tcgen05` until their commit has arrived."""
        found: list[tuple[int, int, int]] = []
        commits = self._commits(warps) if self.steps.places("tensor_memory", "multiply") else np.zeros(0, np.int64)
        for warp in warps:
            waits = np.array([step for step, _ in self._steps_that(warp, "wgmma", "wait")])
            for step, instruction in self._steps_that(warp, "wgmma", "start"):
                after = waits[waits > step]
                found.append((step, int(after[0]) if len(after) else self._last(warps[0] // len(warps)), instruction))
            for step, instruction in self._steps_that(warp, "tensor_memory", "multiply"):
                after = commits[commits > step]
                found.append((step, int(after[0]) if len(after) else step + 1, instruction))
        starts, ends, instructions = np.array(found, np.int64).reshape(-1, 3).T
        return _together(starts, ends, instructions)

    def _commits(self, warps: range) -> Numbers:
        """When mbarriers' phases are complete: a commit's arrival is one of those."""
        events = self.steps.trace.columns.events
        block = warps[0] // self.steps.warps_in_block
        chosen = np.flatnonzero((events["kind"] == PHASE) & (events["block"].astype(np.int64) == block))
        return np.sort(self.steps.event_steps[chosen]) + 1

    def _phases(self, block: int) -> list[Track]:
        """The phases of each mbarrier."""
        found, recorded = [], self.barriers.recorded
        for history in recorded.histories(block) if recorded.has_mbarriers else ():
            if not history.is_mbarrier:
                continue
            changes = np.flatnonzero(np.diff(history.phase, prepend=-1))
            start = self.barriers.after(history)[changes] + 1
            end = np.concatenate([start[1:], [self._last(block)]])
            found.append(
                Track(self.barriers.name(history), "mbarrier", -1, start, end, np.full(len(start), PHASED),
                      history.phase[changes])
            )  # fmt: skip
        return found[:16]


def _together(starts: Numbers, ends: Numbers, instructions: Numbers) -> list[tuple[int, int, int]]:
    """Operations that end at the same time, as those of a stage, are one; its instruction is that of the first."""
    order = np.lexsort((instructions, ends, starts))
    _, first = np.unique(ends[order], return_index=True)
    chosen = order[np.sort(first)]
    return list(zip(starts[chosen].tolist(), ends[chosen].tolist(), instructions[chosen].tolist(), strict=True))


def _beside(name: str, periods: list[tuple[int, int, int]]) -> list[Track]:
    """Periods on as many tracks as there are at the same time."""
    tracks: list[list[tuple[int, int, int]]] = []
    for period in sorted(periods):
        for track in tracks:
            if track[-1][1] <= period[0]:
                track.append(period)
                break
        else:
            if len(tracks) < _TRACKS:
                tracks.append([period])
            else:
                tracks[-1].append(period)
    found = []
    for number, track in enumerate(tracks):
        start, end, instruction = np.array(track, np.int64).T
        title = name if len(tracks) == 1 else f"{name} {number + 1}"
        found.append(Track(title, "operation", -1, start, end, np.full(len(track), OPERATION), instruction))
    return found


def drawn(track: Track, start: int, end: int, level: int) -> list[list[int]]:
    """The periods of a track in a tile: start, end, what, instruction; short ones that are close together are one."""
    chosen = np.flatnonzero((track.start < end) & (track.end > start))
    least = 1 << level
    found: list[list[int]] = []
    for at in chosen[: 16 * TILE].tolist():
        a, b, what = int(track.start[at]), int(track.end[at]), int(track.what[at])
        if b - a >= least or not level:
            found.append([a, b, what, int(track.instruction[at])])
        elif found and found[-1][2] == MANY and a - found[-1][1] < least:
            found[-1][1] = max(found[-1][1], b)
        else:
            found.append([a, b, MANY, int(track.instruction[at])])
    return found
