"""A picture as a value: panels of cells, each with a few words and a color."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxlab.draw.drawing import Drawing


@dataclass(frozen=True, slots=True)
class Cell:
    """A few words on a color of the palette; a cell that is not `strong` is drawn fainter."""

    text: str
    color: int
    strong: bool = True


@dataclass(frozen=True, slots=True)
class Mark:
    """A dimension line: from the start of row or column `first` to that of `last`, and what that distance is."""

    text: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Panel:
    """Cells in rows, with a name for each row and column; None is an empty cell.

    `rules` says after how many rows and columns a heavier line is drawn: 0 for never. Dimension lines are drawn beside
    the rows and below the columns.
    """

    title: str
    cells: Sequence[Sequence[Cell | None]]
    row_names: Sequence[str]
    column_names: Sequence[str]
    rules: tuple[int, int] = (0, 0)
    note: str = ""
    row_marks: Sequence[Mark] = ()
    column_marks: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Picture(Drawing):
    """Panels below a title. It prints as text, and is SVG in a notebook and in files."""

    title: str
    panels: Sequence[Panel]

    def __repr__(self) -> str:
        count = len(self.panels)
        return f"<picture: {self.title}, {count} panel{'s' * (count != 1)}>"

    def text(self, color: bool = False, width: int | None = None) -> str:
        """For a terminal, with its colors if `color`; what is wider than `width` characters continues below."""
        from ptxlab.draw.terminal import render

        return render(self, color, width)

    def svg(self) -> str:
        """As SVG, which browsers show."""
        from ptxlab.draw.svg import render

        return render(self)
