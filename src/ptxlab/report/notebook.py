"""Diagnostics and other values as a notebook shows them: HTML without scripts, readable in light and dark."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ptxlab.report.full import full
from ptxlab.report.terminal import STYLES, colored, printable_lines

if TYPE_CHECKING:
    from ptxlab.report.diagnostic import Diagnostic

# Colors of a middle brightness: a page does not know whether the notebook around it is dark.
_COLORS = {"error": "#e5534b", "warning": "#c69026", "note": "#2f9bb3", "help": "#3f9f4f", "margin": "#6a86d6"}
_CODES = {STYLES[style]: color for style, color in _COLORS.items()}
_PAINTED = re.compile("\x1b\\[([0-9;]*)m([^\x1b]*)\x1b\\[0m")
_PRE = "margin:0.4em 0; line-height:1.35; white-space:pre; overflow-x:auto; font-family:monospace"
_CELL = "padding:0.1em 0.9em 0.1em 0; text-align:left; font-family:monospace; border:none"


def findings_html(found: Iterable[Diagnostic]) -> str:
    """The full rendering of diagnostics, in color."""
    return "".join(f'<pre style="{_PRE}">{_painted(full(one, colored))}</pre>' for one in found)


def text_html(text: str) -> str:
    """Text as it is, such as PTX or what a kernel printed."""
    return f'<pre style="{_PRE}">{html.escape(printable_lines(text))}</pre>'


def title_html(text: str) -> str:
    """A line above the rest; what is in backticks is code."""
    shown = re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(text))
    return f'<div style="font-weight:600; margin:0.4em 0">{shown}</div>'


def table_html(rows: Sequence[Sequence[str]], *, has_header: bool = True) -> str:
    """Rows of text; the first is the header."""
    lines = []
    for number, row in enumerate(rows):
        cell = "th" if has_header and not number else "td"
        lines.append("".join(f'<{cell} style="{_CELL}">{html.escape(text)}</{cell}>' for text in row))
    inside = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse:collapse; margin:0.4em 0">{inside}</table>'


def folded_html(title: str, inside: str) -> str:
    """Something long, which opens at a click."""
    return f'<details style="margin:0.4em 0"><summary>{html.escape(title)}</summary>{inside}</details>'


def _painted(text: str) -> str:
    """Text with the colors of a terminal as HTML; its own characters were made printable before."""
    parts, end = [], 0
    for found in _PAINTED.finditer(text):
        color = f"color:{_CODES[found[1]]}; " if found[1] in _CODES else ""
        parts += [html.escape(text[end : found.start()])]
        parts += [f'<span style="{color}font-weight:600">{html.escape(found[2])}</span>']
        end = found.end()
    return "".join([*parts, html.escape(text[end:])])
