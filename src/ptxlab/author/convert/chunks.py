"""Lines of Python taken apart, so that those that repeat can be found: what stays, and the leaves that may change.

A chunk is a line, or a block with its head and all lines in it. Its leaves are registers and integers; a leaf that
is in a loop may grow with the loop's counter. Registers that a loop counts through are kept by their numbers,
`sum[i]`, all others have names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ptxlab.author.convert.comments import TRAILING

INDENT = "    "
WIDTH = 116
COUNTERS = ("i", "j", "k", "l", "m")  # of loops, the innermost first
MARK = re.compile("\0(\\d+)\0")

_ASSIGNED = re.compile(r"([\w, ()]+) = ptx\.")
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+|[A-Za-z_]\w*|0x[0-9a-f]+|-?\d+")
_NUMBER = re.compile(r"-?\d+|0x[0-9a-f]+")
_COUNTERS = re.compile(r" for \w+(?:, \w+)+ in ")
_NOISE = re.compile(r"# [\w./-]+:\d+:\d+(?: .*)?")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A register or an integer: `base`, and for each loop around it (by level) a step."""

    text: str  # while it is in no loop
    family: str | None = None  # of a register with a number; "" of an integer
    base: int = 0
    steps: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()  # its registers, one after the other

    def alike(self, other: Leaf) -> bool:
        """Whether only the numbers of the two differ."""
        return self.family is not None and self.family == other.family and self.steps == other.steps


@dataclass(slots=True, eq=False)
class Chunk:
    """Lines with marks where the leaves are. `targets` are the leaves that are returned by calls."""

    template: str
    leaves: list[Leaf] = field(default_factory=list)
    targets: frozenset[int] = frozenset()
    level: int = 0  # of the loops in it
    is_noise: bool = False  # a remark of the compiler, which cannot be in a loop
    other: Chunk | None = None  # the same as a loop, where its targets are kept by their numbers
    inside: list[Chunk] = field(default_factory=list)  # of a block: its head, and its body

    @property
    def is_line(self) -> bool:
        """Whether it is one line."""
        return "\n" not in self.template


def joined(chunks: Sequence[Chunk], indent: str = "") -> Chunk:
    """Several chunks as one, moved right."""
    leaves: list[Leaf] = []
    targets: set[int] = set()
    lines: list[str] = []
    for chunk in chunks:
        lines += shifted(chunk.template, len(leaves), indent)
        targets.update(len(leaves) + target for target in chunk.targets)
        leaves += chunk.leaves
    return Chunk("\n".join(lines), leaves, frozenset(targets), max((chunk.level for chunk in chunks), default=0))


def shifted(template: str, by: int, indent: str) -> Iterator[str]:
    """The lines of a template, its marks counted from `by` on."""
    if by:
        template = MARK.sub(lambda found: f"\0{int(found[1]) + by}\0", template)
    return (f"{indent}{line}" for line in template.split("\n"))


def block(head: Chunk, inside: list[Chunk]) -> Chunk:
    """A head, and its indented body."""
    whole = joined([head, joined(inside, INDENT)])
    whole.inside = [head, *inside]
    return whole


@dataclass(slots=True)
class Parser:
    """Takes lines apart; `numbered` are the family and the number of each register that has them."""

    registers: frozenset[str]
    numbered: Mapping[str, tuple[str, int]]
    known: dict[str, Leaf] = field(default_factory=dict)

    def parse(self, line: str) -> Chunk:
        """A line without its indentation."""
        if line.startswith("#"):
            return Chunk(line, is_noise=_NOISE.fullmatch(line) is not None)
        line, trailing, comment = line.partition(TRAILING)
        leaves: list[Leaf] = []

        def token(found: re.Match[str]) -> str:
            leaf = self._leaf(found[0])
            is_word = line[found.start() - 1 : found.start()] == "." or line[found.end() : found.end() + 1] == "="
            if leaf is None or is_word:  # a modifier, or the name of an argument
                return found[0]
            leaves.append(leaf)
            return f"\0{len(leaves) - 1}\0"

        template = _TOKEN.sub(token, line) + trailing + comment
        found = _ASSIGNED.match(line)
        returned = re.findall(r"\w+", found[1]) if found is not None else []
        if returned and not all(name in self.registers for name in returned):
            return Chunk(line + trailing + comment)  # declares something
        return Chunk(template, leaves, frozenset(range(len(returned))))

    def _leaf(self, text: str) -> Leaf | None:
        leaf = self.known.get(text)
        if leaf is not None:
            return leaf
        if text in self.registers:
            family, number = self.numbered.get(text, (None, 0))
            leaf = Leaf(text, family, number, names=(text,))
        elif _NUMBER.fullmatch(text):
            leaf = Leaf(text, "", int(text, 0))
        else:
            return None
        self.known[text] = leaf
        return leaf


@dataclass(slots=True)
class Printer:
    """Writes chunks out; `families` are the names of registers that are kept by numbers, `kept` those registers."""

    families: Mapping[str, str]
    kept: frozenset[str]
    counters: Sequence[str]

    def lines(self, chunks: Iterable[Chunk], indent: str) -> Iterator[str]:
        """The lines of consecutive chunks."""
        for chunk in chunks:
            if chunk.other is not None and all(chunk.leaves[t].text in self.kept for t in chunk.targets):
                chunk = chunk.other
            if chunk.inside:
                yield from self.lines(chunk.inside[:1], indent)
                yield from self.lines(chunk.inside[1:], indent + INDENT)
                continue
            for line in chunk.template.split("\n"):
                yield from folded(indent + self.text(line, chunk.leaves))

    def text(self, template: str, leaves: Sequence[Leaf]) -> str:
        """A line with its leaves."""
        return MARK.sub(lambda found: self.leaf(leaves[int(found[1])]), template)

    def leaf(self, leaf: Leaf) -> str:
        """`r5`, `sum[i]`, `4 + 2 * i`"""
        if not leaf.steps:
            return f"{self.families[leaf.family or '']}[{leaf.base}]" if leaf.text in self.kept else leaf.text
        number = str(leaf.base) if leaf.base or leaf.steps[0][1] < 0 else ""
        for level, step in sorted(leaf.steps, reverse=True):
            counter = self.counters[level - 1]
            sign = " - " if step < 0 else " + " if number else ""
            number += f"{sign}{counter if abs(step) == 1 else f'{abs(step)} * {counter}'}"
        return f"{self.families[leaf.family]}[{number}]" if leaf.family else number


def folded(line: str) -> Iterator[str]:
    """A line in pieces that fit; those after the first are indented. It is broken after commas in brackets.

    A trailing comment that does not fit on its line is put before the line.
    """
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    if TRAILING in line:
        line, _, comment = line.partition(TRAILING)
        if len(line) + 2 + len(comment) <= WIDTH:
            yield f"{line}  {comment}"
        else:
            yield indent + comment
            yield from folded(line)
        return
    if len(line) <= WIDTH or code.startswith("#") or "'" in code:
        yield line
        return
    targets, assigned, rest = code.partition(" = ")
    first = len(indent) + 12
    if assigned and len(targets) > WIDTH // 2 and ", " in targets:
        yield from _wrapped(indent, re.findall(r"\([^)]*\)|\w+(?:\[[^]]*\])?", targets))
        line = f"{indent}) = {rest}"
    elif assigned:
        first = len(indent) + len(targets) + 3
    while len(line) > WIDTH and (cut := _cut(line, first)) > 0:
        yield line[: cut + 1]
        line = f"{indent}        {line[cut + 2 :]}"
        first = len(indent) + 12
    yield line


def _cut(line: str, first: int) -> int:
    """The comma to break a line at: the last that fits, rather between arguments than inside of one."""
    depth, best = 0, {}
    counters = [found.span() for found in _COUNTERS.finditer(line)]
    for position, character in enumerate(line[:WIDTH]):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and position >= first and not any(start < position < end for start, end in counters):
            best[depth] = position
    return next((best[depth] for depth in sorted(best) if best[depth] > WIDTH // 2), max(best.values(), default=-1))


def _wrapped(indent: str, targets: Sequence[str]) -> Iterator[str]:
    """Many targets of an assignment in brackets, without the closing one."""
    yield f"{indent}("
    line = f"{indent}   "
    for target in targets:
        if len(line) + len(target) + 2 > WIDTH:
            yield line
            line = f"{indent}   "
        line += f" {target},"
    yield line
