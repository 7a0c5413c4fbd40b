"""DWARF in the text of PTX: the entries of `.debug_info` as a tree, as `nvcc -G` writes them.

PTX has debug sections as lines of data. Where a number depends on an address, they have a symbol: of a label between
instructions, a variable, or another section. So `Data` has bytes, and symbols beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ptxlab.ir.items import DataLine, Section, SymbolOffset
from ptxlab.ir.module import Module
from ptxlab.ir.statements import Label

MOST_DEEP = 200  # scopes inside each other; a file that was made to have more is not read
_WIDTHS = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
_TAGS = {
    0x01: "array", 0x02: "class", 0x04: "enumeration", 0x05: "parameter", 0x0B: "block", 0x0D: "member",
    0x0F: "pointer", 0x10: "reference", 0x11: "unit", 0x13: "structure", 0x15: "subroutine", 0x16: "typedef",
    0x17: "union", 0x1C: "inheritance", 0x1D: "inlined", 0x21: "subrange", 0x24: "base", 0x26: "const",
    0x28: "enumerator", 0x2E: "function", 0x34: "variable", 0x35: "volatile", 0x37: "restrict", 0x39: "namespace",
    0x42: "reference",
}  # fmt: skip
_ATTRIBUTES = {
    0x02: "location", 0x03: "name", 0x0B: "byte_size", 0x0C: "bit_offset", 0x0D: "bit_size", 0x11: "low_pc",
    0x12: "high_pc", 0x1C: "const_value", 0x22: "upper_bound", 0x2F: "upper_bound", 0x31: "origin",
    0x33: "address_class", 0x34: "artificial", 0x37: "count", 0x38: "member_location", 0x3B: "line", 0x3E: "encoding",
    0x47: "specification", 0x49: "type", 0x55: "ranges", 0x58: "call_file", 0x59: "call_line", 0x6B: "data_bit_offset",
    0x2007: "linkage_name",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DwarfSymbol:
    """What a symbol means, and bytes after it."""

    name: str
    offset: int = 0


@dataclass
class Data:
    """The bytes of a section, or of a part of one, with symbols at some of them."""

    content: bytes
    symbols: dict[int, DwarfSymbol] = field(default_factory=dict)

    def part(self, start: int, end: int) -> Data:
        """Some of it."""
        inside = {at - start: self.symbols[at] for at in range(start, end) if at in self.symbols}
        return Data(self.content[start:end], inside)


Attribute = int | str | Data | DwarfSymbol


@dataclass(eq=False, slots=True)
class Entry:
    """An entry of `.debug_info`: its tag, what it says of itself, and the entries in it."""

    tag: str
    offset: int
    attributes: dict[str, Attribute]
    children: list[Entry] = field(default_factory=list)

    def number(self, name: str) -> int | None:
        """An attribute that is a number."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) else None

    def text(self, name: str) -> str:
        """An attribute that is a text, or ""."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else ""

    def walk(self) -> Iterator[Entry]:
        """The entry and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


class DwarfError(ValueError):
    """The debug sections cannot be read."""


@dataclass(eq=False)
class DwarfReader:
    """A position in a section."""

    data: Data
    at: int = 0
    end: int = -1

    def __post_init__(self) -> None:
        self.end = len(self.data.content) if self.end < 0 else self.end

    @property
    def is_done(self) -> bool:
        return self.at >= self.end

    def number(self, size: int, *, signed: bool = False) -> int:
        """A whole number of some bytes; the offset, where there is a symbol."""
        if self.at + size > self.end:
            raise DwarfError("a debug section ends too early")
        symbol = self.data.symbols.get(self.at)
        found = int.from_bytes(self.data.content[self.at : self.at + size], "little", signed=signed)
        self.at += size
        return found if symbol is None else symbol.offset

    def address(self) -> int | DwarfSymbol:
        """A number of eight bytes, or the symbol that is there."""
        symbol = self.data.symbols.get(self.at)
        number = self.number(8)
        return number if symbol is None else symbol

    def leb(self, *, signed: bool = False) -> int:
        """A number of as many bytes as it needs."""
        found = shift = 0
        while True:
            byte = self.number(1)
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found - (1 << shift) if signed and byte & 0x40 else found

    def string(self) -> str:
        """A text that ends with a zero."""
        stop = self.data.content.find(b"\0", self.at, self.end)
        if stop < 0:
            raise DwarfError("a text in a debug section has no end")
        found = self.data.content[self.at : stop].decode("utf-8", "replace")
        self.at = stop + 1
        return found

    def block(self, size: int) -> Data:
        """The next bytes as they are."""
        if self.at + size > self.end:
            raise DwarfError("a debug section ends too early")
        self.at += size
        return self.data.part(self.at - size, self.at)


_Form = Callable[[DwarfReader, Data], Attribute]
_FORMS: dict[int, _Form] = {
    0x01: lambda reader, _: reader.address(),
    0x03: lambda reader, _: reader.block(reader.number(2)),
    0x04: lambda reader, _: reader.block(reader.number(4)),
    0x05: lambda reader, _: reader.number(2),
    0x06: lambda reader, _: reader.number(4),
    0x07: lambda reader, _: reader.address(),
    0x08: lambda reader, _: reader.string(),
    0x09: lambda reader, _: reader.block(reader.leb()),
    0x0A: lambda reader, _: reader.block(reader.number(1)),
    0x0B: lambda reader, _: reader.number(1),
    0x0C: lambda reader, _: reader.number(1),
    0x0D: lambda reader, _: reader.leb(signed=True),
    0x0E: lambda reader, strings: DwarfReader(strings, reader.number(4)).string(),
    0x0F: lambda reader, _: reader.leb(),
    0x10: lambda reader, _: reader.number(4),
    0x11: lambda reader, _: reader.number(1),
    0x12: lambda reader, _: reader.number(2),
    0x13: lambda reader, _: reader.number(4),
    0x14: lambda reader, _: reader.number(8),
    0x15: lambda reader, _: reader.leb(),
    0x17: lambda reader, _: reader.number(4),
    0x18: lambda reader, _: reader.block(reader.leb()),
    0x19: lambda reader, _: 1,
}  # fmt: skip


def section(module: Module, name: str) -> Data:
    """The data of a debug section; nothing where there is none."""
    lines = [line for item in module.items if isinstance(item, Section) and item.name == name for line in item.lines]
    labels: dict[str, int] = {name: 0}
    at = 0
    for line in lines:
        if isinstance(line, Label):
            labels[line.name] = at
        elif isinstance(line, DataLine):
            at += _WIDTHS.get(line.type, 1) * len(line.values)
    content, symbols = bytearray(), {}
    for line in lines:
        if not isinstance(line, DataLine):
            continue
        width = _WIDTHS.get(line.type, 1)
        for value in line.values:
            if isinstance(value, SymbolOffset):
                if value.minus in labels:
                    number = labels.get(value.name, 0) - labels[value.minus]
                else:
                    symbols[len(content)] = DwarfSymbol(value.name, value.offset)
                    number = value.offset
            else:
                number = value
            content += (number & (1 << 8 * width) - 1).to_bytes(width, "little")
    return Data(bytes(content), symbols)


def entries(module: Module) -> list[Entry]:
    """The compilation units of a module's `.debug_info`; raises `DwarfError` where they cannot be read."""
    information, strings = section(module, ".debug_info"), section(module, ".debug_str")
    abbreviations = section(module, ".debug_abbrev")
    found: list[Entry] = []
    reader = DwarfReader(information)
    while not reader.is_done:
        start = reader.at
        end = reader.number(4) + 4 + start
        version, table = reader.number(2), reader.number(4)
        if not 2 <= version <= 4:
            raise DwarfError(f"debug information of version {version} is not read")
        reader.number(1)
        known = _abbreviations(DwarfReader(abbreviations, table))
        unit = DwarfReader(information, reader.at, min(end, reader.end))
        found += _siblings(unit, known, strings, start, 0)
        reader.at = end
    return found


def _abbreviations(reader: DwarfReader) -> dict[int, tuple[str, bool, list[tuple[int, int]]]]:
    """What entries consist of: a tag, whether there are others in them, attributes with their forms."""
    found: dict[int, tuple[str, bool, list[tuple[int, int]]]] = {}
    while not reader.is_done and (code := reader.leb()):
        tag, has_children = reader.leb(), bool(reader.number(1))
        forms: list[tuple[int, int]] = []
        while (pair := (reader.leb(), reader.leb())) != (0, 0):
            forms.append(pair)
        found[code] = _TAGS.get(tag, hex(tag)), has_children, forms
    return found


def _siblings(
    reader: DwarfReader, known: dict[int, tuple[str, bool, list[tuple[int, int]]]], strings: Data, unit: int, depth: int
) -> list[Entry]:
    """Entries up to the one that ends them; numbers of others in the same unit are made numbers in the section."""
    if depth > MOST_DEEP:
        raise DwarfError("scopes of debug information are too deep inside each other")
    found: list[Entry] = []
    while not reader.is_done:
        start = reader.at
        code = reader.leb()
        if not code:
            break
        if code not in known:
            raise DwarfError(f"debug information has an entry of the unknown kind {code}")
        tag, has_children, forms = known[code]
        attributes: dict[str, Attribute] = {}
        for attribute, form in forms:
            if form not in _FORMS:
                raise DwarfError(f"debug information has the unknown form {form:#x}")
            value = _FORMS[form](reader, strings)
            if 0x11 <= form <= 0x15 and isinstance(value, int):
                value += unit
            attributes[_ATTRIBUTES.get(attribute, hex(attribute))] = value
        children = _siblings(reader, known, strings, unit, depth + 1) if has_children else []
        found.append(Entry(tag, start, attributes, children))
    return found
