"""All variants of the kernel that are worth a try for a product, and what each is estimated to take on an H200."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from ptxlab.author import b8, b16, b32
from ptxlab.estimate.hardware import H200
from ptxlab.estimate.units import wgmma_cycles
from ptxlab.kernels.parts.operands import LINE, SECTOR, STRIPE
from ptxlab.kernels.parts.shapes import Layout, Shape

SMS = 132
SHARED = 232_448 - 1024  # bytes of shared memory that a block may have, less the barriers and the alignment
MOST_STAGES = 14
IN_CLUSTERS = 96  # SMs that surely have all clusters of more than two blocks at a time
FEW = 8  # rows of A are few where B has so many times as many columns
IN_TURNS_COLUMNS = 128, 160, 192


@dataclass(frozen=True)
class Costs:
    """What things cost, in cycles of an SM, or bytes a cycle.

    `benchmarks/fit_products.py` fits them to the times of variants of random products
    (evidence/random_products.json): to one half of the sizes, and judges them by the other.
    """

    start: float = 5900.0  # until the first copy, and from the last store to the end
    thread: float = 1.4  # until each thread of a block runs
    stage: float = 90.3  # until the barriers of a stage are initialized
    block: float = 1429.0  # until another block of an SM runs
    pair: float = 170.8  # until both blocks of a cluster run
    copy: float = 84.8  # bytes that an SM gets from the L2 cache
    in_parts: float = 2.03  # times as much, where rows are not multiples of 32 bytes: each is in two lines
    across: float = 1.25  # times as much for an operand across k
    narrow: float = 1.56  # times as much in boxes of 32 columns
    shared: float = 1.19  # of what the other block of a pair copies is copied less
    latency: float = 1882.0  # of a copy, of which a ring has as many in flight as stages
    multiply: float = 0.812  # of what MMAs take at full speed
    alone: float = 1.13  # times as much for one warpgroup
    large: float = 1.06  # times as much for more than two rows of MMAs, with fewer stages
    store: float = 28.1  # bytes of D that a block stores
    box: float = 192.0  # for each box of D
    again: float = 0.67  # of a store that is not hidden by the next tile
    in_turns: float = 1.51  # times as long for two warpgroups that store in turns
    restart: float = 11_720.0  # until the next block of an SM multiplies
    cluster_sum: float = 123.5  # for each part of k that blocks of a cluster add
    cluster_bytes: float = 29.7  # bytes of these
    memory_sum: float = 2080.0  # for a sum through global memory
    memory_bytes: float = 37.2  # bytes of these
    read: float = 2178.0  # bytes that all SMs get from memory
    written: float = 3357.0  # bytes of D that all SMs write
    odd: float = 1.87  # times as much, where rows of D are not multiples of 32 bytes
    overlap: float = 1.86  # how well copies, MMAs and latency overlap: the exponent of a norm
    whole: float = 1.75  # the same for what all SMs move


COSTS = Costs()


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


def together(exponent: float, *times: float) -> float:
    """What takes these times at once: more than the longest, and less than the sum."""
    return float(sum(time**exponent for time in times) ** (1 / exponent))


def estimate(problem: Problem, shape: Shape, costs: Costs = COSTS) -> float:
    """Cycles that a variant is estimated to take."""
    blocks = problem.tiles(shape) * shape.cluster * shape.split
    each = ceil(blocks / SMS)  # of the SM that has most
    at_once = min(shape.occupancy, each)
    rounds = ceil(each / at_once)
    tile = ceil(problem.steps / shape.split) * step_cycles(problem, shape, at_once, costs)
    boxes = shape.boxes(problem.layout(shape))
    store = shape.rows * boxes.width * problem.out_size / costs.store + costs.box * shape.tall * boxes.each
    if shape.split > 1:
        busy = each * tile + rounds * store + costs.restart * (rounds - 1)
    elif shape.alternate:
        busy = each * max(tile, (tile + costs.in_turns * store) / 2) + store
    else:
        busy = each * tile + store * (1 + costs.again * (rounds - 1))
    read = problem.size * (problem.m + problem.n) * problem.k / costs.read
    is_odd = problem.n * problem.out_size % SECTOR != 0
    written = problem.out_size * problem.m * problem.n / costs.written * (costs.odd if is_odd else 1.0)
    start = costs.start + costs.thread * shape.threads + costs.stage * shape.stages
    start += costs.block * min(blocks / SMS, shape.occupancy) + (costs.pair if shape.cluster > 1 else 0.0)
    return start + together(costs.whole, busy, read + written) + sum_cycles(shape, costs)


def step_cycles(problem: Problem, shape: Shape, at_once: int, costs: Costs) -> float:
    """Cycles of an SM for a K tile of one of the blocks that it has at once."""
    layout = problem.layout(shape)
    sides = [(problem.m, problem.a_along_k), (problem.n, problem.b_along_k)]
    left, right = reversed(sides) if shape.swapped else sides
    copied = 0.0
    for (extent, along_k), lines, is_shared, span in (
        (left, shape.rows, shape.beside, STRIPE),
        (right, shape.right_rows(layout), not shape.beside, shape.span),
    ):
        bytes = float(LINE * lines)
        if not along_k:
            bytes *= costs.across * (costs.narrow if span < STRIPE else 1.0)
        if problem.size * (problem.k if along_k else extent) % SECTOR:
            bytes *= costs.in_parts
        copied += bytes / (1 + costs.shared * (shape.cluster - 1)) if is_shared else bytes
    multiplied = costs.multiply * shape.readers * shape.tall * 4 * wgmma_cycles(shape.columns, H200)
    if shape.groups == 1 and at_once == 1:
        multiplied *= costs.alone
    if shape.groups * shape.tall > 2:
        multiplied *= costs.large
    return together(costs.overlap, multiplied, copied / costs.copy, costs.latency / shape.stages / at_once)


def sum_cycles(shape: Shape, costs: Costs) -> float:
    """Cycles that the sum over blocks takes: barriers, and numbers written and read."""
    if shape.split == 1:
        return 0.0
    read = shape.parts.bytes * shape.split / shape.parts.count
    if shape.clustered:
        return costs.cluster_sum * shape.split + (shape.parts.bytes / 4 + read) / costs.cluster_bytes
    return costs.memory_sum + (shape.parts.bytes + read) / costs.memory_bytes


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
        turns = Shape(columns=columns, tall=2, alternate=True)
        in_turns = _fitted(problem, replace(turns, keep=hints(problem, turns)))
        if in_turns is not None and problem.tiles(in_turns) > 2 * SMS:
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
