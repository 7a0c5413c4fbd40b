"""Exceptions that carry diagnostics, for callers of ptxlab in Python."""

from __future__ import annotations

from collections.abc import Iterable

from ptxlab.report.diagnostic import Diagnostic
from ptxlab.report.render import render


class _DiagnosedError(Exception):
    """An exception whose text is the full rendering of its diagnostics."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return render(self.diagnostics).rstrip("\n")


def is_failure(diagnostics: Iterable[Diagnostic], on_error: str) -> bool:
    """Whether findings raise: errors with "raise", warnings too with "strict", nothing with "collect".

    >>> from ptxlab.report import warning
    >>> is_failure([warning("data-race", "a race", None)], "raise")
    False
    """
    if on_error == "collect":
        return False
    return any(found.level == "error" or on_error == "strict" for found in diagnostics)


class PtxError(_DiagnosedError):
    """The PTX is wrong: it can't be read, or can't be assembled."""


class KernelError(_DiagnosedError):
    """The kernel misbehaved when it ran."""
