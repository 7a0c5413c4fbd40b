"""Questions: the variables, contracts and translations that all obligations are asked with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.prove.execution.segments import Path
from ptxlab.prove.terms.terms import AXES, Loop, Terms, is_thread_index, leaves
from ptxlab.prove.theories.bits import Bits
from ptxlab.prove.theories.integers import Integers, Space
from ptxlab.prove.theories.lemmas import products, strides
from ptxlab.prove.theories.polynomials import Poly
from ptxlab.prove.theories.solver import Clock, z3
from ptxlab.prove.theories.translation import Translation

from .intervals import ALONE, At, Pair, loops_of
from .objects import Object

QUICK, PATIENT = 3_000, 15_000  # milliseconds


@dataclass(frozen=True)
class Obligation:
    """Something that was to be shown, and whether it was."""

    kind: str
    lines: tuple[int, ...]
    status: str  # "proved", "open"
    about: str
    reason: str = ""
    help: str = ""
    argument: str = ""
    again: Callable[[int], Any] | None = None
    """Asks once more, perhaps with other ranges: a model in which it does not hold, or None."""
    retry: Callable[[], Obligation] | None = None
    """Tries to show it once more, perhaps with other contracts."""


def obligation(
    kind: str, lines: tuple[int, ...], about: str, is_shown: bool, argument: str, reason: str, help: str = ""
) -> Obligation:
    """What was to be shown, by an argument if it was, with the reason if it was not."""
    if is_shown:
        return Obligation(kind, lines, "proved", about, argument=argument)
    return Obligation(kind, lines, "open", about, reason, help)


def copy_at_exit(lines: tuple[int, ...], is_shown: bool, argument: str) -> Obligation:
    """That a copy is complete when its thread exits."""
    about = "an asynchronous operation on shared memory is complete when the kernel ends"
    reason, help = "no wait for it is shown on every path", "wait for it before `ret`"
    return obligation("exit", lines, about, is_shown, argument, reason, help)


class Questions:
    """What is the same in all questions: the threads, and what is assumed of sizes, lengths and the grid."""

    def __init__(self, terms: Terms, sizes: dict[str, int], clock: Clock) -> None:
        self.terms, self.sizes, self.clock = terms, sizes, clock
        self.ranges: dict[str, tuple[int, int]] = {}
        """The variables of all questions: sizes, lengths and the grid."""
        self.contracts: list[Callable[[Space], Any]] = []
        self._factors: dict[tuple[str, int], int] = {}
        self._said: tuple[list[Callable[[Space], Any]], dict[str, tuple[int, int]], Space] | None = None
        self._exact: dict[tuple[object, ...], dict[Linear | Atom, bool]] = defaultdict(dict)
        """What was shown not to wrap, and what was not, by all that was assumed for it."""

    def in_time(self, kind: str, lines: tuple[int, ...], about: str) -> Obligation | None:
        """None as long as there is time; what is not shown after that."""
        if not self.clock.is_over:
            return None
        return obligation(kind, lines, about, False, "", "the time for the proof is over", "raise `--timeout`")

    def forget(self) -> None:
        """Forget what was shown not to wrap: the contracts are others now."""
        self._exact.clear()
        self._factors.clear()
        self._said = None

    def space(self) -> Space:
        """The variables of a question, with those that contracts may name."""
        said = self.contracts, self.ranges
        if self._said is None or self._said[:2] != said:
            found = Space(self.clock)
            for name, (low, high) in self.ranges.items():
                found.variable(name, low, high)
            for contract in self.contracts:
                found.facts.append(contract(found))
            found.agree(self._factors)
            self._said = list(self.contracts), dict(self.ranges), found
        return self._said[2].copy()

    def in_bits(self, pair: Pair, *places: At, only: Sequence[Sequence[Linear]] = ()) -> list[Bits]:
        """Bit-vectors for the threads of a pair, with what holds where they are; `only`: with what is about these."""
        found: list[Bits] = []
        for thread, place in enumerate(places):
            found.append(Bits(partial(pair.name, thread=thread)))
            found[-1].assume(self._given(pair, thread, place, only[thread] if only else None))
        return found

    def in_integers(
        self, pair: Pair, *places: At, only: Sequence[Sequence[Linear]] = (), facts: Path = ()
    ) -> tuple[Space, list[Integers]]:
        """The same as integers, in one space; `facts` are what the caller assumes besides."""
        space = self.space()
        found: list[Integers] = []
        for thread, place in enumerate(places):
            found.append(self._integers(pair, thread, space, place, facts, only[thread] if only else None))
            found[-1].assume(self._given(pair, thread, place, only[thread] if only else None))
        return space, found

    def _integers(
        self, pair: Pair, thread: int, space: Space, place: At, facts: Path, only: Sequence[Linear] | None
    ) -> Integers:
        about = None if only is None else tuple(only)
        known = self._exact[place.path, place.loops, facts, pair.fixed(thread), about]
        found = Integers(partial(pair.name, thread=thread), space, known)
        tag = "" if pair.same_block else f"@{thread}"
        for axis, extent in zip(AXES, self.terms.cluster, strict=True):
            number = space.variable(f"{self.terms.cluster_name}.{axis}{tag}", 0, self.ranges[f"%nctaid.{axis}"][1] - 1)
            last = number.plus(Poly.of(1)).times(Poly.of(extent))
            found.facts.append(space.at_most(last, Poly({(f"%nctaid.{axis}",): 1})))
        return found

    @staticmethod
    def _given(pair: Pair, thread: int, place: At, only: Sequence[Linear] | None) -> list[Linear]:
        """What holds for a thread at a place; or only what is about the thread and some terms."""
        limits, facts = pair.facts([*place.path, *place.values], place.loops, thread)
        before = [one for one in place.path if not loops_of([one])]
        given = [*before, *limits, *(one for one in place.path if one not in before), *facts]
        if only is None:
            return given
        known = leaves(only)
        return [one for one in given if all(is_thread_index(atom) or atom in known for atom in leaves([one]))]

    def holds(self, condition: Linear, path: Path, loops: tuple[Loop, ...], facts: Path, milliseconds: int) -> bool:
        """Whether a predicate holds wherever a thread takes a path, in any turns, if facts hold."""
        place = At(path, loops, [condition, *facts])
        for only in ([place.values], ()):  # first without what is about other terms
            space, (t,) = self.in_integers(ALONE, place, only=only, facts=facts)
            t.assume(facts)
            formulas = [
                z3.Not(t.holds(condition)),
                *t.facts,
                *space.lemmas(products(space), strides(space)),
                *space.facts,
            ]
            if self.clock.check(formulas, milliseconds)[0] == "unsat":
                return True
            (b,) = self.in_bits(ALONE, place, only=only)
            b.assume(facts)
            if self.clock.check([z3.Not(b.holds(condition)), *b.facts], milliseconds)[0] == "unsat":
                return True
        return False

    def length(self, object: Object) -> Poly:
        """The bytes of an object."""
        if object.bytes is not None:
            return Poly.of(object.bytes)
        return Poly({(f"len({object.name})",): self.sizes[object.name]})

    def apart(self, pair: Pair, one: Translation, other: Translation) -> list[Any]:
        """That the two threads of a pair are two: of a block or of two blocks, of a warp or of two warps."""
        if pair.same_thread:
            return []
        numbers = [*self.terms.threads(), self.terms.rank()] if pair.same_block else self.terms.clusters()
        found = [z3.Or(pair.may_be_one, *(z3.Not(one.same(value, other)) for value in numbers))]
        if pair.same_warp is not None:
            is_same = z3.And(one.same(self.terms.warp(), other), one.same(self.terms.rank(), other))
            found.append(is_same if pair.same_warp else z3.Not(is_same))
        return found
