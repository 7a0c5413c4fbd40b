"""Tickets: what the result of an atomic addition says of order, between the threads of any blocks.

All additions to one counter are in one order, and each returns what the counter held first and the sum of all amounts
before its own. So no two have shares of that sum in common: a result is drawn once. Where one has the greater sum, it
comes after the other, and observes it through those in between: what the one's thread did before it, and released, is
before what the other's thread does after it, and acquired. A thread whose sum is that of all others comes last.

Between threads of one block barriers may be in place of the order in a thread: where they are between the draw and a
fence, that fence has to be a `fence.sc`, on both sides. If the later one came first in the order of these fences, what
is after it would come before the earlier draw, which is the earlier one for all that it was observed.

That is so of a counter which nothing else writes, but, once it has the last sum, the thread that sets it anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.registers import CONSTANT
from ptxlab.prove.execution.segments import Access, Draw, Path, Point, Segment
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.questions.intervals import At, Pair
from ptxlab.prove.questions.objects import Group, Object, Objects, may_overlap
from ptxlab.prove.questions.paths import Paths
from ptxlab.prove.questions.questions import Questions
from ptxlab.prove.terms.terms import AXES, UNSIGNED, Terms, is_size, leaves
from ptxlab.prove.theories.integers import Integers, Space
from ptxlab.prove.theories.lemmas import products, quotients
from ptxlab.prove.theories.solver import z3

BEFORE, AFTER = "before", "after"  # a draw of its block, and what it releases or acquires
FENCED_BEFORE, FENCED_AFTER = "fenced before", "fenced after"  # the same, with a `fence.sc` of any of the threads
DRAWS, DRAWN = "draws", "drawn"  # the draw itself, and what is after it in the order of its block
WIDE = ("gpu", "sys")  # scopes with the threads of all blocks


class CounterPlaces:
    """Which accesses are before and after draws of their own thread, or, of a draw by one thread, of its block."""

    def __init__(self, execution: Execution) -> None:
        notes = execution.notes
        self.threads, self.paths, self.points = Threads(execution.terms), Paths(execution), notes.points
        self.draws = [one.draw for one in self.points if one.draw is not None]
        self.decisions = notes.decisions
        self._ended = {one for loop in notes.loops if not loop.returns for one in loop.ends
                       if loop.turn in leaves([one])}  # fmt: skip
        ordered = [(one, one.draw) for one in self.points if one.draw is not None and not one.segment.loops]
        for access in (one for segment in notes.segments for one in segment.accesses if self.draws and not one.unit):
            places = {(draw, place) for point, draw in ordered for place in self._places(access, point, draw)}
            access.places = frozenset(places | {(one, DRAWS) for one in self.draws if one is access.draw})

    def has_drawn(self, draw: Draw, path: Path, segment: Segment) -> bool:
        """Whether what is at a place on a path draws, in that turn of the loops around the draw."""
        loops = draw.access.segment.loops
        return segment.loops[: len(loops)] == loops and self._is_done(draw, draw.access.path, path)

    def _is_done(self, draw: Draw, needed: Path, path: Path) -> bool:
        """Whether what is on a path is done by the thread itself, or by the one of its block that draws."""
        if draw.sum.is_uniform:
            found = self.threads.exact(needed)
            return found is not None and bool(found[0] & self._mask(draw)) and self._holds(found[1], path)
        return self._holds(needed, path)

    def _holds(self, needed: Sequence[Linear], path: Path) -> bool:
        return all(one in path or one in self._ended for one in needed)  # that loops end is an assumption

    def count(self, draw: Draw) -> int:
        """How many threads of a block draw, at most."""
        return self._mask(draw).bit_count()

    def _mask(self, draw: Draw) -> int:
        return self.threads.mask(draw.access.path)[0]

    def _places(self, access: Access, own: Point, draw: Draw) -> Iterator[str]:
        """What is known of an access and a draw that is in no loop."""
        fences = [one for one in self.points if one is own or (one.draw is None and not one.segment.loops)]
        fences = [one for one in fences if any(map(_is_wide, one.orders))]
        strict = [one for one in fences if any(map(_is_sc, one.orders)) and self._holds(one.path, access.path)]
        releases = [one for one in fences if any(map(_releases, one.orders)) and self._is_before(one, own)
                    and (one is own or set(one.path) <= set(own.path))]  # fmt: skip
        acquires = [one for one in fences if any(map(_acquires, one.orders)) and self._is_before(own, one)]
        before = [one for one in releases if self._comes_before(access, one, draw)]
        after = [one for one in acquires if draw.is_read and self._comes_after(access, one, draw)]
        if before:
            yield BEFORE
        if after:
            yield AFTER
        if any(any(map(_is_sc, one.orders)) for one in before) or (
            self.has_drawn(draw, access.path, access.segment)
            and any(not self._follows(access, one) and self.paths.is_synchronized(one.segment, own.segment)
                    for one in strict)
        ):  # fmt: skip
            yield FENCED_BEFORE
        if any(any(map(_is_sc, one.orders)) for one in after) or (
            draw.is_read and self.has_drawn(draw, access.path, access.segment)
            and any(self._follows(access, one) and self.paths.is_synchronized(own.segment, one.segment)
                    for one in strict)
        ):  # fmt: skip
            yield FENCED_AFTER
        if self._comes_after(access, own, draw):
            yield DRAWN

    def _is_before(self, one: Point, other: Point) -> bool:
        """Whether a thread that executes both executes one of two points first; each once."""
        if one.segment is other.segment:
            return one.number <= other.number
        return other.segment in self.paths.after(one.segment)

    def _follows(self, access: Access, point: Point) -> bool:
        """Whether an access may come after a point that is in no loop; then each time, of a thread that is at both."""
        if access.segment is point.segment:
            return access.passed >= point.number
        return access.segment in self.paths.after(point.segment)

    def _comes_before(self, access: Access, point: Point, draw: Draw) -> bool:
        """Whether an access is before a point, in the thread or by a barrier, and its block then draws."""
        if self._follows(access, point):
            return False
        return self.has_drawn(draw, access.path, access.segment) and (
            self._is_own(draw, access) or self.paths.is_synchronized(access.segment, point.segment)
        )

    def _comes_after(self, access: Access, point: Point, draw: Draw) -> bool:
        """Whether an access is after a point that its block has passed, in the thread or by a barrier."""
        if not self._follows(access, point):
            return False
        if not self._is_done(draw, point.path, access.path) or not self.has_drawn(draw, access.path, access.segment):
            return False
        return self._is_own(draw, access) or self.paths.is_synchronized(point.segment, access.segment)

    def _is_own(self, draw: Draw, access: Access) -> bool:
        """Whether it is the thread that draws which does an access."""
        return not draw.sum.is_uniform or not self.threads.mask(access.path)[0] & ~self._mask(draw)


class Tickets:
    """The draws that are as this says, and what follows of two threads."""

    def __init__(self, places: CounterPlaces, terms: Terms, objects: Objects, questions: Questions) -> None:
        self.places, self.terms, self.objects, self.questions = places, terms, objects, questions
        self.valid: list[Draw] = []
        self.assumed: list[str] = []
        """That sums do not wrap, where the number of draws has no limit."""

    @property
    def counters(self) -> frozenset[str]:
        """The arrays and variables that draws are from."""
        places = [self.objects.located(one.access) for one in self.places.draws]
        return frozenset(one[0].name for one in places if one is not None)

    def asked(self) -> dict[str, int]:
        """The words in memory of which it matters what they hold when the kernel starts, and how large they are."""
        draws = [(one, place) for one in self.places.draws if (place := self.objects.located(one.access)) is not None]
        decisions = leaves(one.condition for one in self.places.decisions)
        return {_word(*place, one): one.access.bytes for one, place in draws
                if one.atom in decisions and place[0].space == "global"}  # fmt: skip

    def show(self, contents: Mapping[str, int], milliseconds: int) -> None:
        """Find the draws of which it is so, given what words in memory hold when the kernel starts."""
        self.valid, self.assumed = [], []
        used = leaves(value for one in self.objects.accesses for value in (one.address, *one.path))
        used |= leaves(one.condition for one in self.places.decisions)
        objects: dict[Object, list[Draw]] = defaultdict(list)
        for draw in self.places.draws:
            draw.sum.facts.clear()
            place = self.objects.located(draw.access)
            if place is not None and self.terms.ranks == 1:
                objects[place[0]].append(draw)
        for object, draws in objects.items():
            if any(one.atom in used for one in draws) and self._is_right(object, draws, contents, milliseconds):
                self.valid += draws
            else:
                for one in draws:
                    one.sum.facts.clear()
            self.questions.forget()

    def _is_right(
        self, object: Object, draws: Sequence[Draw], contents: Mapping[str, int], milliseconds: int
    ) -> bool:  # fmt: skip
        """Whether nothing but some draws writes a counter, or starts it anew once all are over."""
        is_shared = object.space == "shared"
        if len({one.access.bytes for one in draws}) > 1 or any(one.amount.bounds[0] < 0 for one in draws):
            return False
        if not is_shared and not all(_is_wide(one.access.order) for one in draws):
            return False
        own = [one for one in self.objects.accesses if (place := self.objects.located(one)) and place[0] == object]
        others = [one for one in own if one.writes and one.draw is None
                  and any(self._may_meet(one, draw.access) for draw in draws)]  # fmt: skip
        for draw in draws:
            alike = [one for one in draws if self._may_meet(one.access, draw.access)]
            total, limit = self._total(alike, milliseconds), 8 * draw.access.bytes - 1
            word = _word(object, self._place(draw.access)[1], draw)
            if word in contents and not is_shared:
                draw.sum.facts.append(self.terms.equal(draw.first, linear(draw.first.type, contents[word])))
            if total is None:
                self.assumed.append(f"what is added to {object.name} is less than 2^{limit} in all")
            before = (linear(LONG, (1 << limit) - 1) if total is None else total).plus(self._long(draw.amount), -1)
            draw.sum.facts.append(self.terms.at_most(self._long(draw.value), before))
            known = total if len(alike) == 1 else None
            if draw.limit is not None and not self._is_below(draw, known, milliseconds):
                return False
            if not all(self._is_before(one, draw) if is_shared else self._is_last(one, draw, known, milliseconds)
                       for one in others):  # fmt: skip
                return False
        return True

    def _is_below(self, draw: Draw, total: Linear | None, milliseconds: int) -> bool:
        """Whether a counter does not reach the limit after which it starts anew, before all have drawn."""
        if total is None:
            return False
        last = total.plus(linear(LONG, -1)).plus(self._long(draw.first))
        limit = self.terms.at_most(last, self._long(draw.limit or last))
        return self.questions.holds(limit, draw.access.path, (), tuple(draw.sum.facts), milliseconds)

    def _is_last(self, write: Access, draw: Draw, total: Linear | None, milliseconds: int) -> bool:
        """Whether it is the block with the last sum that writes a counter anew, after it has drawn it."""
        if total is None or write.unit or (draw, DRAWN) not in write.places:
            return False
        is_last = self.terms.equal(self._long(draw.value.plus(draw.amount)), total)
        facts = tuple(draw.sum.facts)
        return self.questions.holds(is_last, write.path, write.segment.loops, facts, milliseconds)

    def _is_before(self, write: Access, draw: Draw) -> bool:
        """Whether a barrier is between a write and a draw, and no draw comes before it."""
        own, paths = draw.access.segment, self.places.paths
        return not write.unit and write.segment not in paths.after(own) and paths.is_synchronized(write.segment, own)

    def _place(self, access: Access) -> tuple[Object, Linear]:
        place = self.objects.located(access)
        assert place is not None
        return place

    def _may_meet(self, one: Access, other: Access) -> bool:
        """Whether two accesses to an object may be to the same bytes."""
        return may_overlap(one, other, self._place(one)[1].plus(self._place(other)[1], -1))

    def _long(self, value: Linear) -> Linear:
        return self.terms.fit(value, UNSIGNED[value.type.width], LONG)

    def _total(self, draws: Sequence[Draw], milliseconds: int) -> Linear | None:
        """What is added in all to where draws are from, at most: by all blocks that may draw there."""
        if any(one.access.segment.loops or not one.amount.is_constant for one in draws):
            return None
        object, offset = self._place(draws[0].access)
        total = linear(LONG, sum(one.amount.constant * self.places.count(one) for one in draws))
        most, known = total.constant, set[str]()
        if object.space == "global" and len(draws) == 1:
            numbers = [one for one in self.terms.blocks() if leaves([one]) <= leaves([offset])]
            is_known = numbers and self._are_by_blocks(draws[0].access, numbers, milliseconds)
            known = {str(atom.detail)[-1] for atom in leaves(numbers)} if is_known else known
        for axis, extent in zip(AXES, self.terms.grid(), strict=True):
            high = self.questions.ranges[f"%nctaid.{axis}"][1]
            if object.space == "global" and axis not in known and high > 1:
                total, most = self.terms.product(total, self._long(extent)), most * high
        return total if most <= 1 << 8 * draws[0].access.bytes else None

    def _are_by_blocks(self, access: Access, numbers: Sequence[Linear], milliseconds: int) -> bool:
        """Whether blocks that access the same place have the same numbers."""
        _, offset = self._place(access)
        pair, place = Pair(None, ({}, {}), same_block=False), At(access.path, (), [offset, *numbers])
        space, threads = self.questions.in_integers(pair, place, place)
        one, other = threads
        formulas = [one.same(offset, other), z3.Or(*(z3.Not(one.same(number, other)) for number in numbers))]
        formulas += [*one.facts, *other.facts, *space.lemmas(products(space), quotients(space)), *space.facts]
        return self.questions.clock.check(formulas, milliseconds)[0] == "unsat"

    def facts(self, one: Group, other: Group, pair: Pair, threads: Sequence[Integers], space: Space) -> list[Any]:
        """What holds of two threads that access the same bytes without an order: their draws have nothing in common."""
        found: list[Any] = []
        if pair.same_thread or pair.may_be_one or not self.valid:
            return found
        groups = (one, other)
        own, others = (self._drawn(group) for group in groups)
        for a, b in ((a, b) for a in own for b in others):
            if pair.same_block and a is b and a.sum.is_uniform:
                continue
            object, same = (self._place(draw.access)[0] for draw in (a, b))
            if object != same or not self._may_meet(a.access, b.access):
                continue
            if object.space == "shared" and not pair.same_block:
                continue
            drawn = [thread.number(draw.value) for thread, draw in zip(threads, (a, b), strict=True)]
            after = [value.plus(thread.number(draw.amount))
                     for value, thread, draw in zip(drawn, threads, (a, b), strict=True)]  # fmt: skip
            firsts = [thread.number(draw.first) for thread, draw in zip(threads, (a, b), strict=True)]
            said = [space.equal(*firsts), z3.Or(space.at_most(after[0], drawn[1]), space.at_most(after[1], drawn[0]))]
            for first, (earlier, later) in enumerate((((one, a), (other, b)), ((other, b), (one, a)))):
                if _is_ordered(*earlier, *later):  # so its number is not the smaller one
                    said.append(space.at_most(drawn[1 - first], drawn[first]))
            offsets = [self._place(draw.access)[1] for draw in (a, b)]
            is_one = offsets[0] == offsets[1] and all(map(is_size, leaves(offsets)))
            is_same = True if is_one else space.equal(*(t.number(at) for t, at in zip(threads, offsets, strict=True)))
            found.append(z3.Implies(is_same, z3.And(*said)))
            for thread, draw in zip(threads, (a, b), strict=True):
                thread.assume(draw.sum.facts)
        return found

    def _drawn(self, group: Group) -> list[Draw]:
        """The draws of the thread or the block of an access that matter for it."""
        access = group.first
        noted = {draw for draw, _ in access.places}
        named = leaves([*access.path, *group.values])
        return [one for one in self.valid if (one in noted or one.atom in named)
                and self.places.has_drawn(one, access.path, access.segment)]  # fmt: skip


def _is_ordered(one: Group, draw: Draw, other: Group, drawn: Draw) -> bool:
    """Whether one access is before another whose block, of two, has drawn the greater number."""
    if CONSTANT in (one.first.order, other.first.order):
        return False  # it may read what was there before, whatever the order is
    earlier = {place for each, place in one.first.places if each is draw}
    later = {place for each, place in other.first.places if each is drawn}
    ways = ((BEFORE, AFTER), (FENCED_BEFORE, FENCED_AFTER), (DRAWS, DRAWN))
    return any(before in earlier and after in later for before, after in ways)


def _word(object: Object, offset: Linear, draw: Draw) -> str:
    """The word of an array at a constant place, or any of it."""
    index = offset.constant // draw.access.bytes
    return f"{object.name}[{index}]" if offset.is_constant else f"{object.name}[:]"


def _is_wide(order: str) -> bool:
    return order.rpartition(".")[2] in WIDE


def _releases(order: str) -> bool:
    return order.partition(".")[0] in ("release", "acq_rel", "sc")


def _is_sc(order: str) -> bool:
    return order.partition(".")[0] == "sc"


def _acquires(order: str) -> bool:
    return order.partition(".")[0] in ("acquire", "acq_rel", "sc")
