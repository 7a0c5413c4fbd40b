"""Warps that transpose tiles of 8 bits in shared memory: 8-bit `wgmma` wants both operands along the summed dimension.

`ldmatrix.trans` transposes elements of two bytes, here two neighbours of a row. Of 16 rows a lane then has four, of two
columns: two `prmt` sort them into four rows of one column and four of the other, which `stmatrix` stores. The four rows
of a lane are those whose accumulators the same lane of a consumer has: rows are in another order in a column, and the
weights of attention, made of accumulators, need not be exchanged between lanes.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import ptx, u32

EVEN, ODD = 0x6420, 0x7531  # the bytes of one column, and of the other
ROWS, COLUMNS = 16, 32  # that an `ldmatrix` takes
AHEAD = 2  # so many of them before the first `stmatrix`: ptxas moves no load over a store
LOAD = ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
STORE = ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16


class Transposer:
    """Warp `own` of so many; it has every `warps`-th 32 columns. `filled` and `free` are its stages of both tiles."""

    def __init__(self, source: Any, target: Any, filled: Any, free: Any, own: Any, warps: int) -> None:
        self.source, self.target, self.filled, self.free, self.warps = source, target, filled, free, warps
        eight, side = ptx.laneid & 7, ptx.laneid >> 4  # of the row that the lane gives the address of
        self.row, self.column = ptx.laneid & 15, own * COLUMNS + side * 16
        self.there = self.column + eight * 2 + ((ptx.laneid >> 3 ^ eight >> 2) & 1)  # 8 rows are in 8 different banks

    def run(self, ends: Any) -> None:
        """Transpose one tile after the other, until `ends` says that a stage is the last, and empty."""
        with ptx.loop():
            self.filled.wait()
            ptx.leave_when(ends[self.filled.index] != 0)
            self.free.wait()
            self.transpose()
            ptx.fence.proxy.async_["shared::cta"]()
            ptx.bar.warp.sync(-1)
            self.filled.release()
            self.free.release()

    def transpose(self) -> None:
        """A tile."""
        source, target = self.source, self.target
        boxes, parts = target.rows // source.columns, source.rows // target.columns
        numbers = range(0, source.rows, ROWS)
        for start in range(0, target.rows, COLUMNS * self.warps):
            box, within = divmod(start, source.columns)
            first = source.at(self.row, self.column + within, self.filled.index * boxes + box)
            there = target.at(self.there, u32(0), self.free.index * parts, below=1).move(rows=start)
            for at in range(0, len(numbers), AHEAD):
                loaded = [(number, LOAD(first.move(rows=number))) for number in numbers[at : at + AHEAD]]
                for number, words in loaded:
                    part, right = divmod(number, target.columns)
                    pairs = words[:2], words[2:]
                    sorted_ = [ptx.prmt.b32(low, high, bytes) for low, high in pairs for bytes in (EVEN, ODD)]
                    STORE(there.move(columns=right, copy=part), tuple(sorted_))
