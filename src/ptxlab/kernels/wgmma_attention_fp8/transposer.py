"""Two warps that transpose values: 8-bit `wgmma` wants both operands along the dimension that is summed over.

`ldmatrix.trans` transposes elements of two bytes, here two neighbours of a row of values. Of 16 keys a lane then has
four, of two columns: two `prmt` sort them into four keys of one column and four of the other, which `stmatrix` stores.
The four keys of a lane are those whose weights the same lane of a consumer has: keys are in another order in a column,
and weights need not be exchanged.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import ptx, u32
from ptxlab.kernels.wgmma_attention_fp8.plan import TRANSPOSERS, Fp8Plan, Fp8Tiles

EVEN, ODD = 0x6420, 0x7531  # the bytes of one column, and of the other
KEYS, COLUMNS = 16, 32  # that an `ldmatrix` takes
AHEAD = 2  # so many of them before the first `stmatrix`: ptxas moves no load over a store
LOAD = ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
STORE = ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16


class Transposer:
    """One of the warps; it has every other 32 columns."""

    def __init__(self, plan: Fp8Plan, tiles: Fp8Tiles, source: Any, target: Any, own: Any) -> None:
        self.plan, self.tiles, self.source, self.target = plan, tiles, source, target
        eight, side = ptx.laneid & 7, ptx.laneid >> 4  # of the row that the lane gives the address of
        self.key, self.column = ptx.laneid & 15, own * COLUMNS + side * 16
        self.row = self.column + eight * 2 + ((ptx.laneid >> 3 ^ eight >> 2) & 1)  # 8 rows are in 8 different banks

    def run(self, ends: Any) -> None:
        """Transpose one tile of values after the other, until the producer says that there are no more."""
        with ptx.loop():
            self.source.wait()
            ptx.leave_when(ends[self.source.index] != 0)
            self.target.wait()
            self.transpose()
            ptx.fence.proxy.async_["shared::cta"]()
            ptx.bar.warp.sync(-1)
            self.source.release()
            self.target.release()

    def transpose(self) -> None:
        """A tile."""
        plan = self.plan
        boxes = plan.keys // plan.transposed_box
        numbers = range(0, plan.keys, KEYS)
        for start in range(0, plan.size, COLUMNS * TRANSPOSERS):
            box, within = divmod(start, plan.box)
            first = self.tiles.v.at(self.key, self.column + within, self.source.index * plan.boxes + box)
            there = self.tiles.transposed.at(self.row, u32(0), self.target.index * boxes, below=1).move(rows=start)
            for at in range(0, len(numbers), AHEAD):
                loaded = [(number, LOAD(first.move(rows=number))) for number in numbers[at : at + AHEAD]]
                for number, words in loaded:
                    part, right = divmod(number, plan.transposed_box)
                    pairs = words[:2], words[2:]
                    sorted_ = [ptx.prmt.b32(low, high, bytes) for low, high in pairs for bytes in (EVEN, ODD)]
                    STORE(there.move(columns=right, copy=part), tuple(sorted_))
