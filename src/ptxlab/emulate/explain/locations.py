"""Where an instruction comes from: the line of CUDA C++ or Python that `.loc` gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ptxlab import ir
from ptxlab.ir.origin import Origins, at_origin
from ptxlab.report import Diagnostic


def add_sources(module: ir.Module, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, each with the line that its instruction was compiled from, or with notes that name it."""
    if not found:
        return []
    origins = Origins(module)
    return at_origin(module, [replace(one, notes=(*one.notes, *_notes(one, origins))) for one in found])


def _notes(diagnostic: Diagnostic, origins: Origins) -> Iterator[str]:
    """What its lines were compiled from whose source is not known; where these differ, with their numbers."""
    spans = [label.span for label in diagnostic.labels if origins.span(label.span) is None]
    texts = {span: text for span in spans if (text := origins.compiled_from(span)) is not None}
    if len(set(texts.values())) <= 1:
        yield from set(texts.values())
        return
    for span, text in texts.items():
        yield f"line {span.source.position(span.start)[0]} is {text}"
