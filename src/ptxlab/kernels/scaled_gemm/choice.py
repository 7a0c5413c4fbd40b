"""Which variant computes a product with scales of blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf

from ptxlab.kernels.parts.choices import Choice
from ptxlab.kernels.parts.operands import STRIPE
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import SMS, Problem, hints

EMULATED = (16, 32, 64)  # columns of a tile
START = 3.0  # microseconds until the first MMA, and from the last to the end
CLUSTER = 0.6  # microseconds more until blocks of a cluster start
READ_ONCE = 2  # rows of tiles for which B is read once from memory
EXCHANGE = 0.7  # microseconds that parts of k take to be added


@dataclass(frozen=True)
class Timed:
    """A variant, and how many microseconds a K tile and the end of a tile take, while all SMs compute one.

    They are fitted to times on an H200 (evidence/tuned/scaled_gemm.json).
    """

    shape: Shape
    each: float
    end: float

    def estimate(self, problem: Problem) -> float:
        """Microseconds for a product."""
        shape = self.shape
        blocks = problem.tiles(shape) * shape.cluster * shape.split_k
        row = max(shape.fresh, shape.unroll)
        if shape.split_k > 1 and (blocks > SMS or problem.steps < shape.split_k * row):
            return inf
        if shape.rows > STRIPE and shape.rows >= 2 * problem.m:
            return inf  # half of a tile would be empty
        waves = ceil(blocks / (SMS * shape.occupancy))
        steps = ceil(problem.steps / shape.split_k / row) * row
        start = START + CLUSTER * (shape.cluster > 1) + EXCHANGE * (shape.split_k > 1)
        return start + waves * (steps * self.each + self.end)


CHOICES = (
    Timed(Shape(2, 128, 3, tall=2, buffers=4, fresh=1), 0.717, 0.85),
    Timed(Shape(2, 128, 3, tall=2, buffers=4, cluster=2, beside=2, fresh=1), 0.71, 0.83),
    Timed(Shape(3, 128, 4, buffers=2, cluster=2, beside=2, fresh=1), 0.545, 0.8),
    Timed(Shape(2, 192, 4, buffers=3, fresh=1), 0.545, 0.74),
    Timed(Shape(2, 128, 6, buffers=1, fresh=2, unroll=4), 0.354, 0.79),
    Timed(Shape(2, 112, 6, buffers=1, fresh=2), 0.356, 1.0),
    Timed(Shape(2, 112, 6, buffers=1, fresh=2, split_k=2), 0.493, 0.6),
    Timed(Shape(2, 96, 7, buffers=1, fresh=2), 0.398, 0.6),
    Timed(Shape(2, 64, 8, buffers=1, fresh=2, unroll=4), 0.256, 0.6),
    Timed(Shape(2, 64, 8, buffers=1, fresh=2, split_k=2, unroll=4), 0.287, 0.6),
    Timed(Shape(1, 96, 10, buffers=1, fresh=2), 0.336, 0.6),
    Timed(Shape(1, 64, 6, buffers=1, fresh=2, occupancy=2), 0.349, 0.54),
    Timed(Shape(1, 64, 13, buffers=1, fresh=4), 0.215, 0.3),
    Timed(Shape(1, 64, 13, buffers=1, fresh=4, split_k=2), 0.19, 0.0),
    Timed(Shape(1, 32, 14, buffers=1, fresh=4), 0.149, 0.0),
)


def choose(problem: Problem, emulated: bool = False) -> Shape:
    """The variant for a product: the fastest on the GPU, or one that is cheap on the emulator."""
    if emulated:
        columns = next((some for some in EMULATED if some >= problem.n), EMULATED[-1])
        return Shape(groups=1, columns=columns, stages=2, fresh=1)
    found: Shape = SCALED(problem)
    return found


@cache
def _candidates(problem: Problem) -> list[Shape]:
    """The variants for a product, first what is estimated to be the fastest."""
    times = {one.shape: one.estimate(problem) for one in CHOICES}
    found = sorted((shape for shape in times if times[shape] < inf), key=lambda shape: times[shape])
    return [
        one if problem.m > READ_ONCE * one.rows else replace(one, keep=hints(problem, one, READ_ONCE)) for one in found
    ]


SCALED = Choice("scaled_product", lambda problem: _candidates(problem)[0], _candidates)
