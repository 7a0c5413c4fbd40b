"""Intervals: the accesses that can happen between two barriers, and what two threads in one have in common.

All threads of a block pass the same barriers in the same order (that is proved on its own). So two accesses of two
threads are not ordered only if both come after the same barrier, in the same turns of the loops around it, with no
barrier on the way. That is the two-thread reduction: a race of any number of threads is one of two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ptxlab.flow.expressions import PARAMETER, SPECIAL, Atom, Linear, linear
from ptxlab.prove.execution.segments import Access, Path, Segment
from ptxlab.prove.terms.terms import Loop, Symbol, Terms, is_integer, is_uniform, leaves

from .copies import FREE, Pending, pending


@dataclass(frozen=True, eq=False)
class Reached:
    """An access in an interval. `turns`: how many turns later than the barrier; of a loop entered since, which turn."""

    access: Access
    turns: dict[Loop, int]


@dataclass(frozen=True, eq=False)
class Interval:
    """What comes after a barrier, or the start of the kernel, before the next barrier."""

    start: Segment
    reached: tuple[Reached, ...]


def intervals(
    segments: Sequence[Segment], entry: Segment, terms: Terms, *, of_warps: bool
) -> Iterator[Interval]:  # fmt: skip
    """The intervals of a kernel: between barriers of the block, or also of the warp, for two threads of one.

    A copy that may be under way at a barrier is one of the accesses after it.
    """
    copies: dict[Segment, list[Reached]] = defaultdict(list)
    for one in pending(segments):
        copies[one.segment].append(_at_barrier(one, terms))

    def starts(segment: Segment) -> bool:
        return segment.barrier is not None and (of_warps or not segment.is_of_warp)

    for segment in segments:
        if segment is entry or starts(segment):
            yield Interval(segment, (*_reached(segment, starts), *copies[segment]))


def _at_barrier(one: Pending, terms: Terms) -> Reached:
    """A copy that may be under way at the start of a segment: turns are counted from those at that place."""
    turns = {loop: FREE if turn == FREE else -turn for loop, turn in one.since.items()}
    exact = {loop: turn for loop, turn in one.exact.items() if turn != FREE}
    here = [terms.equal(loop.counter, linear(loop.counter.type, turn)) for loop, turn in exact.items()]
    copy = replace(one.copy, path=(*one.copy.path, *here))
    return Reached(copy, turns | dict.fromkeys(exact, 0))


def _reached(start: Segment, is_start: Callable[[Segment], bool]) -> Iterator[Reached]:
    """The accesses after the start of a segment, before the next barrier; in any turn, if so, and not in the first."""
    found: dict[Segment, list[dict[Loop, int]]] = defaultdict(list)
    seen: set[tuple[Segment, frozenset[tuple[Loop, int]]]] = set()
    pending: list[tuple[Segment, dict[Loop, int]]] = [(start, dict.fromkeys(start.loops, 0))]
    while pending:
        segment, turns = pending.pop()
        key = (segment, frozenset(turns.items()))
        if key in seen:
            continue
        seen.add(key)
        found[segment].append(turns)
        for after, back in segment.successors:
            if is_start(after):
                continue
            later = dict(turns)
            if back is not None:
                later[back] = 1 if later[back] == 0 and back in start.loops else FREE
            for loop in after.loops:
                if loop not in segment.loops:
                    later[loop] = FREE if loop in start.loops else 0
            pending.append((after, later))
    for segment, ways in found.items():
        for turns in ways:
            others = [one for one in ways if one is not turns and one.keys() == turns.keys()]
            if not any(all(one[loop] in (turn, FREE) for loop, turn in turns.items()) for one in others):
                yield from (Reached(access, turns) for access in segment.accesses)


class At(NamedTuple):
    """Where a thread is: on a path, in turns of loops; and terms that are asked about there."""

    path: Path
    loops: tuple[Loop, ...]
    values: Sequence[Linear]


class Pair:
    """Names of variables for two threads, in turns of loops: how many later than those of `start`, or which."""

    def __init__(
        self, start: tuple[Loop, ...] | None, turns: Sequence[dict[Loop, int]], *, same_block: bool,
        same_warp: bool | None = None, may_be_one: bool = False, same_thread: bool = False,
    ) -> None:  # fmt: skip
        self.start, self.turns, self.same_block = start, turns, same_block
        self.same_warp, self.may_be_one, self.same_thread = same_warp, may_be_one, same_thread

    def is_same_turn(self, loop: Loop) -> bool:
        """Whether both threads are in the same turn of a loop, or left it in the same turn."""
        if not self.same_block or not all(self.is_same_turn(one) for one in loop.outer):
            return False
        one, other = (turns.get(loop) for turns in self.turns)
        if one is None and other is None:
            return loop.is_uniform or loop.has_barrier or self.same_thread
        return one == other and one is not None and one < FREE

    def name(self, atom: Atom, thread: int) -> tuple[str, int]:
        """The variable that an atom is in a thread, and what is added to it."""
        detail, tag = atom.detail, f"@{thread}"
        if atom.kind == PARAMETER:
            return parameter_name(atom), 0
        if atom.kind == SPECIAL:
            name = str(detail)
            is_shared = self.same_thread or name.startswith("%nctaid")
            is_shared |= self.same_block and name.startswith(("%ctaid", "%clusterid"))
            return name + ("" if is_shared else tag), 0
        if isinstance(detail, Loop):
            return self._turn(detail, thread)
        if isinstance(detail, Symbol):
            is_own = self.same_thread and all(self.is_same_turn(one) for one in detail.loops)
            is_shared = self.same_block and (is_own or detail.is_same(self.is_same_turn))
            return f"symbol{id(detail)}" + ("" if is_shared else tag), 0
        if atom.step is None or not atom.parts:
            return f"{atom.kind}{id(detail) if atom.step is None else atom.detail}", 0  # an address, a window
        is_shared = self.same_block and is_uniform(atom.parts, self.is_same_turn)
        return f"operation{id(atom)}" + ("" if is_shared else tag), 0

    def _turn(self, loop: Loop, thread: int) -> tuple[str, int]:
        name, turn = f"turn{id(loop)}", self.turns[thread].get(loop)
        if self.start is not None and turn is not None and turn < FREE:
            return (name, turn) if loop in self.start else ("", turn)
        if turn is None and self.is_same_turn(loop):
            return name, 0
        return f"{name}@{thread}", 0

    def fixed(self, thread: int) -> frozenset[tuple[Loop, int, bool]]:
        """The turns of loops that are numbers in a thread, or at least a number: which, and whether they are it."""
        turns = [(loop, self._turn(loop, thread)) for loop in self.turns[thread]]
        return frozenset((loop, turn, not name) for loop, (name, turn) in turns if turn or not name)

    def facts(
        self, values: Sequence[Linear], loops: Sequence[Loop], thread: int
    ) -> tuple[list[Linear], list[Linear]]:  # fmt: skip
        """What holds of the turns of loops that terms depend on or a thread is in: their limits, and the rest."""
        limits: list[Linear] = []
        others: list[Linear] = []
        known = loops_of([*values, *(fact for one in loops for fact in (*one.limits, *one.facts))]) | set(loops)
        for loop in sorted(known, key=lambda one: (len(one.outer), one.line)):
            shared = loop not in loops and not self._turn(loop, thread)[0].endswith(f"@{thread}")
            for given, found in ((loop.limits, limits), (loop.facts, others)):
                found += [one for one in given if not shared or loop.has_barrier or is_uniform([one], lambda _: True)]
        symbols = {atom.detail for atom in leaves(values) if isinstance(atom.detail, Symbol)}
        others += [fact for symbol in sorted(symbols, key=lambda one: one.line) for fact in symbol.facts]
        return limits, others


ALONE = Pair(None, ({}, {}), same_block=True)
"""One thread, in any turns."""


def loops_of(values: Sequence[Linear]) -> set[Loop]:
    """The loops whose turns terms depend on, with those that what holds in their turns depends on."""
    found: set[Loop] = set()
    pending = list(values)
    while pending:
        fresh: set[Loop] = set()
        for atom in leaves(pending):
            detail = atom.detail
            fresh |= {detail, *detail.outer} if isinstance(detail, Loop) else set()
            fresh |= set(detail.loops) if isinstance(detail, Symbol) else set()
        fresh -= found
        found |= fresh
        pending = [fact for loop in fresh for fact in (*loop.limits, *loop.facts)]
    return found


def parameter_name(atom: Atom) -> str:
    """The variable of a parameter: by its name only where it is the integer that assumptions are about."""
    assert isinstance(atom.detail, tuple)
    variable, offset = atom.detail
    kinds, widths = atom.type.kind + variable.type.kind, {atom.type.width, variable.type.width}
    is_whole = not offset and len(widths) == 1 and (min(widths) >= 32 or "s" not in kinds)
    if is_whole and is_integer(variable):
        return str(variable.title)
    return f"{variable.title}+{offset}:{atom.type.name}"
