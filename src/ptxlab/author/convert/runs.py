"""Unrolled runs as Python loops: lines that repeat with other registers or numbers, said once where that is shorter.

The lines are those that `body.py` wrote, as chunks (see `chunks.py`). A run is `count` times `period` chunks that agree
but for their leaves. A run that has become a loop is a chunk again, and may be part of a run itself: so groups of runs
become loops in loops. First come runs whose leaves count in equal steps, then those whose leaves must be listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword

from ptxlab.author import __all__ as PUBLIC  # noqa: N812 - names that the Python uses for something else
from ptxlab.author.convert.chunks import COUNTERS, INDENT, Chunk, Parser, Printer, block, joined
from ptxlab.author.convert.comments import TRAILING
from ptxlab.author.convert.loops import LoopNames, WrittenLoop, measure

FEWEST = 4  # repetitions of one line; three of several
MOST_LISTED = 128  # repetitions with leaves that must be listed
WORTH = 0.7  # of the characters that it replaces, a loop may have this many
# What is tried, one after the other, until nothing changes: the longest period, and whether leaves may be listed.
PASSES = ((4, False), (32, False), (8, True))

_IDENTIFIER = re.compile(r"(?<![\w.'%])[A-Za-z_]\w*")


@dataclass(slots=True)
class Shortened:
    """Lines with loops, and the registers that these keep by their numbers: the name of the family, and the number."""

    lines: list[str]
    kept: dict[str, tuple[str, int]] = field(default_factory=dict)


def shorten(lines: Sequence[str], numbered: Mapping[str, tuple[str, int]], registers: Iterable[str]) -> Shortened:
    """Say unrolled runs as loops.

    `registers` are the names of registers, `numbered` the family and number of those that have one.
    """
    known = frozenset(registers)
    codes = [line.partition(TRAILING)[0] for line in lines if not line.lstrip().startswith("#")]
    found: Counter[str] = Counter(token for code in codes for token in _IDENTIFIER.findall(code))
    taken = {*found, *PUBLIC, "range", "zip", "module"}
    families = {family: _free(family, taken) for family in sorted({family for family, _ in numbered.values()})}
    taken |= {*families.values(), *(name.rstrip("0123456789") for name in found)}
    names = LoopNames(*(tuple(_free(name, taken) for name in group) for group in NAMES))
    folder = _Folder(Parser(known, numbered), found, names)
    chunks = folder.block(lines, 0, len(lines))[0]
    kept = frozenset(name for chunk in chunks for leaf in chunk.leaves if leaf.steps for name in leaf.names)
    written = list(Printer(families, kept, names.counters).lines(chunks, INDENT))
    return Shortened(written, {name: (families[numbered[name][0]], numbered[name][1]) for name in kept})


NAMES = (COUNTERS, ("x", "a", "d", "g", "n"), ("y", "b", "e", "h", "o"), ("z", "c", "f", "w", "q"),
         ("v", "u", "t", "s", "r"), ("made",))  # fmt: skip


def _free(name: str, taken: set[str]) -> str:
    while name in taken or iskeyword(name):
        name += "_"
    return name


@dataclass(slots=True)
class _Folder:
    """Folds the lines of one function."""

    parser: Parser
    uses: Counter[str]
    names: LoopNames
    failed: set[tuple[Chunk, Chunk, int, bool]] = field(default_factory=set)  # not runs, by their first rows

    def block(self, lines: Sequence[str], start: int, end: int) -> tuple[list[Chunk], int]:
        """The lines from `start` on with the indentation of the first, folded, and where they end."""
        indent = _indent(lines[start]) if start < end else 0
        chunks: list[Chunk] = []
        at = start
        while at < end and _indent(lines[at]) >= indent:
            chunk = self.parser.parse(lines[at].strip())
            at += 1
            if at < end and _indent(lines[at]) > indent:
                inside, at = self.block(lines, at, end)
                chunk = block(chunk, inside)
            chunks.append(chunk)
        return self.fold(chunks), at

    def fold(self, chunks: list[Chunk]) -> list[Chunk]:
        """The chunks with runs said as loops, in all passes."""
        for longest, listed in PASSES:
            before = len(chunks) + 1
            while len(chunks) < before:
                before = len(chunks)
                chunks = self._pass(chunks, longest, listed)
        return chunks

    def _pass(self, chunks: list[Chunk], longest: int, listed: bool) -> list[Chunk]:
        indexes = [position for position, chunk in enumerate(chunks) if not chunk.is_noise]
        line = [chunks[position].other or chunks[position] for position in indexes]
        repeats = _repeats(line, longest)
        result: list[Chunk] = []
        at = done = 0  # done: of the chunks, those between the others included
        while at < len(line):
            best: tuple[int, Chunk, int] | None = None
            for period, repeated in enumerate(repeats, 1):
                count = (repeated[at] + period) // period
                few = _fewest(period)
                key = (line[at], line[at + few * period - 1], period, listed) if count >= few else None
                if key is None or key in self.failed:
                    continue
                found = self._loop(line, at, period, count, listed) if _may_count(line, at, period, listed) else None
                if found is None:
                    self.failed.add(key)
                elif best is None or found[0] > best[0]:
                    best = found
            if best is not None:
                _, loop, size = best
                result += chunks[done : indexes[at]]
                result.append(loop)
                at += size
                done = indexes[at - 1] + 1
            else:
                at += 1
        return result + chunks[done:]

    def _loop(self, line: list[Chunk], at: int, period: int, count: int, listed: bool) -> tuple[int, Chunk, int] | None:
        """The loop of a run that starts here: what it saves, itself, and how many chunks it replaces."""
        fewest = _fewest(period)
        # What does not hold for a few repetitions does not for many: most runs end here.
        few = WrittenLoop(_rows(line, at, period, fewest), self.uses, self.names)
        if not few.rows[0].leaves or (few.write(listed) is None if listed else few.counted() < fewest):
            return None
        rows = _rows(line, at, period, min(count, MOST_LISTED)) if listed else self._counted(line, at, period, count)
        while len(rows) >= fewest:
            written = WrittenLoop(rows, self.uses, self.names).write(listed)
            if written is not None:
                before, after = sum(map(measure, rows)), measure(written)
                return (before - after, written, len(rows) * period) if after <= WORTH * before else None
            rows = rows[: len(rows) // 2]
        return None

    def _counted(self, line: list[Chunk], at: int, period: int, count: int) -> list[Chunk]:
        """The rows, at most `count`, in which nothing needs to be listed; inspects about twice as many."""
        size = held = _fewest(period)
        while held == size:
            size = min(2 * size, count)
            rows = _rows(line, at, period, size)
            held = WrittenLoop(rows, self.uses, self.names).counted()
            if size == count:
                break
        return rows[:held]


def _may_count(line: list[Chunk], at: int, period: int, listed: bool) -> bool:
    """Whether the first repetitions may be a loop, by single leaves, since most candidates are not."""
    few = _fewest(period)
    row = line[at : at + period]
    if max(chunk.level for chunk in row) >= len(COUNTERS):
        return False
    if listed:
        return True
    made = {
        line[position].leaves[target].text: ((position - at) // period, (position - at) % period, target)
        for position in range(at, at + few * period)
        for target in line[position].targets
    }
    for position, chunk in enumerate(row, at):
        for number, first in enumerate(chunk.leaves):
            leaves = [line[position + n * period].leaves[number] for n in range(1, few)]
            step = leaves[0].base - first.base
            if number in chunk.targets or leaves.count(first) == few - 1:
                continue
            if all(leaf.alike(first) and leaf.base == first.base + n * step for n, leaf in enumerate(leaves, 1)):
                continue
            # What is left must come from the same repetition or the one before, each time from the same call.
            sources = {
                (n - found[0], found[1:]) if found is not None else (-1, ())
                for n, found in enumerate((made.get(leaf.text) for leaf in leaves), 1)
            }
            if first.steps or len(sources) > 1 or next(iter(sources))[0] not in (0, 1):
                return False
    return True


def _fewest(period: int) -> int:
    return FEWEST if period == 1 else FEWEST - 1


def _rows(line: list[Chunk], at: int, period: int, count: int) -> list[Chunk]:
    """The repetitions of a run, each as one chunk."""
    if period == 1:
        return line[at : at + count]
    return [joined(line[start : start + period]) for start in range(at, at + period * count, period)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _repeats(line: list[Chunk], longest: int) -> list[list[int]]:
    """For each period, for each chunk: how many chunks from it on agree with the one a period later."""
    numbers: dict[str, int] = {}
    keys = [numbers.setdefault(chunk.template, len(numbers)) for chunk in line]
    result = []
    for period in range(1, min(longest, len(line) // 2) + 1):
        repeated = [0] * len(line)
        for position in range(len(line) - period - 1, -1, -1):
            if keys[position] == keys[position + period]:
                repeated[position] = repeated[position + 1] + 1
        result.append(repeated)
    return result
