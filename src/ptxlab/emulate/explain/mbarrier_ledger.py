"""The mbarriers of a cluster that hangs, phase by phase: who arrived, what bytes came, who waits for which parity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.abi import barriers, thread_parts
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.snapshots import BlockSnapshot, Mbarrier, block_name, ranges, who
from ptxlab.emulate.explain.waits import Group
from ptxlab.native import offset_of, size_of
from ptxlab.values import Json

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

MOST = 10  # mbarriers that a note lists


@dataclass(frozen=True)
class AwaitedMbarrier:
    """An mbarrier of a block, and the groups of threads that wait on it."""

    launch: RunningLaunch
    snapshot: BlockSnapshot
    offset: int
    mbarrier: Mbarrier
    waiting: tuple[Group, ...]
    beside: int  # an instruction: lines of its file are named without the file

    @property
    def is_idle(self) -> bool:
        """Whether no thread waits on it and nothing is missing in its phase."""
        return not self.waiting and not self.mbarrier.has_started

    @property
    def is_lost(self) -> bool:
        """Whether no thread waits on it, and the last wait was over before the last phase that is complete, or any."""
        notes = self.mbarrier.phase
        if self.waiting or self.mbarrier.has_started or notes is None or not notes.get("passed_at"):
            return False
        return not notes.get("completed") or skipped_phase(self.mbarrier) is not None

    @property
    def variable(self) -> tuple[int, str | None]:
        """The block and the variable that it is in: a ring has its mbarriers in one."""
        return self.snapshot.number, layout.shared_variable_at(self.launch.compiled.variables, self.offset)[0]

    @property
    def has_earlier_phases(self) -> bool:
        """Whether nothing has arrived in its phase, and there were others before."""
        return not self.mbarrier.arrived and len(self.phases) > 1

    @property
    def name(self) -> str:
        """`full`, or a variable and the bytes from its start"""
        name, start = layout.shared_variable_at(self.launch.compiled.variables, self.offset)
        at = self.offset - start
        return f"{name or 'shared memory'}{f'+{at}' if at or not name else ''}"

    @property
    def phases(self) -> list[StructArray]:
        """The phase that it is in and those before it that are remembered, the first of them first."""
        notes = self.mbarrier.phase
        assert notes is not None
        last = notes.get("completed")
        first = max(last - barriers.RECENT_PHASES + 1, 0)
        return [_record(notes, number) for number in range(first, last + 1)]

    def is_of_ring(self, waits: set[tuple[tuple[int, str | None], int]]) -> bool:
        """Whether threads wait, by other instructions than the last wait here, on others of its ring."""
        notes = self.mbarrier.phase
        here = [instruction for variable, instruction in waits if variable == self.variable]
        return notes is not None and bool(here) and notes.get("passed_at") - 1 not in here

    def line(self) -> str:
        """``full` (initialized on line 9): phase 0: 1 of 2 arrivals (line 29: thread 0); warp 1 waits …`"""
        notes = self.mbarrier.phase
        assert notes is not None
        *before, now = self.phases
        arrivals = f"{self.mbarrier.arrived} of {self.mbarrier.expected} arrivals{self._sources(now)}"
        parts = [f"phase {now.get('number')}: {arrivals}"]
        if now.get("expected_bytes") or now.get("bytes"):
            parts.append(f"{now.get('bytes')} of {now.get('expected_bytes')} bytes")
        if before and not self.mbarrier.arrived:
            parts.append(f"phase {before[-1].get('number')} had {before[-1].get('arrived')}{self._sources(before[-1])}")
        if self.is_lost:
            line = self.launch.name_line(notes.get("passed_at") - 1, self.beside)
            parts.append(f"the last wait, on {line}, was over {'before that' if notes.get('completed') else 'at once'}")
        for group in self.waiting:
            line = self.launch.name_line(group.instruction, self.beside)
            waits = "waits" if len(group.threads) == 1 or len(group.warps) == 1 else "wait"
            threads = who(group.threads, self.snapshot.threads)
            parts.append(f"{threads} {waits} for parity {group.first.waits_for & 1} ({line})")
        start = self.launch.name_line(notes.get("instruction"), self.beside)
        return f"{self.name} (initialized on {start}): {'; '.join(parts)}"

    def fact(self) -> Json:
        """The same for programs, with all phases that are remembered."""
        notes = self.mbarrier.phase
        assert notes is not None
        return {
            "block": self.snapshot.number,
            "mbarrier": self.name.replace("`", ""),
            "offset": self.offset,
            "initialized": self.launch.name_line(notes.get("instruction"), self.beside),
            "arrivals_a_phase": self.mbarrier.expected,
            "phases": [self._phase(record) for record in self.phases],
            "waiting": [
                {
                    "threads": who(group.threads, self.snapshot.threads),
                    "parity": group.first.waits_for & 1,
                    "at": self.launch.name_line(group.instruction, self.beside),
                }
                for group in self.waiting
            ],
        }

    def _phase(self, record: StructArray) -> Json:
        notes = self.mbarrier.phase
        assert notes is not None
        return {
            "phase": record.get("number"),
            "is_complete": record.get("number") < notes.get("completed"),
            "arrivals": record.get("arrived"),
            "by": [
                {
                    "at": self.launch.name_line(source.get("instruction"), self.beside),
                    "threads": self._arrived(source),
                    "arrivals": source.get("count"),
                }
                for source in _sources(record)
            ],
            "bytes": record.get("bytes"),
            "expected_bytes": record.get("expected_bytes"),
            "waits_passed": record.get("passed"),
        }

    def _sources(self, record: StructArray) -> str:
        """` (line 29: thread 0; line 31: warps 4 to 7)`"""
        texts = [
            f"{self.launch.name_line(source.get('instruction'), self.beside)}: {self._arrived(source)}"
            for source in _sources(record)
        ]
        return f" ({'; '.join(texts)})" if texts else ""

    def _arrived(self, source: StructArray) -> str:
        """`warps 4 to 7`, or `thread 0 of block (1,0,0)`"""
        warps = [warp for warp in range(32) if source.get("warps") >> warp & 1]
        name = f"warp{'s' * (len(warps) > 1)} {ranges(warps)}"
        if source.get("count") == 1:
            name = f"thread {source.get('thread')}"
        if source.get("block") != self.snapshot.number:
            name += f" of {block_name(self.launch, source.get('block'))}"
        return name


def entries_of(
    launch: RunningLaunch, snapshot: BlockSnapshot, groups: Sequence[Group], beside: int
) -> list[AwaitedMbarrier]:
    """All mbarriers of a cluster: those that threads wait on first, then those whose phase has started."""
    waits = [group for group in groups if group.status == thread_parts.AT_PHASE]
    found = []
    for one in (snapshot, *snapshot.cluster):
        for offset in _offsets(one):
            waiting = tuple(group for group in waits if group.snapshot is one and group.first.waits_at == offset)
            found.append(AwaitedMbarrier(launch, one, offset, one.mbarrier(offset), waiting, beside))
    return sorted(found, key=lambda entry: (not entry.waiting, not entry.mbarrier.has_started))


def list_entries(entries: Sequence[AwaitedMbarrier]) -> str:
    """A note with a line for each of them, of many the first; empty if one mbarrier in phase 0 is all there is."""
    waits = {(entry.variable, group.instruction) for entry in entries for group in entry.waiting}
    busy = [entry for entry in entries if not entry.is_idle or (entry.is_lost and entry.is_of_ring(waits))]
    if len(busy) < 2 and not any(entry.has_earlier_phases for entry in busy):
        return ""
    several = len({entry.snapshot.number for entry in busy}) > 1
    lines = [f"{entry.snapshot.name}: {entry.line()}" if several else entry.line() for entry in busy[:MOST]]
    left = len(entries) - len(lines)
    rest = [f"and {left} more, of which {len(busy) - len(lines)} are in use"] if len(busy) > MOST else []
    return "\n".join(["mbarriers in use:", *lines, *rest])


def arrival_elsewhere(launch: RunningLaunch, snapshot: BlockSnapshot, offset: int, beside: int) -> str:
    """A note on a thread of a block that arrived at the same mbarrier of another block; empty if none did."""
    for other in snapshot.cluster:
        if other.number == snapshot.number or offset not in _offsets(other):
            continue
        entry = AwaitedMbarrier(launch, other, offset, other.mbarrier(offset), (), beside)
        for source in (source for record in entry.phases for source in _sources(record)):
            if source.get("block") == snapshot.number:
                line = launch.name_line(source.get("instruction"), beside)
                return f"thread {source.get('thread')} of this block arrived at {entry.name} of {other.name} ({line})"
    return ""


def skipped_phase(mbarrier: Mbarrier) -> int | None:
    """The last phase that is complete, if nothing has arrived since then and no wait has seen it."""
    notes = mbarrier.phase
    if notes is None or mbarrier.has_started or not notes.get("completed"):
        return None
    before = _record(notes, notes.get("completed") - 1)
    return None if before.get("passed") else int(before.get("number"))


def _offsets(snapshot: BlockSnapshot) -> Iterator[int]:
    """Where the mbarriers of a block are that are known."""
    for index in range(barriers.KNOWN_PHASES):
        notes = StructArray.at(barriers.Phase, snapshot.phase_address(index))
        if notes.get("is_known") and notes.get("bits"):
            yield notes.get("offset")


def _record(notes: StructArray, number: int) -> StructArray:
    start = notes.address + offset_of(barriers.Phase, "recent")
    return StructArray.at(barriers.PhaseRecord, start + number % barriers.RECENT_PHASES * size_of(barriers.PhaseRecord))


def _sources(record: StructArray) -> list[StructArray]:
    start, size = record.address + offset_of(barriers.PhaseRecord, "sources"), size_of(barriers.Arrivals)
    found = [StructArray.at(barriers.Arrivals, start + index * size) for index in range(barriers.SOURCES)]
    return [source for source in found if source.get("count")]
