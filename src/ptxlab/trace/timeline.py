"""What the warps of a recorded launch did when, and the asynchronous operations beside them; times are steps.

A warp runs, or waits: at which instruction is known when it continues. An asynchronous operation lasts from its issue
until it has written its last byte, an MMA by `wgmma` until its group was waited for. Operations that one instruction of
a warp issued together are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ptxlab.device.trace_format import COMPLETED, OBSERVED, WRITTEN
from ptxlab.timelines import Span, Timeline
from ptxlab.timelines.layout import STEPS
from ptxlab.trace.columns import Numbers

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

ISSUED, GROUP_WAITED = 1, 12
NO_PHASE = 0xFFFFFFFF  # that a wait has seen: it was for the phase before the first


def periods_of(trace: Trace) -> list[Span]:
    """All periods, by their starts."""
    found = [*_running(trace), *_operations(trace), *_products(trace)]
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
    columns, count = trace.columns, trace.accesses.threads_in_block
    events, last = columns.events, len(columns)
    steps = columns.first_step[np.minimum(events["time"].astype(np.int64), last)]
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
    events, count = trace.columns.events, trace.accesses.threads_in_block
    event = events[number]
    for later in range(number + 1, min(number + 8, len(events))):
        signal = events[later]
        if signal["kind"] == COMPLETED and signal["instruction"] == event["instruction"]:
            seen = events["kind"] == OBSERVED
            seen &= (events["block"] == signal["block"]) & (events["address"] == signal["address"])
            seen &= (events["operation"] >= signal["operation"]) & (events["operation"] != NO_PHASE)
            break
    else:
        seen = (events["kind"] == GROUP_WAITED) & (events["thread"] == event["thread"])
    after = np.flatnonzero(seen & (steps >= steps[number]))
    if not len(after):
        return None
    block, thread = divmod(int(events["thread"][after[0]]), count)
    return block, thread // 32, int(steps[after[0]])


def _products(trace: Trace) -> Iterator[Span]:
    """MMAs by `wgmma`: from their issue until the warp has waited for them."""
    columns, count = trace.columns, trace.accesses.threads_in_block
    starts: dict[tuple[int, int], list[tuple[int, int]]] = {}
    waits: dict[tuple[int, int], list[int]] = {}
    for number, segment in enumerate(columns.segments):
        for index, (instruction, _) in enumerate(segment.steps):
            match = trace.program.match(instruction)
            is_start = match is not None and match.effects.does("wgmma", "start")
            if match is None or not (is_start or match.effects.does("wgmma", "wait")):
                continue
            entries = columns.entries_of(number)
            entries = entries[columns.thread[entries] % 32 == 0]  # of a warp, its first lane
            for entry in entries.tolist():
                block, thread = divmod(int(columns.thread[entry]), count)
                step = int(columns.first_step[entry]) + index
                if is_start:
                    starts.setdefault((block, thread // 32), []).append((step, instruction))
                else:
                    waits.setdefault((block, thread // 32), []).append(step)
    for (block, warp), issued in starts.items():
        over = np.array(sorted(waits.get((block, warp), [])))
        for step, instruction in issued:
            position = int(np.searchsorted(over, step))
            is_seen = position < len(over)
            end = int(over[position]) if is_seen else trace.steps
            text, line = trace.program.text(instruction), trace.program.line(instruction)
            seen = (block, warp, end) if is_seen else None
            yield Span(block, warp, "", text, step, max(end, step + 1), "tensor cores", line, 1, seen)
