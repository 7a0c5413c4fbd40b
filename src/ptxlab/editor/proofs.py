"""Proofs that an editor asks for: an action on the line of a kernel, and what comes of it."""

from __future__ import annotations

import re

from lsprotocol import types

from ptxlab.editor.document import Document
from ptxlab.report import Diagnostic, PtxError
from ptxlab.syntax import parse

PROVE = "ptxlab.prove"
THREADS, SECONDS = 128, 60  # of a block where a kernel does not say it; of a proof
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)")


def proofs_of(document: Document, asked: types.Range) -> list[types.CodeAction]:
    """The kernels that start in the lines of a range, to be proved."""
    text = document.text
    start = text.rfind("\n", 0, document.offset(asked.start)) + 1
    end = text.find("\n", document.offset(asked.end))
    names = [found[1] for found in _ENTRY.finditer(text, start, len(text) if end < 0 else end)]
    return [_action(f"Prove that `{name}` has no data race", document.uri, name) for name in names]


def _action(title: str, *arguments: str) -> types.CodeAction:
    command = types.Command(title=title, command=PROVE, arguments=list(arguments))
    return types.CodeAction(title=title, kind=types.CodeActionKind.Empty, command=command)


def proved(document: Document, kernel: str) -> tuple[str, list[Diagnostic]]:
    """The answer in a sentence, and what is in the way. Lengths of arrays are not known: bounds are assumed."""
    from ptxlab.prove import MissingSolverError, prove

    try:
        function = parse(document.text, document.source.name)[kernel]
        required = function.directive("reqntid")
        block = (THREADS,) if required is None else tuple(int(one) for one in required.arguments)
        found = prove(function, block=block, bounds=False, timeout=SECONDS)
    except PtxError as wrong:
        return f"`{kernel}` has errors", wrong.diagnostics
    except MissingSolverError as wrong:
        return str(wrong), []
    answer = str(found).splitlines()[0]
    return f"{answer}, if {found.assumptions[0]}", found.diagnostics(document.source)
