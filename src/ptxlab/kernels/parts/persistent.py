"""A persistent, warp-specialized block: the frame of kernels that multiply by `wgmma`, tile after tile.

`run` is what all of them do. What differs is a `Block`: the tiles that it has, how one is stored, and what else there
is to do. `wgmma_gemm` explains the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, b16, pred, ptx, u32
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.main_loop import MainLoop, consume, consume_in_turns, prefetch, produce
from ptxlab.kernels.parts.operands import Operand
from ptxlab.kernels.parts.residuals import RingResidual
from ptxlab.kernels.parts.shapes import BLOCKS, Shape
from ptxlab.kernels.parts.tile_stores import Boxes, TileStore
from ptxlab.kernels.parts.warpgroups import Turns, start_block

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side


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
    def stored_from(self) -> int:
        """Where in shared memory boxes are."""
        return self.shape.stored_from(self.stage_bytes)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return max(self.shape.stages * self.stage_bytes, self.stored_from + self.boxes.bytes)

    @property
    def directives(self) -> dict[str, Any]:
        """What `@kernel` is given."""
        shape = self.shape
        found: dict[str, Any] = {"target": "sm_90a", "maxntid": shape.threads}
        found |= {"reqnctapercluster": shape.blocks} if shape.blocks > 1 else {}
        is_limited = shape.occupancy > 1 or (shape.fresh and shape.registers)
        return found | ({"minnctapersm": shape.occupancy} if is_limited else {})


class Block:
    """What differs among kernels: all of them have tiles and store them, and what follows is nothing by default."""

    fills = 1  # arrivals after which a stage is full
    copied = 0  # bytes that are copied to a stage besides a K tile
    early = True  # whether its tiles are known before anything is read from memory

    def share(self, rank: u32 | None) -> Any:
        """The tiles of the block with this rank in its cluster; all threads make it."""
        raise NotImplementedError

    def store(self, memory: Pointer, residual: RingResidual | None) -> TileStore:
        """How tiles are stored, through that memory; made by the consumers."""
        raise NotImplementedError

    def initialize(self, when: pred) -> None:
        """Initialize barriers, by the thread of `when`."""

    def residual(self, memory: Pointer) -> RingResidual | None:
        """What comes through the ring of stages after the last K tile of a tile."""

    def copy(self, stage: Side, row: Any, column: Any, start: Any) -> None:
        """What the producer copies to a stage besides a K tile."""

    def fill(self, share: Any, stage: Side) -> None:
        """What warps after the producer's do to fill a stage."""

    def help(self, share: Any, memory: Pointer) -> None:
        """What else they do; `memory` is that of `store`."""

    def exchange(self, share: Any, memory: Pointer) -> Any:
        """How blocks that compute a tile together add what each has; made by the consumers."""

    def loop(self, *given: Any) -> MainLoop:
        """The main loop of the consumers."""
        return MainLoop(*given)


def run(plan: Plan, maps: Sequence[Sequence[Pointer]], block: Block) -> None:
    """What a block does; `maps` are the tensor maps of each operand's matrices."""
    shape, thread = plan.shape, ptx.tid.x
    rank = ptx.cluster_ctarank if shape.blocks > 1 else None
    with ptx.when(thread == shape.consumers):  # first of all: the first copy waits for it
        for one in (one for each in maps for one in each):
            ptx.prefetch.tensormap(one)
    if block.early:
        share = block.share(rank)
        share.start(thread == shape.consumers)
    memory = ptx.dynamic_shared(b16, align=1024)
    left, right = plan.operands
    tiles = left.tile(memory), right.tile(memory + shape.stages * left.stage_bytes // 2)
    free = memory + plan.stored_from // 2
    reads = 4 * shape.readers * shape.cluster
    pipeline = ptx.barrier_pipeline(shape.stages, fills=block.fills, reads=reads, when=thread == 0)
    turns = Turns(shape.groups, thread == 0) if shape.pingpong else None
    block.initialize(thread == 0)
    is_early = block.early and shape.early > 0
    start_block(thread, [], shape.blocks, waits=not is_early)
    if not block.early:
        share = block.share(rank)
    residual = block.residual(memory)
    if is_early:
        with ptx.when(thread == shape.consumers):
            prefetch(share, plan.operands, maps, shape.early)
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
    timeline = ptx.timeline(blocks=shape.occupancy * BLOCKS, warps=shape.threads // 32, spans=shape.spans)
    with ptx.when(thread >= shape.consumers):
        if shape.registers:
            ptx.setmaxnreg.dec.sync.aligned.u32(shape.registers[0])
        with ptx.when(thread == shape.consumers):
            stage, times = pipeline.producer(), timeline.role("producer")
            sources = [*zip(maps, tiles, strict=True)]
            produce(share, stage, plan.operands, sources, plan.stage_bytes + block.copied, times, block, residual)
            if shape.cluster > 1:  # no block exits before others have arrived at its barriers
                for _ in ptx.range(u32(0), u32(shape.stages), 1):
                    stage.wait()
                    stage.advance()
        block.help(share, free)
        if block.fills > 1:
            block.fill(share, pipeline.producer())
    with ptx.otherwise():
        if shape.registers:
            ptx.setmaxnreg.inc.sync.aligned.u32(shape.registers[1])
        store, sides = block.store(free, residual), (pipeline.consumer(), pipeline.consumer())
        exchange, times = block.exchange(share, memory), timeline.role("consumer")
        loop = block.loop(plan.formats, shape, share, sides, plan.operands, tiles, times)
        loop.residual = residual
        if turns is None:
            consume(loop, store, exchange)
        else:
            consume_in_turns(loop, store, turns)
