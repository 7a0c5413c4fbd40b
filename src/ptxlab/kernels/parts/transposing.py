"""Warps that transpose tiles of 8 bits in shared memory: 8-bit `wgmma` wants both operands along the summed dimension.

`ldmatrix.trans` transposes elements of two bytes, here two neighbours of a row. Of 16 rows a lane then has four, of two
columns: two `prmt` sort them into four rows of one column and four of the other, which `stmatrix` stores. The four rows
of a lane are those whose accumulators the same lane of a consumer has: rows are in another order in a column, and the
weights of attention, made of accumulators, need not be exchanged between lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, ptx, u32

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile

EVEN, ODD = 0x6420, 0x7531  # the bytes of one column, and of the other
ROWS, COLUMNS = 16, 32  # that an `ldmatrix` takes
AHEAD = 2  # so many of them before the first `stmatrix`: ptxas moves no load over a store
LOAD = ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
STORE = ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16


class Transposer:
    """Warp `own` of so many. `filled` and `free` are its stages of both tiles."""

    def __init__(self, source: Tile, target: Tile, filled: Side, free: Side, own: u32, warps: int) -> None:
        self.source, self.target, self.filled, self.free, self.own, self.warps = (
            source,
            target,
            filled,
            free,
            own,
            warps,
        )
        self.is_even = target.rows % (COLUMNS * warps) == 0  # then a warp has every `warps`-th 32 columns
        eight, side = ptx.laneid & 7, ptx.laneid >> 4  # of the row that the lane gives the address of
        self.row, self.column = ptx.laneid & 15, (own if self.is_even else u32(0)) * COLUMNS + side * 16
        self.there = self.column + eight * 2 + ((ptx.laneid >> 3 ^ eight >> 2) & 1)  # 8 rows are in 8 different banks

    def run(self, ends: Pointer) -> None:
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
        """A tile: all warps by the same instructions, or each by its own where columns cannot be shared evenly."""
        step = COLUMNS * (self.warps if self.is_even else 1)
        starts, numbers = range(0, self.target.rows, step), range(0, self.source.rows, ROWS)
        blocks = [(start, number) for start in starts for number in numbers]
        if self.is_even:
            self.transpose_blocks(blocks)
            return
        for warp in range(self.warps):
            first, end = (len(blocks) * one // self.warps for one in (warp, warp + 1))
            with ptx.when(self.own == warp):
                self.transpose_blocks(blocks[first:end])

    def transpose_blocks(self, blocks: list[tuple[int, int]]) -> None:
        """Blocks of 16 rows and 32 columns, by the column and the row where they begin."""
        source, target = self.source, self.target
        boxes, parts = target.rows // source.columns, source.rows // target.columns
        firsts: dict[int, Any] = {}
        there = target.at(self.there, u32(0), self.free.index * parts, below=1)
        for at in range(0, len(blocks), AHEAD):
            loaded = []
            for start, number in blocks[at : at + AHEAD]:
                if start not in firsts:
                    box, within = divmod(start, source.columns)
                    firsts[start] = source.at(self.row, self.column + within, self.filled.index * boxes + box)
                loaded.append((start, number, LOAD(firsts[start].move(rows=number))))
            for start, number, words in loaded:
                part, right = divmod(number, target.columns)
                pairs = words[:2], words[2:]
                sorted_ = [ptx.prmt.b32(low, high, bytes) for low, high in pairs for bytes in (EVEN, ODD)]
                STORE(there.move(rows=start, columns=right, copy=part), tuple(sorted_))
