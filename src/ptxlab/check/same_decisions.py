"""Branches that decide the same: compilers test a condition again on each path that they have made of one.

After `if (tid == 0 && n != 0) copy(); if (n != 0) __syncthreads();` there are two tests of `n`, one for thread 0 and
one for the others. What one of them decides the other does too, as long as all threads have the same `n`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.flow.control import END
from ptxlab.isa import Jump, Operation

Condition = tuple[object, ...]


class Decision(NamedTuple):
    """That a condition, which is the same for all threads of the block, holds or does not."""

    condition: Condition
    holds: bool

    def opposite(self) -> Decision:
        """The other outcome."""
        return Decision(self.condition, not self.holds)


class SameDecisions:
    """The uniform branches of one function by their conditions."""

    def __init__(self, facts: Facts, is_uniform: Callable[[int], bool]) -> None:
        self._facts, self._is_uniform = facts, is_uniform
        self._control, self._effort = facts.control, facts.effort

    def needed(self, branch: int, past: int, home: int) -> set[Decision]:
        """What must have been decided if threads that `branch` does not send to `past` get to `home`."""
        others = [one for one in self._control.successors[branch] if one not in (past, END)]
        after = self._control.reachable(branch)
        again = {one for after_it in self._control.successors[branch] if after_it != END
                 for one in self._control.reachable(after_it)}  # fmt: skip
        found = set[Decision]()
        for decision in {one for edge, one in self._edges.items() if edge[0] in after}:
            places = [place for part in decision.condition for place in _written(part)]
            if any(self._facts.chains.block_of(at) in again for at in places):
                continue  # the value can be another one the next time
            if not self._gets(others, home, decision):
                found.add(decision)
        return found

    def of_edge(self, block: int, successor: int) -> Decision | None:
        """What a thread that goes from a block to a successor has seen decided."""
        return self._edges.get((block, successor))

    def _gets(self, starts: list[int], home: int, without: Decision) -> bool:
        """Whether a block can be reached by edges on which a decision is not taken."""
        pending, seen = list(starts), set(starts)
        while pending:
            number = pending.pop()
            if number == home:
                return True
            self._effort.spend(1)
            for successor in self._control.successors.get(number, ()):
                if successor not in seen and successor != END and self._edges.get((number, successor)) != without:
                    seen.add(successor)
                    pending.append(successor)
        return False

    @cached_property
    def _edges(self) -> dict[tuple[int, int], Decision]:
        """The decisions of conditions that are tested at least twice, by the edges on which they are taken."""
        found: dict[tuple[int, int], Decision] = {}
        tests: dict[Condition, int] = {}
        for number in self._control.order:
            for successor, decision in self._decisions(number):
                found[number, successor] = decision
                tests[decision.condition] = tests.get(decision.condition, 0) + 1
        return {edge: one for edge, one in found.items() if tests[one.condition] > 2}

    def _decisions(self, number: int) -> Iterator[tuple[int, Decision]]:
        at = self._facts.flow.blocks[number].end - 1
        instruction = self._facts.instructions[at]
        guard, after = instruction.guard, self._control.successors[number]
        if guard is None or instruction.opcode.jump is not Jump.BRANCH or len(set(after)) != 2:
            return
        condition = self._condition(at, guard.register) if self._is_uniform(at) else None
        if condition is None:
            return
        for successor in after:
            jumps = successor in self._facts.flow.targets.get(at, ())
            yield successor, Decision(condition, jumps is not guard.negated)

    def _condition(self, at: int, register: ir.Operand) -> Condition | None:
        """A comparison by its opcode and where its operands come from."""
        write = self._written_once(at, register) if isinstance(register, ir.Register) else None
        match = None if write is None else self._facts.matches[write]
        if write is None or match is None or match.effects.computes is not Operation.COMPARISON:
            return None
        instruction = self._facts.instructions[write]
        target, *sources = instruction.operands
        if target != register:
            return None
        parts = [self._source(write, source) for source in sources]
        return None if None in parts else (instruction.opcode.text, *parts)

    def _source(self, at: int, operand: ir.Operand) -> object:
        if isinstance(operand, ir.Immediate):
            return ("value", operand.value)
        write = self._written_once(at, operand) if isinstance(operand, ir.Register) else None
        return None if write is None or not isinstance(operand, ir.Register) else ("write", write, operand.index)

    def _written_once(self, at: int, register: ir.Register) -> int | None:
        """The only instruction that writes what is read, if it is not guarded."""
        writes = self._facts.chains.definitions(at, register.index)
        self._effort.spend(len(writes) + 1)
        return writes[0] if len(writes) == 1 and self._facts.instructions[writes[0]].guard is None else None


def _written(part: object) -> Iterator[int]:
    if isinstance(part, tuple) and part[0] == "write":
        yield part[1]
