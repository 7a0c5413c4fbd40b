"""What kernels with `wgmma` have in common: how a block starts, the MMAs of a K tile, registers that are rounded.

A block has one thread that issues TMA copies, the producer, and warpgroups that multiply, the consumers. Between them
is a ring of stages: `ptx.barrier_pipeline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.author import b32, ptx, s8
from ptxlab.kernels.operands import LINE, STRIPE, Operand

GROUP = 128  # threads of a warpgroup


def meet(order: str = "release") -> None:
    """Wait for all threads of the cluster; "relaxed" where no data goes from one to the other."""
    ptx.barrier.cluster.arrive[order]()
    ptx.barrier.cluster.wait.acquire()


def start_block(thread: Any, maps: Sequence[Any], blocks: int = 1) -> None:
    """What follows the initialization of barriers, in clusters of so many blocks: all threads may use them then.

    What comes before was preparation, and may run while the kernel before is still running.
    """
    with ptx.when(thread == 0):
        ptx.fence.mbarrier_init.release.cluster()
        for one in maps:
            ptx.prefetch.tensormap(one)
    if blocks > 1:
        meet("relaxed")  # the fence has made the barriers visible
    else:
        ptx.bar.sync(0)
    ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself, too
    ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read


def multiply(
    product: Any,
    stage: Any,
    operands: Sequence[Operand],
    tiles: Sequence[Any],
    accumulators: Sequence[Any],
    first: Any,
    adds: Any,
) -> None:
    """Issue the MMAs of a K tile as one group: those of each 64 rows, from number `first` on.

    `product` is the instruction; `adds` is whether the accumulators have a value, which they have after this.
    """
    flags = [1, 1, *(int(not one.along_k) for one in operands)]  # factors, and which operands are transposed
    flags = flags[: {1: 0 if operands[0].element is s8 else 2, 2: 4, 4: 2}[operands[0].bytes]]
    ptx.wgmma.fence.sync.aligned()
    for step in range(0, operands[0].depth, operands[0].depth // 4):
        a, b = (one.descriptor(tile, stage, step) for one, tile in zip(operands, tiles, strict=True))
        for part, values in enumerate(accumulators):
            product(values, stripe(a, first + part), b, adds, *flags)
        ptx.setp.eq.u32(first, first, out=adds)
    ptx.wgmma.commit_group.sync.aligned()


def stripe(descriptor: Any, number: Any) -> Any:
    """The same matrix from another 64 rows of 128 bytes on; a descriptor counts in 16."""
    return descriptor + ptx.cvt.u64.u32(number * (STRIPE * LINE // 16))


def pack(type: str, low: Any, high: Any) -> Any:
    """Two numbers, rounded to f16 or bf16, in a register."""
    return ptx.cvt.rn[f"{type}x2"].f32(high, low).view(b32)
