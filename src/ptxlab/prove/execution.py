"""Symbolic execution of a kernel: every thread, every block and every turn of a loop at once.

Blocks run in the order of the flow; where paths meet, registers hold a choice between terms. A loop whose every
decision is a constant runs turn by turn. Any other runs once, in any turn: a register that each turn
adds the same to is `first + step * turn`, one that each turn computes anew is that of the turn before, and any other is
a symbol.

What is noted on the way are segments, stretches without a barrier, with the accesses in them and where they lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.flow.control import END
from ptxlab.flow.engine import Node
from ptxlab.flow.expressions import COUNTER, Atom, Linear, linear
from ptxlab.flow.ranges import limits
from ptxlab.flow.symbolic import LONG, WORD
from ptxlab.isa import Jump, Match
from ptxlab.isa.special_registers import SpecialKind
from ptxlab.isa.types import Type

from .terms import FALSE, INTEGER, TRUE, UNSIGNED, Loop, Symbol, Terms, inverse, is_uniform, leaves, signed

MOST_UNROLLED = 80  # of a loop that runs turn by turn
MOST_STEPS = 150_000  # instructions, in all
MOST_DEPTH = 60  # of operations in each other
ROUNDS = 4  # in which closed forms of a loop are found, each with those before

Path = tuple[Linear, ...]
State = dict[int, Linear]


class UnsupportedError(Exception):
    """An instruction that the proof knows nothing of."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at, self.reason = at, reason


@dataclass(eq=False)
class Access:
    """Memory that an instruction reads or writes, by all threads for which `path` holds."""

    at: int
    line: int
    kind: str
    space: str
    bytes: int
    align: int
    element: int
    order: str
    address: Linear
    path: Path
    segment: Segment

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return self.kind != "load"


@dataclass(eq=False)
class Decision:
    """A branch or a guard, and the threads that come to it."""

    at: int
    line: int
    condition: Linear
    path: Path
    loops: tuple[Loop, ...]


@dataclass(eq=False)
class Segment:
    """Instructions without a barrier between them; `successors` come after, `back` of a loop if it is its next turn."""

    loops: tuple[Loop, ...]
    barrier: int | None = None
    """The barrier that it starts after; None: what comes before it is not a barrier."""
    accesses: list[Access] = field(default_factory=list)
    successors: list[tuple[Segment, Loop | None]] = field(default_factory=list)


class Arrival(NamedTuple):
    """A way to a block: what holds on it, what registers hold, and the segment that it comes from."""

    path: Path
    state: State
    segment: Segment


class Execution:
    """One run of a kernel for all threads."""

    def __init__(self, facts: Facts, terms: Terms, lines: Sequence[int]) -> None:
        self.facts, self.terms, self.lines = facts, terms, lines
        self.segments: list[Segment] = []
        self.decisions: list[Decision] = []
        self.loops: list[Loop] = []
        self.collectives: list[Decision] = []
        self._steps = 0
        self._counts = True
        self._order = facts.flow.ordered()
        self._dominators = facts.flow.dominators()
        self._blocks_of_loops = terms.loops
        self._relevant = _relevant(facts)
        self._plain: dict[int, bool] = {}
        self.barriers = {at for at, match in enumerate(facts.matches) if match and match.effects.barrier}
        entry = self._segment(())
        self.entry = entry
        _, exits = self._walk(set(self._order), 0, Arrival((), {}, entry), ())
        assert not exits

    # Blocks.

    def _segment(self, loops: tuple[Loop, ...], barrier: int | None = None) -> Segment:
        self.segments.append(Segment(loops, barrier))
        return self.segments[-1]

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
        segment = self._segment(loops)
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
        return _and(path, either), state

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
            guard = self._guard(at, instruction, state, path)
            if guard == FALSE:
                continue
            jump = instruction.opcode.jump
            if jump is not None:
                if jump is Jump.CALL or jump is Jump.INDEXED_BRANCH:
                    raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
                if guard != TRUE:
                    self._decide(at, guard, path, loops)
                targets = flow.targets.get(at, ()) if jump.branches else ()
                taken = _and(path, guard)
                leaving += [(target, Arrival(taken, state, segment)) for target in targets if target != END]
                if guard == TRUE:
                    return leaving
                path = _and(path, terms.negated(guard))
                if FALSE in path:
                    return leaving
                continue
            segment = self._effects(at, guard, path, state, segment, loops)
            self._write(at, guard, state, loops)
        if block.end < len(facts.instructions):
            leaving.append((number + 1, Arrival(path, state, segment)))
        return leaving

    def _decide(self, at: int, condition: Linear, path: Path, loops: tuple[Loop, ...]) -> None:
        self.decisions.append(Decision(at, self.lines[at], condition, path, loops))

    def _guard(self, at: int, instruction: ir.Instruction, state: State, path: Path) -> Linear:
        guard = instruction.guard
        if guard is None:
            return TRUE
        assert isinstance(guard.register, ir.Register)
        value = self._read(at, guard.register, guard.register.type, state, ())
        value = self.terms.negated(value) if guard.negated else value
        if value in path:
            return TRUE
        return FALSE if self.terms.negated(value) in path else value

    # Registers.

    def _read(self, at: int, operand: ir.Operand, type: Type, state: State, loops: tuple[Loop, ...]) -> Linear:
        terms = self.terms
        match operand:
            case ir.Register() if operand.vector == 1:
                value = state.get(operand.index)
                if value is None:
                    value = state[operand.index] = self._symbol(
                        f"`{operand.name}` is not written", at, loops, operand.type
                    )
                return terms.fit(value, operand.type, type)
            case ir.Negated():
                return terms.negated(self._read(at, operand.operand, type, state, loops))
            case ir.Sum() | ir.Address():
                return terms.add(self._read(at, operand.base, type, state, loops), operand.offset, type)
            case ir.SpecialRegister():
                found = terms.special(operand, type)
                same = operand.kind in (SpecialKind.BLOCK, SpecialKind.BLOCK_SIZE)
                return self._symbol(f"`{operand.name}`", at, loops, type, same) if found is None else found
            case ir.Immediate() | ir.VariableReference() | ir.Element():
                return terms.leaf(operand, type)
        return self._symbol("an operand that is not followed", at, loops, type)

    def _symbol(
        self, reason: str, at: int, loops: tuple[Loop, ...], type: Type, is_same: bool = False
    ) -> Linear:  # fmt: skip
        return self.terms.symbol(Symbol(reason, self.lines[at], loops, is_same), type)

    def _write(self, at: int, guard: Linear, state: State, loops: tuple[Loop, ...]) -> None:
        """Put what an instruction computes into the registers that matter."""
        written: State = {}
        for register in self.facts.effects.writes[at]:
            if register in self._relevant:
                value = self._result((at, register), state, loops)
                if value.depth > MOST_DEPTH:
                    value = self._symbol("an expression that is too large", at, loops, value.type)
                if guard != TRUE:
                    before = state.get(register)
                    if before is None:
                        before = self._symbol("a register that is not written", at, loops, value.type)
                    value = self.terms.choose(guard, value, before)
                written[register] = value
        state.update(written)

    def _result(self, node: Node, state: State, loops: tuple[Loop, ...]) -> Linear:
        at, terms = node[0], self.terms
        type = terms.type_of(node)
        loaded = self.facts.loaded_parameter(*node)
        if loaded is not None:
            return terms.unknown(node, type)
        plan = terms.plan(node)
        if plan is None or any(step.operation in ("unknown", "shuffle") for step in plan.steps):
            match = self.facts.matches[at]
            is_same = match is not None and _is_constant_load(match) and self._has_uniform_address(at, match, state)
            return self._symbol(self._reason(match), at, loops, type, is_same)
        operands = dict(plan.operands)
        values: list[Linear] = []
        for number, step in enumerate(plan.steps):
            if step.operation == "operand":
                values.append(self._read(at, operands[number], step.type, state, loops))
            else:
                values.append(terms.apply(step, [values[part] for part in step.parts]))
        return terms.fit(values[plan.result], plan.type, plan.register)

    def _reason(self, match: Match | None) -> str:
        if match is not None and match.effects.accesses:
            return "a value from memory"
        return "a value that is not computed from registers"

    def _has_uniform_address(self, at: int, match: Match, state: State) -> bool:
        for operand, expected in zip(self.facts.instructions[at].operands, match.expected, strict=True):
            if expected.kind == "address":
                address = self._read(at, operand, _address_type(operand), state, ())
                return is_uniform([address], lambda loop: True)
        return False

    # Loops.

    def _loop(self, head: int, here: Arrival, loops: tuple[Loop, ...]) -> list[tuple[int, Arrival]]:
        mark = len(self.segments), len(self.decisions), len(self.loops), len(self.collectives), self._steps
        edges = len(here.segment.successors)
        found = self._unrolled(head, here, loops)
        if found is not None:
            return found
        self._forget(mark[:4], here.segment, edges)
        return self._generic(head, here, loops)

    def _forget(self, mark: tuple[int, ...], segment: Segment, edges: int) -> None:
        del self.segments[mark[0] :], self.decisions[mark[1] :], self.loops[mark[2] :], self.collectives[mark[3] :]
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
            segment = self._segment(loops)
            for one in back:
                one.segment.successors.append((segment, None))
            here = Arrival(path, state, segment)
        return None

    def _generic(self, head: int, here: Arrival, loops: tuple[Loop, ...]) -> list[tuple[int, Arrival]]:
        """Run a loop once, in any turn."""
        facts, terms = self.facts, self.terms
        inside = self._blocks_of_loops[head]
        at = facts.flow.blocks[head].start
        loop = Loop(head, self.lines[at], loops)
        loop.counter = terms.counter(loop)
        nest = (*loops, loop)
        loop.has_barrier = any(facts.flow.block_at(at) in inside for at in self.barriers)
        written = {
            register
            for number in inside
            for at in range(facts.flow.blocks[number].start, facts.flow.blocks[number].end)
            for register in facts.effects.writes[at]
        } & self._relevant
        changing = sorted(written & here.state.keys())
        symbols = {r: Symbol("a value that a loop changes", loop.line, nest, True) for r in changing}
        closed: State = {}
        before = {r: value for r, value in here.state.items() if r not in written}
        mark = len(self.segments), len(self.decisions), len(self.loops), len(self.collectives)
        edges = len(here.segment.successors)
        for round in range(ROUNDS + 1):
            heads = {r: closed[r] if r in closed else terms.symbol(symbols[r], here.state[r].type) for r in changing}
            back, exits = self._walk(inside, head, Arrival(here.path, {**before, **heads}, here.segment), nest)
            if not back:
                break
            path, after = self._merged(back) if len(back) > 1 else back[0][:2]
            forms = {
                r: value
                for r in changing
                if r not in closed and (value := self._closed(here.state[r], heads[r], after.get(r), loop)) is not None
            }
            if not forms or round == ROUNDS:
                break
            closed |= forms
            self._forget(mark, here.segment, edges)
        if back:
            self._spread(loop, {r: (here.state[r], after.get(r)) for r in changing if r not in closed}, symbols)
            stays = [one for one in path if one not in here.path]
            loop.facts.append(self._continued(loop, stays))
            found = [one for stay in stays for one in (self._not_yet(loop, stay), self._within(loop, stay))]
            loop.limits += [limit for limit in found if limit is not None]
            for arrival in back:
                arrival.segment.successors.append((self._first(here.segment, edges), loop))
        else:
            for symbol in symbols.values():
                symbol.is_uniform = False
        self.loops.append(loop)
        conditions = [one for _, arrival in exits for one in arrival.path if one not in here.path]
        loop.is_uniform = is_uniform(conditions, lambda one: one is loop or one in loops or one.is_uniform)
        return exits

    @staticmethod
    def _first(segment: Segment, edges: int) -> Segment:
        """The segment that a loop starts with."""
        return segment.successors[edges][0]

    def _closed(self, first: Linear, head: Linear, after: Linear | None, loop: Loop) -> Linear | None:
        """What a register is at the start of each turn; None if no form for it is known."""
        if after is None or after.type.width != head.type.width:
            return None
        if after == head:
            return first
        terms = self.terms
        step = after.plus(head, -1) if head.type.kind != "p" else None
        turns = loop.counter.as_type(head.type) if head.type.kind != "p" else FALSE
        if step is not None and self._is_invariant([step], loop, allows_counter=False):
            return first.plus(terms.product(step, turns))
        if self._is_invariant([after], loop, allows_counter=True):
            (counter, _), *_ = loop.counter.terms
            previous = terms.substitute(after, {counter: loop.counter.plus(linear(loop.counter.type, -1))}, {})
            return terms.choose(terms.equal(loop.counter, linear(loop.counter.type, 0)), first, previous)
        return None

    @staticmethod
    def _is_invariant(values: Iterable[Linear], loop: Loop, *, allows_counter: bool) -> bool:
        """Whether terms are made of nothing that a turn of a loop changes, but perhaps the number of the turn."""
        for atom in leaves(values):
            detail = atom.detail
            if isinstance(detail, Symbol) and loop in detail.loops:
                return False
            if isinstance(detail, Loop) and (loop in detail.outer or (detail is loop and not allows_counter)):
                return False
        return True

    @staticmethod
    def _spread(loop: Loop, changes: dict[int, tuple[Linear, Linear | None]], symbols: dict[int, Symbol]) -> None:
        """Find which registers without a form are the same in all threads: first all, then fewer and fewer."""

        def same(one: Loop) -> bool:
            return one is loop or one in loop.outer or one.is_uniform

        is_changed = True
        while is_changed:
            is_changed = False
            for register, (first, after) in changes.items():
                if symbols[register].is_uniform and (after is None or not is_uniform([first, after], same)):
                    symbols[register].is_uniform = False
                    is_changed = True

    def _continued(self, loop: Loop, stays: Sequence[Linear]) -> Linear:
        """That this is the first turn, or the turn before it did not leave the loop."""
        terms = self.terms
        (counter, _), *_ = loop.counter.terms
        replaced: dict[Atom, Linear] = {counter: loop.counter.plus(linear(loop.counter.type, -1))}
        for atom in leaves(stays):
            detail = atom.detail
            if isinstance(detail, Symbol) and loop in detail.loops:
                earlier = Symbol(detail.reason, detail.line, detail.loops, detail.is_uniform)
                replaced[atom] = terms.symbol(earlier, atom.type)
            elif isinstance(detail, Loop) and loop in detail.outer and atom.kind == COUNTER:
                earlier = Symbol("turns of a loop in the turn before", detail.line, (loop,), False)
                replaced[atom] = terms.symbol(earlier, atom.type)
        known: dict[Atom, Linear] = {}
        previous = terms.every(terms.substitute(one, replaced, known) for one in stays)
        return terms.some([terms.equal(loop.counter, linear(loop.counter.type, 0)), previous])

    def _not_yet(self, loop: Loop, stays: Linear) -> Linear | None:
        """A limit of the turns of a loop that continues as long as a number, which each turn moves by a step, is not 0.

        `d(turn) = d(0) - step * turn` and `step` divides `d(0)`: then d was not 0 in any turn so far only if
        `step * turn <= d(0)`, the latter without a sign.
        """
        terms = self.terms
        equal = inverse(stays)
        atoms = [] if equal is None else [atom for atom, _ in equal.terms if atom.kind == "=="]
        if len(atoms) != 1 or atoms[0].parts[0].type.kind not in "usb":
            return None
        one, other = atoms[0].parts
        (counter, _), *_ = loop.counter.terms
        distance = one.plus(other, -1)
        step = -dict(distance.terms).get(counter, 0)
        first = distance.plus(loop.counter.as_type(distance.type), step)
        if step < 0:
            step, first = -step, first.times(-1)
        divides = step and all(factor % step == 0 for factor in (first.constant, *(f for _, f in first.terms)))
        if not divides or step & (step - 1) or not self._is_invariant([first], loop, allows_counter=False):
            return None
        limit = terms.fit(first.as_type(UNSIGNED[first.type.width]), UNSIGNED[first.type.width], LONG)
        return terms.at_most(loop.counter.times(step), limit)

    def _within(self, loop: Loop, stays: Linear) -> Linear | None:
        """That a number which each turn moves has not wrapped, where a loop continues as long as it is below a limit.

        In all turns before this, `first + step * turn < limit`. If `limit - 1 + step` fits the type, no sum so far
        wrapped, so that holds of the integers: `first + step * (turn - 1) < limit`. Likewise downwards.
        """
        terms = self.terms
        negated = inverse(stays)
        atoms = [atom for atom, _ in (stays if negated is None else negated).terms if atom.kind in ("<", "<=")]
        if len(atoms) != 1 or atoms[0].parts[0].type.kind not in "usb" or atoms[0].parts[0].type.width > 32:
            return None
        one, other = atoms[0].parts
        strict = (atoms[0].kind == "<") == (negated is None)
        if negated is not None:
            one, other = other, one
        for moving, limit, sign in ((one, other, 1), (other, one, -1)):
            parts = self._moved(moving, loop)
            if parts is None or not self._is_invariant([limit], loop, allows_counter=False):
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
            starts = terms.equal(loop.counter, linear(loop.counter.type, 0))
            return terms.some([starts, terms.negated(terms.every([fits, moves])), below])
        return None

    def _moved(self, value: Linear, loop: Loop) -> tuple[Linear, Linear] | None:
        """What a term is in the first turn, and what each turn adds; None if that is not always the same."""
        first, step = linear(value.type, value.constant), linear(value.type, 0)
        for atom, factor in value.terms:
            own = linear(value.type, 0, {atom: factor})
            if atom.detail is loop:
                step = step.plus(linear(value.type, factor))
            elif (
                atom.kind == "*"
                and atom.type.width == value.type.width
                and loop.counter.as_type(atom.type) in atom.parts
            ):
                others = [part for part in atom.parts if part != loop.counter.as_type(atom.type)]
                if len(others) != 1 or not self._is_invariant(others, loop, allows_counter=False):
                    return None
                step = step.plus(others[0].as_type(value.type), factor)
            elif self._is_invariant([own], loop, allows_counter=False):
                first = first.plus(own)
            else:
                return None
        return (first, step) if step != linear(value.type, 0) else None

    # What instructions do besides writing registers.

    def _effects(
        self, at: int, guard: Linear, path: Path, state: State, segment: Segment, loops: tuple[Loop, ...]
    ) -> Segment:
        match, instruction = self.facts.matches[at], self.facts.instructions[at]
        if match is None:
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        if instruction.opcode.mnemonic == "discard":  # it leaves any value in memory
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        if self._is_plain(at, match):
            return segment
        effects = match.effects
        if effects.barrier is not None:
            return self._barrier(at, match, guard, path, state, segment, loops)
        if effects.converges and effects.accesses:  # lanes access memory for each other
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        if effects.converges:
            self.collectives.append(Decision(at, self.lines[at], guard, path, loops))
        if effects.steps:
            raise UnsupportedError(at, f"asynchronous operations are not followed: `{instruction.opcode.text}`")
        for access in effects.accesses:
            if access.space == "param" or access.kind not in ("load", "store", "update"):
                continue
            if access.is_async or access.bytes is None:
                raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
            self._access(at, match, access.operand, access.kind, access.space, access.order, access.bytes,
                         _and(path, guard), state, segment, loops)  # fmt: skip
        return segment

    def _is_plain(self, at: int, match: Match) -> bool:
        """Whether an instruction does nothing but compute."""
        if id(match) not in self._plain:
            e = match.effects
            self._plain[id(match)] = not (e.accesses or e.steps or e.barrier or e.converges)
        return self._plain[id(match)]

    def _barrier(
        self, at: int, match: Match, guard: Linear, path: Path, state: State, segment: Segment, loops: tuple[Loop, ...]
    ) -> Segment:
        instruction, effects = self.facts.instructions[at], match.effects
        if effects.barrier != "block" or not effects.waits or any(one.role == "write" for one in match.expected):
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        counts = [
            operand
            for operand, expected in zip(instruction.operands, match.expected, strict=True)
            if expected.name == "b" and expected.role == "read"
        ]
        number = self._read(at, instruction.operands[-1 - len(counts)], WORD, state, loops)
        if not is_uniform([number], lambda loop: loop.is_uniform or loop in loops):
            raise UnsupportedError(at, "the number of the barrier may differ between threads")
        threads = self.terms.block[0] * self.terms.block[1] * self.terms.block[2]
        for operand in counts:
            count = self._read(at, operand, WORD, state, loops)
            if not count.is_constant or count.constant != threads:
                raise UnsupportedError(at, "a barrier for a part of the block is not followed")
        if guard != TRUE:
            self._decide(at, guard, path, loops)
            raise UnsupportedError(at, "a barrier under a guard is not followed")
        after = self._segment(loops, at)
        segment.successors.append((after, None))
        return after

    def _access(
        self, at: int, match: Match, name: str, kind: str, space: str | None, order: str, bytes: int, path: Path,
        state: State, segment: Segment, loops: tuple[Loop, ...],
    ) -> None:  # fmt: skip
        instruction = self.facts.instructions[at]
        extent = match.effects.extents.get(name)
        align = extent.align if extent is not None and isinstance(extent.align, int) else bytes
        for operand, expected in zip(instruction.operands, match.expected, strict=True):
            if expected.name == name and expected.kind == "address":
                address = self._read(at, operand, _address_type(operand), state, loops)
                data = next((one for one in match.expected if one.kind == "value" and one.type is not None), None)
                element = data.type.width // 8 if data is not None and data.type is not None else bytes
                segment.accesses.append(
                    Access(at, self.lines[at], kind, (space or "generic").partition("::")[0], bytes, align,
                           max(1, min(element, bytes)), order, address, path, segment)
                )  # fmt: skip
                return
        raise UnsupportedError(at, f"the address of `{instruction.opcode.text}` is not followed")


def _and(path: Path, condition: Linear) -> Path:
    """A path on which one more predicate holds."""
    if condition == TRUE or condition in path:
        return path
    return (*path, condition)


def _address_type(operand: ir.Operand) -> Type:
    base = operand.base if isinstance(operand, ir.Address) else operand
    return base.type if isinstance(base, ir.Register) else LONG


def _is_constant_load(match: Match) -> bool:
    accesses = match.effects.accesses
    return bool(accesses) and all(one.kind == "load" and one.space in ("const", "param") for one in accesses)


def _relevant(facts: Facts) -> frozenset[int]:
    """The registers that decide where threads go and which memory they access."""
    pending: list[int] = []
    for instruction, match in zip(facts.instructions, facts.matches, strict=True):
        guard = instruction.guard
        if guard is not None and isinstance(guard.register, ir.Register):
            pending.append(guard.register.index)
        if match is None:
            continue
        is_barrier = match.effects.barrier is not None
        for operand, expected in zip(instruction.operands, match.expected, strict=True):
            base = operand.base if isinstance(operand, ir.Address) else operand
            if (expected.kind == "address" or is_barrier) and isinstance(base, ir.Register):
                pending.append(base.index)
    found = set(pending)
    while pending:
        register = pending.pop()
        for at in facts.chains.writes.get(register, ()):
            match = facts.matches[at]
            if match is not None and match.effects.accesses:
                continue
            fresh = set(facts.effects.reads[at]) - found
            found |= fresh
            pending += fresh
    return frozenset(found)
