"""Diagnostics as values.

One `Diagnostic` carries whatever is reported to a user: a syntax error, a lint, a race, a message of ptxas. It knows
nothing of how it is shown; `render` does that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Literal

from ptxlab.report.source import Span
from ptxlab.values import dataclass

Level = Literal["error", "warning", "note"]

_RENAMED = {
    "misaligned": "misaligned-access",
    "reinitialised-mbarrier": "reinitialized-mbarrier",
    "uninitialised-read": "uninitialized-read",
}


def current_code(code: str) -> str:
    """A code as it is spelled today: the spelling before is accepted wherever a user names one.

    >>> current_code("uninitialised-read")
    'uninitialized-read'
    """
    return _RENAMED.get(code, code)


@dataclass(frozen=True, slots=True)
class Label:
    """A span and what is to be said about it."""

    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of the characters of a span."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Help:
    """What the user can do; one with edits is certain, and `--fix` applies it."""

    text: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Diagnostic:
    """One finding: its first label is the primary one, the others give the context."""

    level: Level
    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    helps: tuple[Help, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict, compare=False)
    """More than the text says, for programs: numbers, strings, lists and objects, as JSON has them."""

    def __str__(self) -> str:
        from ptxlab.report.render import render

        return render([self]).rstrip("\n")

    def __repr__(self) -> str:
        location = f" at {self.file}:{self.line}:{self.column}" if self.labels else ""
        return f"<{self.level}[{self.code}]{location}: {self.message}>"

    def _repr_html_(self) -> str:
        from ptxlab.report.notebook import findings_html

        return findings_html([self])

    @property
    def file(self) -> str | None:
        """Name of the source of the primary label."""
        return self.labels[0].span.source.name if self.labels else None

    @property
    def line(self) -> int | None:
        """Line where the primary label starts, counted from 1."""
        return self._start[0] if self.labels else None

    @property
    def column(self) -> int | None:
        """Column where the primary label starts, counted from 1."""
        return self._start[1] if self.labels else None

    @property
    def lines(self) -> list[str]:
        """The message, the notes and the helps, without the source."""
        helps = [f"help: {help.text}" for help in self.helps]
        return [self.message, *(f"note: {note}" for note in self.notes), *helps]

    @property
    def _start(self) -> tuple[int, int]:
        span = self.labels[0].span
        return span.source.position(span.start)


def error(
    code: str,
    message: str,
    span: Span | None,
    label: str = "",
    *,
    others: Iterable[Label] = (),
    notes: Iterable[str] = (),
    helps: Iterable[str | Help] = (),
) -> Diagnostic:
    """An error at `span`: something ptxas or the hardware refuses."""
    return _diagnostic("error", code, message, span, label, others, notes, helps)


def warning(
    code: str,
    message: str,
    span: Span | None,
    label: str = "",
    *,
    others: Iterable[Label] = (),
    notes: Iterable[str] = (),
    helps: Iterable[str | Help] = (),
) -> Diagnostic:
    """A warning at `span`: something legal that is very likely not meant."""
    return _diagnostic("warning", code, message, span, label, others, notes, helps)


def _diagnostic(
    level: Level,
    code: str,
    message: str,
    span: Span | None,
    label: str,
    others: Iterable[Label],
    notes: Iterable[str],
    helps: Iterable[str | Help],
) -> Diagnostic:
    primary = () if span is None else (Label(span, label),)
    as_helps = tuple(Help(help) if isinstance(help, str) else help for help in helps)
    return Diagnostic(level, code, message, (*primary, *others), tuple(notes), as_helps)
