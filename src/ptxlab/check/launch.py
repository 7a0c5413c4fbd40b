"""What the header of a kernel says about its launches, and the registers that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.flow.facts import threads_of

if TYPE_CHECKING:
    from .program import FunctionFacts

# What has long vectors of registers, and how many registers ptxas reserves beside the vectors of one instruction: by
# experiment with ptxas 13.0, blocks of 64 to 1024 threads, and every shape.
WIDE = {("wgmma", "start"): 24, ("tensor_memory", "load"): 16, ("tensor_memory", "store"): 16}
REGISTERS = 16384  # of a quarter of an SM, on every target that has `setmaxnreg`
QUARTERS = 4
MOST = 255  # registers of a thread
LEAST = 24


def blocks_of(kernel: ir.Function) -> int | None:
    """The blocks that should fit on an SM, if the header of a kernel says."""
    directive = kernel.directive("minnctapersm")
    return None if directive is None or not isinstance(directive.arguments[0], int) else directive.arguments[0]


def registers_for(threads: int, blocks: int) -> int:
    """The registers that a thread can have if so many blocks of so many threads are resident on an SM."""
    warps = -(-threads // 32) * blocks
    return REGISTERS // (-(-warps // QUARTERS) * 32) // 8 * 8


def registers_at_start(kernel: ir.Function) -> int | None:
    """The registers that a thread of a kernel with `setmaxnreg` starts with, if its header says."""
    limits = []
    directive = kernel.directive("maxnreg")
    if directive is not None and isinstance(directive.arguments[0], int):
        limits.append(max(LEAST, directive.arguments[0]))
    threads, blocks = threads_of(kernel), blocks_of(kernel)
    if threads and blocks:
        limits.append(registers_for(threads, blocks))
    return min(MOST, *limits) if limits else None


def wide_instructions(facts: FunctionFacts) -> Iterator[tuple[ir.Instruction, int]]:
    """The instructions of a function with long vectors of registers; ptxas needs more registers than the number."""
    for step, reserved in WIDE.items():
        for at in facts.doing(*step):
            instruction = facts.instructions[at]
            vectors = [operand for operand in instruction.operands if isinstance(operand, ir.Vector)]
            yield instruction, sum(len(vector.elements) for vector in vectors) + reserved
