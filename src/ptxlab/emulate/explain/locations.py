"""Where an instruction comes from: the line of CUDA C++ or Python that `.loc` gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ptxlab import ir
from ptxlab.ir.origin import COMPILED_FROM, at_origin
from ptxlab.report import Diagnostic


def add_sources(module: ir.Module, functions: Iterable[ir.Function], found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, each with the line that its instruction was compiled from, or with a note that names it."""
    if not found:
        return []
    names = {item.index: item.name for item in module.items if isinstance(item, ir.File)}
    notes = _notes(functions, names) if names else {}
    noted = [
        replace(diagnostic, notes=(*diagnostic.notes, note))
        if diagnostic.labels and (note := notes.get(diagnostic.labels[0].span.start))
        else diagnostic
        for diagnostic in found
    ]
    return at_origin(module, noted)


def _notes(functions: Iterable[ir.Function], names: dict[int, str]) -> dict[int, str]:
    """For each instruction, by its position in the PTX: the last `.loc` before it."""
    notes: dict[int, str] = {}
    for function in functions:
        note = ""
        for statement in function.statements():
            if isinstance(statement, ir.Location):
                note = _note(statement, names)
            elif isinstance(statement, ir.Instruction) and statement.start is not None and note:
                notes[statement.start] = note
    return notes


def _note(location: ir.Location, names: dict[int, str]) -> str:
    """`compiled from kernel.cu:17`; line 0 means that there is none."""
    if location.file not in names or not location.line:
        return ""
    note = f"{COMPILED_FROM} {names[location.file]}:{location.line}"
    if location.inlined_at is not None and location.inlined_at[0] in names:
        file, line, _ = location.inlined_at
        note += f", inlined at {names[file]}:{line}"
    return note
