"""Loops in any turn: what a turn changes, what holds in the next one, and what all threads have alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxlab.flow.expressions import COUNTER, Atom, Linear, linear

from .terms import Loop, Symbol, Terms, is_uniform, leaves


def decisive(path: Sequence[Linear], around: Sequence[Loop], loops: Sequence[Loop]) -> list[Linear]:
    """What decides whether a thread comes to a place: where a loop has one way out, its last turn takes it."""
    left = [one for one in loops if one not in around and len(one.exits) == 1 and not one.returns]
    certain = {condition for one in left for condition in one.exits[0]
               if not is_invariant([condition], one, allows_counter=False)}  # fmt: skip
    return [one for one in path if one not in certain]


def is_invariant(values: Iterable[Linear], loop: Loop, *, allows_counter: bool) -> bool:
    """Whether terms are made of nothing that a turn of a loop changes, but perhaps the number of the turn."""
    for atom in leaves(values):
        detail = atom.detail
        if isinstance(detail, Symbol) and loop in detail.loops:
            return False
        if isinstance(detail, Loop) and (loop in detail.outer or (detail is loop and not allows_counter)):
            return False
    return True


def spread(loops: Sequence[Loop]) -> None:
    """Find which registers without a form are the same in all threads: first all, then fewer and fewer.

    That is done when all loops are known: what a loop in a loop starts with may turn out to differ.
    """
    is_changed = True
    while is_changed:
        is_changed = False
        for loop in loops:
            for symbol, first, after in loop.changes:
                if symbol.is_uniform and (after is None or not is_uniform([first, after], loop.is_around)):
                    symbol.is_uniform = False
                    is_changed = True


def continued(terms: Terms, loop: Loop, stays: Sequence[Linear]) -> Linear:
    """That this is the first turn, or the turn before it did not leave the loop."""
    replaced: dict[Atom, Linear] = {loop.turn: loop.later(-1)}
    for atom in leaves(stays):
        detail = atom.detail
        if isinstance(detail, Symbol) and loop in detail.loops:
            earlier = Symbol(detail.reason, detail.line, detail.loops, False, detail.address,
                             later=detail.later or detail)  # fmt: skip
            replaced[atom] = terms.symbol(earlier, atom.type)
        elif isinstance(detail, Loop) and loop in detail.outer and atom.kind == COUNTER:
            earlier = Symbol("turns of a loop in the turn before", detail.line, (loop,), False)
            replaced[atom] = terms.symbol(earlier, atom.type)
    known: dict[Atom, Linear] = {}
    previous = terms.every(terms.substitute(one, replaced, known) for one in stays)
    return terms.some([terms.equal(loop.counter, linear(loop.counter.type, 0)), previous])
