"""Pictures as text: cells of one width, on the background of their colour where there are colours."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab.draw.palette import rgb
from ptxlab.draw.picture import Cell, Panel, Picture


def render(picture: Picture, color: bool) -> str:
    """The whole picture, without a line break at the end."""
    return "\n".join([picture.title, *(line for panel in picture.panels for line in ("", *_panel(panel, color)))])


def _panel(panel: Panel, color: bool) -> Iterator[str]:
    texts = [cell.text for row in panel.cells for cell in row if cell is not None]
    width = max(map(len, [*texts, *panel.column_names]), default=1)
    margin = max(map(len, panel.row_names), default=0)
    down, right = panel.rules
    yield panel.title
    yield _line(" " * margin, [name.center(width) for name in panel.column_names], right)
    for number, (name, row) in enumerate(zip(panel.row_names, panel.cells, strict=True)):
        if down and number and number % down == 0:
            yield ""
        yield _line(name.rjust(margin), [_cell(cell, width, color) for cell in row], right)
    if panel.note:
        yield panel.note


def _line(name: str, cells: list[str], every: int) -> str:
    parts = [("  " if every and number and number % every == 0 else " ") + cell for number, cell in enumerate(cells)]
    return (name + "".join(parts)).rstrip()


def _cell(cell: Cell | None, width: int, color: bool) -> str:
    if cell is None:
        return "·".center(width)
    if not color:
        return cell.text.center(width) if cell.strong else ".".center(width)
    red, green, blue = rgb(cell.color) if cell.strong else (235, 235, 235)
    shade = 0 if cell.strong else 150
    background, letters = f"48;2;{red};{green};{blue}", f"38;2;{shade};{shade};{shade}"
    return f"\x1b[{background};{letters}m{cell.text.center(width)}\x1b[0m"
