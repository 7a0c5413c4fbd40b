"""Where in a PTX text a message of ptxas belongs: ptxas gives a line at most, the reader wants the operand.

The words a message quotes are looked for in the statement its line names, the more particular ones first; without a
line, in the whole text.
"""

from __future__ import annotations

import re

from ptxlab.report import Source, Span

_QUOTED = re.compile(r"'([^']+)'")
_ARGUMENT = re.compile(r"Argument (\d+) of (?:instruction )?'([\w.:]+)'")
_INSTRUCTION = re.compile(r"(?:[Ii]nstruction|[Ff]eature|for|of) '([\w.:]+)'|'([\w.:]+)' instruction")
_FUNCTION = re.compile(r"(?:[Ff]unction|entry) '?([A-Za-z_$%][\w$]*)")


def locate(source: Source, text: str, line: int | None, instruction: str = "") -> Span | None:
    """The smallest span a message names; `instruction` is what it is about where it names nothing."""
    if line is None or not 1 <= line <= source.line_count:
        return _place_in_text(source, text, instruction)
    start, end = _statement(source, line)
    names = [*_names(text), *([instruction] if instruction else [])]
    opcode_names = {name for match in _INSTRUCTION.finditer(text) for name in match.groups() if name} | {instruction}
    argument = _ARGUMENT.search(text)
    if argument:
        operand = _operand(source, start, end, int(argument[1]), argument[2])
        if operand:
            return operand
    for bounds in (source.line_bounds(line), (start, end)):
        for name in sorted(names, key=lambda name: name in opcode_names):
            found = _find(source, name, *bounds, whole_opcode=name in opcode_names)
            if found:
                return found
    return _trimmed(source, *source.line_bounds(line))


def locate_function(source: Source, name: str) -> Span | None:
    """The name of a function where it is defined."""
    pattern = rf"\.(?:entry|func)\b[^{{}};]*?(?<![\w$%])({re.escape(name)})(?![\w$])"
    found = re.search(pattern, source.text)
    return Span(source, found.start(1), found.end(1)) if found else None


def _place_in_text(source: Source, text: str, instruction: str) -> Span | None:
    """A message without a line: the instruction it is about, the function, or the first of its words."""
    function = _FUNCTION.search(text)
    defined = locate_function(source, function[1]) if function else None
    if instruction:
        found = _find(source, instruction, defined.end if defined else 0, len(source.text), whole_opcode=True)
        if found:
            return found
    if defined:
        return defined
    if "specified by .target" in text:
        return _find(source, ".target", 0, len(source.text), whole_line=True)
    for name in _names(text):
        found = _find(source, name, 0, len(source.text))
        if found:
            return found
    return None


def _names(text: str) -> list[str]:
    return [name for name in _QUOTED.findall(text) if name.strip()]


def _find(
    source: Source, name: str, start: int, end: int, *, whole_opcode: bool = False, whole_line: bool = False
) -> Span | None:
    """The first position at which `name` is a word of its own, outside comments to the line's end."""
    before = r"(?<![\w$%.:])" if name[0].isalnum() or name[0] in "_$%" else r"(?<!\w\.)"
    after = r"(?![\w$])" if name[-1].isalnum() or name[-1] in "_$" else ""
    tail = r"(?:[.:]+\w+)*" if whole_opcode else ""
    pattern = re.compile(rf"//[^\n]*|({before if name[0] != '.' else ''}{re.escape(name)}{after}{tail})")
    for found in pattern.finditer(source.text, start, end):
        if found[1] is None:
            continue
        if whole_line:
            line, _ = source.position(found.start(1))
            return _trimmed(source, *source.line_bounds(line))
        return Span(source, found.start(1), found.end(1))
    return None


def _operand(source: Source, start: int, end: int, index: int, opcode: str) -> Span | None:
    """Operand `index`, counted from 0, of the first `opcode`; brackets and braces hold commas of their own."""
    head = _find(source, opcode, start, end, whole_opcode=True)
    if head is None:
        return None
    depth, at, first = 0, 0, head.end
    for offset in range(head.end, end):
        character = source.text[offset]
        depth += (character in "[{(") - (character in "]})")
        if (character == "," and depth == 0) or character == ";":
            if at == index:
                return _trimmed(source, first, offset)
            at, first = at + 1, offset + 1
        if character == ";":
            return None
    return None


def _statement(source: Source, line: int) -> tuple[int, int]:
    """Bounds of the line with what continues its last statement."""
    start, end = source.line_bounds(line)
    stop = re.compile(r"[;{}]\s*(?://[^\n]*)?$")
    last = line
    while last < min(source.line_count, line + 64) and not stop.search(source.line(last)):
        last += 1
    return start, max(end, source.line_bounds(last)[1])


def _trimmed(source: Source, start: int, end: int) -> Span:
    """The stretch without blanks at its ends and without a comment to the line's end."""
    text = source.text[start:end]
    code = text.split("//", 1)[0] if "\n" not in text else text
    code = code if code.strip() else text
    stripped = code.strip()
    first = start + len(code) - len(code.lstrip())
    return Span(source, first, first + len(stripped))
