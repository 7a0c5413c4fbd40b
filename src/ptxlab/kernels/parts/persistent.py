"""A persistent, warp-specialized block: the frame of kernels that multiply by `wgmma`, tile after tile.

What differs among them is handed in: operands and their tensor maps, the tiles that a block has, and how one is stored.
`wgmma_gemm` explains the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab.author import b16, ptx
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.main_loop import MainLoop, consume, consume_in_turns, produce
from ptxlab.kernels.parts.operands import Operand
from ptxlab.kernels.parts.tile_stores import Boxes, TileStore
from ptxlab.kernels.parts.warpgroups import Turns, meet, start_block
from ptxlab.kernels.wgmma_gemm.shapes import BLOCKS, Shape


@dataclass(frozen=True)
class Plan:
    """What a block has in shared memory: stages of both operands, and boxes of results."""

    formats: Formats
    shape: Shape
    operands: tuple[Operand, Operand]
    boxes: Boxes

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage."""
        return sum(one.stage_bytes for one in self.operands)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.shape.stages * self.stage_bytes + self.boxes.bytes

    @property
    def directives(self) -> dict[str, Any]:
        """What `@kernel` is given."""
        shape = self.shape
        found: dict[str, Any] = {"target": "sm_90a", "maxntid": shape.threads}
        found |= {"reqnctapercluster": shape.cluster} if shape.cluster > 1 else {}
        return found | ({"minnctapersm": shape.occupancy} if shape.occupancy > 1 else {})


def run(
    plan: Plan,
    maps: Sequence[Sequence[Any]],
    share_of: Callable[[Any], Any],
    store_of: Callable[[Any], TileStore],
) -> None:
    """What a block does.

    `maps` are the tensor maps of each operand's matrices. `share_of(rank)` is the block's share of tiles, made by all
    threads; `store_of(memory)` stores them, through that memory, made by the consumers.
    """
    shape, thread = plan.shape, ptx.tid.x
    rank = ptx.cluster_ctarank if shape.cluster > 1 else None
    memory = ptx.dynamic_shared(b16, align=1024)
    left, right = plan.operands
    tiles = left.tile(memory), right.tile(memory + shape.stages * left.stage_bytes // 2)
    free = memory + shape.stages * plan.stage_bytes // 2
    reads = 4 * shape.readers * shape.cluster
    pipeline = ptx.barrier_pipeline(shape.stages, fills=1, reads=reads, when=thread == 0)
    turns = Turns(shape.groups, thread == 0) if shape.alternate else None
    start_block(thread, [one for each in maps for one in each], shape.cluster)
    share = share_of(rank)
    timeline = ptx.timeline(blocks=shape.occupancy * BLOCKS, warps=shape.threads // 32, spans=shape.spans)
    with ptx.when(thread >= shape.consumers):
        if shape.registers:
            ptx.setmaxnreg.dec.sync.aligned.u32(shape.registers[0])
        with ptx.when(thread == shape.consumers):
            sources = [*zip(maps, tiles, strict=True)]
            produce(share, pipeline.producer(), plan.operands, sources, plan.stage_bytes, timeline.role("producer"))
    with ptx.otherwise():
        if shape.registers:
            ptx.setmaxnreg.inc.sync.aligned.u32(shape.registers[1])
        sides = pipeline.consumer(), pipeline.consumer()
        loop = MainLoop(plan.formats, shape, share, sides, plan.operands, tiles, timeline.role("consumer"))
        if turns is None:
            consume(loop, store_of(free))
        else:
            consume_in_turns(loop, store_of(free), turns)
    if shape.cluster > 1:
        meet()  # no block exits while another one copies to it, or arrives at its barriers
