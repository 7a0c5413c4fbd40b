"""Tokens of PTX, one at a time.

Most of a file never gets here: `body.py` matches whole statements. The cursor reads what is left, directives,
expressions, odd spellings and errors, where a clear message matters more than speed.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ptxlab.syntax.errors import ParseError

# The order decides: `0f3F800000` is a float, not `0` and a name; `%4` is a name, as ptxas reads it, not a remainder.
_TOKEN = re.compile(
    r"""
    (?P<float>0[fF][0-9a-fA-F]{8} | 0[dD][0-9a-fA-F]{16} | (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w) | \d+[eE][+-]?\d+)
  | (?P<integer>0[xX][0-9a-fA-F]+U? | 0[bB][01]+U? | 0[0-7]*U? | [1-9][0-9]*U?)
  | (?P<name>[a-zA-Z][\w$]* | [_$%][\w$]+)
  | (?P<dotted>\.[a-zA-Z0-9_$]+(?:::\w+)*(?:(?<=::\d):\d+)?)
  | (?P<string>"[^"\n]*")
  | (?P<sink>_)
  | (?P<sign><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%~!<>=&^|?:;,(){}\[\]@])
  | (?P<stray>.)
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
# ptxas lets a string continue over lines. Where what follows it could not follow a string, its end is rather the start
# of another one, and the quote before is the one that is missing.
_LONG_STRING = re.compile(r'"[^"]*"(?=[ \t]*(?:[,;]|//|\d|\n|$))')
_BLANK = re.compile(r"\s+", re.ASCII)
_MODIFIER = re.compile(r"\.\w+(?:::\w+)*(?:(?<=::\d):\d+)?", re.ASCII)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

END = "end"


class Cursor:
    """A position in the text: the token there (`kind`, `value`, from `start` to `end`) and how to get on."""

    __slots__ = ("comments", "end", "kind", "previous_end", "start", "text", "value")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.comments: list[tuple[int, int]] = []
        self.previous_end = at
        self.end = at
        self.start = at
        self.kind = self.value = ""
        self._read(at)

    def move(self, at: int) -> None:
        """Read the token at or after an offset."""
        self.previous_end = at
        self._read(at)

    def advance(self) -> str:
        """Go to the next token; returns the text of the previous one."""
        value = self.value
        self.previous_end = self.end
        self._read(self.end)
        return value

    def _read(self, at: int) -> None:
        at = self._skip(at)
        self.start = at
        match = _TOKEN.match(self.text, at)
        if match is None:
            self.kind, self.value, self.end = END, "", at
            return
        kind = match.lastgroup
        assert kind is not None
        self.kind, self.value, self.end = kind, match.group(), match.end()
        if self.kind == "stray" and self.value == '"':
            long = _LONG_STRING.match(self.text, at)
            if long is not None:
                self.kind, self.value, self.end = "string", long.group(), long.end()
                return
            self.end = self._line_end(at)
            raise ParseError(
                "unterminated-string",
                'the string has no closing `"` on its line',
                at,
                self.end,
                "starts here",
                help='close it with `"`',
            )

    def _skip(self, at: int) -> int:
        text = self.text
        while True:
            blank = _BLANK.match(text, at)
            if blank is not None:
                at = blank.end()
            if not text.startswith(("//", "/*"), at):
                return at
            comment = _COMMENT.match(text, at)
            if comment is None:
                self.start, self.end, self.kind, self.value = len(text), len(text), END, ""
                raise ParseError(
                    "unterminated-comment",
                    "the comment is never closed",
                    at,
                    at + 2,
                    "starts here",
                    help="close it with `*/`",
                )
            self.comments.append(comment.span())
            at = comment.end()

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def modifier(self) -> bool:
        """Re-read a token that starts with a dot as a modifier: `.1d` is one, although `.1` could be a number."""
        match = _MODIFIER.match(self.text, self.start)
        if match is None:
            return False
        self.kind, self.value, self.end = "dotted", match.group(), match.end()
        return True

    def at(self, value: str) -> bool:
        """Whether this is the token `value`."""
        return self.value == value and self.kind != "string"

    def accept(self, value: str) -> bool:
        """Go past the token `value` if it is next."""
        if self.value == value and self.kind != "string":
            self.advance()
            return True
        return False

    def expect(self, value: str, where: str) -> None:
        """Go past the token `value`, which must be next; `where` completes "expected `value` ..."."""
        if not self.accept(value):
            self.expected(f"`{value}` {where}")

    def name(self, what: str) -> str:
        """Go past a name, which must be next."""
        if self.kind != "name":
            self.expected(what)
        return self.advance()

    @property
    def found(self) -> str:
        """The next token, as a message names it."""
        return "the end of the file" if self.kind == END else f"`{self.value}`"

    def expected(self, what: str, *, help: str = "", label: str = "", code: str = "unexpected-token") -> NoReturn:
        """Report that something else should be here."""
        raise ParseError(code, f"expected {what}, found {self.found}", self.start, self.end, label, help=help)

    def expect_semicolon(self, after: str) -> None:
        """Go past the `;` that ends a statement."""
        if self.kind == "sign" and self.value == ";":
            self.advance()
            return
        raise ParseError(
            "missing-semicolon",
            f"expected `;` after {after}, found {self.found}",
            self.start,
            self.end,
            help=f"end {after} with `;`",
            repair=(self.previous_end, self.previous_end, ";"),
        )
