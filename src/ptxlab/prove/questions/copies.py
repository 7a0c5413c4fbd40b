"""Asynchronous copies: where each can still be under way.

A copy is one of the accesses of every interval from its start until a wait of the thread that started it: a wait for
all but `k` groups completes a copy if more than `k` groups were committed since, its own among them. So each copy is
followed along all paths, with the number of groups committed so far and of the turns that loops have made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ptxlab.flow.expressions import PARAMETER, SPECIAL, Linear
from ptxlab.prove.execution.segments import Access, Segment
from ptxlab.prove.terms.predicates import TRUE, conjuncts
from ptxlab.prove.terms.terms import Loop, Symbol, leaves

FREE = 1 << 20  # a turn of which nothing is known
MOST_TURNS = 6  # that are counted
PHASED = ("mbarrier", "phase", "tensor work")  # operations that a phase of an mbarrier completes
_FIXED = (SPECIAL, PARAMETER)
Turns = dict[Loop, int]


@dataclass(frozen=True, eq=False)
class Pending:
    """A copy that may be under way at the start of a segment.

    `since`: how many turns the loops around the copy have made since it started, or `FREE`. `exact`: of the other loops
    around the segment, which turn it is. `left`: of loops that were left since, in which turn, likewise.
    """

    copy: Access
    segment: Segment
    since: dict[Loop, int]
    exact: dict[Loop, int]
    left: dict[Loop, int]


def pending(segments: Sequence[Segment]) -> Iterator[Pending]:
    """All segments that each copy may be under way in, but the one that it is in; of those that groups complete."""
    most = max((one.waits for one in segments if one.waits is not None), default=0) + 1
    for segment in segments:
        for access in segment.accesses:
            if access.is_async and access.unit not in PHASED:
                yield from _followed(access, most)


def _followed(copy: Access, most: int) -> Iterator[Pending]:
    start = copy.segment
    seen: set[tuple[object, ...]] = set()
    waiting: list[tuple[Segment, int, Turns, Turns, Turns]] = [(start, 0, dict.fromkeys(start.loops, 0), {}, {})]
    while waiting:
        segment, commits, since, exact, left = waiting.pop()
        for after, back in segment.successors:
            is_own = copy.unit in after.units and _holds(after.condition, copy)
            committed = min(commits + after.commits, most) if is_own else commits
            if is_own and after.waits is not None and committed > after.waits:
                continue
            turns, others = _moved(segment, after, back, since, exact)
            gone = {loop: turn for loop, turn in (since | exact | left).items() if loop not in after.loops}
            key = (after, committed, *(frozenset(one.items()) for one in (turns, others, gone)))
            if key not in seen:
                seen.add(key)
                waiting.append((after, committed, turns, others, gone))
                yield Pending(copy, after, turns, others, gone)


def _holds(condition: Linear, copy: Access) -> bool:
    """Whether a condition holds for the thread that started a copy, whenever it comes to it."""
    return condition == TRUE or all(one in copy.path and not is_changing(one) for one in conjuncts(condition))


def is_changing(condition: Linear) -> bool:
    """Whether a predicate may differ between two times at which a thread asks for it."""
    return any(isinstance(atom.detail, (Loop, Symbol)) or atom.kind not in _FIXED for atom in leaves([condition]))


def _moved(
    segment: Segment, after: Segment, back: Loop | None, since: dict[Loop, int], exact: dict[Loop, int]
) -> tuple[dict[Loop, int], dict[Loop, int]]:
    """The turns of loops after a step from a segment to another."""
    turns = {loop: turn if loop in after.loops else FREE for loop, turn in since.items()}
    others = {loop: turn for loop, turn in exact.items() if loop in after.loops}
    if back is not None and turns.get(back, FREE) != FREE:
        turns[back] = turns[back] + 1 if turns[back] < MOST_TURNS else FREE
    if back in others:
        others[back] = others[back] + 1 if others[back] < MOST_TURNS else FREE
    for loop in after.loops:
        if loop not in segment.loops:
            others[loop] = 0
            if loop in turns:  # entered once more, in another turn of a loop around it
                turns[loop] = FREE
    return turns, others
