"""Diagnostics as SARIF 2.1.0, the format in which code scanning services and editors exchange findings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ptxlab.report.diagnostic import Diagnostic, Help, Label
from ptxlab.report.source import Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """A log with one run, whose rules are the codes of what was found."""
    found = list(diagnostics)
    version = sys.modules["ptxlab"].__version__  # an import of the package from here would be a circle
    codes = sorted({diagnostic.code for diagnostic in found})
    rules = [{"id": code, "help": {"text": f"`ptxlab explain {code}` prints its page"}} for code in codes]
    run = {
        "tool": {"driver": {"name": "ptxlab", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    first, others = diagnostic.labels[:1], diagnostic.labels[1:]
    fixes = [_fix(help) for help in diagnostic.helps if help.edits]
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.level,
        "message": {"text": "\n".join(diagnostic.lines)},
        "locations": [_location(label) for label in first],
        **({"relatedLocations": [_location(label) for label in others]} if others else {}),
        **({"fixes": fixes} if fixes else {}),
    }


def _location(label: Label) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(label.span), "region": _region(label.span)}
    return {"physicalLocation": place, **({"message": {"text": label.text}} if label.text else {})}


def _fix(help: Help) -> dict[str, Any]:
    changes = [
        {
            "artifactLocation": _artifact(edit.span),
            "replacements": [
                {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.replacement}},
            ],
        }
        for edit in help.edits
    ]
    return {"description": {"text": help.text}, "artifactChanges": changes}


def _artifact(span: Span) -> dict[str, str]:
    path = PurePath(span.source.name)
    return {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}


def _region(span: Span) -> dict[str, int]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
