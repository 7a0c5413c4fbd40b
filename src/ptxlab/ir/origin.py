"""Where a program was compiled from: findings about PTX, shown first on its line of CUDA C++ or Python."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace

from ptxlab.ir.items import File
from ptxlab.ir.module import Module
from ptxlab.ir.statements import Location
from ptxlab.report import Diagnostic, Label, Source, Span

COMPILED_FROM = "compiled from"  # how a note starts that names the line, for what has no label there


class Origins:
    """The lines that the instructions of a module were compiled from, as `.loc` names them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._files = {item.index: item.name for item in module.items if isinstance(item, File)}
        self._locations = _locations(module) if module.origins and self._files else []
        self._starts = [start for start, _, _ in self._locations]

    def span(self, span: Span) -> Span | None:
        """The line that some PTX was compiled from, if its text is known; of inlined code, else where it is inlined."""
        number = bisect_right(self._starts, span.start) - 1
        if span.source is not self.module.source or number < 0 or span.start >= self._locations[number][1]:
            return None
        location = self._locations[number][2]
        found = self._line(location.file, location.line)
        if found is None and location.inlined_at is not None:
            found = self._line(*location.inlined_at[:2])
        return found

    def _line(self, file: int, line: int) -> Span | None:
        source = self.module.origins.get(self._files[file]) if file in self._files else None
        return None if source is None or not 1 <= line <= source.line_count else line_span(source, line)


def at_origin(module: Module, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, each with the line that `.loc` names before its first label, where that line is known."""
    diagnostics = list(found)
    if not diagnostics or module.source is None or not module.origins:
        return diagnostics
    origins = Origins(module)
    return [
        _moved(diagnostic, origins.span)
        if diagnostic.labels and diagnostic.labels[0].span.source is module.source
        else diagnostic
        for diagnostic in diagnostics
    ]


def line_span(source: Source, line: int) -> Span:
    """A line without the white space around it."""
    start, end = source.line_bounds(line)
    text = source.text[start:end]
    return Span(source, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def _locations(module: Module) -> list[tuple[int, int, Location]]:
    """From where to where in the PTX each `.loc` holds: to the next one, or to the end of its function."""
    found = []
    for function in module.functions:
        locations = [one for one in function.statements() if isinstance(one, Location) and one.start is not None]
        for number, location in enumerate(locations):
            end = locations[number + 1].start if number + 1 < len(locations) else function.end
            if location.start is not None and end is not None:
                found.append((location.start, end, location))
    return sorted(found, key=lambda location: location[0])


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
