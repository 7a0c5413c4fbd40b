"""That a load reads what a store left in shared memory for all threads: the address of tensor memory, a tile's number.

Where a load, or the first of some additions, comes after a store in each turn of the loops around the store, a barrier
of the block is between the two on each path, and nothing that comes between writes the same bytes, it reads what was
stored: no race is left, so each other write is before the store or after the load. That the store is executed follows
from the load's path.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.flow.expressions import Linear
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Access, Handed
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.questions.objects import Objects, may_overlap
from ptxlab.prove.questions.paths import Paths
from ptxlab.prove.terms.terms import Loop, Symbol, is_own_rank, is_uniform, leaves, without_rank


def mistaken(execution: Execution, objects: Objects) -> set[int]:
    """The loads of which that is not so."""
    if not execution.notes.handed:
        return set()
    handovers = Handovers(execution, objects)
    return {one.load.at for one in execution.notes.handed if not handovers.is_right(one)}


class Handovers:
    """Shows that loads read what was stored."""

    def __init__(self, execution: Execution, objects: Objects) -> None:
        self.execution, self.objects, self.threads = execution, objects, Threads(execution.terms)
        self.paths = Paths(execution)
        self.accesses = [one for segment in execution.notes.segments for one in segment.accesses]

    def is_right(self, handed: Handed) -> bool:
        """Whether a load reads what a store left there."""
        load, store = handed.load, handed.store.access
        loops = store.segment.loops
        is_weak = store.order == "weak" and (load.order == "weak" or load.draw is not None)
        if not is_weak or load.segment.loops[: len(loops)] != loops or not self._is_stored(handed, loops):
            return False  # two strong accesses do not race, whatever their order is
        others = [one for one in self.accesses if one.writes and one is not store]
        if load.draw is not None:  # what additions to a counter start from
            others = [one for one in others if one.draw is None]
        is_after = load.segment in self.paths.after(store.segment, loops)
        is_after = is_after and self.paths.is_synchronized(store.segment, load.segment, loops)
        return is_after and not any(self._may_come_between(one, store, load) for one in others)

    def _is_stored(self, handed: Handed, loops: Sequence[Loop]) -> bool:
        """Whether a thread of the block stores if a thread comes to the load, and each that does the same value."""
        load, store, value = handed.load, handed.store.access, handed.store.value
        found = self.threads.exact(store.path)
        if found is None or not found[0] or not set(found[1]) <= set(load.path):
            return False
        if self.execution.terms.ranks > 1 and not _is_of_all_blocks(value, store):
            return False
        return is_uniform([value, without_rank(load.address)[0]], lambda loop: loop in loops)

    def _may_come_between(self, one: Access, store: Access, load: Access) -> bool:
        """Whether a write may be between a store and a load, in a turn of the loops around the store."""
        loops = store.segment.loops
        is_between = one.segment in self.paths.after(store.segment, loops)
        is_between = is_between and load.segment in self.paths.after(one.segment, loops)
        if one.segment is store.segment:
            is_between &= _position(store) < _position(one)
        if one.segment is load.segment and one.segment.loops == loops:
            is_between &= _position(one) < _position(load)
        return is_between and self._may_meet(one, store)

    def _may_meet(self, one: Access, other: Access) -> bool:
        """Whether two accesses may be to the same bytes of shared memory."""
        if one.space not in ("shared", "generic"):
            return False
        place, own = self.objects.located(one), self.objects.located(other)
        if place is None or own is None:
            return True
        (object, offset), (same, distance) = place, own
        return object.key == same.key and may_overlap(one, other, offset.plus(distance, -1))


def _is_of_all_blocks(value: Linear, store: Access) -> bool:
    """Whether in each block of a cluster some thread stores a value that is the same in all: of tensor memory."""
    symbols = [atom.detail for atom in leaves([value])]
    is_memory = all(isinstance(one, Symbol) and one.columns for one in symbols)
    return is_memory and not any(map(is_own_rank, leaves(store.path)))


def _position(access: Access) -> int:
    return access.segment.accesses.index(access)
