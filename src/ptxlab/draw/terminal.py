"""Pictures as text: cells of one width, on the background of their color where there are colors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ptxlab.draw.palette import rgb
from ptxlab.draw.picture import Cell, Mark, Panel, Picture


def render(picture: Picture, color: bool, width: int | None = None) -> str:
    """The whole picture, without a line break at the end; panels that are wider than `width` are cut by columns."""
    panels = [part for panel in picture.panels for part in (_parts(panel, width) if width else [panel])]
    lines = [*_words(picture.title, width), *(line for panel in panels for line in ("", *_panel(panel, color, width)))]
    return "\n".join(lines)


def _words(text: str, width: int | None) -> list[str]:
    return [text] if width is None else textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _sizes(panel: Panel) -> tuple[int, int]:
    """The width of a cell, and of the names of rows before them."""
    texts = [cell.text for row in panel.cells for cell in row if cell is not None]
    return max(map(len, [*texts, *panel.column_names]), default=1), max(map(len, panel.row_names), default=0)


def _parts(panel: Panel, width: int) -> Iterator[Panel]:
    """A panel in as many parts as fit the width, cut at a rule where there is one."""
    cell, margin = _sizes(panel)
    count, right = len(panel.column_names), panel.rules[1]
    beside = sum(len(mark.text) + 3 for mark in panel.row_marks)
    each = max((width - margin - beside - (count // right if right else 0)) // (cell + 1), 1)
    if each >= count:
        yield panel
        return
    each = each // right * right if right and each >= right else each
    for first in range(0, count, each):
        columns = slice(first, first + each)
        marks = [Mark(mark.text, mark.first - first, mark.last - first) for mark in panel.column_marks
                 if first <= mark.first and mark.last <= min(first + each, count)]  # fmt: skip
        is_last = first + each >= count
        yield replace(
            panel,
            title=panel.title if first == 0 else "(continued)",
            cells=[row[columns] for row in panel.cells],
            column_names=panel.column_names[columns],
            column_marks=marks,
            note=panel.note if is_last else "",
        )


def _panel(panel: Panel, color: bool, widest: int | None) -> Iterator[str]:
    width, margin = _sizes(panel)
    down, right = panel.rules
    yield from _words(panel.title, widest)
    yield _line(" " * margin, [name.center(width) for name in panel.column_names], right).rstrip()
    for number, (name, row) in enumerate(zip(panel.row_names, panel.cells, strict=True)):
        if down and number and number % down == 0:
            yield _beside(panel.row_marks, number, margin + len(row) * (width + 1), between=True)
        line = _line(name.rjust(margin), [_cell(cell, width, color) for cell in row], right)
        yield (line + _beside(panel.row_marks, number, 1)).rstrip()
    for mark in panel.column_marks:
        starts = [
            margin + 1 + number * (width + 1) + (number // right if right else 0) for number in range(len(row) + 1)
        ]
        yield _below(mark, starts)
    if panel.note:
        yield from _words(panel.note, widest)


def _line(name: str, cells: list[str], every: int) -> str:
    parts = [("  " if every and number and number % every == 0 else " ") + cell for number, cell in enumerate(cells)]
    return name + "".join(parts)


def _beside(marks: Sequence[Mark], row: int, indent: int, *, between: bool = False) -> str:
    """What dimension lines show beside a row, or `between` it and the one before: the text is in their first row."""
    parts = []
    for mark in marks:
        text = f" {mark.text}" if row == mark.first and not between else " " * (len(mark.text) + 1)
        within = mark.first < row < mark.last if between else mark.first <= row < mark.last
        is_inner = between or mark.first < row < mark.last - 1 or mark.last == mark.first + 1
        sign = "│" if is_inner else "└" if row > mark.first else "┌"
        parts.append((sign if within else " ") + text)
    return (" " * indent + " ".join(parts)).rstrip() if any(part.strip() for part in parts) else ""


def _below(mark: Mark, starts: Sequence[int]) -> str:
    """A dimension line under columns; its text is on it where it fits, else after it."""
    first, last = starts[mark.first], starts[mark.last] - 1
    length = last - first
    text = f" {mark.text} "
    if len(text) + 4 <= length:
        return " " * first + "|" + "<" + text.center(length - 4, "-") + ">" + "|"
    return " " * first + "|<" + "-" * (length - 4) + ">|" + text.rstrip()


def _cell(cell: Cell | None, width: int, color: bool) -> str:
    if cell is None:
        return "·".center(width)
    if not color:
        return cell.text.center(width) if cell.strong else ".".center(width)
    red, green, blue = rgb(cell.color) if cell.strong else (235, 235, 235)
    shade = 0 if cell.strong else 150
    background, letters = f"48;2;{red};{green};{blue}", f"38;2;{shade};{shade};{shade}"
    return f"\x1b[{background};{letters}m{cell.text.center(width)}\x1b[0m"
