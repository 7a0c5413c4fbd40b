"""Lines of inline PTX: compilers give an `asm` statement of several lines one `.loc`, and here each line gets its own.

An instruction between `// begin inline asm` and `// end inline asm` is found again in the strings of the statement,
where operands are `%0`. Where that leaves a doubt, as in macros, the PTX stays as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

_BLOCK = re.compile(r"^[ \t]*// begin inline asm\n(.*?)^[ \t]*// end inline asm\n", re.DOTALL | re.MULTILINE)
_LOCATION = re.compile(r"^[ \t]*\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)([^\n]*)\n", re.MULTILINE)
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"\n]+)"', re.MULTILINE)
_START = re.compile(r"\b(?:asm|__asm__|__asm)\b(?:\s+(?:volatile|__volatile__))?\s*\(")
_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|R"(?P<end>[^(\s]*)\((?P<raw>.*?)\)(?P=end)"|"(?P<text>(?:\\.|[^"\\])*)"|'
    r"'(?:\\.|[^'\\])*'|(?P<other>[():])",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_HEAD = re.compile(r"(?:\s|[{}]|//[^\n]*|/\*.*?\*/|[A-Za-z_$][\w$]*:(?!:))*", re.DOTALL)  # braces and labels


@dataclass(frozen=True, slots=True)
class Statement:
    """An instruction in the strings of an `asm` statement: a pattern for what it becomes, and its line and column."""

    pattern: re.Pattern[str]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Asm:
    """An `asm` statement: its first and last line, and its instructions."""

    first: int
    last: int
    statements: tuple[Statement, ...]


def with_asm_lines(ptx: str, read: Callable[[str], str | None]) -> str:
    """PTX in which each line of inline PTX has its `.loc`; `read` has the text of a file, or None."""
    if "// begin inline asm" not in ptx:
        return ptx
    files = dict(_FILE.findall(ptx))

    @cache
    def statements(file: str) -> list[Asm]:
        text = read(file)
        return [] if text is None else list(_asm_statements(text))

    found: list[str] = []
    at = 0
    locations = [*_LOCATION.finditer(ptx)]
    number = 0
    for block in _BLOCK.finditer(ptx):
        while number < len(locations) and locations[number].start() < block.start():
            number += 1
        if not number or locations[number - 1][1] not in files:
            continue
        location = locations[number - 1]
        line = int(location[2])
        for asm in statements(files[location[1]]):
            if asm.first <= line <= asm.last and (places := _placed(block[1], asm)):
                is_followed = _LOCATION.match(ptx, block.end()) is not None
                found += [ptx[at : block.start(1)], _with_locations(block[1], places, location, is_followed)]
                at = block.end(1)
                break
    return "".join([*found, ptx[at:]])


def _with_locations(text: str, places: list[tuple[int, Statement]], location: re.Match[str], is_followed: bool) -> str:
    """The lines of a block, with a `.loc` before each instruction that is of another line than the one before."""
    now = int(location[2])
    found: list[str] = []
    at = 0
    for start, statement in places:
        if statement.line != now:
            before = text[at:start]
            is_first = not before.rpartition("\n")[2].strip()  # in its line of the PTX
            head = before.rstrip(" \t") if is_first else f"{before}\n"
            found += [head, f"\t.loc\t{location[1]} {statement.line} {statement.column}{location[4]}\n\t"]
            at, now = start, statement.line
    back = location[0] if now != int(location[2]) and not is_followed else ""
    return "".join([*found, text[at:], back])


def _placed(text: str, asm: Asm) -> list[tuple[int, Statement]]:
    """Where the instructions of a statement are in the PTX that became of it; nothing if it is another."""
    parts = list(_instructions(text))
    if len(parts) != len(asm.statements):
        return []
    if not all(one.pattern.fullmatch(_spaced(part)) for (_, part), one in zip(parts, asm.statements, strict=True)):
        return []
    return [
        (start, one)
        for (start, part), one in zip(parts, asm.statements, strict=True)
        if not part.startswith(".")  # a declaration
    ]


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """The instructions and declarations of PTX, and where they are."""
    at = 0
    for part in text.split(";")[:-1]:
        head = _HEAD.match(part)
        start = head.end() if head is not None else 0
        yield at + start, part[start:]
        at += len(part) + 1


def _spaced(text: str) -> str:
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


def _asm_statements(text: str) -> Iterator[Asm]:
    lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def line_at(at: int) -> int:
        return bisect_right(lines, at)

    for start in _START.finditer(text):
        characters: list[tuple[str, int]] = []  # of the template, each with where it is
        depth, is_template = 1, True
        at = start.end()
        while depth and (token := _TOKEN.search(text, at)) is not None:
            at = token.end()
            if token["other"] is not None:
                depth += {"(": 1, ")": -1}.get(token["other"], 0)
                is_template = is_template and token["other"] != ":"
            elif is_template and (token["text"] is not None or token["raw"] is not None):
                characters += _characters(token)
        template = "".join(character for character, _ in characters)
        found = []
        for begin, part in _instructions(template):
            place = characters[begin][1] if begin < len(characters) else start.start()
            line = line_at(place)
            found.append(Statement(_pattern(part), line, place - lines[line - 1] + 1))
        if found:
            yield Asm(line_at(start.start()), line_at(at - 1), tuple(found))


def _characters(token: re.Match[str]) -> list[tuple[str, int]]:
    """The characters of a string, each with where it is in the source."""
    if token["raw"] is not None:
        return [(character, token.start("raw") + number) for number, character in enumerate(token["raw"])]
    found: list[tuple[str, int]] = []
    text, start, at = token["text"], token.start("text"), 0
    while at < len(text):
        escape = _ESCAPE.match(text, at)
        found.append((_ESCAPES.get(escape[1], escape[1]) if escape else text[at], start + at))
        at += 2 if escape else 1
    return found


def _pattern(template: str) -> re.Pattern[str]:
    """What an instruction becomes, whatever its operands are."""
    parts = re.split(r"(%%|%\d+)", _spaced(template))
    return re.compile("".join("%" if one == "%%" else ".*?" if re.fullmatch(r"%\d+", one) else re.escape(one)
                              for one in parts), re.DOTALL)  # fmt: skip
