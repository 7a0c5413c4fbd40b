"""That no thread waits for ever for what comes after it: each circle of waits leads to an earlier turn."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.prove.execution.segments import Event
from ptxlab.prove.questions.questions import Obligation

from .phases import turns_of
from .relays import Relay
from .rings import Rings, said


def show_circles(rings: Sequence[Rings], milliseconds: int) -> Obligation:
    """Show that no event waits for one that comes after it: all ways around lead to an earlier turn.

    Of loops in loops, all turns so far are counted, as those of the inner one: what is before it is in its first turn,
    what is after it, or in a loop without an inner one, in its last.
    """
    views = [one.orders for one in rings]
    orders, is_nested, relays = views[0], len(views) > 1, views[-1].relays
    events = orders.all_events
    far = -1_000_000  # all turns of a loop
    ways: dict[tuple[Event, Event], int] = {}

    def add(event: Event, other: Event, distance: int) -> None:
        ways[event, other] = min(ways.get((event, other), distance), distance)

    for event in events:
        for other in events:
            if not orders.masks[event] & orders.masks[other] and "barrier" not in (event.kind, other.kind):
                continue
            same = event.loops[:1] == other.loops[:1] if is_nested else event.loops == other.loops
            if event.loops and same:
                add(event, other, 0 if other.number < event.number else 1)
            elif other.number < event.number:
                add(event, other, far if other.loops else 0)
    for view in views:
        for mbarrier in view.mbarriers:
            for visit, phase in mbarrier.waits:
                for arriver in mbarrier.arrivers:
                    for arrival, distance, is_looped in turns_of(visit, phase, arriver):
                        others = [arrival, *mbarrier.copies.get(arrival, ())]
                        if is_looped and arriver.last is not None and view.depth:
                            others.append(arriver.last.event)
                        pairs = [(one, each) for other in others for each in view.together(other)
                                 for one in view.together(visit.event)]  # fmt: skip
                        for event, other in pairs:
                            turns = in_turns(relays if is_looped else [], event, other, distance)
                            is_later = is_nested and not view.depth and turns <= 0 and (
                                turns < 0 or orders.is_before_inner(event))  # fmt: skip
                            add(event, other, far if is_looped and is_later else turns if is_looped else 0)
        for drain in view.drains:
            ends = [arriver for mbarrier in view.mbarriers for arriver in mbarrier.arrivers
                    if any(visit.event is drain.wait for visit, _ in mbarrier.waits)]  # fmt: skip
            for event in (visit.event for arriver in ends for visit in arriver.visits()):
                add(drain.event, event, far if event.loops else 0)
    shortest = {event: {other: distance for (one, other), distance in ways.items() if one is event} for event in events}
    for middle in events:
        for event in events:
            if middle not in shortest[event]:
                continue
            for other, distance in shortest[middle].items():
                total = max(shortest[event][middle] + distance, 2 * far)
                if total < shortest[event].get(other, total + 1):
                    shortest[event][other] = total
    wrong = [event for event in events if shortest[event].get(event, 1) <= 0]
    is_alike = not is_nested or views[-1].are_alike(lambda relay, nest: rings[-1].take_turns(relay, nest, milliseconds))
    is_shown = not wrong and is_alike
    return said("no thread waits for what comes after it", is_shown, wrong or events[:1],
                "every circle leads to an earlier turn",
                "these wait for each other in one turn" if wrong else "loops may have other turns")  # fmt: skip


def in_turns(relays: Sequence[Relay], event: Event, other: Event, distance: int) -> int:
    """How many turns of all groups an event is after another, which is so many turns of its own loop before.

    In the loops in those, turns are those of all groups.
    """
    for relay in relays if not event.loops[1:] else ():
        own = [relay.loops.index(one.loops[0]) for one in (event, other) if one.loops[0] in relay.loops]
        if own:
            return distance * len(relay.loops) + own[0] - own[1] if own[1:] else -1  # -1: it may be any
    return distance
