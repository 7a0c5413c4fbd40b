"""Which variant computes a product with scales of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil

from ptxlab.kernels.wgmma_gemm.candidates import SMS, Problem
from ptxlab.kernels.wgmma_gemm.shapes import Shape

EMULATED = (16, 32, 64)  # columns of a tile


@dataclass(frozen=True)
class Choice:
    """A variant, and how many microseconds a K tile takes, while all SMs compute one; as an H200 was seen to."""

    shape: Shape
    each: float

    def estimate(self, problem: Problem) -> float:
        """Microseconds for a product, but for those that all variants take."""
        waves = ceil(problem.tiles(self.shape) / (SMS * self.shape.occupancy))
        return waves * problem.steps * self.each


CHOICES = (
    Choice(Shape(2, 128, 4, tall=2, buffers=2, fresh=1), 0.81),
    Choice(Shape(3, 128, 4, buffers=2, fresh=1), 0.60),
    Choice(Shape(2, 64, 8, buffers=1, fresh=2), 0.35),
    Choice(Shape(1, 32, 6, buffers=1, fresh=4, occupancy=3), 0.28),
)


@cache
def choose(problem: Problem, emulated: bool = False) -> Shape:
    """The variant for a product: the fastest on an H200, or one that is cheap on the emulator."""
    if emulated:
        columns = next((some for some in EMULATED if some >= problem.n), EMULATED[-1])
        return Shape(groups=1, columns=columns, stages=2, fresh=1)
    return min(CHOICES, key=lambda one: one.estimate(problem)).shape
