"""Diagnostics as SARIF 2.1.0, the format in which code scanning services and editors exchange findings."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ptxlab.report.diagnostic import Diagnostic, Help, Label
from ptxlab.report.source import Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


PageOf = Callable[[str], str | None]


def sarif(diagnostics: Iterable[Diagnostic], page_of: PageOf) -> str:
    """A log with one run, whose rules are the codes of what was found, each with its page."""
    found = list(diagnostics)
    version = sys.modules["ptxlab"].__version__  # an import of the package from here would be a circle
    codes = sorted({diagnostic.code for diagnostic in found})
    site = _site() if codes else None
    rules = [_rule(code, page_of(code), site) for code in codes]
    driver: dict[str, Any] = {"name": "ptxlab", "version": version, "semanticVersion": version, "rules": rules}
    if site is not None:
        driver["informationUri"] = site
    marks: Counter[tuple[str, ...]] = Counter()
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, codes.index(diagnostic.code), marks) for diagnostic in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str, page: str | None, site: str | None) -> dict[str, object]:
    """What a service shows beside a finding: the page of its code."""
    if page is None:
        return {"id": code}
    paragraph = " ".join(page.partition("\n\n")[0].split())
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in code.split("-")),
        "shortDescription": {"text": f"{paragraph.partition('. ')[0].removesuffix('.')}."},
        "fullDescription": {"text": paragraph},
        "help": {"text": page, "markdown": page},
        **({"helpUri": f"{site}/diagnostics/{code}.html"} if site is not None else {}),
    }


def _site() -> str | None:
    """Where the documentation is published, as the package says; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("ptxlab").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    return next((url.split(", ")[1].rstrip("/") for url in urls if url.startswith("Documentation, ")), None)


def _result(diagnostic: Diagnostic, rule: int, marks: Counter[tuple[str, ...]]) -> dict[str, object]:
    first, others = diagnostic.labels[:1], diagnostic.labels[1:]
    fixes = [_fix(help) for help in diagnostic.helps if help.edits]
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.level,
        "message": {"text": "\n".join(diagnostic.lines)},
        "locations": [_location(label) for label in first],
        "partialFingerprints": {"ptxlab/v1": _fingerprint(diagnostic, marks)},
        **({"relatedLocations": [_location(label) for label in others]} if others else {}),
        **({"fixes": fixes} if fixes else {}),
    }


def _fingerprint(diagnostic: Diagnostic, marks: Counter[tuple[str, ...]]) -> str:
    """What a service knows a finding by after lines have moved: its code and its line's text, and which of several."""
    line = "" if diagnostic.line is None else diagnostic.labels[0].span.source.line(diagnostic.line)
    mark = (diagnostic.file or "", diagnostic.code, " ".join(line.split()))
    marks[mark] += 1
    return sha256("\0".join((*mark, str(marks[mark]))).encode()).hexdigest()[:32]


def _location(label: Label) -> dict[str, object]:
    place = {"artifactLocation": _artifact(label.span), "region": _region(label.span)}
    return {"physicalLocation": place, **({"message": {"text": label.text}} if label.text else {})}


def _fix(help: Help) -> dict[str, object]:
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
