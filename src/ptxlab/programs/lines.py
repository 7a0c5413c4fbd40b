"""Where the host code is: return addresses as lines of its sources, by `addr2line`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptxlab.programs.messages import Frames
from ptxlab.report import Source, Span
from ptxlab.toolchain.compiler_messages import near
from ptxlab.toolchain.process import on_path, run
from ptxlab.toolchain.source_files import read_source

_SYSTEM = re.compile(
    r"^/usr/(include|lib)|/(cuda|cu\d\d|cccl|nvshmem)[^/]*/.*include/|/crt/|\.stub\.c$|/tmpxft_|<built-in>|^\?\?"
)
_LIBRARY = re.compile(r"^/(usr/)?lib(32|64)?/")  # of the system, which may have lines too
_MOST = 2000  # addresses in one call of `addr2line`
_GENERATED = ".cudafe1.cpp"  # of nvcc, which compiles it in place of the source
_TABLES = re.compile(r"The Directory Table.*\n.*\n((?:  \d.*\n)+)\n The File Name Table.*\n.*\n((?:  \d.*\n)+)")
_ENTRY = re.compile(r"  \d+\s(?:(\d+)\s)?\(.*?\): (.*)")


@dataclass(frozen=True)
class HostLine:
    """A line of the host code, and the function that it is in."""

    file: str
    line: int
    function: str


@dataclass
class HostLines:
    """The lines of addresses that have been asked for; `folders` hold sources whose text may be shown."""

    folders: Sequence[Path]
    _known: dict[tuple[str, int], tuple[HostLine, ...]] = field(default_factory=dict)
    _sources: dict[str, Source | None] = field(default_factory=dict)
    _generated: dict[str, dict[str, str]] = field(default_factory=dict)

    def read(self, frames: Iterable[Frames]) -> None:
        """Look up all of these at once."""
        wanted: dict[str, set[int]] = {}
        for file, offset in {one for each in frames for one in each}:
            if (file, offset) not in self._known and file and not _LIBRARY.match(file):
                wanted.setdefault(file, set()).add(offset)
        tool = on_path("addr2line")
        for file, offsets in wanted.items():
            ordered = sorted(offsets)
            for start in range(0, len(ordered) if tool and Path(file).is_file() else 0, _MOST):
                self._ask(str(tool), file, ordered[start : start + _MOST])

    def _ask(self, tool: str, file: str, offsets: Sequence[int]) -> None:
        command = [tool, "-a", "-f", "-i", "-C", "-e", file, *map(hex, offsets)]
        said = run(command, Path("/"), 120).text.split("\n")
        at, current, found = 0, -1, []  # type: int, int, list[HostLine]
        while at < len(said):
            if re.fullmatch(r"0x[0-9a-f]+", said[at]):
                current, found = int(said[at], 16), []
                self._known[file, current] = ()
                at += 1
                continue
            place = (
                re.fullmatch(r"(.*):(\d+|\?)(?: \(discriminator \d+\))?", said[at + 1]) if at + 1 < len(said) else None
            )
            if place is not None and place[2] not in ("?", "0"):
                written = place[1] if not place[1].endswith(_GENERATED) else self._written(file).get(place[1], place[1])
                found.append(HostLine(written, int(place[2]), said[at]))
                self._known[file, current] = tuple(found)
            at += 2

    def _written(self, program: str) -> dict[str, str]:
        """The sources of what nvcc has generated: the first files of tables of lines.

        Those are where functions start. `addr2line` of binutils 2.40 names the file that was compiled instead, so that
        templates, which have a sequence of lines each, are all in that.
        """
        if program not in self._generated:
            tool = on_path("readelf")
            said = run([tool, "-wl", program], Path("/"), 120).text if tool else ""
            found = self._generated[program] = {}
            for tables in _TABLES.findall(said):
                folders, files = map(_ENTRY.findall, tables)
                paths = [
                    str(Path(folders[0][1], folders[int(at)][1], name))
                    for at, name in files[:2]
                    if at and int(at) < len(folders)
                ]
                if len(paths) == 2:
                    found[paths[0]] = paths[1]
        return self._generated[program]

    def of(self, frames: Frames) -> HostLine | None:
        """The innermost line of the user's own: not of a header of CUDA or the system, nor of a kernel's stub."""
        return next(iter(self._own(frames)), None)

    def caller(self, frames: Frames) -> str | None:
        """Where the user's function that has this line was called, and by another of the user's."""
        own = self._own(frames)
        return next((_spelled(line) for line in own[1:] if line.function != own[0].function), None)

    def _own(self, frames: Frames) -> list[HostLine]:
        """The user's lines, the innermost first."""
        self.read([frames])
        lines = [line for one in frames for line in self._known.get(one, ())]
        own = [line for line in lines if not _SYSTEM.search(line.file)]
        return [line for line in own if not self._is_kernel(line)] or own

    def _is_kernel(self, line: HostLine) -> bool:
        """Whether a line is the declaration of a kernel, which a launch passes through."""
        source = self.source(line.file)
        if source is None or line.function.startswith("__device_stub"):
            return line.function.startswith("__device_stub")
        name = re.split(r"[(<]", line.function)[0].rpartition("::")[2].split(" ")[-1]
        if name == "main" or line.line > source.line_count:
            return False
        start, end = source.line_bounds(line.line)
        heads = [*re.finditer(rf"__global__[^;{{}}]*?\b{re.escape(name)}\s*\(", source.text[:end])]
        return bool(heads) and not re.search(r"[;{}]", source.text[heads[-1].end() : max(start, heads[-1].end())])

    def source(self, file: str) -> Source | None:
        """The text of a file that is in the program's folders."""
        if file not in self._sources:
            self._sources[file] = read_source(file, self.folders)
        return self._sources[file]

    def span(self, frames: Frames) -> Span | None:
        """The line as a span, where its text is known."""
        line = self.of(frames)
        source = None if line is None else self.source(line.file)
        return None if line is None or source is None else code_of_line(source, line.line)

    def spell(self, frames: Frames) -> str | None:
        """`gemm.cu:12`"""
        line = self.of(frames)
        return None if line is None else _spelled(line)


def _spelled(line: HostLine) -> str:
    return f"{near(line.file)}:{line.line}"


def code_of_line(source: Source, line: int) -> Span | None:
    """What is on a line, without its margin; None where there is no such line."""
    if line > source.line_count:
        return None
    start, end = source.line_bounds(line)
    text = source.text[start:end]
    return Span(source, start + len(text) - len(text.lstrip()), start + max(len(text.rstrip()), 1))
