"""What an executable or a library says of itself: the libraries it needs, and the functions it calls and has."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_SYMTAB, _STRTAB, _DYNAMIC, _DYNSYM, _VERNEED = 2, 3, 6, 11, 0x6FFFFFFE
_READ = (_SYMTAB, _STRTAB, _DYNAMIC, _DYNSYM, _VERNEED)
_NEEDED = 1


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """A name in a table of symbols."""

    name: str
    is_defined: bool


@dataclass(frozen=True, slots=True)
class _Section:
    type: int
    offset: int
    size: int
    link: int


class Elf:
    """An ELF file of 64 bits; `ValueError` where the bytes are something else, or end before its tables do."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not an executable of 64-bit Linux")
        self.data = data
        try:
            ends = [one.offset + one.size for one in self._sections if one.type in _READ]
        except struct.error:
            ends = [len(data) + 1]
        if max(ends, default=0) > len(data):
            raise ValueError("an executable that was cut off")

    @cached_property
    def _sections(self) -> list[_Section]:
        (start,) = struct.unpack_from("<Q", self.data, 40)
        size, count = struct.unpack_from("<HH", self.data, 58)
        found = []
        for number in range(count):
            kind, _, _, offset, length, link = struct.unpack_from("<IQQQQI", self.data, start + number * size + 4)
            found.append(_Section(kind, offset, length, link))
        return found

    def _text(self, table: int, at: int) -> str:
        start = self._sections[table].offset + at
        return self.data[start : self.data.index(b"\0", start)].decode("utf-8", "replace")

    @property
    def is_stripped(self) -> bool:
        """Whether it has kernels and a CUDA runtime of its own, whose functions have no names."""
        has_kernels = b"\0.nv_fatbin\0" in self.data
        return has_kernels and not any(name.startswith("libcudart") for name in self.libraries) and not self.own

    @cached_property
    def libraries(self) -> list[str]:
        """The libraries that it needs, by name."""
        found = []
        for section in self._sections:
            for at in range(section.offset, section.offset + section.size, 16) if section.type == _DYNAMIC else ():
                tag, value = struct.unpack_from("<QQ", self.data, at)
                if tag == _NEEDED:
                    found.append(self._text(section.link, value))
        return found

    @cached_property
    def symbols(self) -> list[ElfSymbol]:
        """The symbols for the loader."""
        return list(self._symbols(_DYNSYM))

    @property
    def undefined(self) -> list[str]:
        """What it calls of other libraries."""
        return [symbol.name for symbol in self.symbols if not symbol.is_defined and symbol.name]

    @property
    def own(self) -> list[str]:
        """All names that it defines, as far as they were not stripped."""
        return [symbol.name for symbol in self._symbols(_SYMTAB) if symbol.is_defined]

    def _symbols(self, type: int) -> Iterator[ElfSymbol]:
        for section in self._sections:
            if section.type != type:
                continue
            for at in range(section.offset, section.offset + section.size, 24):
                name, _, _, place = struct.unpack_from("<IBBH", self.data, at)
                yield ElfSymbol(self._text(section.link, name), place != 0)

    def versions(self, library: str) -> list[str]:
        """The versions of symbols that it wants of a library."""
        found = []
        for section in self._sections:
            if section.type != _VERNEED:
                continue
            at = section.offset
            while True:
                _, count, file, first, following = struct.unpack_from("<HHIII", self.data, at)
                part = at + first
                for _ in range(count):
                    _, _, _, name, more = struct.unpack_from("<IHHII", self.data, part)
                    if self._text(section.link, file) == library:
                        found.append(self._text(section.link, name))
                    part += more
                if not following:
                    break
                at += following
        return found
