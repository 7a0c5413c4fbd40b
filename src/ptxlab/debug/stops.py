"""Where a debugger stops: breakpoints on lines, and watchpoints on registers and memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ptxlab.debug.expressions import compiled
from ptxlab.debug.objects import UnknownError, UnwrittenError, load
from ptxlab.debug.values import Scope
from ptxlab.report import Diagnostic
from ptxlab.trace import Trace
from ptxlab.trace import registers as registers_of
from ptxlab.trace.accesses import FROM_PEER, GLOBAL, unwritten
from ptxlab.trace.columns import Numbers


@dataclass(frozen=True)
class Hits:
    """Positions at which something may stop a launch, in order, and the thread of each.

    Threads of a warp that come to an instruction for the nth time are one group.
    """

    positions: Numbers
    threads: Numbers
    groups: Numbers

    def around(self, position: int, *, backwards: bool) -> Iterator[int]:
        """The numbers of those from a position on, or before it, the nearest first."""
        start = int(np.searchsorted(self.positions, position))
        return iter(range(start - 1, -1, -1) if backwards else range(start, len(self.positions)))


_MOST_TRIED = 64  # times at which a condition is tried when it is set
NO_HITS = Hits(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass
class Breakpoint:
    """A stop before instructions: for each warp once where its threads come there together, or for one thread."""

    trace: Trace = field(repr=False)
    number: int
    instructions: Sequence[int]
    scope_at: Callable[[int, int], Scope] = field(repr=False)
    """What a thread sees at a position."""
    thread: int | None = None
    condition: str = ""
    hit_count: int = 1
    """At which time that a warp comes there, and the condition holds, it stops first."""
    is_entered: bool = False
    """Whether a thread stops where it comes from another instruction to one of these, as to those of one line."""
    file: str = ""

    line: int = 0
    """The line of a source."""
    message: str = ""
    """What is said there instead of stopping, with expressions in braces."""
    again: Callable[[], Breakpoint] | None = field(default=None, repr=False)
    """What makes it in another launch of the program."""
    is_once: bool = False
    """Whether it is removed when it has stopped once."""

    @property
    def description(self) -> str:
        return f"breakpoint {self.number}"

    @property
    def times(self) -> int:
        """How often a warp, or the thread, comes there, whatever the condition."""
        return len(np.unique(self.hits.groups))

    @cached_property
    def hits(self) -> Hits:
        """All times that a condition is to be asked; without one, the first thread of each group."""
        columns = self.trace.columns
        found: list[tuple[Numbers, Numbers, Numbers]] = []
        for number, segment in enumerate(columns.segments):
            for index, (instruction, _) in enumerate(segment.steps):
                if instruction in self.instructions:
                    entries = self._entering(number, index)
                    groups = _groups(columns.thread[entries], self.trace)
                    chosen = np.arange(len(entries))
                    if self.thread is not None:
                        chosen = np.flatnonzero(columns.thread[entries] == self.thread)
                    elif not self.condition:
                        chosen = np.sort(np.unique(groups, return_index=True)[1])
                    entries = entries[chosen]
                    found.append((columns.first_step[entries] + index, columns.thread[entries], groups[chosen]))
        return _sorted(found, self.trace.steps)

    def _entering(self, number: int, index: int) -> Numbers:
        """The entries of a segment with which a thread comes to one of its steps; of a line, from elsewhere only."""
        columns = self.trace.columns
        entries = columns.entries_of(number)
        steps = columns.segments[number].steps
        if not self.is_entered:
            return entries
        if index:
            return entries[:0] if steps[index - 1][0] in self.instructions else entries
        program = self.trace.program.instructions
        at = steps[0][0]
        last = np.array([segment.steps[-1][0] if segment.steps else -1 for segment in columns.segments], np.int64)
        before = _previous(columns.thread, last[columns.segment] >= 0)[entries]
        came = np.where(before >= 0, last[columns.segment[before]], -1)
        returns = np.array([one >= 0 and program[one][0] is not program[at][0] for one in came.tolist()], bool)
        came = np.where(returns, at - 1, came)  # from a call, which is right before it
        found: Numbers = entries[~np.isin(came, self.instructions)]
        return found

    def holds(self, hit: int) -> bool:
        """Whether it stops there: its condition holds, for no thread of the group before, and often enough."""
        if not self._condition(hit):
            return False
        hits = self.hits
        if self.condition and self.thread is None:
            group = np.flatnonzero(hits.groups[:hit] == hits.groups[hit])
            if any(self._condition(int(other)) for other in group[-31:]):
                return False
        if self.hit_count <= 1:
            return True
        warps = _warps(hits.threads, self.trace)
        before = np.flatnonzero(warps[: hit + 1] == warps[hit])
        return len({int(hits.groups[one]) for one in before if self._condition(int(one))}) >= self.hit_count

    def check(self) -> None:
        """Raise `UnknownError` where the condition cannot be read, or has no value wherever it is met."""
        if not self.condition:
            return
        if not len(self.hits.positions):
            compiled(self.condition.strip())
            return
        count = len(self.hits.positions)
        for hit in dict.fromkeys([*range(min(count, _MOST_TRIED)), count - 1]):
            try:
                self._value(hit)
                return
            except UnwrittenError as problem:  # what has no value yet may have one later
                why = problem
        raise UnknownError(f"the condition has no value where it would stop: {why.args[0]}")

    def _scope(self, hit: int) -> Scope:
        return self.scope_at(int(self.hits.threads[hit]), int(self.hits.positions[hit]))

    def said(self, hit: int) -> str:
        """The message at a hit, with the values that are there."""
        scope = self._scope(hit)

        def value(found: re.Match[str]) -> str:
            try:
                return scope.text(found[1])
            except UnknownError as wrong:
                return f"<{wrong.args[0]}>"

        return re.sub(r"\{([^{}]+)\}", value, self.message)

    def _value(self, hit: int) -> bool:
        scope = self._scope(hit)
        return bool(load(scope.operand(self.condition), scope).value)

    def _condition(self, hit: int) -> bool:
        if not self.condition:
            return True
        try:
            return self._value(hit)
        except UnknownError:  # a register that is not written yet has no value, and a pointer may not point to anything
            return False


@dataclass
class Watchpoint:
    """A stop after a register of a thread, or bytes of memory, have changed."""

    number: int
    name: str
    hits: Hits

    @property
    def description(self) -> str:
        return f"`{self.name}` changed"

    @property
    def times(self) -> int:
        """How often it changes."""
        return len(self.hits.positions)

    def holds(self, hit: int) -> bool:
        return True


@dataclass
class FindingStop:
    """A stop where something goes wrong: after the access that a diagnostic is about, the later one of two."""

    number: int
    diagnostic: Diagnostic
    hits: Hits

    @property
    def description(self) -> str:
        return f"{self.diagnostic.code}: {self.diagnostic.message}"

    @property
    def times(self) -> int:
        """How often it is found."""
        return len(self.hits.positions)

    def holds(self, hit: int) -> bool:
        return True


def stop_at_finding(trace: Trace, number: int, diagnostic: Diagnostic) -> FindingStop | None:
    """Where a finding first happens, if its threads are recorded: each thread's first step at its line counts."""
    found: list[tuple[int, int]] = []
    for access in diagnostic.facts.get("accesses", ()):
        thread = trace.number_of(access["thread"], access["block"])
        own = set(trace.steps_of(access["thread"], access["block"]).tolist())
        steps = [int(step) for step in trace.steps_at(access["line"]) if int(step) in own]
        found += [(steps[0] + 1, thread)] if steps else []
    return FindingStop(number, diagnostic, _in_order(*map(list, zip(max(found), strict=True)))) if found else None


def watch_register(trace: Trace, number: int, name: str, thread: int) -> Watchpoint:
    """Stop when a thread writes another value to a register."""
    written = registers_of.history(trace.columns, thread, name)
    if not written and not any(name in names for names in trace.program.registers):
        raise UnknownError(f"there is no register `{name}`")
    found: list[int] = []
    before = None
    for one in written:
        data = trace.columns.bytes_at(one.entry, one.slot)
        if data != before:
            found.append(min(one.key // 2 + 1, trace.steps))
        before = data
    return Watchpoint(number, name, _in_order(found, [thread] * len(found)))


def watch_value(trace: Trace, number: int, name: str, scopes: Iterable[Scope], thread: int) -> Watchpoint:
    """Stop when an expression has another value, as a function of a thread sees it at its steps."""
    found: list[int] = []
    before = None
    for scope in scopes:
        try:
            value = scope.text(name)
        except UnwrittenError:
            continue
        if value != before:
            found.append(scope.position)
        before = value
    return Watchpoint(number, name, _in_order(found, [thread] * len(found)))


def watch_memory(trace: Trace, number: int, name: str, space: int, owner: int, address: int, size: int) -> Watchpoint:
    """Stop when bytes of memory are written with other values."""
    accesses = trace.accesses
    rows = accesses.writes.touching(space, owner, address, size)
    content = unwritten(address, size)
    region = accesses.region_at(address) if space == GLOBAL else None
    if region is not None:
        content[:] = np.frombuffer(region.data, np.uint8)[address - region.base :][:size]
    positions, threads = [], []
    for index in range(len(rows)):
        before = content.copy()
        data = np.frombuffer(accesses.bytes_of(rows, index), np.uint8)
        start = int(rows.address[index]) - address
        inside = slice(max(start, 0), min(start + len(data), size))
        content[inside] = data[inside.start - start : inside.stop - start]
        if (content != before).any():
            event = int(rows.event[index])
            entry = int(np.clip(rows.entry[index], 0, len(trace.columns) - 1))
            is_own = 0 <= event < FROM_PEER  # what another launch writes is seen by the thread that had a turn before
            by = trace.columns.events["thread"][event] if is_own else trace.columns.thread[entry]
            positions.append(min((int(rows.key[index]) + 1) // 2 + (event >= 0), trace.steps))
            threads.append(int(by))
    return Watchpoint(number, name, _in_order(positions, threads))


def _previous(threads: Numbers, has_steps: Any) -> Numbers:
    """For each entry with steps the one before it of the same thread that has some, or -1."""
    order = np.flatnonzero(has_steps)
    order = order[np.argsort(threads[order], kind="stable")]
    found = np.full(len(threads), -1, np.int64)
    same = threads[order[1:]] == threads[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found


def _warps(threads: Numbers, trace: Trace) -> Numbers:
    """The warps of threads, counted through the grid."""
    block, own = np.divmod(threads, trace.accesses.threads_in_block)
    count = -(-trace.accesses.threads_in_block // 32)
    found: Numbers = block * count + own // 32
    return found


def _groups(threads: Numbers, trace: Trace) -> Numbers:
    """For each entry of a segment: which warp comes there, and for which time, as one number."""
    order = np.argsort(threads, kind="stable")
    of_thread = threads[order]
    starts = np.flatnonzero(np.r_[True, of_thread[1:] != of_thread[:-1]]) if len(threads) else np.zeros(0, np.int64)
    times = np.empty(len(threads), np.int64)
    times[order] = np.arange(len(threads)) - np.repeat(starts, np.diff(np.r_[starts, len(threads)]))
    found: Numbers = _warps(threads, trace) * (int(times.max(initial=0)) + 1) + times
    return found


def _in_order(positions: list[int], threads: list[int]) -> Hits:
    at, by = np.array(positions, np.int64), np.array(threads, np.int64)
    return Hits(at, by, np.arange(len(at)))


def _sorted(found: list[tuple[Numbers, Numbers, Numbers]], steps: int) -> Hits:
    """The hits at several instructions as one; groups of different ones stay different."""
    if not found:
        return _in_order([], [])
    positions, threads = (np.concatenate([one[column] for one in found]) for column in (0, 1))
    most = 1 + max(int(groups.max(initial=0)) for _, _, groups in found)
    groups = np.concatenate([one[2] + most * number for number, one in enumerate(found)])
    order = np.argsort(positions, kind="stable")
    order = order[positions[order] < steps]
    return Hits(positions[order], threads[order], groups[order])
