"""The main loop of products by `wgmma`: a producer that copies K tiles, and consumer warpgroups that multiply them.

`produce` and `consume` are what both do, with a ring of stages between; `MainLoop` is what a consumer computes of a
tile, for kernels to change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxlab.author import Scalar, ptx, u32
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.operands import Descriptors
from ptxlab.kernels.parts.residuals import RingResidual
from ptxlab.kernels.parts.tile_order import Share
from ptxlab.kernels.parts.tile_stores import TileStore
from ptxlab.kernels.parts.warpgroups import HeadStart, Turns, group_number, multiply

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile
    from ptxlab.author.timeline import Recorder
    from ptxlab.kernels.parts.operands import Operand
    from ptxlab.kernels.parts.shapes import Shape


def produce(
    share: Share,
    stage: Side,
    operands: tuple[Operand, Operand],
    sources: Any,
    bytes: int,
    times: Recorder,
    block: Any,
    residual: RingResidual | None = None,
) -> None:
    """The producer: one thread issues the copies of all K tiles, each as soon as a stage is empty.

    `block` copies what else there is.
    """
    policies = [operand.policy() for operand in operands]
    for row, column in share.tiles_from_origin() if block.early else share.tiles():
        for start in share.steps():
            with times.span("wait for an empty stage"):
                stage.wait()
            with times.span("start copies"):
                stage.expect(bytes)
                parts = zip(operands, sources, (row, column), policies, strict=True)
                for operand, (source, tile), first, policy in parts:
                    operand.copy(source, tile, stage, first, start, share.rank, policy)
                block.copy(stage, row, column, start)
            stage.advance()
        if residual is not None:
            residual.produce(stage, row, column)


def prefetch(share: Share, operands: tuple[Operand, Operand], maps: Any, count: int) -> None:
    """Have the first K tiles of a block's first tile brought to the L2 cache."""
    origin, policies = share.upcoming or share.first_tile(), [operand.policy() for operand in operands]
    for number in range(count):
        for operand, sources, first, policy in zip(operands, maps, origin, policies, strict=True):
            operand.prefetch(sources, first, share.first + number * share.depth, share.rank, policy)


class MainLoop:
    """What a consumer warpgroup computes of each tile.

    `stages` are the one that is multiplied and the one that has been read: while the MMAs of one K tile are in flight,
    those of the next are issued.
    """

    def __init__(
        self,
        formats: Formats,
        shape: Shape,
        share: Share,
        stages: tuple[Side, Side],
        operands: Any,
        tiles: tuple[Tile, Tile],
        times: Recorder,
    ) -> None:
        self.formats, self.shape, self.share, self.times = formats, shape, share, times
        self.stages, self.operands, self.tiles = stages, operands, tiles
        self.product = formats.product(shape.columns, shape.swap_ab)
        self.own = group_number()
        self.turns: Turns | None = None
        self.residual: RingResidual | None = None
        self.lead = HeadStart(shape.lead, self.own, share) if shape.lead else None
        self.first = u32(0) if shape.pingpong else self.own * shape.tall  # of its 64 rows of a K tile
        (left, right), (rows, columns) = operands, tiles
        self.sides = Descriptors(left, rows, self.first), Descriptors(right, columns)

    @property
    def positions(self) -> Any:
        """Stages that each tile takes."""
        return self.share.count if self.residual is None else self.share.count + self.residual.boxes.count

    def store(self, store: TileStore, accumulators: list[list[Scalar]], row: u32, column: u32) -> None:
        """Store a tile; then the stages of its residual have been read."""
        store.write(accumulators, row, column)
        if self.residual is not None:
            self.residual.end(self.stages[1], self.shape.cluster)

    def accumulators(self, tall: int) -> list[list[Scalar]]:
        """Registers for the results of so many MMAs."""
        count = len(ptx.warpgroup_fragments(self.product).d.offsets)
        return [[self.formats.accumulator() for _ in range(count)] for _ in range(tall)]

    def compute(self, number: u32, prepare: Callable[[Any, Any], None]) -> tuple[list[list[Any]], Any, Any]:
        """The sums of this warpgroup's rows of a tile, and the first row and column of the tile.

        `prepare(row, column)` does what can be done before the last MMAs have completed.
        """
        (stage, read), shape, share, own = self.stages, self.shape, self.share, self.own
        accumulators = self.accumulators(shape.tall)
        adds = ptx.setp.ne.u32(own, own)  # whether the accumulators have a value
        if self.lead is not None:
            self.lead.wait()
        for start in share.steps():
            with self.times.span("wait for a full stage"):
                stage.wait()
            with self.times.span("multiply"):
                multiply(self.product, stage, self.sides, accumulators, adds)
                if self.lead is not None:
                    self.lead.pass_on(start)
                ptx.wgmma.wait_group.sync.aligned(1)  # the MMAs of the K tile before
            with ptx.when(start > share.first):
                read.release(shape.cluster)
            stage.advance()
        if self.turns is not None:
            if self.residual is not None:
                self.residual.begin(stage, self.first)
            self.turns.hand_over()
        with self.times.span("multiply"):
            row, column = share.origin(number)  # while the last MMAs are in flight
            prepare(row, column)
            ptx.wgmma.wait_group.sync.aligned(0)
        read.release(shape.cluster)
        if self.residual is not None and self.turns is None:
            self.residual.begin(stage, self.first)
        return accumulators, row, column


def consume(loop: MainLoop, store: TileStore, exchange: Any = None) -> None:
    """A consumer warpgroup: compute its rows of each tile, and store its part of D."""
    shape, share = loop.shape, loop.share
    if exchange is not None:
        store.parts = shape.parts.count

    def prepare(row: Any, column: Any) -> None:
        store.prepare(row, column if exchange is None else column + share.part * exchange.columns)

    for number in share.numbers():
        accumulators, row, column = loop.compute(number, prepare)
        with loop.times.span("store"):
            if exchange is None:
                loop.store(store, accumulators, row, column)
            else:
                exchange.deposit(accumulators)
                with ptx.when(share.part < shape.parts.count):
                    store.write(exchange.collect(), row, column + share.part * exchange.columns)
    store.finish_all()


def consume_in_turns(loop: MainLoop, store: TileStore, turns: Turns) -> None:
    """A consumer warpgroup that has tiles of its own: it skips the stages of the others' tiles."""
    others = loop.shape.groups - 1
    loop.turns = turns
    turns.start(loop.own)
    for side in loop.stages:
        side.advance(loop.own * loop.positions)
    for number in loop.share.numbers(loop.own, loop.shape.groups):
        turns.wait()
        accumulators, row, column = loop.compute(number, store.prepare)
        with loop.times.span("store"):
            loop.store(store, accumulators, row, column)
        for side in loop.stages:
            side.advance(loop.positions * others)
    store.finish_all()
