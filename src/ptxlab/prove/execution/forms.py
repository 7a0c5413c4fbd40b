"""What registers hold in any turn of a loop, and how many turns there can be: guesses, which `induction` checks.

A register that each turn adds the same to is `first + step * turn`; one that each turn computes anew is that of the
turn before. That a turn happens means that no turn before it left the loop, which limits the turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.flow.expressions import Atom, Linear, linear
from ptxlab.flow.ranges import limits
from ptxlab.flow.steps import Step
from ptxlab.flow.symbolic import LONG
from ptxlab.prove.terms.loops import distance, is_invariant
from ptxlab.prove.terms.predicates import FALSE, inverse
from ptxlab.prove.terms.terms import INTEGER, MOST_TURNS, Loop, Terms, atoms_of, signed

MOST_AT_ONCE = 64  # turns of a loop that compilers make one of


def closed_form(terms: Terms, first: Linear, head: Linear, after: Linear | None, loop: Loop) -> Linear | None:
    """What a register is at the start of each turn; None if no form for it is known."""
    if after is None or after.type.width != head.type.width:
        return None
    if after == head:
        return first
    step = after.plus(head, -1) if head.type.kind != "p" else None
    turns = loop.counter.as_type(head.type) if head.type.kind != "p" else FALSE
    if step is not None and is_invariant([step], loop, allows_counter=False):
        return first.plus(terms.product(step, turns))
    if is_invariant([after], loop, allows_counter=True):
        previous = terms.in_turn(after, loop, loop.later(-1))
        return terms.choose(terms.equal(loop.counter, linear(loop.counter.type, 0)), first, previous)
    return None


def limits_of(terms: Terms, loop: Loop, stays: Sequence[Linear]) -> list[Linear]:
    """How many turns there can be, of what held where each turn so far led to the next."""
    found = [one for stay in stays for one in (_not_yet(terms, loop, stay), _within(terms, loop, stay))]
    return [limit for limit in found if limit is not None]


def _not_yet(terms: Terms, loop: Loop, stays: Linear) -> Linear | None:
    """A limit of the turns of a loop that continues as long as a number, which each turn moves by a step, is not 0.

    `d(turn) = d(0) - step * turn` and `step` divides `d(0)`: then d was not 0 in any turn so far only if
    `step * turn <= d(0)`, the latter without a sign.
    """
    equal = inverse(stays)
    parts = None if equal is None else distance(terms, loop, equal)
    return None if parts is None else terms.at_most(loop.counter.times(parts[1]), parts[0])


def _within(terms: Terms, loop: Loop, stays: Linear) -> Linear | None:
    """That a number which each turn moves has not wrapped, where a loop continues as long as it is below a limit.

    In all turns before this, `first + step * turn < limit`. If `limit - 1 + step` fits the type, no sum so far
    wrapped, so that holds of the integers: `first + step * (turn - 1) < limit`. Likewise downwards.
    """
    compared = _compared(stays)
    if compared is None:
        return None
    one, other, strict = compared
    if one.type.width > 32:
        return None
    for moving, limit, sign in ((one, other, 1), (other, one, -1)):
        parts = _moved(moving, loop)
        if parts is None or not is_invariant([limit], loop, allows_counter=False):
            continue
        own = moving.type
        least, greatest = limits(own)
        first, end = (terms.fit(value, own, INTEGER).as_type(INTEGER) for value in (parts[0], limit))
        step = terms.fit(parts[1], signed(own), INTEGER).as_type(INTEGER)
        slack = linear(INTEGER, int(strict))
        last = first.plus(terms.product(step, loop.counter.as_type(INTEGER))).plus(step, -1)
        if sign > 0:
            fits = terms.at_most(end.plus(slack, -1).plus(step), linear(INTEGER, greatest))
            moves, below = terms.at_most(linear(INTEGER, 0), step), terms.at_most(last.plus(slack), end)
        else:
            fits = terms.at_most(linear(INTEGER, least), end.plus(slack).plus(step))
            moves, below = terms.at_most(step, linear(INTEGER, 0)), terms.at_most(end.plus(slack), last)
        if not fits.is_constant:
            loop.rooms.append(fits)
        starts = terms.equal(loop.counter, linear(loop.counter.type, 0))
        return terms.some([starts, terms.negated(terms.every([fits, moves])), below])
    return None


def counted(terms: Terms, loop: Loop, stays: Sequence[Linear]) -> list[Linear]:
    """How many turns there may be of a loop that compilers have unrolled, after those that were too many.

    These were `count % 4`, of all turns, which is in what the loop starts with, or of one turn less; the others are
    `count // 4`.
    """
    found: list[Linear] = []
    for compared in (one for stay in stays if (one := _compared(stay)) is not None):
        moved = [parts for one in compared[:2] if (parts := _moved(one, loop)) is not None]
        for atom in atoms_of([first for first, _ in moved]):
            number = _radix(atom)
            if number:
                count, unit = atom.parts[0], linear(atom.type, 1)
                counts = [count, count.plus(unit)] if count.constant else [count.plus(unit), count]
                divide = Step("//", atom.type, (0, 1), atom.type)
                turns = [terms.apply(divide, [count, linear(atom.type, number)]) for count in counts]
                found += [terms.at_most(loop.later(1), terms.fit(one, atom.type, LONG)) for one in turns]
    return list(dict.fromkeys(found))


def _radix(atom: Atom) -> int:
    """What an atom is the remainder by; 0 if it is not a remainder."""
    if atom.kind not in ("&", "%") or not atom.parts[1].is_constant or atom.type.kind not in "ub":
        return 0
    number = atom.parts[1].constant + (atom.kind == "&")
    return number if 1 < number <= MOST_AT_ONCE and (atom.kind == "%" or number & (number - 1) == 0) else 0


def most_turns(loop: Loop, stays: Sequence[Linear]) -> int:
    """The number of the last turn that there can be, of a loop that continues as long as a number is below a limit.

    The numbers are `first + step * turn` with a constant step, without wrapping as long as they are below the limit, if
    the limit and a step fit the type: the turn before the last has one that is at most the limit.
    """
    found = MOST_TURNS - 1
    for stay in stays:
        compared = _compared(stay)
        if compared is None:
            continue
        moving, limit, strict = compared
        parts = _moved(moving, loop) if moving.type.width <= 32 else None
        if parts is None or not parts[1].is_constant or not is_invariant([limit], loop, allows_counter=False):
            continue
        first, step = parts[0], parts[1].constant
        end = limit.bounds[1] - strict
        fits = first.fits(moving.type) and limit.fits(moving.type)
        if fits and step > 0 and end + step <= limits(moving.type)[1]:
            found = min(found, max(0, (end - first.bounds[0]) // step + 1))
    return found


def _compared(stays: Linear) -> tuple[Linear, Linear, bool] | None:
    """The numbers of which the first is below the second, or at most it; whether it is below."""
    negated = inverse(stays)
    atoms = [atom for atom, _ in (stays if negated is None else negated).terms if atom.kind in ("<", "<=")]
    if len(atoms) != 1 or atoms[0].parts[0].type.kind not in "usb":
        return None
    one, other = atoms[0].parts if negated is None else atoms[0].parts[::-1]
    return one, other, (atoms[0].kind == "<") == (negated is None)


def _moved(value: Linear, loop: Loop) -> tuple[Linear, Linear] | None:
    """What a term is in the first turn, and what each turn adds; None if that is not always the same."""
    first, step = linear(value.type, value.constant), linear(value.type, 0)
    for atom, factor in value.terms:
        own = linear(value.type, 0, {atom: factor})
        if atom.detail is loop:
            step = step.plus(linear(value.type, factor))
        elif atom.kind == "*" and atom.type.width == value.type.width and loop.counter.as_type(atom.type) in atom.parts:
            others = [part for part in atom.parts if part != loop.counter.as_type(atom.type)]
            if len(others) != 1 or not is_invariant(others, loop, allows_counter=False):
                return None
            step = step.plus(others[0].as_type(value.type), factor)
        elif is_invariant([own], loop, allows_counter=False):
            first = first.plus(own)
        else:
            return None
    return (first, step) if step != linear(value.type, 0) else None
