"""A text that is open in an editor: positions as the protocol counts them, and the words of the text.

A position is a line and a column, both from 0, and the column is in units of UTF-16.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ptxlab.report import Source

_WORD = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>"[^"\n]*"?)
    |(?P<number>0[fFdDxX][0-9a-fA-F]+U?|\d[\w.]*)
    |(?P<name>[%$_A-Za-z][\w$]*)
    |(?P<modifier>\.[\w]+(?:::[\w]+)*)
    |(?P<mark>[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text; `kind` is name, modifier (`.u32`), number or mark."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Document:
    """One version of a text."""

    uri: str
    text: str

    @cached_property
    def source(self) -> Source:
        """The text as diagnostics name it."""
        return Source(self.uri.rpartition("/")[2], self.text)

    @cached_property
    def words(self) -> list[Word]:
        """All words but comments and strings."""
        found = ((match.lastgroup or "", match.group(), match.start()) for match in _WORD.finditer(self.text))
        return [Word(*word) for word in found if word[0] not in ("comment", "string")]

    @cached_property
    def _starts(self) -> list[int]:
        return [word.start for word in self.words]

    def word_at(self, offset: int) -> int | None:
        """The number of the word that an offset is in, or at the end of."""
        number = bisect_right(self._starts, offset) - 1
        touching = [at for at in (number, number - 1) if at >= 0 and self.words[at].end >= offset]
        names = [at for at in touching if self.words[at].kind != "mark"]
        return next(iter([*names, *touching]), None)

    def last_before(self, offset: int) -> int:
        """The number of the last word that starts before an offset; -1 if there is none."""
        return bisect_right(self._starts, offset - 1) - 1

    def offset(self, position: dict[str, Any]) -> int:
        """The offset of a position."""
        number = min(max(int(position["line"]), 0), self.source.line_count - 1) + 1
        start, end = self.source.line_bounds(number)
        line, units = self.text[start:end], int(position["character"])
        if line.isascii():
            return start + min(max(units, 0), len(line))
        return start + len(line.encode("utf-16-le")[: 2 * max(units, 0)].decode("utf-16-le", "ignore"))

    def position(self, offset: int) -> dict[str, int]:
        """The position of an offset."""
        line, column = self.source.position(min(offset, len(self.text)))
        before = self.text[offset - column + 1 : offset]
        return {"line": line - 1, "character": len(before.encode("utf-16-le")) // 2}

    def range(self, start: int, end: int) -> dict[str, Any]:
        """The range between two offsets."""
        return {"start": self.position(start), "end": self.position(end)}
