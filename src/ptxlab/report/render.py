"""Diagnostics as text: for people, for editors and scripts that read lines, for programs and for services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal, get_args

from ptxlab.report.diagnostic import Diagnostic
from ptxlab.report.full import full
from ptxlab.report.source import Span
from ptxlab.report.terminal import colored, plain, printable

Format = Literal["full", "concise", "json", "sarif", "github"]


def render(
    diagnostics: Iterable[Diagnostic],
    format: Format = "full",
    color: bool = False,
    page_of: Callable[[str], str | None] = lambda code: None,
) -> str:
    """The diagnostics as text in one of these formats; it ends in a line break unless there is nothing to say.

    `page_of` gives the page of a code, which SARIF has.
    """
    if format == "json":
        return _json(diagnostics)
    if format == "sarif":
        from ptxlab.report.sarif import sarif

        return sarif(diagnostics, page_of)
    if format == "github":
        from ptxlab.report.github import github

        return github(diagnostics)
    paint = colored if color else plain
    if format == "concise":
        return "".join(_concise(diagnostic, color) + "\n" for diagnostic in diagnostics)
    if format == "full":
        return "\n".join(full(diagnostic, paint) + "\n" for diagnostic in diagnostics)
    raise ValueError(f"format must be one of {', '.join(get_args(Format))}, not {format!r}")


def summary(diagnostics: Iterable[Diagnostic], name: str) -> str:
    """How many of each level were found.

    >>> summary([], "gemm.ptx")
    'no errors or warnings in gemm.ptx'
    """
    count: Counter[str] = Counter(diagnostic.level for diagnostic in diagnostics)
    levels = ("error", "warning", "note")
    counted = [f"{count[level]} {level}{'s' * (count[level] > 1)}" for level in levels if count[level]]
    return f"{', '.join(counted) or 'no errors or warnings'} in {printable(name)}"


def _concise(diagnostic: Diagnostic, color: bool) -> str:
    paint = colored if color else plain
    location = f"{printable(diagnostic.file)}:{diagnostic.line}:{diagnostic.column}: " if diagnostic.file else ""
    level = paint(diagnostic.level, f"{diagnostic.level}[{diagnostic.code}]")
    caller = f" (called from {diagnostic.facts['called_from']})" if "called_from" in diagnostic.facts else ""
    return f"{location}{level}: {printable(diagnostic.message + caller)}"


def _json(diagnostics: Iterable[Diagnostic]) -> str:
    import json

    return json.dumps([_as_object(diagnostic) for diagnostic in diagnostics], indent=2) + "\n"


def _as_object(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "level": diagnostic.level,
        "code": diagnostic.code,
        "message": diagnostic.message,
        **_location(diagnostic.labels[0].span if diagnostic.labels else None),
        "labels": [{"text": label.text, **_location(label.span)} for label in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "helps": [
            {
                "text": help.text,
                "edits": [{"replacement": edit.replacement, **_location(edit.span)} for edit in help.edits],
            }
            for help in diagnostic.helps
        ],
        **({"facts": diagnostic.facts} if diagnostic.facts else {}),
    }


def _location(span: Span | None) -> dict[str, str | int | None]:
    if span is None:
        return dict.fromkeys(("file", "line", "column", "end_line", "end_column"))
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    }
