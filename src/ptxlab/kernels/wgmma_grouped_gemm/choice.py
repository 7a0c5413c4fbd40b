"""Which variant computes products of groups of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import ceil

from ptxlab.kernels.parts.choices import Choice
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import BESIDE, SHARED, Problem
from ptxlab.kernels.wgmma_gemm.correction import best, ranked
from ptxlab.kernels.wgmma_grouped_gemm.groups import space_for

MOST_GROUPS = 1024
TRIED, ALIKE = 12, 2  # variants that `tune` measures, and how many of them may have the same tile


@dataclass(frozen=True)
class Grouped(Problem):
    """Products of groups: `m` are the rows of all of them, whose ends are not known."""

    groups: int = 1

    @property
    def right_bytes(self) -> int:
        """Bytes of the matrices of groups that have rows."""
        return min(self.groups, self.m) * super().right_bytes

    def tiles(self, shape: Shape) -> int:
        """As many tiles as may be expected: the last one of a group is half empty in the mean."""
        rows, columns = reversed(shape.covered) if shape.swap_ab else shape.covered
        most = min(self.groups, self.m)
        return max(most, ceil(self.m / rows + most / 2)) * ceil(self.n / columns)

    def shapes(self) -> Iterator[Shape]:
        """Every variant that fits beside the numbers of the groups: each block has tiles of its own."""
        table = 8 * (space_for(self.groups) + 1)
        for shape in super().shapes():
            if shape.cluster > 1 or shape.split_k > 1:
                continue
            layout = self.layout(shape)
            free = (SHARED + BESIDE) // shape.occupancy - BESIDE - table
            over = max(0, ceil((shape.shared(layout) - free) / shape.stage_bytes(layout)))
            if shape.stages - over >= 2:
                yield replace(shape, stages=shape.stages - over)


@dataclass(frozen=True)
class InnerGrouped(Problem):
    """Products of groups along k, each with a result of its own: `k` is what a group has in the mean."""

    groups: int = 1

    @staticmethod
    def of(groups: int, tokens: int, m: int, n: int, out_size: int = 2) -> InnerGrouped:
        """That of so many tokens, as for all that are a little fewer."""
        return InnerGrouped(m, n, rounded(ceil(tokens / groups)), False, False, 2, out_size, groups=groups)

    def tiles(self, shape: Shape) -> int:
        """Those of all groups."""
        return self.groups * super().tiles(shape)

    def shapes(self) -> Iterator[Shape]:
        """Every variant that fits: each block has tiles of its own, one at a time."""
        for shape in super().shapes():
            if not shape.swap_ab and shape.cluster == shape.split_k == 1 and not shape.pingpong:
                yield shape


def rounded(rows: int) -> int:
    """Rows of a batch as of one that is a little longer, so that it needs no other kernel."""
    step = 1 << max(0, rows.bit_length() - 4)
    return ceil(rows / step) * step


@cache
def fastest(problem: Grouped | InnerGrouped) -> Shape:
    """The variant with the best estimate."""
    return ranked(problem)[0]


def _chosen(groups: int, m: int, n: int, k: int, along_k: bool = True, size: int = 2) -> Shape:
    """The variant for so many groups of elements of `size` bytes."""
    return fastest(Grouped(rounded(m), n, k, True, along_k, size, groups=groups))


def _candidates(groups: int, m: int, n: int, k: int, along_k: bool = True, size: int = 2) -> list[Shape]:
    return best(Grouped(m, n, k, True, along_k, size, groups=groups), TRIED, ALIKE)


choose = Choice("grouped_product", _chosen, _candidates)
