"""What is wrong with an open text, as the protocol says it, and the edits that cure it."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from urllib.parse import urlparse
from urllib.request import url2pathname

from lsprotocol import types

from ptxlab.check import check, check_partly
from ptxlab.editor.document import Document
from ptxlab.project import Project, ProjectError
from ptxlab.report import Diagnostic, Help, PtxError, Span
from ptxlab.syntax import read

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


class NotNeededError(Exception):
    """The text has changed while it was checked."""


def findings_of(document: Document, target: str | None, is_old: Event) -> list[Diagnostic]:
    """All that `ptxlab check` reports; raises `NotNeededError` once `is_old` is set."""

    def progress(_: int) -> None:
        if is_old.is_set():
            raise NotNeededError

    try:
        module, faults = read(document.text, document.source.name, progress)
    except PtxError as wrong:
        return wrong.diagnostics
    found = [*faults, *check_partly(module, target)] if faults else check(module, target, progress)
    return _wanted(found, document.uri)


def _wanted(found: list[Diagnostic], uri: str) -> list[Diagnostic]:
    """What the project of a file leaves; all of it where its table is wrong, which `ptxlab check` reports."""
    address = urlparse(uri)
    if address.scheme != "file":  # it was not saved yet
        return found
    path = Path(url2pathname(address.path))
    try:
        project = Project.of(path)
    except ProjectError:
        return found
    return [one for one in found if project.wants(one, path)]


def as_message(document: Document, found: Diagnostic) -> types.Diagnostic:
    """A finding as the editor shows it; the other places that it names are related information."""
    primary, *others = found.labels or (None,)
    text = found.message if primary is None or not primary.text else f"{found.message}\n{primary.text}"
    lines = [text, *(f"note: {note}" for note in found.notes), *(f"help: {help.text}" for help in found.helps)]
    return types.Diagnostic(
        range=_range(document, primary.span) if primary else document.range(0, 0),
        severity=_SEVERITIES[found.level],
        code=found.code,
        source="ptxlab",
        message="\n".join(lines),
        related_information=[
            types.DiagnosticRelatedInformation(types.Location(document.uri, _range(document, other.span)), other.text)
            for other in others
            if other is not None
        ],
    )


def fixes_of(document: Document, found: Diagnostic) -> list[types.CodeAction]:
    """The helps of a finding that can be applied, as quick fixes."""
    return [
        types.CodeAction(
            title=help.text,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[as_message(document, found)],
            is_preferred=True,
            edit=types.WorkspaceEdit(changes={document.uri: _edits(document, help)}),
        )
        for help in found.helps
        if help.edits
    ]


def _edits(document: Document, help: Help) -> list[types.TextEdit]:
    return [types.TextEdit(_range(document, edit.span), edit.replacement) for edit in help.edits]


def _range(document: Document, span: Span) -> types.Range:
    return document.range(span.start, span.end)
