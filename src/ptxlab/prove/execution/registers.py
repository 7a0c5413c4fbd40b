"""Registers as terms: what instructions read, and what they write by the steps of the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.flow.engine import Node, NodePlan
from ptxlab.flow.expressions import ADDRESS, Linear, linear
from ptxlab.flow.ranges import Bounds
from ptxlab.flow.symbolic import LONG, WORD
from ptxlab.isa import Match
from ptxlab.isa.special_registers import SpecialKind
from ptxlab.isa.types import Type
from ptxlab.prove.terms.predicates import FALSE, TRUE, conjuncts
from ptxlab.prove.terms.terms import Loop, Symbol, Terms

from .maps import coordinates_of
from .segments import Path, State

ASKED = frozenset("membermask read size parity count bytes a_desc b_desc idesc taddr columns mask s_desc".split())
"""Operands that say which lanes wait for each other, how much is copied, for what is waited, and what an MMA reads."""
CONSTANT = "constant"  # the order of loads from memory that nothing writes while the kernel runs
UNCHANGED = ("weak", CONSTANT)  # orders of loads with which a write in between is a race
SHARED = ("param", "const", "global", "shared", "shared::cta")
MOST_DEPTH = 60  # of operations in each other


class Registers:
    """What the registers of a kernel hold."""

    def __init__(self, facts: Facts, terms: Terms, lines: Sequence[int]) -> None:
        self.facts, self.terms, self.lines = facts, terms, lines
        self.relevant = _relevant(facts)
        """Those that decide where threads go and which memory they access."""
        self.results: dict[int, Linear] = {}
        """What an atomic operation returns, or a load what was stored, where that is known, by their places."""

    def guard(self, at: int, state: State, path: Path, loops: tuple[Loop, ...]) -> Linear:
        """Under which condition an instruction runs, given that its path is taken."""
        guard = self.facts.instructions[at].guard
        if guard is None:
            return TRUE
        assert isinstance(guard.register, ir.Register)
        value = self.read(at, guard.register, guard.register.type, state, loops)
        value = self.terms.negated(value) if guard.negated else value
        if all(one in path for one in conjuncts(value)):
            return TRUE
        return FALSE if self.terms.negated(value) in path else value

    def read(self, at: int, operand: ir.Operand, type: Type, state: State, loops: tuple[Loop, ...]) -> Linear:
        """What an operand is, read as a type."""
        terms = self.terms
        match operand:
            case ir.Register() if operand.vector == 1:
                value = state.get(operand.index)
                if value is None:
                    value = state[operand.index] = self.symbol(
                        f"`{operand.name}` is not written", at, loops, operand.type
                    )
                return terms.fit(value, operand.type, type)
            case ir.Negated():
                return terms.negated(self.read(at, operand.operand, type, state, loops))
            case ir.Sum() | ir.Address():
                return terms.add(self.read(at, operand.base, type, state, loops), operand.offset, type)
            case ir.SpecialRegister():
                found = terms.special(operand, type)
                same = operand.kind == SpecialKind.BLOCK_SIZE or (
                    operand.kind == SpecialKind.BLOCK and terms.ranks == 1)  # fmt: skip
                return self.symbol(f"`{operand.name}`", at, loops, type, same) if found is None else found
            case ir.Immediate() | ir.VariableReference() | ir.Element():
                return terms.leaf(operand, type)
        return self.symbol("an operand that is not followed", at, loops, type)

    def named(self, at: int, name: str) -> ir.Operand | None:
        """An operand that is not written, by its name in the table."""
        match = self.facts.matches[at]
        pairs = () if match is None else zip(self.facts.instructions[at].operands, match.expected, strict=True)
        return next((one for one, expected in pairs if expected.name == name and expected.role != "write"), None)

    def symbol(
        self, reason: str, at: int, loops: tuple[Loop, ...], type: Type, is_same: bool = False
    ) -> Linear:  # fmt: skip
        """A value of which nothing is known."""
        return self.terms.symbol(Symbol(reason, self.lines[at], loops, is_same), type)

    def write(self, at: int, guard: Linear, state: State, loops: tuple[Loop, ...]) -> None:
        """Put what an instruction computes into the registers that matter."""
        written: State = {}
        for register in self.facts.effects.writes[at]:
            if register in self.relevant:
                value = self._result((at, register), state, loops)
                if value.depth > MOST_DEPTH:
                    value = self.symbol("an expression that is too large", at, loops, value.type)
                if guard != TRUE:
                    before = state.get(register)
                    if before is None:
                        before = self.symbol("a register that is not written", at, loops, value.type)
                    value = self.terms.choose(guard, value, before)
                written[register] = value
        state.update(written)

    def _result(self, node: Node, state: State, loops: tuple[Loop, ...]) -> Linear:
        at, terms = node[0], self.terms
        type = terms.type_of(node)
        loaded = self.facts.loaded_parameter(*node)
        if loaded is not None:
            return terms.unknown(node, type)
        if at in self.results:
            return terms.fit(self.results[at], self.results[at].type, type)
        match = self.facts.matches[at]
        if match is not None and match.effects.elects:  # an assumption: it is the first lane
            lane = terms.lane()
            return terms.equal(lane, linear(WORD, 0)) if type.kind == "p" else linear(type, 0)
        plan = terms.plan(node)
        value = None if plan is None else self._computed(plan, at, state, loops)
        if plan is None or value is None:
            address = self._address(at, match, state) if match is not None and _is_shared_load(match) else None
            is_same = match is not None and match.effects.uniform and match.effects.barrier == "block"
            is_same &= terms.ranks == 1
            symbol = Symbol(self._reason(match), self.lines[at], loops, is_same or address is not None, address)
            return self.terms.symbol(symbol, type, _bounds_of_load(match, type))
        return terms.fit(value, plan.type, plan.register)

    def _computed(self, plan: NodePlan, at: int, state: State, loops: tuple[Loop, ...]) -> Linear | None:
        """What the steps of an instruction compute; None: that is not known."""
        operands = dict(plan.operands)
        values: list[Linear | None] = []
        for number, step in enumerate(plan.steps):
            parts = [value for part in step.parts if (value := values[part]) is not None]
            found = None
            if step.operation == "operand":
                found = self.read(at, operands[number], step.type, state, loops)
            elif len(parts) < len(step.parts) or step.operation == "unknown":
                pass
            elif step.operation == "shuffle":
                is_same = step.type.kind != "p" and self.terms.is_of_warp(parts[0], loops)
                found = parts[0] if is_same else None  # of whichever lane it is
            else:
                found = self.terms.apply(step, parts)
            values.append(found)
        return values[plan.result]

    def _reason(self, match: Match | None) -> str:
        if match is not None and match.effects.accesses:
            return "a value from memory"
        return "a value that is not computed from registers"

    def _address(self, at: int, match: Match, state: State) -> Linear | None:
        """The address of a load."""
        for operand, expected in zip(self.facts.instructions[at].operands, match.expected, strict=True):
            if expected.kind == "address":
                spaces = {one.space for one in match.effects.accesses if one.operand == expected.name}
                return self.address(at, operand, next(iter(spaces), None), state, ())
        return None

    def address(
        self, at: int, operand: ir.Operand, space: str | None, state: State, loops: tuple[Loop, ...]
    ) -> Linear:  # fmt: skip
        """The address that an operand is; in shared memory, with the rank of its block in a cluster."""
        found = self.read(at, operand, address_type(operand), state, loops)
        is_shared = (space or "").startswith("shared") or any(atom.kind == "window" for atom, _ in found.terms)
        return self.terms.placed(found) if is_shared else found


def address_type(operand: ir.Operand) -> Type:
    """The type of an address."""
    base = operand.base if isinstance(operand, ir.Address) else operand
    return base.type if isinstance(base, ir.Register) else LONG


def _is_shared_load(match: Match) -> bool:
    """Whether all threads that load from an address have the same value: a write in between would be a race."""
    accesses, is_own = match.effects.accesses, match.effects.converges or match.effects.steps
    is_plain = all(one.kind == "load" and one.order in UNCHANGED and one.space in SHARED for one in accesses)
    return bool(accesses) and is_plain and not is_own


def _bounds_of_load(match: Match | None, type: Type) -> Bounds | None:
    """What a value from memory is between that is narrower than its register, and without a sign."""
    if match is None or [one.kind for one in match.effects.accesses] != ["load"] or match.effects.steps:
        return None
    loaded = next((one.type for one in match.expected if one.role == "write"), None)
    is_narrow = loaded is not None and loaded.kind in "ub" and loaded.width < type.width and type.kind in "usb"
    return (0, (1 << loaded.width) - 1) if loaded is not None and is_narrow else None


def stored_words(facts: Facts, at: int) -> list[ir.Register]:
    """The register that an instruction stores in shared memory, of those that may hold an integer."""
    match = facts.matches[at]
    if match is None or match.effects.steps or match.effects.converges:
        return []
    if [(one.kind, one.space) for one in match.effects.accesses] != [("store", "shared")]:
        return []
    pairs = zip(facts.instructions[at].operands, match.expected, strict=True)
    return [one for one, expected in pairs if isinstance(one, ir.Register) and one.vector == 1
            and expected.kind == "value" and expected.type is not None and expected.type.kind in "usb"]  # fmt: skip


def _place(facts: Facts, at: int) -> Linear | None:
    """The address in shared memory that an instruction accesses, if it is a constant."""
    match = facts.matches[at]
    if match is None or [one.space for one in match.effects.accesses] != ["shared"]:
        return None
    name = match.effects.accesses[0].operand
    (operand,) = (one for one, expected in zip(facts.instructions[at].operands, match.expected, strict=True)
                  if expected.name == name)  # fmt: skip
    found = facts.symbolic(at, operand)
    return found if all(atom.kind == ADDRESS for atom, _ in found.terms) else None


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
            is_asked = is_barrier or expected.kind == "address" or expected.name in ASKED
            if is_asked:
                pending += [one.index for one in (base, *coordinates_of(operand)) if isinstance(one, ir.Register)]
    stored: dict[Linear | None, list[int]] = defaultdict(list)  # what is stored at one place in shared memory
    for number in range(len(facts.instructions)):
        stored[_place(facts, number)] += [one.index for one in stored_words(facts, number)]
    stored.pop(None, None)
    found = set(pending)
    while pending:
        register = pending.pop()
        for at in facts.chains.writes.get(register, ()):
            match = facts.matches[at]
            accesses = () if match is None else match.effects.accesses
            fresh = set(stored.pop(_place(facts, at), ())) if accesses else set[int]()
            if not accesses or accesses[0].kind == "update":
                fresh |= set(facts.effects.reads[at])
            fresh -= found
            found |= fresh
            pending += fresh
    return frozenset(found)
