"""Syntax errors on their way to becoming diagnostics."""

from __future__ import annotations

from ptxlab.report import Diagnostic, Edit, Help, Source, Span, error
from ptxlab.report import Label as SpanLabel


class ParseError(Exception):
    """A syntax error at `text[start:end]`; the reader catches it, records it and continues after it.

    `repair` is a range and the text that certainly fixes the error there; `resume` is where to continue, where
    that is known.
    """

    def __init__(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        label: str = "",
        *,
        notes: tuple[str, ...] = (),
        help: str = "",
        repair: tuple[int, int, str] | None = None,
        other: tuple[int, int, str] | None = None,
        resume: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.start = start
        self.end = end
        self.label = label
        self.notes = notes
        self.help = help
        self.repair = repair
        self.other = other
        self.resume = resume

    def diagnostic(self, source: Source) -> Diagnostic:
        """The error as a value to show."""
        edits: tuple[Edit, ...] = ()
        if self.repair is not None:
            start, end, text = self.repair
            edits = (Edit(Span(source, start, end), text),)
        others = []
        if self.other is not None:
            start, end, text = self.other
            others.append(SpanLabel(Span(source, start, end), text))
        return error(
            self.code,
            self.message,
            Span(source, self.start, self.end),
            self.label,
            others=others,
            notes=self.notes,
            helps=(Help(self.help, edits),) if self.help else (),
        )
