"""Exceptions that carry diagnostics, for callers of ptxlab in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ptxlab.report.diagnostic import Diagnostic
from ptxlab.report.render import render

_INNER = str(Path(__file__).parents[1]) + os.sep


class DiagnosedError(Exception):
    """An exception whose text is the full rendering of its diagnostics."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        self.warnings: list[Diagnostic] = []
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return render([*self.diagnostics, *self.warnings]).rstrip("\n")

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the user's own lines, then the diagnostics in color."""
        import traceback

        own = [frame for frame in traceback.extract_tb(self.__traceback__) if not is_inner(frame.filename)]
        lines = "".join(traceback.format_list(own)).rstrip("\n").split("\n")
        shown = render([*self.diagnostics, *self.warnings], color=True).rstrip("\n")
        return [*filter(None, lines), "", *shown.split("\n")]


def is_inner(file: str) -> bool:
    """Whether a line is of ptxlab or of IPython, which runs the cell."""
    return file.startswith(_INNER) or f"{os.sep}IPython{os.sep}" in file


def is_failure(diagnostics: Iterable[Diagnostic], on_error: str) -> bool:
    """Whether findings raise: errors with "raise", warnings too with "strict", nothing with "collect".

    >>> from ptxlab.report import warning
    >>> is_failure([warning("data-race", "a race", None)], "raise")
    False
    """
    if on_error == "collect":
        return False
    return any(found.level == "error" or on_error == "strict" for found in diagnostics)


class PtxError(DiagnosedError):
    """The PTX is wrong: it can't be read, or can't be assembled."""


class KernelError(DiagnosedError):
    """The kernel misbehaved when it ran; `warnings` are what `ptxlab.check` says of its module, which may be why."""
