"""A test that failed by a diagnostic, as pytest reports it: the test's own lines, then the diagnostics."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptxlab.report import Label, render
from ptxlab.report.errors import DiagnosedError, is_inner

if TYPE_CHECKING:
    import pytest


def show_diagnostics(report: pytest.TestReport, problem: BaseException, config: pytest.Config) -> None:
    """Leave out the lines of ptxlab itself, and write the diagnostics as they are, without a mark before each line."""
    assert isinstance(problem, DiagnosedError)
    found = [*problem.diagnostics, *problem.warnings]
    longrepr: Any = report.longrepr
    entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", None)
    if not found or not entries or not hasattr(entries[-1], "reprfileloc"):  # --tb=line, no, native
        return
    own = [entry for entry in entries if not _is_inner(entry)] or entries[:1]
    *before, last = own
    source = [line for line in last.lines if not line.startswith("E ")]
    place = last.reprfileloc and replace(last.reprfileloc, message=type(problem).__name__)
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    # What has no terminal is a process of xdist: its report is shown by another.
    text = render(found, color=bool(terminal) and terminal.hasmarkup)
    here = replace(last, lines=source, reprfileloc=place, style="short")
    shown = replace(here, lines=["", *text.splitlines()], reprlocals=None, reprfileloc=None, style="value")
    longrepr.reprtraceback.reprentries = [*before, here, shown]
    if longrepr.reprcrash:
        first = found[0]
        longrepr.reprcrash.message = f"{first.level}[{first.code}]: {first.message}"
        if place:
            longrepr.reprcrash.path, longrepr.reprcrash.lineno = place.path, place.lineno


def mark_of(problem: BaseException) -> str:
    """What the findings of two schedules are compared by: codes and lines, not which threads were seen."""
    assert isinstance(problem, DiagnosedError)
    return "\n".join(
        " ".join([one.code, *sorted({f"{label.span.source.name}:{_line(label)}" for label in one.labels})])
        for one in problem.diagnostics
    )


def _line(label: Label) -> int:
    return label.span.source.position(label.span.start)[0]


def _is_inner(entry: Any) -> bool:
    """Whether a line of a traceback is of ptxlab."""
    return bool(entry.reprfileloc) and is_inner(os.path.abspath(entry.reprfileloc.path))  # noqa: PTH100
