"""Step 4: a persistent kernel. A block computes tile after tile; D is stored while the next tile is multiplied.

The producer does not wait for the end of a tile: its copies for the next one are under way when the last is stored.
"""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, b16, kernel, ptx, tensor_map, u32
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.wgmma_steps.parts import GROUP, STRIPE, Shape, Writer
from ptxlab.kernels.wgmma_steps.specialized import complete, consume, produce

TOGETHER = 8  # rows of tiles that are computed column after column


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k."""
    consumers = shape.groups * GROUP

    @kernel(target="sm_90a", maxntid=consumers + 32)
    def persistent(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        thread, group = ptx.tid.x, ptx.tid.x // GROUP
        *tiles, free = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        stages = ptx.barrier_pipeline(shape.stages, fills=1, reads=4 * shape.groups, when=thread == 0)
        ptx.bar.sync(0)
        order = TileOrder(shape.rows, shape.columns, TOGETHER, m, n)
        with ptx.when(thread >= consumers), ptx.when(thread == consumers):
            stage = stages.producer()
            for number in order.each():
                produce(shape, stage, (a.generic, b.generic), tiles, order.origin(number), k)
        with ptx.otherwise():
            sides, writer = (stages.consumer(), stages.consumer()), Writer(type, shape, free, d.generic, group)
            for number in order.each():
                row, column = order.origin(number)
                accumulators = shape.accumulators()
                consume(type, shape, sides, accumulators, tiles, group, k)
                complete(sides)
                writer.write(accumulators, row + group * (shape.tall * STRIPE), column)
            writer.finish()

    found: Kernel = persistent
    return found
