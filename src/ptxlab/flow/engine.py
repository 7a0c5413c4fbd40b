"""The engine: what each write of a register leaves there, in any domain, solved when it is asked for.

A node is an instruction and a register that it writes. Its value follows from the values of the writes that reach its
operands, over all paths. Nothing is known at first; a node that changes has those evaluated again that depend on it.
What changes often is in a loop, and the domain widens it.

A domain says what a constant or a special register is (`leaf`), what a step makes of values (`apply`), and what holds
if either of two values is there (`join`). The steps of instructions come from the table.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ptxlab import ir
from ptxlab.ir.effects import registers_in
from ptxlab.isa import Match
from ptxlab.isa.types import Type, type_named

from .steps import PREDICATE, Step, steps_of

if TYPE_CHECKING:
    from .facts import Facts

V = TypeVar("V")
Node = tuple[int, int]
PATIENCE = 4  # changes of a node before it is widened


class NodePlan(NamedTuple):
    """How the value of a node is computed: the steps, the operands that some of them read, and which is the result."""

    steps: tuple[Step, ...]
    operands: tuple[tuple[int, ir.Operand], ...]
    result: int
    type: Type
    register: Type


class Engine(Generic[V]):
    """Values of one domain in one function; None is a value that no path brings."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.known: dict[Node, V | None] = {}
        self.sources: dict[Node, dict[Node, None]] = defaultdict(dict)
        self._users: dict[Node, set[Node]] = defaultdict(set)
        self._changes: dict[Node, int] = defaultdict(int)
        self._plans = facts.plans
        self._pending: list[Node] = []
        self._queued: set[Node] = set()

    # What a domain says.

    def leaf(self, operand: ir.Operand, type: Type) -> V:
        """A constant, a special register, or a name, read as a type."""
        raise NotImplementedError

    def unknown(self, node: Node, type: Type) -> V:
        """What an instruction writes that is not computed from registers."""
        raise NotImplementedError

    def apply(self, step: Step, parts: list[V]) -> V:
        """What a step makes of its parts."""
        raise NotImplementedError

    def join(self, one: V, other: V) -> V:
        """What holds if either is there."""
        raise NotImplementedError

    def widen(self, old: V, new: V, register: Type) -> V:
        """A value that holds for both, and that is soon the last of its kind."""
        return self.join(old, new)

    def merge(self, asking: Node, register: ir.Register, values: dict[int, V]) -> V:
        """What an instruction reads in a register, of what several instructions wrote to it."""
        first, *others = values.values()
        for other in others:
            first = self.join(first, other)
        return first

    # Questions.

    def value(self, at: int, operand: ir.Operand, type: Type | None = None) -> V:
        """What instruction `at` reads of an operand."""
        asking = (at, ASKED)
        type = type or (operand.type if isinstance(operand, ir.Register) else _OTHER)
        found = self.read(asking, operand, type)
        while self._pending:
            self._solve()
            found = self.read(asking, operand, type)
        return self.unknown(asking, type) if found is None else found

    def solve(self, node: Node) -> V | None:
        """The value of a node."""
        self.ask(None, node)
        self._solve()
        return self.known[node]

    def _solve(self) -> None:
        pending = self._pending
        while pending:
            node, size = pending[-1], len(pending)
            new = self.evaluate(node)
            if new is None and len(pending) > size:
                continue  # what it depends on comes first
            del pending[size - 1]
            self._queued.discard(node)
            old = self.known[node]
            if new is None or new == old:
                continue
            if old is not None:
                self._changes[node] += 1
                is_late = self._changes[node] > PATIENCE
                new = self.widen(old, new, self.type_of(node)) if is_late else self.join(old, new)
            if new != old:
                self.known[node] = new
                pending.extend(user for user in self._users[node] if user not in self._queued)
                self._queued |= self._users[node]

    def ask(self, asking: Node | None, node: Node) -> V | None:
        """The value of a node as far as it is known, for another that depends on it."""
        if asking is not None and asking[1] != ASKED:
            self._users[node].add(asking)
            self.sources[asking][node] = None
        if node not in self.known:
            self.known[node] = None
            self._pending.append(node)
            self._queued.add(node)
        return self.known[node]

    def read(self, asking: Node, operand: ir.Operand, type: Type) -> V | None:
        """What an instruction reads of an operand as a type, as far as it is known."""
        match operand:
            case ir.Register() if operand.vector == 1:
                value = self.register(asking, operand)
                return None if value is None else self._fit(value, operand.type, type)
            case ir.Negated():
                inner = self.read(asking, operand.operand, PREDICATE)
                return None if inner is None else self.apply(_NOT, [inner, self.apply(_TRUE, [])])
            case ir.Minus():
                return self.read(asking, operand.operand, type)
            case ir.Sum() | ir.Address():
                base = self.read(asking, operand.base, type)
                return None if base is None else self.add(base, operand.offset, type)
            case ir.Register() | ir.VectorElement() | ir.Selection():
                return self.unknown(asking, type)
        return self.leaf(operand, type)

    def add(self, value: V, distance: int, type: Type) -> V:
        """A value and a constant."""
        if not distance:
            return value
        constant = self.apply(Step("constant", type, detail=distance & ((1 << type.width) - 1)), [])
        return self.apply(Step("+", type, (0, 1), type), [value, constant])

    def register(self, asking: Node, register: ir.Register) -> V | None:
        """What an instruction reads in a register, as far as it is known."""
        at, chains = asking[0], self.facts.chains
        before = chains.steps
        writes = chains.definitions(at, register.index)
        self.facts.effort.spend(len(writes) + 1 + chains.steps - before)
        if not writes:
            return self.unknown(asking, register.type)
        known: dict[int, V] = {}
        for write in writes:
            value = self.ask(asking, (write, register.index))
            if value is not None:
                known[write] = value
        return self.merge(asking, register, known) if known else None

    def evaluate(self, node: Node) -> V | None:
        """What an instruction writes to a register."""
        plan = self.plan(node)
        if plan is None:
            return self.unknown(node, self.type_of(node))
        read = {at: self.read(node, operand, plan.steps[at].type) for at, operand in plan.operands}
        if None in read.values():
            return None
        values: list[V] = []
        for at, step in enumerate(plan.steps):
            if step.operation == "operand":
                value = read[at]
                assert value is not None
                values.append(value)
            elif step.operation == "unknown":
                values.append(self.unknown((node[0], ASKED), step.type))
            else:
                values.append(self.apply(step, [values[part] for part in step.parts]))
        return self._fit(values[plan.result], plan.type, plan.register)

    def plan(self, node: Node) -> NodePlan | None:
        """How a node is computed; None if it is not computed from operands."""
        if node not in self._plans:
            self._plans[node] = self._plan(node)
        return self._plans[node]

    def _plan(self, node: Node) -> NodePlan | None:
        at, index = node
        instruction, match = self.facts.instructions[at], self.facts.matches[at]
        found = None if match is None else _result(instruction, match, index)
        steps = None if match is None else steps_of(match, immediates_of(instruction, match))
        if match is None or found is None or steps is None or found[0] not in steps.results:
            return None
        given = operands_of(instruction, match)
        read = [(n, given.get(step.detail)) for n, step in enumerate(steps.steps) if step.operation == "operand"]
        operands = tuple((n, operand) for n, operand in read if operand is not None)
        if len(operands) < len(read):
            return None
        return NodePlan(steps.steps, operands, steps.results[found[0]].at, found[1], self.type_of(node))

    def _fit(self, value: V, own: Type, type: Type) -> V:
        """A value of one type in a register, or read, as another: cut, or extended by its sign."""
        if own.width == type.width:
            return value
        return self.apply(Step("cast", type, (0,), own), [value])

    def type_of(self, node: Node) -> Type:
        """The type of the register of a node."""
        registers = (one for operand in self.facts.instructions[node[0]].operands for one in registers_in(operand))
        return next(register.type for register in registers if register.index == node[1])


ASKED = -2  # in place of a register: the question of a rule
_OTHER = type_named("u64")
_TRUE = Step("constant", PREDICATE, detail=1)
_NOT = Step("^", PREDICATE, (0, 1), PREDICATE)


def _result(instruction: ir.Instruction, match: Match, index: int) -> tuple[tuple[str, int], Type] | None:
    """The name and the type of the result that an instruction writes to a register; None if there is not just one."""
    found = []
    for operand, expected in zip(instruction.operands, match.expected, strict=True):
        if expected.role == "read":
            continue
        pair = ((operand.first, expected), (operand.second, expected.second)) if isinstance(operand, ir.Pair) else ()
        for part, one in pair or ((operand, expected),):
            elements = part.elements if isinstance(part, ir.Vector) else (part,)
            for number, element in enumerate(elements):
                if (
                    isinstance(element, ir.Register)
                    and element.index == index
                    and element.vector == 1
                    and one
                    and one.type
                ):
                    found.append(((one.name, number), one.type))
    return found[0] if len(found) == 1 else None


def operands_of(instruction: ir.Instruction, match: Match) -> dict[tuple[str, int], ir.Operand]:
    """The operands that an instruction reads, by their names and the elements of vectors."""
    found: dict[tuple[str, int], ir.Operand] = {}
    for operand, expected in zip(instruction.operands, match.expected, strict=True):
        if expected.role != "write":
            elements = operand.elements if isinstance(operand, ir.Vector) else (operand,) * (expected.count or 1)
            found.update({(expected.name, number): element for number, element in enumerate(elements)})
    return found


def immediates_of(instruction: ir.Instruction, match: Match) -> tuple[int, ...]:
    """The operands that can only be constants."""
    return tuple(
        operand.value if isinstance(operand, ir.Immediate) else 0
        for operand, expected in zip(instruction.operands, match.expected, strict=True)
        if expected.role != "write" and expected.kind == "immediate"
    )
