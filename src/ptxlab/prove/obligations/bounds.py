"""That accesses are in bounds and aligned: of each group of accesses, one thread is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxlab.prove.questions.intervals import ALONE, Reached
from ptxlab.prove.questions.objects import Group, Object, Objects
from ptxlab.prove.questions.questions import Obligation, Questions, obligation
from ptxlab.prove.questions.reasons import why
from ptxlab.prove.terms.terms import UNSIGNED
from ptxlab.prove.theories.lemmas import extents, multiples, products
from ptxlab.prove.theories.polynomials import Poly
from ptxlab.prove.theories.solver import z3

READ_ONLY = ("const", "param")
Asked = Callable[..., tuple[str, Any]]
"""Asks of a group in so many milliseconds, and perhaps for a model: what the solver says, and the model."""


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
        ranks, about = self.questions.terms.ranks, "an address is in a block of the cluster"
        assert group.rank is not None
        if group.rank.bounds[0] >= 0 and group.rank.bounds[1] < ranks:
            return Obligation("bounds", group.lines, "proved", about, argument="ranges")
        (b,) = self.questions.in_bits(ALONE, group.place)
        outside = z3.UGE(b.number(group.rank), ranks)
        is_shown = self.questions.clock.check([*b.facts, outside], milliseconds)[0] == "unsat"
        reason = f"the rank may not be below {ranks}"
        return obligation("bounds", group.lines, about, is_shown, "bit-vectors", reason)

    def _bound(self, group: Group, milliseconds: int) -> Obligation:
        access, lowest = group.first, group.distances[0][0]
        highest = max(distance + access.bytes for distance, _ in group.distances) - lowest
        about = f"{group.object.name} in bounds"
        if group.object.space in READ_ONLY and access.writes:
            return obligation("bounds", group.lines, about, False, "", "memory that kernels only read is written")
        low, high = group.offset.bounds
        if group.object.bytes is not None and low >= 0 and high + highest <= group.object.bytes:
            return Obligation("bounds", group.lines, "proved", about, argument="ranges")
        size = group.object.bytes

        def outside(offset: object) -> Any:
            value = z3.ZeroExt(8, offset)
            return z3.UGT(value + highest, z3.BitVecVal(size, value.size()))

        return self._asked("bounds", group, about, self._outside, None if size is None else outside, milliseconds)

    def _asked(
        self,
        kind: str,
        group: Group,
        about: str,
        integers: Asked,
        bits: Callable[[Any], object] | None,
        milliseconds: int,
    ) -> Obligation:
        """Ask in integers whether something is wrong, and then in bit-vectors of the offset."""
        over = self.questions.in_time(kind, group.lines, about)
        if over is not None:
            return over
        status, _ = integers(group, milliseconds)
        if status == "unsat":
            return Obligation(kind, group.lines, "proved", about, argument="integers")
        if bits is not None:
            (b,) = self.questions.in_bits(ALONE, group.place)
            wrong = bits(b.number(group.offset))
            if self.questions.clock.check([*b.facts, wrong], milliseconds)[0] == "unsat":
                return Obligation(kind, group.lines, "proved", about, argument="bit-vectors")
        reason, help = why(status, [*group.first.path, group.offset], group.object)
        return Obligation(kind, group.lines, "open", about, reason, help,
                          again=lambda limit: integers(group, limit, True)[1])  # fmt: skip

    def _outside(self, group: Group, milliseconds: int, is_model: bool = False) -> tuple[str, Any]:
        """Whether a thread can be outside of an object, by integers."""
        highest = max(distance for distance, _ in group.distances) + group.first.bytes - group.distances[0][0]
        space, (t,) = self.questions.in_integers(ALONE, group.place)
        start = t.number(group.offset.as_type(UNSIGNED[group.offset.type.width]))
        inside = space.at_most(start.plus(Poly.of(highest)), self.questions.length(group.object))
        element = self.questions.sizes.get(group.object.name, 0)
        lemmas = space.products() if is_model else space.lemmas(extents(space, start, element), products(space))
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
        distances = {(number - numbers[0]) % access.align for number in numbers}

        def misaligned(offset: Any) -> Any:
            return z3.Or(*((offset + distance) & (access.align - 1) != 0 for distance in distances))

        return self._asked("alignment", group, about, self._misaligned, misaligned, milliseconds)

    def _misaligned(self, group: Group, milliseconds: int, is_model: bool = False) -> tuple[str, Any]:
        """Whether a thread can be at an address that is not a multiple of what it must be, by integers."""
        access, (space, (t,)) = group.first, self.questions.in_integers(ALONE, group.place)
        start = t.number(group.offset)
        starts = [start.plus(Poly.of(number - group.distances[0][0])) for number in {one for one, _ in group.distances}]
        if all(space.factors(one, access.align) % access.align == 0 for one in starts):
            return "unsat", None
        rests = [space.divided(one, access.align)[1] for one in starts]
        wrong = z3.Or(*(space.formula(rest) != 0 for rest in rests))
        lemmas = space.products() if is_model else space.lemmas(multiples(space))
        return self.questions.clock.check([*t.facts, *lemmas, *space.facts, wrong], milliseconds)
