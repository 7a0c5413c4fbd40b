"""Diagnostics as workflow commands of GitHub Actions, which shows them beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from ptxlab.report.diagnostic import Diagnostic

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github(diagnostics: Iterable[Diagnostic]) -> str:
    """One command, on one line, for each."""
    return "".join(f"{_command(diagnostic)}\n" for diagnostic in diagnostics)


def _command(diagnostic: Diagnostic) -> str:
    properties: dict[str, str | int] = {}
    if diagnostic.labels:
        span = diagnostic.labels[0].span
        line, column = span.source.position(span.start)
        end_line, end_column = span.source.position(span.end)
        properties = {"file": span.source.name, "line": line, "endLine": end_line}
        if line == end_line:  # GitHub takes columns of one line only
            properties |= {"col": column, "endColumn": end_column}
    properties["title"] = diagnostic.code
    given = ",".join(f"{name}={_escape(str(value), ':,')}" for name, value in properties.items())
    text = "\n".join(diagnostic.lines)
    return f"::{_COMMANDS[diagnostic.level]} {given}::{_escape(text)}"


def _escape(text: str, more: str = "") -> str:
    """The text with what would end a command or one of its properties as `%` and two digits."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
