"""Unrolled runs as loops of Python: lines that repeat with other registers or numbers, said once where that is shorter.

The lines are those that `body.py` wrote. A run is `count` times `period` lines that agree but for the registers
and integers in them, the leaves. Over the repetitions a leaf is one of these:

- the same each time: it stays;
- numbers in equal steps: `for i in range(0, 64, 4)`;
- what an earlier line of the same repetition returned: a local name;
- what a line of the repetition before returned: a name that is carried on;
- anything else: listed, `for x in (r1, r5, r9)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

LONGEST_PERIOD = 8
FEWEST = 4  # repetitions
WIDTH = 116
WORTH = 0.7  # of the characters that it replaces, a loop may have this many

_LINE = re.compile(r"( *)(?:([\w, ()]+) = )?(ptx\.[\w.\[\]\"]+)\((.*)\)")
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+|[A-Za-z_]\w*|0x[0-9a-f]+|-?\d+")
_VECTOR = re.compile(r"(?<!\w)\((?:[A-Za-z_]\w*, )+[A-Za-z_]\w*\)")
_IDENTIFIER = re.compile(r"(?<![\w.'%])[A-Za-z_]\w*")
_NOISE = re.compile(r" *# (?:(?:begin|end) inline asm|[\w./-]+:\d+:\d+(?: .*)?)$")
_NAMES = ("x", "y", "z", "w", "v")


@dataclass(slots=True)
class _Line:
    """A line taken apart: what it returns, what stays the same in a run, and what may change."""

    text: str
    indent: str
    results: str | None
    skeleton: str
    leaves: list[str]

    @property
    def returned(self) -> list[str]:
        return re.findall(r"\w+", self.results or "")


def shorten(lines: Sequence[str], registers: Iterable[str]) -> list[str]:
    """The lines with unrolled runs said as loops; `registers` are the names that stand for registers."""
    known = frozenset(registers)
    parsed = [_parse(line, known) for line in lines]
    uses = Counter(token for line in lines for token in _IDENTIFIER.findall(line))
    standing = {name.rstrip("0123456789") for name in uses}
    names = [_free(name, standing) for name in ("i", "made", *_NAMES)]
    stretches = _stretches(parsed, lines)
    result: list[str] = []
    at = 0
    while at < len(lines):
        found = None
        if at in stretches:
            found = _best(lines, *stretches[at], uses, names)
        if found is None:
            result.append(lines[at])
            at += 1
        else:
            written, at = found
            result += written
    return result


Stretch = list[tuple[int, "_Line"]]


def _stretches(parsed: Sequence[_Line | None], lines: Sequence[str]) -> dict[int, tuple[Stretch, int]]:
    """For each call: the calls of its indentation around it, each with its place, and which of them it is.

    Remarks of the compiler between them are left out.
    """
    found: dict[int, tuple[Stretch, int]] = {}
    stretch: Stretch = []
    for place, line in enumerate(parsed):
        if line is None:
            if not _NOISE.fullmatch(lines[place]):
                stretch = []
            continue
        if stretch and stretch[-1][1].indent != line.indent:
            stretch = []
        found[place] = (stretch, len(stretch))
        stretch.append((place, line))
    return found


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _parse(line: str, known: frozenset[str]) -> _Line | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    indent, results, path, arguments = match.groups()
    leaves: list[str] = []

    def vector(found: re.Match[str]) -> str:
        names = re.findall(r"\w+", found[0])
        if not all(name in known for name in names):
            return found[0]
        leaves.append(found[0])
        return f"\0{len(leaves) - 1}\0"

    def token(found: re.Match[str]) -> str:
        text = found[0]
        if text in known or re.fullmatch(r"-?\d+|0x[0-9a-f]+", text):
            leaves.append(text)
            return f"\0{len(leaves) - 1}\0"
        return text

    skeleton = "".join(
        part if part.startswith("\0") else _TOKEN.sub(token, part)
        for part in re.split("(\0\\d+\0)", _VECTOR.sub(vector, arguments))
    )
    # Leaves in the order in which they stand, whichever pass found them.
    order = [int(number) for number in re.findall("\0(\\d+)\0", skeleton)]
    marks = iter(range(len(order)))
    skeleton = re.sub("\0\\d+\0", lambda _: f"\0{next(marks)}\0", skeleton)
    return _Line(line, indent, results, f"{path}({skeleton})", [leaves[number] for number in order])


def _best(
    lines: Sequence[str], stretch: Stretch, first: int, uses: Counter[str], names: Sequence[str]
) -> tuple[list[str], int] | None:
    """The run that begins here and saves most, written as a loop, and where the lines go on after it."""
    best: tuple[int, list[str], int] | None = None
    at = stretch[first][0]
    for period in range(1, LONGEST_PERIOD + 1):
        count = _repetitions(stretch, first, period)
        while count >= FEWEST:
            rows = [
                [line for _, line in stretch[start : start + period]]
                for start in range(first, first + count * period, period)
            ]
            written = _write(rows, uses, names)
            end = stretch[first + count * period - 1][0] + 1
            before = sum(len(line) + 1 for line in lines[at:end])
            after = sum(len(line) + 1 for line in written or ())
            if written is not None and after <= WORTH * before:
                if best is None or before - after > best[0]:
                    best = (before - after, written, end)
                break
            count = count // 2 if written is None else 0
    return None if best is None else best[1:]


def _repetitions(stretch: Stretch, first: int, period: int) -> int:
    """How often the `period` lines from `first` on come again, one behind the other."""
    place = first + period
    while place < len(stretch):
        before, line = stretch[place - period][1], stretch[place][1]
        if before.skeleton != line.skeleton or len(before.returned) != len(line.returned):
            break
        place += 1
    return (place - first) // period


def _write(rows: list[list[_Line]], uses: Counter[str], names: Sequence[str]) -> list[str] | None:
    """The loop, or None where the run is no loop that Python can say in a few names."""
    return _Run(rows, uses, names).write()


class _Run:
    """One run while it is written."""

    def __init__(self, rows: list[list[_Line]], uses: Counter[str], names: Sequence[str]) -> None:
        self.rows = rows
        self.uses = uses
        self.counter, self.collector, *self.spare = names
        self.indent = rows[0][0].indent
        self.made = {name: (i, j) for i, row in enumerate(rows) for j, line in enumerate(row) for name in line.returned}
        self.inside: Counter[str] = Counter()  # reads of what the run itself makes
        self.steps: list[tuple[int, int]] = []
        self.listed: list[list[str]] = []
        self.carried: dict[int, str] = {}  # the name before the loop, of each line whose result is carried on

    def write(self) -> list[str] | None:
        places = [(j, leaf) for j, line in enumerate(self.rows[0]) for leaf in range(len(line.leaves))]
        texts: dict[tuple[int, int], str] = {}
        for j, leaf in places:
            text = self._leaf([row[j].leaves[leaf] for row in self.rows], j)
            if text is None:
                return None
            texts[j, leaf] = text
        if any(self._is_read_outside(row[j]) for j in self.carried for row in self.rows[:-1]):
            return None
        return [part for line in self._loop(texts) for part in _folded(line)]

    def _leaf(self, values: list[str], j: int) -> str | None:
        """What stands for a leaf in the loop."""
        first = values[0]
        sources = [self.made.get(value) for value in values]
        later = sources[1:]
        if all(source is not None and source[0] == i and source[1] < j for i, source in enumerate(sources)):
            line = sources[0][1]  # type: ignore[index]
            if all(source is not None and source[1] == line for source in sources) and self._is_scalar(line):
                self.inside.update(values)
                return f"\1{line}\1"
            return None
        if sources[0] is None and all(source is not None and source[0] == i for i, source in enumerate(later)):
            line = later[0][1]  # type: ignore[index]
            same = all(source is not None and source[1] == line for source in later) and self._is_scalar(line)
            if not same or not first.isidentifier() or self.carried.setdefault(line, first) != first:
                return None
            self.inside.update(values[1:])
            return f"\1{line}\1"
        if any(name in self.made for value in values for name in re.findall(r"[A-Za-z_]\w*", value)):
            return None
        if all(value == first for value in values):
            return first
        if all(re.fullmatch(r"-?\d+|0x[0-9a-f]+", value) for value in values):
            return self._numbers(values)
        return self._list(values)

    def _is_scalar(self, line: int) -> bool:
        return self.rows[0][line].results == "".join(self.rows[0][line].returned)

    def _numbers(self, values: list[str]) -> str | None:
        numbers = [int(value, 0) for value in values]
        step = numbers[1] - numbers[0]
        if any(after - before != step for before, after in pairwise(numbers)):
            return self._list(values)
        if (numbers[0], step) not in self.steps:
            self.steps.append((numbers[0], step))
        return f"\2{self.steps.index((numbers[0], step))}\2"

    def _list(self, values: list[str]) -> str | None:
        if values not in self.listed:
            if len(self.listed) == 3:
                return None
            self.listed.append(values)
        return self.spare[self.listed.index(values)]

    def _loop(self, texts: dict[tuple[int, int], str]) -> Iterator[str]:
        rows, indent = self.rows, self.indent
        period = len(rows[0])
        exported = [j for j in range(period) if self._is_exported(j)]
        calls = [self._call(j, texts) for j in range(period)]
        heads = self._head()
        if period == 1 and exported and not self.carried:
            results = [row[0].results or "" for row in rows]
            targets = [_bracketed(text) for text in results]
            one_line = f"{indent}{', '.join(targets)} = [{calls[0]} {heads}]"
            if len(one_line) <= WIDTH:
                yield one_line
                return
            yield from _wrapped(indent, targets)
            yield f"{indent}) = [{calls[0]} {heads}]"
            return
        locals_ = {j: self._local(j) for j in range(period)}
        collected = [j for j in exported if j not in self.carried]
        yield from (f"{indent}{locals_[j]} = {first}" for j, first in self.carried.items())
        if collected:
            yield f"{indent}{self.collector} = []"
        yield f"{indent}{heads}:"
        for j, call in enumerate(calls):
            wanted = j in exported or j in self.carried or self._is_read_inside(j)
            yield f"{indent}    {f'{locals_[j]} = ' if wanted and rows[0][j].results else ''}{call}"
        if collected:
            together = ", ".join(locals_[j] for j in collected)
            yield f"{indent}    {self.collector}.append({together if len(collected) == 1 else f'({together})'})"
            parts = [[_bracketed(row[j].results or "") for j in collected] for row in rows]
            targets = [part[0] if len(part) == 1 else f"({', '.join(part)})" for part in parts]
            one_line = f"{indent}{', '.join(targets)} = {self.collector}"
            if len(one_line) <= WIDTH:
                yield one_line
            else:
                yield from _wrapped(indent, targets)
                yield f"{indent}) = {self.collector}"
        for j in self.carried:
            if j in exported:
                yield f"{indent}{rows[-1][j].results} = {locals_[j]}"

    def _is_exported(self, j: int) -> bool:
        """Whether what line `j` returns is read outside of the run."""
        return any(self._is_read_outside(row[j]) for row in self.rows)

    def _is_read_outside(self, line: _Line) -> bool:
        return any(self.uses[name] - 1 - self.inside[name] > 0 for name in line.returned)

    def _is_read_inside(self, j: int) -> bool:
        return any(self.inside[name] for row in self.rows for name in row[j].returned)

    def _local(self, j: int) -> str:
        return f"{self.spare[-1]}{j}" if len(self.rows[0]) > 1 else self.spare[-1]

    def _call(self, j: int, texts: dict[tuple[int, int], str]) -> str:
        def leaf(found: re.Match[str]) -> str:
            text = texts[j, int(found[1])]
            text = re.sub("\1(\\d+)\1", lambda match: self._local(int(match[1])), text)
            return re.sub("\2(\\d+)\2", lambda match: self._number(int(match[1])), text)

        return re.sub("\0(\\d+)\0", leaf, self.rows[0][j].skeleton)

    def _number(self, number: int) -> str:
        """A number that grows: the counter itself where it is the only one."""
        start, step = self.steps[number]
        if len(self.steps) == 1:
            return self.counter
        times = self.counter if step == 1 else f"{step} * {self.counter}"
        return f"{start} + {times}" if start else times

    def _head(self) -> str:
        """`for i in range(0, 64, 4)`, `for x, y in ((r1, r2), (r3, r4))`."""
        count = len(self.rows)
        sources: list[tuple[str, str]] = []
        if self.steps:
            start, step = self.steps[0] if len(self.steps) == 1 else (0, 1)
            limits = [start, start + count * step, step] if step != 1 else [start, start + count]
            shown = limits[1:] if start == 0 and step == 1 else limits
            sources.append((self.counter, f"range({', '.join(map(str, shown))})"))
        for values, name in zip(self.listed, self.spare, strict=False):
            sources.append((name, f"({', '.join(values)})"))
        if not sources:
            return f"for _ in range({count})"
        if len(sources) == 1:
            return f"for {sources[0][0]} in {sources[0][1]}"
        names = ", ".join(name for name, _ in sources)
        return f"for {names} in zip({', '.join(text for _, text in sources)}, strict=True)"


def _bracketed(results: str) -> str:
    """The results of one call as a target among others: several in brackets."""
    return f"({results})" if "," in results else results


def _folded(line: str) -> Iterator[str]:
    """A line in pieces that fit; those after the first stand further right. It is broken behind commas in brackets."""
    indent = line[: len(line) - len(line.lstrip())]
    while len(line) > WIDTH:
        cut = line.rfind(", ", len(indent) + 12, WIDTH)
        if cut < 0:
            break
        yield line[: cut + 1]
        line = f"{indent}        {line[cut + 2 :]}"
    yield line


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
