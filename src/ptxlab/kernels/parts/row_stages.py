"""Results of short rows, put together in shared memory: each warp writes those of all its rows in whole vectors.

The rows of a warp are after each other in memory, and so are their results. Written by the threads that have them, each
sector would be written several times, in parts.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import b16, f32, ptx
from ptxlab.kernels.parts.elements import SIZES, WIDEST, element_pointer, load_bits, store_bits
from ptxlab.kernels.parts.reductions import WARP
from ptxlab.kernels.parts.spreads import Spread


class Stage:
    """The results of this warp's rows on their way to a matrix."""

    def __init__(self, matrix: Any, rows: Any, columns: Any, spread: Spread) -> None:
        self.matrix, self.spread = matrix, spread
        self.lane, count = ptx.tid.x & (WARP - 1), WARP // spread.threads
        first = ptx.ctaid.x * (spread.block // spread.threads) + (ptx.tid.x >> 5) * count
        self.start = ptx.mul.wide.u32(first, columns)
        self.size = ptx.min.u32(rows - ptx.min.u32(rows, first), count) * columns
        whole, size = WIDEST // SIZES[spread.type], SIZES[spread.type]
        address = element_pointer(matrix, spread.type, 1, self.start).address
        self.before = ptx.cvt.u32.u64(address) // size & whole - 1
        element = f32 if size == 4 else b16
        memory = ptx.dynamic_shared(element) + (ptx.tid.x >> 5) * (spread.staged // size)
        self.memory = memory + self.before
        self.row = self.memory + (self.lane // spread.threads) * columns

    def write(self) -> None:
        """Write what all lanes have put into shared memory."""
        ptx.bar.warp.sync(0xFFFFFFFF)
        spread, lane, type = self.spread, self.lane, self.spread.type
        whole = WIDEST // SIZES[type]
        head = 0 - self.before & whole - 1
        for number in range(-(-spread.held * spread.vector // whole)):
            column = head + (lane + number * WARP) * whole
            self.move(column, whole, column + whole <= self.size)
        head = ptx.min.u32(head, self.size)
        tail = head + (self.size - head) // whole * whole
        is_head = lane < whole
        column = ptx.selp.u32(lane, tail + lane - whole, is_head)
        self.move(column, 1, column < ptx.selp.u32(head, self.size, is_head))

    def move(self, column: Any, count: int, inside: Any) -> None:
        """Write elements from a column on, counted from the warp's first row."""
        type = self.spread.type
        bits = load_bits(ptx.ld.shared, (self.memory + column).vector(count), type, count, 0.0, inside)
        store_bits(element_pointer(self.matrix, type, count, self.start, column), type, bits, inside)
