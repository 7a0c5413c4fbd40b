"""The control flow of a function: its basic blocks and the ways between them.

Blocks are ranges of the function's instructions, counted in the order of `Function.instructions()`; the first block is
the entry. A guarded branch or return also falls through to the next instruction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field

from ptxlab.ir.items import Function
from ptxlab.ir.operands import FunctionReference, LabelReference
from ptxlab.ir.statements import BlockStatement, BranchTargets, Instruction, Label
from ptxlab.values import dataclass

END = -1


@dataclass(eq=False, slots=True)
class BasicBlock:
    """Instructions `start` to `end` (not included), which run one after the other."""

    number: int
    start: int
    end: int
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)


class Flow:
    """The basic blocks of a function, in the order of its text; `targets` are those that a jump names, by its position.

    A label after the last instruction is the block `END`: a jump to it returns.
    """

    __slots__ = ("blocks", "targets")

    def __init__(self, blocks: list[BasicBlock], targets: dict[int, tuple[int, ...]]) -> None:
        self.blocks = blocks
        self.targets = targets

    def reachable(self) -> list[bool]:
        """For each block whether execution can get there."""
        seen = [False] * len(self.blocks)
        pending = [0] if self.blocks else []
        while pending:
            number = pending.pop()
            if not seen[number]:
                seen[number] = True
                pending.extend(self.blocks[number].successors)
        return seen

    def block_at(self, position: int) -> int:
        """The number of the block that an instruction is in."""
        return bisect_right(self.blocks, position, key=lambda block: block.start) - 1

    def dominators(self) -> dict[int, int]:
        """For each reachable block but the entry the nearest other one that every path to it goes through.

        The entry dominates itself. (Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm.)
        """
        order = self.ordered()
        rank = {number: at for at, number in enumerate(order)}
        found = {number: number for number in order[:1]}
        changed = True
        while changed:
            changed = False
            for number in order[1:]:
                nearest = -1
                for other in self.blocks[number].predecessors:
                    if other not in found:
                        continue
                    if nearest < 0:
                        nearest = other
                    while nearest != other:
                        if rank[nearest] > rank[other]:
                            nearest = found[nearest]
                        else:
                            other = found[other]
                if found.get(number) != nearest:
                    found[number] = nearest
                    changed = True
        return found

    def ordered(self) -> list[int]:
        """The reachable blocks in reverse postorder: a block before its successors, loops aside."""
        seen = [False] * len(self.blocks)
        order: list[int] = []
        stack: list[tuple[int, Iterator[int]]] = []
        if self.blocks:
            seen[0] = True
            stack.append((0, iter(self.blocks[0].successors)))
        while stack:
            number, successors = stack[-1]
            for successor in successors:
                if not seen[successor]:
                    seen[successor] = True
                    stack.append((successor, iter(self.blocks[successor].successors)))
                    break
            else:
                order.append(number)
                stack.pop()
        return order[::-1]


def flow_of(function: Function) -> Flow:
    """The control flow of a function with a body; a branch to a label that does not exist has no successor."""
    count, jumps, leaders = _read(function)
    if not count:
        return Flow([], {})
    starts = sorted(index for index in leaders if index < count)
    blocks = [
        BasicBlock(number, start, end)
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], count], strict=True))
    ]
    number_at = {block.start: block.number for block in blocks}
    for block in blocks:
        targets, falls = jumps.get(block.end - 1, ((), True))
        found = [number_at[index] for index in targets if index in number_at]
        if falls and block.end in number_at:
            found.append(number_at[block.end])
        block.successors = list(dict.fromkeys(found))
        for successor in block.successors:
            blocks[successor].predecessors.append(block.number)
    named = {at: tuple(number_at.get(index, END) for index in goals) for at, (goals, _) in jumps.items()}
    return Flow(blocks, named)


def _read(function: Function) -> tuple[int, dict[int, tuple[tuple[int, ...], bool]], set[int]]:
    """How many instructions there are, where each jump goes and whether it also falls through, where blocks start."""
    position = 0
    scopes: list[dict[str, int | tuple[str, ...]]] = [{}]
    branches: list[tuple[int, tuple[str, ...], bool, tuple[dict[str, int | tuple[str, ...]], ...]]] = []
    pending = [iter(function.body or ())]
    while pending:
        for statement in pending[-1]:
            kind = statement.__class__
            if kind is Instruction:
                assert isinstance(statement, Instruction)
                how = statement.opcode.jump
                if how is None:
                    pass
                elif how.branches:
                    names = tuple(o.name for o in statement.operands if o.__class__ is LabelReference)
                    branches.append((position, names, statement.guard is not None, tuple(scopes)))
                elif how.ends or _never_returns(statement):
                    branches.append((position, (), statement.guard is not None, ()))
                position += 1
            elif isinstance(statement, Label):
                scopes[-1].setdefault(statement.name, position)
            elif isinstance(statement, BranchTargets):
                scopes[-1].setdefault(statement.name, statement.targets)
            elif isinstance(statement, BlockStatement):
                scopes.append({})
                pending.append(iter(statement.body))
                break
        else:
            pending.pop()
            scopes.pop()
    jumps: dict[int, tuple[tuple[int, ...], bool]] = {}
    leaders = {0}
    for index, names, falls, chain in branches:
        targets = tuple(_positions(names, chain))
        jumps[index] = (targets, falls)
        leaders.update(targets)
        leaders.add(index + 1)
    return position, jumps, leaders


def _never_returns(call: Instruction) -> bool:
    return any(operand.function.noreturn for operand in call.operands if isinstance(operand, FunctionReference))


def _positions(names: tuple[str, ...], scopes: tuple[dict[str, int | tuple[str, ...]], ...]) -> Iterator[int]:
    for name in names:
        found = next((scope[name] for scope in reversed(scopes) if name in scope), None)
        if isinstance(found, tuple):
            # Only labels of instructions can be branched to; a list that names a list, or itself, leads nowhere.
            inner = (next((scope[label] for scope in reversed(scopes) if label in scope), None) for label in found)
            yield from (index for index in inner if isinstance(index, int))
        elif found is not None:
            yield found
