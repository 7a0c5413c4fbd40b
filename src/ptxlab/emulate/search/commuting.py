"""Steps of threads, which of them commute, and which happen before which.

Two steps commute if they access different words, or only read. The order in which steps that do not commute were taken,
together with that of each thread, barriers and warp collectives, is *happens-before*: two runs in which it is the same
end in the same state, so one of them is enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.runtime.schedule.steps import (
    ARRIVE,
    CHANGED,
    CONVERGE,
    DELIVER,
    EVERYONE,
    FAILED,
    OPEN,
    SERVICE,
    STAYS,
    WAIT,
)
from ptxlab.emulate.search.directing import ThreadEvent

Clock = dict[int, int]
"""By thread, how many of its steps happened before."""


@dataclass(frozen=True)
class Effect:
    """What a step did: words (or barriers) that it read, wrote, and of these changed."""

    reads: frozenset[Hashable] = frozenset()
    writes: frozenset[Hashable] = frozenset()
    changes: frozenset[Hashable] = frozenset()
    is_alone: bool = True
    """Whether the thread neither arrived at a barrier nor converged with others."""

    def commutes(self, other: Effect) -> bool:
        """Whether it does not matter which of two steps is taken first."""
        return self.writes.isdisjoint(other.reads | other.writes) and self.reads.isdisjoint(other.writes)


@dataclass
class ThreadStep:
    """A step of a thread: its `number` among those of the thread, what it did, and what happened before."""

    thread: int
    number: int
    effect: Effect
    clock: Clock = field(default_factory=dict)

    def is_before(self, other: ThreadStep) -> bool:
        return other.clock.get(self.thread, 0) >= self.number


def effect_of(thread: int, events: Iterable[ThreadEvent]) -> Effect:
    """What a thread did, by the log."""
    reads: set[Hashable] = set()
    writes: set[Hashable] = set()
    changes: set[Hashable] = set()
    is_alone = True
    for event in events:
        if event.kind in (ARRIVE, OPEN, CONVERGE, WAIT):
            is_alone = False
        if event.thread != thread:
            continue
        if event.kind == SERVICE:
            writes.add("host")
        elif event.kind == ARRIVE and not event.extra & EVERYONE:
            writes.add(("barrier", event.address))
        elif event.kind <= address_spaces.ATOMIC:
            words = range(event.address >> 2, (event.address + event.size - 1 >> 2) + 1)
            is_read = event.kind == address_spaces.LOAD or (
                event.kind == address_spaces.ATOMIC and event.extra & FAILED
            )
            (reads if is_read else writes).update(words)
            if event.extra & CHANGED:
                changes.update(words)
    return Effect(frozenset(reads), frozenset(writes), frozenset(changes), is_alone)


class RunHistory:
    """The steps of a run so far, with what happens before what."""

    def __init__(self) -> None:
        self.steps: list[ThreadStep] = []
        self.clocks: dict[int, Clock] = {}
        self._accesses: dict[Hashable, list[tuple[int, bool]]] = {}
        self._arrived: dict[int, Clock] = {}
        self._opened: dict[int, Clock] = {}
        self._waiting: dict[int, set[int]] = {}

    def add(self, thread: int, effect: Effect, events: Iterable[ThreadEvent]) -> list[int]:
        """Add a step; the earlier steps, by position, that it races with: no other step is between the two."""
        clock = dict(self.clocks.get(thread, {}))
        number = clock.get(thread, 0) + 1
        racing = []
        for position in sorted(self._conflicts(effect), reverse=True):
            earlier = self.steps[position]
            if clock.get(earlier.thread, 0) < earlier.number:
                racing.append(position)
                join(clock, earlier.clock)
        clock[thread] = number
        at = len(self.steps)
        self.steps.append(ThreadStep(thread, number, effect, clock))
        for word in effect.reads | effect.writes:
            self._accesses.setdefault(word, []).append((at, word in effect.writes))
        self.clocks[thread] = dict(clock)
        self.follow(thread, events)
        return racing

    def follow(self, thread: int, events: Iterable[ThreadEvent]) -> None:
        """Take over what barriers, collectives and asynchronous work order; `thread` took the step."""
        for event in events:
            if event.kind == ARRIVE:
                join(self._arrived.setdefault(event.address, {}), self.clocks.setdefault(event.thread, {}))
            if event.kind == WAIT and event.extra:
                join(self.clocks.setdefault(event.thread, {}), self._opened[event.address])
            elif event.kind == WAIT or (event.kind == ARRIVE and event.extra & STAYS):
                self._waiting.setdefault(event.address, set()).add(event.thread)
            elif event.kind == OPEN:
                opened = self._opened[event.address] = self._arrived.pop(event.address, {})
                join(opened, self.clocks.get(thread, {}))
                for other in self._waiting.pop(event.address, ()):
                    join(self.clocks.setdefault(other, {}), opened)
            elif event.kind in (CONVERGE, DELIVER):
                members = list(self.clocks)
                if event.kind == CONVERGE:
                    members = [event.thread + lane for lane in range(32) if event.extra >> lane & 1]
                together: Clock = {}
                for member in members:
                    join(together, self.clocks.setdefault(member, {}))
                for member in members:
                    join(self.clocks[member], together)

    def order(self, first: int, thread: int) -> None:
        """A step is what a thread waited for."""
        join(self.clocks.setdefault(thread, {}), self.steps[first].clock)

    def _conflicts(self, effect: Effect) -> set[int]:
        """The latest steps that do not commute with one: the last write of each word, and reads after that."""
        found: set[int] = set()
        for word in effect.reads | effect.writes:
            for position, is_write in reversed(self._accesses.get(word, ())):
                if is_write or word in effect.writes:
                    found.add(position)
                if is_write:
                    break
        return found


def join(clock: Clock, other: Clock) -> None:
    """Have a clock include another one."""
    for thread, number in other.items():
        if clock.get(thread, 0) < number:
            clock[thread] = number
