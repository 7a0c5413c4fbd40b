"""What the readers of one file share: its text, its scope, and the errors found so far."""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxlab.ir import Comment, Function
from ptxlab.report import Diagnostic, Source
from ptxlab.syntax.comments import make_comment
from ptxlab.syntax.cursor import Cursor
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.scope import Scope

MOST_FAULTS = 500
_REPORT_EVERY = 1 << 18

_COMMENTED = re.compile(r"(?<![\w$%])([\w$%]+)\s*(?:/\*[^*]*\*+/\s*|//[^\n]*\n\s*)+:", re.ASCII)
_LAST_NAME = re.compile(r"[^\w$%]", re.ASCII)


def _names_before_colons(text: str) -> frozenset[str]:
    """Names that may turn out to be labels; a comment, a `::` or a `?:` may add some that never do."""
    # Splitting visits each character once, where a pattern would try every letter of a long name as its start.
    parts = text.split(":")
    parts.pop()
    words = {part.rsplit(None, 1)[-1] for part in parts if part and not part.isspace()}
    names = {_LAST_NAME.split(word)[-1] for word in words}
    if "" in names:  # something that is not a name precedes a `:`, perhaps a comment
        names.update(_COMMENTED.findall(text))
    return frozenset(names)


class TooManyFaults(Exception):  # noqa: N818 - it only ends the reading
    """There are so many errors that more of them would not help."""


class Reader:
    """One file on its way to a program."""

    __slots__ = ("diagnostics", "progress", "prototypes", "reported", "scope", "source", "text")

    def __init__(self, source: Source, progress: Callable[[int], None] | None = None) -> None:
        self.source = source
        self.text = source.text
        self.scope = Scope(None, _names_before_colons(self.text), [], [len(self.text) // 8])
        self.progress = progress
        self.reported = 0  # the offset at which to report the progress again
        self.prototypes: list[Function] = []  # met inside a body; they belong to the module all the same
        self.diagnostics: list[Diagnostic] = []

    def report(self, at: int) -> None:
        """Report now and then how many characters have been read, if that was asked for."""
        if at >= self.reported:
            self.reported = at + _REPORT_EVERY
            if self.progress is not None:
                self.progress(at)

    def note(self, fault: ParseError) -> None:
        """Remember an error."""
        self.diagnostics.append(fault.diagnostic(self.source))
        if len(self.diagnostics) >= MOST_FAULTS:
            raise TooManyFaults

    def comment(self, start: int, end: int, previous: object) -> Comment:
        """The comment at an offset; `previous` is what precedes it in the program."""
        return make_comment(self.text, start, end, previous)

    def take_comments(self, cursor: Cursor, into: list[Comment]) -> None:
        """Move the comments that a cursor went past into a list."""
        for start, end in cursor.comments:
            into.append(self.comment(start, end, into[-1] if into else None))
        cursor.comments.clear()
