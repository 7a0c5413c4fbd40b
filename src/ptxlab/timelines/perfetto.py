"""A timeline as a file for https://ui.perfetto.dev: protocol buffers, as `perfetto_trace.proto` describes them.

Each warp has a track, where it runs or waits; copies and tensor cores have tracks beside them, as many as there are
operations at the same time. An arrow leads from an operation to the wait that first saw it complete. A nanosecond
there is a step of the emulator, or a cycle of an SM; the names of blocks say which.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxlab.timelines import WARP, Span, Timeline, rows_of

BEGIN, END, INSTANT = 1, 2, 3  # types of a TrackEvent
SEQUENCE = 1


def encode(timeline: Timeline) -> bytes:
    """A timeline as bytes of a `.pftrace`."""
    tracks = _Tracks(timeline)
    for span in timeline.spans:
        if span.track == WARP:
            tracks.name_warp(span)
    events: list[tuple[int, int, bytes]] = []
    for flow, (span, row) in enumerate(rows_of(timeline.spans), 1):
        track = tracks.of(span.block, span.track, row)
        notes = _note("line", span.line) if span.line else b""
        notes += _note("operations", span.count) if span.count > 1 else b""
        flows = _fixed(47, flow) if span.observed is not None else b""
        body = _number(9, BEGIN) + _number(11, track) + _text(22, span.track) + _text(23, span.label) + notes + flows
        events.append((span.start, 1, _event(span.start, body)))
        events.append((span.end, 0, _event(span.end, _number(9, END) + _number(11, track))))
        if span.observed is not None:
            block, warp, time = span.observed
            what = span.label if span.track == WARP else span.track
            seen = _number(9, INSTANT) + _number(11, tracks.of(block, WARP, warp)) + _text(23, f"saw {what}")
            events.append((time, 2, _event(time, seen + _fixed(48, flow))))
    events.sort(key=lambda one: one[:2])
    return tracks.descriptions() + b"".join(event for _, _, event in events)


class _Tracks:
    """The tracks of a timeline by their numbers, and what describes them."""

    def __init__(self, timeline: Timeline) -> None:
        self._unit = timeline.unit
        self._process_word, self._thread_word = timeline.places
        self._numbers: dict[tuple[object, ...], int] = {}
        self._described: list[bytes] = []
        self._roles: dict[tuple[int, int], str] = {}

    def name_warp(self, span: Span) -> None:
        """Have the track of a warp named after its role."""
        if span.role:
            self._roles.setdefault((span.block, span.warp), span.role)

    def of(self, block: int, track: str, row: int) -> int:
        """The number of a track: of a warp, or a row of those for copies and MMAs."""
        known = block, track, row
        if known not in self._numbers:
            parent = self._process(block)
            if track == WARP:
                name = f"{self._thread_word} {row} {self._roles.get((block, row), '')}".rstrip()
                thread = _number(1, block + 1) + _number(2, 1000 * (block + 1) + row + 1) + _text(5, name)
                self._describe(known, lambda number: _number(1, number) + _bytes(4, thread))
            else:
                self._describe(known, lambda number: _number(1, number) + _text(2, track) + _number(5, parent))
        return self._numbers[known]

    def _process(self, block: int) -> int:
        known = (block,)
        if known not in self._numbers:
            process = _number(1, block + 1) + _text(6, f"{self._process_word} {block} (times are {self._unit})")
            self._describe(known, lambda number: _number(1, number) + _bytes(3, process))
        return self._numbers[known]

    def _describe(self, known: tuple[object, ...], body: Callable[[int], bytes]) -> None:
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
