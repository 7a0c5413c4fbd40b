"""The `wgmma.mma_async` of a function and which of them still run at each instruction.

An MMA is in flight from its `wgmma.mma_async` until a `wgmma.wait_group n` that covers its group: one after which at
most the `n` latest groups run. `wgmma.commit_group` closes a group; what is in none yet, no wait covers.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.ir.effects import registers_in
from ptxlab.ir.flow import BasicBlock

from .forward import forward

if TYPE_CHECKING:
    from .program import FunctionFacts

OPEN = -1  # in no group yet
_OLDEST = 64

# For each MMA in flight, by its instruction, how many groups were closed after its own: the fewest on any path here.
Running = dict[int, int]


class Mma(NamedTuple):
    """One `wgmma.mma_async`: the registers it adds to and those that hold its A, by number; and its shape."""

    accumulators: tuple[int, ...]
    inputs: tuple[int, ...]
    shape: str
    registers: frozenset[int]


class Mmas:
    """The MMAs of one function."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self.of: dict[int, Mma] = {}
        """Each MMA by the instruction that issues it."""
        self.steps: dict[int, str] = {}
        """What else concerns MMAs: `fence`, `commit` or `wait`, by instruction."""
        for at in facts.doing("wgmma", "start"):
            match = facts.matches[at]
            assert match is not None
            self.of[at] = _mma(facts.instructions[at], match.candidate.modifiers.shape)
        for name in ("fence", "commit", "wait"):
            self.steps.update(dict.fromkeys(facts.doing("wgmma", name), name))
        self._positions = sorted([*self.of, *self.steps])

    def running(self) -> dict[int, Running]:
        """The MMAs that may be in flight at the start of each block."""

        def after(block: BasicBlock, running: Running) -> Running:
            running = dict(running)
            for at in self._within(block):
                self.step(at, running)
            return running

        return forward(self._facts.flow, {}, after, _youngest)

    def in_flight(self) -> dict[int, frozenset[int]]:
        """The MMAs that may be in flight when each of them is issued."""
        found = {}
        for number, start in self.running().items():
            running = dict(start)
            for at in self._within(self._facts.flow.blocks[number]):
                if at in self.of:
                    found[at] = frozenset(running)
                self.step(at, running)
        return found

    def _within(self, block: BasicBlock) -> list[int]:
        positions = self._positions
        return positions[bisect_left(positions, block.start) : bisect_left(positions, block.end)]

    def step(self, at: int, running: Running) -> None:
        """Change `running` to what it is after instruction `at`."""
        if at in self.of:
            running[at] = OPEN
            return
        kind = self.steps.get(at)
        if kind == "commit":
            for mma, age in running.items():
                running[mma] = min(age + 1, _OLDEST)
        elif kind == "wait":
            limit = self.limit(at)
            covered = [mma for mma, age in running.items() if age >= limit]
            for mma in covered or ([] if self.has_group(running) else list(running)):
                del running[mma]  # a wait for what is in no group has a rule of its own

    @staticmethod
    def has_group(running: Running) -> bool:
        """Whether a closed group runs."""
        return any(age != OPEN for age in running.values())

    def limit(self, at: int) -> int:
        """The `n` of a `wgmma.wait_group`."""
        operand = self._facts.instructions[at].operands[0]
        assert isinstance(operand, ir.Immediate)
        return operand.value


def _mma(instruction: ir.Instruction, shape: str) -> Mma:
    accumulators, first = instruction.operands[:2]
    written = tuple(r.index for r in registers_in(accumulators))
    read = tuple(r.index for r in registers_in(first)) if isinstance(first, ir.Vector) else ()
    return Mma(written, read, shape, frozenset(written + read))


def _youngest(a: Running, b: Running) -> Running:
    joined = dict(a)
    for mma, age in b.items():
        joined[mma] = min(age, joined.get(mma, age))
    return joined
