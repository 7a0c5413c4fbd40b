"""Declarations in a text, and the words that refer to them.

A scope is a pair of braces, with the header before it where that is of a function. A name is looked up from the scope
it is in outwards; `%r<6>` declares `%r0` to `%r5`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ptxlab.editor.document import Document, Word

_SPACES = frozenset(".reg .shared .global .const .local .param .tex".split())
_FUNCTIONS = frozenset((".entry", ".func"))
_STOPS = _SPACES | _FUNCTIONS | {"{", "}", ";", ":"}
_NUMBERED = re.compile(r"(.*?[^\d])(\d+)")


@dataclass(eq=False)
class DeclaredName:
    """A name that is declared: a variable or register, a parameter, a function or a label."""

    name: str
    kind: str  # "register", "variable", "parameter", "function", "label"
    word: Word
    text: str  # as it is declared: `.reg .b32 %r<6>`
    count: int | None = None  # of `%r<6>`


@dataclass(eq=False)
class NameScope:
    """A stretch of a text with its own names."""

    start: int
    end: int
    outer: NameScope | None
    names: dict[str, DeclaredName] = field(default_factory=dict)
    inner: list[NameScope] = field(default_factory=list)

    def at(self, offset: int) -> NameScope:
        """The innermost scope that an offset is in."""
        found = next((scope for scope in self.inner if scope.start <= offset <= scope.end), None)
        return found.at(offset) if found else self

    def find(self, name: str) -> DeclaredName | None:
        """What a name refers to here."""
        numbered = _NUMBERED.fullmatch(name)
        scope: NameScope | None = self
        while scope is not None:
            if (found := scope.names.get(name)) and found.count is None:
                return found
            family = scope.names.get(f"{numbered[1]}<>") if numbered else None
            if numbered and family and family.count is not None and int(numbered[2]) < family.count:
                return family
            scope = scope.outer
        return None

    def visible(self) -> Iterator[DeclaredName]:
        """All names that can be written here, the nearest first."""
        scope: NameScope | None = self
        while scope is not None:
            yield from scope.names.values()
            scope = scope.outer


@lru_cache(maxsize=8)
def scopes_of(document: Document) -> NameScope:
    """The scopes of a text; the outermost is the module."""
    return _Reader(document).read()


def references(document: Document, declaration: DeclaredName) -> list[Word]:
    """The words that refer to a declaration, and its own."""
    module = scopes_of(document)
    stem = declaration.name
    words = document.words
    named = [words[at] for at, text in enumerate(words.texts) if text.startswith(stem)]
    return [word for word in named if word == declaration.word or module.at(word.start).find(word.text) is declaration]


class _Reader:
    """Reads the words of a text one after the other."""

    def __init__(self, document: Document) -> None:
        self.document, self.words = document, document.words
        self.module = NameScope(0, len(document.text), None)

    def read(self) -> NameScope:
        scope, at, header = self.module, 0, None
        braces: list[bool] = []  # whether each that is open is of a block
        texts = self.words.texts
        while at < len(texts):
            if texts[at] not in _STOPS:
                at += 1
                continue
            word = Word(texts[at], self.words.starts[at])
            if word.text == "{":
                braces.append(self._opens_block(at))
                if braces[-1]:
                    if header is None:
                        header = NameScope(word.start, len(self.document.text), scope)
                        scope.inner.append(header)
                    scope, header = header, None
            elif word.text == "}":
                if (braces.pop() if braces else False) and scope.outer is not None:
                    scope.end = word.end
                    scope = scope.outer
            elif word.text in _FUNCTIONS:
                header = NameScope(word.start, len(self.document.text), scope)
                at = self._function(at, scope, header)
                scope.inner.append(header)
                continue
            elif word.text in _SPACES and self._starts_statement(at):
                at = self._variables(at, scope, ";", "variable")
                continue
            elif word.text == ":" and at and self.words[at - 1].kind == "name" and self._starts_statement(at - 1):
                self._declare(scope, self.words[at - 1], "label", f"{texts[at - 1]}:")
            elif header is not None and word.text == ";":  # a declaration of a function, without a body
                header.end, header = word.end, None
            at += 1
        return self.module

    def _text(self, at: int) -> str:
        return self.words.texts[at] if 0 <= at < len(self.words.texts) else ""

    def _opens_block(self, at: int) -> bool:
        """Whether a brace is not that of a vector or of initial values: they follow an operand or `=`."""
        return self._text(at - 1) in ("", ";", "{", "}", ")", ":") or self._is_header(at)

    def _is_header(self, at: int) -> bool:
        """Whether what precedes a brace is a function without parameters, or a directive such as `.maxntid 128`."""
        while at > 0 and self._text(at - 1) not in (";", "{", "}"):
            at -= 1
            if self._text(at) in _FUNCTIONS:
                return True
        return False

    def _starts_statement(self, at: int) -> bool:
        before = at - 1
        while self._text(before) in (".visible", ".extern", ".weak", ".common"):
            before -= 1
        return self._text(before) in ("", ";", "{", "}", ":") or before < 0 or self._is_after_header(before)

    def _is_after_header(self, at: int) -> bool:
        """Whether a word ends `.version 8.0`, `.target sm_80` or `.address_size 64`, which no semicolon does."""
        while self.words[at].text == "," or self._text(at - 1) == ",":
            at -= 1
        return self._text(at - 1) in (".version", ".target", ".address_size")

    def _function(self, at: int, scope: NameScope, header: NameScope) -> int:
        """Read the header of a function up to its body; returns the number of the word after it."""
        start = self.words[at].start
        at += 1
        if self._text(at) == "(":
            at = self._variables(at + 1, header, ")", "parameter") + 1
        if at < len(self.words) and self.words[at].kind == "name":
            name = self.words[at]
            at += 1
            if self._text(at) == "(":
                at = self._variables(at + 1, header, ")", "parameter") + 1
            end = self.words[at - 1].end
            self._declare(scope, name, "function", " ".join(self.document.text[start:end].split()))
        return at

    def _variables(self, at: int, scope: NameScope, end: str, kind: str) -> int:
        """Read declarations up to a word; returns its number. A parameter has its own type, registers share one."""
        start, depth, is_named = at, 0, False
        while at < len(self.words) and (self._text(at) != end or depth):
            word = self.words[at]
            depth += (word.text in "([{") - (word.text in ")]}")
            if word.text == "," and not depth:
                is_named = False
                start = at + 1 if kind == "parameter" else start
            elif word.text == "=":
                is_named = True
            elif word.kind == "name" and not depth and not is_named:
                is_named = True
                self._declare_variable(scope, start, at, kind)
            if word.text in ("{", "}") and not depth and end == ";" and not is_named:
                break  # a semicolon is missing
            at += 1
        return at

    def _declare_variable(self, scope: NameScope, start: int, at: int, kind: str) -> None:
        word, types = self.words[at], [one.text for one in self.words[start:at] if one.kind == "modifier"]
        count = None
        if self._text(at + 1) == "<" and self._text(at + 2).isdigit():
            count = int(self._text(at + 2))
        close, size = at + 1, ""
        while self._text(close) == "[":
            while close < len(self.words) and self._text(close) != "]":
                size += self._text(close)
                close += 1
            size, close = f"{size}]", close + 1
        if kind == "variable" and ".reg" in types:
            kind = "register"
        numbered = f"<{count}>" if count is not None else ""
        self._declare(scope, word, kind, f"{' '.join(types)} {word.text}{numbered}{size}", count)

    def _declare(self, scope: NameScope, word: Word, kind: str, text: str, count: int | None = None) -> None:
        key = word.text if count is None else f"{word.text}<>"
        scope.names.setdefault(key, DeclaredName(word.text, kind, word, text, count))
