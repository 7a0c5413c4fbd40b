"""Recorded launches that ran at the same time, on several GPUs or streams: each is a trace, and all have one clock.

A turn is what one warp, or one thread, executes without another having a turn; each recording has notes of them. A run
of a launch are its steps between two turns of others. The clock counts warp steps of all launches, run by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ptxlab.device.trace_file import TraceError, TraceFile
from ptxlab.trace.accesses import FROM_PEER, GLOBAL, PeerWrite, Rows
from ptxlab.trace.columns import Numbers
from ptxlab.trace.flags import Flag, flags_of
from ptxlab.trace.trace import Trace, widget

SUFFIX = ".ptxtrace"


@dataclass(frozen=True, eq=False)
class Clock:
    """When the warp steps of one launch were executed, among those of all."""

    starts: Numbers
    """The first step of each run, by its number in the launch."""
    times: Numbers
    """When each run starts."""
    count: int
    """How many steps the launch has."""

    def time(self, position: int) -> int:
        """When so many steps of the launch are executed: right after the last of them."""
        if not len(self.starts):
            return 0
        at = max(position - 1, 0)
        run = int(np.searchsorted(self.starts, at, "right")) - 1
        return int(self.times[run]) + position - int(self.starts[run])

    def times_of(self, steps: Numbers) -> Numbers:
        """When each of some steps is executed."""
        runs = np.searchsorted(self.starts, steps, "right") - 1
        found: Numbers = self.times[runs] + steps - self.starts[runs]
        return found

    def position(self, time: int) -> int:
        """How many steps of the launch are executed before a time."""
        run = int(np.searchsorted(self.times, time, "left")) - 1
        if run < 0:
            return 0
        past = int(self.starts[run + 1]) if run + 1 < len(self.starts) else self.count
        return min(int(self.starts[run]) + time - int(self.times[run]), past)


class Traces(Sequence[Trace]):
    """Launches that ran at the same time, in the order in which they were launched.

    >>> import ptxlab
    >>> len(ptxlab.Traces([]))
    0
    """

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._traces = list(traces)
        writes = [_global_writes(trace) for trace in traces]
        for number, trace in enumerate(traces):
            others = [one.for_launch(trace) for at, one in enumerate(writes) if at != number]
            _share(trace, [one for one in others if len(one.rows)])

    @classmethod
    def open(cls, folder: str | Path) -> Traces:
        """Read the launches of a folder, as `node.synchronize(record=ptxlab.Record(folder))` has written it."""
        paths = sorted(Path(folder).glob(f"*{SUFFIX}"))
        if not paths:
            raise TraceError(f"`{folder}` is a directory without a recorded launch")
        traces = [Trace(TraceFile(path)) for path in paths]
        for number, trace in enumerate(traces):
            place = trace.together
            if place is None:
                raise TraceError(f"`{trace.path}` is of a launch that ran by itself")
            if place.number != number or place.count != len(traces):
                raise TraceError(f"`{folder}` has {len(traces)} of {place.count} launches that ran together")
        return cls(traces)

    @overload
    def __getitem__(self, index: int) -> Trace: ...
    @overload
    def __getitem__(self, index: slice) -> list[Trace]: ...
    def __getitem__(self, index: int | slice) -> Trace | list[Trace]:
        return self._traces[index]

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._traces)

    def __repr__(self) -> str:
        steps = sum(trace.steps for trace in self)
        return f"<traces of {len(self)} launches that ran together: {steps:,} steps>"

    def lab(self, height: int = 720) -> Any:
        """The launches as a page to look around in, in a notebook; needs `ptxlab[notebook]`."""
        return widget().Lab(self, height)

    @cached_property
    def clocks(self) -> list[Clock]:
        """Of each launch."""
        runs = [_runs(trace) for trace in self]
        launch = np.repeat(np.arange(len(runs)), [len(starts) for starts, _ in runs])
        turns = np.concatenate([turns for _, turns in runs]) if runs else np.zeros(0, np.int64)
        counts = [trace.warp_steps.count for trace in self]
        lengths = [np.diff(starts, append=count) for (starts, _), count in zip(runs, counts, strict=True)]
        steps = np.concatenate(lengths) if runs else np.zeros(0, np.int64)
        order = np.lexsort((launch, turns))
        times = np.empty(len(order), np.int64)
        times[order] = np.cumsum(steps[order]) - steps[order]
        return [
            Clock(starts, times[launch == number], counts[number]) for number, (starts, _) in enumerate(runs)
        ]  # fmt: skip

    @property
    def end(self) -> int:
        """When all is executed: how many warp steps there are."""
        return sum(trace.warp_steps.count for trace in self)

    @cached_property
    def flags(self) -> list[Flag]:
        """The words by which launches synchronize, in the order in which they are first used."""
        return flags_of(self, self.clocks)


@dataclass(frozen=True, eq=False)
class _Writes:
    """What a launch wrote to global memory itself."""

    trace: Trace
    rows: Rows
    turns: Numbers
    data: npt.NDArray[np.uint8]

    def for_launch(self, other: Trace) -> _Writes:
        """Those that another launch can read: not variables of a module, unless it is the same on the same GPU."""
        assert self.trace.together is not None
        assert other.together is not None
        is_same_gpu = self.trace.together.rank == other.together.rank
        if is_same_gpu and self.trace.description["text"] == other.description["text"]:
            return self
        shared = ~self.trace.accesses.are_of_module(self.rows.address)
        return _Writes(
            self.trace, self.rows.take(shared), self.turns[shared], self.data[np.repeat(shared, self.rows.size)]
        )

    def describe(self, row: int) -> PeerWrite:
        """One of them."""
        trace, event = self.trace, int(self.rows.event[row])
        assert trace.together is not None
        columns, instruction = trace.columns, int(self.rows.instruction[row])
        thread = int(columns.events["thread"][event] if event >= 0 else columns.thread[self.rows.entry[row]])
        block, own = divmod(thread, trace.accesses.threads_in_block)
        line, text = trace.program.line(instruction), trace.program.text(instruction)
        return PeerWrite(trace.together.number, trace.together.title, line, text, block, own)


def _global_writes(trace: Trace) -> _Writes:
    rows = trace.accesses.writes
    rows = rows.take(rows.space == GLOBAL)
    turns = trace.columns.turns_of(rows.entry, rows.event)
    return _Writes(trace, rows, turns, trace.accesses.bytes_and_addresses(rows)[0])


def _share(trace: Trace, others: Sequence[_Writes]) -> None:
    """Have a launch know what others wrote, in the order of turns."""
    if not others:
        return
    turns = np.concatenate([one.turns for one in others])
    order = np.argsort(turns, kind="stable")
    address, size = (np.concatenate([getattr(one.rows, name) for one in others]) for name in ("address", "size"))
    before, zeros = trace.columns.entry_in(turns), np.zeros(len(turns), np.int64)
    keys, data, numbers = 2 * trace.columns.first_step[before], np.cumsum(size) - size, np.arange(len(turns))
    rows = Rows(keys, zeros + GLOBAL, zeros, address, size, before - 1, zeros - 1, data, FROM_PEER + numbers)
    firsts = np.cumsum([0, *(len(one.rows) for one in others)])

    def describe(number: int) -> PeerWrite:
        at = int(np.searchsorted(firsts, number, "right")) - 1
        return others[at].describe(number - int(firsts[at]))

    trace.accesses.add_peer_writes(rows.take(order), np.concatenate([one.data for one in others]), describe)


def _runs(trace: Trace) -> tuple[Numbers, Numbers]:
    """The first warp step of each run of a launch, and its turn."""
    steps, columns = trace.warp_steps, trace.columns
    if not len(columns):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    entries = np.concatenate([np.zeros(1, np.int64), columns.interruptions])
    starts = steps.first[steps.group_of[steps.members[entries]]]
    keep = np.diff(starts, append=steps.count) > 0
    return starts[keep], columns.turns_of(entries, np.full(len(entries), -1))[keep]
