"""That accesses are in bounds and aligned: of each group of accesses, one thread is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxlab.flow.symbolic import LONG, WORD
from ptxlab.prove.questions.intervals import Pair, Reached
from ptxlab.prove.questions.objects import Group, Object, Objects
from ptxlab.prove.questions.questions import Obligation, Questions, obligation
from ptxlab.prove.questions.reasons import why
from ptxlab.prove.theories.lemmas import extents, multiples, products
from ptxlab.prove.theories.polynomials import Poly
from ptxlab.prove.theories.solver import z3

_UNSIGNED = {32: WORD, 64: LONG}


class Bounds:
    """Shows bounds and alignment."""

    def __init__(self, objects: Objects, questions: Questions) -> None:
        self.objects, self.questions = objects, questions

    def show(self, objects: Callable[[Object], bool], milliseconds: int) -> list[Obligation]:
        """Show that accesses to some objects are in bounds and aligned, for any thread."""
        chosen = [one for one in self._groups() if objects(one.object)]
        ranks = [self._in_cluster(one, milliseconds) for one in chosen if one.rank is not None]
        return ranks + [show(one, milliseconds) for one in chosen for show in (self._bound, self._alignment)]

    def show_alignment(self, milliseconds: int) -> list[Obligation]:
        """Show that accesses are aligned, for any thread."""
        return [self._alignment(one, milliseconds) for one in self._groups()]

    def _groups(self) -> list[Group]:
        return self.objects.groups(Reached(access, {}) for access in self.objects.accesses)

    def _in_cluster(self, group: Group, milliseconds: int) -> Obligation:
        """Show that an access is to the shared memory of a block of the cluster."""
        access, ranks, pair = group.first, self.questions.terms.ranks, Pair(None, ({}, {}), same_block=True)
        assert group.rank is not None
        about, b = "an address is in a block of the cluster", self.questions.bits(pair, 0)
        if group.rank.bounds[0] >= 0 and group.rank.bounds[1] < ranks:
            return Obligation("bounds", group.lines, "proved", about, argument="ranges")
        self.questions.enter(b, pair, 0, access.path, access.segment.loops, group.values)
        outside = z3.UGE(b.number(group.rank), ranks)
        is_shown = self.questions.clock.check([*b.facts, outside], milliseconds)[0] == "unsat"
        reason = f"the rank may not be below {ranks}"
        return obligation("bounds", group.lines, about, is_shown, "bit-vectors", reason)

    def _bound(self, group: Group, milliseconds: int) -> Obligation:
        pair = Pair(None, ({}, {}), same_block=True)
        access, lowest = group.first, group.distances[0][0]
        highest = max(distance + access.bytes for distance, _ in group.distances) - lowest
        about = f"{group.object.name} in bounds"
        low, high = group.offset.bounds
        if group.object.bytes is not None and low >= 0 and high + highest <= group.object.bytes:
            return Obligation("bounds", group.lines, "proved", about, argument="ranges")
        over = self.questions.in_time("bounds", group.lines, about)
        if over is not None:
            return over
        status, _ = self._outside(group, milliseconds)
        if status != "unsat" and group.object.bytes is not None:
            b = self.questions.bits(pair, 0)
            self.questions.enter(b, pair, 0, access.path, access.segment.loops, [group.offset])
            value = z3.ZeroExt(8, b.number(group.offset))
            limit = z3.BitVecVal(group.object.bytes, value.size())
            again, _ = self.questions.clock.check([*b.facts, z3.UGT(value + highest, limit)], milliseconds)
            if again == "unsat":
                return Obligation("bounds", group.lines, "proved", about, argument="bit-vectors")
        if status == "unsat":
            return Obligation("bounds", group.lines, "proved", about, argument="integers")
        reason, help = why(status, [*access.path, group.offset], group.object)
        return Obligation("bounds", group.lines, "open", about, reason, help,
                          again=lambda limit: self._outside(group, limit, True)[1])  # fmt: skip

    def _outside(self, group: Group, milliseconds: int, is_model: bool = False) -> tuple[str, Any]:
        """Whether a thread can be outside of an object, by integers."""
        pair, access = Pair(None, ({}, {}), same_block=True), group.first
        highest = max(distance for distance, _ in group.distances) + access.bytes - group.distances[0][0]
        space = self.questions.space()
        t = self.questions.integers(pair, 0, space, access.path, access.segment.loops)
        self.questions.enter(t, pair, 0, access.path, access.segment.loops, [group.offset])
        start = t.number(group.offset.as_type(_UNSIGNED[group.offset.type.width]))
        inside = space.at_most(start.plus(Poly.of(highest)), self.questions.length(group.object))
        lemmas = space.products() if is_model else space.lemmas(extents(space, start), products(space))
        return self.questions.clock.check([*t.facts, z3.Not(inside), *lemmas, *space.facts], milliseconds)

    def _alignment(self, group: Group, milliseconds: int) -> Obligation:
        access = group.first
        about = f"{group.object.name} aligned to {access.align}"
        numbers = [distance for distance, _ in group.distances]
        factors = [group.object.align, *numbers, *(factor for _, factor in group.offset.terms)]
        if all(factor % access.align == 0 for factor in factors):
            return Obligation("alignment", group.lines, "proved", about, argument="coefficients")
        if group.object.align % access.align:
            reason = f"`{group.object.name}` is aligned to {group.object.align} bytes only"
            return Obligation("alignment", group.lines, "open", about, reason)
        over = self.questions.in_time("alignment", group.lines, about)
        if over is not None:
            return over
        status, _ = self._misaligned(group, milliseconds)
        if status != "unsat":
            pair = Pair(None, ({}, {}), same_block=True)
            b = self.questions.bits(pair, 0)
            self.questions.enter(b, pair, 0, access.path, access.segment.loops, [group.offset])
            value = b.number(group.offset)
            distances = {(number - numbers[0]) % access.align for number in numbers}
            wrong = z3.Or(*((value + distance) & (access.align - 1) != 0 for distance in distances))
            if self.questions.clock.check([*b.facts, wrong], milliseconds)[0] == "unsat":
                status = "unsat"
        if status == "unsat":
            return Obligation("alignment", group.lines, "proved", about, argument="integers")
        reason, help = why(status, [*access.path, group.offset], group.object)
        return Obligation("alignment", group.lines, "open", about, reason, help,
                          again=lambda limit: self._misaligned(group, limit)[1])  # fmt: skip

    def _misaligned(self, group: Group, milliseconds: int) -> tuple[str, Any]:
        """Whether a thread can be at an address that is not a multiple of what it must be, by integers."""
        pair, access = Pair(None, ({}, {}), same_block=True), group.first
        space = self.questions.space()
        t = self.questions.integers(pair, 0, space, access.path, access.segment.loops)
        self.questions.enter(t, pair, 0, access.path, access.segment.loops, [group.offset])
        start = t.number(group.offset)
        starts = [start.plus(Poly.of(number - group.distances[0][0])) for number in {one for one, _ in group.distances}]
        if all(space.factors(one, access.align) % access.align == 0 for one in starts):
            return "unsat", None
        rests = [space.divided(one, access.align)[1] for one in starts]
        wrong = z3.Or(*(space.formula(rest) != 0 for rest in rests))
        return self.questions.clock.check(
            [*t.facts, *space.lemmas(multiples(space)), *space.facts, wrong], milliseconds
        )
