"""Bodies of functions.

Nearly all of a file is instructions, so the loop matches each with one pattern and looks its operands up by their
text. Whatever does not fit falls through to `_other`, which reads token by token and explains what is wrong.
"""

from __future__ import annotations

import re
from typing import Any

from ptxlab.ir import (
    Arguments,
    Block,
    BranchTargets,
    CallTargets,
    Declaration,
    Function,
    FunctionReference,
    Instruction,
    Label,
    Pragma,
    Statement,
    Unresolved,
)
from ptxlab.isa import Opcode, opcode
from ptxlab.syntax.constants import read_integer
from ptxlab.syntax.cursor import END, Cursor
from ptxlab.syntax.debug import make_location, match_location, read_location
from ptxlab.syntax.declarations import LINKAGES, STATE_SPACES, read_declaration
from ptxlab.syntax.faults import Fault
from ptxlab.syntax.functions import read_prototype, read_strings, read_target
from ptxlab.syntax.labels import resolve_labels
from ptxlab.syntax.operands import operand_of_text, read_operands
from ptxlab.syntax.reader import Reader
from ptxlab.syntax.scope import Complicated, Scope

DEEPEST = 128

# The bound keeps a file without `;` from being searched to its end again and again.
_STATEMENT = re.compile(r'\s*(@!?[%$\w]+\s)?\s*([a-z][\w.:]*)\s*([^;/"]{0,6000});', re.ASCII)
_OPCODE = re.compile(r"[a-z]\w*(?:\.\w+(?:::\w+)*)*", re.ASCII)
_PARTS = re.compile(r"(?:[^,()\[\]{}]|\[[^\[\]]*\]|\{[^{}]*\})+")
_CALL = re.compile(r"(?:\(([^()]*)\)\s*,\s*)?([\w$%]+)\s*(?:,\s*\(([^()]*)\)\s*)?(?:,\s*([\w$%]+)\s*)?", re.ASCII)
_BLANK = re.compile(r"\s*", re.ASCII)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"([a-zA-Z][\w$]*|[_$%][\w$]+)\s*:(?!:)", re.ASCII)
_PLAIN_LABEL = re.compile(r"\s*[^\s./]")
_STATEMENT_BEGINS = r"@|\.[a-z]|[a-z][\w.]*(?::[\w:.]*)?(?:\s*;|[ \t]+[%$\w\[{(])|[\w$%]+\s*:|\}"
_BEGINS = re.compile(_STATEMENT_BEGINS, re.ASCII)
_RESUME = re.compile(rf"\{{[^{{}};\n]*\}}|;|[{{}}]|\n[ \t]*(?={_STATEMENT_BEGINS})", re.ASCII)
_NO_MODIFIERS = frozenset((".reg", ".loc", ".pragma", ".entry", ".func", ".file", ".section", ".visible", ".extern"))
_OUTSIDE = frozenset((".entry", ".func", ".file", ".section", ".alias", ".version", ".address_size"))

_opcodes: dict[str, Opcode] = {}


class BodyReader:
    """Reads one body; `statements` and `scope` are those of the innermost open braces."""

    __slots__ = ("at", "function", "open", "opening", "reader", "scope", "statements", "text")

    def __init__(self, reader: Reader, function: Function, scope: Scope, opening: int) -> None:
        self.reader = reader
        self.text = reader.text
        self.function = function
        self.scope = scope
        self.statements: list[Any] = []
        self.open: list[tuple[Block, list[Any], Scope]] = []
        self.opening = opening
        self.at = opening + 1

    def read(self) -> int:
        """Read to the brace that closes the body; returns the offset behind it."""
        outermost = self.statements
        self.function.body = outermost
        text = self.text
        match_statement = _STATEMENT.match
        find_parts = _PARTS.findall
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
                code = _opcodes.get(word)
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
                        append(Instruction(None, code, values, match.start(2), end))
                    else:
                        append(Instruction(get(guard[:-1]), code, values, match.start(1), end))
                    at = end
                except Complicated:
                    break
            self.at = at
            try:
                going = self._other(match)
            except Fault as fault:
                self.reader.note(fault)
                going = self._resume(fault)
        self._close_open()
        resolve_labels(outermost, self.scope)
        return self.at

    def _other(self, match: re.Match[str] | None) -> bool:
        """Read one statement that is not a plain instruction; returns whether the body goes on."""
        blank = _BLANK.match(self.text, self.at)
        assert blank is not None
        start = blank.end()
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
            return self._close(start)
        elif first == "{":
            return self._open(start)
        elif match is not None:
            found = self._less_plain(match)
            if found is not None:
                self.statements.append(found)
                self.at = match.end()
                return True
        if first != "@":
            label = _LABEL.match(self.text, start)
            if label is not None:
                self._label(label[1], start, label.end())
                return True
        return self._careful(start)

    def _less_plain(self, match: re.Match[str]) -> Instruction | None:
        """The instruction of a match that the loop gave up: a new opcode, a call, or an unusual spelling."""
        guard, word, text = match.groups()
        code = _opcodes.get(word)
        if code is None:
            if _OPCODE.fullmatch(word) is None:
                return None
            code = _opcodes[word] = opcode(word)
        scope = self.scope
        try:
            values: tuple[Any, ...] = ()
            if text and code.mnemonic == "call":
                found = self._call(text)
                if found is None:
                    return None
                values = found
            elif text:
                parts = _PARTS.findall(text)
                if ",".join(parts) != text:
                    return None
                values = tuple([self._operand(part.strip()) for part in parts])
            if guard is None:
                return Instruction(None, code, values, match.start(2), match.end())
            return Instruction(scope[guard.strip()], code, values, match.start(1), match.end())
        except Complicated:
            return None

    def _operand(self, text: str) -> Any:
        try:
            return self.scope[text]
        except Complicated:
            if "(" in text:
                # In a call it would be a list of arguments, elsewhere an expression: not for the table of texts.
                return operand_of_text(text, self.scope)
            operand = self.scope[text] = operand_of_text(text, self.scope)
            return operand

    def _call(self, text: str) -> tuple[Any, ...] | None:
        match = _CALL.fullmatch(text)
        if match is None:
            return None
        returns, name, arguments, targets = match.groups()
        values: list[Any] = [] if returns is None else [self._arguments(returns)]
        values.append(self.scope[name])
        if arguments is not None:
            values.append(self._arguments(arguments))
        if targets is not None:
            values.append(self.scope[targets])
        return tuple(values)

    def _arguments(self, text: str) -> Arguments:
        if not text.strip():
            return Arguments(())
        return Arguments(tuple([self._operand(part.strip()) for part in text.split(",")]))

    def _careful(self, start: int) -> bool:
        cursor = Cursor(self.text, start)
        scope = self.scope
        guard = None
        if cursor.accept("@"):
            negated = cursor.accept("!")
            guard = scope.guard(cursor.name("a predicate register after `@`"), negated)
        if cursor.kind == END:
            self._unclosed(cursor)
        if cursor.kind != "name":
            what = "an instruction after the guard" if guard else "an instruction, a directive, a label or `}`"
            cursor.expected(what, help="remove it" if cursor.at(";") else "")
        word = cursor.advance()
        while cursor.value[:1] == "." and cursor.value not in _NO_MODIFIERS and cursor.modifier():
            word += cursor.advance()
        code = opcode(word)
        operands = read_operands(cursor, scope, code.mnemonic == "call")
        cursor.expect_semicolon(f"`{word}`")
        self.statements.append(Instruction(guard, code, operands, start, cursor.previous_end))
        self._finish(cursor)
        return True

    def _finish(self, cursor: Cursor) -> None:
        """Go on behind the statement a cursor has read; the comments inside of it follow it."""
        self.at = cursor.previous_end
        for start, end in cursor.comments:
            if start < self.at:
                self.statements.append(self.reader.comment(start, end, self.statements[-1]))

    def _label(self, name: str, start: int, end: int) -> None:
        self.scope.labels.add(name)
        if _PLAIN_LABEL.match(self.text, end):
            self.statements.append(Label(name, start, end))
            self.at = end
            return
        cursor = Cursor(self.text, end)
        if cursor.at(".branchtargets"):
            self._branch_targets(cursor, name, start)
        elif cursor.at(".calltargets"):
            cursor.advance()
            found = [self._call_target(cursor)]
            while cursor.accept(","):
                found.append(self._call_target(cursor))
            cursor.expect_semicolon("the list of functions")
            self.statements.append(CallTargets(name, tuple(found), start, cursor.previous_end))
            self._finish(cursor)
        elif cursor.at(".callprototype"):
            self.statements.append(read_prototype(cursor, name, start))
            self._finish(cursor)
        else:
            self.statements.append(Label(name, start, end))
            self.at = end

    def _branch_targets(self, cursor: Cursor, name: str, start: int) -> None:
        cursor.advance()
        targets: list[str] = []
        while True:
            target = cursor.name("a label")
            if cursor.accept("<"):
                count = read_integer(cursor, "how many labels there are")
                cursor.expect(">", "after the number of labels")
                targets.extend(f"{target}{number}" for number in range(min(count, 1 << 20)))
            else:
                targets.append(target)
            if not cursor.accept(","):
                break
        cursor.expect_semicolon("the list of labels")
        self.statements.append(BranchTargets(name, tuple(targets), start, cursor.previous_end))
        self._finish(cursor)

    def _call_target(self, cursor: Cursor) -> FunctionReference | Unresolved:
        name = cursor.name("the name of a function")
        found = self.scope.resolve(name)
        return found if isinstance(found, FunctionReference) else Unresolved(name)

    def _directive(self, start: int) -> bool:
        cursor = Cursor(self.text, start)
        statement: Statement
        if cursor.value in STATE_SPACES or cursor.at(".align"):
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
        elif cursor.value in _OUTSIDE or cursor.value in LINKAGES:
            raise self._not_here(cursor)
        elif cursor.value in (".branchtargets", ".calltargets", ".callprototype"):
            cursor.expected(f"a label before `{cursor.value}`", help=f"give it a name: `name: {cursor.value} ...`")
        else:
            cursor.expected("a directive of a function body", code="unknown-directive")
        if not isinstance(statement, Declaration) or statement.variables:
            self.statements.append(statement)
        self._finish(cursor)
        return True

    def _not_here(self, cursor: Cursor) -> Fault:
        value, start, end = cursor.value, cursor.start, cursor.end
        cursor.advance()
        if value in LINKAGES and cursor.value in STATE_SPACES:
            return Fault(
                "misplaced-directive",
                f"`{value}` cannot be used inside a function",
                start,
                end,
                help="move the declaration out of the function",
            )
        return Fault(
            "unclosed-brace",
            f"expected `}}` to end the body of `{self.function.name}` before `{value}`",
            start,
            end,
            f"`{value}` cannot stand inside a function",
            help="close the function with `}`",
            other=self._innermost(),
        )

    def _innermost(self) -> tuple[int, int, str]:
        place = (self.open[-1][0].start or 0) if self.open else self.opening
        return place, place + 1, "this brace is still open"

    def _unclosed(self, cursor: Cursor) -> None:
        raise Fault(
            "unclosed-brace",
            f"expected `}}` to end the body of `{self.function.name}`, found the end of the file",
            cursor.start,
            cursor.end,
            help="close it with `}`",
            other=self._innermost(),
        )

    def _open(self, start: int) -> bool:
        if len(self.open) >= DEEPEST:
            raise Fault(
                "nested-too-deeply",
                f"more than {DEEPEST} braces are open at once",
                start,
                start + 1,
                help="write inner blocks one after the other",
            )
        block = Block([], start, None)
        self.statements.append(block)
        self.open.append((block, self.statements, self.scope))
        self.statements = block.body
        self.scope = self.scope.inner()
        self.at = start + 1
        return True

    def _close(self, start: int) -> bool:
        self.at = start + 1
        if not self.open:
            return False
        block, self.statements, outer = self.open.pop()
        outer.wanted |= self.scope.wanted - self.scope.labels
        self.scope = outer
        block.end = self.at
        return True

    def _close_open(self) -> None:
        while self.open:
            block, self.statements, outer = self.open.pop()
            block.end = self.at
            outer.wanted |= self.scope.wanted - self.scope.labels
            self.scope = outer

    def _resume(self, fault: Fault) -> bool:
        """Find the next statement after an error; returns whether the body goes on there."""
        text = self.text
        at = fault.start
        if fault.code == "nested-too-deeply" or at >= len(text):
            self.at = len(text)
            return False
        if fault.code == "unclosed-brace":
            self.at = at
            return False
        begins_line = text[text.rfind("\n", 0, at) + 1 : at].isspace() or text[at - 1 : at] == "\n"
        if begins_line and at > self._statement_start() and _BEGINS.match(text, at):
            self.at = at
            return True
        at = fault.end if at == self._statement_start() and text[at] != ";" else at
        while (match := _RESUME.search(text, at)) is not None:
            at = match.end()
            sign = match[0]
            if sign[0] == "{" and len(sign) > 1:
                continue
            self.at = match.start() if sign in "{}" else at
            return True
        self.at = len(text)
        return False

    def _statement_start(self) -> int:
        blank = _BLANK.match(self.text, self.at)
        return self.at if blank is None else blank.end()
