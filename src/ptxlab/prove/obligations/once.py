"""That each element of an array is written exactly once.

At most once: no two stores to it touch the same bytes, whatever barriers are between them. At least once: for any
element there is a thread, in some turns of the loops around a store, that comes there and writes it. Who that is is a
guess, in numbers computed from the element (`witnesses`); that it is so is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ptxlab.flow.expressions import Atom
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.questions.copies import FREE
from ptxlab.prove.questions.intervals import ALONE, Pair, Reached
from ptxlab.prove.questions.objects import Group, Objects
from ptxlab.prove.questions.questions import Obligation, Questions, obligation
from ptxlab.prove.terms.loops import decisive
from ptxlab.prove.terms.predicates import FALSE
from ptxlab.prove.terms.terms import MOST_TURNS, UNSIGNED, is_size, leaves
from ptxlab.prove.theories.integers import Integers, Space
from ptxlab.prove.theories.lemmas import products, quotients
from ptxlab.prove.theories.polynomials import Poly
from ptxlab.prove.theories.solver import z3
from ptxlab.prove.theories.translation import Namer

from .races import Races
from .tickets import Tickets
from .witnesses import witness

KIND = "once"


class _Chosen(Integers):
    """Terms of a thread and of turns that are numbers of their own."""

    def __init__(self, name: Namer, space: Space, chosen: Mapping[Atom, Poly]) -> None:
        super().__init__(name, space, {})
        self._chosen = chosen

    def _variable(self, atom: Atom) -> Any:
        return self._chosen[atom] if atom in self._chosen else super()._variable(atom)


class Once:
    """Shows that elements are written once."""

    def __init__(self, execution: Execution, objects: Objects, questions: Questions, tickets: Tickets) -> None:
        self.execution, self.objects, self.questions, self.tickets = execution, objects, questions, tickets

    def show(self, name: str, milliseconds: int) -> Iterator[Obligation]:
        """Show it of an array."""
        reached = []
        for access in self.objects.accesses:
            found = self.objects.located(access)
            if access.writes and found is not None and found[0].name == name:
                plain = replace(access, alike=0, order="weak", places=frozenset())  # whatever their order is
                reached.append(Reached(plain, dict.fromkeys(access.segment.loops, FREE)))
        groups = self.objects.groups(reached)
        updates = tuple(one.access.line for one in reached if one.access.kind != "store")
        if updates or not groups:
            reason = "an atomic operation is not followed here" if updates else "there is no store to it"
            yield Obligation(KIND, updates or (1,), "open", f"each element of {name} is written once", reason)
            return
        yield from self._at_most(groups, milliseconds)
        yield self._at_least(name, groups, milliseconds)

    def _at_most(self, groups: Sequence[Group], milliseconds: int) -> Iterator[Obligation]:
        races = Races(self.execution, self.objects, self.questions, self.tickets, ())
        for number, one in enumerate(groups):
            places = [distance for distance, _ in one.distances]
            if any(after - place < one.first.bytes for place, after in pairwise(places)):
                about = f"no element of {one.object.name} is written twice"
                yield Obligation(KIND, one.lines, "open", about, "one thread writes it twice")
            for other in groups[number:]:
                for same_block in (True, False):
                    pair = Pair(None, (one.turns, other.turns), same_block=same_block, may_be_one=same_block)
                    found = races.race(one, other, pair, milliseconds)
                    about = f"no element of {one.object.name} is written twice"
                    yield replace(found, kind=KIND, about=about, again=None)

    def _at_least(self, name: str, groups: Sequence[Group], milliseconds: int) -> Obligation:
        space = self.questions.space()
        size = self.questions.sizes[name]
        length = Poly({(f"len({name})",): 1})
        element = space.variable("element", 0, space.bounds[f"len({name})"][1])
        space.facts.append(space.at_most(element.plus(Poly.of(1)), length))
        lines = tuple(sorted({line for group in groups for line in group.lines}))
        about = f"every element of {name} is written"
        facts: list[Any] = []
        for number, group in enumerate(groups):
            facts += self._missed(number, group, element, size, space)
        status, _ = self.questions.clock.check(
            [*facts, *space.lemmas(products(space), quotients(space)), *space.facts], milliseconds
        )
        reason = "for some element no thread is found that writes it"
        help = f"say how long `{name}` is and how the grid follows from the sizes with `--assume`"
        return obligation(KIND, lines, about, status == "unsat", "integers, the thread of each element", reason, help)

    def _missed(self, number: int, group: Group, element: Poly, size: int, space: Space) -> list[Any]:
        """That the thread which is guessed to write an element by some store does not."""
        terms, access = self.execution.terms, group.first
        loops = access.segment.loops
        threads = {atom: extent for value, extent in zip(terms.threads(), terms.block, strict=True)
                   for atom, _ in value.terms}  # fmt: skip
        blocks = [atom for value in terms.blocks() for atom, _ in value.terms]
        counters = {loop.turn: loop for loop in loops}

        def name(atom: Atom) -> tuple[str, int]:
            own, more = ALONE.name(atom, 0)
            return (own if is_size(atom) else f"{own}#{number}"), more

        sizes = {atom: ALONE.name(atom, 0)[0] for atom in leaves([group.offset]) if is_size(atom)}
        guess = witness(group, {**threads, **dict.fromkeys([*blocks, *counters], 0)}, sizes, element, size, space)
        if guess is None:
            return []
        chosen = dict.fromkeys([*threads, *blocks, *counters], Poly()) | guess
        t = _Chosen(name, space, chosen)
        limits = {atom: Poly.of(extent) for atom, extent in threads.items()} | dict.fromkeys(
            counters, Poly.of(MOST_TURNS)
        )
        limits |= {atom: Poly({(f"%nctaid.{str(atom.detail)[-1]}",): 1}) for atom in blocks}
        needed: list[Any] = []
        for atom, limit in limits.items():
            needed += [space.at_most(Poly(), chosen[atom]), space.at_most(chosen[atom].plus(Poly.of(1)), limit)]
        all_loops = self.execution.notes.loops
        needed += [t.holds(one) for one in decisive(access.path, loops, all_loops)]
        missed: list[Any] = []
        for atom, loop in counters.items():  # no turn before leaves the loop
            earlier = space.fresh(0, MOST_TURNS - 1)
            before = _Chosen(name, space, chosen | {atom: earlier})
            before.facts.append(space.at_most(earlier.plus(Poly.of(1)), chosen[atom]))
            stays = decisive(loop.stays, (*loop.outer, loop), all_loops) if loop.repeats else [FALSE]
            leaves_it = z3.Not(z3.And(*(before.holds(one) for one in stays)))
            missed.append(z3.And(*before.facts, leaves_it))
        start = t.number(group.offset.as_type(UNSIGNED[group.offset.type.width]))
        first = element.times(Poly.of(size))
        written = [z3.And(space.at_most(begin, first), space.at_most(first.plus(Poly.of(size)), begin.plus(end)))
                   for begin, end in ((start.plus(Poly.of(distance - group.distances[0][0])), Poly.of(access.bytes))
                                      for distance, access in group.distances)]  # fmt: skip
        return [*t.facts, z3.Or(*missed, z3.Not(z3.And(*needed, z3.Or(*written))))]
