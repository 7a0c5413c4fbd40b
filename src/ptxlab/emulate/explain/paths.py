"""Where a thread could come if it continued: paths through the control flow of a kernel, between two instructions.

Instructions have the numbers of `Compiled.instructions`. A path that leaves a function is not followed: what is in
another function counts as within reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.ir.flow import Flow, flow_of
from ptxlab.isa import Jump
from ptxlab.isa.effects import Effects

if TYPE_CHECKING:
    from ptxlab.emulate.translate.compile import Compiled


@dataclass(frozen=True)
class Signals:
    """Where a thread signals others after it has started an operation, with no wait for it before that."""

    places: list[int]
    """The first instructions that signal."""
    short_waits: list[int]
    """The waits before them that leave groups in flight."""
    is_awaited: bool
    """Whether there is a path with a wait for it, too."""


class Paths:
    """The paths of all functions of a compiled kernel; control flow is read when it is first asked for."""

    def __init__(self, compiled: Compiled) -> None:
        self.instructions = compiled.instructions
        self.effects = compiled.effects
        self._flows: dict[int, tuple[Flow, int, dict[int, int]]] = {}
        self._reached: dict[tuple[int, int], set[int]] = {}  # the blocks after a block, by the first instruction

    def reaches(self, start: int, ends: Iterable[int]) -> bool:
        """Whether a thread that waits at `start` could get to one of the instructions `ends`."""
        return any(self._reaches(start, end, avoided=None) for end in ends)

    def rejoins(self, start: int, end: int) -> bool:
        """Whether a lane at `start` gets to `end` without passing again the branch where the two parted."""
        if self.instructions[start][0] is not self.instructions[end][0]:
            return True
        flow, first, dominators = self._flow(start)
        parted = _nearest(dominators, flow.block_at(start - first), flow.block_at(end - first))
        return self._reaches(start, end, avoided=parted)

    def exits(self, start: int) -> bool:
        """Whether a thread that waits at `start` could get to the end of its function."""
        flow, first, _ = self._flow(start)
        block = flow.block_at(start - first)
        return any(self._may_end(first + flow.blocks[number].end - 1) for number in _within_reach(flow, block, None))

    def like(self, number: int) -> list[int]:
        """The instructions of the same function with the same opcode as this one."""
        function, instruction = self.instructions[number]
        return [
            other
            for other, (owner, candidate) in enumerate(self.instructions)
            if owner is function and candidate.opcode == instruction.opcode
        ]

    def at_barrier(self, barrier: int) -> list[int]:
        """The instructions by which threads come to a barrier of the block: those that name its number, or none."""
        found = []
        for number, (_, instruction) in enumerate(self.instructions):
            if self.effects(number).barrier == "block":
                named = [operand.value for operand in instruction.operands if isinstance(operand, ir.Immediate)]
                if not named or barrier in named:
                    found.append(number)
        return found

    def at_cluster_barrier(self) -> list[int]:
        """The instructions by which threads arrive at the cluster barrier."""
        effects = (self.effects(number) for number in range(len(self.instructions)))
        return [number for number, one in enumerate(effects) if one.barrier == "cluster" and not one.waits]

    def of_pairs(self) -> list[int]:
        """The instructions that a warp of each block of a pair may have to execute together."""
        effects = (self.effects(number) for number in range(len(self.instructions)))
        steps = ("allocate", "free", "relinquish")
        return [number for number, one in enumerate(effects) if any(one.does("tensor_memory", step) for step in steps)]

    def giving_registers(self) -> list[int]:
        """The instructions by which warps give registers to the pool of their block."""
        return [number for number in range(len(self.instructions)) if self.effects(number).fewer_registers]

    def synchronizations_before(self, number: int, is_fenced: bool = False) -> frozenset[int]:
        """The synchronization that an instruction may follow directly, no `tcgen05.fence` between (but if fenced)."""
        flow, first, _ = self._flow(number)
        found, seen = set(), set()
        pending = [(flow.block_at(number - first), number - first)]
        while pending:
            block, end = pending.pop()
            for at in range(end - 1, flow.blocks[block].start - 1, -1):
                effects = self.effects(first + at)
                if not is_fenced and effects.does("tensor_memory", "fence_after"):
                    break
                if _synchronizes(effects):
                    found.add(first + at)
                    break
            else:
                earlier = [other for other in flow.blocks[block].predecessors if other not in seen]
                seen.update(earlier)
                pending += [(other, flow.blocks[other].end) for other in earlier]
        return frozenset(found)

    def signals_after(self, number: int, unit: str, until: int) -> Signals:
        """Where a thread next signals others after it has started an operation of a unit, up to an instruction."""
        flow, first, _ = self._flow(number)
        found, seen, short, is_awaited = set(), set(), set(), False
        pending = [(flow.block_at(number - first), number + 1 - first)]
        while pending:
            block, start = pending.pop()
            for at in range(first + start, first + flow.blocks[block].end):
                effects = self.effects(at)
                if effects.does(unit, "wait"):
                    short |= {at} if self.groups_left(at) else set()
                    is_awaited = is_awaited or not self.groups_left(at)
                if at == until or (effects.does(unit, "wait") and not self.groups_left(at)):
                    break
                if _signals(effects):
                    found.add(at)
                    break
            else:
                later = [other for other in flow.blocks[block].successors if other not in seen]
                seen.update(later)
                pending += [(other, flow.blocks[other].start) for other in later]
        return Signals(sorted(found), sorted(short), is_awaited)

    def uncommitted(self, number: int, unit: str) -> tuple[int, int] | None:
        """Of an operation that is in no group at the next wait for groups: the last one started before it, the wait."""
        flow, first, _ = self._flow(number)
        seen: set[int] = set()
        pending = [(flow.block_at(number - first), number + 1 - first, number)]
        while pending:
            block, start, last = pending.pop()
            for at in range(first + start, first + flow.blocks[block].end):
                effects = self.effects(at)
                if effects.does(unit, "wait"):
                    return last, at
                if effects.does(unit, "commit"):
                    break
                last = at if effects.does(unit, "start") else last
            else:
                later = [other for other in flow.blocks[block].successors if other not in seen]
                seen.update(later)
                pending += [(other, flow.blocks[other].start, last) for other in later]
        return None

    def is_separated(self, start: int, end: int) -> bool:
        """Whether all paths of a function from one instruction to another pass a barrier of all threads of a block."""
        return self._passes(start, end, self._is_block_barrier)

    def is_synchronized(self, start: int, end: int) -> bool:
        """Whether all paths from one instruction to another pass any barrier, fence, release or acquire."""
        if self.instructions[start][0] is not self.instructions[end][0]:
            return True
        return self._passes(start, end, self._may_order)

    def _passes(self, start: int, end: int, is_passed: Callable[[int], bool]) -> bool:
        """Whether all paths from one instruction of a function to another pass one of a kind."""
        flow, first, _ = self._flow(start)
        seen, pending = set(), [(flow.block_at(start - first), start + 1 - first)]
        while pending:
            block, at = pending.pop()
            for number in range(first + at, first + flow.blocks[block].end):
                if number == end:
                    return False
                if is_passed(number):
                    break
            else:
                later = [other for other in flow.blocks[block].successors if other not in seen]
                seen.update(later)
                pending += [(other, flow.blocks[other].start) for other in later]
        return True

    def _is_block_barrier(self, number: int) -> bool:
        """Whether all threads of the block wait here: a barrier without a count of threads."""
        effects, operands = self.effects(number), self.instructions[number][1].operands
        counts = [one for one in operands if isinstance(one, ir.Immediate)]
        return effects.barrier == "block" and effects.waits and len(operands) == len(counts) <= 1

    def _may_order(self, number: int) -> bool:
        effects = self.effects(number)
        return bool(effects.barrier) or effects.synchronizes or effects.uses("mbarrier")

    def groups_left(self, number: int) -> int:
        """How many groups a wait leaves in flight."""
        operands = self.instructions[number][1].operands
        return operands[0].value if operands and isinstance(operands[0], ir.Immediate) else 0

    def _reaches(self, start: int, end: int, avoided: int | None) -> bool:
        if self.instructions[start][0] is not self.instructions[end][0]:
            return True
        flow, first, _ = self._flow(start)
        source, target = flow.block_at(start - first), flow.block_at(end - first)
        if source == target and start < end:
            return True
        if avoided is not None:
            return target in _after(flow, source, avoided)
        if (first, source) not in self._reached:
            self._reached[first, source] = _after(flow, source, None)
        return target in self._reached[first, source]

    def _may_end(self, number: int) -> bool:
        return self.instructions[number][1].opcode.jump in (Jump.RETURN, Jump.EXIT)

    def _flow(self, number: int) -> tuple[Flow, int, dict[int, int]]:
        """The control flow of the function of an instruction, the number of its first one, and its dominators."""
        function = self.instructions[number][0]
        if id(function) not in self._flows:
            first = next(index for index, (other, _) in enumerate(self.instructions) if other is function)
            flow = flow_of(function)
            self._flows[id(function)] = flow, first, flow.dominators()
        return self._flows[id(function)]


def _within_reach(flow: Flow, start: int, avoided: int | None) -> set[int]:
    """The blocks that can be reached from a block, itself included, without going through `avoided`."""
    seen = {start}
    pending = [start]
    while pending:
        for successor in flow.blocks[pending.pop()].successors:
            if successor not in seen and successor != avoided:
                seen.add(successor)
                pending.append(successor)
    return seen


def _after(flow: Flow, start: int, avoided: int | None) -> set[int]:
    """The blocks that can be entered from the end of a block, without going through `avoided` before."""
    return {after for number in _within_reach(flow, start, avoided) for after in flow.blocks[number].successors}


def _nearest(dominators: dict[int, int], one: int, other: int) -> int | None:
    """The nearest block that dominates two others; None for blocks that are never entered."""
    above = set()
    while one in dominators and one not in above:
        above.add(one)
        one = dominators[one]
    while other in dominators and other not in above:
        other = dominators[other]
    return other if other in above else None


def _signals(effects: Effects) -> bool:
    """Whether a thread hands over by an instruction what it has done."""
    if effects.barrier or effects.orders or effects.does("mbarrier", "arrive") or effects.does("mbarrier", "drop"):
        return True
    orders = [*effects.fences, *(access.order for access in effects.accesses)]
    return any(order.startswith(("release", "acq_rel")) for order in orders)


def _synchronizes(effects: Effects) -> bool:
    """Whether a thread is ordered by an instruction after what others did."""
    if effects.waits or effects.does("mbarrier", "wait") or effects.does("mbarrier", "test"):
        return True
    orders = [*effects.fences, *(access.order for access in effects.accesses)]
    return any(order.startswith(("acquire", "acq_rel")) for order in orders)
