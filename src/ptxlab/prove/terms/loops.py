"""Loops in any turn: what a turn changes, what holds in the next one, and what all threads have alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxlab.flow.expressions import COUNTER, Atom, Linear, linear
from ptxlab.flow.steps import Step
from ptxlab.flow.symbolic import LONG

from .terms import MOST_TURNS, UNSIGNED, Loop, Symbol, Terms, is_uniform, leaves


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


def last_turn(terms: Terms, loop: Loop, leaving: Sequence[Linear]) -> Linear | None:
    """In which turn a loop was left, if it is left when a number is 0 that each turn makes less by a step.

    By more than one, that is so of what no turn before has passed: the limit of the loop says that, and is needed then.
    """
    for first, step, width in filter(None, (distance(terms, loop, one) for one in leaving)):
        limit = terms.at_most(loop.counter.times(step), first)
        if step == 1 and 1 << width > MOST_TURNS:
            return first
        if step > 1 and limit in loop.limits:
            loop.needed.append(limit)
            return terms.apply(Step("//", LONG, (0, 1), LONG), [first, linear(LONG, step)])
    return None


def without_masks(terms: Terms, value: Linear) -> Linear:
    """A sum with numbers without their upper bits, or their lower ones, as differences: `x & 3` is `x - x // 4 * 4`."""
    found = linear(value.type, value.constant)
    for atom, factor in value.terms:
        part = linear(value.type, 0, {atom: 1})
        own = UNSIGNED.get(value.type.width)
        if atom.kind == "&" and atom.parts[1].is_constant and atom.type.width == value.type.width and own is not None:
            number, mask = atom.parts[0].as_type(own), atom.parts[1].constant % (1 << own.width)
            power = mask + 1 if mask & 1 else mask & -mask
            above = terms.apply(Step("//", own, (0, 1), own), [number, linear(own, power)]).times(power)
            most = (1 << number.bounds[1].bit_length()) - 1 if number.bounds[0] >= 0 else (1 << own.width) - 1
            if mask & 1 and not power & mask:
                part = number.plus(above, -1).as_type(value.type)
            elif not mask & 1 and most & ~(mask | power - 1) == 0:
                part = above.as_type(value.type)
        found = found.plus(part, factor)
    return found


def distance(terms: Terms, loop: Loop, equal: Linear) -> tuple[Linear, int, int] | None:
    """How far apart two numbers are in the first turn that are equal when a predicate holds, how much closer each turn
    brings them, which divides that, and of how many bits they are."""
    atoms = [atom for atom, _ in equal.terms if atom.kind == "==" and not equal.constant]
    if len(atoms) != 1 or atoms[0].parts[0].type.kind not in "usb":
        return None
    one, other = atoms[0].parts
    distance = one.plus(other, -1)
    step = -dict(distance.terms).get(loop.turn, 0)
    start = distance.plus(loop.counter.as_type(distance.type), step)
    if step < 0:
        step, start = -step, start.times(-1)
    ways = [start, without_masks(terms, start)] if step else []
    first = next((one for one in ways if all(f % step == 0 for f in (one.constant, *(f for _, f in one.terms)))), None)
    if first is None or step & (step - 1) or not is_invariant([first], loop, allows_counter=False):
        return None
    own = UNSIGNED[first.type.width]
    return terms.fit(first.as_type(own), own, LONG), step, own.width
