"""Where cuda-gdb stops in code of `-G`: its rule, over the line table and the scopes of the cubin that ptxas makes.

`nvdisasm` says which line of the source, and which of the PTX, each instruction of the SASS is of; `llvm-dwarfdump`
says which lexical blocks and inlined functions it is in. The rule is gdb's (linespec.c, symtab.c): of the rows of the
wanted line, or of the next line that has some, the first in each block; one in the prologue of a function moves after
it; a line before a function does not move into it.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ptxlab.toolchain import assemble
from ptxlab.toolchain.tools import find_all

_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_FILE = re.compile(r"\s*//## File \"([^\"]*)\", line (\d+)")
_CODE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s")
_TAG = re.compile(r"(0x[0-9a-f]+):(\s+)DW_TAG_(\w+)")
_ORIGIN = re.compile(r"\s+DW_AT_(?:abstract_origin|specification)\s+\((0x[0-9a-f]+)")
_NUMBER = re.compile(r"\s+DW_AT_(low_pc|high_pc|decl_line)\s+\((0x[0-9a-f]+|\d+)\)")
_NAME = re.compile(r"\s+DW_AT_(MIPS_linkage_name|linkage_name|name)\s+\(\"([^\"]*)\"\)")
PTX = ".nv_debug_ptx_txt"


def can_ask() -> bool:
    """Whether the programs are there that it takes."""
    return shutil.which("llvm-dwarfdump") is not None


@dataclass(frozen=True)
class Row:
    """A row of the line table: an address in a function, and its line of the source."""

    function: str
    address: int
    file: str
    line: int


@dataclass
class Scope:
    """A function, a lexical block, or an inlined function: its addresses, and how deep it is in others."""

    tag: str
    depth: int
    low: int = 0
    high: int = 0
    name: str = ""
    line: int = 0
    origin: int = 0
    """The declaration that it completes."""


@dataclass(frozen=True)
class Found:
    """Where a breakpoint is: its line, and the lines of the PTX that it stops at; none where it is refused."""

    line: int
    ptx_lines: frozenset[int]


class Cubin:
    """The line table of a module that was compiled with `-G`."""

    def __init__(self, ptx: str) -> None:
        assembly = assemble(ptx, options=["-g"])
        assert assembly.cubin is not None, assembly.diagnostics
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "object"
            path.write_bytes(assembly.cubin)
            newest = max(find_all("nvdisasm"), key=lambda one: [int(part) for part in re.findall(r"\d+", one.version)])
            listing = _said([str(newest.path), "-c", "-g", "-gp", str(path)])
            described = _said(["llvm-dwarfdump", "--debug-info", str(path)])
        self.rows: list[Row] = []
        self._ptx: dict[str, list[tuple[int, int]]] = {}  # addresses of a function, and lines of the PTX from there on
        self._read_rows(listing)
        self._scopes: dict[str, list[Scope]] = {}
        self._read_scopes(described)

    def _read_rows(self, listing: str) -> None:
        function, source, line = "", ("", 0), 0
        shown: tuple[str, int] | None = None
        for text in listing.splitlines():
            if found := _SECTION.match(text):
                function, shown, line = found[1], None, 0
            elif found := _FILE.match(text):
                if found[1] == PTX:
                    line = int(found[2])
                else:
                    source = found[1], int(found[2])
                    shown = None
            elif found := _CODE.match(text):
                address = int(found[1], 16)
                if shown != source and source[1]:
                    shown = source
                    self.rows.append(Row(function, address, *source))
                ptx = self._ptx.setdefault(function, [])
                if line and (not ptx or ptx[-1][1] != line):
                    ptx.append((address, line))

    def _read_scopes(self, described: str) -> None:
        all_of_them: list[Scope] = []
        by_offset: dict[int, Scope] = {}
        for text in described.splitlines():
            if found := _TAG.match(text):
                by_offset[int(found[1], 16)] = made = Scope(found[3], len(found[2]))
                all_of_them.append(made)
            elif all_of_them and (found := _ORIGIN.match(text)):
                all_of_them[-1].origin = int(found[1], 16)
            elif all_of_them and (found := _NUMBER.match(text)):
                value = int(found[2], 0)
                setattr(all_of_them[-1], {"low_pc": "low", "high_pc": "high", "decl_line": "line"}[found[1]], value)
            elif all_of_them and (found := _NAME.match(text)) and (found[1] != "name" or not all_of_them[-1].name):
                all_of_them[-1].name = found[2]
        function = ""
        for one in all_of_them:
            declared = one
            while not declared.line and declared.origin in by_offset:
                declared = by_offset[declared.origin]
            one.line = declared.line
            if one.tag == "subprogram":
                function = one.name
            if one.high and one.tag in ("subprogram", "lexical_block", "inlined_subroutine"):
                self._scopes.setdefault(function, []).append(one)

    def block(self, row: Row) -> tuple[str, int]:
        """The innermost scope of a row."""
        around = [(one.depth, number) for number, one in enumerate(self._scopes.get(row.function, ()))
                  if one.low <= row.address < one.high]  # fmt: skip
        return row.function, max(around)[1] if around else -1

    def _function(self, row: Row) -> Scope:
        """The innermost function of a row, which may be inlined."""
        around = [one for one in self._scopes.get(row.function, ())
                  if one.tag != "lexical_block" and one.low <= row.address < one.high]  # fmt: skip
        return max(around, key=lambda one: one.depth, default=Scope("", 0))

    def _after_prologue(self, row: Row) -> Row:
        """The row itself, or the one of the second line of the function, if it is in the first."""
        own = [one for one in self.rows if one.function == row.function]
        later = next((one for one in own if (one.file, one.line) != (own[0].file, own[0].line)), row)
        return later if row.address < later.address else row

    def ptx_line(self, row: Row) -> int:
        """The line of the PTX at the address of a row."""
        return next(line for address, line in reversed(self._ptx[row.function]) if address <= row.address)

    def stops(self, file: str, line: int) -> Found:
        """Where a breakpoint on a line of the source is."""
        rows = [row for row in self.rows if row.file == file]
        best = min((row.line for row in rows if row.line >= line), default=0)
        first: dict[tuple[str, int], Row] = {}
        for row in rows:
            if row.line == best:
                first.setdefault(self.block(row), row)
        kept = []
        for row in first.values():
            function = self._function(row)
            if best != line and row.address == function.low and line < function.line:
                continue
            kept.append(self._after_prologue(row))
        return Found(best, frozenset(map(self.ptx_line, kept)))


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
