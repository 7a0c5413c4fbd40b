"""Debug information: `.loc`, `.file`, the data of `.section`, the text of `.nv_intermediate_source_section`."""

from __future__ import annotations

import re

from ptxlab.ir import Comment, DataLine, File, Label, Location, Section, SourceBlock, SourceSection, SymbolOffset
from ptxlab.isa.types import TYPES
from ptxlab.syntax.constants import read_integer, read_small_integer
from ptxlab.syntax.cursor import END, Cursor
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.reader import Reader

_LOCATION = re.compile(
    r"\s*(\.loc)\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?![\w.])"
    r"(?:\s*,\s*function_name\s+([\w.$%]+)(?:\s*\+\s*(\d+))?\s*,\s*inlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?![\w.]))?(?!\s*,)",
    re.ASCII,
)
_VALUE = r"(?:-?(?:0[xX][0-9a-fA-F]++|[1-9]\d{0,20}+)|0)"
_DATA = re.compile(rf"\s*(\.b(?:8|16|32|64)[ \t]+{_VALUE}(?:\s*+,\s*+{_VALUE})*+)(?=\s)(?!\s*+[,+-])", re.ASCII)
_DATA_TYPES = frozenset((".b8", ".b16", ".b32", ".b64"))
_LIMITS = {"b8": (-128, 255), "b16": (-(1 << 15), (1 << 16) - 1), "b32": (-(1 << 31), (1 << 32) - 1)}
_WIDEST = (1 - (1 << 63), (1 << 64) - 1)
_DIRECTIVES = frozenset(
    """.version .target .address_size .entry .func .global .shared .local .const .param .reg .tex .visible .extern .weak
    .common .section .file .loc .pragma .alias .align""".split()
)
_COMMENT = re.compile(r"\s*(//[^\n]*)")

_lines: dict[str, DataLine] = {}


match_location = _LOCATION.match  # the usual spellings of `.loc` by one pattern


def make_location(match: re.Match[str]) -> Location:
    """The `.loc` of a match."""
    _, file, line, column, name, offset, inlined_file, inlined_line, inlined_column = match.groups()
    if name is None:
        return Location(int(file), int(line), int(column), None, None, match.start(1), match.end())
    caller = (int(inlined_file), int(inlined_line), int(inlined_column))
    function_name = (name, int(offset or 0))
    return Location(int(file), int(line), int(column), function_name, caller, match.start(1), match.end())


def read_location(cursor: Cursor) -> Location:
    """Read a `.loc` in any spelling."""
    start = cursor.start
    cursor.advance()
    file, line, column = _read_location(cursor)
    location = Location(file, line, column, None, None, start, cursor.previous_end)
    while cursor.at(","):
        cursor.advance()
        if cursor.accept("function_name"):
            if cursor.kind not in ("name", "dotted"):
                cursor.expected("a label of the section `.debug_str`")
            name = cursor.advance()
            offset = read_integer(cursor, "an offset") if cursor.accept("+") else 0
            location.function_name = (name, offset)
        elif cursor.accept("inlined_at"):
            location.inlined_at = _read_location(cursor)
        else:
            cursor.expected("`function_name` or `inlined_at`")
    location.end = cursor.previous_end
    return location


def read_intermediate(cursor: Cursor, before: object) -> None:
    """Read `.loc_intermediate file line column`, which belongs to the `.loc` before it."""
    if not isinstance(before, Location):
        cursor.expected("`.loc` before `.loc_intermediate`")
    cursor.advance()
    before.intermediate = _read_location(cursor)
    before.end = cursor.previous_end


def _read_location(cursor: Cursor) -> tuple[int, int, int]:
    file = read_small_integer(cursor, "the number of a file")
    line = read_small_integer(cursor, "the number of a line")
    column = read_small_integer(cursor, "the number of a column")
    return file, line, column


def read_file(cursor: Cursor) -> File:
    """Read `.file 1 "name", timestamp, size`."""
    start = cursor.start
    cursor.advance()
    index = read_small_integer(cursor, "the number of the file")
    if cursor.kind != "string":
        cursor.expected("the name of the file in double quotes")
    name = cursor.advance()[1:-1]
    timestamp = size = None
    if cursor.accept(","):
        timestamp = read_integer(cursor, "the time of the file's last change")
        if cursor.accept(","):
            size = read_integer(cursor, "the size of the file")
    return File(index, name, timestamp, size, start, cursor.previous_end)


def read_section(cursor: Cursor, reader: Reader) -> Section:
    """Read `.section .name { data }`; the cursor ends after it."""
    start = cursor.start
    cursor.advance()
    if cursor.kind != "dotted" or not _is_symbol(cursor):
        cursor.expected("the name of the section, which begins with a dot")
    name = cursor.advance()
    opening = cursor.start
    if not cursor.at("{"):
        cursor.expected("`{` to begin the data of the section")
    lines: list[DataLine | Label | Comment] = []
    at = cursor.end
    text = reader.text
    while True:
        at = _read_plain(text, at, lines, reader)
        cursor.move(at)
        for first, last in cursor.comments:
            if first >= opening:
                lines.append(reader.comment(first, last, lines[-1] if lines else None))
        cursor.comments.clear()
        if cursor.at("}"):
            break
        if cursor.kind == END:
            raise ParseError(
                "unclosed-brace",
                f"expected `}}` to end the section `{name}`, found the end of the file",
                cursor.start,
                cursor.end,
                help="close it with `}`",
                other=(opening, opening + 1, "this brace is still open"),
            )
        lines.append(_read_line(cursor))
        at = cursor.previous_end
        cursor.comments.clear()
    end = cursor.end
    cursor.advance()
    return Section(name, lines, start, end)


# The text of a block is anything: no comment, string or brace in it counts.
_BLOCK = re.compile(
    r'\s*\.code_block\s*\{\s*\.ir_name:\s*"([^"]*)"\s*\.sourceFileName:\s*(\d{1,9})\s*'
    r"\.source_begin[ \t]*\n(.*?)^[ \t]*\.source_end\s*\}",
    re.ASCII | re.DOTALL | re.MULTILINE,
)


def read_source_section(cursor: Cursor) -> SourceSection:
    """Read `.nv_intermediate_source_section { .code_block { ... } }`; the cursor ends after it."""
    start = cursor.start
    cursor.advance()
    if not cursor.at("{"):
        cursor.expected("`{` to begin the source section")
    at, blocks = cursor.end, []
    while (block := _BLOCK.match(cursor.text, at)) is not None:
        blocks.append(SourceBlock(block[1], int(block[2]), block[3]))
        at = block.end()
    cursor.move(at)
    if not cursor.at("}"):
        cursor.expected(
            "`.code_block` or `}`",
            help="a block has `.ir_name:`, `.sourceFileName:`, `.source_begin`, the text and `.source_end`, in order",
        )
    cursor.advance()
    return SourceSection(tuple(blocks), start, cursor.previous_end)


def _read_plain(text: str, at: int, lines: list[DataLine | Label | Comment], reader: Reader) -> int:
    """Take lines of integers, which is what debug data mostly is, as long as they come."""
    while True:
        match = _DATA.match(text, at)
        if match is None:
            comment = _COMMENT.match(text, at)
            if comment is None:
                return at
            lines.append(reader.comment(comment.start(1), comment.end(), lines[-1] if lines else None))
            at = comment.end()
            continue
        line = match[1]
        found = _lines.get(line)
        if found is None:
            type, values = line.split(None, 1)
            numbers = tuple([int(value, 0) for value in values.split(",")])
            low, high = _LIMITS.get(type[1:], _WIDEST)
            if min(numbers) < low or max(numbers) > high:
                return at  # for the careful reader to report
            found = DataLine(type[1:], numbers)
            if len(line) <= 8:  # the short ones are few and come by the thousand
                _lines[line] = found
        lines.append(found)
        at = match.end()


def _read_line(cursor: Cursor) -> DataLine | Label:
    if cursor.kind == "name":
        start = cursor.start
        name = cursor.advance()
        cursor.expect(":", "after the label")
        return Label(name, start, cursor.previous_end)
    if cursor.value not in _DATA_TYPES:
        cursor.expected("`.b8`, `.b16`, `.b32`, `.b64`, a label or `}`")
    type = cursor.advance()[1:]
    values = [_read_value(cursor, type, is_first=True)]
    while cursor.accept(","):
        values.append(_read_value(cursor, type, is_first=False))
    return DataLine(type, tuple(values))


def _read_value(cursor: Cursor, type: str, is_first: bool) -> int | SymbolOffset:
    start, end = cursor.start, cursor.end
    if _is_symbol(cursor):
        name = cursor.advance()
        if type in ("b8", "b16"):
            message = f"an address does not fit into `.{type}`"
            raise ParseError("constant-overflow", message, start, end, help="use `.b32` or `.b64`")
        if cursor.accept("+"):
            return SymbolOffset(name, read_integer(cursor, "an offset in bytes"))
        if cursor.accept("-"):
            return SymbolOffset(name, 0, cursor.name("another label of this section"))
        return SymbolOffset(name)
    is_negative = cursor.accept("-")
    if cursor.kind != "integer":
        cursor.expected("an integer or a label")
    end = cursor.end
    value = read_integer(cursor, "an integer or a label")
    low, high = _LIMITS.get(type, _WIDEST)
    if is_negative and not value and is_first and type in _LIMITS:
        value = high + 1  # to ptxas, `-0` is out of range there
    elif is_negative:
        value = -value
    elif value > high and type != "b64":
        value &= (1 << 32) - 1  # ptxas cuts it to 32 bits before it looks
    if not low <= value <= high:
        raise ParseError("constant-overflow", f"`{value}` does not fit into `.{type}`", start, end,
                    help=f"values of `.{type}` go from {low} to {high}")  # fmt: skip
    return value


def _is_symbol(cursor: Cursor) -> bool:
    """Whether the name of a label or of a section is next."""
    if cursor.kind == "name":
        return cursor.value != "WARP_SZ"
    return cursor.kind == "dotted" and cursor.value[1:] not in TYPES and cursor.value not in _DIRECTIVES
