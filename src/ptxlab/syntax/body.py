"""Bodies of functions.

Nearly all of a file is instructions, so the loop matches each with one pattern and looks its operands up by their
text. Whatever does not fit falls through to `_other`, which reads token by token and explains what is wrong.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ptxlab.ir import BlockStatement, Declaration, Function, Instruction, Label, Pragma, Statement
from ptxlab.ir.node import draft
from ptxlab.syntax.cursor import END, Cursor
from ptxlab.syntax.debug import make_location, match_location, read_intermediate, read_location
from ptxlab.syntax.declarations import LINKAGES, STATE_SPACES, match_registers, read_declaration
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.functions import (
    read_branch_targets,
    read_call_targets,
    read_header,
    read_prototype,
    read_strings,
    read_target,
)
from ptxlab.syntax.instructions import OPCODES, PARTS, instruction_of_match, read_instruction
from ptxlab.syntax.labels import resolve_labels, too_many_branches
from ptxlab.syntax.reader import Reader
from ptxlab.syntax.recovery import next_statement
from ptxlab.syntax.scope import Complicated, Scope

_Block = draft(BlockStatement)
_Instruction = draft(Instruction)
_Label = draft(Label)

DEEPEST = 128

# Possessive, so that no text takes longer than its length; the bound keeps a file without `;` from being searched to
# its end for each statement.
_STATEMENT = re.compile(r'\s*+(@!?[%$\w]++\s)?+\s*+([a-z][\w.:]{0,200}+)\s*+([^;:/"@]{0,6000}+);', re.ASCII)
_BLANK = re.compile(r"\s*+", re.ASCII)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"([a-zA-Z][\w$]*+|[_$%][\w$]++)\s*+:(?!:)", re.ASCII)
_PLAIN_LABEL = re.compile(r"\s*+[^\s./]", re.ASCII)
_OUTSIDE = frozenset((".entry", ".func", ".file", ".section", ".alias", ".version", ".address_size"))
_LABELLED = frozenset((".branchtargets", ".calltargets", ".callprototype"))


class BodyReader:
    """Reads one body; `statements` and `scope` are those of the innermost open braces."""

    __slots__ = ("at", "function", "has_lists", "open", "opening", "reader", "scope", "statements", "text")

    def __init__(self, reader: Reader, function: Function, scope: Scope, opening: int) -> None:
        self.reader = reader
        self.text = reader.text
        self.function = function
        self.scope = scope
        self.statements: list[Any] = []
        self.open: list[tuple[int, list[Any], Scope]] = []  # where a block starts, and what is around it
        self.opening = opening
        self.at = opening + 1
        self.has_lists = False  # of labels, for indexed branches

    def read(self) -> int:
        """Read to the brace that closes the body; returns the offset after it."""
        outermost = self.statements
        try:
            self._read_statements()
        finally:  # what was read of a body counts, however many faults there are
            while self.open:
                self._leave()
            self.function.body = outermost
        resolve_labels(outermost, self.scope)
        if self.has_lists and (fault := too_many_branches(outermost)) is not None:
            self.reader.note(fault)
        return self.at

    def _read_statements(self) -> None:
        text = self.text
        match_statement = _STATEMENT.match
        find_parts = PARTS.findall
        going = True
        while going:
            append = self.statements.append
            get = self.scope.__getitem__
            at = self.at
            while True:
                match = match_statement(text, at)
                if match is None:
                    location = match_location(text, at)
                    if location is None:
                        break
                    append(make_location(location))
                    at = location.end()
                    continue
                guard, word, operands = match.groups()
                code = OPCODES.get(word)
                if code is None:
                    break
                try:
                    if not operands:
                        values: tuple[Any, ...] = ()
                    elif "{" in operands:
                        parts = find_parts(operands)
                        if ",".join(parts) != operands:
                            break
                        values = tuple(map(get, parts))
                    else:
                        values = tuple(map(get, operands.split(", ")))
                    end = match.end()
                    if guard is None:
                        append(_Instruction(None, code, values, match.start(2), end))
                    else:
                        append(_Instruction(get(guard[:-1]), code, values, match.start(1), end))
                    at = end
                except Complicated:
                    break
            self.at = at
            try:
                going = self._other(match)
            except ParseError as fault:
                self.reader.note(fault)
                going = self._resume(fault)

    def _other(self, match: re.Match[str] | None) -> bool:
        """Read one statement that is not a plain instruction; returns whether the body continues."""
        start = self._statement_start()
        self.reader.report(start)
        first = self.text[start : start + 1]
        if first == "/":
            comment = _COMMENT.match(self.text, start)
            if comment is not None:
                previous = self.statements[-1] if self.statements else None
                self.statements.append(self.reader.comment(start, comment.end(), previous))
                self.at = comment.end()
                return True
        elif first == ".":
            return self._directive(start)
        elif first == "}":
            self.at = start + 1
            if not self.open:
                return False
            self._leave()
            return True
        elif first == "{":
            return self._enter(start)
        elif first == "\\":  # ptxas skips it between statements
            self.at = start + 1
            return True
        elif match is not None:
            found = instruction_of_match(match, self.scope)
            if found is not None:
                self.statements.append(found)
                self.at = match.end()
                return True
        if first != "@":
            label = _LABEL.match(self.text, start)
            if label is not None:
                self._label(label[1], start, label.end())
                return True
        cursor = Cursor(self.text, start)
        if cursor.kind == END:
            self._unclosed(cursor)
        instruction = read_instruction(cursor, self.scope)
        if instruction is None:
            self._label(self.text[start : cursor.previous_end], start, cursor.end)
        else:
            self._finish(instruction, cursor)
        return True

    def _finish(self, statement: Statement, cursor: Cursor) -> None:
        """Take a statement that a cursor has read; the comments inside of it follow it."""
        if not isinstance(statement, Declaration) or statement.variables:
            self.statements.append(statement)
        self.at = cursor.previous_end
        for start, end in cursor.comments:
            if start < self.at:
                previous = self.statements[-1] if self.statements else None
                self.statements.append(self.reader.comment(start, end, previous))

    def _label(self, name: str, start: int, end: int) -> None:
        self.scope.labels.add(name)
        if not _PLAIN_LABEL.match(self.text, end):
            cursor = Cursor(self.text, end)
            if cursor.value in _LABELLED:
                self._finish(self._labelled(cursor, name, start), cursor)
                return
        self.statements.append(_Label(name, start, end))
        self.at = end

    def _labelled(self, cursor: Cursor, name: str, start: int) -> Statement:
        if cursor.at(".branchtargets"):
            self.has_lists = True
            return read_branch_targets(cursor, name, start)
        if cursor.at(".calltargets"):
            return read_call_targets(cursor, self.scope, name, start)
        return read_prototype(cursor, name, start)

    def _directive(self, start: int) -> bool:
        registers = match_registers(self.text, start, self.scope)
        if registers is not None:
            assert registers.end is not None
            self.statements.append(registers)
            self.at = registers.end
            return True
        cursor = Cursor(self.text, start)
        statement: Statement
        if cursor.value in STATE_SPACES or cursor.value in (".align", ".attribute"):
            statement = read_declaration(cursor, self.scope, None, start)
        elif cursor.at(".pragma"):
            cursor.advance()
            strings = tuple(read_strings(cursor))
            cursor.expect_semicolon("the pragma")
            statement = Pragma(strings, start, cursor.previous_end)
        elif cursor.at(".target"):
            statement = read_target(cursor)
        elif cursor.at(".loc"):
            statement = read_location(cursor)
        elif cursor.at(".loc_intermediate"):
            read_intermediate(cursor, self.statements[-1] if self.statements else None)
            self.at = cursor.previous_end
            return True
        elif cursor.value in _OUTSIDE or cursor.value in LINKAGES:
            self._outside(cursor, start)
            return True
        elif cursor.value in _LABELLED:
            cursor.expected(f"a label before `{cursor.value}`", help=f"give it a name: `name: {cursor.value} ...`")
        else:
            cursor.expected("a directive of a function body", code="unknown-directive")
        self._finish(statement, cursor)
        return True

    def _outside(self, cursor: Cursor, start: int) -> None:
        """Take a function's prototype, which ptxas allows here; refuse all else that belongs outside of functions."""
        linkage = cursor.advance() if cursor.value in LINKAGES else None
        if linkage is not None and cursor.value in STATE_SPACES:
            raise ParseError(
                "misplaced-directive",
                f"`{linkage}` cannot be used inside a function",
                start,
                start + len(linkage),
                help="move the declaration out of the function",
            )
        if not cursor.at(".func"):
            self._unclosed(cursor, start)
        prototype = read_header(cursor, linkage[1:] if linkage else None, start)
        if not cursor.at(";"):
            self._unclosed(cursor, start)
        cursor.advance()
        prototype.end = self.at = cursor.previous_end
        self.reader.prototypes.append(prototype)
        self.reader.scope.declare_function(prototype)
        self.scope.forget()

    def _unclosed(self, cursor: Cursor, resume: int | None = None) -> NoReturn:
        offset = self.open[-1][0] if self.open else self.opening
        raise ParseError(
            "unclosed-brace",
            f"expected `}}` to end the body of `{self.function.name}`, found {cursor.found}",
            cursor.start,
            cursor.end,
            help=f"close `{self.function.name}` with `}}`",
            other=(offset, offset + 1, "this brace is still open"),
            resume=resume,
        )

    def _enter(self, start: int) -> bool:
        if len(self.open) >= DEEPEST:
            raise ParseError(
                "nested-too-deeply",
                f"more than {DEEPEST} braces are open at once",
                start,
                start + 1,
                help="write inner blocks one after the other",
            )
        self.open.append((start, self.statements, self.scope))
        self.statements = []
        self.scope = self.scope.inner()
        self.at = start + 1
        return True

    def _leave(self) -> None:
        inner = self.statements
        start, self.statements, outer = self.open.pop()
        self.statements.append(_Block(inner, start, self.at))
        outer.wanted |= self.scope.wanted - self.scope.labels
        self.scope = outer

    def _resume(self, fault: ParseError) -> bool:
        """Find the next statement after an error; returns whether the body continues there."""
        if fault.code == "nested-too-deeply" or fault.start >= len(self.text):
            self.at = len(self.text)
            return False
        if fault.resume is not None:
            self.at = fault.resume
            return False
        self.at = next_statement(self.text, self._statement_start(), fault)
        return self.at < len(self.text)

    def _statement_start(self) -> int:
        blank = _BLANK.match(self.text, self.at)
        assert blank is not None
        return blank.end()
