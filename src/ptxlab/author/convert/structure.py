"""What of a body is a loop or a branch that Python can say, and the registers in its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ptxlab import ir
from ptxlab.isa import Jump


@dataclass(frozen=True, slots=True)
class ControlStructure:
    """A loop, or a stretch that some threads skip: the statements in it, and where the body continues after it.

    `otherwise` are the statements for the threads that skip, if there are any.
    """

    is_loop: bool
    guard: ir.Guard | None
    region: list[ir.Statement]
    end: int
    otherwise: list[ir.Statement] | None = None


class Structures:
    """The loops and skipped stretches of a function.

    A label that only one `bra` of its own block names is either the start of a loop, if the branch is after it, or
    the end of a stretch that the branch skips. If that stretch ends by a jump, again the only one to its label, what it
    jumps over is for the threads that skipped.
    """

    def __init__(self, function: ir.Function, is_contained: Callable[[int, int], bool]) -> None:
        self.is_contained = is_contained  # whether what instructions from a number up to another return is read there
        self.positions: dict[int, int] = {}  # of each statement in the body or block that holds it, by its identity
        self.numbers: dict[int, int] = {}  # how many instructions precede each statement
        self._position(function.body or [], 0)
        uses: Counter[str] = Counter()
        self.branches: dict[str, ir.Instruction] = {}  # by the label that they go to
        self.labels: dict[str, ir.Label] = {}
        known: Counter[str] = Counter()
        for statement in function.statements():
            if isinstance(statement, ir.Instruction):
                uses.update(part.name for part in statement.operands if isinstance(part, ir.LabelReference))
                name = _target(statement)
                if name is not None:
                    self.branches[name] = statement
            elif isinstance(statement, ir.BranchTargets):
                uses.update(statement.targets)
            elif isinstance(statement, ir.Label):
                self.labels[statement.name] = statement
                known[statement.name] += 1
        self.sole = {name for name in self.branches if uses[name] == 1 and known[name] == 1}

    def at(self, body: list[ir.Statement], at: int) -> ControlStructure | None:
        """The structure that starts here."""
        statement = body[at]
        if isinstance(statement, ir.Label) and statement.name in self.sole:
            branch = self.branches[statement.name]
            end = self._index_in(body, branch)
            return ControlStructure(True, branch.guard, body[at + 1 : end], end + 1) if end > at else None
        name = _target(statement)
        if name not in self.sole or not isinstance(statement, ir.Instruction) or statement.guard is None:
            return None
        label = self.labels[name]
        end = self._index_in(body, label)
        if end <= at or not self.is_contained(self.numbers[id(statement)] + 1, self.numbers[id(label)]):
            return None
        region = body[at + 1 : end]
        return self._with_otherwise(body, statement.guard, region, end) or ControlStructure(
            False, statement.guard, region, end + 1
        )

    def _with_otherwise(
        self, body: list[ir.Statement], guard: ir.Guard, region: list[ir.Statement], middle: int
    ) -> ControlStructure | None:
        """The two stretches of a branch, where the first ends by a jump over the second."""
        jump = region[-1] if region else None
        name = _target(jump) if jump is not None else None
        if name not in self.sole or not isinstance(jump, ir.Instruction) or jump.guard is not None:
            return None
        label = self.labels[name]
        end = self._index_in(body, label)
        if end <= middle or not self.is_contained(self.numbers[id(body[middle])], self.numbers[id(label)]):
            return None
        return ControlStructure(False, guard, region[:-1], end + 1, body[middle + 1 : end])

    def _position(self, body: list[ir.Statement], number: int) -> int:
        """Record where each statement is; `number` instructions precede the body. Return that of its end."""
        for position, statement in enumerate(body):
            self.positions[id(statement)] = position
            self.numbers[id(statement)] = number
            if isinstance(statement, ir.BlockStatement):
                number = self._position(statement.body, number)
            elif isinstance(statement, ir.Instruction):
                number += 1
        return number

    def _index_in(self, body: list[ir.Statement], statement: ir.Statement) -> int:
        """Where a statement is in a part of a body, or -1."""
        position = self.positions[id(statement)] - self.positions[id(body[0])]
        return position if 0 <= position < len(body) and body[position] is statement else -1


def _target(statement: ir.Statement) -> str | None:
    """Where a plain branch goes; one that all threads take may say so."""
    if not isinstance(statement, ir.Instruction):
        return None
    is_uniform = statement.opcode.modifiers == ("uni",)
    if statement.opcode.jump is not Jump.BRANCH or (statement.opcode.modifiers and not is_uniform):
        return None
    if is_uniform and statement.guard is not None:
        return None
    if statement.guard is not None and not isinstance(statement.guard.register, ir.Register):
        return None
    label = statement.operands[0] if statement.operands else None
    return label.name if isinstance(label, ir.LabelReference) else None


def registers_of(instruction: ir.Instruction) -> Iterator[ir.Register]:
    """Every register in an instruction, its guard included."""
    if instruction.guard is not None and isinstance(instruction.guard.register, ir.Register):
        yield instruction.guard.register
    for operand in instruction.operands:
        yield from registers_in(operand)


def registers_in(operand: object) -> Iterator[ir.Register]:
    """Every register in an operand."""
    match operand:
        case ir.Register():
            yield operand
        case ir.Vector(elements=parts) | ir.Arguments(elements=parts):
            for part in parts:
                yield from registers_in(part)
        case ir.Pair():
            yield from registers_in(operand.first)
            yield from registers_in(operand.second)
        case ir.Negated(operand=inner) | ir.Minus(operand=inner):
            yield from registers_in(inner)
        case ir.Address():
            yield from registers_in(operand.base)
            for part in operand.arguments:
                yield from registers_in(part)
        case ir.Selection() | ir.VectorElement() | ir.Element():
            yield from registers_in(operand.register)
        case ir.Sum():
            yield from registers_in(operand.base)


def read_indices_of(guard: ir.Guard | None, operands: Iterable[object]) -> Iterator[int]:
    """The numbers of the registers in a guard and in operands."""
    if guard is not None and isinstance(guard.register, ir.Register):
        yield guard.register.index
    for operand in operands:
        for register in registers_in(operand):
            yield register.index
