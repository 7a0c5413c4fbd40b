"""Waits after a ring's loop, for all stages that it would come to next: a block stays until the last arrivals came.

A producer whose stages other blocks give back waits for that before it exits, with the stage and the parity that its
loop has left. Each such wait is the one that a further turn of the loop would have, of as many turns as a stage comes
again in. That is computed thread by thread, as phases are, for any last turn, and for a loop that was not entered.

So it is for the phase after that of the loop's last wait at the same mbarrier, which is over. The next phase does not
complete: arrivals in it come after the loop's wait in that turn, which is not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from ptxlab.flow.expressions import Linear
from ptxlab.prove.execution.segments import Event, UnsupportedError
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.terms.terms import Loop, Terms, atoms_of, leaves

from .phases import Key, Mbarrier, Visit, in_all_turns, place_of


@dataclass(eq=False)
class Drain:
    """A wait after a loop: it counts as a wait of that loop, so many turns after the last one."""

    event: Event
    wait: Event
    turns: int


def is_drain(event: Event) -> bool:
    """Whether a wait is after the loop that says which mbarrier it is at."""
    values = [one for one in (event.address, event.value) if one is not None]
    return event.kind == "wait" and not event.loops and any(isinstance(one.detail, Loop) for one in leaves(values))


def drains(
    threads: Threads, events: Sequence[Event], masks: Mapping[Event, int], all: Sequence[Mbarrier]
) -> list[Drain]:
    """The waits after loops, each with the wait of a loop that it counts as."""
    waits: dict[Event, dict[Key, Visit]] = {}
    for mbarrier in all:
        for visit, _ in mbarrier.waits:
            waits.setdefault(visit.event, {})[mbarrier.key] = visit
    found = [_drain(threads, event, masks, waits) for event in events]
    for number, one in enumerate(found):
        if any((one.wait, one.turns) == (other.wait, other.turns) for other in found[:number]):
            raise UnsupportedError(one.event.at, "two waits after a loop that count as one are not followed")
    return found


def _drain(
    threads: Threads, event: Event, masks: Mapping[Event, int], waits: Mapping[Event, Mapping[Key, Visit]]
) -> Drain:
    base, values = place_of(event)
    for wait, own in waits.items():
        is_alike = bool(wait.loops) and wait.number < event.number and masks[wait] == masks[event]
        if is_alike and all(loop.is_uniform and not loop.returns for loop in wait.loops):
            visits = list(_visits(threads, values, event, wait, masks[event], own))
            for turns in range(1, min(one.spacing for one in own.values()) + 1):
                if all(_is_in_turn(own.get((base, place)), parity, thread, last + turns)
                       for place, parity, thread, last in visits):  # fmt: skip
                    return Drain(event, wait, turns)
    raise UnsupportedError(event.at, "a wait after a loop that is not one of its next turns is not followed")


def _visits(
    threads: Threads, values: list[Linear], event: Event, wait: Event, mask: int, own: Mapping[Key, Visit]
) -> Iterator[tuple[int, int, int, int]]:
    """The byte, the parity, the thread and the last turn of the loop: -1 if it was not entered."""
    loop, terms = wait.loops[-1], threads.terms
    entered, skipped = _past(terms, values, wait.loops[0])
    if any(isinstance(one.detail, Loop) and one.detail is not loop for one in leaves(entered)):
        raise UnsupportedError(event.at, "which loop a wait after it depends on is not known")
    again = lcm(*(one.spacing * len(one.values) for one in own.values()))
    versions, last = in_all_turns(terms, entered, loop, event.at, again)
    ways = [(own, turn) for least, own in versions for turn in range(least, last + 1)]
    ways += [(skipped, -1)] if skipped else []
    try:
        for thread in (one for one in range(threads.count) if mask >> one & 1):
            for each, turn in ways:
                place, parity = (threads.evaluate(one, thread, loop.turn, turn) for one in each)
                yield place, parity, thread, turn
    except LookupError:
        raise UnsupportedError(event.at, "a wait after a loop depends on more than its last turn") from None


def _past(terms: Terms, values: list[Linear], loop: Loop) -> tuple[list[Linear], list[Linear]]:
    """Values where a loop has been entered, and where it has not: by the condition for that, if there is a choice."""
    for atom in atoms_of(values):
        if atom.kind == "select":
            condition, inverse = atom.parts[0], terms.negated(atom.parts[0])
            places = (2, 1) if inverse in loop.entry else (1, 2) if condition in loop.entry else None
            if places is not None:
                chosen = [one for one in atoms_of(values) if one.kind == "select" and one.parts[0] == condition]
                entered, skipped = ([terms.substitute(value, {one: one.parts[place] for one in chosen})
                                     for value in values] for place in places)  # fmt: skip
                return entered, skipped
    return values, []


def _is_in_turn(visit: Visit | None, parity: int, thread: int, turn: int) -> bool:
    """Whether a thread waits for a parity in a turn, as a loop does at an mbarrier."""
    if visit is None or not visit.mask >> thread & 1 or turn < visit.first or (turn - visit.first) % visit.spacing:
        return False
    return visit.values[(turn - visit.first) // visit.spacing % len(visit.values)] & 1 == parity & 1
