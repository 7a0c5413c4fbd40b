"""The order of a replay: threads of a block that run through the same segments are taken together.

What a thread does between two waits is in no order with what other threads of its block do meanwhile, or the launch
would have had a data race, which the emulator reports. So threads are taken together from where each has waited up to
where one of them has again; where threads synchronize through memory, and where asynchronous operations read or write,
the order is that of the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptxlab.device.trace_format import READ, WRITTEN
from ptxlab.equal.nodes import Ids
from ptxlab.equal.plans import Plan
from ptxlab.trace import Trace


@dataclass(frozen=True)
class Batch:
    """Threads that run through the segments of a path, from these entries on."""

    block: int
    threads: Ids
    """Their numbers in the grid."""
    path: tuple[int, ...]
    entries: Ids
    """The first entry of each."""


def batches(trace: Trace, plans: list[Plan]) -> Iterator[Batch]:
    """All batches of a launch, in order."""
    columns = trace.columns
    size = trace.accesses.threads_in_block
    segments, threads = columns.segment.tolist(), columns.thread.tolist()
    events = columns.events
    cuts = set(events["time"][(events["kind"] == READ) | (events["kind"] == WRITTEN)].tolist())
    starts = [_waits(plans, segment.steps) for segment in columns.segments]
    ordered = [_is_ordered(plans, segment.steps) for segment in columns.segments]
    alone = [_is_alone(plans, segment.steps) for segment in columns.segments]
    block, seen = -1, set[int]()
    open: dict[tuple[int, ...], list[int]] = {}
    at, count = 0, len(segments)
    while at < count:
        thread, end = threads[at], at + 1
        while end < count and threads[end] == thread and end not in cuts and not starts[segments[end]]:
            end += 1
        path = tuple(segments[at:end])
        is_last = bool(open) and next(reversed(open)) == path and not any(alone[segment] for segment in set(path))
        waits = any(ordered[segment] for segment in set(path)) and not is_last
        if thread // size != block or at in cuts or thread in seen or waits:
            for own, first in open.items():
                yield _batch(trace, block, own, first)
            block, seen, open = thread // size, set(), {}
        seen.add(thread)
        open.setdefault(path, []).append(at)
        at = end
    for own, first in open.items():
        yield _batch(trace, block, own, first)


def _batch(trace: Trace, block: int, path: tuple[int, ...], first: list[int]) -> Batch:
    entries = np.array(first, np.int64)
    return Batch(block, trace.columns.thread[entries], path, entries)


def _waits(plans: list[Plan], steps: list[tuple[int, int]]) -> bool:
    """Whether a segment starts with an instruction that lanes of a warp execute together."""
    match = plans[steps[0][0]].match if steps else None
    return match is not None and (match.effects.converges or match.effects.barrier is not None)


def _is_ordered(plans: list[Plan], steps: list[tuple[int, int]]) -> bool:
    """Whether what a thread does here may have to come after what another did just before."""
    matches = [plans[number].match for number, _ in steps]
    return _is_alone(plans, steps) or any(m is not None and m.effects.uses("mbarrier") for m in matches)


def _is_alone(plans: list[Plan], steps: list[tuple[int, int]]) -> bool:
    """Whether the order of threads matters: they synchronize through memory."""
    matches = [plans[number].match for number, _ in steps]
    return any(
        match is not None and not match.effects.converges and not match.effects.uses("mbarrier")
        and (match.effects.synchronizes or any(one.kind == "update" for one in match.effects.accesses))
        for match in matches
    )  # fmt: skip
