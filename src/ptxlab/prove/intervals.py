"""Intervals: the accesses that can happen between two barriers, and what two threads in one have in common.

All threads of a block pass the same barriers in the same order (that is proved on its own). So two accesses of two
threads are not ordered only if both come after the same barrier, in the same turns of the loops around it, with no
barrier on the way. That is the two-thread reduction: a race of any number of threads is one of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ptxlab.flow.expressions import PARAMETER, SPECIAL, Atom, Linear

from .segments import Access, Segment
from .terms import Loop, Symbol, is_uniform, leaves

FREE = 2  # a turn of which nothing is known


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


def intervals(segments: Sequence[Segment], entry: Segment, *, of_warps: bool) -> Iterator[Interval]:
    """The intervals of a kernel: between barriers of the block, or also of the warp, for two threads of one."""

    def starts(segment: Segment) -> bool:
        return segment.barrier is not None and (of_warps or not segment.is_of_warp)

    for segment in segments:
        if segment is entry or starts(segment):
            yield Interval(segment, tuple(_reached(segment, starts)))


def _reached(start: Segment, is_start: Callable[[Segment], bool]) -> Iterator[Reached]:
    seen: set[tuple[Segment, frozenset[tuple[Loop, int]]]] = set()
    pending: list[tuple[Segment, dict[Loop, int]]] = [(start, dict.fromkeys(start.loops, 0))]
    while pending:
        segment, turns = pending.pop()
        key = (segment, frozenset(turns.items()))
        if key in seen:
            continue
        seen.add(key)
        for access in segment.accesses:
            yield Reached(access, turns)
        for after, back in segment.successors:
            if is_start(after):
                continue
            later = dict(turns)
            if back is not None:
                later[back] = min(later[back] + 1, FREE) if back in start.loops else FREE
            for loop in after.loops:
                if loop not in segment.loops:
                    later[loop] = FREE if loop in start.loops else 0
            pending.append((after, later))


class Pair:
    """Names of variables for two threads: `of(0)` and `of(1)` give each atom its name in a thread."""

    def __init__(
        self, start: Segment | None, turns: Sequence[dict[Loop, int]], *, same_block: bool,
        same_warp: bool | None = None, may_be_one: bool = False,
    ) -> None:  # fmt: skip
        self.start, self.turns, self.same_block = start, turns, same_block
        self.same_warp, self.may_be_one = same_warp, may_be_one
        self._ids: dict[int, str] = {}

    def is_same_turn(self, loop: Loop) -> bool:
        """Whether both threads are in the same turn of a loop, or left it in the same turn."""
        if not self.same_block or not all(self.is_same_turn(one) for one in loop.outer):
            return False
        one, other = (turns.get(loop) for turns in self.turns)
        if one is None and other is None:
            return loop.is_uniform or loop.has_barrier
        return one == other and one is not None and one < FREE

    def name(self, atom: Atom, thread: int) -> tuple[str, int]:
        """The variable that an atom is in a thread, and what is added to it."""
        detail, tag = atom.detail, f"@{thread}"
        if atom.kind == PARAMETER:
            return _parameter(atom), 0
        if atom.kind == SPECIAL:
            name = str(detail)
            is_shared = name.startswith("%nctaid") or (self.same_block and name.startswith("%ctaid"))
            return name + ("" if is_shared else tag), 0
        if isinstance(detail, Loop):
            return self._turn(detail, thread)
        if isinstance(detail, Symbol):
            is_shared = self.same_block and detail.is_uniform and all(self.is_same_turn(one) for one in detail.loops)
            return f"symbol{id(detail)}" + ("" if is_shared else tag), 0
        if atom.step is None or not atom.parts:
            return f"{atom.kind}{id(detail) if atom.step is None else atom.detail}", 0  # an address, a window
        is_shared = self.same_block and is_uniform(atom.parts, self.is_same_turn)
        return f"operation{id(atom)}" + ("" if is_shared else tag), 0

    def _turn(self, loop: Loop, thread: int) -> tuple[str, int]:
        name, turn = f"turn{id(loop)}", self.turns[thread].get(loop)
        if self.start is not None and turn is not None and turn < FREE:
            return (name, turn) if loop in self.start.loops else ("", 0)
        if turn is None and self.is_same_turn(loop):
            return name, 0
        return f"{name}@{thread}", 0

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
        return limits, others


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


def _parameter(atom: Atom) -> str:
    assert isinstance(atom.detail, tuple)
    variable, offset = atom.detail
    name = f"{variable.title}+{offset}" if offset else str(variable.title)
    return name if atom.type.width == variable.type.width else f"{name}:{atom.type.width}"
