"""Where machine code comes from: the line table of an object file, read without LLVM.

Object files are ELF of 64 bits, their line tables DWARF 4, as `debug` asks for them.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath


@dataclass(frozen=True)
class Location:
    """A Python line, and the function of the machine code that it became part of."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True)
class Symbol:
    """A function of an object file, at an offset of one of its sections."""

    name: str
    section: int
    offset: int
    size: int
    is_global: bool


@dataclass(frozen=True)
class Row:
    """The line that machine code from an offset on comes from; line 0 ends a stretch of it."""

    section: int
    offset: int
    file: str
    line: int


class Reader:
    """Numbers and texts, one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def number(self, form: str) -> int:
        found = int(struct.unpack_from(f"<{form}", self.data, self.at)[0])
        self.at += struct.calcsize(f"<{form}")
        return found

    def leb(self, is_signed: bool = False) -> int:
        """A number of as many bytes as it needs, seven bits in each."""
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if is_signed and byte & 0x40 else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode(errors="replace")
        self.at = end + 1
        return found


class ObjectFile:
    """The functions and the line table of an object file; there is neither where it is not ELF."""

    def __init__(self, code: bytes) -> None:
        self.symbols: list[Symbol] = []
        self.rows: list[Row] = []
        if code[:6] != b"\x7fELF\x02\x01":
            return
        start, size, count, names = struct.unpack_from("<Q10xHHH", code, 0x28)
        headers = [struct.unpack_from("<IIQQQQIIQQ", code, start + size * index) for index in range(count)]
        self._parts = [b"" if header[1] == 8 else code[header[4] : header[4] + header[5]] for header in headers]
        found = {Reader(self._parts[names], header[0]).text(): index for index, header in enumerate(headers)}
        table = found[".symtab"]
        texts = self._parts[headers[table][6]]
        self._symbols = [
            struct.unpack_from("<IBBHQQ", self._parts[table], at) for at in range(0, headers[table][5], 24)
        ]
        for name, kind, _, section, value, extent in self._symbols:
            if kind & 15 == 2:
                self.symbols.append(Symbol(Reader(texts, name).text(), section, value, extent, kind >> 4 != 0))
        if ".debug_line" in found:
            relocations = self._parts[found[".rela.debug_line"]] if ".rela.debug_line" in found else b""
            relocated = {
                offset: (self._symbols[what >> 32][3], self._symbols[what >> 32][4] + addend)
                for offset, what, addend in struct.iter_unpack("<QQq", relocations)
            }
            self.rows = _rows(self._parts[found[".debug_line"]], relocated)


def _rows(data: bytes, relocated: dict[int, tuple[int, int]]) -> list[Row]:
    """All rows of a line table; `relocated` has the sections and offsets that addresses in it mean."""
    rows: list[Row] = []
    reader = Reader(data)
    while reader.at < len(data):
        length = reader.number("I")
        end = reader.at + length
        assert reader.number("H") == 4, "the line table is DWARF 4"
        header = reader.number("I")
        program = reader.at + header
        step, _, _, base, span, first = (reader.number(form) for form in "BBBbBB")
        operands = [reader.number("B") for _ in range(first - 1)]
        files = _files(reader)
        reader.at = program
        _run(reader, end, (step, base, span, first, operands), files, relocated, rows)
    return sorted(rows, key=lambda row: (row.section, row.offset, row.line != 0))


def _files(reader: Reader) -> list[str]:
    """The files of a line table, from number 1 on."""
    folders = [""]
    while text := reader.text():
        folders.append(text)
    files = [""]
    while text := reader.text():
        folder, _, _ = reader.leb(), reader.leb(), reader.leb()
        files.append(str(PurePath(folders[folder]) / text))
    return files


def _run(
    reader: Reader,
    end: int,
    how: tuple[int, int, int, int, list[int]],
    files: list[str],
    relocated: dict[int, tuple[int, int]],
    rows: list[Row],
) -> None:
    """Run the program of a line table, which writes its rows."""
    step, base, span, first, operands = how
    section, offset, file, line = 0, 0, 1, 1
    while reader.at < end:
        code = reader.number("B")
        if code >= first:
            offset += (code - first) // span * step
            line += base + (code - first) % span
            rows.append(Row(section, offset, files[file], line))
        elif code == 0:
            size = reader.leb()
            after = reader.at + size
            kind = reader.number("B")
            if kind == 1:  # the end of a stretch
                rows.append(Row(section, offset, "", 0))
                section, offset, file, line = 0, 0, 1, 1
            elif kind == 2:  # an address
                section, offset = relocated.get(reader.at, (0, 0))
            reader.at = after
        elif code == 1:
            rows.append(Row(section, offset, files[file], line))
        elif code == 2:
            offset += reader.leb() * step
        elif code == 3:
            line += reader.leb(is_signed=True)
        elif code == 4:
            file = reader.leb()
        elif code == 8:
            offset += (255 - first) // span * step
        elif code == 9:
            offset += reader.number("H")
        else:
            for _ in range(operands[code - 1]):
                reader.leb()


def stretches(code: bytes, bases: Mapping[int, int]) -> Iterator[tuple[int, int, Location]]:
    """The machine code of an object file whose sections were loaded at `bases`: from where to where, and its line."""
    file = ObjectFile(code)
    functions = sorted((symbol.section, symbol.offset, symbol.name) for symbol in file.symbols)
    for row, following in pairwise(file.rows):
        at = bisect_right(functions, (row.section, row.offset), key=lambda function: function[:2])
        if row.line and at and row.section in bases and row.section == following.section:
            start, end = (bases[row.section] + offset for offset in (row.offset, following.offset))
            if start < end:
                yield start, end, Location(functions[at - 1][2], row.file, row.line)
