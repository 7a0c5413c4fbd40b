"""Edits carried out on text, for `--fix`."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from ptxlab.report.diagnostic import Diagnostic, Edit


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with the edits carried out; they must not overlap, and one given twice counts once."""
    parts: list[str] = []
    done = 0
    for edit in sorted(dict.fromkeys(edits), key=_range):
        if edit.span.start < done:
            raise ValueError(f"edits overlap at offset {edit.span.start}")
        parts += (text[done : edit.span.start], edit.replacement)
        done = edit.span.end
    return "".join((*parts, text[done:]))


def certain_edits(diagnostics: Iterable[Diagnostic]) -> list[Edit]:
    """Edits of the first certain help of each diagnostic, without those that would overlap an earlier one."""
    chosen: list[Edit] = []
    for diagnostic in diagnostics:
        edits = next((help.edits for help in diagnostic.helps if help.edits), ())
        if any(_collides(edit, chosen) for edit in edits):
            continue
        for edit in edits:
            insort(chosen, edit, key=_range)
    return list(dict.fromkeys(chosen))


def _collides(edit: Edit, chosen: list[Edit]) -> bool:
    """Whether `edit` touches characters of a chosen edit, which are in order; the same edit again does not collide."""
    at = bisect_left(chosen, _range(edit), key=_range)
    for other in chosen[max(at - 1, 0) : at + 1]:
        same_range = _range(edit) == _range(other)
        overlap = edit.span.start < other.span.end and other.span.start < edit.span.end
        if (same_range or overlap) and edit != other:
            return True
    return False


def _range(edit: Edit) -> tuple[int, int]:
    return edit.span.start, edit.span.end
