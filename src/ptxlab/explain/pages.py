"""The page of each code that a diagnostic can have, as Markdown; each is written beside what reports it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING

from ptxlab.report.diagnostic import current_code

if TYPE_CHECKING:
    from ptxlab.toolchain import Advisory


def pages() -> dict[str, str]:
    """Every page, by its code."""
    found: dict[str, str] = {}
    for source in _sources():
        found = source | found
    return found


def page_of(code: str) -> str | None:
    """The page of a code; None where no diagnostic has it. Only what is needed to find it is loaded."""
    from ptxlab.emulate.explain.pages import pages as of_emulator

    code = current_code(code)
    if found := of_emulator().get(code):  # among them `trap`, the only code that is an instruction as well
        return found
    from ptxlab.isa.table import heads

    if code.partition(".")[0] in heads():
        return None
    from ptxlab.check.rules import RULES, rule

    if code.replace("-", "_") in RULES:
        return cleandoc(rule(code).__doc__ or "")
    return next((source[code] for source in _sources() if code in source), None)


def summary_of(page: str) -> str:
    """The first sentence of a page, which says what is wrong.

    >>> summary_of("A `{` has no `}`. Close it.\\n\\nMore.")
    'A `{` has no `}`.'
    """
    paragraph = " ".join(page.partition("\n\n")[0].split())
    return f"{paragraph.partition('. ')[0].removesuffix('.')}."


def _sources() -> Iterator[dict[str, str]]:
    """Pages of one package each, those first that import little."""
    from ptxlab.emulate.explain.pages import pages as of_emulator

    yield of_emulator()
    for package in ("programs", "gpu", "syntax", "litmus", "toolchain", "author", "estimate", "measure"):
        yield import_module(f"ptxlab.{package}.pages").PAGES
    from ptxlab.services import service

    yield service("schedule_pages").PAGES
    from ptxlab.toolchain import ADVISORIES

    yield {advisory.code: _advisory_page(advisory) for advisory in ADVISORIES}
    from ptxlab.check.rules import rules_by_code

    yield {code: cleandoc(rule.__doc__ or "") for code, rule in rules_by_code().items()}


def _advisory_page(advisory: Advisory) -> str:
    """What ptxas says, what that means, and what to do."""
    parts = (advisory.message, advisory.explanation, advisory.help)
    return "\n\n".join(part if part.startswith("ptxas") else part[0].upper() + part[1:] for part in parts if part)
