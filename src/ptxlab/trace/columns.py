"""A recorded launch as arrays: which thread ran which segment when, and the payload of each.

An entry is one run of a thread through a segment; a step is one instruction of a thread. Both are numbered in the order
in which they were executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.device import trace_file
from ptxlab.device.trace_file import Content, TraceError, TraceFile
from ptxlab.device.trace_format import SEGMENT_BITS, TURN
from ptxlab.trace.validation import read_findings
from ptxlab.values import Json

Numbers = npt.NDArray[np.int64]

EVENT = np.dtype(
    [
        ("time", "<u8"),
        ("thread", "<u8"),
        ("block", "<u8"),
        ("address", "<u8"),
        ("kind", "<u4"),
        ("instruction", "<u4"),
        ("size", "<u4"),
        ("operation", "<u4"),
        ("offset", "<u4"),
        ("unused", "<u4"),
    ]
)


@dataclass(frozen=True, slots=True)
class Slot:
    """Bytes of a payload: which instruction wrote them, what they are, and where the guard of that is (or -1)."""

    instruction: int
    role: str
    what: str
    offset: int
    bytes: int
    guard: int
    order: int
    """The steps of the segment before it."""


class Segment:
    """A part of a function that threads run through without waiting."""

    def __init__(self, given: Json) -> None:
        self.function: int = given["function"]
        self.flags: int = given["flags"]
        self.size: int = given["size"]
        self.steps: list[tuple[int, int]] = [(number, guard) for number, guard in given["steps"]]
        self.slots = [Slot(*slot) for slot in given["slots"]]
        self.index_of = {number: index for index, (number, _) in enumerate(self.steps)}
        self.registers: dict[str, list[Slot]] = {}
        for slot in self.slots:
            if slot.role == "register":
                self.registers.setdefault(slot.what, []).append(slot)

    def index(self, slot: Slot) -> int:
        """Which of its steps wrote a slot, or the next one, if the instruction is a step of another segment."""
        return self.index_of.get(slot.instruction, slot.order)


class Columns:
    """The arrays of a recorded launch."""

    def __init__(self, file: TraceFile) -> None:
        contents = file.contents
        self._path = file.path
        self.segments = [Segment(given) for given in file.description["segments"]]
        entries = self._joined(contents, trace_file.ENTRIES, np.dtype("<u8"))
        self.segment: Numbers = (entries & ((1 << SEGMENT_BITS) - 1)).view(np.int64)
        self.thread: Numbers = np.right_shift(entries, SEGMENT_BITS, out=entries).view(np.int64)
        self.steps: int = file.steps
        self._chosen: dict[tuple[int, int], Numbers] = {}
        self._writers: dict[str, list[int]] = {}
        if len(entries) and self.segment.max() >= len(self.segments):
            raise self.damaged("it names a segment that the kernel does not have")
        self.offset = self._starts([segment.size for segment in self.segments])
        self.first_step = self._starts([len(segment.steps) for segment in self.segments])
        # The rest has been decompressed meanwhile.
        self.payload = self._joined(contents, trace_file.PAYLOAD, np.dtype(np.uint8))
        self.events = self._joined(contents, trace_file.EVENTS, EVENT)
        self.data = self._joined(contents, trace_file.DATA, np.dtype(np.uint8))
        self.memory = [part.tobytes() for part in _parts(contents, trace_file.MEMORY)]
        self.findings = [one for part in _parts(contents, trace_file.REMARK) for one in self._findings(part.tobytes())]
        if self.offset[-1] > len(self.payload):
            raise self.damaged("results of instructions are missing")

    def damaged(self, what: str) -> TraceError:
        """The error of a file that is not as it was written."""
        return TraceError(f"`{self._path}` is damaged: {what}")

    def _findings(self, data: bytes) -> list[Json]:
        found = read_findings(data)
        if found is None:
            raise self.damaged("its findings cannot be read")
        return found

    def _joined(self, contents: dict[int, Content], kind: int, type: np.dtype[Any]) -> npt.NDArray[Any]:
        found = contents[kind].joined if kind in contents else np.zeros(0, np.uint8)
        if len(found) % type.itemsize:
            raise self.damaged("the last entry or event is not whole")
        return found.view(type)

    def _starts(self, sizes: list[int]) -> Numbers:
        """Where each entry starts, and where the last ends, by the sizes of segments."""
        found = np.zeros(len(self.segment) + 1, np.int64)
        np.take(np.array(sizes or [0], np.int64), self.segment, out=found[1:], mode="clip")
        return np.cumsum(found, out=found)

    def __len__(self) -> int:
        return len(self.segment)

    def segment_of(self, entry: int) -> Segment:
        """The segment of an entry."""
        return self.segments[int(self.segment[entry])]

    @cached_property
    def _by_segment(self) -> tuple[Numbers, Numbers]:
        order = stable_order(self.segment)
        return order, np.searchsorted(self.segment[order], np.arange(len(self.segments) + 1))

    def entries_of(self, segment: int) -> Numbers:
        """The entries of a segment, in order."""
        order, starts = self._by_segment
        return order[starts[segment] : starts[segment + 1]]

    @cached_property
    def _by_thread(self) -> tuple[Numbers, dict[int, tuple[int, int]]]:
        order = stable_order(self.thread)
        ordered = self.thread[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        threads, ends = ordered[starts], [*starts[1:], len(order)][: len(starts)]
        return order, {int(t): (int(a), int(b)) for t, a, b in zip(threads, starts, ends, strict=True)}

    @property
    def threads(self) -> list[int]:
        """The threads that are recorded, counted through the grid."""
        return list(self._by_thread[1])

    def entries_by(self, thread: int) -> Numbers:
        """The entries of a thread, in order."""
        order, ranges = self._by_thread
        start, end = ranges.get(thread, (0, 0))
        return order[start:end]

    def entries_by_segment(self, thread: int, segment: int) -> Numbers:
        """The entries of a thread that are of a segment, in order."""
        known = thread, segment
        if known not in self._chosen:
            entries = self.entries_by(thread)
            self._chosen[known] = entries[self.segment[entries] == segment]
        return self._chosen[known]

    def writers(self, register: str) -> list[int]:
        """The segments that write a register of this name."""
        if register not in self._writers:
            found = [number for number, segment in enumerate(self.segments) if register in segment.registers]
            self._writers[register] = found
        return self._writers[register]

    @cached_property
    def has_calls(self) -> bool:
        """Whether the kernel calls functions."""
        return any(segment.flags for segment in self.segments)

    def locate(self, step: int) -> tuple[int, int]:
        """The entry of a step, and which of its steps that is."""
        entry = int(np.searchsorted(self.first_step, step, "right")) - 1
        return entry, step - int(self.first_step[entry])

    # Turns, of launches that ran together.

    @cached_property
    def _noted(self) -> tuple[Numbers, Numbers, Numbers]:
        """The events that note a turn, before which entry each is, and the turn."""
        events = np.flatnonzero(self.events["kind"] == TURN)
        return events, self.events["time"][events].astype(np.int64), self.events["address"][events].astype(np.int64)

    def turns_of(self, entries: Numbers, events: Numbers) -> Numbers:
        """The turns of entries; where there is an event (none at -1), the turn of that."""
        noted, times, turns = self._noted
        if not len(noted):
            return np.zeros(len(entries), np.int64)
        of_entry = np.searchsorted(times, entries, "right") - 1
        of_event = np.searchsorted(noted, events, "right") - 1
        found: Numbers = turns[np.maximum(np.where(events < 0, of_entry, of_event), 0)]
        return found

    def entry_in(self, turns: Numbers) -> Numbers:
        """Before which entry each of some turns of other launches was."""
        _, times, noted = self._noted
        at = np.searchsorted(noted, turns, "left")
        found: Numbers = np.append(times, len(self))[at]
        return found

    @cached_property
    def interruptions(self) -> Numbers:
        """The entries before which other launches had turns."""
        _, times, turns = self._noted
        found: Numbers = np.unique(times[1:][np.diff(turns) > 1])
        return found[(found > 0) & (found < len(self))]

    def words(self, entries: Numbers, offset: int, bytes: int) -> npt.NDArray[np.uint64]:
        """The numbers at an offset of the payloads of some entries; no more than 8 bytes each."""
        at = self.offset[entries][:, None] + offset + np.arange(bytes)
        wide = np.zeros((len(entries), 8), np.uint8)
        wide[:, :bytes] = self.payload[at]
        return wide.view("<u8")[:, 0]

    def bytes_at(self, entry: int, slot: Slot) -> bytes:
        """What a slot holds in an entry."""
        start = int(self.offset[entry]) + slot.offset
        return self.payload[start : start + slot.bytes].tobytes()

    def holds(self, entry: int, guard: int) -> bool:
        """Whether a guard held in an entry; there is always none at -1."""
        return guard < 0 or bool(self.payload[int(self.offset[entry]) + guard])

    def held(self, entries: Numbers, guard: int) -> Numbers:
        """Those of some entries of a segment in which a guard held."""
        return entries if guard < 0 else entries[self.payload[self.offset[entries] + guard] != 0]

    def keys(self, entries: Numbers, segment: Segment, slot: Slot) -> Numbers:
        """When a slot was written in each of some entries: 2 n + 1 in step n, 2 n between steps n - 1 and n."""
        is_own = slot.instruction in segment.index_of
        return 2 * (self.first_step[entries] + segment.index(slot)) + is_own


def stable_order(values: Numbers) -> Numbers:
    """What sorts numbers, those that are equal in their order: NumPy sorts those of 16 bits in few passes."""
    is_small = not len(values) or (int(values.min()) >= 0 and int(values.max()) <= np.iinfo(np.uint16).max)
    return np.argsort(values.astype(np.uint16) if is_small else values, kind="stable")


def _parts(contents: dict[int, Content], kind: int) -> list[npt.NDArray[np.uint8]]:
    return contents[kind].parts if kind in contents else []
