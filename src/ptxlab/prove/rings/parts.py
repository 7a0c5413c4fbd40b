"""Barriers of a part of the block: which threads pass each together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ptxlab.flow.expressions import Linear, linear
from ptxlab.prove.execution.effects import BARRIERS
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Access, Event, UnsupportedError
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.terms.terms import is_thread_index, leaves

from .known import Place


class Parts:
    """The barriers of parts, each with the threads that pass it together, by their block and its number."""

    def __init__(self, threads: Threads, events: Sequence[Event], masks: Mapping[Event, int]) -> None:
        self.threads = threads
        self.groups = {event: self._of(event, masks[event]) for event in events if event.kind == "part"}
        self._check([event.value for event in events if event.kind == "barrier" and event.value is not None])

    def _of(self, event: Event, mask: int) -> dict[tuple[int, int], int]:
        """The threads that pass a barrier together, by their block and its number."""
        assert event.value is not None
        found: dict[tuple[int, int], int] = defaultdict(int)
        try:
            for thread in range(self.threads.count):
                if mask >> thread & 1:
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

    def _check(self, whole: Sequence[Linear]) -> None:
        """That barriers with one number are always of the same threads."""
        used: dict[tuple[int, int], int] = {}
        for event, groups in self.groups.items():
            for key, mask in groups.items():
                is_alone = all(one.is_constant and one.constant != key[1] for one in whole)
                if used.setdefault(key, mask) != mask or not is_alone:
                    raise UnsupportedError(event.at, "other threads use a barrier with the same number")

    def together(self, mask: int, start: Place, event: Event) -> int:
        """The threads that some threads have passed a barrier with; 0: that is not the same for all of them."""
        groups = self.groups[event].values()
        if mask < 0:
            return next((one for one in groups if not start.mask & ~one), 0)
        return sum(one for one in groups if one & mask)


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
