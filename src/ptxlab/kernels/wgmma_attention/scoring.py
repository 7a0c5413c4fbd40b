"""What becomes of scores before the softmax: a soft cap, a bias by distance (ALiBi), a sink beside the keys.

Kernels are specialized for it, so that what is not asked for costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ptxlab.author import Pointer, f32, ptx, s32, u32

LOG2_E = math.log2(math.e)
SMALLEST = -127.0  # the logarithm of a weight of 0, for what is multiplied by that weight


@dataclass(frozen=True)
class Scoring:
    """A score s = q·k/√d of the query at i and the key at j becomes c·tanh(s/c) − slope·|i − j|, for a cap c.

    With sinks, each head has one more score, of a key whose values are 0.
    """

    softcap: float = 0.0
    """0: none."""
    alibi: bool = False
    sinks: bool = False

    def scale(self, size: int) -> float:
        """What a score, as `cap` and `bend` leave it, is multiplied with: the softmax is of powers of two."""
        return LOG2_E * (self.softcap or 1 / math.sqrt(size))

    def cap(self, score: f32, size: int) -> None:
        """Replace q·k by tanh(s/c), where there is a cap."""
        if self.softcap:
            ptx.tanh.approx.f32(score * (1 / (math.sqrt(size) * self.softcap)), out=score)

    def slope(self, slopes: Pointer, head: u32, size: int) -> f32:
        """The slope of a head, in units of scores before they are scaled."""
        return ptx.ld["global"].nc.f32(slopes + head) * (LOG2_E / self.scale(size))

    def bend(self, score: f32, slope: f32, distance: f32) -> None:
        """Subtract slope × distance."""
        ptx.sub.rn.f32(score, slope * ptx.abs.f32(distance), out=score)

    def steepness(self, weight: f32, offset: f32, size: int, bias: f32 | None) -> f32:
        """How much a capped score grows with s, from its weight 2^(score·scale + offset): 1 − tanh²(s/c).

        So that no other number has to be kept of each score. `bias` is what was subtracted from it.
        """
        power = ptx.max.f32(ptx.lg2.approx.ftz.f32(weight), SMALLEST) - offset
        t = power * (1 / self.scale(size))
        if bias is not None:
            t = t + bias
        return 1.0 - ptx.min.f32(t * t, 1.0)  # of a query that is not there, the offset is −∞


UNCHANGED = Scoring()


def as_number(value: s32, more: int = 0) -> f32:
    """A whole number, and a constant besides, as f32."""
    found: f32 = ptx.cvt.rn.f32.s32(value)
    return found + float(more) if more else found
