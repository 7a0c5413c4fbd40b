"""Step 5: ping-pong. Each of two warpgroups has a tile of its own: one multiplies while the other stores.

Both read the same ring, whose stages are filled for one tile after the other. A warpgroup has to wait for its turn: an
mbarrier shows one bit of its phase, and to a warpgroup that waits two turns of the ring ahead it looks complete.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ptxlab.author import Kernel, b16, b64, kernel, ptx, tensor_map, u32
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.wgmma_steps.parts import DEPTH, GROUP, Shape, Writer, wait
from ptxlab.kernels.wgmma_steps.persistent import TOGETHER
from ptxlab.kernels.wgmma_steps.specialized import complete, consume, produce

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side

CONSUMERS = 2 * GROUP


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k."""

    @kernel(target="sm_90a", maxntid=CONSUMERS + 32)
    def ping_pong(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        thread, group = ptx.tid.x, ptx.tid.x // GROUP
        *tiles, free = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        stages = ptx.barrier_pipeline(shape.stages, fills=1, reads=4, when=thread == 0)
        turns = ptx.shared(b64, 2, name="turns")
        for number in range(2):
            ptx.mbarrier.init.shared.b64(turns.at(number), 4, when=thread == 0)
        ptx.bar.sync(0)
        order = TileOrder(shape.rows, shape.columns, TOGETHER, m, n)
        with ptx.when(thread >= CONSUMERS), ptx.when(thread == CONSUMERS):
            stage = stages.producer()
            for number in order.each():
                produce(shape, stage, (a.generic, b.generic), tiles, order.origin(number), k)
        with ptx.otherwise():
            sides, writer = (stages.consumer(), stages.consumer()), Writer(type, shape, free, d.generic, group)
            steps, parity = (k + (DEPTH - 1)) // DEPTH, group ^ 1  # it is the turn of the first warpgroup
            skip(sides, group * steps)
            for number in order.each(group, every=2):
                row, column = order.origin(number)
                accumulators = shape.accumulators()
                wait(turns.at(group), parity)
                consume(type, shape, sides, accumulators, tiles, u32(0), k)
                ptx.mbarrier.arrive.shared.b64(turns.at(group ^ 1), when=ptx.laneid == 0)  # all MMAs are issued
                complete(sides)
                writer.write(accumulators, row, column)
                skip(sides, steps)
                ptx.xor.b32(parity, 1, out=parity)
            writer.finish()

    found: Kernel = ping_pong
    return found


def skip(sides: tuple[Side, Side], steps: u32) -> None:
    """Pass over the stages that the other warpgroup reads."""
    for side in sides:
        side.advance(steps)
