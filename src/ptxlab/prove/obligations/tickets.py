"""Tickets: what the result of an atomic addition says of order, between the threads of any blocks.

All additions to one counter are in one order, and each returns what the counter held first and the sum of all amounts
before its own. So no two have shares of that sum in common: a result is drawn once. Where one has the greater sum, it
comes after the other, and observes it through those in between: what the one's thread did before it, and released, is
before what the other's thread does after it, and acquired. A thread whose sum is that of all others comes last.

That is so of a counter which nothing else writes, but, once it has the last sum, the thread that sets it anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Access, Draw, Path, Point, Segment, following
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.questions.intervals import At, Pair
from ptxlab.prove.questions.objects import Group, Object, Objects
from ptxlab.prove.questions.questions import Questions
from ptxlab.prove.terms.terms import AXES, UNSIGNED, Terms, is_size, is_thread_index, leaves, term
from ptxlab.prove.theories.integers import Integers, Space
from ptxlab.prove.theories.lemmas import products, quotients
from ptxlab.prove.theories.solver import z3

BEFORE, AFTER = "before", "after"  # a draw of its block, and what it releases or acquires
DRAWS, DRAWN = "draws", "drawn"  # the draw itself, and what is after it in the order of its block
WIDE = ("gpu", "sys")  # scopes with the threads of all blocks


class Places:
    """Which accesses are before and after draws of their own thread, or, of a draw by one thread, of its block."""

    def __init__(self, execution: Execution) -> None:
        notes = execution.notes
        self.threads, self.entry, self.points = Threads(execution.terms), execution.entry, notes.points
        self.barriers = [one for one in notes.segments if one.barrier is not None and not one.is_of_warp]
        self.draws = [one.draw for one in self.points if one.draw is not None]
        self.decisions = notes.decisions
        self._ended = {one for loop in notes.loops if not loop.returns for one in loop.ends
                       if loop.turn in leaves([one])}  # fmt: skip
        self._after: dict[Segment, set[Segment]] = {}
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
            mask, others = self.threads.mask(needed)
            is_known = all(one in others or all(map(is_thread_index, leaves([one]))) for one in needed)
            return is_known and bool(mask & self._mask(draw)) and self._holds(others, path)
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
        fences = [one for one in self.points if not one.segment.loops and any(map(_is_wide, one.orders))]
        releases = [one for one in fences if any(map(_releases, one.orders)) and self._is_before(one, own)
                    and (one is own or set(one.path) <= set(own.path))]  # fmt: skip
        acquires = [one for one in fences if any(map(_acquires, one.orders)) and self._is_before(own, one)]
        if any(self._comes_before(access, one, draw) for one in releases):
            yield BEFORE
        if any(self._comes_after(access, one, draw) for one in acquires):
            yield AFTER
        if self._comes_after(access, own, draw):
            yield DRAWN

    def _is_before(self, one: Point, other: Point) -> bool:
        """Whether a thread that executes both executes one of two points first; each once."""
        if one.segment is other.segment:
            return one.number <= other.number
        return other.segment in self._following(one.segment)

    def _comes_before(self, access: Access, point: Point, draw: Draw) -> bool:
        """Whether an access is before a point, in the thread or by a barrier, and its block then draws."""
        follows = access.segment in self._following(point.segment)
        if access.passed >= point.number if access.segment is point.segment else follows:
            return False
        if not self.has_drawn(draw, access.path, access.segment):
            return False
        if self._is_own(draw, access):
            return True
        return not self._reaches(point.segment, [one for one in self.barriers
                                                 if access.segment not in self._following(one)])  # fmt: skip

    def _comes_after(self, access: Access, point: Point, draw: Draw) -> bool:
        """Whether an access is after a point that its block has passed, in the thread or by a barrier."""
        later = self._following(point.segment)
        if access.segment not in later or (access.segment is point.segment and access.passed < point.number):
            return False
        if not self._is_done(draw, point.path, access.path) or not self.has_drawn(draw, access.path, access.segment):
            return False
        if self._is_own(draw, access):
            return True
        return not self._reaches(access.segment, [one for one in self.barriers
                                                  if one in later and one is not point.segment])  # fmt: skip

    def _is_own(self, draw: Draw, access: Access) -> bool:
        """Whether it is the thread that draws which does an access."""
        return not draw.sum.is_uniform or not self.threads.mask(access.path)[0] & ~self._mask(draw)

    def _following(self, segment: Segment) -> set[Segment]:
        if segment not in self._after:
            self._after[segment] = following(segment, lambda *_: True)
        return self._after[segment]

    def _reaches(self, target: Segment, barriers: Sequence[Segment]) -> bool:
        """Whether a path leads to a segment without one of some barriers."""
        return target in following(self.entry, lambda one, _: one not in barriers)


class Tickets:
    """The draws that are as this says, and what follows of two threads."""

    def __init__(self, places: Places, terms: Terms, objects: Objects, questions: Questions) -> None:
        self.places, self.terms, self.objects, self.questions = places, terms, objects, questions
        self.valid: list[Draw] = []
        self.assumed: list[str] = []
        """That sums do not wrap, where the number of draws has no limit."""

    def asked(self) -> dict[str, int]:
        """The words in memory of which it matters what they hold when the kernel starts, and how large they are."""
        draws = [(one, place) for one in self.places.draws if (place := self.objects.located(one.access)) is not None]
        decisions = leaves(one.condition for one in self.places.decisions)
        return {_word(*place, one): one.access.bytes for one, place in draws if one.atom in decisions}

    def show(self, contents: Mapping[str, int], milliseconds: int) -> None:
        """Find the draws of which it is so, given what words in memory hold when the kernel starts."""
        self.valid, self.assumed = [], []
        for draw in self.places.draws:
            draw.sum.facts.clear()
        objects: dict[object, list[Draw]] = defaultdict(list)
        for draw in self.places.draws:
            place = self.objects.located(draw.access)
            if place is not None and place[0].space == "global" and self.terms.ranks == 1:
                objects[place[0].key].append(draw)
        for draws in objects.values():
            self._show(draws, contents, milliseconds)

    def _show(self, draws: Sequence[Draw], contents: Mapping[str, int], milliseconds: int) -> None:
        """Show it of all draws from one object."""
        object, _ = self._place(draws[0].access)
        accesses = [one for one in self.objects.accesses if (place := self.objects.located(one)) and place[0] == object]
        others = [one for one in accesses if one.writes and one.draw is None]
        others = [one for one in others if any(self._may_meet(one, draw.access) for draw in draws)]
        is_wide = all(_is_wide(one.access.order) for one in draws)
        if not is_wide or len({one.access.bytes for one in draws}) > 1 or any(one.unit for one in others):
            return
        for draw in draws:
            alike = [one for one in draws if self._may_meet(one.access, draw.access)]
            total = self._total(alike, milliseconds)
            word = _word(*self._place(draw.access), draw)
            if word in contents:
                draw.sum.facts.append(self.terms.equal(draw.first, linear(draw.first.type, contents[word])))
            if total is None:
                self.assumed.append(f"what is added to {object.name} is less than 2^{8 * draw.access.bytes} in all")
            else:
                before = total.plus(self._long(draw.amount), -1)
                draw.sum.facts.append(self.terms.at_most(self._long(draw.value), before))
            if not self._is_right(draw, alike, total, others, milliseconds):
                for one in draws:
                    one.sum.facts.clear()
                return
        self.valid += draws

    def _is_right(
        self, draw: Draw, alike: Sequence[Draw], total: Linear | None, others: Sequence[Access], milliseconds: int
    ) -> bool:
        """Whether a counter does not start anew too early: by a limit of its own, or by another write."""
        terms, holds, facts = self.terms, self.questions.holds, tuple(draw.sum.facts)
        if draw.limit is not None:
            if total is None or len(alike) > 1:
                return False
            last = total.plus(linear(LONG, -1)).plus(self._long(draw.first))
            if not holds(terms.at_most(last, self._long(draw.limit)), draw.access.path, (), facts, milliseconds):
                return False
        for one in others:
            path, loops = one.path, one.segment.loops
            if total is None or len(alike) > 1 or (draw, DRAWN) not in one.places:
                return False
            sum = self._long(draw.value.plus(draw.amount))
            if not holds(terms.equal(sum, total), path, loops, facts, milliseconds):
                return False
        return True

    def _place(self, access: Access) -> tuple[Object, Linear]:
        place = self.objects.located(access)
        assert place is not None
        return place

    def _may_meet(self, one: Access, other: Access) -> bool:
        """Whether two accesses to an object may be to the same bytes; not at constants that far apart."""
        apart = self._place(one)[1].plus(self._place(other)[1], -1)
        return not (apart.is_constant and not -one.bytes < apart.constant < other.bytes)

    def _long(self, value: Linear) -> Linear:
        return self.terms.fit(value, UNSIGNED[value.type.width], LONG)

    def _total(self, draws: Sequence[Draw], milliseconds: int) -> Linear | None:
        """What is added in all to where draws are from, at most: by all blocks that may draw there."""
        offsets = {self._place(one.access)[1] for one in draws}
        if len(offsets) > 1 or any(one.access.segment.loops or not one.amount.is_constant for one in draws):
            return None
        (offset,) = offsets
        blocks = {str(atom.detail)[-1]: term(atom) for atom in leaves([offset]) if not is_size(atom)}
        if not all(value in self.terms.blocks() for value in blocks.values()):
            return None
        if blocks and not self._are_by_blocks(draws[0].access, list(blocks.values()), milliseconds):
            return None
        total = linear(LONG, sum(one.amount.constant * self.places.count(one) for one in draws))
        most = total.constant
        for axis, extent in zip(AXES, self.terms.grid(), strict=True):
            high = self.questions.ranges[f"%nctaid.{axis}"][1]
            if axis not in blocks and high > 1:
                total, most = self.terms.product(total, self._long(extent)), most * high
        return total if 0 <= most <= 1 << 8 * draws[0].access.bytes else None

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
            if self._place(a.access)[0] != self._place(b.access)[0] or not self._may_meet(a.access, b.access):
                continue
            drawn = [thread.number(draw.value) for thread, draw in zip(threads, (a, b), strict=True)]
            after = [value.plus(thread.number(draw.amount))
                     for value, thread, draw in zip(drawn, threads, (a, b), strict=True)]  # fmt: skip
            said = [z3.Or(space.at_most(after[0], drawn[1]), space.at_most(after[1], drawn[0]))]
            for first, (earlier, later) in enumerate((((one, a), (other, b)), ((other, b), (one, a)))):
                if _is_ordered(*earlier, *later):  # so its number is not the smaller one
                    said.append(space.at_most(drawn[1 - first], drawn[first]))
            offsets = [self._place(draw.access)[1] for draw in (a, b)]
            is_one = offsets[0] == offsets[1] and all(map(is_size, leaves(offsets)))
            same = True if is_one else space.equal(*(t.number(at) for t, at in zip(threads, offsets, strict=True)))
            found.append(z3.Implies(same, z3.And(*said)))
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
    earlier = {place for each, place in one.first.places if each is draw}
    later = {place for each, place in other.first.places if each is drawn}
    return (BEFORE in earlier and AFTER in later) or (DRAWS in earlier and DRAWN in later)


def _word(object: Object, offset: Linear, draw: Draw) -> str:
    """The word of an array at a constant place, or any of it."""
    index = offset.constant // draw.access.bytes
    return f"{object.name}[{index}]" if offset.is_constant else f"{object.name}[:]"


def _is_wide(order: str) -> bool:
    return order.rpartition(".")[2] in WIDE


def _releases(order: str) -> bool:
    return order.partition(".")[0] in ("release", "acq_rel", "sc")


def _acquires(order: str) -> bool:
    return order.partition(".")[0] in ("acquire", "acq_rel", "sc")
