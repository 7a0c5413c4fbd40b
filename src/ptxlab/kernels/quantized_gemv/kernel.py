"""y = W x for weights of 4 or 8 bits, in Python: tensor cores add up what a few instructions for a pair decode.

A block has 16 rows of W, and its warps take chunks of them in turn. A chunk is 16 rows by 64 bytes, as one
`mma.m16n8k16` after the other takes them: each lane reads 16 bytes of a row and 16 of the row eight below.
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
LOAD_ONCE = ptx.ld.global_.nc["L1::no_allocate"]
LOAD = ptx.ld.global_.nc


@dataclass(frozen=True)
class Shape:
    """How a block works."""

    warps: int = 8
    ahead: int = 4
    """Chunks that a warp asks for before it uses the first."""
    blocks: int = 4
    """Blocks that an SM holds at a time."""
    sets: int = 1
    """Sets of registers for chunks: with two, one is filled while the other is used."""
    hint: str = ""


@cache
def build(format: Format, m: int, shape: Shape, whole: bool) -> Kernel:
    """The kernel for m rows of x; `whole` if all warps have as many chunks, all sets of registers full."""
    warps, step = shape.warps, shape.warps * shape.ahead

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
        thread, lane = ptx.tid.x, ptx.laneid
        sums = [f32(0.0) for _ in range(4)]
        sets = [
            [Chunk(format, m, (weights, scales, x), chunks, number * warps, shape.hint) for number in range(shape.ahead)]
            for _ in range(shape.sets)
        ]
        if shape.sets == 2:
            for chunk in sets[0]:
                chunk.read(thread >> 5, whole)
        for first in ptx.range(thread >> 5, chunks, step * shape.sets):
            for number, using in enumerate(sets):
                filling = sets[(number + 1) % shape.sets]
                for chunk in filling:
                    chunk.read(first + (number + shape.sets - 1) * step, whole and number + 1 < shape.sets)
                for chunk in using:
                    chunk.multiply(first + number * step, whole, sums)
        partial = ptx.shared(f32, warps, COLUMNS, ROWS)
        column = (lane & 3) * 2
        for at, value in enumerate(sums):
            with ptx.when(column + at % 2 < m):
                partial[thread >> 5, column + at % 2, (lane >> 2) + at // 2 * 8] = value
        ptx.bar.sync(0)
        row = ptx.ctaid.x * ROWS + (thread & 15)
        with ptx.when((thread < ROWS * m) & (row < rows)):
            total = f32(0.0)
            for warp in range(warps):
                total += partial[warp, thread >> 4, thread & 15]
            if not format.group:
                total *= scales.view(f32)[row]
            y[(thread >> 4) * rows + row] = ptx.cvt.rn.bf16.f32(total * factor)

    return quantized_gemv


class Chunk:
    """Registers for a lane's part of a chunk, and what fills and uses them."""

    def __init__(self, format: Format, m: int, arrays: tuple[Any, Any, Any], chunks: Any, more: int, hint: str) -> None:
        weights, scales, x = arrays
        self.load = LOAD_ONCE[hint] if hint else LOAD_ONCE
        lane = ptx.laneid
        self.format, self.chunks, self.more, self.start = format, chunks, more, ptx.ctaid.x * chunks + more
        self.words = [[b32() for _ in range(4)] for _ in range(2)]
        self.factors = [b32() for _ in range(format.scale_words)]
        self.weights, self.scales = weights + lane * 16, scales + format.lane_offset(lane)
        self.x = x + (lane & 3) * (format.depth // 4)
        if m > 1:
            self.x = self.x + ptx.min.u32(lane >> 2, m - 1) * (chunks * format.depth)

    def read(self, first: Any, whole: bool) -> None:
        """The words of two rows, and what scales them."""
        inside = None if whole else first + self.more < self.chunks
        number = self.start + first
        source = self.weights.at(ptx.mul.wide.u32(number, CHUNK))
        for half, words in enumerate(self.words):
            self.load.v4.b32(source + half * (CHUNK // 2), out=tuple(words), when=inside)
        if self.factors:
            source = self.scales.at(ptx.mul.wide.u32(number, self.format.scale_bytes))
            self.format.read(LOAD_ONCE, source, self.factors, inside)

    def multiply(self, first: Any, whole: bool, sums: list[Any]) -> None:
        """Add the products with x."""
        with nullcontext() if whole else ptx.when(first + self.more < self.chunks):
            source = self.x + (first + self.more) * self.format.depth
            x = [word for at in range(0, self.format.depth // 4, 8) for word in LOAD.v4.b32(source + at)]
            self.format.multiply(self.words, self.factors, x, sums)
