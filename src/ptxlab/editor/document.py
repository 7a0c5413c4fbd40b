"""A text that is open in an editor: positions as the protocol counts them, and the words of the text.

A position is a line and a column, both from 0; the units of a column are those that the editor and pygls agreed on.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress
from pathlib import Path
from string import ascii_letters, whitespace
from typing import Literal, NamedTuple, overload
from urllib.parse import urlparse
from urllib.request import url2pathname

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

from ptxlab.ir.collector import collector_paused
from ptxlab.report import Source

# Every character is in one of these parts: blanks, a comment, a string, a number, a name, a modifier, a mark.
_PART = re.compile(
    r"""\s+
    |//[^\n]*|/\*.*?(?:\*/|\Z)
    |"[^"\n]*"?
    |0[fFdDxX][0-9a-fA-F]+U?|\d[\w.]*
    |[%$_A-Za-z][\w$]*
    |\.[\w]+(?:::[\w]+)*
    |.""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS = frozenset(whitespace + '"')
_NAMES = frozenset("%$_" + ascii_letters)


class Word(NamedTuple):
    """A word of a text; `kind` is name, modifier (`.u32`), number or mark."""

    text: str
    start: int

    @property
    def kind(self) -> str:
        """What its first characters show it to be."""
        first = self.text[0]
        if first in _NAMES:
            return "name"
        if first.isdecimal():
            return "number"
        return "modifier" if first == "." and len(self.text) > 1 else "mark"

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)


class DocumentWords(Sequence[Word]):
    """The words of a text. It may have a million of them, of which few are read: each is made when it is asked for."""

    def __init__(self, texts: list[str], starts: list[int]) -> None:
        self.texts = texts
        self.starts = starts

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, at: int) -> Word: ...
    @overload
    def __getitem__(self, at: slice) -> list[Word]: ...
    def __getitem__(self, at: int | slice) -> Word | list[Word]:
        if isinstance(at, slice):
            return list(map(Word, self.texts[at], self.starts[at]))
        return Word(self.texts[at], self.starts[at])


@dataclass(frozen=True)
class Document:
    """One version of a text."""

    uri: str
    text: str
    codec: PositionCodec

    @cached_property
    def path(self) -> Path | None:
        """Its file; None for one that was not saved yet."""
        address = urlparse(self.uri)
        return Path(url2pathname(address.path)) if address.scheme == "file" else None

    @property
    def language(self) -> Literal["ptx", "cuda", "python"]:
        """What it is written in."""
        suffix = self.path.suffix if self.path is not None else ""
        return "cuda" if suffix == ".cu" else "python" if suffix == ".py" else "ptx"

    @cached_property
    def source(self) -> Source:
        """The text as diagnostics name it."""
        is_other = self.path is not None and self.language != "ptx"
        return Source(str(self.path) if is_other else self.uri.rpartition("/")[2], self.text)

    @cached_property
    def words(self) -> DocumentWords:
        """All words but comments and strings."""
        with collector_paused():
            parts = _PART.findall(self.text)
            are_words = [part[0] not in _BLANKS and part[:2] not in ("//", "/*") for part in parts]
            starts = accumulate(map(len, parts), initial=0)
            return DocumentWords(list(compress(parts, are_words)), list(compress(starts, are_words)))

    @property
    def _starts(self) -> list[int]:
        return self.words.starts

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
