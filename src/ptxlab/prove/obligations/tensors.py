"""That no two copies by tensor maps write the same elements: boxes at coordinates of any two threads are apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxlab.flow.symbolic import WORD
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import TensorAccess
from ptxlab.prove.questions.copies import FREE
from ptxlab.prove.questions.intervals import At, Pair
from ptxlab.prove.questions.questions import Obligation, Questions, obligation
from ptxlab.prove.terms.terms import signed
from ptxlab.prove.theories.lemmas import dividends, products, quotients
from ptxlab.prove.theories.polynomials import Poly
from ptxlab.prove.theories.solver import z3


class Tensors:
    """Shows that boxes which copies write are apart."""

    def __init__(self, execution: Execution, questions: Questions) -> None:
        self.execution, self.questions = execution, questions

    def show(self, milliseconds: int) -> Iterator[Obligation]:
        """Show that of all copies that write a tensor, no other copy touches the same elements."""
        accesses = self.execution.notes.tensors
        for number, one in enumerate(accesses):
            for other in accesses[number:]:
                if one.map == other.map and (one.writes or other.writes):
                    for same_block in (True, False):
                        yield self._apart(one, other, same_block, milliseconds)

    def _apart(self, one: TensorAccess, other: TensorAccess, same_block: bool, milliseconds: int) -> Obligation:
        turns = [dict.fromkeys(access.loops, FREE) for access in (one, other)]
        pair = Pair(None, turns, same_block=same_block)
        both = [At(access.path, access.loops, access.coordinates) for access in (one, other)]
        space, threads = self.questions.in_integers(pair, *both)
        places = [[t.number(value.as_type(signed(WORD))) for value in access.coordinates]
                  for t, access in zip(threads, (one, other), strict=True)]  # fmt: skip
        box = self.execution.terms.boxes[one.map].extents
        formulas: list[Any] = []
        if not same_block:
            formulas += self.questions.apart(pair, *threads)
        elif one is other:  # by two threads, or in two turns
            a, b = threads
            terms = self.execution.terms
            numbers = [*terms.threads(), terms.rank(), *(loop.counter for loop in one.loops)]
            formulas.append(z3.Or(*(z3.Not(a.same(value, b)) for value in numbers)))
        for a, b, extent in zip(*places, box, strict=True):
            last = Poly.of(extent - 1)
            formulas += [space.at_most(a, b.plus(last)), space.at_most(b, a.plus(last))]
        formulas += [fact for t in threads for fact in t.facts]
        lemmas = space.lemmas(products(space), quotients(space), dividends(space))
        status, _ = self.questions.clock.check([*formulas, *lemmas, *space.facts], milliseconds)
        where = "a block" if same_block else "different blocks"
        about = f"boxes of the tensor of `{one.map}` that copies of {where} write are apart"
        lines = tuple(dict.fromkeys((one.line, other.line)))
        return obligation("race global", lines, about, status == "unsat", "integers, two threads",
                          "two copies may write the same elements")  # fmt: skip
