"""Pictures as SVG, written by hand: rectangles and words."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ptxlab.draw.palette import web
from ptxlab.draw.picture import Cell, Panel, Picture

LETTER = 6.3  # pixels that a letter takes in the font of cells
HEIGHT = 20
GAP = 26
LEFT = 16
FAINT = "#f1f1f1"
FONT = "font-family='ui-monospace, Menlo, Consolas, monospace'"


def render(picture: Picture) -> str:
    """The whole file."""
    drawn: list[str] = []
    top = 28.0
    drawn.append(f"<text x='{LEFT}' y='{top}' font-size='14' font-weight='bold'>{escape(picture.title)}</text>")
    width = LEFT * 2 + len(picture.title) * 8.6
    for panel in picture.panels:
        top += GAP
        right, bottom = _extent(panel, top)
        drawn.extend(_panel(panel, top))
        width, top = max(width, right), bottom
    size = f"{width:.0f}", f"{top + LEFT:.0f}"
    # With a `viewBox` and without a fixed height, a narrow column scales the picture instead of cutting it.
    box = f"viewBox='0 0 {size[0]} {size[1]}' width='{size[0]}' style='max-width: 100%; height: auto'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {box} {FONT}>"
    return "\n".join([head, "<rect width='100%' height='100%' fill='white'/>", *drawn, "</svg>", ""])


def _sizes(panel: Panel) -> tuple[float, float]:
    """The width of a cell, and of the names of rows before them."""
    texts = [cell.text for row in panel.cells for cell in row if cell is not None]
    longest = max(map(len, [*texts, *panel.column_names]), default=1)
    return longest * LETTER + 8, max(map(len, panel.row_names), default=0) * LETTER + 8


def _extent(panel: Panel, top: float) -> tuple[float, float]:
    """How far to the right and down a panel reaches."""
    cell, margin = _sizes(panel)
    right = LEFT * 2 + margin + cell * len(panel.column_names)
    words = LEFT * 2 + max(len(panel.title), len(panel.note)) * 7.2
    bottom = top + 16 + HEIGHT * len(panel.row_names) + 6 + (18 if panel.note else 0)
    return max(right, words), bottom


def _panel(panel: Panel, top: float) -> Iterator[str]:
    cell, margin = _sizes(panel)
    left, first = LEFT + margin, top + 16
    yield f"<text x='{LEFT}' y='{top}' font-size='12' font-weight='bold'>{escape(panel.title)}</text>"
    for number, name in enumerate(panel.column_names):
        yield _words(left + (number + 0.5) * cell, first - 4, name, "#666", "middle")
    for number, (name, row) in enumerate(zip(panel.row_names, panel.cells, strict=True)):
        y = first + number * HEIGHT
        yield _words(left - 6, y + 14, name, "#666", "end")
        for place, one in enumerate(row):
            yield from _cell(one, left + place * cell, y, cell)
    yield from _rules(panel, left, first, cell)
    if panel.note:
        below = first + HEIGHT * len(panel.cells) + 18
        yield f"<text x='{LEFT}' y='{below}' font-size='11'>{escape(panel.note)}</text>"


def _cell(cell: Cell | None, x: float, y: float, width: float) -> Iterator[str]:
    fill = "white" if cell is None else web(cell.color) if cell.strong else FAINT
    yield f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{HEIGHT}' fill='{fill}' stroke='#ccc'/>"
    if cell is not None and cell.text:
        yield _words(x + width / 2, y + 14, cell.text, "#111" if cell.strong else "#aaa", "middle")


def _rules(panel: Panel, left: float, top: float, cell: float) -> Iterator[str]:
    """The heavier lines, and the frame."""
    down, right = panel.rules
    rows, columns = len(panel.row_names), len(panel.column_names)
    width, height = columns * cell, rows * HEIGHT
    yield f"<rect x='{left:.1f}' y='{top:.1f}' width='{width:.1f}' height='{height}' fill='none' stroke='#444'/>"
    for row in range(down, rows, down) if down else ():
        y = top + row * HEIGHT
        yield f"<line x1='{left:.1f}' y1='{y}' x2='{left + width:.1f}' y2='{y}' stroke='#444' stroke-width='1.5'/>"
    for column in range(right, columns, right) if right else ():
        x = left + column * cell
        yield f"<line x1='{x:.1f}' y1='{top}' x2='{x:.1f}' y2='{top + height}' stroke='#444' stroke-width='1.5'/>"


def _words(x: float, y: float, text: str, color: str, anchor: str) -> str:
    place = f"x='{x:.1f}' y='{y:.1f}'"
    return f"<text {place} font-size='10' fill='{color}' text-anchor='{anchor}'>{escape(text)}</text>"
