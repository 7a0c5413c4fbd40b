"""Registers as terms: what instructions read, and what they write by the steps of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.flow.engine import Node, NodePlan
from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.ranges import Bounds
from ptxlab.flow.symbolic import LONG, WORD
from ptxlab.isa import Match
from ptxlab.isa.special_registers import SpecialKind
from ptxlab.isa.types import Type
from ptxlab.prove.terms.predicates import FALSE, TRUE, conjuncts
from ptxlab.prove.terms.terms import Loop, Symbol, Terms

from .maps import coordinates_of
from .segments import Path, State

if TYPE_CHECKING:
    from .tensor_memory import Allocation

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
        self.allocations: dict[Linear, Allocation] = {}
        """Of tensor memory, by the address in shared memory at which its address is."""
        self.is_synchronized: Callable[[Allocation, Path], bool] = lambda *_: False
        """Whether a barrier is between an allocation and a place on a path, at the moment."""

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

    def write(self, at: int, guard: Linear, state: State, loops: tuple[Loop, ...], path: Path = ()) -> None:
        """Put what an instruction computes into the registers that matter."""
        written: State = {}
        for register in self.facts.effects.writes[at]:
            if register in self.relevant:
                value = self._allocated(at, register, state, path) or self._result((at, register), state, loops)
                if value.depth > MOST_DEPTH:
                    value = self.symbol("an expression that is too large", at, loops, value.type)
                if guard != TRUE:
                    before = state.get(register)
                    if before is None:
                        before = self.symbol("a register that is not written", at, loops, value.type)
                    value = self.terms.choose(guard, value, before)
                written[register] = value
        state.update(written)

    def _allocated(self, at: int, register: int, state: State, path: Path) -> Linear | None:
        """The address of tensor memory, where that is what is loaded."""
        match, instruction = self.facts.matches[at], self.facts.instructions[at]
        if not self.allocations or match is None or match.effects.steps or match.effects.converges:
            return None
        loads = [(one.kind, one.space, one.bytes) for one in match.effects.accesses]
        if loads != [("load", "shared", 4)] or len(self.facts.effects.writes[at]) != 1:
            return None
        (operand,) = (one for one, expected in zip(instruction.operands, match.expected, strict=True)
                      if expected.kind == "address")  # fmt: skip
        place = self.terms.placed(self.read(at, operand, address_type(operand), state, ()))
        allocation = self.allocations.get(place)
        if allocation is None or not self.is_synchronized(allocation, path):
            return None
        return self.terms.fit(
            self.terms.symbol(allocation.base, WORD, (0, 511)), WORD, self.terms.type_of((at, register))
        )

    def _result(self, node: Node, state: State, loops: tuple[Loop, ...]) -> Linear:
        at, terms = node[0], self.terms
        type = terms.type_of(node)
        loaded = self.facts.loaded_parameter(*node)
        if loaded is not None:
            return terms.unknown(node, type)
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
