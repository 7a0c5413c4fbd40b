"""Where the host launched something: the line of the user's file."""

from __future__ import annotations

import linecache
import sys
from functools import lru_cache

from ptxlab.report import Source, Span

_NOT_OF_THE_USER = ("ptxlab", "triton", "torch")  # packages whose functions launch for others


def host_line() -> Span | None:
    """The line of the user's function that is being called; None if its text is not known."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_NOT_OF_THE_USER):
        frame = frame.f_back
    source = _source_of(frame.f_code.co_filename)
    if source is None:
        return None
    lines = source.text.splitlines(keepends=True)
    number = min(frame.f_lineno, len(lines))
    start = sum(map(len, lines[: number - 1]))
    text = lines[number - 1].rstrip("\n")
    return Span(source, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


@lru_cache(maxsize=64)
def _source_of(name: str) -> Source | None:
    lines = linecache.getlines(name)
    return Source(name, "".join(lines)) if lines else None
