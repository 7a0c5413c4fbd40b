"""What is wrong with an open text, as the protocol says it, and the edits that cure it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event

from lsprotocol import types

from ptxlab.check import check, check_partly
from ptxlab.editor.document import Document
from ptxlab.ir.origin import at_origin
from ptxlab.project import Project, ProjectError
from ptxlab.report import Diagnostic, Help, Label, PtxError, Span
from ptxlab.syntax import read
from ptxlab.toolchain.compilation import DEFAULT_TARGET, compile_cuda, trace

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

    project = _project(document)
    try:
        if document.language == "cuda":
            found = _findings_of_cuda(document, target, project, progress)
        else:
            module, faults = read(document.text, document.source.name, progress)
            found = [*faults, *check_partly(module, target)] if faults else check(module, target, progress)
    except PtxError as wrong:
        return wrong.diagnostics
    return _wanted(document, found)


def _findings_of_cuda(
    document: Document, target: str | None, project: Project | None, progress: Callable[[int], None]
) -> list[Diagnostic]:
    """What is wrong with CUDA C++ and the PTX in it, on its own lines."""
    assert document.path is not None
    options = ["-lineinfo", f"-I{document.path.parent}", *(project.options if project else ())]
    chosen = target or (project.target if project else None) or DEFAULT_TARGET
    try:
        compilation = compile_cuda(document.text, chosen, options, document.source.name)
    except PtxError as wrong:  # there is no compiler: the file is not to blame
        return [replace(one, level="note") for one in wrong.diagnostics]
    progress(0)
    warnings = list(compilation.diagnostics)
    if compilation.text is None:
        return warnings
    module, faults = read(compilation.text, f"{document.source.name}.ptx", progress)
    trace(module, document.source)
    if faults:
        return [*warnings, *at_origin(module, faults), *check_partly(module, target)]
    return [*warnings, *check(module, target, progress)]


def _wanted(document: Document, found: list[Diagnostic]) -> list[Diagnostic]:
    """What the project of a file leaves."""
    path, project = document.path, _project(document)
    return found if path is None or project is None else [one for one in found if project.wants(one, path)]


def _project(document: Document) -> Project | None:
    """What the project of a file sets; None where its table is wrong, which `ptxlab check` reports."""
    try:
        return None if document.path is None else Project.of(document.path)
    except ProjectError:
        return None


def as_message(document: Document, found: Diagnostic) -> types.Diagnostic:
    """A finding as the editor shows it; the other places that it names are related information.

    What is in another file, as a header of CUDA C++ is, is said by its line.
    """
    here = [label for label in found.labels if label.span.source.text == document.text]
    far = [label for label in found.labels if label not in here]
    primary, *others = here or (None,)
    text = found.message if primary is None or not primary.text else f"{found.message}\n{primary.text}"
    lines = [text, *map(_far, far), *(f"note: {note}" for note in found.notes)]
    lines += [f"help: {help.text}" for help in found.helps]
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


def _far(label: Label) -> str:
    line, _ = label.span.source.position(label.span.start)
    return f"{label.span.source.name}:{line}: {label.text}".removesuffix(": ")


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
        if help.edits and all(edit.span.source.text == document.text for edit in help.edits)
    ]


def _edits(document: Document, help: Help) -> list[types.TextEdit]:
    return [types.TextEdit(_range(document, edit.span), edit.replacement) for edit in help.edits]


def _range(document: Document, span: Span) -> types.Range:
    return document.range(span.start, span.end)
