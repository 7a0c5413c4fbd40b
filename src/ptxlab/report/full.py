"""The full rendering: the finding, the lines it is about with their labels, notes and helps.

Read `full` first. A label becomes one `Mark` for each line it is drawn on (two when it spans lines: its first and its
last); `_excerpt` writes the marked lines of one source, `_marked_line` one of them with its rows of markers and texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ptxlab.report.diagnostic import Diagnostic, Label
from ptxlab.report.source import Source
from ptxlab.report.terminal import Paint, expand, printable
from ptxlab.values import dataclass

# A line longer than LONGEST is cut to WINDOW characters that begin LEAD characters before its marks.
LONGEST, WINDOW, LEAD = 160, 120, 30
CUT = "..."


@dataclass(frozen=True, slots=True)
class Mark:
    """A label's part of one line, in columns counted from 0."""

    line: int
    start: int
    end: int
    text: str
    style: str
    symbol: str


def full(diagnostic: Diagnostic, paint: Paint) -> str:
    """The diagnostic as people read it, without a final line break."""
    level = diagnostic.level
    lines = [paint(level, f"{level}[{diagnostic.code}]") + paint("strong", f": {printable(diagnostic.message)}")]
    sources = list(dict.fromkeys(label.span.source for label in diagnostic.labels))
    marks = {source: list(_marks(source, diagnostic)) for source in sources}
    width = max((len(str(mark.line)) for marked in marks.values() for mark in marked), default=1)
    bar = paint("margin", " " * (width + 1) + "|")
    for source in sources:
        arrow = "-->" if source is sources[0] else ":::"
        first = next(label.span for label in diagnostic.labels if label.span.source == source)
        line, column = source.position(first.start)
        lines.append(f"{paint('margin', ' ' * width + arrow)} {printable(source.name)}:{line}:{column}")
        lines.append(bar)
        lines.extend(_excerpt(source, marks[source], width, paint))
    remarks = [("note", note) for note in diagnostic.notes] + [("help", help.text) for help in diagnostic.helps]
    if remarks and sources:
        lines.append(bar)
    for kind, text in remarks:
        hang = "\n" + " " * (width + len(kind) + 5)
        body = hang.join(printable(part) for part in text.split("\n"))
        lines.append(f"{paint('margin', ' ' * (width + 1) + '=')} {paint('strong', kind + ':')} {body}")
    return "\n".join(lines)


def _marks(source: Source, diagnostic: Diagnostic) -> Iterator[Mark]:
    """Marks of the labels in `source`; a label over several lines gets one on its first line and one on its last."""
    for index, label in enumerate(diagnostic.labels):
        if label.span.source != source:
            continue
        style, symbol = (diagnostic.level, "^") if index == 0 else ("margin", "-")
        text = printable(label.text.replace("\n", " "))
        (line, column), (last, end) = _extent(label)
        if line == last:
            yield Mark(line, column - 1, max(end, column + 1) - 1, text, style, symbol)
            continue
        start, stop = source.line_bounds(line)
        yield Mark(line, column - 1, max(stop - start, column), "", style, symbol)
        start, _ = source.line_bounds(last)
        indent = len(source.text[start : start + end]) - len(source.text[start : start + end].lstrip())
        yield Mark(last, min(indent, end - 2), end - 1, text, style, symbol)


def _extent(label: Label) -> tuple[tuple[int, int], tuple[int, int]]:
    """First and last position of a label, without the white space at its end."""
    source = label.span.source
    start, end = (min(at, len(source.text)) for at in (label.span.start, label.span.end))
    while end > start and source.text[end - 1].isspace():
        end -= 1
    return source.position(start), source.position(end)


def _excerpt(source: Source, marks: list[Mark], width: int, paint: Paint) -> Iterator[str]:
    """The marked lines of `source`, with `...` where lines are left out."""
    previous = None
    for line, group in groupby(sorted(marks, key=lambda mark: mark.line), key=lambda mark: mark.line):
        if previous is not None and line == previous + 2:
            yield from _marked_line(source, previous + 1, [], width, paint)
        elif previous is not None and line > previous + 2:
            yield paint("margin", " " * width + "...")
        for together in _fitting(source, line, list(group)):
            yield from _marked_line(source, line, together, width, paint)
        previous = line


def _fitting(source: Source, line: int, marks: list[Mark]) -> list[list[Mark]]:
    """The marks of a line, apart where the line is so long that they don't fit in one window."""
    start, end = source.line_bounds(line)
    fits = max(mark.end for mark in marks) - min(mark.start for mark in marks) <= WINDOW - LEAD
    return [marks] if end - start <= LONGEST or fits else [[mark] for mark in marks]


def _marked_line(source: Source, line: int, marks: list[Mark], width: int, paint: Paint) -> Iterator[str]:
    """One line of the source, then the markers under it, then the texts that did not fit beside them."""
    start, end = source.line_bounds(line)
    low, high, lead, tail = 0, end - start, "", ""
    if end - start > LONGEST:
        low = max(0, min((mark.start for mark in marks), default=0) - LEAD)
        high = min(end - start, low + WINDOW)
        lead, tail = CUT if low else "", CUT if high < end - start else ""
    shown, columns = expand(source.text[start + low : start + high])

    def column(at: int) -> int:
        return len(lead) + columns[min(max(at - low, 0), high - low)]

    number = paint("margin", f"{line:>{width}} |")
    bar = paint("margin", " " * (width + 1) + "|")
    yield f"{number} {lead}{shown}{tail}".rstrip()
    drawn = [
        Mark(
            line, column(mark.start), max(column(mark.end), column(mark.start) + 1), mark.text, mark.style, mark.symbol
        )
        for mark in marks
    ]
    for row in _marker_rows(drawn, paint):
        yield f"{bar} {row}"


def _marker_rows(marks: list[Mark], paint: Paint) -> Iterator[str]:
    """The rows below a line: all markers with the last text beside them, then the other texts, right to left."""
    if not marks:
        return
    ordered = sorted(marks, key=lambda mark: (mark.start, mark.end, mark.symbol == "^"))
    row: dict[int, Mark] = {}
    for mark in sorted(marks, key=lambda mark: mark.symbol == "^"):
        row.update(dict.fromkeys(range(mark.start, mark.end), mark))
    markers = _paint_row({at: (mark.symbol, mark.style) for at, mark in row.items()}, paint)
    last = ordered[-1]
    hanging = [mark for mark in ordered if mark.text]
    if last.text and all(mark.end <= last.end for mark in ordered):
        hanging.pop()
        markers += " " + paint(last.style, last.text)
    yield markers
    if hanging:
        yield _stems(hanging, paint)
    while hanging:
        mark = hanging.pop()
        stems = _stems((other for other in hanging if other.start < mark.start), paint)
        reached = max((other.start + 1 for other in hanging if other.start < mark.start), default=0)
        yield stems + " " * (mark.start - reached) + paint(mark.style, mark.text)


def _stems(marks: Iterable[Mark], paint: Paint) -> str:
    return _paint_row({mark.start: ("|", mark.style) for mark in marks}, paint)


def _paint_row(cells: dict[int, tuple[str, str]], paint: Paint) -> str:
    """A row of single characters at their columns, painted run by run."""
    blank = (" ", "")
    row = [cells.get(at, blank) for at in range(max(cells, default=-1) + 1)]
    runs = ((style, "".join(symbol for symbol, _ in run)) for style, run in groupby(row, key=lambda cell: cell[1]))
    return "".join(paint(style, text) if style else text for style, text in runs)
