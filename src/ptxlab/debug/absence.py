"""Why a line of a source has no code, for a breakpoint that cannot be there."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ptxlab.debug.lines import Lines
from ptxlab.debug.objects import UnknownError
from ptxlab.toolchain.host_code import Outline

_NOT_REACHED = "the recorded kernel does not call its function, or it is of another template argument"
_COMMENT = re.compile(r"//.*|/\*.*?(?:\*/|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Absence:
    """A reason, and whether the next line with code is meant instead."""

    reason: str
    moves: bool = True

    def __str__(self) -> str:
        return self.reason


def line_with_code(kernels: Sequence[Lines], file: str, line: int) -> tuple[int, Absence | None]:
    """A line, or the next one of its function that has code, and why; `UnknownError` where there is none."""
    found = min((one for lines in kernels if (one := lines.next_line(file, line)) is not None), default=None)
    if found == line:
        return line, None
    is_elsewhere = any(lines.is_elsewhere(file, line) for lines in kernels)
    why = Absence(_NOT_REACHED, moves=False) if is_elsewhere else _why(file, line)
    if found is None or not why.moves or (file and _start(file, found) > line):
        raise UnknownError(f"line {line} has no code: {why}")
    return found, why


def prologue_text(line: int) -> str:
    """Why a breakpoint on the first line of a function is at a later one."""
    return f"line {line} starts the function, and it stops after the prologue"


def _why(file: str, line: int) -> Absence:
    """Why no instruction is of a line of a source; `file` is "" for PTX."""
    if not file:
        return Absence("no instruction is there")
    text = _read(file)
    lines = text.split("\n")
    if not text:
        return Absence("no instruction was compiled from it")
    if line > len(lines):
        return Absence("the file ends before it", moves=False)
    without = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text).split("\n")
    if not without[line - 1].strip():
        return Absence("it is blank, or a comment")
    if Path(file).suffix != ".py" and _outline(text).is_host(line):
        return Absence("it is host code, which the recorded kernel does not run", moves=False)
    return Absence("the compiler made no instruction of it")


def _start(file: str, line: int) -> int:
    """Where the function starts that has a line; the line itself where that is not known."""
    text = _read(file)
    if Path(file).suffix != ".py":
        return _outline(text).function_start(line) or line
    try:
        defined = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef)]
    except SyntaxError:
        return line
    around = [one for one in defined if one.lineno <= line <= (one.end_lineno or 0)]
    starts = [min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)]) for one in around]
    return max(starts, default=line)


@lru_cache(maxsize=8)
def _outline(text: str) -> Outline:
    return Outline(text)


def _read(file: str) -> str:
    """The text of a file; nothing where there is none that can be read, such as of a name that is too long."""
    try:
        return Path(file).read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""
