"""Orders: what must have happened before an access, in other threads, by mbarriers, barriers and waits for groups.

A thread that has passed a wait for a phase knows of all that its arrivals come after, and of its copies. So each event
leads to events of the same thread before it, and each wait to the arrivals and copies of its phase; a barrier to what
is before it in all threads. In turn `t` of a loop these are in turn `t - d` of another: the shortest way there is the
latest turn that is known of. That waits are for those phases is shown by `rings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ptxlab.flow.expressions import Linear

from .copies import FREE, PHASED, pending
from .execution import Execution
from .phases import Arriver, Threads, Visit, loop_of, mbarriers
from .segments import Access, Event, UnsupportedError
from .terms import Loop

LEAST = -256  # a distance below it is one of a cycle
PROXY = ("mbarrier", "bulk", "bulk.read", "wgmma")  # what the asynchronous proxy does, by what completes it
OWN, WARP = -1, -2  # the thread itself; some lane of its warp


@dataclass(frozen=True)
class Place:
    """A point of a thread: events up to `limit` come before it, of the same turn of its loop."""

    loop: Loop | None
    limit: int
    mask: int
    others: frozenset[Linear]


@dataclass(frozen=True)
class Known:
    """What is known of an event: that it happened, `distance` turns ago or before; if not `looped`, from that turn on.

    `mask`: in which threads.
    """

    event: Event
    mask: int
    is_fenced: bool
    looped: bool


@dataclass(frozen=True)
class Before:
    """An access in turn `u` is before another in turn `t` if `u <= t - distance`, or, of `all`, if `t >= distance`."""

    distance: int
    all: bool


class Orders:
    """What happens before what in a block."""

    def __init__(self, execution: Execution) -> None:
        notes = execution.notes
        self.events = notes.events
        self.threads = threads = Threads(execution.terms)
        self.masks: dict[Event, int] = {}
        self.others: dict[Event, frozenset[Linear]] = {}
        for event in self.events:
            if event.loops[1:] and event.kind != "group":
                raise UnsupportedError(event.at, "mbarriers with loops in loops are not followed")
            mask, others = threads.mask(event.path, event.at)
            self.masks[event], self.others[event] = mask, frozenset(others)
        self.mbarriers = mbarriers(threads, self.events, self.masks)
        self._landings: dict[Event, list[tuple[Event, int, int, bool]]] = {}
        for event in self.events:
            if event.kind == "wait":
                self._landings[event] = list(self._landing(event))
        self._pending: dict[tuple[object, ...], set[int]] = defaultdict(set)
        for one in pending(notes.segments):
            loop = loop_of(one.copy.segment.loops)
            self._pending[(*_identity(one.copy), one.segment)].add(0 if loop is None else one.since.get(loop, FREE))
        self._reached: dict[Place, dict[Known, int]] = {}

    # Waits.

    def _landing(self, wait: Event) -> Iterator[tuple[Event, int, int, bool]]:
        """The arrivals and copies of the phase of a wait: their threads, and how many turns ago they are."""
        own = [(one, visit, phase) for one in self.mbarriers for visit, phase in one.waits if visit.event is wait]
        distances: dict[tuple[Event, int], list[int]] = defaultdict(list)
        for mbarrier, visit, phase in own:
            for arriver in mbarrier.arrivers:
                for arrival, distance, is_looped in turns_of(visit, phase, arriver):
                    for event in (arrival, *mbarrier.copies.get(arrival, ())):
                        if is_looped:
                            distances[event, arriver.mask].append(distance)
                        else:
                            yield event, arriver.mask, distance, False
        for (event, mask), found in distances.items():
            if len(found) == len(own):  # at each mbarrier that the wait comes to
                yield event, mask, max(found), True

    # Ways.

    def place(self, access: Access) -> Place:
        """Where an access is."""
        mask, others = self.threads.mask(access.path)
        return Place(loop_of(access.segment.loops), access.epoch, mask, frozenset(others))

    def place_of(self, event: Event) -> Place:
        """Where an event is."""
        return Place(loop_of(event.loops), event.number - 1, self.masks[event], self.others[event])

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
            for after, more in self._steps(start, known):
                total = distance + more if known is None or known.looped else distance
                if total < LEAST:
                    raise UnsupportedError(after.event.at, "waits lead to each other in a circle")
                if total < found.get(after, total + 1):
                    found[after] = total
                    waiting.append((after, total))
        self._reached[start] = found
        return found

    def _steps(self, start: Place, known: Known | None) -> Iterator[tuple[Known, int]]:
        """What is known, given one thing that is: by the threads that it is of."""
        mask, is_fenced = (OWN, False) if known is None else (known.mask, known.is_fenced)
        here = start if known is None else self.place_of(known.event)
        is_looped = here.loop is not None and (known is None or known.looped)
        for event in self.events:
            if event.kind not in ("wait", "barrier", "warp", "fence", "group"):
                continue
            distance = self._back(here, event)
            if distance is None or not self._comes(start, here, mask, event, distance):
                continue
            looped = is_looped and bool(event.loops)
            if bool(event.loops) and not is_looped:
                continue
            if event.kind == "wait":
                for arrival, arrivals, more, is_turn in self._landings[event]:
                    if is_turn and not looped:
                        continue
                    if is_turn:
                        yield Known(arrival, arrivals, is_fenced, True), distance + more
                    elif looped:
                        yield Known(arrival, arrivals, is_fenced, False), distance + more
                    elif more <= 0:
                        yield Known(arrival, arrivals, is_fenced, False), distance
            elif event.kind == "barrier":
                yield Known(event, self.threads.everyone, is_fenced, looped), distance
            elif event.kind == "warp":
                lanes = WARP if mask < 0 else self.threads.warps(mask & self.masks[event])
                yield Known(event, lanes, is_fenced, looped), distance
            else:
                own = mask if mask < 0 else mask & self.masks[event]
                yield Known(event, own, is_fenced or event.kind == "fence", looped), distance

    def _back(self, here: Place, event: Event) -> int | None:
        """How many turns before a place an event is, at least, in the same thread; None: it may be after it."""
        loop = loop_of(event.loops)
        if loop is not None and loop is not here.loop:
            return None
        if event.number <= here.limit:
            return 0
        return 1 if loop is not None else None

    def _comes(self, start: Place, here: Place, mask: int, event: Event, distance: int) -> bool:
        """Whether a thread that comes to a place has come to an event before it, so many turns ago."""
        own, others = self.masks[event], self.others[event]
        if event.loops and distance:
            loop = event.loops[0]
            given = frozenset(self.others_of(loop.entry)) | frozenset(self.others_of(loop.stays))
        else:
            given = here.others
        if not others <= given:
            return False
        if mask == OWN:
            return start.mask & ~own == 0
        if mask == WARP:
            return start.mask & ~self.threads.warps(own) == 0
        return bool(mask & own)

    def others_of(self, path: tuple[Linear, ...]) -> tuple[Linear, ...]:
        """What holds on a path in all threads alike."""
        return self.threads.mask(path)[1]

    def happened(self, start: Place, event: Event, mask: int) -> Iterator[Before]:
        """When an event of all threads of a mask is known to have happened at a place; of a copy, to be complete."""
        is_one = mask & (mask - 1) == 0 and start.mask == mask
        for known, distance in [(None, 0), *self.reached(start).items()]:
            here = start if known is None else self.place_of(known.event)
            own = OWN if known is None else known.mask
            if (own == WARP) or (own == OWN and not is_one) or (own >= 0 and mask & ~own):
                continue
            is_looped = here.loop is not None and (known is None or known.looped)
            if known is not None and known.event is event:
                yield Before(distance, not is_looped)
            elif event.kind != "copy":
                back = self._back(here, event)
                if back is not None:
                    is_all = not (is_looped and event.loops)
                    yield Before(distance + (0 if is_all else back), is_all)

    # Accesses.

    def before(self, one: Access, other: Access, *, same_thread: bool) -> list[Before]:
        """When the first of two accesses is known to be complete before the second starts."""
        start, target = self.place(other), self.place(one)
        needs_fence = not one.unit and one.writes and other.unit in PROXY
        found: dict[bool, int] = {}
        ways: list[tuple[Known | None, int]] = list(self.reached(start).items())
        ways.append((None, 0))
        for known, distance in ways:
            if needs_fence and not (known is not None and known.is_fenced):
                continue
            is_own = same_thread or (start.mask == target.mask and start.mask.bit_count() == 1)
            if not self._covers(known, target, one, is_own):
                continue
            for all, total in self._complete(start, known, distance, one, target):
                found[all] = min(found.get(all, total), total)
        return [Before(distance, all) for all, distance in found.items()]

    def _covers(self, known: Known | None, target: Place, access: Access, same_thread: bool) -> bool:
        """Whether what is known is known of all threads that do an access."""
        if known is None or known.mask == OWN:
            return same_thread
        if known.mask == WARP:
            return False
        of_warps = access.unit == "wgmma"  # its lanes do it together
        return not target.mask & ~(self.threads.warps(known.mask) if of_warps else known.mask)

    def _complete(
        self, start: Place, known: Known | None, distance: int, access: Access, target: Place
    ) -> Iterator[tuple[bool, int]]:
        here = start if known is None else self.place_of(known.event)
        is_looped = here.loop is not None and (known is None or known.looped)
        if access.unit in PHASED:
            if known is not None and known.event.kind == "copy" and known.event.number == access.epoch:
                yield not is_looped or target.loop is None, distance
            return
        if access.unit:
            if known is None or known.event.kind != "group" or access.unit not in known.event.segment.units:
                return
            if not access.epoch < known.event.number and target.loop is not here.loop:
                return
            turns = self._pending[(*_identity(access), known.event.segment)]
            if FREE in turns:
                return
            more = max(turns, default=-1) + 1
            if target.loop is here.loop and is_looped:
                yield False, distance + max(more, int(access.epoch >= known.event.number))
            elif not turns:
                yield True, distance
            return
        if target.loop is here.loop and is_looped:
            yield False, distance + (0 if access.epoch < here.limit + 1 and known is not None else 1)
        elif access.epoch < here.limit + (0 if known is None else 1):
            yield True, distance


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
