"""Diagnostics as text, with the pages of their codes where a format has them."""

from __future__ import annotations

from collections.abc import Iterable

from ptxlab import report
from ptxlab.explain.pages import page_of
from ptxlab.report import Diagnostic, Format


def render(diagnostics: Iterable[Diagnostic], format: Format = "full", color: bool = False) -> str:
    """The diagnostics as text in one of these formats; it ends in a line break unless there is nothing to say."""
    return report.render(diagnostics, format, color, page_of)
