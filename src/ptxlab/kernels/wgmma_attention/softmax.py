"""The softmax of the rows of a warpgroup, whose scores come a tile of keys at a time.

The weight of a key is 2^((score − maximum)·scale), with the maximum of the row so far. Where that grows, all that was
summed before is too large by a factor; after the first keys that happens seldom, and a warp asks whether it must scale.
A lane has two rows 8 apart; four lanes share a row.
"""

from __future__ import annotations

import math
from typing import Any

from ptxlab.author import f32, pred, ptx, s32
from ptxlab.kernels.mma_attention.softmax import ALL, LANES, combine
from ptxlab.kernels.parts.reductions import add, larger, over_lanes
from ptxlab.kernels.wgmma_attention.scoring import UNCHANGED, Scoring

ROWS = 2  # of a lane
LEAST = -(2.0**126)  # the maximum, scaled, of a row that attends to no key yet: −∞ would make weights of −∞ NaN


def row_of(number: int) -> int:
    """Which of the lane's rows an element of its scores or sums is in."""
    return number // 2 % ROWS


class Softmax:
    """Maxima and totals of the rows of a lane, in registers."""

    def __init__(self, size: int, scoring: Scoring = UNCHANGED) -> None:
        self.least = LEAST / max(1.0, scoring.scale(size))
        self.scale: Any = scoring.scale(size)
        self.maxima = [f32() for _ in range(ROWS)]
        self.totals = [f32() for _ in range(ROWS)]  # of the lane's own keys

    def reset(self, sink: f32 | None = None) -> None:
        """Begin with other rows; a sink is as the score of a key before all others."""
        for maximum, total in zip(self.maxima, self.totals, strict=True):
            maximum.set(self.least if sink is None else sink)
            total.set(0.0 if sink is None else 1 / LANES)

    def mask(
        self, scores: list[f32], offsets: tuple[tuple[int, int], ...], starts: list[s32] | None, ends: list[s32]
    ) -> None:
        """Mask the keys of each row after its end, and up to its start; all are counted from the lane's first."""
        for number, (score, (_, right)) in enumerate(zip(scores, offsets, strict=True)):
            row = row_of(number)
            ptx.mov.f32(-math.inf, out=score, when=ends[row] < right)
            if starts is not None:
                ptx.mov.f32(-math.inf, out=score, when=starts[row] >= right)

    def compute_p(self, scores: list[f32]) -> tuple[pred, list[f32]]:
        """Replace scores by P, and add it to the totals.

        Return whether what was summed before is to be scaled, the same in all lanes of a warp, and by which factors.
        """
        rows = [[score for number, score in enumerate(scores) if row_of(number) == row] for row in range(ROWS)]
        grown = [self._maximum(own, old) for own, old in zip(rows, self.maxima, strict=True)]
        grows = [new > old for new, old in zip(grown, self.maxima, strict=True)]
        any_grows = ptx.vote.sync.any.pred(grows[0] | grows[1], ALL)
        return any_grows, self.compute_p_of_rows(rows, grown)

    def compute_p_of_rows(self, rows: list[list[f32]], grown: list[f32]) -> list[f32]:
        """Replace the scores of rows with such maxima by P; return the factors."""
        factors = []
        for own, new, maximum, total in zip(rows, grown, self.maxima, self.totals, strict=True):
            offset = self.offset(new)
            factor = ptx.ex2.approx.ftz.f32((maximum - new) * self.scale)  # exactly 1 where it does not grow
            maximum.set(new)
            self.raise_two(own, offset)
            self.count(total, factor, own)
            factors.append(factor)
        return factors

    def raise_two(self, own: list[f32], offset: f32) -> None:
        """Replace the scores of a row by 2 to the power of each, scaled and with the offset."""
        for score in own:
            ptx.ex2.approx.ftz.f32(ptx.fma.rn.f32(score, self.scale, offset), out=score)

    def count(self, total: f32, factor: f32, own: list[f32]) -> None:
        """Add P of a row to its total."""
        ptx.fma.rn.f32(total, factor, combine(ptx.add.rn.f32, own), out=total)

    def offset(self, maximum: f32) -> Any:
        """What is added to a scaled score: the weight of the maximum is 1."""
        return maximum * -self.scale

    def _maximum(self, own: list[f32], old: f32) -> f32:
        return ptx.max.f32(over_lanes(combine(ptx.max.f32, own), larger, LANES), old)

    def inverses(self) -> list[f32]:
        """What sums are to be multiplied with in the end; 0 for a row that attends to no key."""
        totals = [over_lanes(total, add, LANES) for total in self.totals]
        return [ptx.selp.f32(0.0, ptx.rcp.approx.ftz.f32(total), total == 0.0) for total in totals]

    def logs(self) -> list[f32]:
        """The log-sum-exp of each row's scores; −∞ for a row that attends to no key."""
        both = zip(self.maxima, (over_lanes(total, add, LANES) for total in self.totals), strict=True)
        return [ptx.fma.rn.f32(top, self.scale, ptx.lg2.approx.f32(total)) * math.log(2) for top, total in both]
