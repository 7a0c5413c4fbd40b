"""What is known at a place: what must have happened before, in other threads, by mbarriers, barriers and waits.

A thread that has passed a wait for a phase knows of all that its arrivals come after, and of its copies. So each event
leads to events of the same thread before it, and each wait to the arrivals and copies of its phase; a barrier to what
is before it in all threads. In turn `t` of a loop these are in turn `t - d` of another: the shortest way there is the
latest turn that is known of. That waits are for those phases is shown by `rings`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.flow.expressions import Linear
from ptxlab.prove.execution.segments import Event, UnsupportedError
from ptxlab.prove.terms.terms import Loop, Symbol, leaves

from .phases import loop_of

if TYPE_CHECKING:
    from .orders import Orders

LEAST = -256  # a distance below it is one of a cycle
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


class Knowledge:
    """What is known at each place, by the turns of loops that orders count."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self._reached: dict[Place, dict[Known, int]] = {}

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
        here = start if known is None else self.orders.known_at(known.event)
        is_looped = here.loop is not None and (known is None or known.looped)
        relay, whole = self.orders.relay_of.get(here.loop) if here.loop is not None else None, mask
        for event in self.orders.events:
            if event.kind not in ("wait", "barrier", "part", "warp", "converge", "fence", "tensor", "group"):
                continue
            distance, anchor, inside = self._back(here, event), None if known is None else known.anchor, is_looped
            mask = whole
            if relay is not None and not event.loops and event.kind != "barrier":
                continue  # another group may not have come to it
            if relay is not None and self._is_of_another(here, event):
                mask = whole & relay.hands if whole >= 0 else whole
            is_left = bool(event.loops) and not self.orders.depth and event.number <= here.limit and (
                event.loops[0] is not here.loop or not is_looped)  # fmt: skip
            if is_left and event.loops[0].is_uniform:
                distance, anchor, inside = 1, event.loops[0], True  # in the last turn of a loop before this
            if distance is None or not self._comes(start, here, mask, event, distance, anchor):
                continue
            looped = inside and bool(event.loops)
            if bool(event.loops) and not inside:
                continue
            flags = _flags(known, event, distance, is_inner=len(event.loops) > self.orders.depth + 1)
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
                yield Known(event, self.orders.threads.everyone, looped, anchor, *flags), distance, is_left
            elif event.kind == "part":
                together = self.orders.parts.together(mask, start, event)
                if together:
                    yield Known(event, together, looped, anchor, *flags), distance, is_left
            elif event.kind in ("warp", "converge"):
                lanes = WARP if mask < 0 else self.orders.threads.warps(mask & self.orders.masks[event])
                yield Known(event, lanes, looped, anchor, *flags), distance, is_left
            else:
                own = mask if mask < 0 else mask & self.orders.masks[event]
                yield Known(event, own, looped, anchor, *flags), distance, is_left

    def _landed(self, wait: Event, mask: int, start: Place) -> Iterator[tuple[Event, int, int, bool]]:
        """What a wait is for that threads have passed: in their blocks."""
        for part, found in self.orders.landings[wait]:
            if mask & part if mask >= 0 else not start.mask & ~part:
                yield from found

    def _back(self, here: Place, event: Event) -> int | None:
        """How many turns before a place an event is, at least, in the same thread; None: it may be after it."""
        loop = loop_of(event.loops, self.orders.depth)
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
        own, others = self.orders.masks[event], self.orders.others[event]
        if event.loops and distance:
            loop = event.loops[self.orders.depth]
            given = self.orders.without_ends(self.orders.others_of(loop.entry), loop.outer)
            is_last = here.is_after or (loop is anchor and here.loop is not loop)
            if is_last and not given <= here.others | self.fixed(start, start):
                return False  # it may not have been entered
            if not is_last and not self.orders.depth:  # in the last turn they do not hold
                given |= frozenset(self.orders.others_of(loop.stays))
        else:
            given = here.others
        if not others <= given:
            return False
        if mask == OWN:
            return start.mask & ~own == 0
        if mask == WARP:
            return start.mask & ~self.orders.threads.warps(own) == 0
        return bool(mask & own)

    def fixed(self, start: Place, target: Place) -> frozenset[Linear]:
        """What holds on the path of an access in any turn, so in all of its cluster; asked for after all loops."""
        if start.loop is not None:
            return frozenset()
        return frozenset(one for one in target.others
                         if not any(isinstance(atom.detail, (Loop, Symbol)) for atom in leaves([one])))  # fmt: skip

    def happened(self, start: Place, event: Event, mask: int) -> Iterator[Before]:
        """When an event of all threads of a mask is known to have happened at a place; of a copy, to be complete.

        Of a wait, it is enough that they have come by.
        """
        is_one = mask & (mask - 1) == 0 and start.mask == mask
        for known, distance in [(None, 0), *self.reached(start).items()]:
            here = start if known is None else self.orders.known_at(known.event)
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
                relay = self.orders.relay_of.get(here.loop) if here.loop is not None else None
                if relay is not None and event.loops:
                    own &= relay.hands if self._is_of_another(here, event) else -1
                    if own < 0 or mask & ~own or event in self.orders.tails:
                        continue
                if back is not None:
                    is_all = not (is_looped and event.loops)
                    yield Before(distance + (0 if is_all else back), is_all)


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
