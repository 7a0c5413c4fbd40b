"""That what is said of a loop in any turn is so: registers are what their forms say, and turns are within their limits.

By induction: it holds in the first turn, and if it holds in one turn, it holds in the next. All of it is assumed of the
turn before, together; of loops in this one, what is shown of them likewise. Where forms come from does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxlab.flow.expressions import Atom, Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.prove.execution.segments import Path
from ptxlab.prove.questions.questions import Obligation, Questions, obligation
from ptxlab.prove.terms.predicates import TRUE
from ptxlab.prove.terms.terms import MOST_TURNS, Loop, Terms


def show_loop(loop: Loop, terms: Terms, questions: Questions, milliseconds: int) -> Iterator[Obligation]:
    """Show it of a loop; with a guess as its limit, if that is shown."""
    for limits in ([*loop.needed, guess] for guess in loop.guesses):
        before, loop.limits = loop.limits, limits
        questions.forget()  # what does not wrap within other limits
        found = list(_shown(loop, terms, questions, milliseconds))
        if all(one.status == "proved" for one in found):
            yield from found
            return
        loop.limits = before
        questions.forget()
    yield from _shown(loop, terms, questions, milliseconds)


def _shown(loop: Loop, terms: Terms, questions: Questions, milliseconds: int) -> Iterator[Obligation]:
    """Show what registers are, and limits of turns."""
    first: dict[Atom, Linear] = {loop.turn: linear(LONG, 0)}
    later = {loop.turn: loop.later(1)}
    for atom, (start, after) in loop.totals.items():
        first[atom], later[atom] = start, after
    starts, follows = [], []
    for form, begin, end in loop.forms:
        starts.append(_is(terms, form, first, begin))
        if loop.repeats:
            follows.append(_is(terms, form, later, end))
    starts += [terms.substitute(one, first) for one in loop.limits]
    follows += [terms.substitute(one, later) for one in loop.limits]
    most = loop.counter.bounds[1]
    if most < MOST_TURNS - 1:
        follows.append(terms.at_most(loop.later(1), linear(LONG, most)))
    steps: list[tuple[list[Linear | None], Path, tuple[Loop, ...], str]] = [
        (starts, loop.entry, loop.outer, "in the first turn"),
        (follows if loop.repeats else [], (*loop.entry, *loop.stays), (*loop.outer, loop), "from one turn to the next"),
    ]
    for claims, path, loops, when in steps:
        about = f"registers and turns of a loop are what they are taken to be, {when}"
        open = [one for one in claims if one != TRUE]
        is_shown = all(one is not None and questions.holds(one, path, loops, (), milliseconds) for one in open)
        yield obligation("loop", (loop.line,), about, is_shown, "induction", "the solver does not show it")


def _is(terms: Terms, form: Linear, turn: Mapping[Atom, Linear], value: Linear | None) -> Linear | None:
    """That a form is a value in a turn; None: of that nothing is known."""
    if value is None or value.type.width != form.type.width:
        return None
    now = terms.substitute(form, turn)
    same = value.as_type(form.type)
    return TRUE if now == same else terms.equal(now, same)
