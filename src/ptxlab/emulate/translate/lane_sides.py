"""Branches of which lanes execute both sides, one after the other, each for the lanes that take it.

So does ptxas with a short `if`. To find out which lanes go where takes longer than a few instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.isa import Jump

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function
    from ptxlab.isa.effects import Effects

MOST = 12  # instructions of a side


@dataclass(frozen=True, slots=True)
class Sides:
    """The blocks that lanes execute after a branch, before they meet again."""

    passed: int  # those that do not jump
    taken: int | None  # those that do; None: they jump to where all meet
    join: int


@dataclass(frozen=True, slots=True)
class Side:
    """The lanes that take the side of a branch that is being translated: names of values."""

    mask: str
    count: str


def sides_of(function: Function) -> dict[int, Sides]:
    """The branches of which both sides are short and only compute, by the block that ends with them."""
    found = {}
    for block in function.flow.blocks:
        last = function.instructions[block.end - 1]
        if last.opcode.jump is not Jump.BRANCH or last.guard is None or block.number + 1 == len(function.flow.blocks):
            continue
        passed, target = block.number + 1, function.flow.targets[block.end - 1][0]
        join = _end_of_side(function, passed, block.number)
        if join is None or target == passed:
            continue
        if target == join and join > block.number:
            found[block.number] = Sides(passed, None, join)
        elif _end_of_side(function, target, block.number) == join and join > block.number:
            found[block.number] = Sides(passed, target, join)
    return found


def _only_computes(effects: Effects) -> bool:
    """Whether an instruction neither accesses memory nor waits."""
    return not (effects.accesses or effects.steps or effects.fences or effects.barrier or effects.converges)


def _end_of_side(function: Function, number: int, branch: int) -> int | None:
    """Where lanes get to from a side of a branch; None: it is not short, or lanes get to it, or from it, otherwise."""
    block = function.flow.blocks[number]
    if list(block.predecessors) != [branch] or len(block.successors) != 1 or block.end - block.start > MOST:
        return None
    for position in range(block.start, block.end):
        instruction, match = function.instructions[position], function.matches[position]
        if instruction.opcode.jump is not None:
            if instruction.opcode.jump is not Jump.BRANCH or instruction.guard is not None:
                return None
        elif match is None or not _only_computes(match.effects):
            return None
    join = block.successors[0]
    return join if join >= 0 else None
