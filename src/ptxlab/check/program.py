"""What the rules read: a module with the form of each instruction found, and the instructions that have none.

The walk over all instructions happens once, here. A rule then reads only what concerns it: the failures of its kind,
the instructions of a mnemonic, or a function's flow.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.ir.effects import registers_in
from ptxlab.ir.shapes import shape_of
from ptxlab.isa import Jump, Match, Mismatch, Opcode, opcode, type_named
from ptxlab.isa.operand import Expected, Shape, limited
from ptxlab.isa.table import heads
from ptxlab.isa.targets import TARGETS, Target, Version, target_named
from ptxlab.report.nearest import nearest
from ptxlab.values import dataclass

from .accesses import KnownAccess, known_accesses
from .calls import CallGraph
from .divergence import Divergence

PREDICATE = type_named("pred")
NEWEST = target_named("sm_121a")  # what is assumed of a target that does not exist, so that one error stays one


@dataclass(frozen=True, slots=True)
class Failure:
    """An instruction that is not legal: `kind` is the code of the rule that explains it."""

    kind: str
    function: ir.Function
    instruction: ir.Instruction
    mismatch: Mismatch | None = None
    match: Match | None = None
    operand: int = 0


@dataclass(eq=False)
class FunctionFacts(Facts):
    """What the rules know of a function besides its values.

    Instructions that are not legal have no form, nor have calls. A function without the latter is sound. Where none of
    them can be a branch, it has flow: values can be followed past them, as past calls.
    """

    calls: list[ir.Instruction] = field(default_factory=list)
    others: list[ir.Statement] = field(default_factory=list)  # statements that are not instructions
    is_sound: bool = True
    has_flow: bool = True
    has_results: bool = True  # no name is unknown where a result may be

    @cached_property
    def labels(self) -> Mapping[str, ir.Statement]:
        """Its labels and lists of them by name."""
        return self.function.labels()

    @cached_property
    def divergence(self) -> Divergence:
        """How its decisions differ between threads."""
        return Divergence(self)

    @cached_property
    def _by_match(self) -> list[tuple[Match, list[int]]]:
        """The positions of its legal instructions, those of one form together."""
        found: dict[int, tuple[Match, list[int]]] = {}
        for position, match in enumerate(self.matches):
            if match is not None:
                found.setdefault(id(match), (match, []))[1].append(position)
        return list(found.values())

    def where(self, holds: Callable[[Match], bool]) -> list[int]:
        """The positions of its legal instructions of which something holds, in order."""
        return sorted(position for match, positions in self._by_match if holds(match) for position in positions)

    @cached_property
    def by_jump(self) -> dict[Jump, list[int]]:
        """The positions of its branches, calls and ends."""
        found: dict[Jump, list[int]] = defaultdict(list)
        for position, instruction in enumerate(self.instructions):
            if instruction.opcode.jump is not None:
                found[instruction.opcode.jump].append(position)
        return found

    @cached_property
    def known_accesses(self) -> list[KnownAccess]:
        """Its accesses to constant addresses and at constant distances from variables."""
        return list(known_accesses(self))

    def doing(self, unit: str, name: str) -> list[int]:
        """The positions of its instructions that do this with a unit: `doing("wgmma", "start")`."""
        return self.where(lambda match: match.effects.does(unit, name))


class Program:
    """A module as the rules see it."""

    def __init__(
        self,
        module: ir.Module,
        target: str | None = None,
        progress: Callable[[int], None] | None = None,
        ptxas: str | None = None,
    ) -> None:
        self.module = module
        self.ptxas = ptxas  # the release that is followed; None: the manual
        self.version: Version = module.version
        self.target_name = target or module.target
        self.target: Target = target_named(self.target_name) if self.target_name in TARGETS else NEWEST
        self.functions: list[FunctionFacts] = []
        self.failures: dict[str, list[Failure]] = defaultdict(list)
        self._shapes: dict[int, Shape] = {}
        self._verdicts: dict[tuple[Opcode, tuple[Shape, ...]], Match | str] = {}
        for function in module.functions:
            if function.body is not None:
                self.functions.append(self._walk(function))
                if progress is not None and function.end is not None:
                    progress(function.end)

    @cached_property
    def calls(self) -> CallGraph:
        """Which of its functions call which."""
        return CallGraph(self)

    @property
    def sound_functions(self) -> list[FunctionFacts]:
        """The functions in which every instruction is legal."""
        return [facts for facts in self.functions if facts.is_sound]

    @property
    def followed_functions(self) -> list[FunctionFacts]:
        """The functions whose paths are known, for rules that hold whatever an illegal instruction was meant to do."""
        return [facts for facts in self.functions if facts.has_flow]

    @property
    def spellings(self) -> set[str]:
        """Every opcode that occurs in the module."""
        return {opcode.text for opcode, _ in self._verdicts}

    def _walk(self, function: ir.Function) -> FunctionFacts:
        facts = FunctionFacts(function)
        instructions, matches = facts.instructions, facts.matches
        shapes, verdicts = self._shapes, self._verdicts
        for statement in function.statements():
            if statement.__class__ is not ir.Instruction:
                facts.others.append(statement)
                continue
            signature = []
            for operand in statement.operands:
                shape = shapes.get(id(operand))
                if shape is None:
                    shape = shapes[id(operand)] = shape_of(operand)
                signature.append(shape)
            guard = statement.guard
            if guard is not None:
                register = guard.register
                if isinstance(register, ir.Unresolved):
                    facts.is_sound = facts.has_flow = False
                    self._fail("unknown-name", function, statement, ())
                elif register.type is not PREDICATE:
                    facts.is_sound = False
                    self._fail("guard-type", function, statement, ())
            key = (statement.opcode, tuple(signature))
            verdict = verdicts.get(key)
            if verdict is None:
                verdict = verdicts[key] = self._judge(*key)
            instructions.append(statement)
            if isinstance(verdict, str):
                matches.append(None)
                if verdict == "call":
                    facts.calls.append(statement)
                else:
                    facts.is_sound = False
                    facts.has_flow = facts.has_flow and not may_branch(statement)
                    if statement.opcode.jump is None and _has_unknown(key[1][:1]):
                        facts.has_results = False
                    self._fail(verdict, function, statement, key[1])
                    if verdict in ("unknown-instruction", "illegal-modifier") and _has_unknown(key[1]):
                        self._fail("unknown-name", function, statement, key[1])
                continue
            matches.append(verdict)
            if verdict.limited:
                self._check_values(facts, statement, verdict)
            if verdict.odd:
                failure = Failure("odd-operand", function, statement, None, verdict, verdict.odd[0])
                self.failures["odd-operand"].append(failure)
        return facts

    def _judge(self, opcode: Opcode, signature: tuple[Shape, ...]) -> Match | str:
        """The form of an instruction, or the code of the rule that explains why it has none."""
        if opcode.jump is Jump.CALL:
            if not opcode.candidates:
                return "illegal-modifier"
            return "unknown-name" if _has_unknown(signature) else "call"  # irregular: a rule checks each
        if not opcode.candidates:
            return "illegal-modifier" if opcode.is_known else "unknown-instruction"
        if opcode.candidates[0].violation is not None:
            return "illegal-modifier"
        if _has_unknown(signature):
            return "unknown-name"
        found = opcode.match(signature)
        if isinstance(found, Mismatch):
            return _CODES.get(found.problem.kind, "operand-type")
        if found.candidate.unavailable(self.version, self.target):
            return "unavailable-instruction"
        return found

    def _fail(
        self, kind: str, function: ir.Function, instruction: ir.Instruction, signature: tuple[Shape, ...]
    ) -> None:
        found = instruction.opcode.match(signature) if kind in _MATCHED else None
        mismatch = found if isinstance(found, Mismatch) else None
        match = found if isinstance(found, Match) else None
        operand = mismatch.problem.index if mismatch else 0
        self.failures[kind].append(Failure(kind, function, instruction, mismatch, match, operand))

    def _check_values(self, facts: FunctionFacts, instruction: ir.Instruction, match: Match) -> None:
        for index, (expected, operand) in enumerate(zip(limits(match, instruction), instruction.operands, strict=True)):
            if not is_allowed(expected, operand):
                facts.is_sound = False
                failure = Failure("immediate-range", facts.function, instruction, None, match, index)
                self.failures["immediate-range"].append(failure)
                return


_CODES = {"count": "operand-count", "vector-size": "vector-size", "vector": "vector-size", "state-space": "state-space"}
_MATCHED = frozenset(_CODES.values()) | {"operand-type", "unavailable-instruction"}


def may_branch(instruction: ir.Instruction) -> bool:
    """Whether an instruction that is not legal can be meant for a branch, or for the end of a thread."""
    if instruction.opcode.is_known or instruction.opcode.jump is not None:
        return instruction.opcode.jump is not None
    if any(True for operand in instruction.operands[:1] for _ in registers_in(operand)):
        return False  # it has a result
    meant = nearest(instruction.opcode.mnemonic, heads())
    return meant is None or opcode(meant).jump is not None


def _has_unknown(shape: Shape) -> bool:
    return shape == "?" or (isinstance(shape, tuple) and any(_has_unknown(part) for part in shape))


def limits(match: Match, instruction: ir.Instruction) -> list[Expected]:
    """What each operand must be, with the limits that the constant ones set the others."""
    constants = {
        expected.name: operand.value
        for expected, operand in zip(match.expected, instruction.operands, strict=True)
        if isinstance(operand, ir.Immediate) and isinstance(operand.value, int)
    }
    return [limited(expected, constants) for expected in match.expected]


def is_allowed(expected: Expected, operand: ir.Operand) -> bool:
    """Whether the value of a constant operand is one that its form takes."""
    if isinstance(operand, ir.Address):
        return all(is_allowed(e, part) for e, part in zip(expected.inner, operand.arguments, strict=True))
    if isinstance(operand, ir.Vector) and expected.inner:
        return all(is_allowed(e, part) for e, part in zip(expected.inner, operand.elements, strict=True))
    if expected.allowed is None or not isinstance(operand, ir.Immediate):
        return True
    return operand.value in expected.allowed
