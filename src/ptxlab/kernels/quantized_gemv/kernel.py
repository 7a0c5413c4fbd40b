"""y = W x for weights of 4 or 8 bits, in Python: tensor cores add up what a few instructions for a pair decode.

A block has 16 rows of W, and its warps take chunks of them in turn. A chunk is 16 rows by 64 bytes, as one
`mma.m16n8k16` after the other takes them: each lane has 16 bytes of a row and 16 of the row eight below.

Chunks come by `cp.async`, as many ahead as a warp has stages in shared memory: registers for what is under way would be
too few to keep the memory busy. No other warp reads them, so that warps wait for one another only at the end.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.author import Kernel, b8, b32, bf16, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.quantized_gemv.formats import Format

LANES, ROWS, COLUMNS = 32, 16, 8
CHUNK = 1024  # bytes
COPY = ptx.cp.async_.cg.shared.global_
LOAD = ptx.ld.global_.nc


@dataclass(frozen=True)
class Shape:
    """How a block works."""

    warps: int = 8
    stages: int = 4
    """Chunks of a warp in shared memory."""
    blocks: int = 4
    """Blocks that an SM holds at a time, at least: what registers are limited for."""
    masked: bool = True
    hint: str = ""

    def shared(self, format: Format) -> int:
        """Bytes of shared memory that a block has for chunks."""
        return self.warps * self.stages * (CHUNK + format.scale_bytes)


@cache
def build(format: Format, m: int, shape: Shape, whole: bool) -> Kernel:
    """The kernel for m rows of x; `whole` if all warps have as many chunks, a multiple of the stages."""
    warps, stages = shape.warps, shape.stages

    @kernel(target="sm_90", maxntid=warps * LANES, minnctapersm=shape.blocks)
    def quantized_gemv(
        weights: pointer[b8],
        scales: pointer[b8],
        x: pointer[bf16],
        y: pointer[bf16],
        factor: f32,
        rows: u32,
        chunks: u32,
    ) -> None:
        thread, lane, warp = ptx.tid.x, ptx.laneid, ptx.tid.x >> 5
        memory = ptx.dynamic_shared(b8, align=16) + warp * (stages * (CHUNK + format.scale_bytes))
        own = Chunks(format, m, shape, (weights, scales, x), memory, chunks)
        for stage in range(stages):
            own.copy(stage, warp + stage * warps, None if whole else warp + stage * warps < chunks)
        sums = [f32(0.0) for _ in range(4)]
        for first in ptx.range(warp, chunks, warps * stages):
            for stage in range(stages):
                number = first + stage * warps
                ptx.cp.async_.wait_group(stages - 1)
                ptx.bar.warp.sync(-1)  # the scales come by copies of other lanes
                with nullcontext() if whole or not stage else ptx.when(number < chunks):
                    read = own.read(stage)
                    own.multiply(number, read, sums)
                ptx.bar.warp.sync(-1)  # all lanes have read their scales
                own.copy(stage, number + warps * stages, number + warps * stages < chunks)
        partial = ptx.shared(f32, warps, COLUMNS, ROWS)
        column = (lane & 3) * 2
        for at, value in enumerate(sums):
            with ptx.when(column + at % 2 < m):
                partial[warp, column + at % 2, (lane >> 2) + at // 2 * 8] = value
        ptx.bar.sync(0)
        row = ptx.ctaid.x * ROWS + (thread & 15)
        with ptx.when((thread < ROWS * m) & (row < rows)):
            total = f32(0.0)
            for number in range(warps):
                total += partial[number, thread >> 4, thread & 15]
            if not format.group:
                total *= scales.view(f32)[row]
            y[(thread >> 4) * rows + row] = ptx.cvt.rn.bf16.f32(total * factor)

    return quantized_gemv


class Chunks:
    """The chunks of a block's rows, as a lane of a warp copies, reads and multiplies them."""

    def __init__(self, format: Format, m: int, shape: Shape, arrays: Any, memory: Any, chunks: Any) -> None:
        (weights, scales, x), lane = arrays, ptx.laneid
        self.format, self.memory, self.start = format, memory, ptx.ctaid.x * chunks
        self.weights, self.scales = weights + lane * 16, scales + lane * 16
        self.words, self.factors = memory + lane * 16, memory + CHUNK + format.lane_offset(lane)
        self.has_scales = lane < format.scale_bytes // 16
        self.x = x + (lane & 3) * (format.depth // 4)
        row = lane >> 2
        self.has_x = row < m if shape.masked else None
        if m > 1:
            self.x = self.x + (row if shape.masked else ptx.min.u32(row, m - 1)) * (chunks * format.depth)
        self.vector = [b32(0) for _ in range(format.depth // 8)]
        self.hinted = COPY[shape.hint] if shape.hint else COPY

    def copy(self, stage: int, number: Any, inside: Any) -> None:
        """Start the copy of a chunk, a group of its own; where it is not inside, the group is empty."""
        at, to = self.start + number, stage * (CHUNK + self.format.scale_bytes)
        source = self.weights.at(ptx.mul.wide.u32(at, CHUNK))
        for half in range(0, CHUNK, CHUNK // 2):
            self.hinted(self.words + to + half, source + half, 16, when=inside)
        if self.format.scale_bytes:
            source = self.scales.at(ptx.mul.wide.u32(at, self.format.scale_bytes))
            has = self.has_scales if inside is None else ptx.and_.pred(self.has_scales, inside)
            COPY(self.memory + ptx.laneid * 16 + (CHUNK + to), source, 16, when=has)
        ptx.cp.async_.commit_group()

    def read(self, stage: int) -> tuple[list[Any], list[Any]]:
        """The words of two rows, and their scales."""
        at = stage * (CHUNK + self.format.scale_bytes)
        words = [list(ptx.ld.shared.v4.b32(self.words + at + half)) for half in (0, CHUNK // 2)]
        return words, self.format.read(ptx.ld.shared, self.factors + at)

    def multiply(self, number: Any, read: tuple[list[Any], list[Any]], sums: list[Any]) -> None:
        """Add the products of a chunk with x."""
        source = self.x + number * self.format.depth
        for at in range(0, len(self.vector), 4):
            LOAD.v4.b32(source + 2 * at, out=tuple(self.vector[at : at + 4]), when=self.has_x)
        self.format.multiply(*read, self.vector, sums)
