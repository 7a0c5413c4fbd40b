"""D = A·Bᵀ of 8-bit floats with scales of blocks: the kernel of `wgmma_gemm` with another main loop.

A has a scale for each 128 elements of a row, B one for each 128 by 128. A K tile is 128 elements: its MMAs start from
zero, and what they computed is multiplied by both scales and added to sums in f32 by ordinary arithmetic. That makes
the result more exact, too: within an MMA, sums of fp8 products have 14 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab.author import (
    Instruction,
    Kernel,
    Pointer,
    Scalar,
    b16,
    b32,
    b64,
    f32,
    kernel,
    pointer,
    ptx,
    tensor_map,
    u32,
    u64,
)
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.main_loop import MainLoop
from ptxlab.kernels.parts.operands import LINE, STRIPE
from ptxlab.kernels.parts.persistent import Plan, run
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.store_warps import LANES, StagedStore, StoringWarp
from ptxlab.kernels.parts.tile_stores import CHUNK, CopyBack, PlainStore, TileStore
from ptxlab.kernels.scaled_gemm.scales import BLOCK, Scales, ScaleStages
from ptxlab.kernels.wgmma_gemm.kernel import Product, plan_of

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.kernels.parts.tile_order import Share

STEP = 32  # bytes along k that one `wgmma` multiplies
UNIT = 16  # bytes that descriptors count in
STRIPE_UNITS = STRIPE * LINE // UNIT  # from one 64 rows to the next


@cache
def specialize(formats: Formats, shape: Shape, layout: Layout, mapped: bool = False) -> Kernel:
    """Build the kernel: after m, n and k come the distance of rows of D, the scales of A and of B, and their strides.

    Strides are numbers from one scale to the next, along rows of the matrix and along k. If the scales of A are
    `mapped`, they are a tensor map.
    """
    plan = plan_of(formats, shape, layout)
    element: Any = {2: b16, 4: b32}[layout.out_size]
    target: Any = tensor_map if layout.aligned else pointer[element]
    scales: Any = tensor_map if mapped else pointer[f32]

    @kernel(**plan.directives)
    def scaled_gemm(
        a: tensor_map,
        b: tensor_map,
        d: target,
        m: u32,
        n: u32,
        k: u32,
        pitch: u32,
        scale_a: scales,
        scale_b: pointer[f32],
        a_down: u32,
        a_right: u32,
        b_down: u32,
        b_right: u32,
        partial: pointer[f32],
        counters: pointer[u32],
    ) -> None:
        store = CopyBack(d.generic) if target is tensor_map else PlainStore(d, m, n, pitch)
        of_a = Scales(scale_a.generic if scales is tensor_map else scale_a, a_down, a_right, m, mapped)
        stages = ScaleStages(shape, (of_a, Scales(scale_b, b_down, b_right, n)), k)
        run(plan, [[a.generic], [b.generic]], ScaledProduct(plan, store, (m, n, k), (partial, counters), stages))

    return scaled_gemm


class ScaledProduct(Product):
    """A product whose scales come to shared memory with the K tiles."""

    def __init__(
        self,
        plan: Plan,
        target: CopyBack | PlainStore,
        extents: tuple[u32, u32, u32],
        workspace: tuple[Pointer, Pointer],
        scaling: ScaleStages,
    ) -> None:
        super().__init__(plan, target, extents, workspace=workspace)
        self.scaling, self.fills, self.multiple = scaling, scaling.fills, scaling.multiple
        self.copied = scaling.bytes
        self.storing = scaling.mapped and plan.shape.stores_by_warps(plan.boxes) and isinstance(target, CopyBack)

    def copy(self, stage: Side, row: u32, column: u32, start: Any) -> None:
        self.scaling.copy_mapped(stage, row, start)

    def store(self, memory: Pointer, residual: object) -> TileStore:
        kind = StagedStore if self.storing else TileStore
        return kind(self.plan.formats.out, self.plan.boxes, memory, self.target)

    def help(self, share: Share, memory: Pointer) -> None:
        first = self.shape.consumers + 2 * LANES  # after the producer and the warp of scales
        if self.storing:
            with ptx.when(ptx.and_.pred(ptx.tid.x >= first, ptx.tid.x < first + LANES * self.shape.groups)):
                StoringWarp(self.plan.formats.out, self.plan.boxes, memory, self.target, first).store_all(share)

    def fill(self, share: Share, stage: Side) -> None:
        self.scaling.fill(share, stage)

    def loop(self, *given: object) -> ScaledLoop:
        return ScaledLoop(self.scaling, self.storing, *given)


class ScaledLoop(MainLoop):
    """The main loop with scales: what the MMAs of a K tile give is added to sums in other registers.

    With one set of registers for what MMAs give (`Shape.fresh`), 64 rows of a K tile are multiplied at a time, and
    added while the MMAs of the other warpgroup run. With several sets, as many K tiles are multiplied at a time, and
    one is added while the next ones are multiplied: for small tiles, whose MMAs take less time than the wait for them.
    """

    def __init__(self, scaling: ScaleStages, storing: bool, *given: Any) -> None:
        super().__init__(*given)
        self.scaling, self.storing = scaling, storing
        down, _ = ptx.warpgroup_fragments(self.product).d.first(ptx.laneid)
        self.row = self.own * (STRIPE * self.shape.tall) + (ptx.tid.x >> 5 & 3) * 16 + down  # of the tile
        self.is_full = ptx.setp.ne.u32(self.own, self.own)  # whether the next stage was seen to be full
        rows = self.own * (self.shape.tall * STRIPE_UNITS), u32(0)
        self.starts = [halves(ptx.descriptor(tile), more) for tile, more in zip(self.tiles, rows, strict=True)]

    def compute(self, number: u32, prepare: Callable[[Any, Any], None]) -> tuple[list[list[Any]], Any, Any]:
        """The sums of this warpgroup's rows of a tile, and the first row and column of the tile."""
        sums = self.accumulators(self.shape.tall)
        if self.shape.tall > 1 or self.shape.fresh == 1:
            (fresh,) = self.accumulators(1)
            self.add_one(sums, fresh, ptx.mul.f32)
            for _ in ptx.range(self.share.first + BLOCK, self.share.end, BLOCK):
                self.add_one(sums, fresh)
        else:
            for value in sums[0]:
                ptx.mov.f32(0.0, out=value)
            self.add_several(sums[0])
        row, column = (u32(0), u32(0)) if self.storing else self.share.origin(number)
        prepare(row, column)
        return sums, row, column

    def add_one(self, sums: list[list[Any]], fresh: list[Any], multiply: Instruction | None = None) -> None:
        """One K tile; `multiply` is what the first one of a tile does instead of adding."""
        stage, shape = self.stages[0], self.shape
        with self.times.span("wait for a full stage"):
            stage.wait(unless=self.is_full)
        columns = self.of_columns(stage)
        for part, values in enumerate(sums):
            rows = self.of_rows(stage, part)
            with self.times.span("multiply"):
                self.multiply(stage, fresh, part)
                ptx.wgmma.wait_group.sync.aligned(0)
            if part == shape.tall - 1:
                ptx.bar.warp.sync(-1)  # all lanes have read their scales
                stage.release(shape.cluster)
                stage.test(out=self.is_full)  # early: the answer takes a while
            with self.times.span("add"):
                self.add(values, fresh, rows, columns, multiply)

    def add_several(self, sums: list[Scalar]) -> None:
        """As many K tiles are in flight as there are sets of registers; those after the last are zeros."""
        shape, share, count = self.shape, self.share, self.scaling.multiple
        fresh = self.accumulators(shape.fresh)
        for _ in ptx.range(share.first, share.end, count * BLOCK):
            flying: list[Any] = []
            for number in range(count):
                flying.append(self.issue(fresh[number % shape.fresh]))
                if len(flying) == shape.fresh:
                    self.collect(sums, flying.pop(0), len(flying))
            while flying:
                self.collect(sums, flying.pop(0), len(flying))

    def issue(self, fresh: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Issue the MMAs of a K tile; what they give, and the scales of it."""
        stage = self.stages[0]
        with self.times.span("wait for a full stage"):
            stage.wait()
        rows, columns = self.of_rows(stage, 0), self.of_columns(stage)
        self.multiply(stage, fresh, 0)
        stage.advance()
        return fresh, rows, columns

    def collect(self, sums: list[Any], issued: tuple[list[Any], list[Any], list[Any]], flying: int) -> None:
        """Add what a K tile gave, while so many later ones are in flight."""
        with self.times.span("multiply"):
            ptx.wgmma.wait_group.sync.aligned(flying)
        ptx.bar.warp.sync(-1)  # all lanes have read their scales
        self.stages[1].release(self.shape.cluster)
        with self.times.span("add"):
            self.add(sums, *issued)

    def of_rows(self, stage: Side, part: int) -> list[f32]:
        """The scales of a thread's two rows of 64."""
        return [self.scaling.kept[stage.index, self.row + (part * STRIPE + more)] for more in (0, 8)]

    def of_columns(self, stage: Side) -> list[f32]:
        """The scales of columns."""
        first = self.shape.rows
        return [self.scaling.kept[stage.index, first + section] for section in range(self.scaling.sections)]

    def multiply(self, stage: Side, fresh: list[f32], part: int) -> None:
        """Issue the MMAs of a K tile as one group: they start from zero."""
        adds = ptx.setp.ne.u32(self.own, self.own)
        starts = [
            (low + stage.index * (operand.stage_bytes // UNIT), high)
            for (low, high), operand in zip(self.starts, self.operands, strict=True)
        ]
        ptx.wgmma.fence.sync.aligned()
        for step in range(0, LINE, STEP):
            more = part * STRIPE_UNITS + step // UNIT, step // UNIT
            a, b = (
                ptx.mov.b64(((low + units).view(b32), high)).view(u64)
                for (low, high), units in zip(starts, more, strict=True)
            )
            self.product(fresh, a, b, adds, 1, 1)
            adds = ptx.setp.eq.u32(self.own, self.own)
        ptx.wgmma.commit_group.sync.aligned()

    def add(
        self,
        sums: list[f32],
        fresh: list[f32],
        rows: list[f32],
        columns: list[f32],
        multiply: Instruction | None = None,
    ) -> None:
        """Add what a K tile gave; of four accumulators of 8 columns, two are of one row and two of another."""
        factors = [[one * scale for one in rows] for scale in columns]
        for number, (total, value) in enumerate(zip(sums, fresh, strict=True)):
            section = number // 4 * CHUNK // self.scaling.section
            factor = factors[section][number // 2 % 2]
            if multiply is None:
                ptx.fma.rn.f32(value, factor, total, out=total)
            else:
                multiply(value, factor, out=total)


def halves(descriptor: Scalar, more: u32) -> tuple[u32, b32]:
    """Both halves of a descriptor so many units on: the address is in the lower one, and has space in it."""
    low, high = ptx.mov.b64(descriptor.view(b64), out=(b32(), b32()))
    return low.view(u32) + more, high
