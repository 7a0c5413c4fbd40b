"""A litmus test from its text, as the public tests of PTX are written.

    PTX MP
    { x = 0; y = 0; P1:r0 = 0; }
     P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
     st.weak x, 1        | ld.acquire.gpu r0, y ;
     st.release.gpu y, 1 | ld.weak r1, x        ;
    ~exists (P1:r0 == 1 /\\ P1:r1 == 0)

Two things are ours: a thread may be in a cluster, `P0@cta 0,cluster 1,gpu 0`, and a variable may be an mbarrier that
expects so many arrivals, `b @ mbarrier 2`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ptxlab.litmus.instructions import PROXIES, InstructionReader
from ptxlab.litmus.program import GENERIC, Branch, Condition, Instruction, Label, Litmus, Position, Thread, Variable
from ptxlab.litmus.tokens import END, Cursor, Token, refuse, tokenize
from ptxlab.report import Source
from ptxlab.syntax import read_text

QUANTIFIERS = ("exists", "forall", "~", "not", "final")
COMPARISONS = ("==", "=", "!=", "<", "<=", ">", ">=")
TRUE = Condition("true")


@dataclass
class _Column:
    """A thread while it is read."""

    name: str
    where: Position
    token: Token
    instructions: list[Instruction] = field(default_factory=list)


def load(path: str | os.PathLike[str]) -> Litmus:
    """The test in a file; raises `PtxError` with what can't be read."""
    return read(read_text(path), os.fspath(path))


def read(text: str, name: str = "test.litmus") -> Litmus:
    """The test in a text; raises `PtxError` with what can't be read."""
    return _Reader(Source(name, text)).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._cursor = Cursor(tokenize(source))
        self._variables: dict[str, Variable] = {}
        self._registers: dict[int, dict[str, int]] = {}

    def read(self) -> Litmus:
        cursor = self._cursor
        cursor.expect("PTX", "ptx")
        name = self._name()
        cursor.expect("{")
        while not cursor.accept("}"):
            if not cursor.accept(";"):
                self._declaration()
        cursor.accept(";")
        columns = self._columns()
        self._rows(columns)
        self._locations()
        filter = self._condition() if cursor.accept("filter") else None
        cursor.accept(";")
        quantifier, condition = self._final()
        threads = tuple(
            Thread(column.name, column.where, tuple(column.instructions), self._registers.get(number, {}))
            for number, column in enumerate(columns)
        )
        self._check_condition(condition, threads)
        return Litmus(name, self._source, self._variables, threads, quantifier, condition, filter)

    def _name(self) -> str:
        """The rest of the first line; what follows up to the brace describes the test."""
        first = self._cursor.next
        _, end = self._source.line_bounds(self._source.position(first.span.start)[0])
        name = self._source.text[first.span.start : end].partition("{")[0].strip()
        while self._cursor.next.text != "{":
            if self._cursor.next.kind == END:
                self._cursor.wrong("`{` and the initial values")
            self._cursor.take()
        return name or Path(self._source.name).stem

    def _declaration(self) -> None:
        cursor = self._cursor
        thread = self._thread_number()
        if thread is not None:
            register = cursor.word("a register").text
            cursor.expect("=")
            self._registers.setdefault(thread, {})[register] = cursor.number("a number")
            return
        token = cursor.word("a variable")
        if cursor.accept("@"):
            self._alias(token)
            return
        cursor.expect("=", "@", after=f"`{token.text}`")
        if cursor.next.kind == "word" or cursor.accept("&"):
            refuse(token.span, "variables that hold addresses are not supported")
        self._variables[token.text] = Variable(token.text, token.text, token.text, cursor.number("a number"))

    def _alias(self, token: Token) -> None:
        """`name @ proxy aliases other`, or `name @ mbarrier count`."""
        proxy = self._cursor.word("proxy", (*PROXIES, "mbarrier")).text
        if proxy == "mbarrier":
            expected = self._cursor.number("how many arrivals it expects")
            self._variables[token.text] = Variable(token.text, token.text, token.text, expected=expected)
            return
        self._cursor.expect("aliases")
        other = self._cursor.word("a variable")
        if other.text not in self._variables:
            refuse(other.span, f"there is no variable `{other.text}` to alias")
        of = self._variables[other.text]
        address = token.text if proxy == GENERIC else of.address
        self._variables[token.text] = Variable(token.text, of.location, address, of.initial)

    def _columns(self) -> list[_Column]:
        cursor = self._cursor
        columns: list[_Column] = []
        while True:
            token = cursor.word("a thread such as `P0@cta 0,gpu 0`")
            if token.text != f"P{len(columns)}":
                refuse(token.span, f"expected thread `P{len(columns)}`, found `{token.text}`")
            cursor.expect("@", after=f"`{token.text}`")
            where = {"cta": 0, "cluster": -1, "gpu": 0}
            while True:
                level = cursor.word("level", where).text
                where[level] = cursor.number(f"the number of its {level}")
                if not cursor.accept(","):
                    break
            cluster = where["cluster"] if where["cluster"] >= 0 else -1 - where["cta"]  # each CTA is one of its own
            columns.append(_Column(token.text, Position(where["cta"], cluster, where["gpu"]), token))
            if not cursor.accept("|"):
                break
        cursor.expect(";", after="the threads")
        return columns

    def _rows(self, columns: list[_Column]) -> None:
        cursor = self._cursor
        reader = InstructionReader(cursor, self._variables)
        while not self._at_end_of_program():
            for number, column in enumerate(columns):
                while cursor.next.text not in ("|", ";"):
                    one = reader.read()
                    column.instructions.append(one)
                    if not isinstance(one, Label):
                        break
                if number + 1 < len(columns) and cursor.next.text == ";":
                    break  # the rest of the row is empty
                cursor.expect("|" if number + 1 < len(columns) else ";", after="an instruction")
            else:
                continue
            cursor.expect(";")
        for column in columns:
            self._check_labels(column)

    def _at_end_of_program(self) -> bool:
        words = ("exists", "forall", "filter", "locations", "not", "final", "~")
        return self._cursor.next.kind == END or self._cursor.next.text in words

    def _check_labels(self, column: _Column) -> None:
        names = [one.name for one in column.instructions if isinstance(one, Label)]
        for one in column.instructions:
            if isinstance(one, Branch) and one.label not in names:
                refuse(one.span, f"thread `{column.name}` has no label `{one.label}`")
            if isinstance(one, Label) and names.count(one.name) > 1:
                refuse(one.span, f"thread `{column.name}` has the label `{one.name}` twice")

    def _locations(self) -> None:
        """`locations [x; 0:r0;]` says what to show; all is shown."""
        if self._cursor.accept("locations"):
            while self._cursor.take().text != "]":
                if self._cursor.next.kind == END:
                    self._cursor.wrong("`]`", after="`locations`")

    def _final(self) -> tuple[str, Condition]:
        cursor = self._cursor
        if cursor.next.kind == END:
            return "exists", TRUE
        first = cursor.expect(*QUANTIFIERS).text
        if first in ("~", "not"):
            cursor.expect("exists", after=f"`{first}`")
            first = "~exists"
        condition = self._condition()
        cursor.accept(";")
        if cursor.next.kind != END:
            cursor.wrong("the end of the file", after="the condition")
        return "exists" if first == "final" else first, condition

    def _condition(self) -> Condition:
        parts = [self._conjunction()]
        while self._cursor.accept("\\/", "||"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Condition("or", tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._term()]
        while self._cursor.accept("/\\", "&&"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Condition("and", tuple(parts))

    def _term(self) -> Condition:
        if self._cursor.accept("~", "not"):
            return Condition("not", (self._term(),))
        if self._cursor.accept("("):
            inner = self._condition()
            self._cursor.expect(")")
            return inner
        if self._cursor.accept("true"):
            return TRUE
        left = self._value()
        comparison = self._cursor.expect(*COMPARISONS).text
        return Condition("==" if comparison == "=" else comparison, (left, self._value()))

    def _value(self) -> int | str | tuple[int, str]:
        thread = self._thread_number()
        if thread is not None:
            return thread, self._cursor.word("a register").text
        if self._cursor.next.kind != "word" and self._cursor.next.text != "[":
            return self._cursor.number("a register, a variable or a number")
        bracket = self._cursor.accept("[")
        token = self._cursor.word("a variable")
        if bracket:
            self._cursor.expect("]")
        if token.text not in self._variables:
            refuse(token.span, f"there is no variable `{token.text}`", help="a register is written `P0:r1`")
        return token.text

    def _thread_number(self) -> int | None:
        """The number in `P1:` or `1:`, if that comes next."""
        cursor = self._cursor
        token = cursor.next
        text = token.text.removeprefix("P")
        if not text.isdigit() or (token.kind == "word") == (text == token.text):
            return None
        before = cursor.save()
        cursor.take()
        if cursor.accept(":"):
            return int(text)
        cursor.restore(before)
        return None

    def _check_condition(self, condition: Condition, threads: tuple[Thread, ...]) -> None:
        for part in condition.parts:
            if isinstance(part, Condition):
                self._check_condition(part, threads)
            elif isinstance(part, tuple) and part[0] >= len(threads):
                refuse(self._cursor.next.span, f"the condition names thread P{part[0]}, and there is none")
