"""What the header of a kernel tells of its launches."""

from math import prod

from ptxlab import ir


def threads_of(kernel: ir.Function) -> int | None:
    """The most threads that a block of a kernel can have, if its header tells."""
    directive = kernel.directive("reqntid") or kernel.directive("maxntid")
    # Without a single thread, another rule complains.
    return None if directive is None else prod(n for n in directive.arguments if isinstance(n, int)) or None


def blocks_of(kernel: ir.Function) -> int | None:
    """The blocks that should fit on a multiprocessor, if the header of a kernel tells."""
    directive = kernel.directive("minnctapersm")
    return None if directive is None or not isinstance(directive.arguments[0], int) else directive.arguments[0]
