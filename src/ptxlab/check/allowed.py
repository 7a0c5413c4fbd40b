"""Warnings that the author allows: `// ptxlab: allow unreachable-code, kept for the debugger`.

The comment is after the statement or on a line of its own above it. It names one code and gives a reason; without
a reason, or on an error, it has no effect.
"""

import re

from ptxlab.report import Diagnostic
from ptxlab.report.diagnostic import current_code

_ALLOW = re.compile(r"ptxlab:\s*allow\s+([a-z-]+)[\s,:;]+\S")


def without_allowed(found: list[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics that no comment in their source allows."""
    return [diagnostic for diagnostic in found if diagnostic.level == "error" or not _is_allowed(diagnostic)]


def _is_allowed(diagnostic: Diagnostic) -> bool:
    if not diagnostic.labels or diagnostic.line is None:
        return False
    source = diagnostic.labels[0].span.source
    if "ptxlab:" not in source.text:
        return False
    lines = [source.line(diagnostic.line)]
    above = diagnostic.line - 1
    while above >= 1 and source.line(above).lstrip().startswith(("//", "/*", "*")):
        lines.append(source.line(above))
        above -= 1
    return any(current_code(match[1]) == diagnostic.code for line in lines for match in _ALLOW.finditer(line))
