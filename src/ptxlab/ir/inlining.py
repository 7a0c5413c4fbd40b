"""The calls by which inlined code came to its place, as `.loc … inlined_at` says: up to the kernel, with their names.
Of kernels in Python, `Module.calls` says it, and of code compiled with `-G` its DWARF.

A `.loc` of inlined code names the place of the call alone, and another `.loc` with that place, above it, says where
that is inlined in turn. Compilers write the calls of an instruction once, the outermost first, right before its own
`.loc`; when they come back to code of a call, as in a loop that is unrolled, they write the last one only. A function
that is called twice then has two calls at the same place: the one is meant whose calls the code around it shares.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePath

from ptxlab.ir import mangled
from ptxlab.ir.inlined_entries import InlinedCall, InlinedEntries
from ptxlab.ir.items import DataLine, File, Function, Section
from ptxlab.ir.module import Module
from ptxlab.ir.statements import Instruction, Label, Location

Key = tuple[int, int, int, tuple[str, int] | None]  # a place, and the name of the function that is inlined there
Chain = tuple[Key, ...]  # calls, the outermost first, and the place itself at the end

MOST_CALLS, MOST_WAYS = 64, 64  # a file that was made to have more gets no better answer
_LIBRARIES = {"cccl", "cooperative_groups", "cub", "cute", "cutlass", "libcudacxx", "thrust"}
_INCLUDED = str(Path(__file__).parents[1] / "frameworks")  # headers of ours, in place of those of libraries
_TOOLKIT = re.compile(r"/(usr/local|opt)/cuda[^/]*/|/targets/[\w-]+/include/|/site-packages/nvidia/")


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """A line that an instruction was compiled from, or that calls it, and the function it is in."""

    file: str
    line: int
    function: str

    @property
    def is_of_library(self) -> bool:
        """Whether it is in a header of the CUDA toolkit or of a library of NVIDIA's."""
        return is_toolkit_header(self.file) or not _LIBRARIES.isdisjoint(PurePath(self.file).parts)

    @property
    def place(self) -> str:
        """`kernel.cu:17`; of a header of a library, the file as an `#include` has it."""
        file = re.sub(r".*/include/", "", self.file) if self.is_of_library else self.file
        return f"{file}:{self.line}"

    @property
    def within(self) -> str:
        """` in `copy``, for a text that names the line."""
        return f" in {self.title}" if self.function else ""

    @property
    def title(self) -> str:
        """The function in a text."""
        return self.function if self.function == mangled.LAMBDA else f"`{self.function}`"


@cache
def is_toolkit_header(file: str) -> bool:
    """Whether a header is one of the CUDA toolkit, or of a wheel of it."""
    folders = Path(file).parents[:-1]
    return bool(_TOOLKIT.search(file)) or any((folder / "cuda_runtime_api.h").is_file() for folder in folders)


def own_frame(frames: Sequence[SourceFrame]) -> int:
    """The number of the innermost frame in a file of the user's; 0 if all are of libraries."""
    return next((number for number, frame in enumerate(frames) if not frame.is_of_library), 0)


class Inlining:
    """The lines that the instructions of a module were compiled from, each with those that call it."""

    def __init__(self, module: Module) -> None:
        self._files = {item.index: item.name for item in module.items if isinstance(item, File)}
        self._names = _strings(module) if self._files else {}
        self._known: dict[tuple[Chain, str], tuple[SourceFrame, ...]] = {}
        self._module = module
        self._starts: list[int] | None = None
        self._found: list[tuple[int, tuple[SourceFrame, ...], int]] = []

    def at(self, offset: int) -> tuple[SourceFrame, ...]:
        """The frames of the instruction at an offset into the PTX, the innermost first; none if it has no line."""
        if self._starts is None:
            functions = [one for one in self._module.functions if one.start is not None and one.end is not None]
            for function in sorted(functions, key=lambda one: one.start or 0) if self._files else ():
                places = [(function.start or 0, ()), *self._places(function)]
                self._found += [(start, frames, function.end or 0) for start, frames in places]
            self._starts = [start for start, _, _ in self._found]
        number = bisect_right(self._starts, offset) - 1
        return () if number < 0 or offset >= self._found[number][2] else self._found[number][1]

    def _places(self, function: Function) -> list[tuple[int, tuple[SourceFrame, ...]]]:
        """The offsets from which on instructions of a function have other frames."""
        calls = self._module.calls
        first, last = (bisect_left(calls, at or 0, key=lambda one: one[0]) for at in (function.start, function.end))
        named = calls[first:last]
        if not named and self._entries.chains(function) is not None:
            starts = [one.start or 0 for one in function.instructions()]
            return list(zip(starts, self.of_instructions(function), strict=True))
        return named or [(one.start or 0, self._frames(chain, function)) for one, chain in _chains(function)]

    def of_instructions(self, function: Function) -> Iterator[tuple[SourceFrame, ...]]:
        """The frames of each instruction of a function, in their order."""
        if self._module.calls:
            yield from (self.at(one.start or 0) for one in function.instructions())
            return
        if (around := self._entries.chains(function)) is not None:
            yield from self._with_calls(function, around)
            return
        chains = {id(location): chain for location, chain in _chains(function)} if self._files else {}
        chain: Chain = ()
        for statement in function.statements():
            if isinstance(statement, Location):
                chain = chains.get(id(statement), ())
            elif isinstance(statement, Instruction):
                yield self._frames(chain, function)

    @cached_property
    def _entries(self) -> InlinedEntries:
        return InlinedEntries(self._module)

    def _with_calls(
        self, function: Function, around: Sequence[tuple[InlinedCall, ...]]
    ) -> Iterator[tuple[SourceFrame, ...]]:
        """The frames of each instruction of a function, given the calls around it."""
        file = line = number = 0
        for statement in function.statements():
            if isinstance(statement, Location):
                file, line = statement.file, statement.line
            elif isinstance(statement, Instruction):
                calls = around[number]
                names = [function.title, *(call.function for call in calls)]
                places = [*((call.file, call.line) for call in calls), (file, line)]
                frames = [
                    SourceFrame(self._files.get(of, ""), at, name) for (of, at), name in zip(places, names, strict=True)
                ]
                yield tuple(reversed(frames)) if line and file in self._files else ()
                number += 1

    def _frames(self, chain: Chain, function: Function) -> tuple[SourceFrame, ...]:
        found = self._known.get((chain, function.name))
        if found is None:
            named = tuple(self._named(chain, function))
            found = tuple(frame for frame in named if not frame.file.startswith(_INCLUDED)) or named
            self._known[chain, function.name] = found
        return found

    def _named(self, chain: Chain, function: Function) -> Iterator[SourceFrame]:
        for file, line, _, symbol in reversed(chain):
            if file not in self._files or not line:  # line 0 means that there is none
                return
            yield SourceFrame(self._files[file], line, self._names.get(symbol, "") if symbol else function.title)


def _strings(module: Module) -> dict[tuple[str, int], str]:
    """What functions are called in C++, by the label in `.debug_str` and the offset that `.loc` names."""
    data, labels = bytearray(), {".debug_str": 0}
    for section in module.items:
        if isinstance(section, Section) and section.name == ".debug_str":
            for line in section.lines:
                if isinstance(line, Label):
                    labels[line.name] = len(data)
                elif isinstance(line, DataLine) and line.type == "b8":
                    data += bytes(value & 0xFF for value in line.values if isinstance(value, int))
    named = {
        one.function_name
        for function in module.functions
        for one in function.statements()
        if isinstance(one, Location) and one.function_name is not None
    }
    found = {}
    for label, offset in named:
        start = labels.get(label, len(data)) + offset
        found[label, offset] = mangled.function_title(data[start:].partition(b"\0")[0].decode("utf-8", "replace"))
    return found


def _chains(function: Function) -> list[tuple[Location, Chain]]:
    """Each `.loc` of a function with the calls that lead to it."""
    locations: list[tuple[Location, bool]] = []  # and whether no instruction is between it and the one before
    follows = False
    for statement in function.statements():
        if isinstance(statement, Location):
            locations.append((statement, follows))
            follows = True
        elif isinstance(statement, Instruction):
            follows = False
    first = _resolve(locations, None)
    certain: list[Chain] = [()] * len(locations)  # after each, the next that has one way only
    for number in range(len(locations) - 1, 0, -1):
        chain, is_certain = first[number]
        certain[number - 1] = chain if is_certain else certain[number]
    found = first if all(is_certain for _, is_certain in first) else _resolve(locations, certain)
    return [(location, chain) for (location, _), (chain, _) in zip(locations, found, strict=True)]


def _resolve(locations: Sequence[tuple[Location, bool]], after: Sequence[Chain] | None) -> list[tuple[Chain, bool]]:
    """For each `.loc` its chain, and whether there is no other that it could be; without `after` the latest one."""
    ways: dict[tuple[int, int, int], dict[Chain, bool]] = {}  # at each place; the latest is the last
    chosen: dict[Hashable, Chain] = {}  # between the same code, which unrolled loops have again and again
    found: list[tuple[Chain, bool]] = []
    for number, (location, follows) in enumerate(locations):
        key = (location.file, location.line, location.column, location.function_name)
        parent: Chain = ()
        is_certain = True
        if location.inlined_at is not None:
            before = found[-1][0] if found else ()
            callers = ways.get(location.inlined_at, {(): True})
            if follows and before and before[-1][:3] == location.inlined_at:
                parent, is_certain = found[-1]
            elif len(callers) == 1 or after is None:
                parent = next(reversed(callers))
                is_certain = len(callers) == 1 and callers[parent]
            else:
                around = (location.inlined_at, len(callers), before, after[number])
                known = chosen.get(around)
                parent = _nearest(callers, before, after[number]) if known is None else known
                chosen[around] = parent
                is_certain = False
            if key in parent or len(parent) > MOST_CALLS:
                parent = ()
        chain = (*parent, key)
        at = ways.setdefault(key[:3], {})
        at.pop(chain, None)
        at[chain] = is_certain
        found.append((chain, is_certain))
    return found


def _nearest(ways: Iterable[Chain], before: Chain, after: Chain) -> Chain:
    """The way that fits the code around best; of several the latest."""
    return max(list(ways)[: -MOST_WAYS - 1 : -1], key=lambda way: _closeness(way, before, after))


def _closeness(way: Chain, before: Chain, after: Chain) -> tuple[int, bool, bool]:
    """How well some calls fit the code around: how many are shared, whether the lines ascend; what is before first."""
    return max(_shared(way, before, True), _shared(way, after, False))


def _shared(way: Chain, other: Chain, is_before: bool) -> tuple[int, bool, bool]:
    count = next((n for n, pair in enumerate(zip(way, other[:-1], strict=False)) if pair[0] != pair[1]), None)
    if count is None:
        count = min(len(way), max(len(other) - 1, 0))
    if count >= min(len(way), len(other)):
        return 2 * count, True, is_before
    here, there = way[count], other[count]
    ascends = there[1] <= here[1] if is_before else here[1] <= there[1]
    return 2 * count + (here == there), ascends, is_before
