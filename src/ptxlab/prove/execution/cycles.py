"""Registers that go round: the stage of a ring and the parity of its mbarriers, as terms of the turn of a loop.

A ring adds 1 to its stage until it is back at the first, and then changes its parity. Such registers depend on each
other and on constants only, so their values are computed turn by turn until the first ones come again, or those of the
second turn: compilers start before the first stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from ptxlab.flow.expressions import Atom, Linear, linear
from ptxlab.flow.steps import Step
from ptxlab.flow.symbolic import LONG
from ptxlab.isa.types import Type
from ptxlab.prove.terms.periods import period
from ptxlab.prove.terms.terms import Loop, Symbol, Terms, atoms_of, is_size, leaves, term

MOST_TURNS = 64  # of a cycle


def cyclic_forms(
    terms: Terms, loop: Loop, firsts: Mapping[int, Linear], heads: Mapping[int, Linear], after: Mapping[int, Linear]
) -> dict[int, Linear]:
    """What registers are in each turn, of those that return to their first values; `heads` are symbols for them.

    A ring that continues in the next turn of a loop around this one starts where the turns before have left it. How its
    symbol in that loop goes round is proposed to it, as `Symbol.cycle`; then the form is of all turns so far.
    """
    atoms = {r: next(iter(heads[r].terms))[0] for r in heads}
    sources = {r: _source(firsts[r]) for r in heads}
    starts = {r: _start(terms, firsts[r], sources[r], loop) for r in heads if r in after}
    chosen = {r for r, start in starts.items() if start.is_constant}
    turns = linear(LONG, 0), loop.later(1)
    steps = [{r: terms.in_turn(after[r], loop, turn) for r in chosen} for turn in turns]
    while True:
        known = {atoms[r] for r in chosen}
        kept = {r for r in chosen if all(leaves([step[r]]) <= known for step in steps)
                and after[r].type.width == heads[r].type.width}  # fmt: skip
        if kept == chosen:
            break
        chosen = kept
    found: dict[int, Linear] = {}
    for group in _connected({r: {one for one in chosen if atoms[one] in leaves([after[r]])} for r in chosen}):
        values = _values(terms, {r: atoms[r] for r in group}, starts, steps)
        if values is None:
            continue
        rows, is_at_once = values
        cycles = {r: [row[r] for row in rows[0 if is_at_once else 1 :]] for r in group}
        base = linear(LONG, 0)
        if any(not firsts[r].is_constant for r in group):
            if not is_at_once and any(steps[0][r] != heads[r] for r in group):
                continue  # the first turn must leave all of these values as they are, or make the next of each
            numbers = {source[0] for r in group if (source := sources[r]) is not None and source[1].head == loop.head}
            base = linear(LONG, 0, dict.fromkeys(list(numbers)[:1], 1))
            if any(firsts[r] != cyclic_term(terms, base, cycles[r], firsts[r].type) for r in group):
                for r in group:
                    if (source := sources[r]) is not None and not numbers:
                        source[1].cycle = loop.head, tuple(cycles[r])
                continue
            loop.base = base
        for r, cycle in cycles.items():
            turn = loop.counter.plus(base)
            turn = turn if is_at_once else turn.plus(linear(LONG, len(cycle) - 1))
            found[r] = cyclic_term(terms, turn, cycle, firsts[r].type)
            if not is_at_once:  # the first turn's value does not come again
                is_first = terms.equal(loop.counter, linear(LONG, 0))
                found[r] = terms.choose(is_first, firsts[r], found[r])
    return found


def _source(first: Linear) -> tuple[Atom, Symbol] | None:
    """The symbol that a register is made of, and of nothing else, where a loop is entered."""
    atoms = list(leaves([first]))
    detail = atoms[0].detail if len(atoms) == 1 else None
    return (atoms[0], detail) if isinstance(detail, Symbol) else None


def _start(terms: Terms, first: Linear, source: tuple[Atom, Symbol] | None, loop: Loop) -> Linear:
    """What a register is where a loop is entered, before any turn of a loop around it."""
    if source is None:
        return first
    atom, symbol = source
    if symbol.head == loop.head:
        return terms.substitute(first, {atom: linear(LONG, 0)})
    return symbol.first if symbol.first is not None and first == term(atom).as_type(first.type) else first


def origin(terms: Terms, first: Linear, *, is_of_group: bool) -> Linear | None:
    """The constant that a register starts with; of a group of threads, as if it passed over no turns of others."""
    if first.is_constant or not is_of_group:
        return first if first.is_constant else None
    found = (terms.substitute(first, {atom: linear(atom.type, 0)}) for atom in _numbers([first]))
    return next((one for one in found if one.is_constant), None)


def passes_over(
    terms: Terms, others: int, loop: Loop, registers: Sequence[tuple[Linear, Sequence[int]]]
) -> Atom | None:  # fmt: skip
    """The number of turns that registers which go round in a loop pass over after it, for each of other groups."""
    for atom in _numbers([after for after, _ in registers]):
        if all(continues(terms, after, loop, cycle, atom, others) for after, cycle in registers):
            return atom
    return None


def _numbers(values: Sequence[Linear]) -> list[Atom]:
    """What may be a number of turns in terms: what is made of parameters only."""
    found = [(atom, leaves([term(atom)])) for atom in atoms_of(values) if atom.type.kind in "ub"]
    return sorted((atom for atom, parts in found if all(map(is_size, parts))), key=lambda one: (one.depth, str(one)))


def continues(
    terms: Terms, after: Linear, loop: Loop, cycle: Sequence[int], passed: Atom | None = None, others: int = 0
) -> bool:
    """Whether a register is, after a loop, what the number of all its turns so far says: it has gone round with it.

    It may pass over the turns of other groups, each a number: that is tried with each number in a cycle.
    """
    if passed is not None and others:
        numbers = {n: terms.substitute(after, {passed: linear(passed.type, n)}) for n in range(len(cycle) + 1)}
        return all(continues(terms, value, loop, [*cycle[others * n % len(cycle) :], *cycle[: others * n % len(cycle)]])
                   for n, value in numbers.items())  # fmt: skip
    if not loop.base.terms:
        return False
    ((base, _),) = loop.base.terms
    at_first = terms.substitute(terms.in_turn(after, loop, linear(LONG, 0)), {base: loop.counter})
    later = terms.in_turn(terms.in_turn(after, loop, loop.later(1)), loop, loop.counter.plus(loop.base, -1))
    for value, turns in ((at_first, 1), (later, 2)):
        if leaves([value]) - {loop.turn} or len(cycle) % (period(value, loop.turn) or len(cycle) + 1):
            return False
        for turn in range(len(cycle)):
            now = terms.in_turn(value, loop, linear(LONG, turn))
            if not now.is_constant or now.constant != cycle[(turn + turns) % len(cycle)]:
                return False
    return True


def _values(
    terms: Terms, atoms: Mapping[int, Atom], firsts: Mapping[int, Linear], steps: Sequence[Mapping[int, Linear]]
) -> tuple[list[dict[int, int]], bool] | None:
    """The values of registers turn by turn, until those of the first turn, or of the second, come again; of which.

    `steps` are what the first turn makes of them, and what each later turn does.
    """
    state = {r: firsts[r] for r in atoms}
    is_alike = all(steps[0][r] == steps[1][r] for r in atoms)
    found: list[dict[int, int]] = []
    for _ in range(MOST_TURNS):
        found.append({r: value.constant for r, value in state.items()})
        replaced = {atoms[r]: value for r, value in state.items()}
        known: dict[Atom, Linear] = {}
        after = steps[min(len(found) - 1, 1)]
        state = {r: terms.substitute(after[r], replaced, known).as_type(firsts[r].type) for r in atoms}
        if not all(value.is_constant for value in state.values()):
            return None
        for number, row in enumerate(found[:2]):
            if (number or is_alike) and all(state[r].constant == row[r] for r in atoms):
                return found, number == 0
    return None


def cyclic_term(terms: Terms, number: Linear, values: Sequence[int], type: Type) -> Linear:
    """The term that is `values[number % len(values)]`."""
    period = next(n for n in range(1, len(values) + 1) if len(values) % n == 0 and _repeats(values, n))
    if period == 1:
        return linear(type, values[0])
    turn = _operation(terms, "%", number, period)
    run = gcd(period, *(n for n in range(1, period) if values[n] != values[n - 1]))  # turns with the same value
    rows = list(values[0:period:run])
    row = terms.fit(turn if run == 1 else _operation(terms, "//", turn, run), LONG, type)
    step = rows[1] - rows[0]
    if type.kind != "p" and all(value == rows[0] + step * n for n, value in enumerate(rows)):
        return linear(type, rows[0]).plus(row, step)
    found = linear(type, rows[-1])
    place = turn if run == 1 else _operation(terms, "//", turn, run)
    for index, value in enumerate(rows[:-1]):
        found = terms.choose(terms.equal(place, linear(LONG, index)), linear(type, value), found)
    return found


def _operation(terms: Terms, sign: str, value: Linear, number: int) -> Linear:
    return terms.apply(Step(sign, LONG, (0, 1), LONG), [value, linear(LONG, number)])


def _repeats(values: Sequence[int], period: int) -> bool:
    return all(value == values[n % period] for n, value in enumerate(values))


def _connected(needs: Mapping[int, set[int]]) -> list[set[int]]:
    """Registers in groups that need no register of another group."""
    groups: list[set[int]] = []
    for register, others in needs.items():
        joined = {register, *others}
        for group in [one for one in groups if one & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    return groups
