"""What depends on the value that a load reads: what computes with it, and what a branch on it decides.

Threads that hold copies of a value run the same code. Where one of them loads another value than the others, because
the element was replaced in between, all that depends on the load differs: the registers that are computed from it, and
the instructions that a branch on such a register decides about, with what these write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from ptxlab import ir
from ptxlab.check.control import Control
from ptxlab.check.effort import Effort, ExhaustedError
from ptxlab.check.program import FunctionFacts
from ptxlab.ir.effects import registers_in
from ptxlab.isa import Jump, Match


class Dependents:
    """The instructions of a kernel, and what decides whether they run."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._writes = Counter(register for writes in facts.effects.writes for register in writes)

    def stores(self, load: int, store: int) -> tuple[set[int], bool] | None:
        """The stores that depend on what a load reads, which `store` then replaces, and whether other lanes have it.

        None where something else depends on it that other warps may see: another access, a barrier, an address; and
        where a loop ends by what it loads, and the store comes after the loop.
        """
        try:
            return self._stores(load, store)
        except ExhaustedError:
            return None

    def _stores(self, load: int, store: int) -> tuple[set[int], bool] | None:
        effects = self._facts.effects
        different = set(effects.writes[load])
        decided: set[int] = set()
        stores: set[int] = set()
        is_exchanged = False
        while True:
            before = len(different), len(decided), len(stores)
            for number in range(len(self._facts.instructions)):
                computes = number != load and not different.isdisjoint(effects.reads[number])
                if not computes and number not in decided:
                    continue
                if not self._is_private(number, different):
                    return None
                if computes and self._jumps(number):
                    depending = set(self._decided_by(number))
                    if number in depending and store not in depending:
                        return None
                    decided |= depending
                is_exchanged |= self._exchanges(number)
                if self._kinds(number) == ["store"]:
                    stores.add(number)
                different.update(one for one in effects.writes[number] if computes or self._writes[one] > 1)
            if (len(different), len(decided), len(stores)) == before:
                return stores, is_exchanged

    def _is_private(self, number: int, different: set[int]) -> bool:
        """Whether no other warp sees whether an instruction runs, or with which operands, but for a store."""
        match = self._facts.matches[number]
        if match is None or match.effects.steps or match.effects.barrier is not None:
            return False
        if match.effects.converges:
            return self._exchanges(number)
        if self._jumps(number):
            return _is_plain_jump(match)
        if not different.isdisjoint(_of_address(self._facts.instructions[number])):
            return False
        return self._kinds(number) in ([], ["load"], ["store"])

    def _exchanges(self, number: int) -> bool:
        """Whether lanes of a warp exchange values by an instruction, and do nothing else."""
        match = self._facts.matches[number]
        return match is not None and match.effects.converges and not match.effects.steps and not self._kinds(number)

    def _jumps(self, number: int) -> bool:
        return self._facts.instructions[number].opcode.jump is not None

    def _kinds(self, number: int) -> list[str]:
        match = self._facts.matches[number]
        return [] if match is None else [one.kind for one in match.effects.accesses]

    @cached_property
    def _control(self) -> Control:
        return Control(self._facts, Effort(self._facts.instructions))

    def _decided_by(self, branch: int) -> Iterator[int]:
        """The instructions that run or not by what a branch decides."""
        deciding = self._facts.flow.block_at(branch)
        for number, branches in self._control.branches.items():
            if deciding in branches:
                block = self._facts.flow.blocks[number]
                yield from range(block.start, block.end)


def _is_plain_jump(match: Match) -> bool:
    jump = match.effects.jump
    return jump is not None and (jump.branches or jump is Jump.RETURN)


def _of_address(instruction: ir.Instruction) -> set[int]:
    """The registers of an instruction's addresses."""
    addresses = [one for one in instruction.operands if isinstance(one, ir.Address)]
    return {register.index for operand in addresses for register in registers_in(operand)}
