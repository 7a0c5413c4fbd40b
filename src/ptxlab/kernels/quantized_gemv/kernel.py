"""y = W x for weights of 4 or 8 bits, in Python: tensor cores add up what a few instructions for a pair decode.

A block has 16 rows of W, and its warps take chunks of them in turn. A chunk is 64 bytes of each row, as one
`mma.m16n8k16` after the other takes them: lane 4 r + c has 16 bytes of row r and 16 of row r + 8. They are pieces of 16
weights; four lanes have four pieces that are beside each other, so that what they read of x is one line of the cache.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, b8, b32, bf16, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.quantized_gemv.formats import PIECE, Format

LANES, ROWS, VECTORS = 32, 16, 8
CHUNK = 1024  # bytes
LOAD = ptx.ld.global_  # not `.nc`: the kernel before may still write it
LOAD_ONCE = LOAD["L1::no_allocate"]  # leave the cache to x
PREFETCH = ptx.cp.async_.bulk.prefetch.L2.global_


@dataclass(frozen=True)
class Shape:
    """How a block works."""

    warps: int = 8
    ahead: int = 1
    """Chunks that a warp asks for at a time."""
    sets: int = 2
    """Sets of registers for so many chunks: with two, one is filled while the other is used."""
    resident: int = 32
    """Warps that an SM holds at a time: what registers are limited for."""
    overlaps: bool = True
    """Whether it starts while the kernel before it ends."""
    early: int = 8192
    """Bytes of weights that a block then brings into the L2 cache before that kernel has ended."""

    @property
    def step(self) -> int:
        """Chunks that a block asks for at a time."""
        return self.warps * self.ahead


@cache
def build(format: Format, shape: Shape, whole: bool) -> Kernel:
    """The kernel; `whole` if all warps have as many chunks, all sets of registers full."""
    warps, sets = shape.warps, shape.sets

    @kernel(target="sm_90", maxntid=warps * LANES, minnctapersm=shape.resident // warps)
    def quantized_gemv(
        weights: pointer[b8],
        scales: pointer[b8],
        x: pointer[bf16],
        y: pointer[bf16],
        factor: f32,
        rows: u32,
        chunks: u32,
        count: u32,
    ) -> None:
        thread, lane, warp = ptx.tid.x, ptx.laneid, ptx.tid.x >> 5
        first_vector = ptx.ctaid.y * VECTORS
        sums = [f32(0.0) for _ in range(4)]
        if shape.overlaps:
            ptx.griddepcontrol.launch_dependents()  # the next kernel may do the same
            if shape.early:
                with ptx.when(thread == 0):
                    prefetch(weights, chunks, CHUNK, shape.early // CHUNK)
                    if format.group:
                        prefetch(scales, chunks, format.scale_bytes, shape.early // CHUNK)
            ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
        source = Source(format, weights, scales, x, chunks, (first_vector, count))
        kept = [[Chunk(source, number * warps) for number in range(shape.ahead)] for _ in range(sets)]
        if sets == 2:
            for chunk in kept[0]:
                chunk.read(warp, whole)
        for first in ptx.range(warp, chunks, shape.step * sets):
            for number, using in enumerate(kept):
                for chunk in kept[(number + 1) % sets]:
                    chunk.read(first + (number + sets - 1) * shape.step, whole and number + 1 < sets)
                for chunk in using:
                    chunk.multiply(first + number * shape.step, whole, sums)
        partial = ptx.shared(f32, warps, VECTORS, ROWS)
        for at, value in enumerate(sums):
            partial[warp, (lane & 3) * 2 + at % 2, (lane >> 2) + at // 2 * 8] = value
        ptx.bar.sync(0)
        row, vector = ptx.ctaid.x * ROWS + (thread & 15), first_vector + (thread >> 4)
        is_inside = (thread < ROWS * VECTORS) & (row < rows) & (vector < count)
        with ptx.when(is_inside):
            total = f32(0.0)
            for number in range(warps):
                total += partial[number, thread >> 4, thread & 15]
            if not format.group:
                total *= scales.view(f32)[row]
            y[vector * rows + row] = ptx.cvt.rn.bf16.f32(total * factor)

    return quantized_gemv


def prefetch(array: Pointer, chunks: u32, bytes: int, most: int) -> None:
    """Ask for the first of a block's chunks. Nothing is read, so that an earlier kernel may still write them."""
    count = ptx.min.u32(chunks, most)
    PREFETCH(array.at(ptx.mul.wide.u32(ptx.ctaid.x * chunks, bytes)), count * bytes)


class Source:
    """Where a lane finds its part of the chunks of a block, and of x."""

    def __init__(
        self, format: Format, weights: Pointer, scales: Pointer, x: Pointer, chunks: u32, vectors: tuple[u32, u32]
    ) -> None:
        lane, (first, count) = ptx.laneid, vectors
        self.format, self.chunks, self.start = format, chunks, ptx.ctaid.x * chunks
        self.weights, self.scales = weights + lane * 16, scales + format.lane_offset(lane)
        vector = ptx.min.u32(first + (lane >> 2), count - 1)  # a column that is not needed has one that is there
        self.x = x + vector * (chunks * format.depth) + (lane & 3) * PIECE


class Chunk:
    """Registers for a lane's part of a chunk, and what fills and uses them."""

    def __init__(self, source: Source, more: int) -> None:
        self.source, self.format, self.more = source, source.format, more
        self.words = [[b32() for _ in range(4)] for _ in range(2)]
        self.factors = [b32() for _ in range(self.format.scale_words)]

    def read(self, first: Any, whole: bool) -> None:
        """The words of both rows, and what scales them."""
        number = first + self.more
        inside = None if whole else number < self.source.chunks
        number = self.source.start + number
        weights = self.source.weights.at(ptx.mul.wide.u32(number, CHUNK))
        for half, words in enumerate(self.words):
            LOAD_ONCE.v4.b32(weights + half * (CHUNK // 2), out=tuple(words), when=inside)
        if self.factors:
            scales = self.source.scales.at(ptx.mul.wide.u32(number, self.format.scale_bytes))
            self.format.read(LOAD_ONCE, scales, self.factors, inside)

    def multiply(self, first: u32, whole: bool, sums: list[f32]) -> None:
        """Add the products with x."""
        number = first + self.more
        with nullcontext() if whole else ptx.when(number < self.source.chunks):
            source = self.source.x + number * self.format.depth
            places = [at + half for at in range(0, self.format.depth, 4 * PIECE) for half in (0, PIECE // 2)]
            x = [word for at in places for word in LOAD.v4.b32(source + at)]
            self.format.multiply(self.words, self.factors, x, sums)
