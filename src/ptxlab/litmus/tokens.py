"""The text of a litmus test as tokens, and a cursor over them that says what it wanted and what it found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from ptxlab.report import PtxError, Source, Span, error
from ptxlab.report.nearest import nearest

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\(\*.*?\*\)|//[^\n]*|<<.*?>>)
      | (?P<text>"[^"]*")
      | (?P<number>0[xX][0-9a-fA-F]+|[0-9]+)
      | (?P<word>[%$A-Za-z_][\w$]*(?:(?:\.|::)[A-Za-z_]\w*)*)
      | (?P<sign>==|!=|<=|>=|/\\|\\/|&&|\|\||[{}()\[\];:,|=~&<>@.*+-])""",
    re.VERBOSE | re.DOTALL,
)
END = "end"


@dataclass(frozen=True)
class Token:
    """A piece of the text: a `word` with its dots, a `number`, a `text` in quotes, a `sign`, or the `end`."""

    kind: str
    text: str
    span: Span


def tokenize(source: Source) -> list[Token]:
    """All tokens of a text, without comments, and an `end`."""
    found, at = [], 0
    while at < len(source.text):
        match = _TOKEN.match(source.text, at)
        if match is None:
            refuse(Span(source, at, at + 1), f"a litmus test has no `{source.text[at]}`")
        assert match.lastgroup is not None
        if match.lastgroup != "blank":
            found.append(Token(match.lastgroup, match[0], Span(source, at, match.end())))
        at = match.end()
    found.append(Token(END, "", Span(source, at, at)))
    return found


def refuse(span: Span, message: str, label: str = "", help: str | None = None) -> NoReturn:
    """Stop reading: the test is not as litmus tests are."""
    raise PtxError([error("bad-litmus", message, span, label, helps=() if help is None else (help,))])


class Cursor:
    """The tokens that are still to be read."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at = tokens, 0

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self._tokens[self._at]

    def take(self) -> Token:
        """The next token, read."""
        token = self.next
        if token.kind != END:
            self._at += 1
        return token

    def save(self) -> int:
        """Where the cursor is, for `restore`."""
        return self._at

    def restore(self, at: int) -> None:
        """Go back to where the cursor was."""
        self._at = at

    def accept(self, *texts: str) -> Token | None:
        """The next token if it is one of `texts`."""
        return self.take() if self.next.kind != "text" and self.next.text in texts else None

    def expect(self, *texts: str, after: str = "") -> Token:
        """The next token, which must be one of `texts`."""
        found = self.accept(*texts)
        if found is None:
            self.wrong(" or ".join(f"`{text}`" for text in texts), after)
        return found

    def word(self, what: str, known: Iterable[str] | None = None) -> Token:
        """The next token, which must be a word, perhaps one of those known."""
        token = self.next
        if token.kind != "word":
            self.wrong(what)
        if known is not None and token.text not in known:
            close = nearest(token.text, list(known))
            refuse(token.span, f"there is no {what} `{token.text}`", help=f"did you mean `{close}`?" if close else None)
        return self.take()

    def number(self, what: str) -> int:
        """The next token, which must be a number."""
        minus = self.accept("-")
        if self.next.kind != "number":
            self.wrong(what)
        value = int(self.take().text, 0)
        return -value if minus else value

    def wrong(self, wanted: str, after: str = "") -> NoReturn:
        """Stop: something else than `wanted` comes next."""
        token = self.next
        found = "the end of the file" if token.kind == END else f"`{token.text}`"
        refuse(token.span, f"expected {wanted}{f' after {after}' if after else ''}, found {found}")
