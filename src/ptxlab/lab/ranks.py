"""Several launches that ran at the same time, as the page asks for them.

`node` is what does not depend on the position: the launches, their clocks, flags, and arrows between launches.
`ranks/2/5` is a part of the timeline of all of them. What one launch has is asked for by its number: `1/steps/3`.

The axis of the timeline is time, without stretches in which warps do nothing but poll: these are short on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ptxlab.ir.mangled import title
from ptxlab.lab.tracks import PHASED, RUNS, TILE, WAITS, Track, drawn
from ptxlab.lab.views import Views
from ptxlab.trace import Trace, Traces
from ptxlab.trace.columns import Numbers
from ptxlab.trace.flags import Flag, FlagWait, FlagWrite
from ptxlab.trace.traces import Clock
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

_WARPS = 24  # tracks of warps in all
_IDLE = 4  # on the axis, of a stretch in which warps only poll
_FLAGS = 48  # tracks of flags
_MOST = 4000  # writes and waits of a flag, and arrows


class NodeViews:
    """Recorded launches with one clock, as the answers that the page asks for."""

    def __init__(self, traces: Traces, folders: Sequence[Path] | None = None) -> None:
        self.traces = traces
        self._folders = folders
        self.launch = lru_cache(maxsize=None)(self._launch)
        self._answers: Json = {}

    @property
    def title(self) -> str:
        """What the launches are, in a line."""
        return repr(self.traces).strip("<>")

    def _launch(self, number: int) -> Views:
        if not 0 <= number < len(self.traces):
            raise KeyError(f"launch {number}")
        return Views(self.traces[number], self._folders)

    def parts(self) -> list[Callable[[], Any]]:
        """What makes the first answers fast, part by part."""
        return [lambda: self.get("node"), lambda: self._tracks]

    def get(self, name: str) -> Any:
        """The answer of a name; `KeyError` if there is none."""
        kind, _, rest = name.partition("/")
        if kind.isdigit():
            return self.launch(int(kind)).get(rest)
        if name not in self._answers:
            self._answers[name] = self._answer(name)
        return self._answers[name]

    def _answer(self, name: str) -> Any:
        kind, *given = name.split("/")
        if kind == "node" and not given:
            return self._node()
        if kind == "ranks" and len(given) == 2 and all(one.isdigit() for one in given):
            return self._tile(*map(int, given))
        raise KeyError(name)

    def names(self) -> Iterator[str]:
        """What the page can ask for, of all launches together."""
        yield "node"
        level, end = 0, int(self._axis[1][-1])
        while True:
            yield from (f"ranks/{level}/{tile}" for tile in range(end // (TILE << level) + 1))
            if TILE << level >= end:
                return
            level += 1

    def _node(self) -> Json:
        traces = self.traces
        return {
            "launches": [_described(trace) for trace in traces],
            "clocks": [{"starts": clock.starts.tolist(), "times": clock.times.tolist()} for clock in traces.clocks],
            "end": traces.end,
            "start": max(range(len(traces)), key=lambda number: _priority(traces[number])),
            "flags": [self._flag(flag) for flag in traces.flags],
            "arrows": self._arrows(),
            "axis": [one.tolist() for one in self._axis],
        }  # fmt: skip

    def _flag(self, flag: Flag) -> Json:
        traces = self.traces
        each: list[FlagWrite | FlagWait] = [*flag.writes, *flag.waits]
        lines = {one: traces[one.launch].program.line(one.instruction) for one in each}
        return {
            "name": flag.name, "address": flag.address, "initial": flag.initial,
            "writes": [[one.time, one.value, one.launch, one.warp, lines[one]] for one in flag.writes[:_MOST]],
            "waits": [[one.launch, one.warp, one.start, one.end if one.is_over else traces.end, lines[one], one.polls,
                       one.is_over] for one in flag.waits[:_MOST]],
        }  # fmt: skip

    def _arrows(self) -> list[list[int]]:
        """From a write to a flag to the read of another launch that saw it: launch, warp and time of both, the flag."""
        found = [
            [write.launch, write.warp, write.time, wait.launch, wait.warp, wait.end, number]
            for number, flag in enumerate(self.traces.flags)
            for wait in flag.waits
            if wait.seen >= 0 and (write := flag.writes[wait.seen]).launch != wait.launch
        ]
        return sorted(found, key=lambda arrow: arrow[5])[:_MOST]

    def _tile(self, level: int, tile: int) -> list[Json]:
        start, end = tile * TILE << level, (tile + 1) * TILE << level
        return [
            {"launch": launch, "name": track.name, "kind": track.kind, "warp": track.warp,
             "periods": drawn(track, start, end, level)}
            for launch, track in self._tracks
        ]  # fmt: skip

    @cached_property
    def _tracks(self) -> list[tuple[int, Track]]:
        return [*self._warps(), *self._flags()]

    @cached_property
    def _waits(self) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
        """When warps poll, by launch and warp: from when until when, and the instruction."""
        found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for flag in self.traces.flags:
            for one in flag.waits:
                end = one.end if one.is_over else self.traces.end
                if end > one.start + 1:
                    found.setdefault((one.launch, one.warp), []).append((one.start, end, one.instruction))
        return {warp: _united(waits) for warp, waits in found.items()}

    @cached_property
    def _axis(self) -> tuple[Numbers, Numbers]:
        """Times, and where they are on the axis; between them it is straight."""
        is_idle = np.zeros(self.traces.end, np.bool_)
        for (launch, warp), waits in self._waits.items():
            steps, clock = self.traces[launch].warp_steps, self.traces.clocks[launch]
            own = steps.groups_of(warp)
            times = clock.times_of(_all_steps(steps.first[own], steps.first[own + 1]))
            for start, end, _ in waits:
                is_idle[times[(times > start) & (times < end)]] = True
        edges = np.flatnonzero(np.diff(is_idle.astype(np.int8), prepend=0, append=0))
        starts, ends = edges[::2], edges[1::2]
        saved = np.maximum(ends - starts - _IDLE, 0)
        before = np.cumsum(saved) - saved
        times = np.stack([starts, ends], axis=1).reshape(-1)
        places = np.stack([starts - before, ends - before - saved], axis=1).reshape(-1)
        end = self.traces.end
        times, places = np.append(times, end), np.append(places, end - int(saved.sum()))
        return np.concatenate([[0], times]), np.concatenate([[0], places])

    def _on_axis(self, times: Numbers) -> Numbers:
        found: Numbers = np.interp(times, *self._axis).astype(np.int64)
        return found

    def _warps(self) -> Iterator[tuple[int, Track]]:
        """What warps do, of each launch as many as there is space for: those that write flags or wait."""
        busy = {(one.launch, one.warp) for flag in self.traces.flags for one in flag.writes}
        busy |= {(one.launch, one.warp) for flag in self.traces.flags for one in flag.waits}
        each = max(_WARPS // max(len(self.traces), 1), 1)
        for number, (trace, clock) in enumerate(zip(self.traces, self.traces.clocks, strict=True)):
            assert trace.together is not None
            steps = trace.warp_steps
            chosen = [warp for warp in steps.warps if (number, warp) in busy] or steps.warps
            for warp in chosen[:each]:
                block = f" b{warp // steps.warps_in_block}" if len(trace.blocks) > 1 else ""
                own = f"{block} w{warp % steps.warps_in_block}" if len(steps.warps) > 1 else ""
                start, end, what, lead = _periods(steps, clock, warp, self._waits.get((number, warp), []))
                start, end = self._on_axis(start), self._on_axis(end)
                yield number, Track(f"{trace.together.title}{own}", "warp", warp, start, end, what, lead)

    def _flags(self) -> Iterator[tuple[int, Track]]:
        """The values of flags over time."""
        for flag in self.traces.flags[:_FLAGS]:
            times = self._on_axis(np.array([0, *(one.time + 1 for one in flag.writes), self.traces.end], np.int64))
            value = np.array([flag.initial, *(one.value for one in flag.writes)]).astype(np.int64)
            yield -1, Track(flag.name, "flag", -1, times[:-1], times[1:], np.full(len(value), PHASED), value)


def _described(trace: Trace) -> Json:
    place = trace.together
    assert place is not None
    return {
        "title": place.title, "rank": place.rank, "stream": place.stream, "isKernel": place.is_kernel,
        "kernel": title(trace.description["kernel"]), "steps": trace.warp_steps.count, "complete": trace.is_complete,
        "findings": len(trace.findings),
        "warps": trace.warp_steps.warps[:_WARPS], "warpsInBlock": trace.warp_steps.warps_in_block,
    }  # fmt: skip


def _priority(trace: Trace) -> tuple[bool, bool, int]:
    """What the page shows first: a kernel that a finding is about, then the first kernel."""
    place = trace.together
    assert place is not None
    about = any(access.get("launch") == place.number for one in trace.findings for access in one.accesses)
    return about, place.is_kernel, -place.number


def _united(waits: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Waits at one instruction at the same time, as those of several lanes for several flags, are one."""
    found: list[tuple[int, int, int]] = []
    for start, end, instruction in sorted(waits, key=lambda one: (one[2], one[0])):
        if found and found[-1][2] == instruction and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end), instruction
        else:
            found.append((start, end, instruction))
    return found


def _all_steps(first: Numbers, past: Numbers) -> Numbers:
    """The numbers from each first one to before the one past it."""
    count = past - first
    found: Numbers = np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
    return found


def _periods(
    steps: WarpSteps, clock: Clock, warp: int, waits: Sequence[tuple[int, int, int]]
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """When a warp runs and when it polls: starts, ends, what it does, and the first instruction of each."""
    groups = steps.groups_of(warp)
    groups = groups[steps.first[groups + 1] > steps.first[groups]]
    start, end = clock.times_of(steps.first[groups]), clock.times_of(steps.first[groups + 1] - 1) + 1
    is_polling = np.zeros(len(groups), np.bool_)
    for low, high, _ in waits:
        is_polling |= (start >= low) & (start < high)
    kept = np.flatnonzero(~is_polling)
    cuts = np.flatnonzero(np.concatenate([[True], start[kept][1:] != end[kept][:-1]])[: len(kept)])
    lead = np.array([steps.tables[int(steps.segment[group])][0] for group in groups[kept[cuts]]], np.int64)
    last = np.append(cuts[1:] - 1, len(kept) - 1)[: len(cuts)]
    polled = np.array(waits, np.int64).reshape(-1, 3).T
    starts = np.concatenate([start[kept[cuts]], polled[0]])
    ends = np.concatenate([end[kept[last]], polled[1]])
    what = np.concatenate([np.full(len(cuts), RUNS), np.full(len(waits), WAITS)])
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order], what[order], np.concatenate([lead, polled[2]])[order]
