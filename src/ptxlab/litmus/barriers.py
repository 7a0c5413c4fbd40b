"""How barriers may complete: which arrivals and waits are of one phase.

Threads arrive in every order, but each in its own. A phase of `barrier.cta` completes when as many threads have arrived
as it is for, and its next one starts (PTX ISA 9.7.13.1); one of `barrier.cluster` when all threads of the cluster have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxlab.litmus.budget import Budget
from ptxlab.litmus.events import Event, Value
from ptxlab.litmus.relation import Relation

Resolve = Callable[[Value, int], int]
Pairs = frozenset[tuple[int, int]]


def barrier_phases(events: Sequence[Event], resolve: Resolve, budget: Budget) -> tuple[list[Relation], bool]:
    """The relations from arrivals to waits that complete runs make, and whether a run may wait for ever."""
    if not any(event.barrier for event in events):
        return [Relation.of(len(events), ())], False
    search = _Search(events, resolve, budget)
    search.run((0,) * len(search.threads), {}, frozenset())
    return [Relation.of(len(events), pairs) for pairs in search.found], search.hangs


class _Search:
    def __init__(self, events: Sequence[Event], resolve: Resolve, budget: Budget) -> None:
        self.events, self.budget = events, budget
        self.found: set[Pairs] = set()
        self.hangs = False
        self._seen: set[object] = set()
        by_thread: dict[int, list[int]] = {}
        self.name: dict[int, tuple[object, ...]] = {}
        self.count: dict[int, int] = {}
        for number, event in enumerate(events):
            if event.barrier is not None:
                by_thread.setdefault(event.thread, []).append(number)
                self.name[number] = tuple(
                    resolve(part, event.thread) if not isinstance(part, str) else part  # type: ignore[arg-type]
                    for part in event.barrier
                )
        self.threads = [by_thread[thread] for thread in sorted(by_thread)]
        users: dict[tuple[object, ...], set[int]] = {}
        for number, name in self.name.items():
            users.setdefault(name, set()).add(events[number].thread)
        for number, name in self.name.items():
            count = events[number].count
            self.count[number] = len(users[name]) if count is None else resolve(count, events[number].thread)

    def run(self, at: tuple[int, ...], open: dict[tuple[object, ...], tuple[int, ...]], pairs: Pairs) -> None:
        """Continue from where each thread is; `open` has those that arrived at a phase that is not complete.

        A thread that waits stays at its wait until the phase completes.
        """
        key = (at, tuple(sorted(open.items(), key=repr)), pairs)
        if key in self._seen:
            return
        self._seen.add(key)
        self.budget.spend()
        if all(position == len(thread) for position, thread in zip(at, self.threads, strict=True)):
            self.found.add(pairs)
            return
        moved = False
        for number, thread in enumerate(self.threads):
            if at[number] == len(thread):
                continue
            event = thread[at[number]]
            arrived = open.get(self.name[event], ())
            if event in arrived or (
                self.events[event].waits and not self.events[event].arrives and not self._done(event, at, open)
            ):
                continue
            moved = True
            self._arrive(number, event, at, open, pairs)
        if not moved:
            self.hangs = True

    def _done(self, wait: int, at: tuple[int, ...], open: dict[tuple[object, ...], tuple[int, ...]]) -> bool:
        """Whether the phase of a cluster's barrier that this wait is for has completed."""
        return not any(self.events[one].thread == self.events[wait].thread for one in open.get(self.name[wait], ()))

    def _arrive(
        self,
        number: int,
        event: int,
        at: tuple[int, ...],
        open: dict[tuple[object, ...], tuple[int, ...]],
        pairs: Pairs,
    ) -> None:
        step = list(at)
        if not self.events[event].arrives:  # a wait whose phase has completed: its arrivals are those paired with it
            step[number] += 1
            self.run(tuple(step), open, pairs)
            return
        name = self.name[event]
        arrived = (*open.get(name, ()), event)
        if not self.events[event].waits:
            step[number] += 1
        if len(arrived) < self.count[event]:
            self.run(tuple(step), {**open, name: arrived}, pairs)
            return
        waits = [one for one in arrived if self.events[one].waits]
        split = [wait for one in arrived if not self.events[one].waits for wait in self._wait_of(one)]
        fresh = {
            (a, b)
            for a in arrived
            for b in (*waits, *split)
            if a != b and self.events[a].order == "acq_rel" and self.events[b].order == "acq_rel"
        }
        for position, thread in enumerate(self.threads):
            if step[position] < len(thread) and thread[step[position]] in waits:
                step[position] += 1
        rest = {key: value for key, value in open.items() if key != name}
        self.run(tuple(step), rest, pairs | fresh)

    def _wait_of(self, arrival: int) -> list[int]:
        """The wait that goes with an arrival at a cluster's barrier: the next of its thread."""
        thread = next(one for one in self.threads if arrival in one)
        later = thread[thread.index(arrival) + 1 :]
        if self.name[arrival][0] != "cluster":
            return []
        return [one for one in later if self.name[one] == self.name[arrival] and self.events[one].waits][:1]
