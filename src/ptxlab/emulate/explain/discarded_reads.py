"""Reads of memory that no thread has written, whose value is never chosen.

A compiler loads from shared memory before it knows whether the value is wanted, and a `selp` chooses later. CUB's
reductions of a part of a block are of this kind: all sums of warps are loaded, and those of warps that are not there
are left out. Where the size of the block decides which value a `selp` takes, it is known here.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from math import prod

from ptxlab import ir
from ptxlab.check.active_threads import Numbers, Presence
from ptxlab.check.control import Control
from ptxlab.check.effort import Effort, ExhaustedError
from ptxlab.check.program import FunctionFacts
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.ir.shapes import match_of
from ptxlab.isa import Operation
from ptxlab.isa.special_registers import SpecialKind

_FOLLOWED = frozenset(Operation) - {Operation.SELECTION, Operation.COMPARISON, Operation.SHUFFLE, Operation.MMA}


class DiscardedReads:
    """The loads of one launch's kernel whose values no thread uses."""

    def __init__(self, launch: RunningLaunch) -> None:
        self._launch = launch

    def has(self, number: int) -> bool:
        """Whether an instruction loads what every thread discards."""
        function, instruction = self._launch.compiled.instructions[number]
        if function is not self._launch.compiled.kernel or max(self._launch.block[1:]) > 1:
            return False
        at = next((at for at, one in enumerate(self._facts.instructions) if one is instruction), None)
        with suppress(ExhaustedError):
            return at is not None and self._is_discarded(at)
        return False

    def _is_discarded(self, load: int) -> bool:
        pending, seen = [load], {load}
        while pending:
            at = pending.pop()
            uses = self._uses(at)
            if not uses:
                return False  # a value that nothing reads is as wrong as it was
            for use in uses:
                if self._leaves_out(use, at) or use in seen:
                    continue
                if not self._is_followed(use):
                    return False
                seen.add(use)
                pending.append(use)
        return True

    def _uses(self, at: int) -> list[int]:
        """The instructions that can read what one writes."""
        effects, values = self._facts.effects, self._facts.values
        written = effects.writes[at]
        self._effort.spend(len(effects.reads))
        return [
            use
            for use, reads in enumerate(effects.reads)
            for register in written
            if register in reads and at in values.definitions(use, register)
        ]

    def _is_followed(self, use: int) -> bool:
        """Whether an instruction computes one value of others and does nothing else."""
        match = self._facts.matches[use]
        is_plain = match is not None and match.effects.computes in _FOLLOWED and not match.effects.accesses
        return is_plain and self._facts.instructions[use].guard is None

    def _leaves_out(self, use: int, at: int) -> bool:
        """Whether a `selp` takes, in all threads, its other operand than the one that an instruction has written."""
        match, instruction = self._facts.matches[use], self._facts.instructions[use]
        if match is None or match.effects.computes is not Operation.SELECTION or len(instruction.operands) != 4:
            return False
        _, first, second, chosen = instruction.operands
        written = self._facts.effects.writes[at]
        is_first, is_second = (isinstance(one, ir.Register) and one.index in written for one in (first, second))
        if isinstance(chosen, ir.Register) and chosen.index in written:
            return False
        true, false = self._presence.choice(use, chosen)
        here = self._presence.all & ((1 << prod(self._launch.block)) - 1)
        return not (is_first and true & here) and not (is_second and false & here)

    @cached_property
    def _facts(self) -> FunctionFacts:
        instructions = list(self._launch.compiled.kernel.instructions())
        return FunctionFacts(self._launch.compiled.kernel, instructions, [match_of(one) for one in instructions])

    @cached_property
    def _effort(self) -> Effort:
        return Effort(self._facts.instructions)

    @cached_property
    def _presence(self) -> _Launched:
        return _Launched(self._facts, self._effort, self._launch.block)


class _Launched(Presence):
    """What threads decide in blocks of a known size."""

    def __init__(self, facts: FunctionFacts, effort: Effort, block: tuple[int, ...]) -> None:
        self._block = block
        super().__init__(facts, Control(facts, effort), effort)

    def choice(self, at: int, operand: ir.Operand) -> tuple[int, int]:
        """The threads in which a predicate may be true where an instruction reads it, and those where it may not."""
        return self._choice(at, operand, 0)

    def _number(self, at: int, operand: ir.Operand, depth: int) -> Numbers | None:
        if isinstance(operand, ir.SpecialRegister) and operand.kind is SpecialKind.BLOCK_SIZE and operand.component:
            return (self._block["xyz".index(operand.component)],) * self.count
        return super()._number(at, operand, depth)
