"""Lines of source and the instructions of a recorded launch that belong to them: of the PTX, and by `.loc`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxlab import ir
from ptxlab.ir.origin import first_at, inlined
from ptxlab.trace.program import Program


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file; the file of the PTX itself is ""."""

    file: str
    line: int
    function: str = ""


class Lines:
    """Where each instruction of a program is written, and was compiled from."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.files = {item.index: item.name for item in program.module.items if isinstance(item, ir.File)}
        self.ptx = [
            Place("", program.line(number), function.name) for number, (function, _) in enumerate(program.instructions)
        ]
        self.sources: list[tuple[Place, ...]] = []
        for function in program.functions:
            self.sources += self._sources(function)
        self.has_sources = any(self.sources)

    def _sources(self, function: ir.Function) -> Iterator[tuple[Place, ...]]:
        """For each instruction of a function, the lines of `.loc`: of inlined code first, then where it is inlined."""
        outer = first_at(one for one in function.statements() if isinstance(one, ir.Location))
        found: tuple[Place, ...] = ()
        for statement in function.statements():
            if isinstance(statement, ir.Location):
                found = tuple(self._frames(function, inlined(statement, outer)))
            elif isinstance(statement, ir.Instruction):
                yield found

    def _frames(self, function: ir.Function, locations: Iterable[ir.Location]) -> Iterator[Place]:
        for here in locations:
            if here.file not in self.files or not here.line:
                return
            named = here.function_name if here.inlined_at is not None else None
            yield Place(self.files[here.file], here.line, named[0] if named else function.name)

    def places(self, instruction: int, *, in_ptx: bool = False) -> tuple[Place, ...]:
        """The lines of an instruction: of its source, where `.loc` names one, or of the PTX."""
        return self.sources[instruction] if self.sources[instruction] and not in_ptx else (self.ptx[instruction],)

    def instructions_at(self, file: str, line: int) -> list[int]:
        """The instructions that a line became: in the PTX, if `file` is "", or of a file that `.loc` names."""
        if not file:
            return [number for number, place in enumerate(self.ptx) if place.line == line]
        names = {name for name in self.files.values() if is_same(name, file)}
        return [
            number
            for number, places in enumerate(self.sources)
            if places and places[0].line == line and places[0].file in names
        ]

    def next_line(self, file: str, line: int) -> int | None:
        """The first line with instructions, there or below."""
        if not file:
            lines = [place.line for place in self.ptx]
        else:
            lines = [places[0].line for places in self.sources if places and is_same(places[0].file, file)]
        return min((one for one in lines if one >= line), default=None)


def is_same(name: str, file: str) -> bool:
    """Whether a name in `.file` means a file: the same path, or the same end of it where the name is not absolute."""
    named, given = Path(name), Path(file)
    if named.is_absolute() and given.is_absolute():
        return named == given or (given.exists() and named.exists() and given.samefile(named))
    count = min(len(named.parts), len(given.parts))
    return named.parts[-count:] == given.parts[-count:]
