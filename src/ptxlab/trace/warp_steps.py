"""A recorded launch as its warps execute it: an instruction of a warp, with the lanes that take part, is one step.

The recording has threads one after the other, each until it waits. Here the lanes of a warp run together: of the
entries that a warp executes without another warp in between, of this launch or of those that run at the same time,
those of the same segment become one group, as lanes that have diverged and converge again would execute it, those
earliest in the program first.

A position is a number of warp steps: those before it are executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxlab.trace.accesses import FROM_PEER, Rows
from ptxlab.trace.columns import Numbers, Segment, stable_order
from ptxlab.trace.event_steps import EventSteps

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

_AHEAD = 512  # entries of each lane that are compared at a time
_PATTERN, _PATTERNS = 1 << 16, 256  # entries of a pattern that is kept, and how many of them
LANES = 32
_BITS = np.int64(1) << np.arange(LANES)


class WarpSteps:
    """The groups of entries that warps execute together, in order, and the steps of each."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        columns = trace.columns
        self.warps_in_block = -(-trace.accesses.threads_in_block // LANES)
        self.lane_of_entry: npt.NDArray[np.uint8] = self._lanes_of(columns.thread)
        self.tables = [np.array([number for number, _ in one.steps], np.int64) for one in columns.segments]
        self.lengths = np.array([len(one) for one in self.tables] or [0], np.int64)
        self._order = np.array([_place(one) for one in columns.segments] or [0], np.int64)
        members, sizes = self._grouped()
        self.members: Numbers = members
        """The entries, group by group; those of a group by their lanes."""
        self.start: Numbers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        """Where each group starts in `members`, and where the last ends."""
        self.group_of = np.empty(len(columns), np.int64)
        """The group of each entry."""
        self.group_of[members] = np.repeat(np.arange(len(sizes)), sizes)
        leading = members[self.start[:-1]] if len(sizes) else members
        self.segment: Numbers = columns.segment[leading]
        self.warp: Numbers = self.warps_of(columns.thread[leading])
        self.first: Numbers = np.concatenate([[0], np.cumsum(self._executed())]).astype(np.int64)
        """The first step of each group, and how many steps there are."""
        self.count = int(self.first[-1])

    # Groups.

    def _executed(self) -> Numbers:
        """How many steps of each group were executed by any lane: all but of the last, which may have failed."""
        columns = self.trace.columns
        found = self.lengths[self.segment]
        past = np.flatnonzero(columns.first_step[1:] > self.trace.steps)
        for group in np.unique(self.group_of[past]).tolist():
            done = self.trace.steps - columns.first_step[self.entries(group)]
            found[group] = int(np.clip(done, 0, found[group]).max())
        return found

    def _grouped(self) -> tuple[Numbers, Numbers]:
        """The entries in the order of groups, and how many entries each group has."""
        columns, count = self.trace.columns, len(self.trace.columns)
        if not count:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        warps = self.warps_of(columns.thread)
        others = np.flatnonzero(warps[1:] != warps[:-1]) + 1
        cuts = np.union1d(others, columns.interruptions).astype(np.int64).tolist()
        members, sizes = np.empty(count, np.int64), []
        known: dict[tuple[bytes, bytes], tuple[Numbers, Numbers]] = {}  # warps often do what others have done
        for start, end in zip([0, *cuts], [*cuts, count], strict=True):
            pattern = self.lane_of_entry[start:end].tobytes(), columns.segment[start:end].tobytes()
            found = known.get(pattern)
            if found is None:
                parts = list(self._converging(start, end))
                found = np.concatenate([one for one, _ in parts]) - start, np.concatenate([each for _, each in parts])
                if end - start < _PATTERN and len(known) < _PATTERNS:
                    known[pattern] = found
            np.add(found[0], start, out=members[start:end])
            sizes.append(found[1])
        return members, np.concatenate(sizes)

    def _converging(self, start: int, end: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Groups of entries from `start` to `end`, all of one warp: entries, and how many of them each group has."""
        own = self.lane_of_entry[start:end]
        order = start + np.argsort(own, kind="stable")
        counts = np.bincount(own)
        counts = counts[counts > 0]
        if (counts == counts[0]).all():
            together = order.reshape(len(counts), -1)
            segments_together = self.trace.columns.segment[together]
            if (segments_together == segments_together[0]).all():
                yield together.T.reshape(-1), np.full(together.shape[1], len(counts))
                return
        lanes = np.split(order, np.cumsum(counts)[:-1])
        segments = [self.trace.columns.segment[lane] for lane in lanes]
        at = [0] * len(lanes)
        while True:
            left = [lane for lane in range(len(lanes)) if at[lane] < len(lanes[lane])]
            if not left:
                return
            heads = [int(segments[lane][at[lane]]) for lane in left]
            if heads.count(heads[0]) == len(heads):
                ahead = min(_AHEAD, min(len(lanes[lane]) - at[lane] for lane in left))
                coming = np.array([segments[lane][at[lane] : at[lane] + ahead] for lane in left])
                differing = np.flatnonzero((coming != coming[0]).any(axis=0))
                common = int(differing[0]) if len(differing) else ahead
                chosen = np.array([lanes[lane][at[lane] : at[lane] + common] for lane in left])
                yield chosen.T.reshape(-1), np.full(common, len(left))
            else:
                common, earliest = 1, min(heads, key=lambda one: int(self._order[one]))
                left = [lane for lane, head in zip(left, heads, strict=True) if head == earliest]
                yield np.array([lanes[lane][at[lane]] for lane in left]), np.array([len(left)])
            for lane in left:
                at[lane] += common

    # Steps.

    def locate(self, step: int) -> tuple[int, int]:
        """The group of a warp step, and which of its steps that is."""
        group = int(np.searchsorted(self.first, step, "right")) - 1
        return group, step - int(self.first[group])

    def entries(self, group: int) -> Numbers:
        """The entries of a group, by their lanes."""
        return self.members[self.start[group] : self.start[group + 1]]

    def instruction(self, step: int) -> int:
        """The instruction of a warp step, by its number in the program."""
        group, index = self.locate(step)
        return int(self.tables[int(self.segment[group])][index])

    def range(self, start: int, end: int) -> tuple[Numbers, Numbers]:
        """The groups of the warp steps from `start` to `end`, and the instructions."""
        steps = np.arange(start, end)
        groups: Numbers = np.searchsorted(self.first, steps, "right") - 1
        return groups, self._table[self._starts[self.segment[groups]] + steps - self.first[groups]]

    @cached_property
    def _table(self) -> Numbers:
        return np.concatenate([*self.tables, np.zeros(1, np.int64)])

    @cached_property
    def _is_guarded(self) -> npt.NDArray[np.bool_]:
        return np.array([guard >= 0 for one in self.trace.columns.segments for _, guard in one.steps], np.bool_)

    @cached_property
    def _starts(self) -> Numbers:
        return np.concatenate([[0], np.cumsum(self.lengths)])

    def all_active(self, start: int, groups: Numbers) -> list[int]:
        """The lanes that execute each of some steps one after the other, whose groups are given."""
        if not len(groups):
            return []
        columns, first, last = self.trace.columns, int(groups[0]), int(groups[-1])
        members = self.members[self.start[first] : self.start[last + 1]]
        bits = np.bitwise_or.reduceat(_BITS[self.lane_of_entry[members]], self.start[first : last + 1]
                                      - self.start[first])  # fmt: skip
        inside = start + np.arange(len(groups)) - self.first[groups]
        is_end = columns.first_step[members + 1].max() > self.trace.steps  # the last may have failed
        found: list[int] = bits[groups - first].tolist()
        for at in np.flatnonzero(self._is_guarded[self._starts[self.segment[groups]] + inside] | is_end).tolist():
            found[at] = self.active(int(groups[at]), int(inside[at]))
        return found

    def active(self, group: int, index: int) -> int:
        """The lanes that execute a step, a bit for each: those whose guard held."""
        columns, entries = self.trace.columns, self.entries(group)
        _, guard = columns.segments[int(self.segment[group])].steps[index]
        entries = columns.held(entries, guard)
        entries = entries[columns.first_step[entries] + index < self.trace.steps]
        return mask_of(self.lane_of_entry[entries])

    @cached_property
    def _by_warp(self) -> tuple[Numbers, dict[int, tuple[int, int]]]:
        order = stable_order(self.warp)
        warps, starts = np.unique(self.warp[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)][: len(starts)]
        return order, {int(w): (int(a), int(b)) for w, a, b in zip(warps, starts, ends, strict=True)}

    @property
    def warps(self) -> list[int]:
        """The recorded warps, counted through the grid."""
        return list(self._by_warp[1])

    def groups_of(self, warp: int) -> Numbers:
        """The groups of a warp, in order."""
        order, ranges = self._by_warp
        start, end = ranges.get(warp, (0, 0))
        return order[start:end]

    def around(self, warp: int, position: int) -> tuple[int, int]:
        """The last step of a warp before a position, and the first from there on; -1 if there is none."""
        groups = self._nonempty_groups(warp)
        index = int(np.searchsorted(self.first[groups], position))
        before = after = -1
        if index:
            group = int(groups[index - 1])
            last = int(self.first[group + 1]) - 1
            before = min(last, position - 1)
            after = position if last >= position else -1
        if after < 0 and index < len(groups):
            after = int(self.first[groups[index]])
        return before, after

    def _nonempty_groups(self, warp: int) -> Numbers:
        if warp not in self._nonempty:
            groups = self.groups_of(warp)
            self._nonempty[warp] = groups[self.first[groups + 1] > self.first[groups]]
        return self._nonempty[warp]

    @cached_property
    def _nonempty(self) -> dict[int, Numbers]:
        return {}

    def keys(self, warp: int, position: int) -> dict[int, int]:
        """For each thread of a warp, up to where what it wrote counts at a position; see `Columns.keys`."""
        columns, in_block = self.trace.columns, self.trace.accesses.threads_in_block
        found: dict[int, int] = {}
        block, own_warp = divmod(warp, self.warps_in_block)
        first = block * in_block + own_warp * LANES
        for thread in range(first, min(first + LANES, (block + 1) * in_block)):
            own = columns.entries_by(thread)
            if not len(own):
                continue
            groups = self.group_of[own]
            index = int(np.searchsorted(self.first[groups], position))
            if not index:
                found[thread] = 0
                continue
            entry = int(own[index - 1])
            steps = min(position - int(self.first[groups[index - 1]]), int(self.lengths[columns.segment[entry]]))
            found[thread] = 2 * (int(columns.first_step[entry]) + steps) + 1
        return found

    def position_of(self, step: int) -> int:
        """The warp step that a step of a thread is part of."""
        entry, index = self.trace.columns.locate(min(step, self.trace.steps - 1))
        return int(self.first[self.group_of[entry]]) + index

    # When things happened: the last step before which they count.

    def when(self, rows: Rows) -> Numbers:
        """The warp step after which each of some accesses is done."""
        columns = self.trace.columns
        entries = np.maximum(rows.entry, 0)
        inside = rows.key // 2 - columns.first_step[entries]
        groups = self.group_of[entries] if len(columns) else np.zeros(len(entries), np.int64)
        found: Numbers = self.first[groups] + inside - (rows.key % 2 == 0)
        is_peer = rows.event >= FROM_PEER
        is_event = (rows.event >= 0) & ~is_peer
        found[is_event] = self.event_steps[rows.event[is_event]]
        next_entries = np.append(self.members, 0)[rows.entry[is_peer] + 1]
        after = self.first[np.append(self.group_of, len(self.first) - 1)[next_entries]]
        is_last = rows.entry[is_peer] + 1 >= len(columns)
        found[is_peer] = np.where(is_last, self.count, after) - 1
        return found

    @cached_property
    def event_steps(self) -> EventSteps:
        """The warp step after which each event has happened."""
        return EventSteps(self)

    def warps_of(self, threads: Numbers) -> Numbers:
        """The warps of threads, both counted through the grid."""
        in_block = self.trace.accesses.threads_in_block
        if in_block % LANES == 0:
            return threads // LANES
        block = threads // in_block
        found: Numbers = block * self.warps_in_block + (threads - block * in_block) // LANES
        return found

    def warp_of(self, thread: int) -> int:
        """The warp of a thread, both counted through the grid."""
        block, own = divmod(thread, self.trace.accesses.threads_in_block)
        return block * self.warps_in_block + own // LANES

    def _lanes_of(self, threads: Numbers) -> npt.NDArray[np.uint8]:
        in_block = self.trace.accesses.threads_in_block
        own = threads if in_block % LANES == 0 else threads - threads // in_block * in_block
        return own.astype(np.uint8) % LANES

    def events_of(self, block: int) -> Numbers:
        """The events that threads of a block have caused, in order."""
        return self.event_steps.of_block(block)

    def places(self, subject: str, *actions: str) -> list[tuple[int, int, int]]:
        """Where instructions are that do something: the segment, which of its steps, and the instruction."""
        known = (subject, *actions)
        if known not in self._places:
            self._places[known] = [
                (number, index, instruction)
                for number, table in enumerate(self.tables)
                for index, instruction in enumerate(table.tolist())
                if self._does(instruction, subject, actions)
            ]
        return self._places[known]

    def _does(self, instruction: int, subject: str, actions: tuple[str, ...]) -> bool:
        match = self.trace.program.match(instruction)
        return match is not None and any(match.effects.does(subject, action) for action in actions)

    @cached_property
    def _places(self) -> dict[tuple[str, ...], list[tuple[int, int, int]]]:
        return {}

    def index_in(self, segment: Numbers, instruction: Numbers) -> Numbers:
        """Which step of a segment each instruction is; -1 if it is not one of them."""
        known = self._indices
        found: Numbers = known[segment, np.minimum(instruction, known.shape[1] - 1)].astype(np.int64)
        return found

    @cached_property
    def _indices(self) -> npt.NDArray[np.int32]:
        known = np.full((len(self.tables), len(self.trace.program.instructions) + 1), -1, np.int32)
        for number, table in enumerate(self.tables):
            known[number, table] = np.arange(len(table))
        return known


def _place(segment: Segment) -> int:
    """Where in the program a segment is."""
    return min([number for number, _ in segment.steps] or [slot.instruction for slot in segment.slots] or [0])


def mask_of(lanes: npt.NDArray[np.integer[Any]]) -> int:
    """Lanes as bits."""
    return int(np.bitwise_or.reduce(_BITS[lanes], initial=0))
