"""The softmax of rows whose scores come some keys at a time.

The weight of a key is 2^((score − maximum)·scale), with the maximum of the row so far. Where that grows, all that was
summed before is too large by a known factor. Scaling it at once is what one reads about; here it waits until some row
of the warp has grown by 2^8, which after the first keys seldom happens: until then sums and weights are too large by a
factor that both share, and that cancels in the end.

A lane has, of each tile of 16 rows, two rows 8 apart; four lanes share a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ptxlab.author import b32, f32, ptx, s32
from ptxlab.kernels.parts.reductions import add, larger, over_lanes

ALL = 0xFFFFFFFF  # the lanes of a warp
LANES = 4  # of a row
GROWTH = 8.0  # powers of two


class Softmax:
    """Maxima and totals of the rows of a lane, in registers.

    `scale` is a number, or a register. Of a tile, only the first 8 rows count if `halves` is 1.
    """

    def __init__(self, tiles: int, scale: f32 | float, halves: int = 2, lowest: float = -math.inf) -> None:
        self.scale, self.halves, self.lowest = scale, range(halves), lowest
        is_number = isinstance(scale, float)
        self.negative = -scale if is_number else ptx.neg.f32(scale)
        self.limit = GROWTH / scale if is_number else ptx.rcp.approx.ftz.f32(scale) * GROWTH
        self.maxima = [[f32(lowest) for _ in self.halves] for _ in range(tiles)]
        self.totals = [[f32(0.0) for _ in self.halves] for _ in range(tiles)]  # of the lane's own keys

    def reset(self) -> None:
        """Forget all scores."""
        for rows, values in ((self.maxima, self.lowest), (self.totals, 0.0)):
            for one in (one for tile in rows for one in tile):
                one.set(f32(values))

    def mask(self, scores: list[list[list[f32]]], limit: s32, causal: bool) -> None:
        """Mask the keys after `limit`, which is the first row's; under a causal mask other rows attend to more keys."""
        for tile, blocks in enumerate(scores):
            for number, block in enumerate(blocks):
                for element, score in enumerate(block):
                    half, column = divmod(element, 2)
                    further = 16 * tile + 8 * half if causal else 0
                    ptx.mov.f32(-math.inf, out=score, when=limit < 8 * number + column - further)

    def grow(self, scores: list[list[list[f32]]], accumulators: list[list[list[f32]]]) -> None:
        """Take new scores into the maxima; if one grows by much, scale what was summed before."""
        grown = [[self._maximum(scores, tile, half) for half in self.halves] for tile in range(len(scores))]
        growths = [
            new - old
            for after, before in zip(grown, self.maxima, strict=True)
            for new, old in zip(after, before, strict=True)
        ]
        is_much = combine(ptx.max.f32, growths) > self.limit
        with ptx.when(ptx.vote.sync.any.pred(is_much, ALL)):
            for tile, blocks in enumerate(accumulators):
                for half in self.halves:
                    maximum = self.maxima[tile][half]
                    factor = ptx.ex2.approx.ftz.f32((maximum - grown[tile][half]) * self.scale)
                    maximum.set(grown[tile][half])
                    self.totals[tile][half] *= factor
                    for block in blocks:
                        for sum in block[2 * half :][:2]:
                            sum *= factor

    def _maximum(self, scores: list[list[list[f32]]], tile: int, half: int) -> f32:
        most = combine(ptx.max.f32, [score for block in scores[tile] for score in block[2 * half :][:2]])
        return ptx.max.f32(over_lanes(most, larger, LANES), self.maxima[tile][half])

    def offsets(self) -> list[list[f32]]:
        """What to add to scaled scores, so that the power of two of the sum is the weight."""
        return [[maximum * self.negative for maximum in rows] for rows in self.maxima]

    def compute_p(self, tile: int, blocks: list[list[f32]], offsets: list[f32], pack: Callable[..., Any]) -> list[Any]:
        """P of 16 keys, packed as the left operand of a product; they count into the totals."""
        packed = []
        for block in blocks:
            for half in range(2):
                if half not in self.halves:
                    packed.append(b32(0))
                    continue
                low, high = (
                    ptx.ex2.approx.ftz.f32(ptx.fma.rn.f32(score, self.scale, offsets[half]))
                    for score in block[2 * half :][:2]
                )
                self.totals[tile][half] += low + high
                packed.append(pack(high, low))
        return packed

    def over_row(self, tile: int, half: int) -> f32:
        """The total of a row, which four lanes share."""
        return over_lanes(self.totals[tile][half], add, LANES)

    def inverses(self, tile: int) -> list[f32]:
        """What sums are to be multiplied with in the end."""
        return [ptx.rcp.approx.ftz.f32(self.over_row(tile, half)) for half in self.halves]


def combine(operation: Callable[[Any, Any], Any], values: list[f32]) -> f32:
    """All values by one operation, in pairs, so that few wait for each other."""
    while len(values) > 1:
        pairs = [operation(one, other) for one, other in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(values) // 2 * 2 :]
    return values[0]
