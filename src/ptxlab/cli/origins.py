"""Counters of a kernel that was compiled from CUDA C++, by the lines of its source instead of those of the PTX."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ptxlab.ir.origin import Origins
from ptxlab.report import Source, Span

if TYPE_CHECKING:
    from ptxlab.ir import Module


def source_of(module: Module) -> Source | None:
    """The source that the lines of counters are in: CUDA C++ if the module was compiled from it, else the PTX."""
    return next(iter(module.origins.values()), module.source)


def by_source_line(module: Module, counters: dict[str, Any]) -> dict[str, Any]:
    """The counters with the lines of the source; several lines of PTX that come from one are added up."""
    if not module.origins or module.source is None or "lines" not in counters:
        return counters
    origins = Origins(module)
    lines: dict[int, Counter[str]] = {}
    callers: dict[int, dict[str, None]] = {}
    patterns: dict[int, tuple[int, Any]] = {}
    for ptx_line, counted in counters["lines"].items():
        line, caller = _line(module.source, origins, ptx_line)
        if line is None:
            continue
        if caller is not None:
            callers.setdefault(line, {})[caller] = None
        lines.setdefault(line, Counter()).update(counted)
        cost = counted.get("sectors", 0) + counted.get("wavefronts", 0)
        if ptx_line in counters.get("patterns", ()) and cost >= patterns.get(line, (0,))[0]:
            patterns[line] = cost, counters["patterns"][ptx_line]
    found = counters | {"lines": {line: dict(counted) for line, counted in sorted(lines.items())}}
    if callers:
        found["callers"] = {line: list(places) for line, places in sorted(callers.items())}
    if "patterns" in counters:
        found["patterns"] = {line: pattern for line, (_, pattern) in sorted(patterns.items())}
    return found


def _line(source: Source, origins: Origins, ptx_line: int) -> tuple[int | None, str | None]:
    """The line of the source that a line of PTX was compiled from, and what calls it where it is inlined."""
    start, end = source.line_bounds(ptx_line)
    text = source.text[start:end]
    ptx = Span(source, start + len(text) - len(text.lstrip()), end)
    span = origins.span(ptx)
    if span is None or span.source is not source_of(origins.module):
        return None, None
    return span.source.position(span.start)[0], origins.calling(ptx)
