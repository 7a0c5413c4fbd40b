"""From text to program: the header and the outermost level of a module."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ptxlab.ir import Alias, Comment, Declaration, Function, Item, Module, Pragma
from ptxlab.ir.collector import collector_paused
from ptxlab.ir.node import building
from ptxlab.report import Diagnostic, PtxError, Source
from ptxlab.syntax.body import BodyReader
from ptxlab.syntax.constants import read_integer
from ptxlab.syntax.cursor import END, Cursor
from ptxlab.syntax.debug import read_file, read_section, read_source_section
from ptxlab.syntax.declarations import LINKAGES, STATE_SPACES, read_declaration
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.functions import read_header, read_strings, read_target
from ptxlab.syntax.reader import Reader, TooManyFaults

_ITEM = r"\.(?:version|target|visible|extern|weak|common|entry|func|global|const|section|file|alias)\b"
_RESUME = re.compile(rf"\n[ \t]*(?={_ITEM})", re.ASCII)
_BEGINS = re.compile(_ITEM, re.ASCII)
_BODY = re.compile(rf"[{{;]|\n[ \t]*(?={_ITEM})", re.ASCII)
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})")


def parse(text: str, name: str = "<ptx>") -> Module:
    """Read PTX; raises `PtxError` with every syntax error.

    >>> parse(".version 8.0\\n.target sm_80\\n.entry main { ret; }").entries
    ['main']
    """
    if not isinstance(text, str):
        raise TypeError(f"`parse` takes text, not {type(text).__name__}; `ptxlab.load` takes a path")
    module, diagnostics = read(text.rstrip("\0"), name)  # NVRTC ends a text with a NUL character, as drivers read it
    if diagnostics:
        raise PtxError(diagnostics)
    return module


def read(
    text: str, name: str = "<ptx>", progress: Callable[[int], None] | None = None
) -> tuple[Module, list[Diagnostic]]:
    """Read PTX as far as it can be read; returns the program and every syntax error.

    `progress` is called now and then with how many characters have been read.
    """
    reader = Reader(Source(name, text), progress)
    with collector_paused(), building(), suppress(TooManyFaults):
        module = Module((0, 0), [], source=reader.source)
        _ModuleReader(reader, module).read()
    return module, reader.diagnostics


class _ModuleReader:
    """Reads the outermost level."""

    __slots__ = ("bare", "cursor", "items", "module", "reader", "text")

    def __init__(self, reader: Reader, module: Module) -> None:
        self.reader = reader
        self.text = reader.text
        self.module = module
        self.items: list[Any] = module.items
        self.cursor = Cursor(reader.text, len(reader.text))
        self.bare: Function | None = None  # the last declaration of a function without its `;`

    def read(self) -> None:
        if not self._is_ascii():
            return
        try:
            self.cursor.move(0)
            self._header()
        except ParseError as fault:
            self.reader.note(fault)
            if fault.code in ("missing-version", "unterminated-comment"):
                return
            self._resume(fault, 0)
        going = True
        while going:
            start = self.cursor.start
            self.reader.report(start)
            try:
                self.reader.take_comments(self.cursor, self.items)
                going = self._item()
            except ParseError as fault:
                self.reader.note(fault)
                self._resume(fault, start)

    def _is_ascii(self) -> bool:
        if self.text.isascii():
            return True
        offset = next(offset for offset, character in enumerate(self.text) if not character.isascii())
        character = self.text[offset]
        is_mark = offset == 0 and character == "\ufeff"
        self.reader.note(
            ParseError(
                "non-ascii-character",
                f"PTX is ASCII, and this is {character!a}",
                offset,
                offset + 1,
                notes=("ptxas refuses such a character even in a comment",),
                help="remove the byte order mark" if is_mark else "write it with ASCII characters only",
                repair=(0, 1, "") if is_mark else None,
            )
        )
        return False

    def _header(self) -> None:
        cursor = self.cursor
        module = self.module
        start = cursor.start
        if not cursor.at(".version"):
            if not self.text.strip():
                raise ParseError("missing-version", "the file is empty", 0, 0, help="a PTX file begins with `.version`")
            raise ParseError(
                "missing-version",
                f"expected `.version` at the start of the file, found {cursor.found}",
                cursor.start,
                cursor.end,
                help="begin with `.version 8.0` and `.target sm_80`, or what your kernel needs",
            )
        cursor.advance()
        match = _VERSION.fullmatch(cursor.value)
        between = self.text[cursor.previous_end : cursor.start]
        if match is not None and between.strip(" \t"):
            raise ParseError(
                "missing-version",
                "the PTX version is not beside `.version`",
                start,
                cursor.end,
                notes=("ptxas looks for both on one line, with nothing but blanks between them",),
                help=f"write `.version {cursor.value}`",
                repair=(start, cursor.end, f".version {cursor.value}"),
            )
        if match is None:
            raise ParseError(
                "missing-version",
                f"expected the PTX version, such as `8.0`, after `.version`, found {cursor.found}",
                start,
                cursor.previous_end,
                help="write `.version 8.0`, or what your kernel needs",
            )
        cursor.advance()
        module.version = (int(match[1]), int(match[2]))
        module.header_spans["version"] = (start, cursor.previous_end)
        if not cursor.at(".target"):
            cursor.expected("`.target` after `.version`", code="missing-target", help="name one: `.target sm_80`")
        target = read_target(cursor)
        words = list(target.names)
        module.header_spans["target"] = (target.start or 0, target.end or 0)
        while cursor.at(".target"):  # ptxas takes several
            words.extend(read_target(cursor).names)
        module.targets = words
        if cursor.at(".address_size"):
            start = cursor.start
            cursor.advance()
            module.address_size = read_integer(cursor, "32 or 64 after `.address_size`")
            module.header_spans["address_size"] = (start, cursor.previous_end)
        self._header_comments()

    def _header_comments(self) -> None:
        """Comments up to the end of the header's last line belong to it, all on lines of their own."""
        cursor = self.cursor
        last = cursor.previous_end
        rest = []
        for start, end in cursor.comments:
            if start < last:
                self.module.comments.append(Comment(self.text[start:end].rstrip(), False, start, end))
            else:
                rest.append((start, end))
        cursor.comments[:] = rest

    def _item(self) -> bool:
        """Read one item; returns whether there is more."""
        cursor = self.cursor
        if cursor.kind == END:
            return False
        start = cursor.start
        linkage = None
        if cursor.value in LINKAGES:
            linkage = cursor.advance()[1:]
        value = cursor.value
        item: Item
        if value in (".entry", ".func"):
            if linkage == "common":
                cursor.expected("a variable after `.common`", help="functions are `.visible`, `.weak` or `.extern`")
            self._function(linkage, start)
            return True
        if value in STATE_SPACES or value in (".align", ".attribute"):
            item = read_declaration(cursor, self.reader.scope, linkage, start)
        elif linkage is not None:
            cursor.expected(f"`.entry`, `.func` or a variable after `.{linkage}`")
        elif value == ".section":
            item = read_section(cursor, self.reader)
        elif value == ".nv_intermediate_source_section":
            item = read_source_section(cursor)
        elif value == ".file":
            item = read_file(cursor)
        elif value == ".pragma":
            cursor.advance()
            strings = read_strings(cursor)
            cursor.expect_semicolon("the pragma")
            item = Pragma(tuple(strings), start, cursor.previous_end)
        elif value == ".alias":
            item = self._alias(start)
        else:
            self._no_item()
        if not isinstance(item, Declaration) or item.variables:
            self.items.append(item)
        return True

    def _alias(self, start: int) -> Alias:
        cursor = self.cursor
        cursor.advance()
        name = cursor.name("the name of the alias")
        cursor.expect(",", "between the alias and the function")
        aliasee = cursor.name("the name of the function")
        cursor.expect_semicolon("the alias")
        return Alias(name, aliasee, start, cursor.previous_end)

    def _no_item(self) -> None:
        cursor = self.cursor
        if cursor.at("}"):
            raise ParseError(
                "stray-brace",
                "this `}` closes nothing",
                cursor.start,
                cursor.end,
                help="remove it, or the `}` before it that closes the function too early",
            )
        if cursor.value in (".version", ".target", ".address_size"):
            cursor.expected("a function or a variable", help=f"`{cursor.value}` belongs to the start of the file, once")
        if self.bare is not None and cursor.kind != "dotted":
            function, self.bare = self.bare, None
            raise ParseError(
                "missing-body",
                f"expected `{{` to begin the body of `{function.name}`, found {cursor.found}",
                cursor.start,
                cursor.end,
                help=f"begin the body of `{function.name}` with `{{`",
                other=(function.name_start or 0, function.name_end or 0, "this function has no body"),
            )
        code = "unknown-directive" if cursor.kind == "dotted" else "unexpected-token"
        cursor.expected("a function, a variable or a directive", code=code)

    def _function(self, linkage: str | None, start: int) -> None:
        cursor = self.cursor
        reader = self.reader
        try:
            function = read_header(cursor, linkage, start)
        except ParseError as fault:
            reader.note(fault)
            self._body_after(fault)
            return
        self._comments_above()
        self.items.append(function)
        reader.scope.declare_function(function)
        if cursor.at("{"):
            self._body(function)
            return
        function.end = cursor.previous_end
        if cursor.accept(";"):
            function.end = cursor.previous_end
        else:
            self.bare = function

    def _comments_above(self) -> None:
        """Comments inside the header of a function go above it."""
        count = len(self.items)
        self.reader.take_comments(self.cursor, self.items)
        for comment in self.items[count:]:
            comment.trailing = False

    def _body(self, function: Function) -> None:
        offset = len(self.items) - 1
        scope = self.reader.scope.function()
        for variable in (*function.returns, *function.parameters):
            scope.declare(variable)
        function.end = BodyReader(self.reader, function, scope, self.cursor.start).read()
        self.items[offset:offset] = self.reader.prototypes
        self.reader.prototypes.clear()
        self.cursor.move(function.end)

    def _body_after(self, fault: ParseError) -> None:
        """Read the body after a wrong header too, for the errors in it."""
        match = _BODY.search(self.text, fault.start)
        if match is None:
            self.cursor.move(len(self.text))
        elif match[0] == "{":
            self.cursor.move(match.start())
            self._body(Function("func", "this function"))
        else:
            self.cursor.move(match.end())

    def _resume(self, fault: ParseError, start: int) -> None:
        """Find the next item after an error."""
        at = fault.start
        line_start = self.text.rfind("\n", 0, at) + 1
        if at > start and not self.text[line_start:at].strip() and _BEGINS.match(self.text, at):
            self._move(at)
            return
        match = _RESUME.search(self.text, at)
        self._move(len(self.text) if match is None else match.end())

    def _move(self, at: int) -> None:
        self.cursor.comments.clear()
        try:
            self.cursor.move(at)
        except ParseError as fault:
            self.reader.note(fault)
            self._resume(fault, at)
