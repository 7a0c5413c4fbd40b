"""The host's part of a `.cu` file or a header, for NVRTC, which compiles device code only.

`Outline` takes a text apart into declarations, and bodies of functions into statements. What runs on the host and
cannot be compiled is made blank: a statement of a function, or a whole declaration. All else stays on its line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<directive>\#(?:[^\n\\]|\\.)*)
    | (?P<text>R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
    | (?P<word>\w+) | (?P<mark><<<|>>>|::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_DEVICE = re.compile(r"__global__|__device__|__constant__|__shared__|[A-Z\d_]*DEVICE[A-Z\d_]*|constexpr|consteval")
_NAMESPACES = {"namespace", "extern"}
_TYPES = {"class", "struct", "union", "enum"}
_ACCESS = {"public", "private", "protected"}
_CONTROL = {"if", "for", "while", "switch", "else", "do", "try", "catch", "case", "default"}
_CONTINUES = {"else", "catch"}
_ALIGNED = re.compile(r"alignas|__align__|__attribute__|\w*ALIGN\w*|__launch_bounds__")
_LAUNCH = re.compile(r"([A-Za-z_][\w:]*(?:<[^;{}]*?>)?)\s*<<<")
_CUDA_CALL = re.compile(r"\b(cu(?:da)?[A-Z]\w*)\s*\(")


@dataclass(slots=True)
class Item:
    """A declaration or a statement: where it is, the words before its body, and what is inside of it."""

    start: int
    end: int
    head: list[str]
    is_function: bool = False
    inside: list[Item] = field(default_factory=list)
    bodies: list[tuple[int, int]] = field(default_factory=list)  # where the braces around what is inside are

    @property
    def is_device(self) -> bool:
        """Whether a word of CUDA makes it device code."""
        return any(_DEVICE.fullmatch(word) for word in self.head)

    @property
    def heads(self) -> list[Item]:
        """What is around the bodies of a statement: `if (x)` and `else`. Without it, its bodies are blocks."""
        ends = [self.start, *(end for _, end in self.bodies)]
        starts = [*(start for start, _ in self.bodies), self.end]
        return [Item(end, start, []) for end, start in zip(ends, starts, strict=True) if end < start]


class Outline:
    """A text and what it consists of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.items = _Reader(text).items(is_body=False)
        self._lines = [found.end() for found in re.finditer("\n", text)]

    def line(self, at: int) -> int:
        """The line of a place in the text."""
        return bisect_right(self._lines, at) + 1

    def host_functions(self) -> list[Item]:
        """The functions outside of types that run on the host."""
        return [item for item in _declared(self.items) if item.is_function and not item.is_device]

    def kernels(self) -> list[str]:
        """The names of the kernels that are defined here."""
        return list(filter(None, map(name_of, self.kernel_heads())))

    def kernel_heads(self) -> list[list[str]]:
        """The words before the bodies of kernels."""
        return [item.head for item in _declared(self.items) if item.is_function and "__global__" in item.head]

    def functions(self) -> set[str]:
        """The names of all functions that are defined here, outside of types."""
        return set(filter(None, (name_of(item.head) for item in _declared(self.items) if item.is_function)))

    def host_part(self, line: int, *, is_own: bool) -> list[Item]:
        """The smallest parts at a line that run on the host; none where it is device code.

        A type, or a variable, is what device code may need: it counts in the headers of others only, unless `is_own`.
        """
        found, items, in_host = [], self.items, False
        while items:
            here = [item for item in items if self.line(item.start) <= line <= self.line(item.end - 1)]
            if any(item.is_device for item in here):
                return []
            in_host = in_host or any(item.is_function for item in here)
            if here and (in_host or not (is_own and _TYPES & set(here[0].head))):
                found = here
            items = [inner for item in here for inner in item.inside]
        return found

    def is_device(self, line: int) -> bool:
        """Whether a line is in a declaration of device code."""
        here = [item for item in _declared(self.items) if self.line(item.start) <= line <= self.line(item.end - 1)]
        return any(item.is_device for item in here)

    def function_start(self, line: int) -> int | None:
        """The first line of the innermost function that has a line, with its template; None where there is none."""
        return max((start for start in self._starts(self.items, line)), default=None)

    def _starts(self, items: Sequence[Item], line: int) -> Iterator[int]:
        for item in items:
            if self.line(item.start) <= line <= self.line(item.end - 1):
                if item.is_function:
                    yield self.line(item.start)
                yield from self._starts(item.inside, line)

    def is_host(self, line: int) -> bool:
        """Whether a line is in a function of the host."""
        return any(self.line(item.start) <= line <= self.line(item.end - 1) for item in self.host_functions())


def blank(text: str, items: Sequence[Item]) -> str:
    """The text with nothing but line ends and directives in place of these items."""
    for item in items:
        inside = text[item.start : item.end]
        kept = [found.span() for found in _DIRECTIVE.finditer(inside)]
        pieces, at = [], 0
        for start, end in kept:
            pieces += [re.sub(r"[^\n]", " ", inside[at:start]), inside[start:end]]
            at = end
        pieces.append(re.sub(r"[^\n]", " ", inside[at:]))
        text = text[: item.start] + "".join(pieces) + text[item.end :]
    return text


def launched(text: str) -> list[str]:
    """What some code launches, with template arguments where it has them: `gemm<128, float>`."""
    return list(dict.fromkeys(_LAUNCH.findall(text)))


def cuda_calls(text: str) -> list[str]:
    """The names of functions of CUDA's runtime and driver that some code calls."""
    return sorted(set(_CUDA_CALL.findall(text)))


def _declared(items: Sequence[Item]) -> Iterator[Item]:
    """The declarations of a text, those in namespaces too."""
    for item in items:
        if item.is_function or not item.inside or _TYPES & set(plain_head(item.head)):
            yield item
        else:
            yield from _declared(item.inside)


def plain_head(head: Sequence[str]) -> list[str]:
    """The words of a declaration after its template parameters."""
    start = depth = 0
    for at, word in enumerate(head):
        if at == start and word != "template":
            break
        depth += (word == "<") - (word == ">")
        if word == ">" and not depth:
            start = at + 1
    return list(head[start:])


def name_of(head: Sequence[str]) -> str | None:
    """What a function is called: the word before its parameters."""
    words = plain_head(head)
    depth = 0
    for at, word in enumerate(words):
        is_called = word == "(" and not depth and at and not _ALIGNED.fullmatch(words[at - 1])
        if is_called and re.fullmatch(r"[A-Za-z_]\w*", words[at - 1]):
            return words[at - 1]
        depth += (word == "(") - (word == ")")
    return None


class _Reader:
    """Reads the items of a text, token after token."""

    def __init__(self, text: str) -> None:
        self.tokens = [token for token in _TOKEN.finditer(text) if not (token["space"] or token["directive"])]
        self.at = 0

    def items(self, *, is_body: bool) -> list[Item]:
        """The items up to the brace that closes them; statements, where this is the body of a function."""
        found = []
        while self.at < len(self.tokens) and self._word() != "}":
            item = self._item(is_body=is_body)
            if item is not None:
                found.append(item)
        self.at += 1
        return found

    def _word(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _item(self, *, is_body: bool) -> Item | None:
        first, depth = self.at, 0
        item = Item(self.tokens[first].start(), self.tokens[first].end(), [])
        while self.at < len(self.tokens):
            word = self._word()
            if word == "{" and not depth:
                if self._read_braces(item, is_body=is_body):
                    break
                continue
            if word == "}" and not depth:
                return item if item.head else None
            depth += (word in "([") - (word in ")]")
            item.end = self.tokens[self.at].end()
            self.at += 1
            if word == ";" and depth <= 0:
                break
            item.head.append(word)
            if word == ":" and not is_body and len(item.head) == 2 and item.head[0] in _ACCESS:
                return None
        return item

    def _read_braces(self, item: Item, *, is_body: bool) -> bool:
        """Read what is in braces, and whether the item ends after it."""
        head = plain_head(item.head)
        types = _TYPES & set(head)
        parameters = [at for at, word in enumerate(head) if word == "(" and not _ALIGNED.fullmatch(head[at - 1])]
        is_namespace = not is_body and bool(_NAMESPACES & set(head)) and not parameters
        is_function = not is_body and bool(parameters) and "=" not in head[: parameters[0]]
        is_compound = is_body and (not head or bool(_CONTROL & set(head)))
        opened = self.tokens[self.at].start()
        self.at += 1
        if is_namespace or is_function or is_compound or (types and not is_body):
            item.is_function = item.is_function or is_function
            item.inside += self.items(is_body=is_function or is_body)
        else:
            self._skip_braces()
        item.end = self.tokens[min(self.at, len(self.tokens)) - 1].end()
        item.bodies += [(opened, item.end)] if is_compound else []
        if is_compound and (self._word() in _CONTINUES or (self._word() == "while" and "do" in head)):
            return False
        return is_namespace or is_function or is_compound

    def _skip_braces(self) -> None:
        depth = 1
        while self.at < len(self.tokens) and depth:
            depth += (self._word() == "{") - (self._word() == "}")
            self.at += 1
