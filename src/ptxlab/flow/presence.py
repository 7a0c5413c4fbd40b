"""Which threads of a block can reach an instruction, as far as their position in the block decides it.

A branch on a predicate that follows from `%tid.x`, `%laneid` and constants sends each thread one way. Whatever else a
predicate depends on (`elect.sync`, memory, parameters), it may be true or false in any thread; combined with `and` and
`or` it stays limited by what is known: `warp == 4 && elected` is false outside warp 4.

Blocks are assumed to be one-dimensional; in a kernel that declares a second dimension, or that reads `%tid.y` or
`%tid.z` and does not require blocks of one dimension, every thread can be anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.isa import Jump

from .control import END
from .engine import Node
from .numbers import LANES, Choice, Known, Numbers, Threads

if TYPE_CHECKING:
    from .facts import Facts


class Presence:
    """The threads that can reach the basic blocks of one function."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._control, self._effort = facts.control, facts.effort
        self._choices = _Choices(facts, self)
        self.count, self.all = self._choices.count, self._choices.all
        self._reached: dict[int, Threads] = {}
        self._edges: dict[tuple[int, int], Threads] = {}
        self._reached, self._edges = self._spread()
        if self._choices.has_merged:
            self._choices = _Choices(facts, self)  # now it is known by which path a thread can bring a value
            self._reached, self._edges = self._spread()

    def of_block(self, block: int) -> Threads:
        """The threads that can reach a block."""
        return self._reached.get(block, 0)

    def of_edge(self, branch: int, successor: int) -> Threads:
        """The threads that can go from a block to one of its successors."""
        return self._edges.get((branch, successor), 0)

    def of_guard(self, at: int) -> Choice:
        """The threads at an instruction for which its guard may hold, and those for which it may not."""
        guard = self._facts.instructions[at].guard
        here = self.of_block(self._facts.chains.block_of(at))
        chosen = self._guard(at, guard)
        return Choice(chosen.true & here, chosen.false & here)

    def warps(self, threads: Threads) -> frozenset[int]:
        """The warps that have at least one of these threads."""
        return frozenset(warp for warp in range(-(-self.count // LANES)) if threads >> warp * LANES & 0xFFFFFFFF)

    def lanes_of(self, warps: frozenset[int]) -> Threads:
        """All threads of these warps."""
        return self.all & sum(0xFFFFFFFF << warp * LANES for warp in warps)

    def _spread(self) -> tuple[dict[int, Threads], dict[tuple[int, int], Threads]]:
        """Follow all threads from the entry along the branches that they can take: those of each block and edge."""
        edges: dict[tuple[int, int], Threads] = {}
        if self._facts.function.kind != "entry" or not self._choices.is_flat:
            for number, after in self._control.successors.items():
                edges.update({(number, successor): self.all for successor in after})
            return dict.fromkeys(self._control.successors, self.all), edges
        reached: dict[int, Threads] = {}
        arrived = {0: self.all}
        while arrived:
            number, threads = arrived.popitem()
            known = reached.get(number, 0)
            if number == END or threads | known == known:
                continue
            reached[number] = known | threads
            after = self._control.successors[number]
            self._effort.spend(1 + len(after))
            for successor in after:
                going = reached[number] & self._going(number, successor)
                edges[number, successor] = going
                arrived[successor] = arrived.get(successor, 0) | going
        return reached, edges

    def _going(self, number: int, successor: int) -> Threads:
        """The threads that the end of a block can send to a successor."""
        at = self._facts.flow.blocks[number].end - 1
        instruction = self._facts.instructions[at]
        if instruction.guard is None or instruction.opcode.jump is Jump.INDEXED_BRANCH:
            return self.all
        chosen = self._guard(at, instruction.guard)
        falls = number + 1 < len(self._facts.flow.blocks) and successor == number + 1
        leaves = instruction.opcode.jump is not Jump.BRANCH
        jumps = successor == END if leaves else successor in self._facts.flow.targets.get(at, ())
        return (chosen.true if jumps else 0) | (chosen.false if falls or not jumps else 0)

    def _guard(self, at: int, guard: ir.Guard | None) -> Choice:
        if guard is None:
            return Choice(self.all, 0)
        choice = self._choices.value(at, guard.register)
        if not isinstance(choice, Choice):
            return self._choices.open
        return Choice(choice.false, choice.true) if guard.negated else choice

    def is_covered(self, at: int, choice: Choice) -> bool:
        """Whether a predicate is true or false in each thread that can get to an instruction."""
        here = self.of_block(self._facts.chains.block_of(at)) if self._edges else self.all
        return here & (choice.true | choice.false) == here

    def bringing(self, definition: int, at: int, register: int) -> Threads:
        """The threads that can bring what one instruction writes to a register to another that reads it."""
        if not self._edges:
            return self.all
        values, instructions = self._facts.chains, self._facts.instructions
        home, target = values.block_of(definition), values.block_of(at)
        if home == target and definition < at:
            return self.of_block(home)
        writes = [write for write in values.writes[register] if instructions[write].guard is None]
        first = {values.block_of(write): write for write in reversed(writes)}
        found, seen = 0, dict[int, Threads]()
        pending = [(home, self.of_block(home))]
        while pending:
            number, threads = pending.pop()
            for successor in self._control.successors.get(number, ()):  # a block that is not reached has none
                self._effort.spend(1)
                going = threads & self.of_edge(number, successor)
                if successor == END or not going & ~seen.get(successor, 0):
                    continue
                seen[successor] = seen.get(successor, 0) | going
                if successor == target and first.get(target, at) >= at:
                    found |= going
                if successor not in first:
                    pending.append((successor, going))
        return found


class _Choices(Numbers):
    """Predicates; of one that several instructions write, a thread has what it can bring from there."""

    def __init__(self, facts: Facts, presence: Presence) -> None:
        super().__init__(facts)
        self._presence = presence
        self.has_merged = False

    def register(self, asking: Node, register: ir.Register) -> Known | None:
        """What an instruction reads in a register; anything, if the position of the thread does not decide it."""
        if register.type.kind != "p" and not self.facts.chains.is_positional(register.index):
            return self.top(register.type)
        return super().register(asking, register)

    def merge(self, asking: Node, register: ir.Register, values: dict[int, Known]) -> Known:
        """What an instruction reads in a register."""
        if register.type.kind != "p" or len(values) == 1:
            return super().merge(asking, register, values)
        self.has_merged = True
        true = false = 0
        for write, choice in values.items():
            assert isinstance(choice, Choice)
            bringing = self._presence.bringing(write, asking[0], register.index)
            true, false = true | choice.true & bringing, false | choice.false & bringing
        found = Choice(true, false)
        return found if self._presence.is_covered(asking[0], found) else self.open
