"""D = A·Bᵀ of 8-bit floats with scales of blocks: the kernel of `wgmma_gemm` with another main loop.

A has a scale for each 128 elements of a row, B one for each 128 by 128. A K tile is 128 elements: its MMAs start from
zero, and what they computed is multiplied by both scales and added to sums in f32 by ordinary arithmetic. That makes
the result more exact, too: within an MMA, sums of fp8 products have 14 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, b32, b64, f32, kernel, pointer, ptx, tensor_map, u32, u64
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.main_loop import MainLoop
from ptxlab.kernels.parts.operands import LINE, STRIPE
from ptxlab.kernels.parts.tile_stores import CopyBack, PlainStore
from ptxlab.kernels.wgmma_gemm.kernel import block
from ptxlab.kernels.wgmma_gemm.shapes import Layout, Shape

BLOCK = 128  # elements that share a scale, along k, and rows of B
STEP = 32  # bytes along k that one `wgmma` multiplies
UNIT = 16  # bytes that descriptors count in
STRIPE_UNITS = STRIPE * LINE // UNIT  # from one 64 rows to the next


@cache
def specialize(formats: Formats, shape: Shape, layout: Layout) -> Kernel:
    """Build the kernel: after m, n and k come the distance of rows of D, the scales of A and of B, and their strides.

    Strides are numbers from one scale to the next, along rows of the matrix and along k.
    """
    wanted: dict[str, Any] = {"maxntid": shape.threads}
    wanted |= {"reqnctapercluster": shape.blocks} if shape.blocks > 1 else {}
    wanted |= {"minnctapersm": shape.occupancy} if shape.occupancy > 1 else {}
    element: Any = {2: b16, 4: b32}[layout.out_size]
    target: Any = tensor_map if layout.aligned else pointer[element]

    @kernel(target="sm_90a", **wanted)
    def scaled_gemm(
        a: tensor_map,
        b: tensor_map,
        d: target,
        m: u32,
        n: u32,
        k: u32,
        pitch: u32,
        scale_a: pointer[f32],
        scale_b: pointer[f32],
        a_down: u32,
        a_right: u32,
        b_down: u32,
        b_right: u32,
        partial: pointer[f32],
        counters: pointer[u32],
    ) -> None:
        store = CopyBack(d.generic) if target is tensor_map else PlainStore(d, m, n, pitch)
        scales = Scales(scale_a, a_down, a_right, m), Scales(scale_b, b_down, b_right, n)

        def loop(*given: Any) -> ScaledLoop:
            return ScaledLoop(scales, k, *given)

        block(formats, shape, layout, (a, b), store, None, (m, n, k), (partial, counters), loop, shape.fresh)

    found: Kernel = scaled_gemm
    return found


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of a matrix in memory, and how many rows the matrix has."""

    start: Any
    down: Any
    right: Any
    rows: Any

    def row(self, row: Any, each: int = 1) -> Any:
        """Where those of a row are, of which so many share them; rows that are out of bounds have those of the last."""
        inside = ptx.min.u32(row, self.rows - 1) // each
        return self.start + ptx.mul.wide.u32(inside, self.down)


class ScaledLoop(MainLoop):
    """The main loop with scales: what the MMAs of a K tile give is added to sums in other registers.

    With one set of registers for what MMAs give (`Shape.fresh`), 64 rows of a K tile are multiplied at a time, and
    added while the MMAs of the other warpgroup run. With several sets, as many K tiles are multiplied at a time, and
    one is added while the next ones are multiplied: for small tiles, whose MMAs take less time than the wait for them.
    """

    def __init__(self, scales: tuple[Scales, Scales], k: Any, *given: Any) -> None:
        super().__init__(*given)
        self.scales, self.last = scales, k - 1
        rows = self.own * (self.shape.tall * STRIPE_UNITS), u32(0)
        self.starts = [halves(ptx.descriptor(tile), more) for tile, more in zip(self.tiles, rows, strict=True)]

    def compute(self, number: Any, prepare: Callable[[Any, Any], None]) -> tuple[list[list[Any]], Any, Any]:
        """The sums of this warpgroup's rows of a tile, and the first row and column of the tile."""
        row, column = self.share.origin(number)
        prepare(row, column)
        places, sums = self.places(row, column), self.accumulators(self.shape.tall)
        for value in (value for values in sums for value in values):
            ptx.mov.f32(0.0, out=value)
        if self.shape.fresh == 1:
            self.add_each(places, sums)
        else:
            self.add_several(places, sums[0])
        return sums, row, column

    def places(self, row: Any, column: Any) -> list[tuple[Any, Any]]:
        """Where the scales are that a thread needs, and the step to the next K tile: of its rows of A, then of B."""
        a, b = self.scales
        down, _ = ptx.warpgroup_fragments(self.product).d.first(ptx.laneid)
        own = row + self.own * (STRIPE * self.shape.tall) + (ptx.tid.x >> 5 & 3) * 16 + down
        rows = [own + STRIPE * part + offset for part in range(self.shape.tall) for offset in (0, 8)]
        return [*((a.row(one), a.right) for one in rows), (b.row(column, BLOCK), b.right)]

    def add_each(self, places: Any, sums: list[list[Any]]) -> None:
        """One K tile at a time; its scales were loaded while the one before was multiplied."""
        stage, shape, share = self.stages[0], self.shape, self.share
        (fresh,), ahead = self.accumulators(1), [f32() for _ in places]
        load(places, share.first, ahead)
        for start in share.steps():
            scales = [ptx.mov.f32(one) for one in ahead]
            load(places, start + BLOCK, ahead, start + BLOCK < share.end)
            with self.times.span("wait for a full stage"):
                stage.wait()
            for part, values in enumerate(sums):
                with self.times.span("multiply"):
                    self.multiply(stage, fresh, part)
                    ptx.wgmma.wait_group.sync.aligned(0)
                if part == shape.tall - 1:
                    stage.release(shape.cluster)
                with self.times.span("add"):
                    add(values, fresh, scales[2 * part :][:2], scales[-1])

    def add_several(self, places: Any, sums: list[Any]) -> None:
        """As many K tiles at a time as there are sets of registers; those after the last are zeros."""
        (stage, read), shape, share = self.stages, self.shape, self.share
        fresh = self.accumulators(shape.fresh)
        scales = [[f32() for _ in places] for _ in fresh]
        for start in ptx.range(share.first, share.end, shape.fresh * BLOCK):
            for number, some in enumerate(scales):
                load(places, ptx.min.u32(start + number * BLOCK, self.last), some)
            for values in fresh:
                with self.times.span("wait for a full stage"):
                    stage.wait()
                self.multiply(stage, values, 0)
                stage.advance()
            for number, (values, some) in enumerate(zip(fresh, scales, strict=True)):
                with self.times.span("multiply"):
                    ptx.wgmma.wait_group.sync.aligned(shape.fresh - 1 - number)
                read.release(shape.cluster)
                with self.times.span("add"):
                    add(sums, values, some[:2], some[-1])

    def multiply(self, stage: Any, fresh: list[Any], part: int) -> None:
        """Issue the MMAs of a K tile as one group: they start from zero."""
        never, always = ptx.setp.ne.u32(self.own, self.own), ptx.setp.eq.u32(self.own, self.own)
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
            self.product(fresh, a, b, always if step else never, 1, 1)
        ptx.wgmma.commit_group.sync.aligned()


def halves(descriptor: Any, more: Any) -> tuple[Any, Any]:
    """Both halves of a descriptor so many units on: the address is in the lower one, and has space in it."""
    low, high = ptx.mov.b64(descriptor.view(b64), out=(b32(), b32()))
    return low.view(u32) + more, high


def load(places: Any, start: Any, out: list[Any], when: Any = None) -> None:
    """Load the scales of the K tile of 128 elements from `start` on."""
    for (place, step), one in zip(places, out, strict=True):
        ptx.ld.global_.nc.f32(place + (start >> 7) * step, out=one, when=when)


def add(sums: list[Any], fresh: list[Any], rows: list[Any], scale: Any) -> None:
    """Add what a K tile gave; of four accumulators, two are of one row and two of another."""
    factors = [one * scale for one in rows]
    for number, (total, value) in enumerate(zip(sums, fresh, strict=True)):
        ptx.fma.rn.f32(value, factors[number // 2 % 2], total, out=total)
