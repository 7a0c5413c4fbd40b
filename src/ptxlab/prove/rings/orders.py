"""Orders: what must have happened before an access, in other threads, by mbarriers, barriers and waits for groups.

A thread that has passed a wait for a phase knows of all that its arrivals come after, and of its copies. So each event
leads to events of the same thread before it, and each wait to the arrivals and copies of its phase; a barrier to what
is before it in all threads. In turn `t` of a loop these are in turn `t - d` of another: the shortest way there is the
latest turn that is known of. That waits are for those phases is shown by `rings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ptxlab.flow.expressions import Atom, Linear, linear
from ptxlab.prove.execution.effects import BARRIERS
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Access, Event, UnsupportedError
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.questions.copies import FREE, PHASED, pending
from ptxlab.prove.terms.terms import Loop, Symbol, is_own_rank, is_thread_index, is_uniform, leaves, without_rank

from .phases import Arriver, Visit, loop_of, mbarriers
from .relays import Relay, relays

LEAST = -256  # a distance below it is one of a cycle
# What the asynchronous proxy does, by what completes it.
PROXY = ("mbarrier", "bulk", "bulk.read", "wgmma", "tensor work")
OWN, WARP = -1, -2  # the thread itself; some lane of its warp


@dataclass(frozen=True)
class Place:
    """A point of a thread: events up to `limit` come before it, of the same turn of its loop."""

    loop: Loop | None
    limit: int
    mask: int
    others: frozenset[Linear]
    is_after: bool = False
    """Whether it is after that loop, in the turn that would come next."""


@dataclass(frozen=True)
class Known:
    """What is known of an event: that it happened, `distance` turns ago or before; if not `looped`, from that turn on.

    `mask`: in which threads.
    """

    event: Event
    mask: int
    looped: bool
    anchor: Loop | None
    """From the turn after the last of which loop `distance` is counted; None: from that of the place that knows it."""
    fenced: frozenset[str]
    """For accesses to which state spaces a fence of the proxies is between it and what knows it."""
    is_ordered: bool
    """Whether a fence of tensor memory is between it and the thread that knows it."""
    is_passed: bool
    """Whether it is only known that threads have come by: what they did to memory need not be visible."""


@dataclass(frozen=True)
class Before:
    """An access in turn `u` is before another in turn `t` if `u <= t - distance`, or, of `all`, if `t >= distance`."""

    distance: int
    all: bool


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
        self.parts = {event: self._part(event) for event in notes.events if event.kind == "part"}
        whole = [event.value for event in notes.events if event.kind == "barrier" and event.value is not None]
        self._check_parts(whole)
        every = mbarriers(threads, notes.events, self.masks)
        self.mbarriers = [one for one in every if one.depth == depth]
        self.has_inner = any(one.depth > depth for one in every)
        self.relays = [] if outer is None else relays(self, outer)
        self._relays = {loop: relay for relay in self.relays for loop in (*relay.loops, *relay.inner)}
        of_others = {event for relay in self.relays for each in relay.events.values() for event in each[1:]}
        self.events = [event for event in notes.events if self._has(event) and event not in of_others]
        self._check_relays()
        self._tails = {one.looped.event: one.last.event for mbarrier in self.mbarriers for one in mbarrier.arrivers
                       if depth and one.looped is not None and one.last is not None}  # fmt: skip
        self._landings = {
            event: [(part, list(self._landing(event, part))) for part in threads.by_rank(self.masks[event])]
            for event in self.events if event.kind == "wait"
        }  # fmt: skip
        """Of each wait, block by block: what it is for."""
        self._pending: dict[tuple[object, ...], set[int]] = defaultdict(set)
        for one in pending(notes.segments):
            loop = loop_of(one.copy.segment.loops, depth)
            self._pending[(*_identity(one.copy), one.segment)].add(0 if loop is None else one.since.get(loop, FREE))
        self._reached: dict[Place, dict[Known, int]] = {}

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

    # Loops.

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

    def _ends_with(self, one: Loop, other: Loop) -> bool:
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
        outer -= self._relays.keys()
        inner = [one for loop in outer for one in self._inner(loop)]
        is_entered = all(len(one) == 2 and self.entered(one[0]) == self.entered(one[1]) for one in inner)
        is_one = all(len(self._inner(loop)) <= 1 for loop in outer)
        loops = [(loop,) for loop in outer]
        in_turns = all(take_turns(relay, inner[0]) for relay in self.relays) if inner else not outer or not self.relays
        is_one &= in_turns and (bool(inner) or len(self.relays) <= 1)
        return is_entered and is_one and all(self.is_alike(some[0], one) for some in (loops, inner) for one in some)

    # Barriers of a part of the block.

    def _part(self, event: Event) -> dict[tuple[int, int], int]:
        """The threads that pass a barrier together, by their block and its number."""
        assert event.value is not None
        found: dict[tuple[int, int], int] = defaultdict(int)
        try:
            for thread in range(self.threads.count):
                if self.masks[event] >> thread & 1:
                    number = self.threads.evaluate(event.value, thread)
                    found[thread // self.threads.own, number] |= 1 << thread
        except LookupError:
            raise UnsupportedError(event.at, "the number of this barrier is not that of a thread") from None
        for (_, number), mask in found.items():
            if number >= BARRIERS:
                raise UnsupportedError(event.at, f"the number of this barrier is above {BARRIERS - 1}")
            if mask.bit_count() != event.bytes:
                reason = f"this barrier expects {event.bytes} threads, and {mask.bit_count()} come to it"
                raise UnsupportedError(event.at, reason)
        if not all(loop.is_uniform for loop in event.loops):
            raise UnsupportedError(event.at, "threads may come to this barrier in different turns")
        return found

    def _check_parts(self, whole: Sequence[Linear]) -> None:
        """That barriers with one number are always of the same threads."""
        used: dict[tuple[int, int], int] = {}
        for event, groups in self.parts.items():
            for key, mask in groups.items():
                is_alone = all(one.is_constant and one.constant != key[1] for one in whole)
                if used.setdefault(key, mask) != mask or not is_alone:
                    raise UnsupportedError(event.at, "other threads use a barrier with the same number")

    def _together(self, mask: int, start: Place, event: Event) -> int:
        """The threads that some threads have passed a barrier with; 0: that is not the same for all of them."""
        groups = self.parts[event].values()
        if mask < 0:
            return next((one for one in groups if not start.mask & ~one), 0)
        return sum(one for one in groups if one & mask)

    # Waits.

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
        return [one for _, found in self._landings.get(wait, ()) for one in found]

    # Ways.

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

    def _known_at(self, event: Event) -> Place:
        """Where an event is that is known: of an arrival that may be the one after its loop, after the turn before."""
        place = self.place_of(event)
        return replace(place, is_after=True) if event in self._tails else place

    def reached(self, start: Place) -> dict[Known, int]:
        """All that is known to have happened at a place, with the distances."""
        if start in self._reached:
            return self._reached[start]
        found: dict[Known, int] = {}
        waiting: list[tuple[Known | None, int]] = [(None, 0)]
        while waiting:
            known, distance = waiting.pop()
            if known is not None and found.get(known, distance) < distance:
                continue
            for after, more, is_absolute in self._steps(start, known):
                total = more if is_absolute else distance + more if known is None or known.looped else distance
                if total < LEAST:
                    raise UnsupportedError(after.event.at, "waits lead to each other in a circle")
                if total < found.get(after, total + 1):
                    found[after] = total
                    waiting.append((after, total))
        self._reached[start] = found
        return found

    def _steps(self, start: Place, known: Known | None) -> Iterator[tuple[Known, int, bool]]:
        """What is known, given one thing that is: by the threads that it is of; how far, or how far from an anchor."""
        mask = OWN if known is None else known.mask
        here = start if known is None else self._known_at(known.event)
        is_looped = here.loop is not None and (known is None or known.looped)
        relay, whole = self._relays.get(here.loop) if here.loop is not None else None, mask
        for event in self.events:
            if event.kind not in ("wait", "barrier", "part", "warp", "converge", "fence", "tensor", "group"):
                continue
            distance, anchor, inside = self._back(here, event), None if known is None else known.anchor, is_looped
            mask = whole
            if relay is not None and not event.loops and event.kind != "barrier":
                continue  # another group may not have come to it
            if relay is not None and self._is_of_another(here, event):
                mask = whole & relay.hands if whole >= 0 else whole
            is_left = bool(event.loops) and not self.depth and event.number <= here.limit and (
                event.loops[0] is not here.loop or not is_looped)  # fmt: skip
            if is_left and event.loops[0].is_uniform:
                distance, anchor, inside = 1, event.loops[0], True  # in the last turn of a loop before this
            if distance is None or not self._comes(start, here, mask, event, distance, anchor):
                continue
            looped = inside and bool(event.loops)
            if bool(event.loops) and not inside:
                continue
            flags = _flags(known, event, distance, is_inner=len(event.loops) > self.depth + 1)
            if event.kind == "wait":
                for arrival, arrivals, more, is_turn in self._landed(event, mask, start):
                    if is_turn and not looped:
                        continue
                    if is_turn:
                        yield Known(arrival, arrivals, True, anchor, *flags), distance + more, is_left
                    elif looped and anchor is None:
                        yield Known(arrival, arrivals, False, anchor, *flags), distance + more, is_left
                    elif not looped and more <= 0:
                        yield Known(arrival, arrivals, False, anchor, *flags), distance, is_left
            elif event.kind == "barrier":
                yield Known(event, self.threads.everyone, looped, anchor, *flags), distance, is_left
            elif event.kind == "part":
                together = self._together(mask, start, event)
                if together:
                    yield Known(event, together, looped, anchor, *flags), distance, is_left
            elif event.kind in ("warp", "converge"):
                lanes = WARP if mask < 0 else self.threads.warps(mask & self.masks[event])
                yield Known(event, lanes, looped, anchor, *flags), distance, is_left
            else:
                own = mask if mask < 0 else mask & self.masks[event]
                yield Known(event, own, looped, anchor, *flags), distance, is_left

    def _landed(self, wait: Event, mask: int, start: Place) -> Iterator[tuple[Event, int, int, bool]]:
        """What a wait is for that threads have passed: in their blocks."""
        for part, found in self._landings[wait]:
            if mask & part if mask >= 0 else not start.mask & ~part:
                yield from found

    def _back(self, here: Place, event: Event) -> int | None:
        """How many turns before a place an event is, at least, in the same thread; None: it may be after it."""
        loop = loop_of(event.loops, self.depth)
        if loop is not None and loop is not here.loop:
            return None
        if event.number <= here.limit and not (here.is_after and loop is not None):
            return 0
        return 1 if loop is not None else None

    def _is_of_another(self, here: Place, event: Event) -> bool:
        """Whether an event, in a loop in which groups take turns, may be in the turn of the group before."""
        return bool(event.loops) and not here.is_after and event.number > here.limit

    def _comes(self, start: Place, here: Place, mask: int, event: Event, distance: int, anchor: Loop | None) -> bool:
        """Whether a thread that comes to a place has come to an event before it, so many turns ago."""
        own, others = self.masks[event], self.others[event]
        if event.loops and distance:
            loop = event.loops[self.depth]
            given = self.without_ends(self.others_of(loop.entry), loop.outer)
            is_last = here.is_after or (loop is anchor and here.loop is not loop)
            if is_last and not given <= here.others | self._fixed(start, start):
                return False  # it may not have been entered
            if not is_last and not self.depth:  # in the last turn they do not hold
                given |= frozenset(self.others_of(loop.stays))
        else:
            given = here.others
        if not others <= given:
            return False
        if mask == OWN:
            return start.mask & ~own == 0
        if mask == WARP:
            return start.mask & ~self.threads.warps(own) == 0
        return bool(mask & own)

    def _fixed(self, start: Place, target: Place) -> frozenset[Linear]:
        """What holds on the path of an access in any turn, so in all of its cluster; asked for after all loops."""
        if start.loop is not None:
            return frozenset()
        return frozenset(one for one in target.others
                         if not any(isinstance(atom.detail, (Loop, Symbol)) for atom in leaves([one])))  # fmt: skip

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

    def happened(self, start: Place, event: Event, mask: int) -> Iterator[Before]:
        """When an event of all threads of a mask is known to have happened at a place; of a copy, to be complete.

        Of a wait, it is enough that they have come by.
        """
        is_one = mask & (mask - 1) == 0 and start.mask == mask
        for known, distance in [(None, 0), *self.reached(start).items()]:
            here = start if known is None else self._known_at(known.event)
            own = OWN if known is None else known.mask
            if known is not None and known.is_passed and event.kind != "wait" and known.event is not event:
                continue  # an arrival that was waited for has come, wherever that is known
            if (own == WARP) or (own == OWN and not is_one) or (own >= 0 and mask & ~own):
                continue
            is_looped = here.loop is not None and (known is None or known.looped)
            if known is not None and known.anchor is not None:
                if not event.loops and event.kind != "copy" and event.number <= here.limit:
                    yield Before(0, True)
            elif known is not None and known.event is event:
                yield Before(distance, not is_looped)
            elif event.kind != "copy":
                back = self._back(here, event)
                relay = self._relays.get(here.loop) if here.loop is not None else None
                if relay is not None and event.loops:
                    own &= relay.hands if self._is_of_another(here, event) else -1
                    if own < 0 or mask & ~own or event in self._tails:
                        continue
                if back is not None:
                    is_all = not (is_looped and event.loops)
                    yield Before(distance + (0 if is_all else back), is_all)

    # Accesses.

    def before(self, one: Access, other: Access, *, same_thread: bool) -> list[Before]:
        """When the first of two accesses is known to be complete before the second starts, in whatever blocks."""
        if any(len(access.segment.loops) == self.depth > 0 for access in (one, other)):
            return []
        firsts = self._of_first_group(one, other)
        if firsts is None:
            return []
        one, other = firsts
        start, target = self.place(other), self.place(one)
        start = replace(start, others=start.others | self._fixed(start, target))
        starts, targets = ([replace(place, mask=part) for part in self.threads.by_rank(place.mask)]
                           for place in (start, target))  # fmt: skip
        ways = [self._before(one, other, start, target, same_thread) for start in starts for target in targets
                if self._meet(one, other, start.mask, target.mask, same_thread)]  # fmt: skip
        return [Before(max((each[is_all] for each in ways), default=0), is_all) for is_all in (False, True)
                if all(is_all in each for each in ways)]  # fmt: skip

    def _of_first_group(self, *accesses: Access) -> tuple[Access, Access] | None:
        """Two accesses, that of the first group for one of groups that take turns; None: nothing is known of them."""
        loops = [access.segment.loops[:1] for access in accesses]
        relays = [self._relays.get(one[0]) if one else None for one in loops]
        if any(relays) and (all(relays) or () in loops):
            return None
        one, other = (access if relay is None else relay.accesses.get(access)
                      for access, relay in zip(accesses, relays, strict=True))  # fmt: skip
        return None if one is None or other is None else (one, other)

    def _meet(self, one: Access, other: Access, start: int, target: int, same_thread: bool) -> bool:
        """Whether two accesses, by threads of one block each, may be to the memory of one block."""
        if not start or not target:
            return True
        if same_thread and self.threads.rank(start) != self.threads.rank(target):
            return False
        ranks = [self._whose(access, mask) for access, mask in ((one, target), (other, start))]
        return None in ranks or ranks[0] == ranks[1]

    def block_of(self, access: Access) -> int:
        """The threads of the block whose memory an access is to, if that is a number; all of them otherwise."""
        _, rank = without_rank(access.address)
        own = (1 << self.threads.own) - 1
        return (
            own << rank.constant * self.threads.own if rank is not None and rank.is_constant else self.threads.everyone
        )

    def _whose(self, access: Access, mask: int) -> int | None:
        """The rank of the block whose memory threads of one block access; None: it may be any."""
        _, rank = without_rank(access.address)
        if rank is None or not all(map(is_own_rank, leaves([rank]))):
            return None
        return self.threads.evaluate(rank, mask.bit_length() - 1)

    def _before(self, one: Access, other: Access, start: Place, target: Place, same_thread: bool) -> dict[bool, int]:
        is_tensor = one.space == "tensor"
        needs_fence = not one.unit and one.writes and other.unit in PROXY and not is_tensor
        wanted = {one.space} - {"generic"} or {"shared", "global"} if needs_fence else set[str]()
        needs_order = is_tensor and bool(other.unit)
        found: dict[bool, int] = {}
        ways: list[tuple[Known | None, int]] = list(self.reached(start).items())
        ways.append((None, 0))
        for known, distance in ways:
            if known is None and (needs_fence or needs_order):
                continue
            if known is not None and (known.is_passed or not wanted <= known.fenced or known.is_ordered < needs_order):
                continue
            is_own = same_thread or (start.mask == target.mask and start.mask.bit_count() == 1)
            if not self._covers(known, target, one, is_own):
                continue
            for all, total in self._complete(start, known, distance, one, target):
                if known is not None and known.anchor is not None:
                    if not all and (total > 1 or target.loop is None or not self._ends_with(target.loop, known.anchor)):
                        continue
                    all, total = True, 0  # in all turns
                found[all] = min(found.get(all, total), total)
        return found

    def _covers(self, known: Known | None, target: Place, access: Access, same_thread: bool) -> bool:
        """Whether what is known is known of all threads that do an access."""
        if known is None or known.mask == OWN:
            return same_thread
        if known.mask == WARP:
            return False
        of_warps = access.unit in ("wgmma", "tensor loads")  # its lanes do it together
        return not target.mask & ~(self.threads.warps(known.mask) if of_warps else known.mask)

    def _complete(
        self, start: Place, known: Known | None, distance: int, access: Access, target: Place
    ) -> Iterator[tuple[bool, int]]:
        here = start if known is None else self._known_at(known.event)
        is_looped = here.loop is not None and (known is None or known.looped)
        is_commit = known is not None and known.event.covers is not None
        if self.depth and None not in (here.loop, target.loop) and here.loop is not target.loop:
            return  # in one turn of the loop around both, not in all of its turns
        in_turn = here.loop is not None and here.loop in self._relays
        if in_turn and target.loop is None:
            return  # another group may not have come to it
        if access.unit in PHASED and access.unit != "tensor work":
            is_its = known is not None and (known.event.kind == "copy" or is_commit)
            if is_its and known is not None and known.event.number == access.epoch:
                yield not is_looped or target.loop is None, distance
            return
        is_copy = known is not None and known.event.kind == "copy"  # its bytes, not what its thread did before
        if is_copy or (access.unit == "tensor work" and not is_commit):
            return
        if access.unit and access.unit != "tensor work":
            if known is None or known.event.covers is not None:
                return
            is_again = target.loop is here.loop and is_looped
            if access.epoch >= known.event.number and not is_again:
                return  # it is not started yet
            turns = self._pending[(*_identity(access), known.event.segment)]
            if known.event in self._tails:
                turns = turns | self._pending[(*_identity(access), self._tails[known.event].segment)]
            if FREE in turns:
                return
            more = max(turns, default=-1) + 1
            more = max(more, int(access.epoch >= known.event.number or here.is_after))
            if is_again and in_turn and more and known.event not in self._tails:
                return  # in the first turn of a group, what was started before is of another one
            if is_again:
                yield False, distance + more
            elif not turns:
                yield True, distance
            return
        if target.loop is here.loop and is_looped:
            is_before = access.epoch < here.limit + 1 and known is not None and not here.is_after
            if in_turn and not is_before and not here.is_after:
                return
            yield False, distance + (0 if is_before else 1)
        elif access.epoch < here.limit + (0 if known is None else 1):
            yield True, distance


def split(execution: Execution) -> None:
    """Split accesses of several parts of the block, which pass barriers with other numbers, into one of each."""
    threads, terms = Threads(execution.terms), execution.terms
    parts = {one.value: one.path for one in execution.notes.events if one.kind == "part" and one.value is not None}
    for value, path in parts.items():
        if value.is_constant or any(not is_thread_index(atom) for atom in leaves([value])):
            continue
        own = threads.mask(path)[0]
        numbers = {threads.evaluate(value, thread) for thread in range(threads.count) if own >> thread & 1}
        for segment in execution.notes.segments:
            found: list[Access] = []
            for access in segment.accesses:
                mask = threads.mask(access.path)[0]
                pieces = [replace(access, path=(*access.path, terms.equal(value, linear(value.type, number))))
                          for number in sorted(numbers)]  # fmt: skip
                pieces = [one for one in pieces if threads.mask(one.path)[0]]
                found += pieces if mask & ~own == 0 and len(pieces) > 1 else [access]
            segment.accesses[:] = found


def _flags(
    known: Known | None, event: Event, distance: int, *, is_inner: bool
) -> tuple[frozenset[str], bool, bool]:  # fmt: skip
    """Of what is known by an event of the threads of what is known: `fenced`, `is_ordered`, `is_passed`.

    What comes by the arrival of a commit is what its thread knew at its last MMA; where it came by, is known anyway. By
    a copy no more comes than that. After a barrier of the warp in an inner loop, its later turns may follow.
    """
    is_own = known is None or known.mask == OWN
    fenced = frozenset[str]() if known is None else known.fenced
    is_ordered, is_passed = (False, False) if known is None else (known.is_ordered, known.is_passed)
    covers = None if known is None else known.event.covers
    if covers is not None and (covers == 0 or (distance == 0 and event.number > covers)):
        is_passed = True
    is_passed |= known is not None and known.event.kind == "copy"
    return (fenced | event.spaces, is_ordered or (is_own and event.kind == "tensor"),
            is_passed or event.kind == "converge" or (is_inner and event.kind == "warp"))  # fmt: skip


def _identity(access: Access) -> tuple[object, ...]:
    return access.at, access.segment, access.address, access.kind


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
