"""All variants of the kernel that are worth a try for a product, and what each is estimated to take.

The estimate counts cycles of an H200: MMAs and copies of a K tile, waves of tiles, and what is left at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from ptxlab.author import b8, b16, b32
from ptxlab.estimate.hardware import H200
from ptxlab.estimate.units import wgmma_cycles
from ptxlab.kernels.parts.operands import LINE, SECTOR
from ptxlab.kernels.parts.shapes import Layout, Shape

SMS = 132
SHARED = 232_448 - 1024  # bytes of shared memory that a block may have, less the barriers and the alignment
FROM_L2 = 49.0  # bytes that an SM gets from the L2 cache in a cycle, while all others do
FROM_L2_IN_PARTS = 33.0  # the same, where rows are not multiples of 32 bytes: each row of a box is in two lines
FROM_MEMORY = 2285.0  # bytes that all SMs get from memory in a cycle
LATENCY = (
    2150.0  # cycles from a copy of a K tile to the end of its MMAs, of which a ring has as many in flight as stages
)
STORED = 13.7  # elements of D that a block stores in a cycle
MOST_STAGES = 14
IN_CLUSTERS = 96  # SMs that surely have all clusters of more than two blocks at a time
FEW = 8  # rows of A are few where B has so many times as many columns
START = 5000.0  # cycles until the first MMA, and from the last copy to the end
RESTART = 4000.0  # the same for a block that follows another on an SM
IN_TURNS_COLUMNS = 96, 128, 160, 192, 208, 224, 256
IN_TURNS = 0.95  # of the time of MMAs and copies of 16 bits, where one warpgroup multiplies at a time
LARGE = 1.08  # of that time, where a K tile has more than two rows of MMAs, and there are fewer stages


@dataclass(frozen=True)
class Problem:
    """A product: D is m by n; operands along k or across it."""

    m: int
    n: int
    k: int
    a_along_k: bool = True
    b_along_k: bool = True
    size: int = 2  # bytes of an element of A and B
    out_size: int = 2  # bytes of an element of D

    @property
    def steps(self) -> int:
        """K tiles."""
        return ceil(self.k * self.size / LINE)

    @property
    def is_in_parts(self) -> bool:
        """Whether rows of an operand, as it is in memory, are not multiples of 32 bytes."""
        lengths = self.k if self.a_along_k else self.m, self.k if self.b_along_k else self.n
        return any(self.size * length % SECTOR for length in lengths)

    def layout(self, shape: Shape) -> Layout:
        """How a variant finds the matrices in memory."""
        along = (self.a_along_k, self.b_along_k)
        left, right = reversed(along) if shape.swapped else along
        is_aligned = self.n * self.out_size % 16 == 0
        return Layout(left, right, is_aligned, {1: b8, 2: b16, 4: b32}[self.size], self.out_size)

    def tiles(self, shape: Shape) -> int:
        """Tiles of a variant, those that blocks of a cluster have together counted as one."""
        high, wide = (self.n, self.m) if shape.swapped else (self.m, self.n)
        rows, columns = shape.covered
        return ceil(high / rows) * ceil(wide / columns)


def together(*times: float) -> float:
    """What takes these times at once: a little more than the longest."""
    return float(sum(time**7 for time in times) ** (1 / 7))


def estimate(problem: Problem, shape: Shape) -> float:
    """Cycles that a variant is estimated to take; the numbers are fitted to times of 1549 variants on an H200."""
    along = ceil(problem.steps / shape.split)
    multiplied = shape.readers * shape.tall * 4 * wgmma_cycles(shape.columns, H200)
    right = shape.right_rows(problem.layout(shape))
    copied = LINE * (shape.rows + right) / FROM_L2
    if problem.is_in_parts:
        copied = LINE * (shape.rows + right / shape.cluster) / FROM_L2_IN_PARTS
    each = along * max(together(multiplied, copied), LATENCY / shape.stages)
    if problem.size == 2:
        each *= IN_TURNS if shape.alternate else LARGE if shape.groups * shape.tall > 2 else 1.0
    blocks = problem.tiles(shape) * shape.cluster * shape.split
    waves = ceil(blocks / SMS) if shape.occupancy == 1 else max(blocks / SMS, ceil(blocks / (SMS * shape.occupancy)))
    stored = shape.rows * shape.parts.width * problem.out_size / 2 / STORED
    if shape.alternate:
        busy = each * waves + stored  # all but the last is stored while the other warpgroup multiplies
    elif shape.split == 1:
        busy = each * waves + stored * (1 + 0.5 * (waves - 1))
    else:
        busy = (each + stored + (RESTART if waves > 1 else 0)) * waves
    operands = problem.size * (problem.m + problem.n) * problem.k
    moved = (operands + problem.out_size * problem.m * problem.n) / FROM_MEMORY
    moved /= min(1.0, 1.5 * blocks / SMS)
    return START + together(busy, moved) + exchange_cycles(shape)


def exchange_cycles(shape: Shape) -> float:
    """Cycles that the sum over blocks takes: barriers, and numbers written and read."""
    if shape.split == 1:
        return 0.0
    read = shape.parts.bytes * shape.split / shape.parts.count
    if shape.clustered:
        return 500.0 * shape.split + (shape.parts.bytes / 4 + read) / 60
    return 3050.0 + (shape.parts.bytes + read) / 14


def shapes(problem: Problem) -> Iterator[Shape]:
    """Every variant that fits, with as many stages as fit."""
    steps = problem.steps
    for swapped in (False, True):
        for groups, tall, columns in _tiles(problem.m if swapped else problem.n):
            tile = Shape(groups, columns, 2, tall, swapped=swapped)
            if columns % 64 and columns % 32 == 0 and not problem.layout(tile).right_along_k:
                tile = replace(tile, span=32)  # what a block copies is what it multiplies
            tried = [tile, replace(tile, cluster=2), replace(tile, cluster=2, beside=True)]
            tried += [replace(tile, split=split) for split in (2, 3, 4)]
            many = [replace(tile, split=split, clustered=False) for split in (*range(2, 11), 12, 16)]
            tried += [replace(one, cluster=cluster) for one in many for cluster in (1, 2)]
            for one in tried:
                if one.split > 1 and (steps < 2 * one.split or problem.tiles(tile) * one.split > 4 * SMS):
                    continue
                kept = replace(one, keep=hints(problem, one))
                fitted = [_fitted(problem, replace(kept, occupancy=occupancy)) for occupancy in (1, 2, 3)]
                yield from (found for found in fitted if found is not None)
    for columns in IN_TURNS_COLUMNS if problem.size == 2 else ():
        for tall in (1, 2):
            turns = Shape(columns=columns, tall=tall, alternate=True)
            in_turns = _fitted(problem, replace(turns, keep=hints(problem, turns)))
            if in_turns is not None and tall * columns <= 416 and problem.tiles(in_turns) > SMS:
                yield in_turns


def hints(problem: Problem, shape: Shape, rows: int = 1) -> tuple[str, str]:
    """What L2 does with the operands: where there are few rows, A is read by all blocks.

    B is read once where there are so many rows of tiles at most, and again by others if there are more.
    """
    if FEW * problem.m > problem.n:
        return "", ""
    is_once = problem.m <= rows * shape.covered[1 if shape.swapped else 0]
    found = "evict_last", "evict_first" if is_once else ""
    return (found[1], found[0]) if shape.swapped else found


def _tiles(wide: int) -> Iterator[tuple[int, int, int]]:
    for groups, tall in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1)):
        exact = min(256, ceil(wide / 8) * 8)
        for columns in sorted({8, exact, *range(16, 257, 16)}):
            most = {2: 208, 3: 96}.get(groups, 160)  # accumulators of a thread
            if tall * columns // 2 <= most and columns < wide + max(32, wide // 4):
                yield groups, tall, columns


def _fitted(problem: Problem, shape: Shape) -> Shape | None:
    layout = problem.layout(shape)
    extent, along = (shape.rows, layout.left_along_k) if shape.beside else (shape.columns, layout.right_along_k)
    if shape.cluster > 1 and extent % (shape.cluster * (8 if along else 64)):
        return None
    registers = 65536 // (shape.occupancy * -(-shape.threads // 64) * 64)  # ptxas counts pairs of warps
    if shape.occupancy > 1 and shape.tall * shape.columns // 2 + 40 > registers:
        return None
    if 2 * shape.parts.count < shape.split and shape.columns > 32:
        return None
    if shape.clustered and shape.split > 2 and problem.tiles(shape) * shape.split > IN_CLUSTERS * shape.occupancy:
        return None
    steps = problem.steps
    most = steps if problem.tiles(shape) * shape.cluster <= SMS and shape.split == 1 else MOST_STAGES
    most = max(3, min(MOST_STAGES, most, ceil(steps / shape.split) if shape.split > 1 else most))
    boxes, memory = shape.tall * shape.boxes(layout).each, SHARED // shape.occupancy
    found = []
    for buffers in (count for count in (1, 2, 4, boxes) if boxes % count == 0):
        one = replace(shape, buffers=buffers)
        stored = one.boxes(layout).bytes if one.split == 1 else 0
        stages = int(min(most, (memory - stored) // one.stage_bytes(layout)))
        if stages >= 3:
            one = replace(one, stages=stages)
            found += [one] if one.shared(layout) <= memory else []
    return max(found, key=lambda one: (min(one.stages, 6), one.buffers), default=None)


def best(problem: Problem, count: int, alike: int = 3) -> list[Shape]:
    """The variants that are estimated to be the fastest, at most `alike` with the same tile."""
    found: list[Shape] = []
    for shape in sorted(shapes(problem), key=lambda shape: (estimate(problem, shape), shape.rows * shape.columns)):
        tile = shape.rows, shape.columns, shape.swapped
        if sum(tile == (one.rows, one.columns, one.swapped) for one in found) < alike:
            found.append(shape)
        if len(found) == count:
            break
    return found
