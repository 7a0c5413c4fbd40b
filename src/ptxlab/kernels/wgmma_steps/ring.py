"""Step 2: a ring of stages. Thread 0 copies K tiles ahead, and the MMAs of one K tile run while the next are issued."""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, b16, b64, kernel, pointer, ptx, tensor_map, u32
from ptxlab.author.pipelines import Ring
from ptxlab.kernels.wgmma_steps.parts import DEPTH, GROUP, Shape, copy, multiply, store, wait


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A and B, D, m, n and k."""
    ahead = shape.stages - 1

    @kernel(target="sm_90a", maxntid=GROUP)
    def ring(a: tensor_map, b: tensor_map, d: pointer[b16], m: u32, n: u32, k: u32) -> None:
        is_first = ptx.tid.x == 0
        *tiles, _ = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        full = ptx.shared(b64, shape.stages, name="full")
        for stage in range(shape.stages):
            ptx.mbarrier.init.shared.b64(full.at(stage), 1, when=is_first)
        ptx.bar.sync(0)
        first = ptx.ctaid.y * shape.rows, ptx.ctaid.x * shape.columns
        maps = a.generic, b.generic
        for stage in range(ahead):
            with ptx.when(ptx.and_.pred(is_first, k > stage * DEPTH)):
                copy(shape, maps, tiles, stage, first, u32(stage * DEPTH), full.at(stage))
        accumulators = shape.accumulators()
        reading, filling = Ring(shape.stages, parity=0), Ring(shape.stages, ahead)
        for start in ptx.range(0, k, DEPTH):
            wait(full.at(reading.index), reading.parity)
            multiply(type, shape, accumulators, tiles, reading.index, u32(0))
            ptx.wgmma.wait_group.sync.aligned(1)  # the MMAs of the K tile before
            ptx.bar.sync(0)  # in all four warps: its stage may be filled
            with ptx.when(ptx.and_.pred(is_first, start + ahead * DEPTH < k)):
                copy(shape, maps, tiles, filling.index, first, start + ahead * DEPTH, full.at(filling.index))
            reading.advance()
            filling.advance()
        ptx.wgmma.wait_group.sync.aligned(0)
        store(type, shape, accumulators, u32(0), d, first, (m, n))

    found: Kernel = ring
    return found
