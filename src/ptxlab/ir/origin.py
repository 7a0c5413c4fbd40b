"""Where a program was compiled from: findings about PTX, shown first on the line of CUDA C++ or Python behind it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace

from ptxlab.ir.items import File
from ptxlab.ir.module import Module
from ptxlab.ir.statements import Location
from ptxlab.report import Diagnostic, Label, Source, Span

COMPILED_FROM = "compiled from"  # how a note begins that names the line, for what has no label there
Reader = Callable[[str], Source | None]


def at_origin(module: Module, found: Iterable[Diagnostic], read: Reader | None = None) -> list[Diagnostic]:
    """The diagnostics, each with the line that `.loc` names before its first label, where that line is known.

    `read` gives the text of a file by its name; without it, texts are those that the module was compiled from.
    """
    diagnostics = list(found)
    read = read or (module.origins.get if module.origins else None)
    if not diagnostics or module.source is None or read is None:
        return diagnostics
    files = {item.index: item.name for item in module.items if isinstance(item, File)}
    if not files:
        return diagnostics
    places = _places(module)
    starts = [start for start, _, _ in places]

    def origin(span: Span) -> Span | None:
        number = bisect_right(starts, span.start) - 1
        if span.source is not module.source or number < 0 or span.start >= places[number][1]:
            return None
        location = places[number][2]
        source = read(files[location.file]) if location.file in files else None
        if source is None or not 1 <= location.line <= source.line_count:
            return None
        return line_span(source, location.line)

    return [_moved(diagnostic, origin) for diagnostic in diagnostics]


def line_span(source: Source, line: int) -> Span:
    """A line without the white space around it."""
    start, end = source.line_bounds(line)
    text = source.text[start:end]
    return Span(source, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def _places(module: Module) -> list[tuple[int, int, Location]]:
    """From where to where in the PTX each `.loc` holds: to the next one, or to the end of its function."""
    found = []
    for function in module.functions:
        locations = [one for one in function.statements() if isinstance(one, Location) and one.start is not None]
        for number, location in enumerate(locations):
            end = locations[number + 1].start if number + 1 < len(locations) else function.end
            if location.start is not None and end is not None:
                found.append((location.start, end, location))
    return sorted(found, key=lambda place: place[0])


def _moved(diagnostic: Diagnostic, origin: Callable[[Span], Span | None]) -> Diagnostic:
    labels: list[Label] = []
    beside: list[Label] = []
    for label in diagnostic.labels:
        span = origin(label.span)
        if span is None or span in [other.span for other in labels]:
            beside.append(label)
        else:
            labels.append(Label(span, label.text))
            beside.append(Label(label.span))
    if not labels:
        return diagnostic
    notes = tuple(note for note in diagnostic.notes if not note.startswith(COMPILED_FROM))
    return replace(diagnostic, labels=(*labels, *beside), notes=notes)
