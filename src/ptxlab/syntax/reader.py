"""What the readers of one file share: its text, its scope, and the errors found so far."""

from __future__ import annotations

import re

from ptxlab.ir import Comment
from ptxlab.report import Diagnostic, Source
from ptxlab.syntax.comments import make_comment
from ptxlab.syntax.cursor import Cursor
from ptxlab.syntax.faults import Fault
from ptxlab.syntax.scope import Scope

MOST_FAULTS = 500

# Every name before a `:`: those that may turn out to be labels. A comment or a `?:` may add some that never do.
_CANDIDATE = re.compile(r"([\w$%]+)[ \t]*:(?!:)", re.ASCII)


class TooManyFaults(Exception):  # noqa: N818 - it only ends the reading
    """There are so many errors that more of them help nobody."""


class Reader:
    """One file on its way to a program."""

    __slots__ = ("diagnostics", "scope", "source", "text")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.scope = Scope(None, frozenset(_CANDIDATE.findall(self.text)), [])
        self.diagnostics: list[Diagnostic] = []

    def note(self, fault: Fault) -> None:
        """Remember an error."""
        self.diagnostics.append(fault.diagnostic(self.source))
        if len(self.diagnostics) >= MOST_FAULTS:
            raise TooManyFaults

    def comment(self, start: int, end: int, previous: object) -> Comment:
        """The comment at an offset; `previous` is what stands before it in the program."""
        return make_comment(self.text, start, end, previous)

    def take_comments(self, cursor: Cursor, into: list[Comment]) -> None:
        """Move the comments that a cursor went past into a list."""
        for start, end in cursor.comments:
            into.append(self.comment(start, end, into[-1] if into else None))
        cursor.comments.clear()
