"""Results of short rows, put together in shared memory: each warp writes those of all its rows in whole vectors.

The rows of a warp are after each other in memory, and so are their results. Written by the threads that have them, each
sector would be written several times, in parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.author import Pointer, b8, f32, pred, ptx, u32
from ptxlab.kernels.parts.elements import SIZES, WIDEST, element_pointer, load_bits, narrowed, store_bits
from ptxlab.kernels.parts.reductions import EVERY_LANE, WARP
from ptxlab.kernels.parts.spreads import Spread
from ptxlab.launch.launches import ceil_div


class Stage:
    """The results of this warp's rows on their way to a matrix."""

    def __init__(self, matrix: Pointer | None, type: str, rows: u32, columns: u32, spread: Spread) -> None:
        self.matrix, self.type, self.spread = matrix, type, spread
        self.whole = WIDEST // SIZES[type]
        self.lane, count = ptx.tid.x & (WARP - 1), WARP // spread.threads
        first = ptx.ctaid.x * (spread.block // spread.threads) + (ptx.tid.x >> 5) * count
        self.start = ptx.mul.wide.u32(first, columns)
        self.size = ptx.min.u32(rows - ptx.min.u32(rows, first), count) * columns
        address = element_pointer(matrix, type, 1, self.start).address
        self.before = ptx.cvt.u32.u64(address) // SIZES[type] & self.whole - 1
        memory = ptx.dynamic_shared(b8) + (ptx.tid.x >> 5) * spread.staged
        self.memory = element_pointer(memory, type, 1, self.before)
        self.row = self.memory + (self.lane // spread.threads) * columns

    def put(self, column: u32, number: int, values: Sequence[f32], inside: pred | None) -> None:
        """Put elements of this thread's row there: so many of its vectors after the one at a column."""
        place = (self.row + column).vector(len(values)) + number * self.spread.threads
        store_bits(place, self.type, narrowed(values, self.type), inside, ptx.st.shared)

    def write(self) -> None:
        """Write what all lanes have put into shared memory."""
        ptx.bar.warp.sync(EVERY_LANE)
        spread, lane, whole = self.spread, self.lane, self.whole
        head = 0 - self.before & whole - 1
        for number in range(ceil_div(spread.held * spread.vector, whole)):
            column = head + (lane + number * WARP) * whole
            self.move(column, whole, column + whole <= self.size)
        head = ptx.min.u32(head, self.size)
        tail = head + (self.size - head) // whole * whole
        is_head = lane < whole
        column = ptx.selp.u32(lane, tail + lane - whole, is_head)
        self.move(column, 1, column < ptx.selp.u32(head, self.size, is_head))

    def move(self, column: u32, count: int, inside: pred) -> None:
        """Write elements from a column on, counted from the warp's first row."""
        bits = load_bits(ptx.ld.shared, (self.memory + column).vector(count), self.type, count, 0.0, inside)
        store_bits(element_pointer(self.matrix, self.type, count, self.start, column), self.type, bits, inside)
