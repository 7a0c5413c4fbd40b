"""A launch that is directed step by step: before each step the host says which thread takes it."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import NamedTuple

from ptxlab.emulate.abi import entries, worker_parts
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.emulate.runtime.schedule.directed import GIVE_UP, NO_THREAD
from ptxlab.native import size_of
from ptxlab.native.checking import share

CAPACITY = 1 << 16  # events of a run; there are more only where a run is given up
_EVENT = struct.Struct("<IIQII")
_Choose = ctypes.CFUNCTYPE(ctypes.c_uint32)


class ThreadEvent(NamedTuple):
    """What a thread did; see `runtime.steps`."""

    thread: int
    kind: int
    address: int
    size: int
    extra: int


class Moment(NamedTuple):
    """What is known between two steps: what happened since the last one, and the state of each thread at a point."""

    events: list[ThreadEvent]
    marks: dict[int, int]


Director = Callable[[Moment], int | None]
"""Names the thread that takes the next step; None if all that are at a point poll in vain. `StopIteration` ends it."""


def direct(launch: RunningLaunch, director: Director) -> tuple[list[ThreadEvent], bool]:
    """Run a launch as a director says; what happened after its last answer, and whether all threads have exited."""
    direction = _Direction(launch, director)
    return direction.run(), bool(direction.record.get("has_ended"))


class _Direction:
    """What machine code and the host share while a run is directed."""

    def __init__(self, launch: RunningLaunch, director: Director) -> None:
        assert size_of(worker_parts.ThreadEvent) == _EVENT.size
        self.launch = launch
        self.director = director
        self.failure: BaseException | None = None
        threads = self._number_threads()
        self.states = share((ctypes.c_uint8 * threads)())
        self.marks = share((ctypes.c_uint64 * threads)())
        self.events = StructArray(worker_parts.ThreadEvent, CAPACITY)
        self.seen = 0
        self.callback = _Choose(self.choose)
        self.record = launch.workers[0].record.part("directed")
        for one in launch.team:  # that events are wanted, each asks its own; the first has them
            one.workers[0].record.part("directed").set(events=self.events.address)
        self.record.set(
            choose=ctypes.c_void_p.from_buffer(self.callback).value or 0,
            states=ctypes.addressof(self.states),
            marks=ctypes.addressof(self.marks),
            capacity=CAPACITY,
        )

    def _number_threads(self) -> int:
        """Number the threads of all launches that run together; how many there are."""
        count = 0
        for launch in self.launch.team:
            launch.workers[0].record.part("directed").set(first_thread=count)
            count += math.prod((*launch.grid, *launch.block))
        return count

    def run(self) -> list[ThreadEvent]:
        self.launch.call(entries.RUN_DIRECTED, self.launch.workers[0])
        del self.callback  # which refers to this
        if self.failure is not None:
            raise self.failure
        return self.read_events()

    def choose(self) -> int:
        """Ask the director; what it raises is raised again when machine code has returned."""
        try:
            at_points = [number for number, here in enumerate(bytes(self.states)) if here]
            chosen = self.director(Moment(self.read_events(), {number: self.marks[number] for number in at_points}))
            return NO_THREAD if chosen is None else chosen
        except StopIteration:
            return GIVE_UP
        except BaseException as problem:
            self.failure = problem
            return GIVE_UP

    def read_events(self) -> list[ThreadEvent]:
        """The events since the last time."""
        count = min(self.record.get("count"), CAPACITY)
        start, stop = self.seen * _EVENT.size, count * _EVENT.size
        self.seen = count
        text = ctypes.string_at(self.events.address + start, stop - start)
        return [ThreadEvent(*fields) for fields in _EVENT.iter_unpack(text)]
