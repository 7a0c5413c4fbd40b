"""The order of a replay: threads of a block that run through the same segments are taken together.

A phase is a part of a recording in which no thread of a block learns what others do in it, beyond its own warp: it ends
at barriers, where threads synchronize through memory, and where an asynchronous operation is made that was started in
it. An operation that was started before may be made at any time up to where it is waited for: here, that is when the
phase starts. What warps do in a phase is in no order, or the launch would have had a data race, which the emulator
reports; so they are taken together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptxlab.device.trace_format import ISSUED, READ, WRITTEN
from ptxlab.equal.nodes import Ids
from ptxlab.equal.plans import InstructionPlan
from ptxlab.trace import Trace

LANES = 32


@dataclass(frozen=True)
class Batch:
    """Threads that run through the segments of a path, from these entries on."""

    block: int
    threads: Ids
    """Their numbers in the grid."""
    path: tuple[int, ...]
    entries: Ids
    """The first entry of each."""
    until: int
    """The asynchronous operations up to this entry are made before it."""


class _Phase:
    """What is taken together so far: for each warp, the paths of its threads from one wait to the next."""

    def __init__(self, block: int, start: int, opening: int) -> None:
        self.block, self.start, self.opening = block, start, opening
        self.threads: set[int] = set()
        self._windows: dict[int, list[dict[tuple[int, ...], list[int]]]] = {}
        self._seen: dict[int, set[int]] = {}
        self.last: tuple[int, ...] = ()

    def add(self, thread: int, path: tuple[int, ...], entry: int) -> None:
        warp = thread // LANES
        windows = self._windows.setdefault(warp, [])
        if not windows or thread in self._seen[warp]:
            windows.append({})
            self._seen[warp] = set()
        self._seen[warp].add(thread)
        self.threads.add(thread)
        windows[-1].setdefault(path, []).append(entry)
        self.last = path

    def batches(self, trace: Trace, until: int) -> Iterator[Batch]:
        for turn in range(max((len(one) for one in self._windows.values()), default=0)):
            joined: dict[tuple[int, ...], list[int]] = {}
            for windows in self._windows.values():
                for path, first in windows[turn].items() if turn < len(windows) else ():
                    joined.setdefault(path, []).extend(first)
            for path, first in joined.items():
                entries = np.array(first, np.int64)
                yield Batch(self.block, trace.columns.thread[entries], path, entries, until)


class _Operations:
    """The asynchronous operations: when they were started and made."""

    def __init__(self, trace: Trace) -> None:
        events = trace.columns.events
        made = events[(events["kind"] == READ) | (events["kind"] == WRITTEN)]
        started = events[events["kind"] == ISSUED]
        issued = {(int(e["operation"]), int(e["thread"]), int(e["instruction"])): int(e["time"]) for e in started}
        late = len(trace.columns) + 1
        self._at: dict[int, int] = {}
        """The last start of what is made at a time."""
        for e in made[["time", "operation", "thread", "instruction"]].tolist():
            start = issued.get((e[1], e[2], e[3]), late)
            self._at[e[0]] = max(self._at.get(e[0], -1), start)

    def __contains__(self, entry: int) -> bool:
        return entry in self._at

    def is_new(self, entry: int, start: int) -> bool:
        """Whether anything is made before an entry that was not started before another."""
        return self._at.get(entry, -1) >= start


def batches(trace: Trace, plans: list[InstructionPlan]) -> Iterator[Batch]:
    """All batches of a launch, in order."""
    columns = trace.columns
    size = trace.accesses.threads_in_block
    segments, threads = columns.segment.tolist(), columns.thread.tolist()
    operations = _Operations(trace)
    waits = [_waits(plans, segment.steps) for segment in columns.segments]
    barriers = [_is_barrier(plans, segment.steps) for segment in columns.segments]
    alone = [_is_alone(plans, segment.steps) for segment in columns.segments]
    ordered = [_is_ordered(plans, segment.steps) for segment in columns.segments]
    phase = _Phase(-1, 0, -1)
    at, count = 0, len(segments)
    while at < count:
        thread, first, end = threads[at], segments[at], at + 1
        while end < count and threads[end] == thread and end not in operations and not waits[segments[end]]:
            end += 1
        path = tuple(segments[at:end])
        own = set(path)
        is_new = operations.is_new(at, phase.start)
        ends = thread // size != phase.block or is_new
        ends |= barriers[first] and (first != phase.opening or thread in phase.threads)
        ends |= any(ordered[one] for one in own) and (phase.last != path or any(alone[one] for one in own))
        if ends:
            yield from phase.batches(trace, at - is_new)
            phase = _Phase(thread // size, at, first if barriers[first] else -1)
        phase.add(thread, path, at)
        at = end
    yield from phase.batches(trace, count)


def _waits(plans: list[InstructionPlan], steps: list[tuple[int, int]]) -> bool:
    """Whether a segment starts with an instruction that lanes of a warp execute together."""
    match = plans[steps[0][0]].match if steps else None
    return match is not None and (match.effects.converges or match.effects.barrier is not None)


def _is_barrier(plans: list[InstructionPlan], steps: list[tuple[int, int]]) -> bool:
    """Whether a segment starts where threads of a block, or of a cluster, have waited for each other."""
    match = plans[steps[0][0]].match if steps else None
    return match is not None and match.effects.barrier is not None


def _is_ordered(plans: list[InstructionPlan], steps: list[tuple[int, int]]) -> bool:
    """Whether what a thread does here may have to come after what another did just before."""
    matches = [plans[number].match for number, _ in steps]
    return _is_alone(plans, steps) or any(m is not None and m.effects.uses("mbarrier") for m in matches)


def _is_alone(plans: list[InstructionPlan], steps: list[tuple[int, int]]) -> bool:
    """Whether the order of threads matters: they synchronize through memory."""
    matches = [plans[number].match for number, _ in steps]
    return any(
        match is not None and not match.effects.converges and not match.effects.uses("mbarrier")
        and (match.effects.synchronizes or any(one.kind == "update" for one in match.effects.accesses))
        for match in matches
    )  # fmt: skip
