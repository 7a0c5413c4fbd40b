"""Text in columns."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from textwrap import wrap


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell; numbers are aligned right.

    >>> table([["name", "bytes"], ["a", "12"]])
    ['name  bytes', 'a        12']
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(_NUMBER.fullmatch(cell) for cell in column[1:]) for column in columns]
    return ["  ".join(_cell(*cell) for cell in zip(row, widths, numeric, strict=True)).rstrip() for row in rows]


def fold(lines: Iterable[str], indent: int) -> list[str]:
    """Lines that fit the terminal, if there is one; what does not fit is below, indented by `indent` spaces."""
    if not sys.stdout.isatty():
        return list(lines)
    width = get_terminal_size().columns
    after = " " * min(indent, width // 2)
    return [part for line in lines for part in wrap(line, width, subsequent_indent=after)]


_NUMBER = re.compile(r"-|[\d,]+(\.\d+)?( B)?")


def _cell(text: str, width: int, numeric: bool) -> str:
    return text.rjust(width) if numeric else text.ljust(width)
