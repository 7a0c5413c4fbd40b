"""Step 3: warp specialization. One warp copies, two warpgroups multiply, each 64 rows of a tile or more.

No warp waits for another one but at the mbarriers of a stage: the ring has one for full and one for empty.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ptxlab.author import Kernel, Pointer, b16, f32, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.wgmma_steps.parts import DEPTH, GROUP, Shape, copy, multiply, store

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile


@cache
def specialize(type: str, shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A and B, D, m, n and k."""
    consumers = shape.groups * GROUP

    @kernel(target="sm_90a", maxntid=consumers + 32)
    def specialized(a: tensor_map, b: tensor_map, d: pointer[b16], m: u32, n: u32, k: u32) -> None:
        thread, group = ptx.tid.x, ptx.tid.x // GROUP
        *tiles, _ = shape.tiles(ptx.dynamic_shared(b16, align=1024))
        stages = ptx.barrier_pipeline(shape.stages, fills=1, reads=4 * shape.groups, when=thread == 0)
        ptx.bar.sync(0)
        first = ptx.ctaid.y * shape.rows, ptx.ctaid.x * shape.columns
        with ptx.when(thread >= consumers), ptx.when(thread == consumers):
            produce(shape, stages.producer(), (a.generic, b.generic), tiles, first, k)
        with ptx.otherwise():
            accumulators = shape.accumulators()
            sides = stages.consumer(), stages.consumer()
            consume(type, shape, sides, accumulators, tiles, group, k)
            complete(sides)
            store(type, shape, accumulators, group, d, first, (m, n))

    found: Kernel = specialized
    return found


def produce(
    shape: Shape, stage: Side, maps: tuple[Pointer, Pointer], tiles: list[Tile], first: tuple[u32, u32], k: u32
) -> None:
    """Copy the K tiles of a tile of D, each as soon as a stage is empty."""
    for start in ptx.range(0, k, DEPTH):
        stage.wait()
        copy(shape, maps, tiles, stage.index, first, start, stage.barrier)
        stage.advance()


def consume(
    type: str,
    shape: Shape,
    stages: tuple[Side, Side],
    accumulators: list[list[f32]],
    tiles: list[Tile],
    group: u32,
    k: u32,
) -> None:
    """Issue the MMAs of a tile of D; a stage is empty when those that read it are complete, one K tile later."""
    reading, read = stages
    for start in ptx.range(0, k, DEPTH):
        reading.wait()
        multiply(type, shape, accumulators, tiles, reading.index, group)
        ptx.wgmma.wait_group.sync.aligned(1)  # the MMAs of the K tile before
        with ptx.when(start > 0):
            read.release()
        reading.advance()


def complete(stages: tuple[Side, Side]) -> None:
    """Wait for the last MMAs of a tile."""
    ptx.wgmma.wait_group.sync.aligned(0)
    stages[1].release()
