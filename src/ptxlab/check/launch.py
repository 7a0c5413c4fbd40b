"""What the header of a kernel says about its launches, and the registers that follow from it."""

from math import prod

from ptxlab import ir

REGISTERS = 16384  # of a quarter of an SM, on every target that has `setmaxnreg`
QUARTERS = 4


def threads_of(kernel: ir.Function) -> int | None:
    """The most threads that a block of a kernel can have, if its header says."""
    directive = kernel.directive("reqntid") or kernel.directive("maxntid")
    # Without a single thread, another rule complains.
    return None if directive is None else prod(n for n in directive.arguments if isinstance(n, int)) or None


def blocks_of(kernel: ir.Function) -> int | None:
    """The blocks that should fit on an SM, if the header of a kernel says."""
    directive = kernel.directive("minnctapersm")
    return None if directive is None or not isinstance(directive.arguments[0], int) else directive.arguments[0]


def registers_for(threads: int, blocks: int) -> int:
    """The registers that a thread can have if so many blocks of so many threads are resident on an SM."""
    warps = -(-threads // 32) * blocks
    return REGISTERS // (-(-warps // QUARTERS) * 32) // 8 * 8
