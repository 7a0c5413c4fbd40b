"""Why a line of a source has no code, for a breakpoint that cannot be there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ptxlab.toolchain.host_code import Outline

_COMMENT = re.compile(r"//.*|/\*.*?(?:\*/|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Absence:
    """A reason, and whether the next line with code is meant instead."""

    reason: str
    moves: bool = True

    def __str__(self) -> str:
        return self.reason


def why_no_code(file: str, line: int) -> Absence:
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


@lru_cache(maxsize=8)
def _outline(text: str) -> Outline:
    return Outline(text)


def _read(file: str) -> str:
    path = Path(file)
    return path.read_text("utf-8", "replace") if path.is_file() else ""
