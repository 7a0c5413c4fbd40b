"""Symbolic execution of a kernel: every thread, every block and every turn of a loop at once.

Blocks run in the order of the flow; where paths meet, registers hold a choice between terms. A loop whose every
decision is a constant runs turn by turn. Any other runs once, in any turn: a register that each turn
adds the same to is `first + step * turn`, one that each turn computes anew is that of the turn before, and any other is
a symbol.

What is noted on the way are segments, stretches without a barrier, with the accesses in them and where they lead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ptxlab.flow import Facts
from ptxlab.flow.control import END
from ptxlab.flow.expressions import Atom, Linear, linear
from ptxlab.flow.symbolic import LONG
from ptxlab.isa import Jump
from ptxlab.prove.terms.loops import continued, last_turn, spread
from ptxlab.prove.terms.predicates import FALSE, TRUE
from ptxlab.prove.terms.terms import MOST_TURNS, Loop, Symbol, Terms, atoms_of, term
from ptxlab.prove.theories.solver import Clock

from .cycles import continues, cyclic_forms, cyclic_term, origin, passes_over
from .effects import Effects
from .forms import closed_form, counted, limits_of, most_turns
from .registers import Registers
from .segments import Arrival, Here, Notes, Path, Segment, State, UnsupportedError, joined
from .threads import Threads

MOST_UNROLLED = 80  # of a loop that runs turn by turn
MOST_STEPS = 150_000  # instructions, in all
MOST_GROUPS = 3  # of threads that take a loop each by itself
ROUNDS = 4  # in which closed forms of a loop are found, each with those before


class Execution:
    """One run of a kernel for all threads; `unknown`: the loads that are not taken to read what a store left."""

    def __init__(
        self, facts: Facts, terms: Terms, lines: Sequence[int], clock: Clock, unknown: Collection[int] = ()
    ) -> None:  # fmt: skip
        self.facts, self.terms, self.notes, self._clock = facts, terms, Notes(lines), clock
        self._registers = Registers(facts, terms, lines)
        self._effects = Effects(self._registers, self.notes, unknown)
        self._steps = 0
        self._order = facts.flow.ordered()
        self._dominators = facts.flow.dominators()
        self._blocks_of_loops = terms.loops
        self.barriers = {at for at, match in enumerate(facts.matches)
                         if match and match.effects.barrier and not self._effects.is_of_part(at, match)}  # fmt: skip
        self.entry = self.notes.segment(())
        _, exits = self._walk(set(self._order), 0, Arrival((), {}, self.entry), ())
        assert not exits
        spread(self.notes.loops)

    # Blocks.

    def _walk(
        self, blocks: set[int] | frozenset[int], entry: int, start: Arrival, loops: tuple[Loop, ...]
    ) -> tuple[list[Arrival], list[tuple[int, Arrival]]]:
        """Run blocks from an entry on; the ways back to the entry, and those out of these blocks."""
        arrivals: dict[int, list[Arrival]] = {entry: [start]}
        back: list[Arrival] = []
        exits: list[tuple[int, Arrival]] = []
        paths: dict[int, Path] = {}
        inner = set().union(*(inside - {head} for head, inside in self._blocks_of_loops.items()
                              if head in blocks and head != entry))  # fmt: skip
        done: set[int] = set()
        for number in self._order:
            if number not in blocks or number in inner or number not in arrivals:
                continue
            here = self._meet(number, arrivals.pop(number), loops, paths)
            paths[number] = here.path
            done.add(number)
            if number in self._blocks_of_loops and number != entry:
                leaving = self._loop(number, here, loops)
            else:
                leaving = self._block(number, here, loops)
            for target, arrival in leaving:
                if target == entry:
                    back.append(arrival)
                elif target not in blocks:
                    exits.append((target, arrival))
                elif target in done or target in inner:
                    raise UnsupportedError(self.facts.flow.blocks[target].start, "a loop with two entries")
                else:
                    arrivals.setdefault(target, []).append(arrival)
        return back, exits

    def _meet(self, number: int, arrivals: list[Arrival], loops: tuple[Loop, ...], paths: dict[int, Path]) -> Arrival:
        """What holds at the start of a block, by whatever way a thread comes there."""
        segment = self.notes.segment(loops)
        for one in arrivals:
            one.segment.successors.append((segment, None))
        if len(arrivals) == 1:
            return Arrival(arrivals[0].path, arrivals[0].state, segment)
        path, state = self._merged(arrivals)
        above = self._dominators[number]
        if above in paths and above != number and self.facts.control.post_dominates(number, above):
            path = paths[above]
        return Arrival(path, state, segment)

    def _merged(self, arrivals: Sequence[Arrival]) -> tuple[Path, State]:
        terms = self.terms
        first, *others = arrivals
        shared = set(first.path).intersection(*(one.path for one in others))
        path = tuple(one for one in first.path if one in shared)
        ways = [terms.every(part for part in one.path if part not in shared) for one in arrivals]
        either = terms.some(ways)
        state: State = {}
        for register in set(first.state).intersection(*(one.state for one in others)):
            value = arrivals[-1].state[register]
            for way, one in zip(ways[-2::-1], arrivals[-2::-1], strict=True):
                value = terms.choose(way, one.state[register], value)
            state[register] = value
        return joined(path, either), state

    def _block(self, number: int, here: Arrival, loops: tuple[Loop, ...]) -> list[tuple[int, Arrival]]:
        """Run the instructions of a block; the ways out of it."""
        flow, facts, terms = self.facts.flow, self.facts, self.terms
        block = flow.blocks[number]
        path, state, segment = here.path, dict(here.state), here.segment
        leaving: list[tuple[int, Arrival]] = []
        for at in range(block.start, block.end):
            instruction = facts.instructions[at]
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise UnsupportedError(at, "the kernel is too long: loops that run turn by turn take too many steps")
            if self._clock.is_over:
                raise UnsupportedError(at, "the time for the proof is over", "raise `--timeout`")
            guard = self._registers.guard(at, state, path, loops)
            if guard == FALSE:
                continue
            jump = instruction.opcode.jump
            if jump is not None:
                if jump is Jump.CALL or jump is Jump.INDEXED_BRANCH:
                    raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
                if guard != TRUE:
                    self.notes.decide(at, guard, path, loops)
                targets = flow.targets.get(at, ()) if jump.branches else ()
                taken = Arrival(joined(path, guard), self._known(guard, state), segment)
                leaving += [(target, taken) for target in targets if target != END]
                if jump in (Jump.RETURN, Jump.EXIT) or END in targets:
                    segment.exits.append(taken.path)
                if guard == TRUE:
                    return leaving
                path, state = joined(path, terms.negated(guard)), self._known(terms.negated(guard), state)
                if FALSE in path:
                    return leaving
                continue
            segment = self._effects.happen(Here(at, guard, path, state, segment, loops))
            self._registers.write(at, guard, state, loops)
            if at in self._effects.asynchronous.waits:
                state[self._effects.asynchronous.waits[at]] = TRUE
        if block.end < len(facts.instructions):
            leaving.append((number + 1, Arrival(path, state, segment)))
        else:
            segment.exits.append(path)
        return leaving

    def _known(self, condition: Linear, state: State) -> State:
        """What registers hold where a condition does: a parameter that is equal to a number is that number."""
        replaced = self.terms.numbers_by(condition)
        if not replaced:
            return state
        known: dict[Atom, Linear] = {}
        return {register: self.terms.substitute(value, replaced, known) for register, value in state.items()}

    # Loops.

    def _loop(self, head: int, here: Arrival, loops: tuple[Loop, ...]) -> list[tuple[int, Arrival]]:
        mark = self.notes.mark()
        edges = len(here.segment.successors)
        found = self._unrolled(head, here, loops)
        if found is not None:
            return found
        self._forget(mark, here.segment, edges)
        found = self._generic(head, here, loops)
        groups = self._groups(here, mark) if not loops else []
        if groups:
            self._forget(mark, here.segment, edges)
            found = [way for number, one in enumerate(groups)
                     for way in self._generic(head, one, loops, (number, len(groups)))]  # fmt: skip
        return found

    def _groups(self, here: Arrival, mark: tuple[int, ...]) -> list[Arrival]:
        """The groups of warps that take a loop each by itself: their numbers are in what its registers start with.

        That is a loop with mbarriers that they would leave in different turns, and without a barrier of all threads.
        """
        loop, terms, threads = self.notes.loops[-1], self.terms, Threads(self.terms)
        firsts = [first for _, first, _ in (*loop.forms, *loop.changes)]
        numbers = {atom for atom in atoms_of(firsts) if terms.is_warp_quotient(atom)}
        has_mbarriers = any(event.address is not None for event in self.notes.events[mark[4] :])
        if loop.is_uniform or loop.has_barrier or not has_mbarriers or len(numbers) != 1:
            return []
        (number,) = numbers
        value = term(number)
        own = threads.mask(here.path)[0]
        found = sorted({threads.evaluate(value, one) for one in range(threads.count) if own >> one & 1})
        groups: list[Arrival] = []
        for each in found if 1 < len(found) <= MOST_GROUPS else ():
            its, known = linear(number.type, each), dict[Atom, Linear]()
            path = [terms.substitute(one, {number: its}, known) for one in here.path]
            state = {r: terms.substitute(one, {number: its}, known) for r, one in here.state.items()}
            path = [one for one in path if one != TRUE]
            groups.append(Arrival(joined(tuple(path), terms.equal(value, its)), state, here.segment))
        return groups

    def _forget(self, mark: tuple[int, ...], segment: Segment, edges: int) -> None:
        self.notes.forget(mark)
        del segment.successors[edges:]

    def _unrolled(self, head: int, here: Arrival, loops: tuple[Loop, ...]) -> list[tuple[int, Arrival]] | None:
        """Run a loop turn by turn; None if whether it is left depends on anything."""
        inside = self._blocks_of_loops[head]
        leaving: list[tuple[int, Arrival]] = []
        for _ in range(MOST_UNROLLED):
            back, exits = self._walk(inside, head, here, loops)
            leaving += exits
            if not back:
                return leaving
            path, state = self._merged(back) if len(back) > 1 else back[0][:2]
            if path != here.path or exits:
                return None
            segment = self.notes.segment(loops)
            for one in back:
                one.segment.successors.append((segment, None))
            here = Arrival(path, state, segment)
        return None

    def _generic(
        self, head: int, here: Arrival, loops: tuple[Loop, ...], group: tuple[int, int] | None = None
    ) -> list[tuple[int, Arrival]]:
        """Run a loop once, in any turn; of one of several groups of threads, with its number."""
        facts, terms = self.facts, self.terms
        inside = self._blocks_of_loops[head]
        at = facts.flow.blocks[head].start
        loop = Loop(head, self.notes.lines[at], loops)
        loop.counter, loop.group = terms.counter(loop), group
        nest = (*loops, loop)
        loop.has_barrier = any(facts.flow.block_at(at) in inside for at in self.barriers)
        written = {
            register
            for number in inside
            for at in range(facts.flow.blocks[number].start, facts.flow.blocks[number].end)
            for register in facts.effects.writes[at]
        } & self._registers.relevant
        changing = sorted(written & here.state.keys())
        starts = {r: origin(terms, here.state[r], is_of_group=group is not None) for r in changing}
        symbols = {r: Symbol("a value that a loop changes", loop.line, nest, True, first=starts[r]) for r in changing}
        closed: State = {}
        counts: dict[int, Linear] = {}  # how many turns loops in this one have made, by their heads
        guessed: dict[int, tuple[int, tuple[int, ...]]] = {}  # registers that go round in those, to be shown
        passed: dict[int, Atom | None] = {}  # of these, how many turns each other group is taken to have made
        before = {r: value for r, value in here.state.items() if r not in written}
        most_in_all = MOST_TURNS**2 * (1 if group is None else group[1])
        mark = self.notes.mark()
        edges = len(here.segment.successors)
        round = -1
        while True:
            round += 1
            heads = {r: closed[r] if r in closed else terms.symbol(symbols[r], here.state[r].type) for r in changing}
            back, exits = self._walk(inside, head, Arrival(here.path, {**before, **heads}, here.segment), nest)
            if not back:
                break
            path, after = self._merged(back) if len(back) > 1 else back[0][:2]
            forms = {
                r: value
                for r in changing
                if r not in closed
                and (value := closed_form(terms, here.state[r], heads[r], after.get(r), loop)) is not None
            }
            heads = {r: value for r, value in heads.items() if r not in closed and r not in forms}
            forms |= cyclic_forms(terms, loop, here.state, heads, after)
            inner = {one.head: one for one in self.notes.loops[mark[2] :] if one.outer == nest}
            if group is not None:
                passed = {at: passes_over(terms, group[1] - 1, inner[at], [
                    (after[r], cycle) for r, (its, cycle) in guessed.items() if its == at and r in after
                ]) for at in counts if at in inner}  # fmt: skip
            wrong = [
                r for r, (at, cycle) in guessed.items()
                if at not in inner or r not in after
                or not continues(terms, after[r], inner[at], cycle, passed.get(at), (group or (0, 1))[1] - 1)
            ]  # fmt: skip
            if wrong:  # once more without them
                for r in wrong:
                    symbols[r].first = symbols[r].cycle = None
                closed, guessed, passed, round = {}, {}, {}, -1
                self._forget(mark, here.segment, edges)
                continue
            for r, cycle in ((r, symbols[r].cycle) for r in heads if r not in forms):
                if cycle is not None and cycle[0] in inner:
                    number = Symbol("turns of a loop so far", inner[cycle[0]].line, nest, True, head=cycle[0])
                    total = counts.setdefault(cycle[0], terms.symbol(number, LONG, (0, most_in_all)))
                    forms[r], guessed[r] = cyclic_term(terms, total, cycle[1], here.state[r].type), cycle
            if not forms or round in (ROUNDS, 2 * ROUNDS):
                most = most_turns(loop, [one for one in path if one not in here.path])
                has_ring = any(event.address is not None for event in self.notes.events[mark[4] :])
                if most >= loop.counter.bounds[1] or not has_ring or round > ROUNDS:
                    break
                loop.counter, round = terms.counter(loop, most), ROUNDS  # once more, with that limit
                forms, closed, guessed = {}, {}, {}
            closed |= forms
            self._forget(mark, here.segment, edges)
        if back:
            loop.changes = [(symbols[r], here.state[r], after.get(r)) for r in changing if r not in closed]
            for at, total in ((at, total) for at, total in counts.items() if at in inner):
                ((atom, _),) = total.terms
                assert isinstance(atom.detail, Symbol)
                start, own = linear(LONG, 0), inner[at].later(1)
                by = passed.get(at)
                if group is not None and by is not None:
                    loop.passed = terms.fit(term(by), by.type, LONG)
                    start, own = loop.passed.times(group[0]), own.plus(loop.passed, group[1] - 1)
                loop.totals[atom] = start, total.plus(own)
                loop.changes.append((atom.detail, *loop.totals[atom]))
            stays = [one for one in path if one not in here.path]
            loop.stays, loop.repeats = tuple(stays), True
            loop.facts.append(continued(terms, loop, stays))
            loop.limits += limits_of(terms, loop, stays)
            loop.guesses += counted(terms, loop, stays)
            for arrival in back:
                arrival.segment.successors.append((self._first(here.segment, edges), loop))
        else:
            for symbol in symbols.values():
                symbol.is_uniform = False
        self.notes.loops.append(loop)
        loop.entry = here.path
        loop.forms = [(form, here.state[r], after.get(r) if back else None) for r, form in closed.items()]
        loop.exits = tuple(tuple(one for one in arrival.path if one not in here.path) for _, arrival in exits)
        loop.returns = any(segment.exits for segment in self.notes.segments if loop in segment.loops)
        loop.leaving = tuple(one for way in loop.exits for one in way)
        has_ring = any(event.address is not None for event in self.notes.events[mark[4] :])
        return exits if has_ring else [(target, self._left(loop, arrival)) for target, arrival in exits]

    def _left(self, loop: Loop, arrival: Arrival) -> Arrival:
        """What registers hold where a loop was left, without the number of its last turn, if that is known."""
        last = last_turn(self.terms, loop, arrival.path)
        if last is None:
            return arrival
        known: dict[Atom, Linear] = {}
        state = {r: self.terms.substitute(value, {loop.turn: last}, known) for r, value in arrival.state.items()}
        return arrival._replace(state=state)

    @staticmethod
    def _first(segment: Segment, edges: int) -> Segment:
        """The segment that a loop starts with."""
        return segment.successors[edges][0]
