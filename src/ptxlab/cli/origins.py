"""Counters of a kernel that was compiled from CUDA C++, by the lines of its source instead of those of the PTX."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ptxlab.ir.origin import Origins, line_span
from ptxlab.report import Source, Span

if TYPE_CHECKING:
    from ptxlab.ir import Module


def source_of(module: Module) -> Source | None:
    """The source that the lines of counters are in: CUDA C++ if the module was compiled from it, else the PTX."""
    return next(iter(module.origins.values()), module.source)


def by_source_line(module: Module, counters: dict[str, Any]) -> dict[str, object]:
    """The counters with the lines of the source; several lines of PTX that come from one are added up."""
    if not module.origins or module.source is None or "lines" not in counters:
        return counters
    origins = Origins(module)
    lines: dict[int, Counter[str]] = {}
    spans: dict[int, list[Span]] = {}
    patterns: dict[int, tuple[int, Any]] = {}
    for ptx_line, counted in counters["lines"].items():
        span = line_span(module.source, ptx_line)
        own = origins.span(span)
        if own is None or own.source is not source_of(module):
            continue
        line = own.source.position(own.start)[0]
        spans.setdefault(line, []).append(span)
        lines.setdefault(line, Counter()).update(counted)
        cost = counted.get("sectors", 0) + counted.get("wavefronts", 0)
        if ptx_line in counters.get("patterns", ()) and cost >= patterns.get(line, (0,))[0]:
            patterns[line] = cost, counters["patterns"][ptx_line]
    found = counters | {"lines": {line: dict(counted) for line, counted in sorted(lines.items())}}
    found["callers"] = {line: text for line in found["lines"] if (text := origins.calling(*spans[line]))}
    if "patterns" in counters:
        found["patterns"] = {line: pattern for line, (_, pattern) in sorted(patterns.items())}
    return found
