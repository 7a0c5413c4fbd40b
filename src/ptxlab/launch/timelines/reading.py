"""A timeline from what a kernel has recorded: when its warps ran and waited, and how long operations were in flight.

An operation lasts from its issue until the first wait that saw it complete: on its mbarrier, or for its group. A warp
that waits already sees it at once; otherwise it was complete before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from ptxlab.launch.timelines.code import OWN
from ptxlab.launch.timelines.events import TRACKS, TimedEvent
from ptxlab.timelines import WARP, Span, Timeline
from ptxlab.timelines.layout import LONGEST, STEPS, Layout, RecordedWarp

SHORT = 2**32 - 1  # the longest duration that a record has
# What warps are called that issue operations of a unit.
ROLES = {
    ("bulk", "issue"): "loads",
    ("async_copy", "commit"): "loads",
    ("wgmma", "commit"): "MMAs",
    ("tensor_memory", "commit"): "MMAs",
    ("bulk", "commit"): "stores",
}
MORE = "launch with more, as in `timeline=4096`"


class Moment(NamedTuple):
    """A record: what a warp did, and when."""

    event: TimedEvent
    tag: int
    start: int
    end: int


@dataclass
class Warp:
    """The records of a warp, in their order, with times of the launch."""

    block: int
    number: int
    start: int
    end: int
    moments: list[Moment]
    is_full: bool
    """Whether it had no space for all of its records: nothing is known after the last."""
    role: str = ""


def read(layout: Layout, data: bytes, events: Sequence[TimedEvent]) -> Timeline:
    """The timeline that a launch has left in memory."""
    recorded = [one for one in layout.warps_in(data) if one.start]
    zeros, shared = _zeros(recorded)
    warps = [_warp(one, zeros[one.sm], events) for one in recorded]
    _name_roles(warps)
    spans = sorted([*_running(warps), *_operations(warps)], key=attrgetter("block", "warp", "end"))
    is_emulator = bool(recorded) and recorded[0].machine == 1
    lost = sum(max(one.count - layout.capacity, 0) for one in recorded)
    return Timeline(tuple(spans), STEPS if is_emulator else "cycles", lost, shared, MORE)


def _own(recorded: RecordedWarp) -> tuple[int, int, int]:
    """When a warp ended by the clock of its SM, and when it started and ended by that of the GPU."""
    (_, end), (start, stop) = (recorded.words(number) for number in range(OWN))
    return end, start, stop


def _zeros(recorded: Sequence[RecordedWarp]) -> tuple[dict[int, int], bool]:
    """Of each SM, what its clock showed when the first warp of the launch started; whether that is known."""
    if not recorded:
        return {}, True
    if recorded[0].machine == 1:
        first = min(one.start for one in recorded)
        return {one.sm: first for one in recorded}, True
    ended = [(one, *_own(one)) for one in recorded if _own(one)[0]]
    cycles = sum(end - one.start for one, end, _, _ in ended)
    nanoseconds = sum(stop - start for _, _, start, stop in ended)
    rate = cycles / nanoseconds if nanoseconds else 0.0
    first = min(_own(one)[1] for one in recorded)
    zeros: dict[int, int] = {}
    for one in recorded:
        # The timer of the GPU counts in steps, and shows the last of them: the latest reading is the nearest.
        zero = one.start - round((_own(one)[1] - first) * rate)
        zeros[one.sm] = min(zeros.get(one.sm, zero), zero)
    return zeros, rate > 0


def _warp(recorded: RecordedWarp, zero: int, events: Sequence[TimedEvent]) -> Warp:
    start = recorded.start
    end = max(_own(recorded)[0], start)
    moments = []
    for first, second in islice(recorded.records(), OWN, None):
        stop = start + (second - start & LONGEST)
        first_time = stop - (second - first & SHORT)
        moments.append(Moment(events[second >> 48], first >> 48, first_time - zero, stop - zero))
        end = max(end, stop)
    is_full = recorded.count > recorded.layout.capacity
    return Warp(recorded.block, recorded.warp, start - zero, end - zero, moments, is_full)


def _running(warps: Sequence[Warp]) -> Iterator[Span]:
    """When each warp ran, and what it waited for between."""
    for warp in warps:
        block, number, role = warp.block, warp.number, warp.role
        at, line = warp.start, 0
        for event, _, start, end in warp.moments:
            if not event.is_wait:
                continue
            if start > at:
                yield Span(block, number, role, "runs", at, start, WARP, line)
            yield Span(block, number, role, event.label, start, end, WARP, event.line)
            at, line = max(at, end), event.line
        if warp.end > at:
            yield Span(block, number, role, "not recorded" if warp.is_full else "runs", at, warp.end, WARP, line)


def _operations(warps: Sequence[Warp]) -> Iterator[Span]:
    """Asynchronous operations: those that complete on an mbarrier, and groups."""
    waits: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for warp in warps:
        for moment in warp.moments:
            if moment.event.kind in ("poll", "ask"):
                waits.setdefault((warp.block, moment.tag), []).append((moment.end, warp.number))
    for times in waits.values():
        times.sort()
    last = {warp.block: warp.end for warp in sorted(warps, key=lambda one: one.end)}
    full = {warp.block for warp in warps if warp.is_full}
    found = [span for warp in warps for span in (*_copies(warp, waits, last), *_groups(warp, last))]
    lines = {(TRACKS["wgmma"], one.event.line) for warp in warps for one in warp.moments if one.event.unit == "wgmma"}
    yield from (span for span in _together(found, lines) if span.observed is not None or span.block not in full)


def _copies(warp: Warp, waits: dict[tuple[int, int], list[tuple[int, int]]], last: dict[int, int]) -> Iterator[Span]:
    """Operations that complete on an mbarrier, until the first wait on that."""
    for moment in warp.moments:
        if moment.event.mbarrier is not None and not moment.event.is_wait:
            after = waits.get((warp.block, moment.tag), [])
            at = bisect_left(after, (moment.end, 0))
            seen = after[at] if at < len(after) else None
            yield _operation(warp, moment, None if seen is None else (warp.block, seen[1], seen[0]), last)


def _together(spans: Sequence[Span], lines: set[tuple[str, int]]) -> Iterator[Span]:
    """The spans, those that the warps of a warpgroup have of one group of `wgmma` as one; `lines` has those."""
    groups: dict[tuple[int, ...], list[Span]] = {}
    turns: Counter[tuple[int, int]] = Counter()
    for span in spans:
        if (span.track, span.line) not in lines:
            yield span
            continue
        turns[span.block, span.warp] += 1
        groups.setdefault((span.block, span.warp // 4, turns[span.block, span.warp]), []).append(span)
    for together in groups.values():
        latest = max(together, key=attrgetter("end"))
        yield replace(latest, start=min(span.start for span in together), count=len(together))


def _groups(warp: Warp, last: dict[int, int]) -> Iterator[Span]:
    """Groups of operations, until a wait of their warp that leaves fewer."""
    flying: dict[str, list[Moment]] = {}
    for moment in warp.moments:
        event = moment.event
        if event.kind == "commit" and event.mbarrier is None:
            flying.setdefault(event.unit, []).append(moment)
        elif event.kind == "wait" and event.unit in flying:
            groups = flying[event.unit]
            over = groups[: max(len(groups) - event.left, 0)]
            del groups[: len(over)]
            yield from (_operation(warp, one, (warp.block, warp.number, moment.end), last) for one in over)
    yield from (_operation(warp, one, None, last) for groups in flying.values() for one in groups)


def _operation(warp: Warp, issued: Moment, seen: tuple[int, int, int] | None, last: dict[int, int]) -> Span:
    end = max(last[warp.block] if seen is None else seen[2], issued.start + 1)
    event = issued.event
    return Span(
        warp.block, warp.number, warp.role, event.text, issued.start, end, TRACKS[event.unit], event.line, 1, seen
    )  # fmt: skip


def _name_roles(warps: Sequence[Warp]) -> None:
    """Name each warp after what it issues, where the warps of a block are not all alike."""
    kinds: dict[int, set[str]] = {}
    for warp in warps:
        units = {(event.unit, event.kind) for event in {one.event.at: one.event for one in warp.moments}.values()}
        warp.role = " and ".join(dict.fromkeys(word for key, word in ROLES.items() if key in units))
        kinds.setdefault(warp.block, set()).add(warp.role)
    for warp in warps:
        if len(kinds[warp.block]) == 1:
            warp.role = ""
