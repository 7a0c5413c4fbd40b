"""What a kernel leaves in memory of its timeline: a header and `capacity` records for each warp of each block.

header   u64 time at which the warp started, u32 spans so far, u32 its SM, u32 SMs there are, u32 blocks of the
         grid, u32 warps of a block, u32 0
record   u64 start, u64 end, of which the lower 48 bits; above them is the number of the label
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxlab.timelines import Span, Timeline

HEADER, RECORD = 32, 16  # bytes
LONGEST = 2**48 - 1  # of a span
# Of each clock: the unit, and whether SMs share it.
CLOCKS = {"clock64": ("cycles", False), "globaltimer": ("ns", True)}
STEPS = "steps of the emulator"  # which is a machine with one SM, and counts the instructions of all threads there

_WORDS = struct.Struct("<QQ")


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
        found = self.warps_in(data)
        if not found:
            return Timeline((), self._unit(0), shared_clock=CLOCKS[self.clock][1])
        on_emulator, shared = found[0].machine == 1, CLOCKS[self.clock][1] or found[0].machine == 1
        first = {at: min(one.start for one in found if shared or one.block == at) for at in {w.block for w in found}}
        spans = tuple(span for one in found for span in one.spans(first[one.block]))
        lost = sum(max(one.count - self.capacity, 0) for one in found)
        return Timeline(spans, self._unit(int(on_emulator)), lost, shared)

    def warps_in(self, data: bytes) -> list[RecordedWarp]:
        """The warps that have left a header."""
        if len(data) != self.size:
            raise ValueError(f"{len(data)} bytes are not a timeline of {self.blocks} blocks: that has {self.size}")
        blocks, warps = (min(most, int.from_bytes(data[at : at + 4], "little")) for most, at in self._extents)
        size = self.warp_bytes
        starts = ((block, warp, (block * self.warps + warp) * size) for block in range(blocks) for warp in range(warps))
        return [RecordedWarp(self, block, warp, data[start : start + size]) for block, warp, start in starts]

    @property
    def _extents(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Blocks and warps there is space for, and where the first header has how many were launched."""
        return (self.blocks, 20), (self.warps, 24)

    def _unit(self, on_emulator: int) -> str:
        return STEPS if on_emulator else CLOCKS[self.clock][0]


class RecordedWarp:
    """The header and the records of one warp."""

    def __init__(self, layout: Layout, block: int, warp: int, data: bytes) -> None:
        self.layout, self.block, self.warp, self.data = layout, block, warp, data
        self.start = int.from_bytes(data[:8], "little")
        self.count, self.sm, self.machine = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12, 16))

    def words(self, number: int) -> tuple[int, int]:
        """The two words of a record."""
        first, second = _WORDS.unpack_from(self.data, HEADER + number * RECORD)
        return first, second

    def records(self) -> Iterator[tuple[int, int]]:
        """The words of each record, in order."""
        end = HEADER + min(self.count, self.layout.capacity) * RECORD
        yield from _WORDS.iter_unpack(self.data[HEADER:end])

    def spans(self, zero: int) -> Iterator[Span]:
        """The records as spans, whose times count from `zero`."""
        for start, end in self.records():
            role, label = self.layout.labels[end >> 48]
            yield Span(self.block, self.warp, role, label, start - zero, start - zero + (end - start & LONGEST))
