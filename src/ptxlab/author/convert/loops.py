"""One run as a loop: what becomes of each leaf over the repetitions.

- The same each time: it stays.
- What an earlier line of the same repetition returned, and nothing else reads: a local name.
- What the repetition before returned: a name that is carried on.
- Numbers, or registers of one family, in equal steps: `4 + 2 * i`, `sum[i]`.
- Anything else is listed: `for x in (r1, r5, r9)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ptxlab.author.convert.chunks import MARK, WIDTH, Chunk, Leaf, shifted
from ptxlab.author.convert.comments import TRAILING

MOST_LISTS = 3
_VECTOR = re.compile("(?<!\\w)\\((?:\0\\d+\0, )+\0\\d+\0\\)")


class LoopNames(NamedTuple):
    """Names that nothing else has, by the level of the loop: its counter, what is listed, local names; and a list."""

    counters: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    third: tuple[str, ...]
    locals: tuple[str, ...]
    collector: tuple[str, ...]


def measure(chunk: Chunk) -> int:
    """About how many characters a chunk has."""
    length = len(MARK.sub("", chunk.template)) + 1
    for leaf in chunk.leaves:
        length += len(leaf.text) if not leaf.steps else len(leaf.family or "") + 2 + 6 * len(leaf.steps)
    return length


class _NoLoopError(Exception):
    """Python cannot say the run in a few names."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a leaf's register comes from: a target of the same repetition, or of the one before."""

    target: int
    is_before: bool


class WrittenLoop:
    """One run while it is written. Each row is one repetition."""

    def __init__(self, rows: Sequence[Chunk], uses: Counter[str], names: LoopNames) -> None:
        self.rows = rows
        self.uses = uses
        self.level = rows[0].level + 1
        self.counter = names.counters[self.level - 1]
        self.listed_names = [group[self.level - 1] for group in (names.first, names.second, names.third)]
        self.local = names.locals[self.level - 1]
        self.collector = names.collector[0]
        self.indexes = range(len(rows[0].leaves))
        self.made = [{row.leaves[t].text: t for t in row.targets if not row.leaves[t].steps} for row in rows]
        self.all_made = {name for row in rows for target in row.targets for name in row.leaves[target].names}
        self.lists: list[list[list[Leaf]]] = []
        self.template = rows[0].template
        self.read_at = [_read_at(row) for row in rows]

    def counted(self) -> int:
        """How many rows there are at most in which nothing needs to be listed."""
        return min((self._holds(position) for position in self.indexes), default=len(self.rows))

    def _holds(self, position: int) -> int:
        column = [row.leaves[position] for row in self.rows]
        first, second = column[0], column[1]
        best = 1
        if first.alike(second):
            step = second.base - first.base
            best = _while(column, lambda n, leaf: leaf.alike(first) and leaf.base == first.base + n * step)
        if first == second:
            best = max(best, _while(column, lambda n, leaf: leaf == first))
        if first.names and not first.steps and position not in self.rows[0].targets:
            source = self._source(1, position)
            if source is not None:
                start = 1 if source.is_before else 0
                n = start
                while n < len(column) and self._source(n, position) == source:
                    n += 1
                best = max(best, n)
        return best

    def _source(self, row: int, position: int) -> _Source | None:
        name = self.rows[row].leaves[position].text
        target = self.made[row].get(name)
        if target is not None and target < position:
            return _Source(target, False)
        target = self.made[row - 1].get(name) if row else None
        return None if target is None else _Source(target, True)

    def write(self, listed: bool) -> Chunk | None:
        """The loop, or None where Python cannot say the run in a few names."""
        try:
            return self._write(listed)
        except _NoLoopError:
            return None

    def _write(self, listed: bool) -> Chunk:
        targets = sorted(self.rows[0].targets)
        texts: dict[int, str] = {}  # of locations that have a name in the loop
        carried: dict[int, Leaf] = {}  # what each target that is carried on is before the loop
        for target in targets:
            reads = self._local_reads(target)
            if reads is not None:
                texts.update(dict.fromkeys((target, *reads), f"\1{target}\1"))
                continue
            found = self._carried_reads(target)
            if found is not None:
                carried[target] = found[0]
                texts.update(dict.fromkeys((target, *found[1]), f"\1{target}\1"))
        leaves: dict[int, Leaf] = {}
        collected: list[int] = []
        for position in self.indexes:
            if position in texts:
                continue
            leaf = self._over_rows(position)
            if leaf is not None:
                leaves[position] = leaf
            elif position in targets:
                texts[position] = f"\1{position}\1"
                collected.append(position)
            elif listed:
                if f"\0{position}\0" in self.template:  # not in a vector that is listed already
                    texts[position] = self._listed(position)
            else:
                raise _NoLoopError
        # What is collected has no name before the loop ends, so that nothing in it can read it.
        read = {name for position, leaf in leaves.items() if position not in targets for name in leaf.names}
        if collected and (not listed or any(self.rows[0].leaves[t].steps for t in collected)):
            raise _NoLoopError
        if any(row.leaves[target].text in read for target in collected for row in self.rows):
            raise _NoLoopError
        loop = self._shaped(texts, leaves, carried, collected, flat=False)
        counted = [target for target in targets if target in leaves]
        if not self.rows[0].is_line or not targets or carried or sorted(collected + counted) != targets:
            return loop
        if TRAILING in self.template:
            return loop
        if any(row.leaves[target].text in read for target in counted for row in self.rows):
            return loop
        flat = self._shaped(texts, leaves, carried, collected, flat=True)
        if counted:
            flat.other = None if collected else loop
        return loop if counted and measure(flat) > WIDTH - 8 else flat

    def _over_rows(self, position: int) -> Leaf | None:
        """The leaf of all rows: the same, or in equal steps."""
        column = [row.leaves[position] for row in self.rows]
        first, second = column[0], column[1]
        if all(leaf == first for leaf in column):
            return first
        step = second.base - first.base
        if not step or not all(
            leaf.alike(first) and leaf.base == first.base + n * step for n, leaf in enumerate(column)
        ):
            return None
        names = tuple(name for leaf in column for name in leaf.names)
        return replace(first, steps=(*first.steps, (self.level, step)), names=names)

    def _reads(self, row: int, name: str) -> list[int]:
        return self.read_at[row].get(name, [])

    def _local_reads(self, target: int) -> list[int] | None:
        """Where a row reads a target that nothing else reads."""
        expected: list[int] | None = None
        for number, row in enumerate(self.rows):
            leaf = row.leaves[target]
            if leaf.steps:
                return None
            reads = self._reads(number, leaf.text)
            expected = reads if expected is None else expected
            if reads != expected or self.uses[leaf.text] != len(reads) + 1:
                return None
            if any(row.leaves[position].steps for position in reads):
                return None
        return expected

    def _carried_reads(self, target: int) -> tuple[Leaf, list[int]] | None:
        """What a target is before the loop, and where rows read it: that of the row before, or their own."""
        name = self.rows[0].leaves[target].text
        if self.rows[0].leaves[target].steps:
            return None
        before, own = self._reads(1, name), self._reads(0, name)
        if not before or len({self.rows[0].leaves[position] for position in before}) != 1:
            return None
        start = self.rows[0].leaves[before[0]]
        if start.steps or not start.names or start.text in self.all_made:
            return None
        ends = self.rows[0].template.find("\n", self.rows[0].template.index(f"\0{target}\0"))
        last = self.rows[0].template[: ends if ends >= 0 else None].count("\0") // 2  # later locations are other lines
        if any(position >= last for position in before) or any(position < last for position in own):
            return None
        for number, row in enumerate(self.rows):
            name = row.leaves[target].text
            following = self._reads(number + 1, name) if number + 1 < len(self.rows) else []
            if self._reads(number, name) != own or (number + 1 < len(self.rows) and following != before):
                return None
            if number + 1 < len(self.rows) and self.uses[name] != len(own) + len(following) + 1:
                return None
        return start, [*before, *own]

    def _listed(self, position: int) -> str:
        """The name of a listed leaf; the vector that it is in is listed as a whole."""
        indexes = [position]
        for found in _VECTOR.finditer(self.template):
            inside = [int(number) for number in MARK.findall(found[0])]
            if position in inside:
                indexes = inside
                self.template = self.template.replace(found[0], f"\0{position}\0")
        values = [[row.leaves[position] for position in indexes] for row in self.rows]
        if any(leaf.steps or leaf.text in self.all_made for value in values for leaf in value):
            raise _NoLoopError
        if values not in self.lists:
            if len(self.lists) == MOST_LISTS:
                raise _NoLoopError
            self.lists.append(values)
        return self.listed_names[self.lists.index(values)]

    def _shaped(
        self,
        texts: dict[int, str],
        leaves: dict[int, Leaf],
        carried: dict[int, Leaf],
        collected: list[int],
        flat: bool,
    ) -> Chunk:
        """The lines of the loop; `flat`: as one line, `r1, r2 = [call for i in range(2)]`."""
        out: list[Leaf] = []
        targets: set[int] = set()

        def mark(leaf: Leaf, is_target: bool = False) -> str:
            if is_target:
                targets.add(len(out))
            out.append(leaf)
            return f"\0{len(out) - 1}\0"

        def leaf(found: re.Match[str]) -> str:
            position = int(found[1])
            if position in texts:
                return re.sub("\1(\\d+)\1", lambda match: locals_[int(match[1])], texts[position])
            chosen = leaves[position]
            if self._grows(chosen) and (start, step) != (0, 1):
                chosen = replace(chosen, base=0, steps=((self.level, 1),))
            return mark(chosen, position in self.rows[0].targets)

        growing = [leaf for leaf in leaves.values() if self._grows(leaf)]
        if flat:
            growing = [
                leaf for position, leaf in leaves.items() if self._grows(leaf) and position not in self.rows[0].targets
            ]
        starts = {(leaf.base, leaf.steps[-1][1]) for leaf in growing}
        inner = any(len(leaf.steps) > 1 for leaf in growing)
        start, step = next(iter(starts)) if len(starts) == 1 and not inner else (0, 1)
        locals_ = self._locals(texts)
        if flat:
            wanted = sorted(self.rows[0].targets)
            parts = [", ".join(mark(row.leaves[target], True) for target in wanted) for row in self.rows]
            call = MARK.sub(leaf, self.template.partition(" = ")[2])
            head = self._head(bool(starts), start, step, mark)
            targeted = ", ".join(part if len(wanted) == 1 else f"({part})" for part in parts)
            return Chunk(f"{targeted} = [{call} {head}]", out, frozenset(targets), self.level)
        lines = [f"{locals_[target]} = {mark(leaf)}" for target, leaf in carried.items()]
        if collected:
            lines.append(f"{self.collector} = []")
        lines.append(f"{self._head(bool(starts), start, step, mark)}:")
        lines += shifted(MARK.sub(leaf, self.template), 0, "    ")
        if collected:
            together = ", ".join(locals_[target] for target in collected)
            lines.append(f"    {self.collector}.append({together if len(collected) == 1 else f'({together})'})")
            parts = [", ".join(mark(row.leaves[t], True) for t in collected) for row in self.rows]
            lines.append(f"{', '.join(p if len(collected) == 1 else f'({p})' for p in parts)} = {self.collector}")
        for target in carried:
            last = self.rows[-1].leaves[target]
            if self.uses[last.text] > 1 + len(self._reads(len(self.rows) - 1, last.text)):
                lines.append(f"{mark(last, True)} = {locals_[target]}")
        return Chunk("\n".join(lines), out, frozenset(targets), self.level)

    def _grows(self, leaf: Leaf) -> bool:
        return bool(leaf.steps) and leaf.steps[-1][0] == self.level

    def _locals(self, texts: dict[int, str]) -> dict[int, str]:
        """The local names of targets: `_` for what is not read."""
        numbers = [int(match[1]) for text in texts.values() if (match := re.fullmatch("\1(\\d+)\1", text))]
        used = sorted(set(numbers))
        read = {n for n in used if numbers.count(n) > 1 or self.uses[self.rows[0].leaves[n].text] > 1}
        named = [n for n in used if n in read]
        return dict.fromkeys(used, "_") | {
            n: f"{self.local}{number}" if len(named) > 1 else self.local for number, n in enumerate(named)
        }

    def _head(self, counts: bool, start: int, step: int, mark: Callable[[Leaf], str]) -> str:
        """`for i in range(0, 64, 4)`, `for x, y in zip((r1, r2), (r3, r4))`."""
        count = len(self.rows)
        sources: list[tuple[str, str]] = []
        if counts and (start, step) == (0, 1):
            sources.append((self.counter, f"range({count})"))
        elif counts:
            limits = [mark(Leaf(str(n), "", n)) for n in (start, start + count * step)]
            sources.append((self.counter, f"range({', '.join(limits)}{f', {step}' if step != 1 else ''})"))
        for values, name in zip(self.lists, self.listed_names, strict=False):
            parts = [", ".join(mark(leaf) for leaf in value) for value in values]
            sources.append((name, f"({', '.join(part if len(values[0]) == 1 else f'({part})' for part in parts)})"))
        if not sources:
            return f"for _ in range({count})"
        if len(sources) == 1:
            return f"for {sources[0][0]} in {sources[0][1]}"
        names = ", ".join(name for name, _ in sources)
        return f"for {names} in zip({', '.join(text for _, text in sources)}, strict=True)"


def _while(column: Sequence[Leaf], holds: Callable[[int, Leaf], bool]) -> int:
    """How many leaves from the first on a condition holds for."""
    return next((n for n, leaf in enumerate(column) if not holds(n, leaf)), len(column))


def _read_at(row: Chunk) -> dict[str, list[int]]:
    """Where a row reads each register."""
    found: dict[str, list[int]] = {}
    for position, leaf in enumerate(row.leaves):
        if position not in row.targets:
            for name in dict.fromkeys(leaf.names):
                found.setdefault(name, []).append(position)
    return found
