"""What the warps of a recorded launch did when, and the asynchronous operations beside them; times are steps.

A warp runs, or waits: at which instruction is known when it continues. An asynchronous operation lasts from its issue
until it has written its last byte, an MMA by `wgmma` until its group was waited for. Operations that one instruction of
a warp issued together are one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ptxlab.device.trace_format import ARRIVED, COMPLETED, GROUP_WAITED, ISSUED, OBSERVED, WRITTEN
from ptxlab.timelines import Span, Timeline
from ptxlab.timelines.layout import STEPS
from ptxlab.trace.columns import Numbers

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

NO_PHASE = 0xFFFFFFFF  # that a wait has seen: it was for the phase before the first


def periods_of(trace: Trace) -> list[Span]:
    """All periods, by their starts."""
    found = [*_running(trace), *_operations(trace), *_products(trace), *_tensor_products(trace)]
    return sorted(found, key=lambda one: (one.start, one.end))


def timeline_of(trace: Trace) -> Timeline:
    """All of it, to draw and to save."""
    return Timeline(tuple(periods_of(trace)), STEPS, shared_clock=True)


def _running(trace: Trace) -> Iterator[Span]:
    """When each warp ran, and what it waited for between."""
    columns, count = trace.columns, trace.accesses.threads_in_block
    if not len(columns):
        return
    block, thread = np.divmod(columns.thread, count)
    warp = block * ((count + 31) // 32) + thread // 32
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(warp)) + 1, [len(warp)]])
    ended: dict[int, int] = {}
    for first, past in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        start, end = int(columns.first_step[first]), min(int(columns.first_step[past]), trace.steps)
        number = int(warp[first])
        where = int(block[first]), int(thread[first]) // 32
        steps = [step for entry in range(first, min(first + 32, past)) for step in columns.segment_of(entry).steps[:1]]
        instruction = steps[0][0] if steps else 0
        line = trace.program.line(instruction)
        if number in ended and start > ended[number]:
            waits = f"waits: {trace.program.text(instruction)}"
            yield Span(*where, "", waits, ended[number], start, line=line)
        if end > start:
            yield Span(*where, "", "runs", start, end, line=line)
            ended[number] = end


def _operations(trace: Trace) -> Iterator[Span]:
    """Asynchronous copies: from their issue until they have written their last byte, and the wait that saw it."""
    count, events = trace.accesses.threads_in_block, trace.columns.events
    steps = _steps_of_events(trace)
    open_: dict[tuple[int, int], tuple[int, int, int, int]] = {}  # by block and operation: issue, thread, instruction
    times: Counter[tuple[int, int]] = Counter()  # that a thread has executed an instruction
    ends: dict[tuple[int, int], tuple[int, int]] = {}  # by the same: the last write, and its event
    for number in np.flatnonzero(np.isin(events["kind"], (ISSUED, WRITTEN))).tolist():
        event = events[number]
        thread = int(event["thread"])
        known = thread // count, int(event["operation"])
        if event["kind"] == ISSUED:
            instruction = int(event["instruction"])
            times[thread, instruction] += 1
            open_[known] = int(steps[number]), thread, instruction, times[thread, instruction]
        elif known in open_:
            ends[known] = int(steps[number]), number
    groups: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    for known, (start, thread, instruction, time) in open_.items():
        end, number = ends.get(known, (trace.steps, -1))
        warp = thread % count // 32
        groups.setdefault((known[0], warp, instruction, known[1] >> 31, time), []).append((start, end, number))
    for (block, warp, instruction, is_bulk, _), together in groups.items():
        start, end = min(one[0] for one in together), max(one[1] for one in together)
        number = max(one[2] for one in together)
        yield Span(
            block,
            warp,
            "",
            trace.program.text(instruction),
            start,
            max(end, start + 1),
            "bulk copies" if is_bulk else "cp.async",
            trace.program.line(instruction),
            len(together),
            _observed(trace, number, steps) if number >= 0 else None,
        )


def _observed(trace: Trace, number: int, steps: Numbers) -> tuple[int, int, int] | None:
    """The first wait that saw an operation complete: on its mbarrier, or for the groups of its thread."""
    events = trace.columns.events
    event = events[number]
    for later in range(number + 1, min(number + 8, len(events))):
        signal = events[later]
        if signal["kind"] == COMPLETED and signal["instruction"] == event["instruction"]:
            return _observation(trace, later, steps, steps[number])
    seen = (events["kind"] == GROUP_WAITED) & (events["thread"] == event["thread"])
    after = np.flatnonzero(seen & (steps >= steps[number]))
    return _place(trace, after[0], steps) if len(after) else None


def _observation(trace: Trace, number: int, steps: Numbers, since: int = 0) -> tuple[int, int, int] | None:
    """The first wait on an mbarrier that saw the phase complete to which an event there belongs."""
    events = trace.columns.events
    signal = events[number]
    seen = (events["kind"] == OBSERVED) & (events["block"] == signal["block"])
    seen &= (events["address"] == signal["address"]) & (steps >= since)
    seen &= (events["operation"] >= signal["operation"]) & (events["operation"] != NO_PHASE)
    found = np.flatnonzero(seen)
    return _place(trace, found[0], steps) if len(found) else None


def _place(trace: Trace, number: int, steps: Numbers) -> tuple[int, int, int]:
    """The block, the warp and the step of an event."""
    block, thread = divmod(int(trace.columns.events["thread"][number]), trace.accesses.threads_in_block)
    return block, thread // 32, int(steps[number])


def _steps_of_events(trace: Trace) -> Numbers:
    """Before which step each event happened."""
    columns = trace.columns
    return columns.first_step[np.minimum(columns.events["time"].astype(np.int64), len(columns))]


def _products(trace: Trace) -> Iterator[Span]:
    """MMAs by `wgmma`: from their issue until the warp has waited for them."""
    starts, waits = _executions(trace, "wgmma", "start"), _executions(trace, "wgmma", "wait")
    for thread, issued in starts.items():
        over = np.array([step for step, _ in waits.get(thread, [])])
        for step, instruction in issued:
            position = int(np.searchsorted(over, step))
            is_seen = position < len(over)
            end = int(over[position]) if is_seen else trace.steps
            yield _product(trace, thread, (step, end), instruction, 1, end if is_seen else None)


def _product(trace: Trace, thread: int, times: tuple[int, int], instruction: int, count: int, seen: int | None) -> Span:
    block, own = divmod(thread, trace.accesses.threads_in_block)
    text, line = trace.program.text(instruction), trace.program.line(instruction)
    observed = None if seen is None else (block, own // 32, seen)
    start, end = times
    return Span(block, own // 32, "", text, start, max(end, start + 1), "tensor cores", line, count, observed)


def _executions(trace: Trace, unit: str, name: str) -> dict[int, list[tuple[int, int]]]:
    """By thread, when it did something with a unit, and by which instruction; of `wgmma`, of the first lane alone."""
    columns = trace.columns
    found: dict[int, list[tuple[int, int]]] = {}
    for number, segment in enumerate(columns.segments):
        for index, (instruction, guard) in enumerate(segment.steps):
            match = trace.program.match(instruction)
            if match is None or not match.effects.does(unit, name):
                continue
            entries = columns.held(columns.entries_of(number), guard)
            if match.effects.aligned:
                entries = entries[columns.thread[entries] % 32 == 0]
            for entry in entries.tolist():
                step = int(columns.first_step[entry]) + index
                found.setdefault(int(columns.thread[entry]), []).append((step, instruction))
    return {thread: sorted(steps) for thread, steps in found.items()}


def _tensor_products(trace: Trace) -> Iterator[Span]:
    """MMAs by `tcgen05`: from the first of those that a commit is for until that has arrived at its mbarrier."""
    steps = _steps_of_events(trace)
    commits = _executions(trace, "tensor_memory", "commit")
    for thread, issued in _executions(trace, "tensor_memory", "multiply").items():
        first = 0
        done: Counter[int] = Counter()
        found: list[Span] = []
        for step, commit in commits.get(thread, []):
            arrivals = _arrivals(trace, thread, commit)
            turn, done[commit] = done[commit], done[commit] + 1
            event = int(arrivals[turn]) if turn < len(arrivals) else -1
            end = int(steps[event]) if event >= 0 else trace.steps
            seen = _observation(trace, event, steps) if event >= 0 else None
            last = bisect_left(issued, (step, 0))
            if last > first:
                span = _product(trace, thread, (issued[first][0], end), issued[first][1], last - first, None)
                found.append(replace(span, observed=seen))
            elif found and found[-1].observed is None:  # the same MMAs, at another mbarrier
                found[-1] = replace(found[-1], observed=seen)
            first = last
        yield from found


def _arrivals(trace: Trace, thread: int, commit: int) -> Numbers:
    """The events by which commits of a thread have arrived at mbarriers; of several blocks, at those of one."""
    events = trace.columns.events
    found = np.flatnonzero(
        (events["kind"] == ARRIVED) & (events["thread"] == thread) & (events["instruction"] == commit)
    )
    return found[events["block"][found] == events["block"][found[0]]] if len(found) else found
