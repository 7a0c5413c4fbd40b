"""That shared memory is written before it is read.

For each byte that a thread reads there is a store, of any thread of its block, that comes before. Which bytes a store
writes is computed thread by thread: its offset is a number of the thread, and of the turns of loops that are over, plus
what all threads have in common. That it is complete when the read happens follows from what is shown of races: two
accesses to the same bytes are ordered, or of one thread, and the store comes first in the flow, or in an earlier turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ptxlab.flow.expressions import PARAMETER, SPECIAL, Atom, Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Access, following
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.questions.copies import PHASED
from ptxlab.prove.questions.intervals import ALONE, Reached
from ptxlab.prove.questions.objects import Group, Objects
from ptxlab.prove.questions.questions import Obligation, Questions, obligation
from ptxlab.prove.terms.loops import decisive
from ptxlab.prove.terms.terms import Loop, Terms, is_thread_index, leaves
from ptxlab.prove.theories.solver import z3

KIND = "initialized"
MOST_TURNS = 4  # how many turns before a read its store is looked for
Written = tuple[list[tuple[int, int]], Linear, list[Linear]]
"""Ranges of bytes from a start that threads have in common, and under which conditions they are written."""
MOST_WRITTEN = 1 << 15  # stores of a line that are computed one by one


@dataclass(frozen=True)
class _Store:
    """What threads write where `path` holds: one store, or several that differ in one decision."""

    accesses: tuple[Access, ...]
    offset: Linear
    path: frozenset[Linear]


class Initialized:
    """Shows that what is read of shared memory was written."""

    def __init__(self, execution: Execution, objects: Objects, questions: Questions) -> None:
        self.execution, self.objects, self.questions = execution, objects, questions
        mbarriers = {event.at for event in execution.notes.events if event.address is not None}
        self._has_mbarriers = bool(mbarriers)
        self._shared = [one for one in objects.accesses if self._is_shared(one) and one.at not in mbarriers]
        self._stores = self._joined()
        self._known: dict[tuple[_Store, tuple[Loop, ...]], Written | None] = {}

    def _is_shared(self, access: Access) -> bool:
        place = self.objects.located(access)
        return place is not None and place[0].space == "shared"

    def show(self, milliseconds: int) -> Iterator[Obligation]:
        """Show it of each read."""
        reads = [one for one in self._shared if one.kind != "store" and one.unit not in PHASED]
        for group in self.objects.groups(Reached(access, {}) for access in reads):
            about = f"{group.object.name} is written before it is read"
            over = self.questions.in_time(KIND, group.lines, about)
            if over is not None:
                yield over
                continue
            is_shown, reason = False, "what mbarriers order is not followed here"
            if not self._has_mbarriers:  # a store that comes first in the flow may wait for a read
                is_shown, reason = self._is_written(group, milliseconds), "for some byte no store before it is found"
            yield obligation(KIND, group.lines, about, is_shown, "bit-vectors, all stores before", reason)

    def _joined(self) -> list[_Store]:
        """The stores; two that differ in one decision only, which one takes and the other does not, are one."""
        terms = self.execution.terms
        found: list[_Store] = []
        for access in self._shared:
            place = self.objects.located(access)
            if access.kind != "store" or access.unit in PHASED or place is None:
                continue
            loops, notes = access.segment.loops, self.execution.notes
            one = _Store((access,), place[1], frozenset(decisive(access.path, loops, notes.loops)))
            while (other := next((other for other in found if _are_two(terms, one, other)), None)) is not None:
                found.remove(other)
                one = _Store((*other.accesses, *one.accesses), one.offset, one.path & other.path)
            found.append(one)
        return found

    def _is_written(self, group: Group, milliseconds: int) -> bool:
        """Whether no byte is read that no store before has written."""
        (b,) = self.questions.in_bits(ALONE, group.place)
        access, first = group.first, group.distances[0][0]
        byte = z3.BitVec("byte", LONG.width)
        is_read = z3.Or(*(z3.ULT(byte - (distance - first), one.bytes) for distance, one in group.distances))
        place = byte + z3.ZeroExt(LONG.width - group.offset.type.width, b.number(group.offset))
        covered = []
        for store in self._stores:
            if not self._is_of(store, group):
                continue
            loops = tuple(one for one in access.segment.loops if one in store.accesses[0].segment.loops)
            written = self._bytes(store, loops)
            if written is None:
                continue
            ranges, common, conditions = written
            for turns in self._turns(store, group, loops):
                replaced: dict[Atom, Linear] = {}
                if turns:
                    replaced[loops[-1].turn] = loops[-1].later(-turns)
                known: dict[Atom, Linear] = {}
                start, *holds = (self.execution.terms.substitute(one, replaced, known) for one in (common, *conditions))
                at = z3.Extract(start.type.width - 1, 0, place) - b.number(start)
                before = [z3.UGE(b.number(loops[-1].counter), turns)] if turns else []
                covered.append(z3.And(*before, *(b.holds(one) for one in holds),
                                      z3.Or(*(z3.ULT(at - low, high - low) for low, high in ranges))))  # fmt: skip
        status, _ = self.questions.clock.check([*b.facts, is_read, z3.Not(z3.Or(*covered))], milliseconds)
        return status == "unsat"

    def _is_of(self, store: _Store, group: Group) -> bool:
        """Whether a store is to the object that is read, and ordered with the reads where they touch the same bytes."""
        place = self.objects.located(store.accesses[0])
        is_weak = all(one.order == "weak" for one in store.accesses) or group.first.order == "weak"
        return place is not None and place[0].key == group.object.key and is_weak

    def _turns(self, store: _Store, group: Group, loops: tuple[Loop, ...]) -> Iterator[int]:
        """How many turns of the innermost loop around both a store is before a read, in any threads."""
        if all(self._is_before(one, read, loops) for one in store.accesses for _, read in group.distances):
            yield 0
        if loops and all(one.is_uniform or one.has_barrier for one in loops):
            yield from range(1, MOST_TURNS + 1)

    @staticmethod
    def _is_before(store: Access, read: Access, loops: tuple[Loop, ...]) -> bool:
        """Whether a store comes before a read in the flow, in the same turn of the loops around both."""
        if not all(one.is_uniform or one.has_barrier for one in loops):
            return False
        if store.segment is read.segment:
            accesses = store.segment.accesses
            return accesses.index(store) < accesses.index(read)
        return read.segment in following(store.segment, lambda _, back: back not in loops)

    def _bytes(self, store: _Store, loops: tuple[Loop, ...]) -> Written | None:
        """The bytes that a store writes, from a start that threads have in common, and under which conditions."""
        key = store, loops
        if key not in self._known:
            self._known[key] = self._computed(store, loops)
        return self._known[key]

    def _computed(self, store: _Store, loops: tuple[Loop, ...]) -> Written | None:
        over = [one for one in store.accesses[0].segment.loops if one not in loops]
        own = {loop.turn for loop in over}
        common, varying = linear(store.offset.type, 0), linear(store.offset.type, store.offset.constant)
        for atom, factor in store.offset.terms:
            part = linear(store.offset.type, 0, {atom: factor})
            if _is_own([part], own):
                varying = varying.plus(part)
            elif _is_common([part], loops):
                common = common.plus(part)
            else:
                return None
        conditions = [one for one in store.path if _is_common([one], loops)]
        others = [one for one in store.path if one not in conditions]
        if len(over) > 1 or not _is_own(others, own):
            return None
        starts = self._starts(varying, others, over[0] if over else None)
        width = store.accesses[0].bytes
        return None if starts is None else (_ranges(starts, width), common, conditions)

    def _starts(self, offset: Linear, path: Sequence[Linear], loop: Loop | None) -> set[int] | None:
        """The offsets of all threads that come to a store, in all turns that are sure to happen."""
        found: set[int] = set()
        counter = loop.turn if loop is not None else None
        stays = [] if loop is None else decisive(loop.stays, (*loop.outer, loop), self.execution.notes.loops)
        repeats = loop is not None and loop.repeats and _is_own(stays, {counter} if counter is not None else set())
        threads, count = Threads(self.execution.terms), 0
        for thread in range(threads.count):
            for turn in range(MOST_WRITTEN):
                count += 1
                if count > MOST_WRITTEN:
                    return None
                of = partial(threads.evaluate, thread=thread, counter=counter, turn=turn)
                if all(map(of, path)):
                    found.add(of(offset))
                if not repeats or not all(map(of, stays)):
                    break
        return found


def _are_two(terms: Terms, one: _Store, other: _Store) -> bool:
    """Whether two stores write the same bytes, each on one of the two ways of a decision."""
    a, b = one.accesses[0], other.accesses[0]
    is_same = one.offset == other.offset and a.bytes == b.bytes and a.segment.loops == b.segment.loops
    if not is_same or len(one.path) != len(other.path) or len(one.path - other.path) != 1:
        return False
    (yes,), (no,) = one.path - other.path, other.path - one.path
    return terms.negated(yes) == no and a.order == b.order


def _is_own(values: Sequence[Linear], counters: set[Atom]) -> bool:
    """Whether terms are made of the number of the thread and of some counters only, so that they can be computed."""
    return all(is_thread_index(atom) or atom in counters for atom in leaves(values))


def _is_common(values: Sequence[Linear], loops: Sequence[Loop]) -> bool:
    """Whether terms are the same for all threads of a block in the same turns of loops."""
    return all(atom.detail in loops if isinstance(atom.detail, Loop) else
               atom.kind == PARAMETER or (atom.kind == SPECIAL and not is_thread_index(atom))
               for atom in leaves(values))  # fmt: skip


def _ranges(starts: set[int], width: int) -> list[tuple[int, int]]:
    """Bytes as ranges, neighbours together."""
    found: list[tuple[int, int]] = []
    for start in sorted(starts):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], start + width)
        else:
            found.append((start, start + width))
    return found
