"""What is wrong with an open text, as the protocol says it, and the edits that cure it."""

from __future__ import annotations

from typing import Any

from ptxlab.check import check, check_partly
from ptxlab.editor.document import Document
from ptxlab.report import Diagnostic, Help, PtxError, Span
from ptxlab.syntax import read

_SEVERITIES = {"error": 1, "warning": 2, "note": 3}


def findings_of(document: Document, target: str | None) -> list[Diagnostic]:
    """All that `ptxlab check` reports."""
    try:
        module, faults = read(document.text, document.source.name)
    except PtxError as wrong:
        return wrong.diagnostics
    return [*faults, *check_partly(module, target)] if faults else check(module, target)


def as_message(document: Document, found: Diagnostic) -> dict[str, Any]:
    """A finding as the editor shows it; the other places that it names are related information."""
    primary, *others = found.labels or (None,)
    where = document.range(primary.span.start, primary.span.end) if primary else document.range(0, 0)
    text = found.message if primary is None or not primary.text else f"{found.message}\n{primary.text}"
    related = [
        {"location": {"uri": document.uri, "range": _range(document, other.span)}, "message": other.text}
        for other in others
        if other is not None
    ]
    lines = [text, *(f"note: {note}" for note in found.notes), *(f"help: {help.text}" for help in found.helps)]
    return {
        "range": where,
        "severity": _SEVERITIES[found.level],
        "code": found.code,
        "source": "ptxlab",
        "message": "\n".join(lines),
        "relatedInformation": related,
    }


def fixes_of(document: Document, found: Diagnostic) -> list[dict[str, Any]]:
    """The helps of a finding that can be applied, as quick fixes."""
    return [
        {
            "title": help.text,
            "kind": "quickfix",
            "diagnostics": [as_message(document, found)],
            "isPreferred": True,
            "edit": {"changes": {document.uri: _edits(document, help)}},
        }
        for help in found.helps
        if help.edits
    ]


def _edits(document: Document, help: Help) -> list[dict[str, Any]]:
    return [{"range": _range(document, edit.span), "newText": edit.replacement} for edit in help.edits]


def _range(document: Document, span: Span) -> dict[str, Any]:
    return document.range(span.start, span.end)
