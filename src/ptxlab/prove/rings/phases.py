"""Phases: which arrivals and copies make up each phase of an mbarrier, and for which phase each wait is.

Who does something, and at which mbarrier, is computed for each thread of the block and each turn of a loop until they
come again, not guessed. At an mbarrier that an event comes to every `spacing` turns, from turn `first` on, the number
of its visit follows from the turn, and so does the phase.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import lcm

from ptxlab import ir
from ptxlab.flow.expressions import ADDRESS, Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.isa.chapters.mbarrier import ARRIVALS
from ptxlab.prove.execution.segments import Event, UnsupportedError
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.questions.objects import DYNAMIC
from ptxlab.prove.terms.periods import period
from ptxlab.prove.terms.predicates import FALSE, TRUE
from ptxlab.prove.terms.terms import SHARED_BYTES, Loop, Terms, is_thread_index, leaves, without_rank

from .relays import twins

MOST_PERIOD = 128
Key = tuple[object, int]
"""An mbarrier: its variable, and the byte in it."""


@dataclass(eq=False)
class Visit:
    """An event that comes to an mbarrier, by threads of a mask: once, or in every `spacing`-th turn from `first` on."""

    event: Event
    mask: int
    first: int
    spacing: int
    values: tuple[int, ...]
    """The count or the parity, visit by visit."""


@dataclass(eq=False)
class Arriver:
    """Threads that arrive once in each phase: first outside of loops, then in a loop, and once after it."""

    mask: int
    before: list[Visit] = field(default_factory=list)
    looped: Visit | None = None
    last: Visit | None = None
    """After the loop, in place of the one that a further turn of it would have."""

    def visits(self) -> list[Visit]:
        """All of them, in order."""
        return [*self.before, *(one for one in (self.looped, self.last) if one is not None)]

    def phase(self, visit: Visit) -> int:
        """The phase of the first visit."""
        return self.before.index(visit) if visit in self.before else len(self.before)


@dataclass(eq=False)
class Mbarrier:
    """An mbarrier with all that comes to it."""

    key: Key
    line: int
    count: int
    initialized: Event
    owner: int
    """The thread that initializes it, as a mask."""
    arrivers: list[Arriver] = field(default_factory=list)
    copies: dict[Event, dict[Event, int]] = field(default_factory=lambda: defaultdict(dict))
    """The copies in the phase of each arrival, in the same turn, with the threads that start them."""
    depth: int = 0
    """How many loops are around the loops in which it is used."""
    waits: list[tuple[Visit, int]] = field(default_factory=list)
    """Waits, each with the phase that its first visit is for: -1 is before the first."""

    def come(self, arrival: Event, mask: int) -> list[tuple[Event, int]]:
        """An arrival and the copies in its phase, each with its threads."""
        return [(arrival, mask), *self.copies.get(arrival, {}).items()]


def place_of(event: Event) -> tuple[object, list[Linear]]:
    """The variable that an mbarrier is in, and the byte in it, in whichever block; with the count or the parity."""
    assert event.address is not None
    bases = [atom for atom, factor in event.address.terms if atom.kind == ADDRESS and factor == 1]
    if len(bases) != 1 or not isinstance(bases[0].detail, ir.Variable):
        raise UnsupportedError(event.at, "which mbarrier this is is not known")
    variable = bases[0].detail
    place, rank = without_rank(event.address)
    if rank is not None:
        place = place.plus(rank.as_type(place.type), SHARED_BYTES)
    base = DYNAMIC if variable.elements is None else id(variable)
    return base, [place, *([] if event.value is None else [event.value])]


def visits(threads: Threads, event: Event, mask: int) -> Iterator[tuple[Key, Visit]]:
    """The mbarriers that an event comes to."""
    base, values = place_of(event)
    loop = _loop(event, values)
    counter, turns, start, end = None, 1, 0, 1
    versions = [(0, values)]
    if loop is not None:
        counter = loop.turn
        start = _starts(threads.terms, event, loop)
        versions = _versions(threads.terms, values, loop, start)
        turns, repeats = _repeats(threads.terms, versions, loop, start)
        if not 0 < turns <= MOST_PERIOD:
            raise UnsupportedError(event.at, "the mbarrier, or its phase, does not come again in turns")
        end = repeats + turns
        event.left = None if loop in event.loops else loop
        event.starts = start + (event.left is not None)
    found: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    said: dict[tuple[int, int], set[int]] = defaultdict(set)
    is_own = _has_threads(values)
    chosen = [thread for thread in range(threads.count) if mask >> thread & 1]
    try:
        for turn in range(start, end):
            for thread in chosen if is_own else chosen[:1]:
                for own in (own for least, own in versions if turn >= least):
                    place, *more = (threads.evaluate(one, thread, counter, turn) for one in own)
                    found[place][turn] |= 1 << thread if is_own else mask
                    said[place, turn].add(more[0] if more else 0)
    except LookupError:
        raise UnsupportedError(event.at, "the mbarrier, or its phase, depends on more than turns") from None
    for place, at in found.items():
        first = min(at)
        spacing = turns // sum(turn < start + turns for turn in at)
        is_even = sorted(at) == list(range(first, end, spacing)) and first < start + spacing
        if not is_even or len(set(at.values())) > 1 or any(len(said[place, turn]) > 1 for turn in at):
            raise UnsupportedError(event.at, "threads come to this mbarrier in different turns")
        numbers = [next(iter(said[place, turn])) for turn in sorted(at)]
        count = turns // spacing
        if numbers[: len(numbers) - count] != numbers[count:]:  # those of the turns before they come again
            raise UnsupportedError(event.at, "the mbarrier, or its phase, does not come again in turns")
        yield (base, place), Visit(event, at[first], first + event.starts - start, spacing if loop is not None else 0,
                                   tuple(numbers[:count]))  # fmt: skip


def _loop(event: Event, values: Sequence[Linear]) -> Loop | None:
    """The loop whose turns say which mbarrier it is: that of the event, or one before it, by its last turn."""
    if event.loops[1:] and (event.loops[2:] or not event.loops[1].base.terms):
        raise UnsupportedError(
            event.at, "a ring that does not continue in the next turn of an outer loop is not followed"
        )
    found = {atom.detail for atom in leaves(values) if isinstance(atom.detail, Loop)} - set(event.loops)
    if not found or event.loops[1:]:
        return event.loops[-1] if event.loops else None
    loop = next(iter(found))
    is_one = len(found) == 1 and isinstance(loop, Loop) and loop.is_uniform and loop.outer == event.loops
    is_one = is_one and bool(event.loops) == bool(loop.base.terms)
    if not is_one or event.kind != "arrive":
        raise UnsupportedError(event.at, "the mbarrier depends on how loops before it ended")
    return loop


def _versions(terms: Terms, values: list[Linear], loop: Loop, start: int) -> list[tuple[int, list[Linear]]]:
    """Values in a turn of a loop, by the number of all its turns so far: in the first turn of a turn of the loop around
    it, and in others; with the first number that each is for."""  # fmt: skip
    if not loop.base.terms:
        return [(0, values)]
    ((base, _),) = loop.base.terms
    at_first = [{loop.turn: linear(LONG, 0)}, {base: loop.counter}]
    later = [{loop.turn: one} for one in (loop.later(1), loop.counter.plus(loop.base, -1), loop.later(-1))]
    found = []
    for least, replaced in ((0, at_first), (1, later))[start:]:
        own = values
        for each in replaced:
            own = [terms.substitute(value, each) for value in own]
        found.append((least, own))
    return found


def _repeats(
    terms: Terms, versions: Sequence[tuple[int, list[Linear]]], loop: Loop, start: int
) -> tuple[int, int]:  # fmt: skip
    """After how many turns values come again, and from which turn on; 0 if that is not known."""
    for first in range(start, 2):
        values = [terms.in_turn(one, loop, loop.later(first)) for _, own in versions for one in own]
        turns = lcm(*(period(one, loop.turn) or 0 for one in values))
        if turns:
            return turns, max(first, versions[-1][0])
    return 0, 0


def in_all_turns(
    terms: Terms, values: list[Linear], loop: Loop, at: int, again: int
) -> tuple[list[tuple[int, list[Linear]]], int]:  # fmt: skip
    """Values by the number of all turns of a loop; and a turn by which they, and what does so often, come again."""
    versions = _versions(terms, values, loop, 0)
    turns, repeats = _repeats(terms, versions, loop, 0)
    if not 0 < turns <= MOST_PERIOD:
        raise UnsupportedError(at, "the mbarrier, or its phase, does not come again in turns")
    return versions, repeats + lcm(turns, again)


def _starts(terms: Terms, event: Event, loop: Loop) -> int:
    """The first turn that an event comes in: 1 where a predicate on its path holds in all turns but the first."""
    turns = linear(LONG, 0), loop.later(1)
    ways = [[terms.in_turn(one, loop, turn) for turn in turns] for one in event.path if loop in event.loops]
    return int([FALSE, TRUE] in ways)


def mbarriers(threads: Threads, events: Sequence[Event], masks: dict[Event, int]) -> list[Mbarrier]:
    """The mbarriers of a kernel."""
    found: dict[Key, Mbarrier] = {}
    coming: dict[Key, list[Visit]] = defaultdict(list)
    first = twins(events)
    of_first: dict[Event, dict[Key, Visit]] = {}
    for event in events:
        if event.address is None or not masks[event]:
            continue
        own = of_first[event] = dict(visits(threads, event, masks[event]))
        if first.get(event, event) is not event and (event.loops[1:] or event.left is not None):
            firsts = of_first[first[event]]  # groups that take turns visit a ring as one
            if [(key, one.first, one.spacing, one.values) for key, one in own.items()] != [
                (key, one.first, one.spacing, one.values) for key, one in firsts.items()
            ]:
                raise UnsupportedError(event.at, "groups of threads that take turns do not visit the same mbarriers")
            continue
        for key, visit in own.items():
            coming[key].append(visit)
            if event.kind == "init":
                is_one = visit.mask & (visit.mask - 1) == 0
                if key in found or event.loops or not is_one:
                    raise UnsupportedError(event.at, "an mbarrier that is initialized more than once is not followed")
                if not 0 < visit.values[0] <= ARRIVALS:
                    raise UnsupportedError(event.at, f"an mbarrier cannot expect {visit.values[0]} arrivals a phase")
                found[key] = Mbarrier(key, event.line, visit.values[0], event, visit.mask)
    for key, all in coming.items():
        if key not in found:
            raise UnsupportedError(all[0].event.at, "this mbarrier is not initialized")
        _fill(found[key], sorted(all, key=lambda one: one.event.number), threads)
        _check(found[key], all)
    return list(found.values())


def _fill(mbarrier: Mbarrier, visits: Sequence[Visit], threads: Threads) -> None:
    for visit in visits:
        event = visit.event
        if event.kind == "arrive":
            _arrive(mbarrier, visit)
        elif event.kind == "copy":
            ways = sorted(mbarrier.arrivers, key=lambda one: one.mask != visit.mask)
            last = [one.looped if event.loops else one.before[-1] if one.before else None for one in ways]
            found = [one.event for one in last if one is not None and _is_expected(visit, one, threads)]
            if not found:
                raise UnsupportedError(event.at, "a copy must come after an arrival that expects it")
            mbarrier.copies[found[0]][event] = visit.mask
        elif event.kind == "wait":
            mbarrier.waits.append((visit, _awaited(mbarrier, visit)))


def _is_expected(copy: Visit, arrival: Visit, threads: Threads) -> bool:
    """Whether a copy comes where an arrival does, in the same turns: of the same threads, or in another block."""
    one, other = copy.event, arrival.event
    if (copy.first, copy.spacing) != (arrival.first, arrival.spacing) or not other.bytes:
        return False
    is_alike = set(threads.mask(one.path)[1]) == set(threads.mask(other.path)[1])
    is_same = copy.mask == arrival.mask or all(loop.is_uniform for loop in one.loops)
    return is_alike and is_same and one.loops == other.loops


def _check(mbarrier: Mbarrier, visits: Sequence[Visit]) -> None:
    """Loops in loops must come to an mbarrier in each turn: in the first one, by what comes after the turns before."""
    depths = {len((one.event.left or one.event.loops[-1]).outer) for one in visits if one.spacing}
    mbarrier.depth = max(depths, default=0)
    for visit in visits if mbarrier.depth else ():
        event = visit.event
        arriver = next((one for one in mbarrier.arrivers if visit in (one.looped, one.last)), None)
        is_whole = event.starts == 0 if arriver is None else (event.starts == 1) == (arriver.last is not None)
        if len(depths) > 1 or (visit.spacing and not is_whole):
            raise UnsupportedError(
                event.at, "visits to this mbarrier that not all turns of loops have are not followed"
            )


def _arrive(mbarrier: Mbarrier, visit: Visit) -> None:
    event = visit.event
    own = next((one for one in mbarrier.arrivers if one.mask & visit.mask), None)
    if own is None:
        own = Arriver(visit.mask)
        mbarrier.arrivers.append(own)
    looped = own.looped
    if looped is not None and event.left is looped.event.loops[-1] and own.last is None:
        is_next = (visit.mask, visit.first, visit.spacing, visit.values) == (
            looped.mask, looped.first, looped.spacing, looped.values)  # fmt: skip
        if is_next and event.bytes == looped.event.bytes:
            own.last = visit
            return
    if own.mask != visit.mask or looped is not None or event.left is not None or len(set(visit.values)) > 1:
        raise UnsupportedError(event.at, "arrivals that are not one in each phase by the same threads are not followed")
    if event.loops:
        own.looped = visit  # with a second one, or one in another loop, it is not followed
    else:
        own.before.append(visit)


def _awaited(mbarrier: Mbarrier, visit: Visit) -> int:
    """The phase that the first visit of a wait is for."""
    number = sum(1 for one, _ in mbarrier.waits if one.mask & visit.mask)
    if any(one.event.loops and one.mask & visit.mask for one, _ in mbarrier.waits):
        raise UnsupportedError(visit.event.at, "a wait after those of a loop, at the same mbarrier, is not followed")
    parity = visit.values[0] & 1
    if visit.spacing:
        pairs = zip(visit.values, (*visit.values[1:], visit.values[0]), strict=True)
        if len(visit.values) % 2 or any(one & 1 == other & 1 for one, other in pairs):
            raise UnsupportedError(visit.event.at, "the parity of this wait does not change from phase to phase")
    return number if parity == number % 2 else number - 1


def _has_threads(values: Sequence[Linear]) -> bool:
    return any(is_thread_index(atom) for atom in leaves(values))


def loop_of(loops: Sequence[Loop], depth: int = 0) -> Loop | None:
    """The loop whose turns count."""
    return loops[depth] if loops[depth:] else None


def clock(loops: Sequence[Loop], depth: int = 0) -> Linear:
    """The turn of the loop whose turns count, of all turns so far; 0 outside of loops."""
    loop = loop_of(loops, depth)
    return linear(LONG, 0) if loop is None else loop.counter.plus(loop.base) if loop.base.terms else loop.counter


def turns_of(visit: Visit, phase: int, arriver: Arriver) -> Iterator[tuple[Event, int, bool]]:
    """The arrivals in the phases of a wait, and how many turns before it; outside of loops, from which turn on."""
    for number, one in enumerate(arriver.before):
        if visit.spacing:
            yield one.event, visit.first + visit.spacing * max(0, number - phase), False
        elif number <= phase:
            yield one.event, 0, False
    if arriver.looped is not None and visit.spacing:
        looped = arriver.looped
        if looped.spacing != visit.spacing:
            raise UnsupportedError(visit.event.at, "a wait and its arrivals do not come to an mbarrier equally often")
        distance = visit.first - looped.first + visit.spacing * (len(arriver.before) - phase)
        yield looped.event, distance, True
