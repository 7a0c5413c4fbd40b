"""A recorded launch as a file for https://ui.perfetto.dev: protocol buffers, as `perfetto_trace.proto` describes them.

Each warp has a track, where it runs or waits; copies and tensor cores have tracks beside them, as many as there are
operations at the same time. An arrow leads from an operation to the wait that first saw it complete. A nanosecond
there is a step here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ptxlab.trace.timeline import Period, periods_of

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

BEGIN, END, INSTANT = 1, 2, 3  # types of a TrackEvent
SEQUENCE = 1


def save(trace: Trace, path: str | Path) -> None:
    """Write the timeline of a recorded launch."""
    if Path(path).suffix not in (".pftrace", ".perfetto-trace"):
        raise ValueError(f"`{path}`: a timeline for Perfetto is saved as `.pftrace`")
    Path(path).write_bytes(encode(trace))


def encode(trace: Trace) -> bytes:
    """The timeline of a recorded launch as bytes."""
    periods = periods_of(trace)
    tracks = _Tracks()
    events: list[tuple[int, int, bytes]] = []
    for flow, period in enumerate(periods, 1):
        track = tracks.of(period)
        notes = _note("line", period.line) + (_note("operations", period.count) if period.count > 1 else b"")
        flows = _fixed(47, flow) if period.observed is not None else b""
        body = _number(9, BEGIN) + _number(11, track) + _text(22, period.track) + _text(23, period.name) + notes + flows
        events.append((period.start, 1, _event(period.start, body)))
        events.append((period.end, 0, _event(period.end, _number(9, END) + _number(11, track))))
        if period.observed is not None:
            block, warp, step = period.observed
            seen = _number(9, INSTANT) + _number(11, tracks.of_warp(block, warp)) + _text(23, f"saw {period.track}")
            events.append((step, 2, _event(step, seen + _fixed(48, flow))))
    events.sort(key=lambda one: one[:2])
    return tracks.descriptions() + b"".join(event for _, _, event in events)


class _Tracks:
    """The tracks of a timeline by their numbers, and what describes them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._described: list[bytes] = []
        self._ends: dict[tuple[int, str], list[int]] = {}

    def of(self, period: Period) -> int:
        """The track of a period: that of its warp, or one of those for copies and MMAs that is free by then."""
        if period.track == "warp":
            return self.of_warp(period.block, period.warp)
        ends = self._ends.setdefault((period.block, period.track), [])
        free = next((number for number, end in enumerate(ends) if end <= period.start), len(ends))
        if free == len(ends):
            ends.append(0)
        ends[free] = period.end
        known = period.block, period.track, free
        if known not in self._numbers:
            parent = self._process(period.block)
            self._describe(known, lambda number: _number(1, number) + _text(2, period.track) + _number(5, parent))
        return self._numbers[known]

    def of_warp(self, block: int, warp: int) -> int:
        """The track of a warp."""
        known = block, "warp", warp
        if known not in self._numbers:
            self._process(block)
            thread = _number(1, block + 1) + _number(2, 1000 * (block + 1) + warp + 1) + _text(5, f"warp {warp}")
            self._describe(known, lambda number: _number(1, number) + _bytes(4, thread))
        return self._numbers[known]

    def _process(self, block: int) -> int:
        known = (block,)
        if known not in self._numbers:
            process = _number(1, block + 1) + _text(6, f"block {block} (times are steps of the emulator)")
            self._describe(known, lambda number: _number(1, number) + _bytes(3, process))
        return self._numbers[known]

    def _describe(self, known: tuple[object, ...], body) -> None:  # type: ignore[no-untyped-def]
        number = self._numbers[known] = len(self._numbers) + 1
        self._described.append(_packet(_bytes(60, body(number))))

    def descriptions(self) -> bytes:
        return b"".join(self._described)


def _event(time: int, body: bytes) -> bytes:
    return _packet(_number(8, time) + _bytes(11, body))


def _packet(body: bytes) -> bytes:
    return _bytes(1, body + _number(10, SEQUENCE))


def _note(name: str, value: int) -> bytes:
    """A DebugAnnotation."""
    return _bytes(4, _text(10, name) + _number(4, value))


# The wire format: https://protobuf.dev/programming-guides/encoding


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + value.to_bytes(8, "little")


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())
