"""Scales of blocks: where they are in memory, and how they come to shared memory.

Where scales of neighbouring rows of A are neighbours in memory, the producer copies them with the K tile, by TMA. Other
ones, and the few of B, are brought by warps of their own: a copy by TMA of 16 bytes was slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, f32, pred, ptx, s32, u32
from ptxlab.kernels.parts.operands import COPIES
from ptxlab.kernels.parts.shapes import Shape

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.kernels.parts.tile_order import Share

BLOCK = 128  # elements that share a scale, along k, and rows of B
LANES = 32
LINE = 32  # floats that a copy by TMA is aligned to in shared memory
COPY = ptx.cp.async_.ca.shared.global_


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of a matrix in memory, and how many rows the matrix has; `start` is a tensor map or a pointer."""

    start: Pointer
    down: u32
    right: u32
    rows: u32
    mapped: bool = False

    def row(self, row: u32, each: int = 1) -> Pointer:
        """Where those of a row are, of which so many share them; rows that are out of bounds have those of the last."""
        inside = ptx.min.u32(row, self.rows - 1) // each
        return self.start + ptx.mul.wide.u32(inside, self.down)


class ScaleStages:
    """Scales in shared memory, for each stage those of its K tile; a stage is full when they are there, too.

    Consumers could load scales themselves, but a load takes as long as the MMAs of a K tile, and an instruction that
    needs it holds up all that come after.
    """

    def __init__(self, shape: Shape, scales: tuple[Scales, Scales], k: u32) -> None:
        self.shape, self.scales, self.last = shape, scales, k - 1
        self.multiple = max(shape.fresh, shape.unroll) if shape.tall == 1 else 1
        self.section = gcd(shape.columns, BLOCK)  # columns that surely have the same scale
        self.sections = shape.columns // self.section
        self.mapped = scales[0].mapped
        self.bytes = 4 * shape.rows * self.mapped  # that the producer copies for a stage
        self.are_stored = shape.tall > 1 and not self.mapped
        warps = 2 if shape.registers and not self.mapped else 1
        self.first, self.lanes = shape.consumers + LANES, LANES * warps
        self.fills = 1 + (warps if self.are_stored else self.sections if self.mapped else self.lanes)
        self.kept = ptx.shared(f32, shape.stages, shape.rows + LINE, align=4 * LINE, name="scales")

    def copy_mapped(self, stage: Side, row: u32, start: u32) -> None:
        """What the producer copies to a stage besides a K tile."""
        if self.mapped:
            there = row.view(s32), (start >> 7).view(s32)
            COPIES[1](self.kept.at(stage.index, 0), (self.scales[0].start, there), stage.barrier)

    def fill(self, share: Share, stage: Side) -> None:
        """What warps do for others: a lane has every so many-th row, and the first ones also some columns.

        Many rows are loaded a K tile ahead and stored; few are copied, as many K tiles ahead as there are stages.
        """
        own = ptx.tid.x - self.first
        with ptx.when(ptx.and_.pred(ptx.tid.x >= self.first, own < self.lanes)):
            for row, column in share.tiles():
                a, b = self.scales
                places = [(a.row(row + own + more), a.right) for more in self.rows]
                places.append((b.row(column + own * self.section, BLOCK), b.right))
                (self.store if self.are_stored else self.copy)(share, stage, own, places)

    def copy(self, share: Share, stage: Side, own: u32, places: list[tuple[Any, Any]]) -> None:
        """Copy the scales of each K tile; a lane arrives when its copies are complete."""
        for start in share.steps():
            sources = self.at(places, start)
            stage.wait()
            for source, (place, when) in zip(sources, self.targets(stage, own), strict=True):
                COPY(place, source, 4, when=when)
            when = own < self.sections if self.mapped else None
            ptx.cp.async_.mbarrier.arrive.noinc.shared.b64(stage.barrier, when=when)
            stage.advance()

    def store(self, share: Share, stage: Side, own: u32, places: list[tuple[Any, Any]]) -> None:
        """Load the scales of a K tile before those of the last one are stored; a warp arrives when it has stored."""
        ahead = [ptx.ld.global_.f32(one) for one in self.at(places, share.first)]
        for start in share.steps():
            values = [ptx.mov.f32(one) for one in ahead]
            for one, source in zip(ahead, self.at(places, start + BLOCK), strict=True):
                ptx.ld.global_.f32(source, out=one)
            stage.wait()
            for value, (place, when) in zip(values, self.targets(stage, own), strict=True):
                ptx.st.shared.f32(place, value, when=when)
            ptx.bar.warp.sync(-1)
            with ptx.when(ptx.laneid == 0):
                stage.arrive()
            stage.advance()

    @property
    def rows(self) -> range:
        """The rows that the first lane has."""
        return range(0, 0 if self.mapped else self.shape.rows, self.lanes)

    def at(self, places: list[tuple[Pointer, u32]], start: u32) -> list[Pointer]:
        """Where the scales of the K tile from `start` on are; after the last one, its again."""
        number = ptx.min.u32(start, self.last) >> 7
        return [place + number * step for place, step in places]

    def targets(self, stage: Side, own: u32) -> list[tuple[Pointer, pred | None]]:
        """Where a lane's scales go, and whether they do."""
        to = self.kept.at(stage.index, own)
        rows = [(to + more, None) for more in self.rows]
        return [*rows, (to + self.shape.rows, own < self.sections)]
