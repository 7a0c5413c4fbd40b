"""Lines of source and the instructions of a recorded launch that belong to them: of the PTX, and by `.loc`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ptxlab import ir
from ptxlab.ir.inlining import Inlining, SourceFrame, own_frame
from ptxlab.ir.mangled import last_part
from ptxlab.trace.program import RecordedProgram


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file; the file of the PTX itself is ""."""

    file: str
    line: int
    function: str = ""


class Lines:
    """Where each instruction of a program is written, and was compiled from."""

    def __init__(self, program: RecordedProgram) -> None:
        self.program = program
        self.ptx = [
            SourceLine("", program.line(number), function.name)
            for number, (function, _) in enumerate(program.instructions)
        ]
        inlining = Inlining(program.module)
        frames: list[tuple[SourceFrame, ...]] = []
        for function in program.functions:
            before: tuple[SourceFrame, ...] = ()
            for found in inlining.of_instructions(function):
                before = found or before  # code without a line, as between the arguments of a call, is of the one above
                frames.append(before)
        self.sources = [tuple(SourceLine(one.file, one.line, one.function) for one in found) for found in frames]
        self.own = [own_frame(found) for found in frames]  # which of them is the user's
        self.has_sources = any(self.sources)
        named = {item.name for item in program.module.items if isinstance(item, ir.File)}
        self.files = named.union(place.file for places in self.sources for place in places)

    def places(self, instruction: int, *, in_ptx: bool = False) -> tuple[SourceLine, ...]:
        """The lines of an instruction: of its source, where `.loc` names one, or of the PTX."""
        return self.sources[instruction] if self.sources[instruction] and not in_ptx else (self.ptx[instruction],)

    def own_places(self, instruction: int, *, in_ptx: bool = False) -> tuple[SourceLine, ...]:
        """The lines of an instruction from the user's own outwards, without headers that it calls."""
        places = self.places(instruction, in_ptx=in_ptx)
        return places if in_ptx else places[self.own[instruction] :]

    def instructions_at(self, file: str, line: int) -> list[int]:
        """The instructions of a line of the PTX, if `file` is "", or of a source, with what is inlined there."""
        if not file:
            return [number for number, place in enumerate(self.ptx) if place.line == line]
        names = self._names(file)
        return [
            number
            for number, places in enumerate(self.sources)
            if any(place.line == line and place.file in names for place in places)
        ]

    def level(self, instruction: int, file: str, line: int) -> int:
        """How many functions are inlined inside of a line, where an instruction is of it."""
        names = self._names(file) if file else set()
        places = enumerate(self.sources[instruction])
        return next((number for number, place in places if place.line == line and place.file in names), 0)

    def instructions_in(self, function: str) -> list[int]:
        """The instructions of a function by its name in C++ or PTX, after its prologue; of inlined ones all."""
        found: list[int] = []
        start = 0
        for one in self.program.functions:
            numbers = range(start, start := start + sum(1 for _ in one.instructions()))
            if function in (one.name, one.title, last_part(one.title), last_part(one.title).partition("<")[0]):
                lines = [self.places(number)[-1] for number in numbers]
                has_prologue = bool(lines) and bool(lines[0].file)  # a loop may lead back to the first line of PTX
                found += [one for one in numbers if has_prologue and lines[one - numbers.start] != lines[0]] or numbers
        inlined = [
            number
            for number, places in enumerate(self.sources)
            if any(function in (place.function, place.function.partition("<")[0]) for place in places[:-1])
        ]
        return found or inlined

    def next_line(self, file: str, line: int) -> int | None:
        """The first line with instructions, there or below."""
        lines = [place.line for place in self.ptx]
        if file:
            names = self._names(file)
            lines = [place.line for places in self.sources for place in places if place.file in names]
        return min((one for one in lines if one >= line), default=None)

    def is_elsewhere(self, file: str, line: int) -> bool:
        """Whether a line has code in functions of the module that the recorded kernel does not reach."""
        names = self._names(file)
        return any(place.line == line and place.file in names for place in self._elsewhere)

    @cached_property
    def _elsewhere(self) -> set[SourceFrame]:
        inlining = Inlining(self.program.module)
        others = [one for one in self.program.module.functions if one not in self.program.functions]
        return {frame for one in others for frames in inlining.of_instructions(one) for frame in frames}

    def has_file(self, file: str) -> bool:
        """Whether the PTX was compiled from a file."""
        return bool(self._names(file))

    def _names(self, file: str) -> set[str]:
        return {name for name in self.files if is_same(name, file)}


def is_same(name: str, file: str) -> bool:
    """Whether a name in `.file` means a file: the same path, or the same end of it where the name is not absolute."""
    named, given = Path(name), Path(file)
    if named.is_absolute() and given.is_absolute():
        return named == given or (given.exists() and named.exists() and given.samefile(named))
    count = min(len(named.parts), len(given.parts))
    return named.parts[-count:] == given.parts[-count:]
