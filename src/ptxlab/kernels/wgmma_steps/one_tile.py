"""Step 1: a warpgroup computes one tile of D with one stage. Copy, wait, multiply, wait: nothing overlaps."""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, b16, b64, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.wgmma_steps.parts import DEPTH, GROUP, Shape, copy, multiply, store, wait


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A and B, D, m, n and k."""

    @kernel(target="sm_90a", maxntid=GROUP)
    def one_tile(a: tensor_map, b: tensor_map, d: pointer[b16], m: u32, n: u32, k: u32) -> None:
        is_first = ptx.tid.x == 0
        *tiles, _ = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        full = ptx.shared(b64, 1, name="full")
        ptx.mbarrier.init.shared.b64(full.at(0), 1, when=is_first)
        ptx.bar.sync(0)
        first = ptx.ctaid.y * shape.rows, ptx.ctaid.x * shape.columns
        accumulators, parity = shape.accumulators(), u32(0)
        for start in ptx.range(0, k, DEPTH):
            with ptx.when(is_first):
                copy(shape, (a.generic, b.generic), tiles, 0, first, start, full.at(0))
            wait(full.at(0), parity)
            multiply(type, shape, accumulators, tiles, 0, u32(0))
            ptx.wgmma.wait_group.sync.aligned(0)
            ptx.bar.sync(0)  # all four warps have read the stage
            ptx.xor.b32(parity, 1, out=parity)
        store(type, shape, accumulators, u32(0), d, first, (m, n))

    found: Kernel = one_tile
    return found
