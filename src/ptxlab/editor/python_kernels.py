"""Findings in the kernels of a Python file: it is executed by `ptxlab check`, in a process of its own.

That happens only where the user asked for it, and to the file as it is saved: Python has no other way to know its
kernels, and a file may do anything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from threading import Event
from time import monotonic
from typing import Any

from ptxlab.editor.document import Document
from ptxlab.report import Diagnostic, Label, Span

_LIMIT, _STEP = 60.0, 0.1  # seconds
_PLACE = re.compile(r"^Error: `.*`, line (\d+): (.*)$", re.MULTILINE)


def is_saved(document: Document) -> bool:
    """Whether a text is that of its file."""
    path = document.path
    try:
        return path is not None and path.read_bytes().decode() == document.text
    except (OSError, UnicodeDecodeError):
        return False


def findings_of_python(document: Document, target: str | None, is_old: Event) -> list[Diagnostic]:
    """What `ptxlab check` reports of a file; what hinders it is a note."""
    path = document.path
    assert path is not None
    given = ["-m", "ptxlab", "check", str(path), "--format", "json", *(["--target", target] if target else [])]
    child = subprocess.Popen([sys.executable, *given], cwd=path.parent, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")  # fmt: skip
    end = monotonic() + _LIMIT
    while True:
        try:
            printed, said = child.communicate(timeout=_STEP)
            break
        except subprocess.TimeoutExpired:
            if is_old.is_set() or monotonic() > end:
                child.kill()
    if is_old.is_set():
        return []
    if child.returncode == 0 or (child.returncode == 1 and printed):
        return [_read(document, one) for one in json.loads(printed)]
    at = _PLACE.search(said)
    why = at[2] if at else f"it took longer than {_LIMIT:.0f} s" if child.returncode < 0 else said.strip()[-500:]
    labels = (Label(_line(document, int(at[1]))),) if at else ()
    return [Diagnostic("note", "python-error", f"kernels were not checked: {why}", labels)]


def _read(document: Document, one: Mapping[str, Any]) -> Diagnostic:
    """A finding; labels in other files become notes."""
    own = [label for label in one["labels"] if document.path is not None and label["file"] == str(document.path)]
    far = [f"{label['file']}:{label['line']}: {label['text']}" for label in one["labels"] if label not in own]
    labels = tuple(Label(_span(document, label), label["text"]) for label in own)
    return Diagnostic(one["level"], one["code"], one["message"], labels, (*far, *one["notes"]))


def _span(document: Document, label: Mapping[str, Any]) -> Span:
    bounds = [document.source.line_bounds(label[f"{end}line"])[0] + label[f"{end}column"] - 1 for end in ("", "end_")]
    return Span(document.source, *bounds)


def _line(document: Document, number: int) -> Span:
    return Span(document.source, *document.source.line_bounds(min(number, document.source.line_count)))
