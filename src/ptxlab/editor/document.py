"""A text that is open in an editor: positions as the protocol counts them, and the words of the text.

A position is a line and a column, both from 0; the units of a column are those that the editor and pygls agreed on.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

from ptxlab.ir.collector import collector_paused
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


class Word(NamedTuple):
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
    codec: PositionCodec

    @cached_property
    def source(self) -> Source:
        """The text as diagnostics name it."""
        return Source(self.uri.rpartition("/")[2], self.text)

    @cached_property
    def words(self) -> list[Word]:
        """All words but comments and strings."""
        with collector_paused():
            found = [Word(match.lastgroup or "", match.group(), match.start()) for match in _WORD.finditer(self.text)]
            return [word for word in found if word.kind not in ("comment", "string")]

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

    def offset(self, position: Position) -> int:
        """The offset of a position."""
        number = min(max(position.line, 0), self.source.line_count - 1) + 1
        start, end = self.source.line_bounds(number)
        line = self.text[start:end]
        if line.isascii():
            return start + min(max(position.character, 0), len(line))
        found = self.codec.position_from_client_units([f"{line}\n"], Position(0, position.character))
        return start + min(found.character, len(line))

    def position(self, offset: int) -> Position:
        """The position of an offset."""
        line, column = self.source.position(min(offset, len(self.text)))
        before = self.text[offset - column + 1 : offset]
        return Position(line - 1, len(before) if before.isascii() else self.codec.client_num_units(before))

    def range(self, start: int, end: int) -> Range:
        """The range between two offsets."""
        return Range(self.position(start), self.position(end))
