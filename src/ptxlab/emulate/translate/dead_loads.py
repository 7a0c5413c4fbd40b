"""Loads whose value makes no difference in some threads of a block, which detectors therefore leave out.

Where a tile has fewer elements than the block has threads, compilers have several threads load and compute the same
element, and one of them store it: in the others, everything that depends on the value is off, by guards and branches
that follow from the position of a thread in the block. Another thread may replace what they load at any time.

This follows values backwards. What an instruction does to memory, to other threads and to the program makes a
difference in the threads that can execute it (`flow.presence`); what computes its operands, its guard, and the
conditions of the branches that decide whether it runs, makes one in the same threads; and where the lanes of a warp
exchange values, in those whose values they take. A value that no thread needs is not left out: no compiler would load
it, so someone is still writing that kernel.

What is known when a kernel runs counts where it is simple: `x[min(i, n - 1)]` is loaded before a branch on `i < n`, and
only read after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptxlab import ir
from ptxlab.check.program import FunctionFacts
from ptxlab.emulate.translate.undefined import is_plain
from ptxlab.flow.effort import Effort, ExhaustedError
from ptxlab.flow.numbers import LANES, MOST_THREADS, Threads
from ptxlab.ir.effects import registers_in
from ptxlab.isa import Jump, Match, Operation
from ptxlab.isa.chapters.warp import SHUFFLES, shuffle
from ptxlab.isa.effects import Effects
from ptxlab.isa.undefined import ALL_LANES

_FIRST_LANES = sum(1 << thread for thread in range(0, MOST_THREADS, LANES))


def dead_loads(facts: FunctionFacts) -> dict[int, Threads]:
    """The loads, by position, whose value makes no difference in some threads, and which those are."""
    loads = [at for at, match in enumerate(facts.matches) if match is not None and _is_weak_load(match.effects)]
    if not loads or facts.function.kind != "entry":
        return {}
    try:
        needs = _Needs(facts)
    except ExhaustedError:
        return {}
    found = {at: (needs.here(at), needs.threads.get(at, 0)) for at in loads}
    return {at: here & ~needed for at, (here, needed) in found.items() if here & needed and here & ~needed}


def branches_of_loads(facts: FunctionFacts) -> dict[int, tuple[int, bool]]:
    """Loads whose value is only read where a branch goes one way, by a comparison of what is known before the load.

    It is the position of the comparison, and its result there. All registers are written once, and each of these
    positions is on every path to the next: operands, load, branch. So the operands are the same in all three.
    """
    known = _Dominance(facts)
    found = [(at, match.effects) for at, match in enumerate(facts.matches) if match is not None]
    loads = [at for at, effects in found if _is_weak_load(effects) and not effects.converges]  # by a thread for itself
    try:
        return {at: branch for at in loads if (branch := known.branch_of(at)) is not None}
    except ExhaustedError:
        return {}


class _Dominance:
    """Which instructions are on every path to which."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._effort = Effort(facts.instructions)
        self._nearest = facts.flow.dominators()

    def _holds(self, at: int, other: int) -> bool:
        """Whether an instruction is on every path to another."""
        home, target = (self._facts.chains.block_of(one) for one in (at, other))
        return at < other if home == target else home in self._above(target)

    def _above(self, block: int) -> list[int]:
        """A block, and those on every path to it, the nearest first."""
        found = [block]
        while (above := self._nearest.get(found[-1], found[-1])) != found[-1]:
            found.append(above)
        self._effort.spend(len(found))
        return found

    def branch_of(self, load: int) -> tuple[int, bool] | None:
        """The comparison that decides whether the value of a load is read, and its result where it is."""
        values, blocks = self._facts.chains, self._facts.flow.blocks
        registers = self._facts.effects.writes[load]
        uses = {values.block_of(use) for register in registers for use in values.reads.get(register, ())}
        if not uses or any(values.only_write(register) != load for register in registers):
            return None
        together = set.intersection(*(set(self._above(use)) for use in uses))
        for block in self._above(uses.pop()):
            if len(blocks[block].predecessors) != 1 or block not in together:
                continue
            branch = blocks[blocks[block].predecessors[0]].end - 1
            guard = self._facts.instructions[branch].guard
            if not self._holds(load, branch):
                return None
            if guard is None or not isinstance(guard.register, ir.Register):
                continue
            comparison = values.only_write(guard.register.index)
            if comparison is not None and self._is_known(comparison, load, branch):
                return comparison, (block in self._facts.flow.targets.get(branch, ())) != guard.negated
        return None

    def _is_known(self, comparison: int, load: int, branch: int) -> bool:
        """Whether a comparison before a branch has operands that are known at a load."""
        facts, instruction = self._facts, self._facts.instructions[comparison]
        if (
            facts.operation(comparison) is not Operation.COMPARISON
            or len(instruction.operands) > 3
            or instruction.guard
        ):
            return False
        operands = [facts.chains.only_write(register) for register in facts.effects.reads[comparison]]
        return self._holds(comparison, branch) and all(one is not None and self._holds(one, load) for one in operands)


class _Needs:
    """The threads in which the results of an instruction make a difference, or what a branch decides."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._effort, self._control, self._presence = facts.effort, facts.control, facts.presence
        self.threads: dict[int, Threads] = {}
        self._pending: list[int] = []
        for at, match in enumerate(facts.matches):
            if match is None or not self._only_computes(at, match.effects):
                self._find(at, None if match is None else match.effects)
        while self._pending:
            at = self._pending.pop()
            self._need_operands(at, self.threads[at])

    def here(self, at: int) -> Threads:
        """The threads that can get to an instruction."""
        return self._presence.of_block(self._facts.chains.block_of(at))

    def _only_computes(self, at: int, effects: Effects) -> bool:
        """Whether all that an instruction does is to write its results; a load from a fixed address cannot fail."""
        is_fixed = _is_weak_load(effects) and not effects.converges and not self._facts.effects.reads[at]
        return is_fixed or (is_plain(effects) and not (effects.carry or effects.uniform))

    def _find(self, at: int, effects: Effects | None) -> None:
        """What an instruction that does not only compute needs."""
        instruction = self._facts.instructions[at]
        if instruction.opcode.jump in (Jump.BRANCH, Jump.INDEXED_BRANCH, Jump.RETURN, Jump.EXIT):
            if self._decides_end(self._facts.chains.block_of(at)):
                self._need(at, self.here(at))
            return
        threads = self._presence.of_guard(at).true
        if effects is None or effects.accesses or not _exchanges(effects):
            self._need_operands(at, threads)
            return
        self._need_branches(at, threads)  # lanes wait for each other, whatever becomes of the values
        if instruction.guard is not None:
            self._need_registers(at, [one.index for one in registers_in(instruction.guard.register)], threads)

    def _decides_end(self, block: int) -> bool:
        """Whether the end of a block decides if a loop ends, or the program."""
        ways = self._control.successors.get(block, [])
        left_out = any(successor not in ways for successor in self._facts.flow.blocks[block].successors)
        return left_out or block in self._control.branches.get(block, ())

    def _need(self, at: int, threads: Threads) -> None:
        match = self._facts.matches[at]
        if match is not None and _exchanges(match.effects):
            threads = self._exchanged(at, match, threads)
        known = self.threads.get(at, 0)
        if threads & ~known:
            self.threads[at] = known | threads
            self._pending.append(at)

    def _exchanged(self, at: int, match: Match, threads: Threads) -> Threads:
        """The threads from which a warp collective brings values to some threads: all lanes, if it is not known."""
        lanes = self._presence.lanes_of(self._presence.warps(threads))
        numbers = [one.value for one in self._facts.instructions[at].operands[2:4] if isinstance(one, ir.Immediate)]
        if match.effects.computes is not Operation.SHUFFLE or len(numbers) < 2:
            return lanes
        offset, bound = numbers
        buffer: Any = [*range(LANES), *[offset] * LANES, *[bound] * LANES, *[0] * 2 * LANES]
        shuffle(buffer, ALL_LANES, SHUFFLES.split().index(match.candidate.modifiers.mode))
        sources: list[int] = buffer[3 * LANES : 4 * LANES]
        found = 0
        for lane, source in enumerate(sources):
            found |= (threads >> lane & _FIRST_LANES) << source
        return lanes & found

    def _need_operands(self, at: int, threads: Threads) -> None:
        self._need_registers(at, self._facts.effects.reads[at], threads)
        self._need_branches(at, threads)

    def _need_registers(self, at: int, registers: Iterable[int], threads: Threads) -> None:
        values = self._facts.chains
        for register in registers:
            before = values.steps
            for definition in values.definitions(at, register):
                self._need(definition, threads)
            self._effort.spend(1 + values.steps - before)

    def _need_branches(self, at: int, threads: Threads) -> None:
        """Need the conditions of the branches that decide whether an instruction runs."""
        for block in self._control.branches.get(self._facts.chains.block_of(at), ()):
            self._need(self._facts.flow.blocks[block].end - 1, threads)


def _exchanges(effects: Effects) -> bool:
    """Whether lanes of a warp exchange values, in registers or from memory, and do nothing else."""
    others = effects.steps or effects.barrier or any(access.kind != "load" for access in effects.accesses)
    return (effects.converges or effects.uniform) and not others


def _is_weak_load(effects: Effects) -> bool:
    kinds = [(access.kind, access.order in ("weak", "constant"), access.is_async) for access in effects.accesses]
    return bool(kinds) and not effects.steps and all(kind == ("load", True, False) for kind in kinds)
