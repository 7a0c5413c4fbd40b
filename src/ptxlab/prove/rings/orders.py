"""Orders: which events, loops and mbarriers there are to know of, by the turns of loops, or of loops in loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Access, Event, UnsupportedError
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.terms.terms import Loop, is_uniform, without_rank

from .drains import drains, is_drain
from .known import Knowledge, Place
from .parts import Parts
from .phases import loop_of, mbarriers, turns_of
from .relays import Relay, relays


class Orders:
    """What happens before what in a block, by the turns of loops, or, with `depth` 1, of loops in loops.

    Of loops in loops, all turns so far are counted. What is in a loop around them has no place there: it is not known.
    """

    def __init__(self, execution: Execution, outer: Orders | None = None) -> None:
        notes, depth = execution.notes, 0 if outer is None else 1
        self.execution, self.depth, self.all_events = execution, depth, notes.events
        self._ends = {one: loop for loop in reversed(notes.loops) for one in loop.ends}  # inner ones last
        self.threads = threads = Threads(execution.terms)
        self.masks: dict[Event, int] = {}
        self.others: dict[Event, frozenset[Linear]] = {}
        for event in notes.events:
            mask, others = threads.mask(event.path, None if event.kind == "converge" else event.at)
            if event.kind == "converge" and not self._is_by_numbers(event):
                mask = 0
            self.masks[event], self.others[event] = mask, self.without_ends(others, event.loops)
        self.parts = Parts(threads, notes.events, self.masks)
        late = [one for one in notes.events if one.address is not None and self.masks[one] and is_drain(one)]
        every = mbarriers(threads, [one for one in notes.events if one not in late], self.masks)
        self.drains = [one for one in drains(threads, late, self.masks, every) if len(one.wait.loops) == depth + 1]
        self.mbarriers = [one for one in every if one.depth == depth]
        self.has_inner = any(one.depth > depth for one in every)
        self.relays = [] if outer is None else relays(self, outer)
        self.relay_of = {loop: relay for relay in self.relays for loop in (*relay.loops, *relay.inner)}
        of_others = {event for relay in self.relays for each in relay.events.values() for event in each[1:]}
        self.events = [event for event in notes.events if self._has(event) and event not in of_others]
        self._check_relays()
        self.tails = {one.looped.event: one.last.event for mbarrier in self.mbarriers for one in mbarrier.arrivers
                       if depth and one.looped is not None and one.last is not None}  # fmt: skip
        self.landings = {
            event: [(part, list(self._landing(event, part))) for part in threads.by_rank(self.masks[event])]
            for event in self.events if event.kind == "wait"
        }  # fmt: skip
        """Of each wait, block by block: what it is for."""
        self.known = Knowledge(self)

    def without_ends(self, others: Iterable[Linear], loops: tuple[Loop, ...]) -> frozenset[Linear]:
        """What holds on a path, without what holds as loops before it have ended."""
        return frozenset(one for one in others if one not in self._ends or self._ends[one] in loops)

    def _has(self, event: Event) -> bool:
        """Whether an event is outside of loops, or in those whose turns count."""
        nest = (*event.loops, *(() if event.left is None else (event.left,)))
        is_any = event.kind in ("group", "warp", "converge") and not self.depth  # in a loop that each turn has
        return not nest or len(nest) == self.depth + 1 or is_any

    def _check_relays(self) -> None:
        """That threads of groups that take turns visit their mbarriers in turn only."""
        for mbarrier in self.mbarriers:
            visits = [one for arriver in mbarrier.arrivers for one in arriver.visits()]
            visits += [one for one, _ in mbarrier.waits]
            for relay in self.relays:
                own = [one for one in visits if one.event in relay.events]
                others = [one for one in visits if one not in own and one.mask & sum(relay.masks)]
                if own and others:
                    raise UnsupportedError(others[0].event.at, "a group visits an mbarrier when it is not its turn")

    def together(self, event: Event) -> list[Event]:
        """The events of all groups that take turns, for that of the first."""
        return next((one.events[event] for one in self.relays if event in one.events), [event])

    def entered(self, loop: Loop) -> frozenset[Linear]:
        """What holds in all threads alike where a loop is entered."""
        return self.without_ends(self.others_of(loop.entry), loop.outer)

    def is_alike(self, nest: tuple[Loop, ...], other: tuple[Loop, ...]) -> bool:
        """Whether loops, each in the one before it, have the same turns as others, in all threads that enter them."""
        terms, replaced = self.threads.terms, dict[Atom, Linear]()
        for one, its in zip(nest, other, strict=False):
            for mine, theirs in ((one.counter, its.counter), (one.base, its.base)):
                replaced |= {atom: mine for atom, _ in theirs.terms}
        is_plain = all(loop.is_uniform and not loop.returns and loop.repeats for loop in (*nest, *other))
        is_plain &= all(is_uniform(loop.stays, lambda _: True) for loop in (*nest, *other))
        if nest == other or not is_plain or len(nest) != len(other):
            return nest == other and is_plain
        known: dict[Atom, Linear] = {}
        for one, its in zip(nest, other, strict=True):
            for path in (self.entered, self.stays):
                if path(one) != {terms.substitute(each, replaced, known) for each in path(its)}:
                    return False
        return True

    def ends_with(self, one: Loop, other: Loop) -> bool:
        """Whether two loops have the same last turn."""
        return one is other or self.is_alike((one,), (other,))

    def stays(self, loop: Loop) -> frozenset[Linear]:
        """What holds in all threads alike at the end of each turn of a loop that another one follows."""
        return self.without_ends(loop.stays, (*loop.outer, loop))

    def _inner(self, loop: Loop) -> set[tuple[Loop, ...]]:
        return {event.loops for event in self.all_events if event.loops[1:] and event.loops[0] is loop}

    def is_before_inner(self, event: Event) -> bool:
        """Whether an event in a loop is before a loop in it."""
        return any(one.loops in self._inner(event.loops[0]) and event.number < one.number for one in self.all_events)

    def are_alike(self, take_turns: Callable[[Relay, tuple[Loop, ...]], bool]) -> bool:
        """Whether all loops with mbarriers have the same turns, and so have those in them, of which each has some."""
        outer = {event.loops[0] for event in self.all_events if event.loops and event.address is not None}
        outer -= self.relay_of.keys()
        inner = [one for loop in outer for one in self._inner(loop)]
        is_entered = all(len(one) == 2 and self.entered(one[0]) == self.entered(one[1]) for one in inner)
        is_one = all(len(self._inner(loop)) <= 1 for loop in outer)
        loops = [(loop,) for loop in outer]
        in_turns = all(take_turns(relay, inner[0]) for relay in self.relays) if inner else not outer or not self.relays
        is_one &= in_turns and (bool(inner) or len(self.relays) <= 1)
        return is_entered and is_one and all(self.is_alike(some[0], one) for some in (loops, inner) for one in some)

    def _landing(self, wait: Event, mask: int) -> Iterator[tuple[Event, int, int, bool]]:
        """The arrivals and copies of the phase of a wait: their threads, and how many turns ago they are."""
        own = [(one, visit, phase) for one in self.mbarriers for visit, phase in one.waits
               if visit.event is wait and visit.mask & mask]  # fmt: skip
        distances: dict[tuple[Event, int], list[int]] = defaultdict(list)
        for mbarrier, visit, phase in own:
            for arriver in mbarrier.arrivers:
                for arrival, distance, is_looped in turns_of(visit, phase, arriver):
                    for event, threads in mbarrier.come(arrival, arriver.mask):
                        if is_looped:
                            distances[event, threads].append(distance)
                        else:
                            yield event, threads, distance, False
        for (event, threads), found in distances.items():
            if len(found) == len(own):  # at each mbarrier that the wait comes to
                yield event, threads, max(found), True

    def landing(self, wait: Event) -> list[tuple[Event, int, int, bool]]:
        """What a wait is for, in all blocks: as `_landing`."""
        return [one for _, found in self.landings.get(wait, ()) for one in found]

    def place(self, access: Access) -> Place:
        """Where an access is."""
        mask, others = self.threads.mask(access.path)
        loops = access.segment.loops
        return Place(loop_of(loops, self.depth), access.epoch, mask, self.without_ends(others, loops))

    def place_of(self, event: Event) -> Place:
        """Where an event is."""
        loop = event.left or loop_of(event.loops, self.depth)
        return Place(loop, event.number - 1, self.masks[event], self.others[event], event.left is not None)

    def places_of(self, event: Event, mask: int) -> list[Place]:
        """Where an event is in some threads, block by block."""
        return [replace(self.place_of(event), mask=part) for part in self.threads.by_rank(mask)]

    def known_at(self, event: Event) -> Place:
        """Where an event is that is known: of an arrival that may be the one after its loop, after the turn before."""
        place = self.place_of(event)
        return replace(place, is_after=True) if event in self.tails else place

    def others_of(self, path: tuple[Linear, ...]) -> tuple[Linear, ...]:
        """What holds on a path in all threads alike."""
        return self.threads.mask(path)[1]

    def _is_by_numbers(self, event: Event) -> bool:
        """Whether which threads come to an event depends on their numbers only."""
        try:
            self.threads.mask(event.path, event.at)
        except UnsupportedError:
            return False
        return True

    def block_of(self, access: Access) -> int:
        """The threads of the block whose memory an access is to, if that is a number; all of them otherwise."""
        _, rank = without_rank(access.address)
        is_known = rank is not None and rank.is_constant
        return self.threads.of_rank(rank.constant) if rank is not None and is_known else self.threads.everyone
