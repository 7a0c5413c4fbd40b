"""Source text and spans of it.

A `Source` is a named text; a `Span` is a stretch of one, by offsets. Lines and columns are computed on demand, so
that a span costs three words while a file is read, and positions only what is shown of them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from functools import cached_property

from ptxlab.values import dataclass


@dataclass(frozen=True)
class Source:
    """A named text, as read from a file or given by the user.

    >>> Source("a.ptx", "ret;\\nexit;").position(5)
    (2, 1)
    """

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    @property
    def line_count(self) -> int:
        """Number of lines; a text that ends in a line break has an empty last line."""
        return len(self._line_starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both counted from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_bounds(self, number: int) -> tuple[int, int]:
        """Offsets of the first character of a line and of its end, without the line break."""
        starts = self._line_starts
        start = starts[number - 1]
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        if end > start and self.text[end - 1] == "\r":
            end -= 1
        return start, end

    def line(self, number: int) -> str:
        """Text of a line, counted from 1, without its line break."""
        start, end = self.line_bounds(number)
        return self.text[start:end]


@dataclass(frozen=True, slots=True)
class Span:
    """The characters of `source` from `start` up to, not including, `end`."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]
