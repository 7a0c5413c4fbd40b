"""That no two threads race: no pair of accesses that are not ordered touches the same bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from ptxlab.flow.expressions import COUNTER, Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.registers import CONSTANT
from ptxlab.prove.execution.segments import ARRIVE, INITIALIZE, Access
from ptxlab.prove.obligations.tickets import Tickets
from ptxlab.prove.questions.copies import FREE, PHASED, pending
from ptxlab.prove.questions.intervals import Pair, Reached, intervals
from ptxlab.prove.questions.objects import Group, Objects
from ptxlab.prove.questions.questions import Obligation, Questions
from ptxlab.prove.questions.reasons import why
from ptxlab.prove.rings.completion import PROXY, Completion
from ptxlab.prove.rings.known import Before
from ptxlab.prove.rings.orders import Orders
from ptxlab.prove.rings.phases import MOST_PERIOD, clock
from ptxlab.prove.terms.periods import period
from ptxlab.prove.terms.terms import SHARED_BYTES, UNSIGNED, leaves
from ptxlab.prove.theories.lemmas import digits, products, quotients
from ptxlab.prove.theories.polynomials import Poly
from ptxlab.prove.theories.solver import z3
from ptxlab.prove.theories.translation import Translation


class Races:
    """Shows that there are no races."""

    def __init__(
        self, execution: Execution, objects: Objects, questions: Questions, tickets: Tickets, orders: Sequence[Orders]
    ) -> None:
        self.execution, self.objects, self.questions, self.orders = execution, objects, questions, orders
        self.tickets = tickets
        self.completions = [Completion(one) for one in orders]

    def show(self, milliseconds: int) -> Iterator[Obligation]:
        """Show that no two accesses of different threads conflict."""
        segments = self.execution.notes.segments
        has_warps = any(one.is_of_warp for one in segments)
        for same_warp in (False, True) if has_warps else (None,):
            yield from self._show_block(same_warp, milliseconds)
        yield from self._show_copies(milliseconds)
        yield from self._show_in_any_turns(milliseconds)
        groups = [one for one in self.objects.groups(Reached(access, {}) for access in self.objects.accesses)
                  if one.object.space == "global"]  # fmt: skip
        for one, other in _conflicting(groups):
            pair = Pair(None, ({}, {}), same_block=False)
            yield self.race(one, other, pair, milliseconds)

    def _show_block(self, same_warp: bool | None, milliseconds: int) -> Iterator[Obligation]:
        """Show that no two accesses in a block conflict: of any threads, or of threads of one warp, or of two."""
        done: set[tuple[Any, ...]] = set()
        run = self.execution
        for interval in intervals(run.notes.segments, run.entry, run.terms, of_warps=same_warp is True):
            reached = [one for one in interval.reached if one.access.unit not in PHASED]
            groups = [group for group in self.objects.groups(reached) if group.object.space in ("shared", "global")]
            for one, other in (pair for pair in _conflicting(groups) if not _is_constant(*pair)):
                key = (id(interval.start) if one.turns or other.turns else 0, *_identity(one), *_identity(other))
                if key not in done:
                    done.add(key)
                    pair = Pair(interval.start.loops, (one.turns, other.turns), same_block=True, same_warp=same_warp,
                                may_be_one=one is not other
                                and any(group.first.is_collective for group in (one, other)))  # fmt: skip
                    yield self.race(one, other, pair, milliseconds)

    def _show_copies(self, milliseconds: int) -> Iterator[Obligation]:
        """Show that no thread accesses what a copy that it started may still write, or writes what it may read."""
        done: set[tuple[Any, ...]] = set()
        for one in pending(self.execution.notes.segments):
            start = one.copy.segment
            for later in one.segment.accesses:
                turns = {loop: one.since.get(loop, one.exact.get(loop, FREE)) for loop in one.segment.loops}
                left = {loop: FREE for loop in start.loops if loop not in one.segment.loops}
                copies = self.objects.groups([Reached(one.copy, dict.fromkeys(start.loops, 0))])
                others = self.objects.groups([Reached(later, turns | left)])
                for copy, other in ((copy, other) for copy in copies for other in others):
                    key = (*_identity(copy), *_identity(other), id(start))
                    is_conflict = copy.object.key == other.object.key and (copy.first.writes or other.first.writes)
                    if is_conflict and key not in done:
                        done.add(key)
                        pair = Pair(start.loops, (copy.turns, other.turns), same_block=True, same_thread=True)
                        yield self.race(copy, other, pair, milliseconds)

    def _show_in_any_turns(self, milliseconds: int) -> Iterator[Obligation]:
        """Show the same in any turns of two accesses: of those that phases complete, and of the asynchronous proxy.

        What threads write must be known to that proxy before it accesses the same bytes. What is loaded as memory that
        does not change, no thread writes, before or after. Where an mbarrier is, none writes after it is initialized.
        """
        any_turns = [Reached(one, dict.fromkeys(one.segment.loops, FREE)) for one in self.objects.accesses]
        for one, other in _conflicting(self.objects.groups(any_turns)):
            pair = Pair(None, (one.turns, other.turns), same_block=True, may_be_one=True)
            is_tensor = one.object.space == "tensor"
            if is_tensor and self._is_in_order(one, other):
                about = "no race on tensor memory between MMAs, and copies to it, of a thread"
                lines = tuple(dict.fromkeys((*one.lines, *other.lines)))
                yield Obligation("race tensor", lines, "proved", about, argument="they are executed in their order")
            elif (is_tensor or any(group.first.unit in PHASED for group in (one, other)) or _meet(one, other)
                  or _is_constant(one, other) or _damages(one.first, other.first)
                  or _damages(other.first, one.first)):  # fmt: skip
                yield self.race(one, other, pair, milliseconds)

    def _is_in_order(self, one: Group, other: Group) -> bool:
        """Whether both are operations of one thread that wait for each other: MMAs with the same accumulators in all
        turns, of one kind and shape, or with others; copies, and MMAs that read what these write."""  # fmt: skip
        if not self.orders or any(group.first.unit != "tensor work" for group in (one, other)):
            return False
        masks = {self.orders[0].place(group.first).mask for group in (one, other)}
        is_of_one = len(masks) == 1 and next(iter(masks)).bit_count() == 1
        if is_of_one and "update" not in (one.first.kind, other.first.kind):
            return True  # no accumulators
        starts = self._starts(one.offset)
        if not is_of_one or one.offset.terms != other.offset.terms or not starts:
            return False
        gaps = {start - other for start in starts for other in starts}
        return all(
            (at == there + gap and first.form == second.form) or abs(at - there - gap) >= max(first.bytes, second.bytes)
            for at, first in one.distances
            for there, second in other.distances
            for gap in gaps
        )

    def _starts(self, offset: Linear) -> set[int]:
        """All that an offset can be, without its constant, if that is one of a few numbers, by the turn of a loop."""
        counters = leaves([offset])
        moving = offset.plus(linear(offset.type, -offset.constant))
        if not counters:
            return {0}
        (counter, *others) = counters
        turns = period(moving, counter) if not others and counter.kind == COUNTER else None
        values = [self.questions.terms.substitute(moving, {counter: linear(LONG, turn)})
                  for turn in range(turns if turns is not None and turns <= MOST_PERIOD else 0)]  # fmt: skip
        return {one.constant for one in values} if all(one.is_constant for one in values) else set()

    def race(self, one: Group, other: Group, pair: Pair, milliseconds: int) -> Obligation:
        """Show that two accesses do not conflict."""
        kind = f"race {one.object.space}"
        where = "threads of a block" if pair.same_block else "threads of different blocks"
        where = "a copy and the thread that started it" if pair.same_thread else where
        if pair.same_block and pair.start is None and _meet(one, other):
            where = "threads and the asynchronous proxy, which wants a `fence.proxy.async`"
        where = "writes and `.nc` loads, in any order" if _is_constant(one, other) else where
        if _damages(one.first, other.first) or _damages(other.first, one.first):
            where = "an mbarrier and what else is written there"
        about = f"no race on {one.object.name} between {where}"
        lines = tuple(dict.fromkeys((*one.lines, *other.lines)))
        over = self.questions.in_time(kind, lines, about)
        if over is not None:
            return over
        if _is_strong(one, other) and all(group.first.align == group.first.bytes for group in (one, other)):
            return Obligation(kind, lines, "proved", about, argument="both are strong, and aligned")
        unordered = self._unordered(one, other, pair)
        if any(before.all and before.distance <= 0 for *_, before in unordered):
            return Obligation(kind, lines, "proved", about, argument="order")
        if one.object.space == "shared" and _are_apart(one, other):
            return Obligation(kind, lines, "proved", about, argument="ranges of addresses")
        ways: list[tuple[Callable[..., tuple[str, Any, str]], int]] = [
            (self._race_bits, milliseconds), (self._race_integers, milliseconds)
        ]  # fmt: skip
        is_shared = one.object.space == "shared"
        if not is_shared:  # there bits rarely help
            ways = [ways[1], (self._race_bits, milliseconds // 6)]
        elif unordered:  # remainders by a number of stages are slow in bits
            ways = ways[::-1]
        status = "unknown"
        for is_lean in (True, False) if is_shared and self.orders else (False,):
            for way, limit in ways:
                found, _, argument = way(one, other, pair, limit, is_lean=is_lean)
                if found == "unsat":
                    return Obligation(kind, lines, "proved", about, argument=argument)
                if found == "sat":
                    status = "sat"
        values = [*one.first.path, *other.first.path, one.offset, other.offset]
        reason, help = why(status, values, one.object)
        return Obligation(kind, lines, "open", about, reason or "two threads may access the same bytes", help,
                          again=lambda limit: self._race_integers(one, other, pair, limit, is_model=True)[1],
                          retry=lambda: self.race(one, other, pair, milliseconds))  # fmt: skip

    def _unordered(self, one: Group, other: Group, pair: Pair) -> list[tuple[int, int, Before]]:
        """What holds if neither of two accesses is known to be before the other; by which turns, and which is first."""
        a, b = one.first, other.first
        same = pair.same_thread
        later: list[tuple[int, int, Before]] = []
        if same and a.at == b.at and a.segment is b.segment and len(a.segment.loops) == 1:
            later = [(0, 1, Before(0, False))]  # the same line in a later turn
        if not pair.same_block or _is_constant(one, other):
            return later
        found = [
            (own.orders.depth, number, before)
            for own in self.completions
            for number, (first, second) in enumerate(((a, b), (b, a)))
            if not (_is_freed(first) and not _is_freed(second)) and not _damages(second, first)  # may not come after it
            for before in own.before(first, second, same_thread=same)
        ]
        return [*later, *found]

    def _two(self, one: Group, other: Group, pair: Pair, threads: Sequence[Translation]) -> list[Any]:
        """That accesses are two: of different threads, or in different turns."""
        a, b = threads
        found = self.questions.apart(pair, a, b)
        if pair.start is None and pair.may_be_one and one is other:
            loops = one.first.segment.loops
            numbers = [*self.questions.terms.threads(), self.questions.terms.rank()]
            if loops[1:] and loops[1].base.terms:  # of all turns so far, each has another number
                numbers += [clock(loops, 1), *(loop.counter for loop in loops[2:])]
            else:
                numbers += [loop.counter for loop in loops]
            found.append(z3.Or(*(z3.Not(a.same(value, b)) for value in numbers)))
        loops = one.first.segment.loops
        if one is other and one.first.alike and pair.same_block and all(pair.is_same_turn(loop) for loop in loops):
            terms = self.questions.terms
            shared = terms.thread_bits(((1 << prod(terms.block).bit_length()) - 1) & ~one.first.alike)
            # they store the same value
            found.append(z3.Not(z3.And(*(a.same(value, b) for value in (*shared, terms.rank())))))
        return found

    def _race_bits(
        self, one: Group, other: Group, pair: Pair, milliseconds: int, *, is_lean: bool = False
    ) -> tuple[str, Any, str]:
        """Ask in bit-vectors; `is_lean`: without what the path says of other terms than addresses and turns."""
        formulas: list[Any] = []
        only = [_terms(group) for group in (one, other)] if is_lean else ()
        starts, threads = [], self.questions.in_bits(pair, one.place, other.place, only=only)
        width = max(group.offset.type.width for group in (one, other))
        for thread, group in enumerate((one, other)):
            b = threads[thread]
            numbers = [distance for distance, _ in group.distances]
            value = z3.ZeroExt(width - group.offset.type.width, b.number(group.offset))
            if group.rank is not None:
                value += z3.ZeroExt(width - group.rank.type.width, b.number(group.rank)) * SHARED_BYTES
            starts.append(_one_of(value, [number - numbers[0] for number in numbers], thread, formulas))
        formulas += self._two(one, other, pair, threads)
        for depth, first, before in self._unordered(one, other, pair):
            turns = [b.number(turn) for b, turn in zip(threads, _turns(one, other, depth), strict=True)]
            distance = z3.BitVecVal(before.distance, 64)
            u, t = (turns[0], turns[1]) if first == 0 else (turns[1], turns[0])
            formulas.append(t < distance if before.all else u > t - distance)
        formulas += [fact for one in threads for fact in one.facts]
        a, b_ = starts
        overlap = z3.Or(z3.ULT(a - b_, other.first.bytes), z3.ULT(b_ - a, one.first.bytes))
        status, model = self.questions.clock.check(
            [*formulas, overlap, *([a != b_] if _is_strong(one, other) else [])], milliseconds
        )
        return status, model, "bit-vectors, two threads"

    def _race_integers(
        self,
        one: Group,
        other: Group,
        pair: Pair,
        milliseconds: int,
        *,
        is_model: bool = False,
        is_lean: bool = False,
    ) -> tuple[str, Any, str]:
        formulas: list[Any] = []
        starts: list[Poly] = []
        only = [_terms(group) for group in (one, other)] if is_lean else ()
        space, threads = self.questions.in_integers(pair, one.place, other.place, only=only)
        for t, group in zip(threads, (one, other), strict=True):
            numbers = [distance for distance, _ in group.distances]
            start = t.number(group.offset.as_type(UNSIGNED[group.offset.type.width]))
            highest = numbers[-1] - numbers[0] + group.first.bytes
            formulas.append(space.at_most(start.plus(Poly.of(highest)), self.questions.length(group.object)))
            if group.rank is not None:
                start = start.plus(t.number(group.rank).times(Poly.of(SHARED_BYTES)))
            chosen = sorted({number - numbers[0] for number in numbers})
            if len(chosen) > 1:
                choice = space.fresh(0, chosen[-1])
                formulas.append(z3.Or(*(space.formula(choice) == number for number in chosen)))
                start = start.plus(choice)
            starts.append(start)
        a, b = starts
        last = Poly.of(-1)
        overlap = [space.at_most(a, b.plus(Poly.of(other.first.bytes)).plus(last)),
                   space.at_most(b, a.plus(Poly.of(one.first.bytes)).plus(last))]  # fmt: skip
        formulas += self._two(one, other, pair, threads)
        unordered = self._unordered(one, other, pair)
        for depth, first, before in unordered:
            turns = [t.number(turn) for t, turn in zip(threads, _turns(one, other, depth), strict=True)]
            u, v = (turns[0], turns[1]) if first == 0 else (turns[1], turns[0])
            least = v if before.all else v.plus(Poly.of(1 - before.distance))
            formulas.append(space.at_most(least, Poly.of(before.distance - 1) if before.all else u))
        formulas += self.tickets.facts(one, other, pair, threads, space)
        formulas += [fact for t in threads for fact in t.facts]
        partial = [space.formula(a) != space.formula(b)] if _is_strong(one, other) else []
        formulas += [*overlap, *partial]
        status, model = "unknown", None
        for useful in [()] if is_model else [(digits(space, a, b),), (products(space), quotients(space))]:
            formulas += space.products() if is_model else space.lemmas(*useful)
            more = space.distances() if unordered else []
            status, model = self.questions.clock.check([*formulas, *more, *space.facts], milliseconds)
            if status == "unsat":
                break
        return status, model, "integers, two threads"


def _conflicting(groups: Sequence[Group]) -> Iterator[tuple[Group, Group]]:
    by_object: dict[object, list[Group]] = defaultdict(list)
    for group in groups:
        by_object[group.object.key].append(group)
    for alike in by_object.values():
        for number, one in enumerate(alike):
            for other in alike[number:]:
                if one.first.writes or other.first.writes:
                    yield one, other


def _is_constant(one: Group, other: Group) -> bool:
    """Whether one loads from memory that nothing may write while the kernel runs."""
    return any(group.first.order == CONSTANT for group in (one, other))


def _meet(one: Group, other: Group) -> bool:
    """Whether one writes as threads do and the other accesses memory by the asynchronous proxy."""
    pairs = ((one.first, other.first), (other.first, one.first))
    return any(not a.unit and a.writes and b.unit in PROXY for a, b in pairs)


def _are_apart(one: Group, other: Group) -> bool:
    """Whether all addresses of one access are below those of another, by what bounds of registers say."""
    ranges = []
    for group in (one, other):
        low, high = group.offset.bounds
        ranges.append((low, high + max(at for at, _ in group.distances) - group.offset.constant + group.first.bytes))
    (low, high), (least, most) = ranges
    return min(low, least) >= 0 and max(high, most) < 1 << 32 and (high <= least or most <= low)


def _is_freed(access: Access) -> bool:
    """Whether tensor memory is freed."""
    return access.space == "tensor" and access.kind == "store" and not access.unit


def _damages(access: Access, mbarrier: Access) -> bool:
    """Whether an access, once an mbarrier is initialized, would leave there what its own instructions do not."""
    is_own = access.kind in (INITIALIZE, ARRIVE) or access.unit == "phase"
    return mbarrier.kind == INITIALIZE and access.writes and not is_own


def _terms(group: Group) -> list[Linear]:
    """The terms of a question: addresses, and turns of loops."""
    loops = group.first.segment.loops
    return [*group.values, *(clock(loops, depth) for depth in (0, 1))]


def _turns(one: Group, other: Group, depth: int) -> list[Linear]:
    """The turns of the loops that two accesses are in; 0 outside of loops."""
    return [clock(group.first.segment.loops, depth) for group in (one, other)]


def _identity(group: Group) -> tuple[Any, ...]:
    return (group.object.key, group.offset, tuple(one for one, _ in group.distances), group.first.path,
            group.first.kind, group.first.order, group.first.bytes, group.first.is_collective, group.first.unit,
            group.first.epoch, group.first.instance, group.first.places, group.rank,
            frozenset(group.turns.items()))  # fmt: skip


def _is_strong(one: Group, other: Group) -> bool:
    """Whether two accesses do not race where they overlap completely: strong, of one size, in each other's scope."""
    orders = [group.first.order for group in (one, other)]
    is_strong = all(order.startswith(("relaxed", "acq", "rel", "sc")) for order in orders)
    scopes = {order.rpartition(".")[2] for order in orders}
    of_block = {"cta"} if one.is_own and other.is_own else set[str]()  # the threads of one, where they overlap
    is_wide = scopes <= ({"gpu", "sys", "cluster", *of_block} if one.object.space == "shared" else {"gpu", "sys"})
    is_one_size = (one.first.bytes, one.first.element) == (other.first.bytes, other.first.element)
    return is_strong and is_wide and is_one_size


def _one_of(value: Any, distances: Sequence[int], thread: int, formulas: list[Any]) -> Any:
    """A start, or any of several at constant distances."""
    unique = sorted(set(distances))
    if len(unique) == 1:
        return value
    choice = z3.BitVec(f"distance@{thread}", value.size())
    formulas.append(z3.Or(*(choice == one for one in unique)))
    return value + choice
