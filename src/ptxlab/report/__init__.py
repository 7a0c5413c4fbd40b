"""Source text, spans, diagnostics as values, and their renderings."""

from ptxlab.report.diagnostic import Diagnostic, Edit, Help, Label, Level, error, warning
from ptxlab.report.edit import apply_edits, certain_edits
from ptxlab.report.errors import KernelError, PtxError, is_failure
from ptxlab.report.render import Format, render, summary
from ptxlab.report.source import Source, Span

__all__ = [
    "Diagnostic",
    "Edit",
    "Format",
    "Help",
    "KernelError",
    "Label",
    "Level",
    "PtxError",
    "Source",
    "Span",
    "apply_edits",
    "certain_edits",
    "error",
    "is_failure",
    "render",
    "summary",
    "warning",
]
