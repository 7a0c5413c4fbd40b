"""Whether execution can get from the entry to an instruction without passing a write, minding branches that agree.

Two branches on one predicate go the same way as long as the predicate keeps its value, and so do branches on two
predicates that compare the same values. That is how one warp sets up what only it uses later.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.isa import Jump, Operation

if TYPE_CHECKING:
    from .program import FunctionFacts

MOST_STATES = 20_000  # of a function; one that branches more is given up on
OPPOSITES = {"ne": "eq", "ge": "lt", "le": "gt", "hs": "lo", "ls": "hi"}

Condition = tuple[object, bool]  # what a branch asks, and the answer with which its guard holds
Known = frozenset[Condition]


class Ways:
    """The ways through one function."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._conditions: dict[int, tuple[object, bool, frozenset[int]] | None] = {}
        self._dependencies: dict[object, frozenset[int]] = {}
        self._states_left = MOST_STATES

    @cached_property
    def _asked(self) -> Counter[object]:
        """How often each condition is asked; what is asked once decides nothing later."""
        guards = (instruction.guard for instruction in self._facts.instructions)
        return Counter(found[0] for guard in guards if (found := self._condition(guard)) is not None)

    def leads_past(self, register: int, at: int) -> bool:
        """Whether some path to instruction `at` has no write of a register; False if that is not known."""
        blocks, chains = self._facts.flow.blocks, self._facts.chains
        target = chains.block_of(at)
        writing = {chains.block_of(write) for write in chains.writes.get(register, ())}
        if chains.writes_in(register, blocks[target].start, at):
            return False
        guard = self._facts.instructions[at].guard
        pending: list[tuple[int, Known]] = [(0, frozenset())]
        seen = set(pending)
        while pending:
            self._states_left -= 1
            if self._states_left < 0:
                return False
            number, known = pending.pop()
            if number == target:
                here = self._forget(known, self._written(blocks[target].start, at))
                if not self._contradicts(here, guard):
                    return True
            if number in writing:
                continue
            known = self._forget(known, self._written_in[number])
            for successor, after in self._leave(number, known):
                if (successor, after) not in seen:
                    seen.add((successor, after))
                    pending.append((successor, after))
        return False

    @cached_property
    def _written_in(self) -> list[set[int]]:
        """The registers that each block writes."""
        return [self._written(block.start, block.end) for block in self._facts.flow.blocks]

    def _written(self, start: int, end: int) -> set[int]:
        return {register for at in range(start, end) for register in self._facts.effects.writes[at]}

    def _forget(self, known: Known, written: set[int]) -> Known:
        """What stays known after these registers are written."""
        if not known:
            return known
        return frozenset(fact for fact in known if not written & self._dependencies[fact[0]])

    def _contradicts(self, known: Known, guard: ir.Guard | None) -> bool:
        condition = self._condition(guard)
        return condition is not None and (condition[0], not condition[1]) in known

    def _leave(self, number: int, known: Known) -> list[tuple[int, Known]]:
        """The blocks that can come next, and what is known there."""
        block = self._facts.flow.blocks[number]
        last = self._facts.instructions[block.end - 1]
        condition = self._condition(last.guard)
        jump = last.opcode.jump
        if condition is None or jump is None or not (jump is Jump.BRANCH or jump.ends):
            return [(successor, known) for successor in block.successors]
        # A branch names its target first; to fall through comes last, and is all that an end leaves.
        asked, answer = condition
        answers = (answer, not answer) if jump is Jump.BRANCH else (not answer,)
        if len(block.successors) != len(answers):
            return [(successor, known) for successor in block.successors]
        ways = zip(block.successors, answers, strict=True)
        if self._asked[asked] < 2:
            return [(successor, known) for successor in block.successors]
        return [(to, known | {(asked, holds)}) for to, holds in ways if (asked, not holds) not in known]

    def _condition(self, guard: ir.Guard | None) -> Condition | None:
        """What a guard asks: the comparison that made its predicate if its sources are written once, else itself."""
        if guard is None or not isinstance(guard.register, ir.Register):
            return None
        register = guard.register.index
        writes = self._facts.chains.writes.get(register, [])
        asked: object = ("register", register)
        holds = True
        needs = frozenset({register})
        if len(writes) == 1:
            comparison = self._comparison(writes[0])
            if comparison is not None:
                asked, holds, needs = comparison
        self._dependencies.setdefault(asked, needs)
        return asked, holds != guard.negated

    def _comparison(self, at: int) -> tuple[object, bool, frozenset[int]] | None:
        if at not in self._conditions:
            self._conditions[at] = self._read_comparison(at)
        return self._conditions[at]

    def _read_comparison(self, at: int) -> tuple[object, bool, frozenset[int]] | None:
        instruction, match = self._facts.instructions[at], self._facts.matches[at]
        if instruction.guard is not None or match is None or match.effects.computes is not Operation.COMPARISON:
            return None
        compared = match.expected[1].type
        if compared is None or compared.kind == "f" or len(instruction.operands) != 3:
            return None
        if not isinstance(instruction.operands[0], ir.Register):
            return None
        sources = instruction.operands[1:]
        registers = [operand.index for operand in sources if isinstance(operand, ir.Register)]
        if any(len(self._facts.chains.writes.get(register, [])) > 1 for register in registers):
            return None
        word = match.candidate.modifiers.cmp
        asked = ("comparison", OPPOSITES.get(word, word), compared, *(_named(operand) for operand in sources))
        return asked, word not in OPPOSITES, frozenset(registers)


def _named(operand: ir.Operand) -> object:
    if isinstance(operand, ir.Register):
        return operand.index
    return (operand.value, operand.kind) if isinstance(operand, ir.Immediate) else id(operand)
