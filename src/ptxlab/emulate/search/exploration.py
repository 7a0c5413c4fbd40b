"""Exploring all schedules of a small program: stateless model checking by dynamic partial-order reduction.

The program is run again and again, each time from the start, with other choices of which thread takes the next step. Of
runs in which steps that do not commute come in the same order, one is enough. Which choices to try is found by source
sets and sleep sets: "Optimal dynamic partial order reduction" (Abdulla and others, POPL 2014), algorithm 1.

A thread that polls would make runs endless. If a thread comes back to a state in which it was, has changed nothing
since, and no other thread has changed what it has read since, then it takes no step before another thread does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from ptxlab.emulate.runtime.schedule.steps import DELIVER
from ptxlab.emulate.search.commuting import Effect, RunHistory, effect_of
from ptxlab.emulate.search.directing import Moment, ThreadEvent

LONGEST = 5000  # steps of a run: what takes more is not explored to its end


@dataclass
class ChoicePoint:
    """A state in which a thread was chosen."""

    enabled: frozenset[int]
    sleep: dict[int, Effect]
    """Threads that need not take a step here, as what would follow has been explored; and what they would do."""
    chosen: int
    to_try: set[int] = field(default_factory=set)
    tried: dict[int, Effect] = field(default_factory=dict)


class Polling:
    """Which threads poll what no other thread has changed."""

    def __init__(self) -> None:
        self.polled: dict[int, frozenset[Hashable]] = {}
        self._changed: dict[Hashable, int] = {}
        self._taken: dict[int, list[tuple[int, Effect]]] = {}
        self._visits: dict[int, dict[int, int]] = {}

    def follow(self, position: int, thread: int, effect: Effect, mark: int | None) -> list[int]:
        """A thread took a step, and is at a point in a state with that mark; the threads that need poll no more."""
        taken = self._taken.setdefault(thread, [])
        taken.append((position, effect))
        for word in effect.changes:
            self._changed[word] = position
        woken = [other for other, words in self.polled.items() if not words.isdisjoint(effect.changes)]
        for other in woken:
            del self.polled[other]
        if mark is not None:
            visits = self._visits.setdefault(thread, {})
            since = visits.get(mark)
            if since is not None and self._is_vain(taken[since:]):
                self.polled[thread] = frozenset(word for _, one in taken[since:] for word in one.reads | one.writes)
            visits[mark] = len(taken)
        return woken

    def _is_vain(self, steps: list[tuple[int, Effect]]) -> bool:
        return all(
            one.is_alone
            and not one.changes
            and all(self._changed.get(word, -1) < position for word in one.reads | one.writes)
            for position, one in steps
        )


class Explorer:
    """All runs of a program: `begin` one, let it be directed by `choose`, `end` it, until `is_done`."""

    def __init__(self) -> None:
        self.nodes: list[ChoicePoint] = []
        self.is_done = False
        self.is_cut = False
        """Whether a run was given up, since it was too long or its time was over."""
        self.is_redundant = False
        """Whether the last run was given up, as others are equivalent."""
        self.longest = 0
        self.threads: set[int] = set()

    @property
    def schedule(self) -> list[int]:
        """The threads that took the steps of the last run."""
        return [step.thread for step in self._history.steps]

    def begin(self) -> None:
        self._history, self._polling = RunHistory(), Polling()
        self._depth = 0
        self._known = len(self.nodes) - 1  # steps whose races are known
        self._last: int | None = None  # the thread that takes the step that is not finished
        self._previous = -1
        self.is_redundant = False

    def choose(self, moment: Moment) -> int | None:
        """Which thread takes the next step; see `directing.Director`."""
        self._finish_step(moment.events, moment.marks)
        enabled = frozenset(moment.marks) - self._polling.polled.keys()
        self.threads |= enabled
        if not enabled:
            return None
        if self._depth == len(self.nodes):
            self.nodes.append(self._new_node(enabled))
        node = self.nodes[self._depth]
        self._depth += 1
        self._last = node.chosen
        return node.chosen

    def choose_as(self, moment: Moment, wanted: int | None) -> int | None:
        """The thread that is wanted, if it can take a step; otherwise another one."""
        self._finish_step(moment.events, moment.marks)
        enabled = frozenset(moment.marks) - self._polling.polled.keys()
        if not enabled:
            return None
        self._last = next((one for one in (wanted, self._previous) if one in enabled), min(enabled))
        return self._last

    def end(self, events: Iterable[ThreadEvent]) -> None:
        """A run has ended: find another choice that has to be tried."""
        self._finish_step(list(events), {})
        self.longest = max(self.longest, len(self._history.steps))
        steps = self._history.steps
        while self.nodes:
            node = self.nodes[-1]
            if len(self.nodes) <= len(steps):
                node.tried[node.chosen] = steps[len(self.nodes) - 1].effect
            left = node.to_try - node.tried.keys() - node.sleep.keys()
            if left:
                node.chosen = min(left)
                return
            self.nodes.pop()
        self.is_done = True

    def _new_node(self, enabled: frozenset[int]) -> ChoicePoint:
        sleep: dict[int, Effect] = {}
        if self._depth:
            before, effect = self.nodes[self._depth - 1], self._history.steps[-1].effect
            known = before.sleep | {t: e for t, e in before.tried.items() if t != before.chosen}
            sleep = {thread: one for thread, one in known.items() if one.commutes(effect)}
        awake = enabled - sleep.keys()
        if not awake:
            self.is_redundant = True
            raise StopIteration
        if self._depth >= LONGEST:
            self.is_cut = True
            raise StopIteration
        chosen = self._previous if self._previous in awake else min(awake)
        return ChoicePoint(enabled, sleep, chosen, {chosen})

    def _finish_step(self, events: list[ThreadEvent], marks: dict[int, int]) -> None:
        """The last step is over: find the steps that it races with, and have the other order tried."""
        delivered = any(event.kind == DELIVER for event in events)
        if delivered:
            self._polling.polled.clear()
        if self._last is None:
            self._history.follow(-1, events)
            return
        thread = self._previous = self._last
        effect = effect_of(thread, events)
        racing = self._history.add(thread, effect, events)
        position = len(self._history.steps) - 1
        if self.nodes and position >= self._known:
            for earlier in racing:
                self._try_reversed(earlier, position)
        for woken in self._polling.follow(position, thread, effect, marks.get(thread)):
            self._history.order(position, woken)
        self._last = None

    def _try_reversed(self, earlier: int, later: int) -> None:
        """Have a step tried before another one with which it races."""
        steps = self._history.steps
        first = steps[earlier]
        # What does not depend on the earlier step, and then the later one, can come before it.
        rest = [step for step in steps[earlier + 1 : later] if not first.is_before(step)] + [steps[later]]
        node = self.nodes[earlier]
        initials = {
            step.thread for index, step in enumerate(rest) if not any(one.is_before(step) for one in rest[:index])
        }
        if initials.isdisjoint(node.to_try):
            possible = initials & node.enabled
            node.to_try.update([min(possible)] if possible else node.enabled)
