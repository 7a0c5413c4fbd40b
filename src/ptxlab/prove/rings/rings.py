"""That waits are for the phases that they are taken for: rings of mbarriers, for any number of turns.

By induction over what has happened so far, for each mbarrier:

- an arrival or a copy is in the phase that its number says: the phase before was complete when it came;
- a wait for a phase is not asked before the phase before it is complete, and the phase after it is not complete before
  all threads have passed that wait, so the parity cannot be that of another phase;
- the counts and bytes of a phase are those that it expects, so it is complete when all of them have come;
- all that a wait is for comes, and no wait is for what comes after it: no thread waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.prove.execution.segments import Access, Event, Path
from ptxlab.prove.questions.copies import is_changing
from ptxlab.prove.questions.questions import Obligation, Questions, copy_at_exit, obligation
from ptxlab.prove.terms.predicates import TRUE
from ptxlab.prove.terms.terms import MOST_TURNS, SHARED_BYTES, Loop, Symbol

from .drains import Drain
from .known import Before
from .orders import Orders
from .phases import Arriver, Mbarrier, Visit, clock, turns_of
from .relays import Relay, is_same_length, show_relay

KIND = "mbarrier"


class Rings:
    """Shows mbarriers."""

    def __init__(self, orders: Orders, questions: Questions) -> None:
        self.orders, self.questions = orders, questions
        self._in_turns: dict[tuple[Relay, tuple[Loop, ...]], bool] = {}

    def show(self, milliseconds: int) -> Iterator[Obligation]:
        """Show that waits are for the phases that they are taken for, and that all of these come."""
        for relay in self.orders.relays:
            yield show_relay(relay, self.orders, self.questions, milliseconds)
        for mbarrier in self.orders.mbarriers:
            if not mbarrier.arrivers and not mbarrier.waits:
                continue  # in this block of a cluster it is not used
            yield from self._phases(mbarrier)
            yield from self._order(mbarrier)
            yield from self._come(mbarrier, milliseconds)
            for drain in self.orders.drains:
                yield from self._drained(drain, mbarrier, milliseconds)

    def _phases(self, mbarrier: Mbarrier) -> Iterator[Obligation]:
        """Counts and bytes."""
        visits = [visit for one in mbarrier.arrivers for visit in one.visits()]
        events = [mbarrier.initialized, *(visit.event for visit in visits)]
        most = max((len(one.visits()) for one in mbarrier.arrivers), default=1)
        come = {sum(one.mask.bit_count() * _count(one, phase) for one in mbarrier.arrivers) for phase in range(most)}
        yield said("an mbarrier expects as many arrivals as come in a phase", come == {mbarrier.count}, events,
                         "counted", f"it expects {mbarrier.count}, and {min(come)} come")  # fmt: skip
        for visit in visits:
            copies = mbarrier.copies.get(visit.event, {})
            bytes = sum(one.bytes * mask.bit_count() for one, mask in copies.items())
            expected = visit.event.bytes * visit.mask.bit_count()
            yield said("an arrival expects as many bytes as copies bring", bytes == expected,
                             [visit.event, *copies], "counted",
                             f"it expects {expected} bytes, and {bytes} come")  # fmt: skip

    def _order(self, mbarrier: Mbarrier) -> Iterator[Obligation]:
        """That arrivals and waits are in the phases that their numbers say."""
        orders = self.orders
        coming = [one for arriver in mbarrier.arrivers for visit in arriver.visits()
                  for one in mbarrier.come(visit.event, visit.mask)]  # fmt: skip
        for visit, _ in mbarrier.waits:
            ends = [one.event for one in orders.drains if one.wait is visit.event]
            coming += [(event, visit.mask) for event in (visit.event, *ends)]
        first = mbarrier.initialized
        places = [place for event, mask in coming for place in orders.places_of(event, mask)]
        is_ready = all(any(one.all and one.distance <= 0 for one in orders.known.happened(place, first, mbarrier.owner))
                       for place in places)  # fmt: skip
        events = [first, *(event for event, _ in coming)]
        yield said("an mbarrier is initialized before it is used", is_ready, events, "order",
                         "no barrier is between the two")  # fmt: skip
        for arriver in mbarrier.arrivers:
            for visit in arriver.visits():
                phase = arriver.phase(visit)
                for event, mask in mbarrier.come(visit.event, visit.mask):
                    yield said("an arrival comes after the phase before it is complete",
                               self._follows(mbarrier, event, mask, visit, phase), [event], "order",
                               "it may be counted in the phase before")  # fmt: skip
        for visit, phase in mbarrier.waits:
            yield said("a wait comes after the phase before the one that it is for is complete",
                             self._follows(mbarrier, visit.event, visit.mask, visit, phase), [visit.event], "order",
                             "it may be over before the phase that it is for")  # fmt: skip
            is_last = any(self._precedes(mbarrier, visit, phase, one) for one in mbarrier.arrivers)
            yield said("a phase does not complete while a wait for the one before it is not over", is_last,
                             [visit.event], "order", "the wait may miss its phase")  # fmt: skip

    def _follows(self, mbarrier: Mbarrier, event: Event, mask: int, visit: Visit, phase: int) -> bool:
        """Whether the phase before one is complete where an event is that belongs to it, in each turn."""
        places = self.orders.places_of(event, mask)
        for one in mbarrier.arrivers:
            for arrival, distance, is_looped in turns_of(visit, phase - 1, one):
                if not is_looped and visit.spacing == 0 and phase - 1 < 0:
                    continue
                for before, own in mbarrier.come(arrival, one.mask):
                    known = [list(self.orders.known.happened(here, before, own)) for here in places]
                    if not all(_is_known(each, distance, is_looped) for each in known):
                        return False
            if visit.spacing == 0 and phase > len(one.before) and one.looped is not None:
                return False
        return True

    def _precedes(self, mbarrier: Mbarrier, visit: Visit, phase: int, arriver: Arriver) -> bool:
        """Whether the arrivals of some threads in the phase after that of a wait come after all have passed it."""
        after, last = phase + 1, len(arriver.before)
        if visit.spacing == 0:
            if after >= last:
                return arriver.looped is None
            return self._passed(arriver.before[after].event, arriver, visit, 0, False)
        if after < last:
            return False
        if arriver.looped is None:
            return True
        looped = arriver.looped
        distance = looped.first - visit.first + visit.spacing * (after - last)
        ends = [one.event for one in (looped, arriver.last) if one is not None]
        is_passed = all(self._passed(event, arriver, visit, distance, True) for event in ends)
        return looped.spacing == visit.spacing and is_passed

    def _passed(self, event: Event, arriver: Arriver, visit: Visit, distance: int, is_looped: bool) -> bool:
        """Whether some of the threads that arrive know it: without them the phase is not complete."""
        known = (self.orders.known.happened(place, visit.event, visit.mask)
                 for place in self.orders.places_of(event, arriver.mask))  # fmt: skip
        return any(_is_known(list(each), distance, is_looped) for each in known)

    # What comes.

    def _come(self, mbarrier: Mbarrier, milliseconds: int) -> Iterator[Obligation]:
        """That what a wait is for comes, and that nothing is left out on the way."""
        chains = [one.visits() for one in mbarrier.arrivers]
        masks = {visit.mask for visit, _ in mbarrier.waits}
        chains += [[visit for visit, _ in mbarrier.waits if visit.mask & mask] for mask in masks]
        for chain in chains:
            for one, other in pairwise(chain):
                if not one.event.loops:
                    yield self._implied(other.event, one.event, None, milliseconds, "no phase is left out")
                elif not mbarrier.depth:
                    yield self._come_before(other.event, one.event, milliseconds)
            for one in chain:
                if mbarrier.depth and one.event.loops:
                    yield said("no phase is left out", self._is_always(one.event), [one.event], "each turn has it",
                                     "a turn of the loops may be without it")  # fmt: skip
                elif one.event.loops:
                    yield self._implied(one.event, one.event, 1, milliseconds, "no phase is left out")
        for visit, phase in mbarrier.waits:
            if not mbarrier.arrivers:
                yield said("what a wait is for comes", False, [visit.event], "", "no thread arrives")
            for arriver in mbarrier.arrivers:
                found = list(turns_of(visit, phase, arriver))
                last = max(phase, 0)
                if visit.spacing == 0 and phase >= len(arriver.before):
                    yield said("what a wait is for comes", False, [visit.event], "", "no arrival is in its phase")
                if visit.spacing and arriver.looped is None:
                    yield said("what a wait is for comes", False, [visit.event], "", "arrivals come to an end")
                for number, (arrival, distance, is_looped) in enumerate(found):
                    others = [one for one, mask in mbarrier.copies.get(arrival, {}).items() if mask != arriver.mask]
                    both = (arrival, *others)
                    is_alike = is_looped and distance >= 0
                    is_alike = is_alike and all(self._is_alike(visit.event, one, milliseconds) for one in both)
                    if is_alike or (is_looped and mbarrier.depth):
                        yield said("what a wait is for comes", is_alike, [visit.event, arrival],
                                   "both loops have the same turns", "the other loop may have other turns")  # fmt: skip
                        continue
                    for copy in others:  # in other blocks
                        turn = distance if is_looped else None
                        yield self._implied(visit.event, copy, turn, milliseconds, "what a wait is for comes")
                    if is_looped:
                        yield self._implied(visit.event, arrival, distance, milliseconds, "what a wait is for comes")
                    elif number >= last:
                        at = None if visit.spacing == 0 else distance
                        yield self._implied(visit.event, arrival, None, milliseconds, "what a wait is for comes", at)

    def _drained(self, drain: Drain, mbarrier: Mbarrier, milliseconds: int) -> Iterator[Obligation]:
        """That what a wait after a loop is for comes: both loops have as many turns, and it is in one that there is."""
        for visit, phase in (one for one in mbarrier.waits if one[0].event is drain.wait):
            is_shown = bool(mbarrier.arrivers)
            for arriver in mbarrier.arrivers:
                is_shown &= not arriver.before and arriver.looped is not None
                for arrival, distance, _ in turns_of(visit, phase, arriver):
                    is_shown &= distance >= drain.turns - (arriver.last is not None)
                    come = (arrival, *mbarrier.copies.get(arrival, ()))
                    is_shown = is_shown and all(self._is_alike(drain.wait, one, milliseconds) for one in come)
            yield said("what a wait is for comes", is_shown, [drain.event, drain.wait],
                       "it would in the next turns of the loop", "no turn of the other loop may have it")  # fmt: skip

    def awaits(self, access: Access) -> bool:
        """Whether the block whose mbarrier an arrival is at does not exit before that: its ring's loop is drained."""
        own = [(mbarrier, arriver) for mbarrier in self.orders.mbarriers for arriver in mbarrier.arrivers
               for visit in arriver.visits() if visit.event.at == access.at]  # fmt: skip
        return bool(own) and all(self._is_drained(*one) for one in own)

    def _is_drained(self, mbarrier: Mbarrier, arriver: Arriver) -> bool:
        """Whether after all arrivals in a loop there is a wait, in the block of an mbarrier."""
        block, others = self.orders.threads.of_rank(mbarrier.key[1] // SHARED_BYTES), self.orders.others
        given = frozenset.intersection(*(others[visit.event] for visit in arriver.visits()))
        given = frozenset(one for one in given if not is_changing(one))
        for visit, phase in mbarrier.waits:
            found = {one.turns for one in self.orders.drains if one.wait is visit.event and others[one.event] <= given}
            late = [distance + (arriver.last is not None) for _, distance, _ in turns_of(visit, phase, arriver)]
            is_whole = found == set(range(1, visit.spacing + 1)) and not arriver.before
            if is_whole and late and max(late) <= visit.spacing and not visit.mask & ~block:
                return True
        return False

    def _implied(
        self, given: Event, event: Event, distance: int | None, milliseconds: int, about: str, turn: int | None = None
    ) -> Obligation:
        """That where an event comes another one comes, too: so many turns before, or outside of loops."""
        orders = self.orders
        wanted = orders.others[event]
        shown = "follows from the path"
        lines = [given, event]
        over = self.questions.in_time(KIND, (given.line, event.line), about)
        if over is not None:
            return over
        same = event.loops == given.loops
        if not event.loops and wanted <= orders.others[given]:
            return said(about, True, lines, shown, "")
        facts: list[Linear] = []
        terms = orders.threads.terms
        if turn is not None:
            facts = [terms.equal(clock(given.loops, orders.depth), linear(LONG, turn))]
        if not event.loops:
            return self._come_in(given, event, None, None, facts, milliseconds, about)
        if not given.loops or distance is None:
            return said(about, False, lines, "", "it comes in a loop")
        if distance < 0 and same:
            return said(about, False, lines, "", "it comes after it")
        counter = given.loops[0].counter
        facts.append(terms.at_most(linear(LONG, max(distance + event.starts, 0)), counter))
        now = counter.plus(linear(LONG, -distance))
        return self._come_in(given, event, now, None if same else linear(LONG, 0), facts, milliseconds, about)

    def _is_alike(self, given: Event, event: Event, milliseconds: int) -> bool:
        """Whether loops have the same turns, and an event comes in each, or in the turn before, after it."""
        is_alike = self.orders.is_alike(given.loops, event.loops)
        for nest, other in ((given.loops, event.loops), (event.loops, given.loops)):
            for relay in self.orders.relays:
                is_alike |= nest == (relay.loops[0], relay.inner[0]) and self.take_turns(relay, other, milliseconds)
        return is_alike and self._is_always(event)

    def take_turns(self, relay: Relay, nest: tuple[Loop, ...], milliseconds: int) -> bool:
        """Whether groups have the turns of a loop in turn, and the loop in it as many turns as that of each group."""
        if (relay, nest) not in self._in_turns:
            self._in_turns[relay, nest] = self._take_turns(relay, nest, milliseconds)
        return self._in_turns[relay, nest]

    def _take_turns(self, relay: Relay, nest: tuple[Loop, ...], milliseconds: int) -> bool:
        is_plain = all(loop.is_uniform and not loop.returns and loop.repeats for loop in nest) and len(nest) == 2
        if not is_plain or not is_same_length(self.orders, nest, relay, self.questions, milliseconds):
            return False
        loop, count = nest[0], len(relay.loops)
        terms = self.questions.terms
        for number, own in enumerate(relay.loops):
            together = own.counter.times(count).plus(linear(LONG, number))
            if not self._has_turn(loop, together, own, (), milliseconds):
                return False
            turn = terms.symbol(Symbol("a turn of a group", own.line, ()), LONG, (0, MOST_TURNS - 1))
            together = turn.times(count).plus(linear(LONG, number))
            facts = [terms.in_turn(one, loop, together) for one in (*loop.limits, *loop.facts)]
            facts.append(terms.equal(loop.counter, together))
            if not self._has_turn(own, turn, loop, tuple(facts), milliseconds):
                return False
        return True

    def _has_turn(self, loop: Loop, turn: Linear, given: Loop, facts: Path, milliseconds: int) -> bool:
        """Whether a loop has a turn where there is one of another loop."""
        orders, terms = self.orders, self.questions.terms
        earlier = terms.bounded(loop.turn, MOST_TURNS - 1)
        is_earlier = terms.at_most(earlier.plus(linear(LONG, 1)), turn)
        wanted = [(one, facts) for one in orders.entered(loop)]
        wanted += [(terms.in_turn(one, loop, earlier), (*facts, is_earlier)) for one in orders.stays(loop)]
        return all(one in given.entry or self.questions.holds(one, given.entry, (given,), known, milliseconds)
                   for one, known in wanted)  # fmt: skip

    def _is_always(self, event: Event) -> bool:
        """Whether an event comes in each turn of the loops around it, or in each but the first of the inner one."""
        terms, orders = self.orders.threads.terms, self.orders
        given = orders.entered(event.loops[0])
        if not self.orders.depth:
            return not event.starts and orders.others[event] <= given
        inner = event.left or event.loops[1]
        is_late = event.left is None and bool(event.starts)  # in the first turn it does not come
        more = [one for one in orders.others[event] - given
                if not is_late or terms.in_turn(one, inner, inner.later(1)) != TRUE]  # fmt: skip
        return not more and orders.entered(inner) == given

    def _come_before(self, given: Event, event: Event, milliseconds: int) -> Obligation:
        """That where an event after a loop comes another one has come in its last turn, if that is not too early."""
        terms, counter = self.orders.threads.terms, event.loops[0].counter
        facts = [terms.at_most(linear(LONG, event.starts), counter)]
        return self._come_in(given, event, counter, None, facts, milliseconds, "no phase is left out")

    def _come_in(self, given: Event, event: Event, now: Linear | None, known: Linear | None, facts: list[Linear],
                 milliseconds: int, about: str) -> Obligation:  # fmt: skip
        """That where an event comes another one comes in turn `now` of its loop, of which turns before `known` are."""
        orders, terms = self.orders, self.orders.threads.terms
        questions: list[tuple[Linear, list[Linear]]] = []  # what must hold, and what may be assumed for it
        lines, shown = [given, event], "follows from the path"
        if now is not None:
            (loop,) = event.loops
            if known is not None:
                earlier = terms.bounded(loop.turn, MOST_TURNS - 1)
                between = [terms.at_most(known, earlier), terms.at_most(earlier.plus(linear(LONG, 1)), now)]
                ends = loop.stays, (*loop.outer, loop)  # loops in it have ended before that
                stays = [terms.in_turn(one, loop, earlier) for one in orders.without_ends(*ends)]
                questions += [(one, [*facts, *between]) for one in stays]
                if event.loops != given.loops:
                    questions += [(one, facts) for one in loop.entry if one in orders.others_of(loop.entry)]
        questions += [(one if now is None else terms.in_turn(one, loop, now), facts) for one in orders.others[event]]
        for one, assumed in questions:
            if one in given.path:
                continue
            if not self.questions.holds(one, given.path, given.loops, tuple(assumed), milliseconds):
                return said(about, False, lines, "", "it is not shown that it always does")
        return said(about, True, lines, "integers, one thread" if questions else shown, "")

    # What is complete at the end.

    def show_exits(self, milliseconds: int) -> Iterator[Obligation]:
        """Show that for each copy which an mbarrier completes some thread waits, before the block ends."""
        for mbarrier in self.orders.mbarriers:
            for arriver in mbarrier.arrivers:
                for visit in arriver.visits():
                    number = arriver.phase(visit)
                    for copy in mbarrier.copies.get(visit.event, ()):
                        found = [self._awaited(copy, number, arriver, one, phase, milliseconds)
                                 for one, phase in mbarrier.waits]  # fmt: skip
                        lines = (copy.line, *(one.event.line for one, _ in mbarrier.waits))
                        yield copy_at_exit(lines, any(found), "an mbarrier's wait")

    def is_awaited(self, access: Access, milliseconds: int) -> bool:
        """Whether a thread of the block whose memory it is waits for the phase of a commit after an MMA."""
        commits = [(visit, arriver, one.waits) for one in self.orders.mbarriers for arriver in one.arrivers
                   for visit in arriver.visits() if self._is_committed(access, visit.event)]  # fmt: skip
        block = self.orders.block_of(access)
        return any(self._awaited(visit.event, arriver.phase(visit), arriver, wait, phase, milliseconds)
                   for visit, arriver, waits in commits for wait, phase in waits if wait.mask & block)  # fmt: skip

    def _is_committed(self, access: Access, event: Event) -> bool:
        """Whether a commit comes after an access of a thread, on every path."""
        target = self.orders.place(access)
        is_after = event.covers is not None and access.epoch < event.number
        is_near = event.loops == access.segment.loops[: len(event.loops)]
        is_its = target.mask & ~self.orders.masks[event] == 0 and self.orders.others[event] <= target.others
        return is_after and is_near and is_its

    def _awaited(
        self, copy: Event, number: int, arriver: Arriver, wait: Visit, phase: int, milliseconds: int
    ) -> bool:  # fmt: skip
        """Whether a wait comes for the phase of a copy, or for a later one, wherever that copy is started."""
        turn = known = None
        if wait.spacing and copy.loops:
            distance = next((one for _, one, is_looped in turns_of(wait, phase, arriver) if is_looped), -1)
            if distance < 0:
                return False
            is_alike = distance == 0 and self._is_alike(copy, wait.event, milliseconds)
            if is_alike or wait.event.loops[1:]:
                return is_alike
            turn = copy.loops[0].counter.plus(linear(LONG, distance))
            known = copy.loops[0].counter if copy.loops == wait.event.loops else linear(LONG, 0)
        elif wait.event.loops[1:]:
            return False
        elif wait.spacing:
            turn, known = linear(LONG, wait.first + wait.spacing * max(0, number - phase)), linear(LONG, 0)
        elif copy.loops or phase < number:
            return False
        return self._come_in(copy, wait.event, turn, known, [], milliseconds, "").status == "proved"


def said(about: str, is_shown: bool, events: Sequence[Event], argument: str, reason: str) -> Obligation:
    """What was to be shown of events, and whether it was."""
    return obligation(KIND, tuple(dict.fromkeys(one.line for one in events)), about, is_shown, argument, reason)


def _count(arriver: Arriver, phase: int) -> int:
    """How many arrivals one thread counts for in a phase; of a phase that does not come, as in the last one."""
    visits = arriver.visits()
    return visits[min(phase, len(visits) - 1)].values[0]


def _is_known(known: Sequence[Before], distance: int, is_looped: bool) -> bool:
    """Whether an event so many turns before, or from a turn on, is among what is known."""
    return any(one.all != is_looped and one.distance <= distance for one in known)
