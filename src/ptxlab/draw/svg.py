"""Pictures as SVG, written by hand: rectangles, lines and words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from ptxlab.draw.palette import web
from ptxlab.draw.picture import Cell, Mark, Panel, Picture

LETTER = 6.3  # pixels that a letter takes in the font of cells
HEIGHT = 20
HEAD = 20  # from the base line of a panel's title to its cells: the names of columns are between them
GAP = 28
LEFT = 16
MARK = 20  # that a dimension line below the cells takes
FAINT = "#f1f1f1"
INK = "#111"
QUIET = "#666"
FONT = "font-family='ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace'"


@dataclass(frozen=True, slots=True)
class PanelFrame:
    """Where the cells of a panel are."""

    left: float
    top: float
    cell: float
    rows: int
    columns: int

    @property
    def right(self) -> float:
        return self.left + self.cell * self.columns

    @property
    def bottom(self) -> float:
        return self.top + HEIGHT * self.rows


def render(picture: Picture) -> str:
    """The whole file."""
    top = 28.0
    drawn = [_title(picture.title, top, 14)]
    width = LEFT * 2 + len(picture.title) * 8.6
    margin = max((_longest(panel.row_names) for panel in picture.panels), default=0) * LETTER + 8
    for panel in picture.panels:
        top += GAP
        cell = _longest([*_texts(panel), *panel.column_names]) * LETTER + 8
        frame = PanelFrame(LEFT + margin, top + HEAD, cell, len(panel.row_names), len(panel.column_names))
        drawn.extend(_panel(panel, frame, top))
        width = max(width, _right(panel, frame))
        top = _bottom(panel, frame)
    size = f"{width:.0f}", f"{top + LEFT:.0f}"
    # With a `viewBox` and without a fixed height, a narrow column scales the picture instead of cutting it.
    box = f"viewBox='0 0 {size[0]} {size[1]}' width='{size[0]}' style='max-width: 100%; height: auto'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {box} {FONT} fill='{INK}'>"
    return "\n".join([head, "<rect width='100%' height='100%' fill='white'/>", *drawn, "</svg>", ""])


def _texts(panel: Panel) -> list[str]:
    return [cell.text for row in panel.cells for cell in row if cell is not None]


def _longest(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=1)


def _right(panel: Panel, frame: PanelFrame) -> float:
    """How far to the right a panel reaches."""
    beside = sum(len(mark.text) * LETTER + 26 for mark in panel.row_marks)
    below = max(
        (frame.left + mark.first * frame.cell + len(mark.text) * LETTER for mark in panel.column_marks), default=0
    )
    words = max(len(panel.title) * 7.4, len(panel.note) * 6.8)
    return max(frame.right + beside, below, LEFT + words) + LEFT


def _bottom(panel: Panel, frame: PanelFrame) -> float:
    """How far down a panel reaches."""
    return frame.bottom + 6 + MARK * len(panel.column_marks) + (18 if panel.note else 0)


def _panel(panel: Panel, frame: PanelFrame, top: float) -> Iterator[str]:
    yield _title(panel.title, top, 12)
    for number, name in enumerate(panel.column_names):
        yield _words(frame.left + (number + 0.5) * frame.cell, frame.top - 4, name, QUIET, "middle")
    for number, (name, row) in enumerate(zip(panel.row_names, panel.cells, strict=True)):
        y = frame.top + number * HEIGHT
        yield _words(frame.left - 6, y + 14, name, QUIET, "end")
        for column, one in enumerate(row):
            yield from _cell(one, frame.left + column * frame.cell, y, frame.cell)
    yield from _rules(panel, frame)
    yield from _marks(panel, frame)
    if panel.note:
        below = _bottom(panel, frame) - 6
        yield f"<text x='{LEFT}' y='{below:.1f}' font-size='11'>{escape(panel.note)}</text>"


def _cell(cell: Cell | None, x: float, y: float, width: float) -> Iterator[str]:
    fill = "white" if cell is None else web(cell.color) if cell.strong else FAINT
    yield f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{HEIGHT}' fill='{fill}' stroke='#ccc'/>"
    if cell is not None and cell.text:
        yield _words(x + width / 2, y + 14, cell.text, INK if cell.strong else "#888", "middle")


def _rules(panel: Panel, frame: PanelFrame) -> Iterator[str]:
    """The heavier lines, and the frame."""
    down, right = panel.rules
    width, height = frame.right - frame.left, frame.bottom - frame.top
    box = f"x='{frame.left:.1f}' y='{frame.top:.1f}' width='{width:.1f}' height='{height}'"
    yield f"<rect {box} fill='none' stroke='#444'/>"
    for row in range(down, frame.rows, down) if down else ():
        y = frame.top + row * HEIGHT
        yield _line(frame.left, y, frame.right, y, 1.5)
    for column in range(right, frame.columns, right) if right else ():
        x = frame.left + column * frame.cell
        yield _line(x, frame.top, x, frame.bottom, 1.5)


def _marks(panel: Panel, frame: PanelFrame) -> Iterator[str]:
    """Dimension lines, with arrows at both ends."""
    x = frame.right + 12
    for mark in panel.row_marks:
        first, last = frame.top + mark.first * HEIGHT, frame.top + mark.last * HEIGHT
        yield from _arrow(x, first, x, last)
        yield _words(x + 6, (first + last) / 2 + 4, mark.text, INK, "start")
        x += len(mark.text) * LETTER + 26
    for number, mark in enumerate(panel.column_marks):
        yield from _column_mark(mark, frame, frame.bottom + 12 + MARK * number)


def _column_mark(mark: Mark, frame: PanelFrame, y: float) -> Iterator[str]:
    """The text is on the line where it fits, else after it."""
    first, last = frame.left + mark.first * frame.cell, frame.left + mark.last * frame.cell
    yield from _arrow(first, y, last, y)
    length = len(mark.text) * LETTER
    if length + 24 <= last - first:
        middle = (first + last) / 2
        box = f"x='{middle - length / 2 - 3:.1f}' y='{y - 6:.1f}' width='{length + 6:.1f}' height='12'"
        yield f"<rect {box} fill='white'/>"
        yield _words(middle, y + 4, mark.text, INK, "middle")
    else:
        yield _words(last + 6, y + 4, mark.text, INK, "start")


def _arrow(x1: float, y1: float, x2: float, y2: float) -> Iterator[str]:
    """A line with ticks and arrows at its ends; it is vertical or horizontal."""
    yield _line(x1, y1, x2, y2, 1)
    for x, y, way in ((x1, y1, 1), (x2, y2, -1)):
        if x1 == x2:
            yield _line(x - 5, y, x + 5, y, 1)
            head = f"M{x:.1f},{y:.1f} l-3,{6 * way} h6 z"
        else:
            yield _line(x, y - 5, x, y + 5, 1)
            head = f"M{x:.1f},{y:.1f} l{6 * way},-3 v6 z"
        yield f"<path d='{head}' fill='#444'/>"


def _line(x1: float, y1: float, x2: float, y2: float, width: float) -> str:
    ends = f"x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'"
    return f"<line {ends} stroke='#444' stroke-width='{width}'/>"


def _title(text: str, y: float, size: int) -> str:
    return f"<text x='{LEFT}' y='{y:.1f}' font-size='{size}' font-weight='bold'>{escape(text)}</text>"


def _words(x: float, y: float, text: str, color: str, anchor: str) -> str:
    box = f"x='{x:.1f}' y='{y:.1f}'"
    return f"<text {box} font-size='10' fill='{color}' text-anchor='{anchor}'>{escape(text)}</text>"
