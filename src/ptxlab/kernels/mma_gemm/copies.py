"""Copies of K tiles of A and B into shared memory, by `cp.async`.

A thread copies the same 16 bytes of several rows, so that one number says for all its copies how many of
these bytes there are: 16, fewer at the end of a row, 0 past it. The others become zero, without a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, Tile, b8, pred, ptx, s32, u32, u64
from ptxlab.kernels.mma_gemm.shapes import Kind, Shape

if TYPE_CHECKING:
    from ptxlab.author.tiles import TilePointer

CHUNK = 16  # bytes that a copy moves
COPY = ptx.cp["async"].cg.shared.global_
Copy = Callable[[], None]


class Copies:
    """What a thread copies, and how far copies and multiplications have got along the rows."""

    def __init__(self, kind: Kind, shape: Shape, k: u32, short: bool) -> None:
        chunks = shape.depth // CHUNK
        self.kind, self.shape, self.short = kind, shape, short
        self.row_bytes = k * kind.size
        self.row, self.column = ptx.tid.x // chunks, ptx.tid.x % chunks * CHUNK
        self.at_once = shape.threads // chunks  # rows that the block copies at once
        self.unread = s32()  # bytes of a row that are not multiplied yet
        self.unread.set(self.row_bytes.view(s32))
        self.missing: Any = self.unread - self.column.view(s32)  # bytes from this thread's chunk to the end of the row
        self.bytes = s32()  # bytes of the chunk that there are
        self.offset = 0  # bytes of shared memory that are taken
        self.sources: list[Source] = []

    def of(self, matrix: Pointer, rows: u32, first: u32, count: int) -> Tile:
        """The ring of tiles for `count` rows of a matrix, from the first on."""
        memory = ptx.dynamic_shared(b8, align=1024) + self.offset
        columns, swizzle = self.shape.depth // self.kind.size, f"{self.shape.depth}B"
        tile: Tile = ptx.tile(self.kind.element, count, columns, swizzle=swizzle, copies=self.shape.stages, at=memory)
        self.offset += tile.bytes
        row, last = first + self.row, None
        if self.short:  # rows past the last one are copies of it, and never stored
            row = ptx.min.u32(row, rows - 1)
            last = rows - 1 - row
        source = matrix.view(b8) + ptx.mul.wide.u32(row, self.row_bytes) + self.column
        target = tile.at(self.row, self.column // self.kind.size)
        stride = None if self.short else ptx.mul.wide.u32(self.row_bytes, self.at_once)
        self.sources.append(Source(self, target, source.copy(), count // self.at_once, stride, last))
        return tile

    def next(self, stage: int | u32) -> list[Copy]:
        """The copies of the next K tile into a stage, for the caller to place among other instructions."""
        ptx.min.s32(self.missing, CHUNK, out=self.bytes)
        ptx.max.s32(self.bytes, 0, out=self.bytes)
        return [copy for source in self.sources for copy in source.copies(stage)]

    def advance(self) -> None:
        """Advance to the next K tile."""
        self.missing -= self.shape.depth
        for source in self.sources:
            source.pointer += self.shape.depth

    def remain(self) -> pred:
        """Count one K tile as multiplied; return whether there are more."""
        self.unread -= self.shape.depth
        return self.unread > 0


@dataclass
class Source:
    """Rows of a matrix, `at_once` apart, that a thread copies."""

    owner: Copies
    target: TilePointer
    pointer: Pointer
    count: int
    stride: u64 | None  # bytes from one to the next
    last: u32 | None  # instead of it, where there may be too few rows: how many come after the first

    def copies(self, stage: int | u32) -> list[Copy]:
        """One copy a row."""
        target, rows = self.target.move(copy=stage), [self.pointer]

        def copy(number: int) -> None:
            if number:
                rows.append(self.row(number) if self.stride is None else ptx.address(rows[-1], self.stride))
            COPY(target.move(rows=number * self.owner.at_once), rows[-1], CHUNK, self.owner.bytes)

        return [partial(copy, number) for number in range(self.count)]

    def row(self, number: int) -> Pointer:
        """The address in a row, or in the last one."""
        row = ptx.min.u32(self.last, number * self.owner.at_once)
        return ptx.address(self.pointer, ptx.mul.wide.u32(row, self.owner.row_bytes))
