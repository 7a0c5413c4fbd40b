"""Where a program was compiled from: findings about PTX, shown first on its line of CUDA C++ or Python."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from ptxlab.ir.items import File, Function
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
        self._places = first_at(location for _, _, location in self._locations)

    def span(self, span: Span) -> Span | None:
        """The line that some PTX was compiled from, if its text is known; of inlined code, else where it is inlined."""
        location = self._location(span)
        if location is None:
            return self._declaration(span)
        lines = (self._line(one.file, one.line) for one in inlined(location, self._places))
        return next((line for line in lines if line is not None), None)

    def _declaration(self, span: Span) -> Span | None:
        """The name of a kernel in CUDA C++, where it is declared, for the header of the kernel in PTX."""
        function = next((one for one in self.module.functions if one.start is not None and _is_header(one, span)), None)
        first = (
            None
            if function is None
            else next((one for one in function.statements() if isinstance(one, Location)), None)
        )
        line = None if first is None else self._line(first.file, first.line)
        if function is None or line is None or line.source.name.endswith(".py"):
            return None
        name = re.escape(function.title.split("<")[0].split("::")[-1])
        found = [*re.finditer(rf"\b{name}(?=\s*\()", line.source.text[: line.end])]
        return Span(line.source, *found[-1].span()) if found else None

    def is_of_toolkit(self, span: Span) -> bool:
        """Whether some PTX was compiled from a header of the CUDA toolkit."""
        location = self._location(span)
        return location is not None and is_toolkit_header(self._files.get(location.file, ""))

    def _location(self, span: Span) -> Location | None:
        number = bisect_right(self._starts, span.start) - 1
        if span.source is not self.module.source or number < 0 or span.start >= self._locations[number][1]:
            return None
        return self._locations[number][2]

    def _line(self, file: int, line: int) -> Span | None:
        source = self.module.origins.get(self._files[file]) if file in self._files else None
        return None if source is None or not 1 <= line <= source.line_count else line_span(source, line)


def _is_header(function: Function, span: Span) -> bool:
    """Whether a span is in a function before its first instruction."""
    first = next((one.start for one in function.statements() if one.start is not None), function.end)
    return function.start is not None and first is not None and function.start <= span.start < first


Places = dict[tuple[int, int, int], Location]


def first_at(locations: Iterable[Location]) -> Places:
    """The first `.loc` that names each place, which says where code at that place is itself inlined."""
    found: Places = {}
    for one in locations:
        found.setdefault((one.file, one.line, one.column), one)
    return found


def inlined(location: Location, places: Places) -> Iterator[Location]:
    """A location, the one at which its code is inlined, and so on outwards."""
    seen: set[tuple[int, int, int]] = set()
    here: Location | None = location
    while here is not None and (here.file, here.line, here.column) not in seen:
        yield here
        seen.add((here.file, here.line, here.column))
        at = here.inlined_at
        here = None if at is None else places.get(at, Location(*at))


def at_origin(module: Module, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, each with the line that `.loc` names before its first label, where that line is known.

    Warnings about nothing but headers of the CUDA toolkit are left out: their user can change none of it.
    """
    diagnostics = list(found)
    if not diagnostics or module.source is None or not module.origins:
        return diagnostics
    origins = Origins(module)
    return [
        _moved(diagnostic, origins.span)
        if diagnostic.labels and diagnostic.labels[0].span.source is module.source
        else diagnostic
        for diagnostic in diagnostics
        if diagnostic.level == "error"
        or not diagnostic.labels
        or not all(origins.is_of_toolkit(label.span) for label in diagnostic.labels)
    ]


@cache
def is_toolkit_header(file: str) -> bool:
    """Whether a header is one of the CUDA toolkit, or of a wheel of it."""
    return any((folder / "cuda_runtime_api.h").is_file() for folder in Path(file).parents[:-1])


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
