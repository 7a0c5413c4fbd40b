"""Timelines as pictures: a line for each warp, a bar for each span, and below them what the colors mean.

Asynchronous operations have lines below those of the warps of their block, as many as there are at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from ptxlab.draw.drawing import Drawing
from ptxlab.draw.palette import web
from ptxlab.timelines import WARP, Span, Timeline, rows_of

LEFT, RIGHT, TOP = 150, 20, 50  # pixels around the bars, at least
LETTER = 6.8  # pixels of a letter
WIDTH, LINE, BAR = 900, 22, 15  # of all bars; from line to line; of a bar, down
# The colors of what starts with "wait".
WAITING = ("#e3e3e3", "#f8e0cc", "#dbe6f4", "#e2f0dc", "#eee2f2", "#fdf3c8")
PARTS = 3  # of an opcode, that are shown
LETTERS = 110  # of a line of text, for the bars
MOST_LINES = 64  # warps that are drawn
FONT = "font-family='ui-monospace, Menlo, Consolas, monospace'"


@dataclass(frozen=True)
class TimelinePicture(Drawing):
    """The spans of some warps between two times. It prints as text, and is SVG in a notebook and in files."""

    title: str
    unit: str
    spans: tuple[Span, ...]
    start: int
    end: int
    places: tuple[str, str] = ("block", "warp")

    @property
    def labels(self) -> list[str]:
        """The labels, in the order in which they first appear."""
        return list(dict.fromkeys(_label(span) for span in self.spans))

    @property
    def lines(self) -> dict[str, list[Span]]:
        """The spans of each warp, and of each track beside them, by its name."""
        found: dict[tuple[int, bool, str, int], list[Span]] = {}
        for span, row in rows_of(self.spans):
            found.setdefault((span.block, span.track != WARP, span.track, row), []).append(span)
        several = len({block for block, *_ in found}) > 1
        return {_name(spans, several, row, self.places): spans for (_, _, _, row), spans in sorted(found.items())}

    def text(self) -> str:
        """For a terminal: a letter for each label, a dot where there is no span."""
        letters = dict(zip(self.labels, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", strict=False))
        margin = max(map(len, self.lines), default=0)
        drawn = [self.title]
        for name, spans in self.lines.items():
            line = ["·"] * LETTERS
            for span in sorted(spans, key=lambda span: -span.duration):
                first, last = (int(self._place(time, LETTERS - 1)) for time in (span.start, span.end))
                count = max(last - first, 1)
                line[first : first + count] = letters.get(_label(span), "?") * count
            drawn.append(f"{name:>{margin}} {''.join(line)}")
        drawn.append(" " * (margin + 1) + f"{self.start} to {self.end} {self.unit}")
        drawn += [f"{letters.get(label, '?')} {label}" for label in self.labels]
        return "\n".join(drawn)

    def svg(self) -> str:
        """As SVG, which browsers show."""
        drawn = [f"<text x='16' y='28' font-size='14' font-weight='bold'>{escape(self.title)}</text>"]
        bottom = TOP
        for name, spans in self.lines.items():
            drawn.append(f"<text x='{self._left - 8}' y='{bottom + 12}' text-anchor='end'>{escape(name)}</text>")
            drawn += [self._bar(span, bottom) for span in sorted(spans, key=lambda span: -span.duration)]
            bottom += LINE
        legend, rows = self._legend(bottom + 40)
        drawn += [*self._axis(bottom), *legend]
        width, height = self._left + WIDTH + RIGHT, bottom + 60 + LINE * rows
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}' font-size='11' {FONT}>"
            f"<rect width='{width}' height='{height}' fill='white'/>{''.join(drawn)}</svg>\n"
        )

    @property
    def _left(self) -> int:
        """Pixels for the names of lines."""
        return max(LEFT, int(LETTER * max(map(len, self.lines))) + 16)

    def _place(self, time: int, width: int) -> float:
        inside = min(max(time, self.start), self.end) - self.start
        return inside / max(self.end - self.start, 1) * width

    def _color(self, label: str) -> str:
        is_wait = label.startswith("wait")
        alike = [one for one in self.labels if one.startswith("wait") == is_wait]
        return WAITING[alike.index(label) % len(WAITING)] if is_wait else web(4 * alike.index(label) + 3)

    def _bar(self, span: Span, top: float) -> str:
        first, last = (self._place(time, WIDTH) for time in (span.start, span.end))
        said = f"{span.label}: {span.duration} {self.unit}"
        return (
            f"<rect x='{self._left + first:.1f}' y='{top}' width='{max(last - first, 0.5):.1f}' height='{BAR}' "
            f"fill='{self._color(_label(span))}'><title>{escape(said)}</title></rect>"
        )

    def _axis(self, top: float) -> Iterator[str]:
        for part in range(5):
            x, time = self._left + WIDTH * part / 4, self.start + (self.end - self.start) * part // 4
            yield f"<text x='{x}' y='{top + 14}' text-anchor='{_anchor(part)}'>{time}{_unit(part, self.unit)}</text>"

    def _legend(self, top: float) -> tuple[list[str], int]:
        """What the colors mean, and how many rows there are beside the first."""
        x, rows, drawn = float(self._left), 0, []
        for label in self.labels:
            if x > self._left and x + 17 + LETTER * len(label) > self._left + WIDTH:
                x, rows = float(self._left), rows + 1
            y = top + LINE * rows
            drawn.append(f"<rect x='{x}' y='{y - 10}' width='12' height='12' fill='{self._color(label)}'/>")
            drawn.append(f"<text x='{x + 17}' y='{y}'>{escape(label)}</text>")
            x += 17 + LETTER * len(label) + 20
        return drawn, rows


def timeline(
    timeline: Timeline, title: str = "", *, block: int | None = 0, start: int | None = None, end: int | None = None
) -> TimelinePicture:
    """The spans of a block, or of all (`None`), from one time to another, by default all that there are."""
    chosen = [span for span in timeline.spans if block in (None, span.block)]
    if not chosen:
        raise ValueError(f"there are no spans{'' if block is None else f' of block {block}'}")
    if not timeline.shared_clock and len({span.block for span in chosen}) > 1:
        raise ValueError('each SM has its own clock: draw one block, or record with `clock="globaltimer"`')
    first = min(span.start for span in chosen) if start is None else start
    last = max(span.end for span in chosen) if end is None else end
    seen = tuple(span for span in chosen if span.end >= first and span.start <= last)
    if not seen:
        raise ValueError(f"there are no spans from {first} to {last} {timeline.unit}")
    warps = len({(span.block, span.warp) for span in seen})
    if warps > MOST_LINES:
        raise ValueError(f"{warps} warps have spans: at most {MOST_LINES} are drawn; choose a block")
    title = title or f"{warps} {timeline.places[1]}s, {timeline.unit}"
    return TimelinePicture(title, timeline.unit, seen, first, last, timeline.places)


def _label(span: Span) -> str:
    """What the picture calls a span; of an instruction, its opcode."""
    if not span.line:
        return span.label
    name, colon, text = span.label.rpartition(": ")
    words = [word for word in text.split() if not word.startswith("@")]
    return f"{name}{colon}{'.'.join(words[0].split('.')[:PARTS])}" if words else span.label


def _name(spans: list[Span], several: bool, row: int, places: tuple[str, str]) -> str:
    """`warp 3 producer`, after its block if there are several; `tensor cores 1`."""
    span = max(spans, key=lambda span: bool(span.role))
    place = f"{places[0]} {span.block} " * several
    return (
        f"{place}{places[1]} {span.warp} {span.role}".rstrip() if span.track == WARP else f"{place}{span.track} {row}"
    )


def _anchor(part: int) -> str:
    return "start" if part == 0 else "end" if part == 4 else "middle"


def _unit(part: int, unit: str) -> str:
    return f" {unit}" if part == 4 else ""
