"""Groups of warps that take turns: each has every so many tiles, and all use one ring, tile after tile.

Each group runs a loop by itself (`execution`), so turn `i` of group `g` of `G` is turn `G * i + g` of all of them. The
inner loop of each makes the same number of turns, and a group passes over those of the others. So all together visit a
ring as one group would that has every tile, and that is how orders see them: by the events of the first group, whose
threads are taken for those of the group whose turn it is.

One thing differs: what a thread did in the turn before, another group did. It is known only because the groups hand
over: each waits, before its inner loop, for arrivals that the group before makes after its own, by a thread of each
warp. What comes after these arrivals is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.prove.execution.segments import Access, Event, UnsupportedError
from ptxlab.prove.questions.questions import Obligation, Questions, obligation
from ptxlab.prove.terms.terms import Loop, Symbol, leaves

if TYPE_CHECKING:
    from .orders import Orders

WHOLE = ("wait", "part", "warp", "converge", "fence", "group")


@dataclass(eq=False)
class Relay:
    """Groups that take turns: the loop of each, the one in it, and their threads."""

    loops: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    masks: tuple[int, ...]
    hands: int
    """Those of the threads of the first group that hand over, or are taken for others that do."""
    events: dict[Event, list[Event]]
    """Of each event of the first group, those of all groups."""
    accesses: dict[Access, Access]
    """Of each access of a group, that of the first group."""


def twins(events: Sequence[Event]) -> dict[Event, Event]:
    """Of each event of groups that take turns, that of the first group: they run the same instructions."""
    own: dict[tuple[int, int], list[Event]] = {}
    for event in events:
        loop = event.loops[0] if event.loops else None
        if loop is not None and loop.group is not None and loop.passed is not None:
            own.setdefault((loop.head, loop.group[0]), []).append(event)
    found: dict[Event, Event] = {}
    for (head, number), some in own.items():
        firsts = own.get((head, 0), [])
        if [_same(one) for one in some] != [_same(one) for one in firsts]:
            raise UnsupportedError(some[0].at, f"group {number} of threads that take turns does not do as the first")
        found |= zip(some, firsts, strict=True)
    return found


def _same(event: Event) -> tuple[object, ...]:
    return event.kind, event.at, event.bytes, event.spaces, event.covers, len(event.loops)


def relays(orders: Orders, outer: Orders) -> list[Relay]:
    """The groups that take turns; `outer` has what is known by the turns of the loops around those in turn."""
    loops = [one for one in orders.execution.notes.loops if one.passed is not None]
    heads = dict.fromkeys(loop.head for loop in loops)
    return [_relay(orders, outer, [one for one in loops if one.head == head]) for head in heads]


def _relay(orders: Orders, outer: Orders, loops: list[Loop]) -> Relay:
    terms, threads = orders.threads.terms, orders.threads
    first = twins(orders.all_events)
    events = [[event for event in orders.all_events if event.loops[:1] == (loop,)] for loop in loops]
    inner = [list(dict.fromkeys(event.loops[1] for event in own if event.loops[1:])) for own in events]
    rings = [own[0] for own in inner if len(own) == 1 and own[0].base.terms]
    masks = [threads.mask(loop.entry)[0] for loop in loops]
    shifts = [(mask & -mask).bit_length() - (masks[0] & -masks[0]).bit_length() for mask in masks]
    whole = [one for one in events[0] if one.loops[1:] and one.kind in WHOLE]
    elsewhere = [one for one in orders.all_events if one.loops[1:] and one.loops[0] not in loops]

    def is_shifted(event: Event) -> bool:
        number = loops.index(event.loops[0])
        return orders.masks[event] == orders.masks[first[event]] << shifts[number]

    def is_alike(event: Event) -> bool:
        """Whether an event comes under the same conditions as that of the first group, in each turn of the loops."""
        renamed = _renamed(event.loops, first[event].loops)
        mine, others = (_inside(orders, orders.others[one], one.loops[0]) for one in (event, first[event]))
        return {terms.substitute(one, renamed) for one in mine} == others

    require = [
        ([one.group for one in loops] == [(n, len(loops)) for n in range(len(loops))], "there is one group more"),
        (len(rings) == len(loops) and terms.ranks == 1, "they have more than one loop in each turn"),
        (all(_is_plain(one) for one in (*loops, *rings)), "they leave a loop in more than one way"),
        (all(_is_fixed(orders, *both) for both in zip(loops, rings, strict=False)), "their turns differ in length"),
        (all(one.passed == loops[0].passed for one in loops), "they pass over other numbers of turns"),
        (all(mask == masks[0] << shift for mask, shift in zip(masks, shifts, strict=True)), "they are not alike"),
        (all(is_shifted(one) for own in events for one in own), "other threads of them come to an instruction"),
        (all(is_alike(one) for own in events for one in own if one.loops[1:]), "they do not do the same"),
        (all(orders.masks[one] == masks[0] for one in whole), "not all threads of a group come to an instruction"),
        (all(one.kind != "tensor" and one.covers is None for one in events[0]), "they use tensor memory"),
        (all(not orders.masks[one] & sum(masks) for one in elsewhere), "they have rings in other loops"),
    ]
    for holds, reason in require:
        if not holds:
            raise UnsupportedError(events[0][0].at, f"groups of threads that take turns are not followed: {reason}")
    hands = _hands(outer, events, shifts)
    if masks[0] & ~threads.warps(hands):
        reason = "no thread of each warp of a group hands over to the group whose turn is next"
        raise UnsupportedError(events[0][0].at, reason)
    together = {one: [own[number] for own in events] for number, one in enumerate(events[0])}
    return Relay(tuple(loops), tuple(rings), tuple(masks), hands, together, _accesses(orders, events, shifts))


def _is_plain(loop: Loop) -> bool:
    return loop.is_uniform and not loop.returns and loop.repeats and len(loop.exits) == 1


def _is_fixed(orders: Orders, loop: Loop, ring: Loop) -> bool:
    """Whether a loop in a loop is entered in each turn of that, and makes as many turns in each."""
    used = [atom.detail for atom in leaves([*ring.stays, *ring.ends])]
    is_fixed = all(one is not loop and not (isinstance(one, Symbol) and loop in one.loops) for one in used)
    return is_fixed and orders.entered(ring) == orders.entered(loop)


def _inside(orders: Orders, others: frozenset[Linear], loop: Loop) -> frozenset[Linear]:
    """What holds at a place in a loop besides what holds in all of its turns."""
    return others - orders.entered(loop)


def _renamed(loops: Sequence[Loop], firsts: Sequence[Loop]) -> dict[Atom, Linear]:
    """The turns of loops of the first group, for those of another."""
    found: dict[Atom, Linear] = {}
    for loop, first in zip(loops, firsts, strict=True):
        for one, other in ((loop.counter, first.counter), (loop.base, first.base)):
            found |= {atom: other for atom, _ in one.terms}
    return found


def _hands(outer: Orders, events: Sequence[Sequence[Event]], shifts: Sequence[int]) -> int:
    """The threads by which each group hands over to the next one, all as those of the first group."""
    hands = outer.threads.everyone
    for number, own in enumerate(events):
        before = events[number - 1]
        distance = 1 if number == 0 else 0
        start = min(one.number for one in own if one.loops[1:])
        end = max(one.number for one in before if one.loops[1:])
        found = 0
        for wait in own:
            is_of_all = outer.masks[wait] == outer.threads.mask(wait.loops[0].entry)[0] and _is_always(outer, wait)
            if wait.kind != "wait" or wait.loops[1:] or wait.number > start or not is_of_all:
                continue
            for arrival, mask, turns, is_looped in outer.landing(wait):
                is_after = arrival in before and not arrival.loops[1:] and arrival.number > end
                if is_looped and is_after and turns <= distance and _is_always(outer, arrival):
                    found |= mask >> shifts[number - 1]
        hands &= found
    return hands


def _is_always(outer: Orders, event: Event) -> bool:
    """Whether an event comes in each turn of its loop."""
    return outer.others[event] <= outer.entered(event.loops[0])


def _accesses(orders: Orders, events: Sequence[Sequence[Event]], shifts: Sequence[int]) -> dict[Access, Access]:
    """Of each access of groups, that of the first group."""
    found: dict[Access, Access] = {}
    every = [access for segment in orders.execution.notes.segments for access in segment.accesses]
    all_own = [[one for one in every if one.segment.loops[:1] == own[0].loops[:1]] for own in events]
    for own, shift, its in zip(all_own, shifts, events, strict=True):
        for one, first in zip(own, all_own[0], strict=False):
            is_same = (one.at, one.kind, one.unit, one.bytes) == (first.at, first.kind, first.unit, first.bytes)
            is_same &= one.epoch - its[0].number == first.epoch - events[0][0].number
            if not is_same or len(own) != len(all_own[0]) or len(one.segment.loops) != len(first.segment.loops):
                continue
            places = [(orders.place(access), access.segment.loops) for access in (one, first)]
            mine, others = (_inside(orders, place.others, loops[0]) for place, loops in places)
            renamed = _renamed(one.segment.loops, first.segment.loops)
            is_same = {orders.threads.terms.substitute(each, renamed) for each in mine} == others
            if is_same and places[0][0].mask == places[1][0].mask << shift:
                found[one] = first
    return found


def is_same_length(
    orders: Orders, nest: tuple[Loop, ...], relay: Relay, questions: Questions, milliseconds: int
) -> bool:  # fmt: skip
    """Whether a loop in a loop makes as many turns, in each turn of that, as groups pass over for each other."""
    loop, ring = nest
    passed, turns = relay.loops[0].passed, ring.later(1)
    assert passed is not None
    is_last = len(ring.exits) == 1 and _is_fixed(orders, loop, ring)
    path = (*ring.entry, *ring.ends) if is_last else ()
    wanted = questions.terms.equal(turns, passed)
    return is_last and questions.holds(wanted, path, (loop, ring), (), milliseconds)


def show_relay(relay: Relay, orders: Orders, questions: Questions, milliseconds: int) -> Obligation:
    """Show that the loop in each turn of a group makes as many turns as the others pass over."""
    about = "each group of threads passes over the turns of the others"
    lines = tuple(dict.fromkeys(ring.line for ring in relay.inner))
    pairs = zip(relay.loops, relay.inner, strict=True)
    is_shown = all(is_same_length(orders, pair, relay, questions, milliseconds) for pair in pairs)
    return obligation("mbarrier", lines, about, is_shown, "integers, one thread", "it may be another number of turns")
