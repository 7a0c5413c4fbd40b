"""Spans of the parts of an instruction, found by reading its own few characters again.

Spans of operands and modifiers are wanted only for diagnostics, so instructions do not carry them.
"""

from __future__ import annotations

import re

Range = tuple[int, int]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPCODE = re.compile(r"\s*(@\s*!?\s*[%\w$.]+)?\s*([a-zA-Z_][\w.:]*)")
_OPENING, _CLOSING = "([{", ")]}"


def without_comments(text: str) -> str:
    """The text with each comment replaced by as many spaces."""
    if "/" not in text:
        return text
    return _COMMENT.sub(lambda match: " " * len(match.group()), text)


def guard_range(text: str) -> Range | None:
    """Where `@p` is in the text of an instruction."""
    match = _OPCODE.match(text)
    return match.span(1) if match is not None and match.group(1) else None


def opcode_range(text: str) -> Range:
    """Where the opcode is in the text of an instruction."""
    match = _OPCODE.match(text)
    return (0, len(text)) if match is None else match.span(2)


def modifier_range(text: str, index: int) -> Range:
    """Where the modifier `index` is, with its dot; -1 is the mnemonic."""
    start, end = opcode_range(text)
    dots = [start, *(at for at in range(start, end) if text[at] == "."), end]
    return (dots[index + 1], dots[index + 2]) if index + 2 < len(dots) else (start, end)


def operand_ranges(text: str) -> list[Range]:
    """Where each operand is in the text of an instruction."""
    start = opcode_range(text)[1]
    end = len(text) - 1 if text.endswith(";") else len(text)
    return split_ranges(text, start, end)


def split_ranges(text: str, start: int, end: int) -> list[Range]:
    """Where the parts of `text[start:end]` between commas outside brackets are."""
    found = []
    depth = 0
    begin = start
    for at in range(start, end):
        character = text[at]
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            found.append(trimmed(text, begin, at))
            begin = at + 1
    if found or text[begin:end].strip():
        found.append(trimmed(text, begin, end))
    return found


def trimmed(text: str, start: int, end: int) -> Range:
    """The range without white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
