"""What the warps of a kernel did when: spans, as a kernel leaves them in memory, and as a file for trace viewers.

`ptx.timeline` of `ptxlab.author` has a kernel record them, `ptxlab.draw.timeline` draws them. The memory is a header
and `capacity` records for each warp of each block that is recorded:

    header   u64 time at which the warp started, u32 spans so far, u32 its SM, u32 SMs there are, u32 blocks of the
             grid, u32 warps of a block, u32 0
    record   u64 start, u64 end, of which the lower 48 bits; above them is the number of the label
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER, RECORD = 32, 16  # bytes
LONGEST = 2**48 - 1  # of a span
# Of each clock: the unit, and whether SMs share it.
CLOCKS = {"clock64": ("cycles", False), "globaltimer": ("ns", True)}
STEPS = "steps of the emulator"  # which is a machine with one SM, and counts the instructions of all threads there


@dataclass(frozen=True, slots=True)
class Span:
    """What one warp did from `start` to `end`, in the unit of its timeline."""

    block: int
    warp: int
    role: str
    label: str
    start: int
    end: int

    @property
    def duration(self) -> int:
        """How long it took."""
        return self.end - self.start


@dataclass(frozen=True)
class Timeline:
    """The spans of a launch, by block and warp, each in the order in which they ended.

    Times count from the first warp to start: of the launch where all SMs share the clock, otherwise of each block.
    """

    spans: tuple[Span, ...]
    unit: str
    lost: int = 0
    """Spans for which there was no space."""
    shared_clock: bool = False
    """Whether times of blocks on different SMs can be compared."""

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """For each role and label: how many spans there are, how long they take, and their part of the role's time."""
        longest = {role: last - first for role, (first, last) in self._extents().items()}
        rows = [("role", "span", "count", "mean", f"of {self.unit}")]
        for (role, label), found in self._by_label().items():
            total = sum(span.duration for span in found)
            share = total / max(longest[role] * self._warps(role), 1)
            rows.append((role, label, str(len(found)), f"{total / len(found):.0f}", f"{share:.0%}"))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = [
            "  ".join([*(row[n].ljust(widths[n]) for n in (0, 1)), *(row[n].rjust(widths[n]) for n in (2, 3, 4))])
            for row in rows
        ]
        if self.lost:
            lines.append(f"{self.lost} spans more were not recorded: give `ptx.timeline` more `spans`")
        return "\n".join(lines)

    def _by_label(self) -> dict[tuple[str, str], list[Span]]:
        found: dict[tuple[str, str], list[Span]] = {}
        for span in self.spans:
            found.setdefault((span.role, span.label), []).append(span)
        return found

    def _extents(self) -> dict[str, tuple[int, int]]:
        """Of each role, the first start and the last end."""
        found: dict[str, tuple[int, int]] = {}
        for span in self.spans:
            first, last = found.get(span.role, (span.start, span.end))
            found[span.role] = min(first, span.start), max(last, span.end)
        return found

    def _warps(self, role: str) -> int:
        return len({(span.block, span.warp) for span in self.spans if span.role == role})

    def events(self) -> dict[str, Any]:
        """As the trace event format of Chrome: a process for each block, a thread for each warp."""
        named = Counter((span.block, span.warp, span.role) for span in self.spans)
        roles: dict[tuple[int, int], str] = {}
        for (block, warp, role), _ in reversed(named.most_common()):
            roles[block, warp] = role
        events: list[dict[str, Any]] = []
        for (block, warp), role in sorted(roles.items()):
            name = f"warp {warp} {role}".rstrip()
            events.append({"ph": "M", "name": "thread_name", "pid": block, "tid": warp, "args": {"name": name}})
        events += [
            {"ph": "M", "name": "process_name", "pid": block, "args": {"name": f"block {block}"}}
            for block in sorted({block for block, _ in roles})
        ]
        events += [
            {"ph": "X", "name": s.label, "cat": s.role, "pid": s.block, "tid": s.warp, "ts": s.start, "dur": s.duration}
            for s in self.spans
        ]
        return {"traceEvents": events, "otherData": {"unit": self.unit, "lost": self.lost}}

    def save(self, path: str | Path) -> None:
        """Write a file of trace events, which https://ui.perfetto.dev opens; its microseconds are our unit."""
        if Path(path).suffix != ".json":
            raise ValueError(f"`{path}`: a timeline is saved as `.json`; `ptxlab.draw.timeline` draws `.svg`")
        Path(path).write_text(json.dumps(self.events()), encoding="utf-8")


@dataclass
class Layout:
    """Where the records of a kernel are, and what the numbers in them mean."""

    blocks: int
    warps: int
    capacity: int
    clock: str = "clock64"
    variable: str = "timeline"
    labels: list[tuple[str, str]] = field(default_factory=list)
    """The role and the text of each label."""

    @property
    def warp_bytes(self) -> int:
        """Bytes of one warp."""
        return HEADER + self.capacity * RECORD

    @property
    def size(self) -> int:
        """Bytes of all."""
        return self.blocks * self.warps * self.warp_bytes

    def number(self, role: str, label: str) -> int:
        """The number of a label, which is given one when it is new."""
        if (role, label) not in self.labels:
            self.labels.append((role, label))
        return self.labels.index((role, label))

    def read(self, data: bytes) -> Timeline:
        """The spans that a launch has left."""
        if len(data) != self.size:
            raise ValueError(f"{len(data)} bytes are not a timeline of {self.blocks} blocks: that has {self.size}")
        blocks, warps = (min(most, int.from_bytes(data[at : at + 4], "little")) for most, at in self._extents)
        found = [
            _Recorded(self, block, warp, data[(block * self.warps + warp) * self.warp_bytes :][: self.warp_bytes])
            for block in range(blocks)
            for warp in range(warps)
        ]
        if not found:
            return Timeline((), self._unit(0), shared_clock=CLOCKS[self.clock][1])
        on_emulator, shared = found[0].machine == 1, CLOCKS[self.clock][1] or found[0].machine == 1
        first = {block: min(one.start for one in found if shared or one.block == block) for block in range(blocks)}
        spans = tuple(span for one in found for span in one.spans(first[one.block]))
        lost = sum(max(one.count - self.capacity, 0) for one in found)
        return Timeline(spans, self._unit(int(on_emulator)), lost, shared)

    @property
    def _extents(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Blocks and warps there is space for, and where the first header has how many were launched."""
        return (self.blocks, 20), (self.warps, 24)

    def _unit(self, on_emulator: int) -> str:
        return STEPS if on_emulator else CLOCKS[self.clock][0]


class _Recorded:
    """The header and the records of one warp."""

    def __init__(self, layout: Layout, block: int, warp: int, data: bytes) -> None:
        self.layout, self.block, self.warp, self.data = layout, block, warp, data
        self.start = int.from_bytes(data[:8], "little")
        self.count, self.sm, self.machine = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12, 16))

    def spans(self, zero: int) -> Iterator[Span]:
        for number in range(min(self.count, self.layout.capacity)):
            record = self.data[HEADER + number * RECORD :][:RECORD]
            start, end = int.from_bytes(record[:8], "little"), int.from_bytes(record[8:], "little")
            role, label = self.layout.labels[end >> 48]
            yield Span(self.block, self.warp, role, label, start - zero, start - zero + (end - start & LONGEST))
