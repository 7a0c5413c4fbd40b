"""Where a program was compiled from: findings about PTX, shown first on its line of CUDA C++ or Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab.ir.items import Function
from ptxlab.ir.module import Module
from ptxlab.report import Diagnostic, Label, Source, Span

if TYPE_CHECKING:
    from ptxlab.ir.inlining import SourceFrame


class Origins:
    """The lines that the instructions of a module were compiled from, as `.loc` names them."""

    def __init__(self, module: Module) -> None:
        from ptxlab.ir.inlining import Inlining  # few programs name the lines that they were compiled from

        self.module = module
        self._inlining = Inlining(module)

    def frames(self, span: Span) -> tuple[SourceFrame, ...]:
        """The lines that some PTX was compiled from: of inlined code first, then of what calls it."""
        return self._inlining.at(span.start) if span.source is self.module.source else ()

    def span(self, span: Span) -> Span | None:
        """The line that some PTX was compiled from, if its text is known: the user's own that is innermost."""
        frames = self.frames(span)
        if not frames:
            return self._declaration(span) if span.source is self.module.source else None
        number = self._own(frames)
        return None if number is None else self._line(frames[number])

    def calls(self, span: Span) -> str | None:
        """How the line of some PTX was called, and what of a library it calls, if either is so."""
        frames = self.frames(span)
        number = self._own(frames)
        if number is None:
            return None
        own, inner, callers = frames[number], frames[:number], frames[number + 1 :]
        parts = [f"is in {own.title}", *(f"called from {self._place(one, own)}{one.within}" for one in callers)]
        called = [f"calls {inner[-1].title} ({inner[0].place})"] if inner else []
        if not callers:
            return f"line {own.line} {called[0]}" if called else None
        return f"line {own.line} {', '.join(parts)}{', and ' if called else ''}{''.join(called)}"

    def is_shown_whole(self, span: Span) -> bool:
        """Whether the line to show for some PTX is its own, not one that calls code of a library."""
        return self._own(self.frames(span)) in (None, 0)

    def caller(self, *spans: Span) -> str:
        """` (called from line 12)`, where lines of PTX are of one line in a function that is inlined."""
        place = self.calling(*spans)
        return f" (called from {place})" if place else ""

    def calling(self, *spans: Span) -> str | None:
        """`line 12`, which calls the inlined function that the line of some PTX is in."""
        found = [(frames, number) for frames in map(self.frames, spans) if (number := self._own(frames)) is not None]
        calls = [(frames[number + 1], frames[number]) for frames, number in found if number + 1 < len(frames)]
        return ", ".join(dict.fromkeys(self._place(*call) for call in calls)) or None

    def compiled_from(self, span: Span) -> str | None:
        """`compiled from kernel.cu:17`; of inlined code `compiled from a.h:5 in `copy`, called from b.cu:17 in `k``"""
        frames = self.frames(span)
        if len(frames) == 1:
            return f"compiled from {frames[0].place}"
        return f"compiled from {', called from '.join(one.place + one.within for one in frames)}" if frames else None

    def _own(self, frames: Sequence[SourceFrame]) -> int | None:
        """The number of the frame to show: the innermost of the user's own whose text is known."""
        known = [number for number, frame in enumerate(frames) if self._line(frame) is not None]
        return next((number for number in known if not frames[number].is_of_library), known[0] if known else None)

    def _place(self, frame: SourceFrame, beside: SourceFrame) -> str:
        """`line 12`, or with its file where that is another."""
        if frame.file == beside.file:
            return f"line {frame.line}"
        source = self.module.origins.get(frame.file)
        return frame.place if source is None else f"{source.name}:{frame.line}"

    def _declaration(self, span: Span) -> Span | None:
        """The name of a kernel in CUDA C++, where it is declared, for the header of the kernel in PTX."""
        function = next((one for one in self.module.functions if one.start is not None and _is_header(one, span)), None)
        if function is None:
            return None
        first = next((frames[-1] for frames in self._inlining.of_instructions(function) if frames), None)
        line = None if first is None else self._line(first)
        if line is None or line.source.name.endswith(".py"):
            return None
        name = re.escape(function.title.split("<")[0].split("::")[-1])
        found = [*re.finditer(rf"\b{name}(?=\s*\()", line.source.text[: line.end])]
        return Span(line.source, *found[-1].span()) if found else None

    def is_of_toolkit(self, span: Span) -> bool:
        """Whether some PTX was compiled from a header of the CUDA toolkit."""
        from ptxlab.ir.inlining import is_toolkit_header

        return any(is_toolkit_header(frame.file) for frame in self.frames(span)[:1])

    def _line(self, frame: SourceFrame) -> Span | None:
        source = self.module.origins.get(frame.file)
        return None if source is None or not 1 <= frame.line <= source.line_count else line_span(source, frame.line)


def _is_header(function: Function, span: Span) -> bool:
    """Whether a span is in a function before its first instruction."""
    first = next((one.start for one in function.statements() if one.start is not None), function.end)
    return function.start is not None and first is not None and function.start <= span.start < first


def at_origin(module: Module, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, each with the line that `.loc` names before its first label, where that line is known.

    Warnings about nothing but headers of the CUDA toolkit are left out: their user can change none of it.
    """
    diagnostics = list(found)
    if not diagnostics or module.source is None or not module.origins:
        return diagnostics
    origins = Origins(module)
    return [
        _moved(diagnostic, origins)
        if diagnostic.labels and diagnostic.labels[0].span.source is module.source
        else diagnostic
        for diagnostic in diagnostics
        if diagnostic.level == "error"
        or not diagnostic.labels
        or not all(origins.is_of_toolkit(label.span) for label in diagnostic.labels)
    ]


def line_span(source: Source, line: int) -> Span:
    """A line without the white space around it."""
    start, end = source.line_bounds(line)
    text = source.text[start:end]
    return Span(source, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def _moved(diagnostic: Diagnostic, origins: Origins) -> Diagnostic:
    labels: list[Label] = []
    beside: list[Label] = []
    calls: list[str] = []
    for label in diagnostic.labels:
        span = origins.span(label.span)
        if span is None or span in [other.span for other in labels]:
            beside.append(label)
        else:
            labels.append(Label(span, label.text))
            beside.append(Label(label.span))
        calls += filter(None, [origins.calls(label.span)])
    if not labels:
        return diagnostic
    place = origins.calling(diagnostic.labels[0].span) if origins.span(diagnostic.labels[0].span) else None
    facts = {**diagnostic.facts, "called_from": place} if place else diagnostic.facts
    notes = (*diagnostic.notes, *dict.fromkeys(calls))
    return replace(diagnostic, labels=(*labels, *beside), notes=notes, facts=facts)
