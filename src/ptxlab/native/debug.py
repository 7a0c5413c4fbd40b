"""The lines of the Python source in LLVM IR: a DISubprogram for each function, a DILocation for each of its lines.

A translated function refers to its line 12 as `!L12`; when functions become one text, those become numbers here.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from .functions import Signature

FIRST = 10  # numbers below are of the text that this becomes part of
_LINE = re.compile(r"!L(\d+)")


def mark(line: int) -> str:
    """What follows an instruction of that line."""
    return f", !dbg !L{line}"


class DebugInfo:
    """The metadata of one text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._unit = self._node(
            "distinct !DICompileUnit(language: DW_LANG_Python, file: "
            f'{self._file("ptxlab")}, producer: "ptxlab.native", isOptimized: true, runtimeVersion: 0, '
            "emissionKind: LineTablesOnly)"
        )
        self._type = self._node("!DISubroutineType(types: !{})")

    def _node(self, text: str) -> str:
        return f"!{self._numbers.setdefault(text, FIRST + len(self._numbers))}"

    def _file(self, path: str) -> str:
        file = PurePath(path)
        return self._node(f'!DIFile(filename: "{_escaped(file.name)}", directory: "{_escaped(str(file.parent))}")')

    def located(self, signature: Signature, text: str) -> str:
        """A definition whose instructions say which line they are from."""
        code = signature.function.__code__
        file = self._file(code.co_filename)
        scope = self._node(
            f'distinct !DISubprogram(name: "{_escaped(signature.function.__qualname__)}", linkageName: '
            f'"{_escaped(signature.symbol)}", scope: {file}, file: {file}, line: {code.co_firstlineno}, '
            f"type: {self._type}, scopeLine: {code.co_firstlineno}, spFlags: DISPFlagDefinition | "
            f"DISPFlagOptimized, unit: {self._unit})"
        )
        head, brace, body = text.partition(" {\n")
        body = _LINE.sub(lambda match: self._node(f"!DILocation(line: {match[1]}, scope: {scope})"), body)
        return f"{head} !dbg {scope}{brace}{body}"

    def text(self) -> str:
        """What a text with such definitions ends with."""
        version, dwarf = (
            self._node('!{i32 2, !"Debug Info Version", i32 3}'),
            self._node('!{i32 7, !"Dwarf Version", i32 4}'),
        )
        lines = [f"!llvm.dbg.cu = !{{{self._unit}}}", f"!llvm.module.flags = !{{{version}, {dwarf}}}"]
        return "\n".join([*lines, *(f"!{number} = {text}" for text, number in self._numbers.items())]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\5C").replace('"', "\\22")
