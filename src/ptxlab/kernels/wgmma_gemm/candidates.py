"""All variants of the kernel that are worth a try for a product, and what each is estimated to take on an H200."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from ptxlab.author import b8, b16, b32
from ptxlab.estimate.hardware import H200
from ptxlab.estimate.products import COSTS, Costs, OperandCopy, Variant, cycles
from ptxlab.kernels.parts.operands import LINE, SECTOR, STRIPE
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.tile_stores import CHUNK, Boxes

SMS = H200.sms
SHARED = 232_448 - 1024  # bytes of shared memory that a block may have, less the barriers and the alignment
BESIDE = 2048  # bytes of each block for these, and for the system
MOST_STAGES = 14
BLOCKS = 2  # that an SM has at a time, at most
MOST_PADDED = 1.15  # times as many columns that blocks of a cluster copy as they multiply
LOADED = 0.6  # cycles for each element of a residual that threads load for themselves where D is transposed
PAIRED = 0.3  # the same elsewhere
FEW = 8  # rows of A are few where B has so many times as many columns
MOST_HINTED = 300_000_000  # bytes of B, six times what L2 holds: what is larger is read 5 % slower with hints
IN_TURNS_COLUMNS = 128, 160, 192
IN_PARTS = tuple((1, 1, split_k, True) for split_k in (2, 3, 4))
WAYS = (  # blocks of a cluster, how many are side by side, blocks that share k, and whether those are a cluster
    (1, 1, 1, True), (2, 1, 1, True), (2, 2, 1, True), *IN_PARTS,
    *((cluster, 1, split_k, False) for split_k in (2, 3, 4, 5, 6, 8, 12, 16) for cluster in (1, 2)),
)  # fmt: skip
LARGE_CLUSTERS = tuple(  # the same, which were measured for products of 16-bit elements
    (4, beside, split_k, split_k == 1) for split_k in (1, 2, 3, 4) for beside in (1, 2, 4)
)


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
    gated: bool = False  # B is two matrices, each of half of the columns, as D is: what their products make together
    integers: bool = False  # of 8 bits: `wgmma` has fewer numbers of columns for these

    @property
    def right_bytes(self) -> int:
        """Bytes of B."""
        return self.size * self.n * self.k

    @property
    def steps(self) -> int:
        """K tiles."""
        return ceil(self.k * self.size / LINE)

    def layout(self, shape: Shape) -> Layout:
        """How a variant finds the matrices in memory."""
        along = (self.a_along_k, self.b_along_k)
        left, right = reversed(along) if shape.swap_ab else along
        is_aligned = self.n * self.out_size % 16 == 0
        return Layout(left, right, is_aligned, {1: b8, 2: b16, 4: b32}[self.size], self.out_size)

    def boxes(self, shape: Shape) -> Boxes:
        """How a variant stores D."""
        found = shape.boxes(self.layout(shape))
        return replace(found, width=found.width // 2) if self.gated else found

    def tiles(self, shape: Shape) -> int:
        """Tiles of a variant, those that blocks of a cluster have together counted as one."""
        high, wide = (self.n, self.m) if shape.swap_ab else (self.m, self.n)
        rows, columns = shape.covered
        return ceil(high / rows) * ceil(wide / columns)

    def columns_for(self, wide: int) -> int:
        """The fewest columns of a tile, up to 256, that cover so many."""
        step = 16 if self.integers and wide > 24 else 8
        return min(256, ceil(wide / step) * step)

    def shapes(self) -> Iterator[Shape]:
        """Every variant that fits."""
        return shapes(self)


def variant(problem: Problem, shape: Shape) -> Variant:
    """What it has blocks do for a product."""
    layout, boxes, summed = problem.layout(shape), problem.boxes(shape), shape.parts.bytes
    extents = [(problem.m, problem.a_along_k), (problem.n, problem.b_along_k)]
    left, right = (
        OperandCopy(
            bytes=LINE * lines,
            sharers=sharers,
            across=not along_k,
            narrow=span < STRIPE,
            in_parts=problem.size * (problem.k if along_k else extent) % SECTOR != 0,
        )
        for (extent, along_k), lines, sharers, span in zip(
            reversed(extents) if shape.swap_ab else extents,
            (shape.rows, shape.right_rows(layout)),
            (shape.beside, shape.cluster // shape.beside),
            (STRIPE, shape.span),
            strict=True,
        )
    )
    return Variant(
        sides=(left, right),
        mmas=shape.readers * shape.tall,
        columns=shape.columns,
        depth=LINE,
        stages=shape.stages,
        threads=shape.threads,
        warpgroups=shape.groups,
        blocks=problem.tiles(shape) * shape.cluster * shape.split_k,
        sms=shape.sms,
        resident=shape.occupancy,
        together=shape.cluster,
        iterations=ceil(problem.steps / shape.split_k),
        stored=shape.rows * boxes.width * problem.out_size,
        boxes=shape.tall * boxes.each,
        read=problem.size * (problem.m + problem.n) * problem.k,
        written=problem.out_size * problem.m * (problem.n >> problem.gated),
        is_odd=problem.n * problem.out_size % SECTOR != 0,
        gated=problem.gated,
        persistent=shape.split_k == 1,
        pingpong=shape.pingpong,
        split_k=shape.split_k,
        clustered=shape.clustered,
        summed=summed,
        share=summed / shape.parts.count if summed else 0.0,
    )


def estimate(problem: Problem, shape: Shape, costs: Costs = COSTS) -> float:
    """Cycles that a variant is estimated to take."""
    return cycles(variant(problem, shape), costs)


def residual_cycles(problem: Problem, shape: Shape) -> float:
    """Cycles that threads of an SM load a residual that does not come through the ring."""
    if shape.takes_residuals(problem.layout(shape)):
        return 0.0
    each = ceil(problem.tiles(shape) * shape.cluster * shape.split_k / shape.sms)
    elements = each * shape.rows * shape.columns / shape.split_k
    return elements * (LOADED if shape.swap_ab else PAIRED)


def shapes(problem: Problem) -> Iterator[Shape]:
    """Every variant that fits, with as many stages as fit."""
    steps = problem.steps
    ways = WAYS[:2] + IN_PARTS if problem.gated else WAYS + LARGE_CLUSTERS if problem.size == 2 else WAYS
    multiple = (16 if problem.b_along_k else 2 * STRIPE) if problem.gated else 1  # of columns
    for swap_ab in (False,) if problem.gated else (False, True):
        for groups, tall, columns in _tiles(problem, problem.m if swap_ab else max(problem.n, multiple)):
            if columns % multiple:
                continue
            tile = Shape(groups, columns, 2, tall, swap_ab=swap_ab)
            is_narrow = columns % 64 and columns % 32 == 0 and not problem.layout(tile).right_along_k
            span = 32 if is_narrow else 64  # what a block copies is what it multiplies
            most = min(steps // 2, BLOCKS * SMS // problem.tiles(tile))
            high, wide = (problem.n, problem.m) if swap_ab else (problem.m, problem.n)
            down, across = ceil(high / tile.rows), ceil(wide / columns)
            for cluster, beside, split_k, clustered in ways:
                if cluster > 2 and (down * beside < cluster or across < beside):
                    continue  # some blocks of each cluster would have no rows or columns of D
                if split_k == 1 or split_k <= most:
                    way = Shape(
                        groups, columns, 2, tall, cluster=cluster, beside=beside, split_k=split_k, clustered=clustered,
                        swap_ab=swap_ab, span=span,
                    )  # fmt: skip
                    for occupancy in range(1, BLOCKS + 1):
                        yield from _fitted(problem, way, occupancy)
    for columns in IN_TURNS_COLUMNS if problem.size == 2 or problem.gated else ():
        turns = Shape(columns=columns, tall=2, pingpong=True)
        if columns % multiple == 0 and problem.tiles(turns) > 2 * SMS:
            yield from _fitted(problem, turns, 1)


def hints(problem: Problem, shape: Shape, rows: int = 1) -> tuple[str, str]:
    """What L2 does with the operands: where there are few rows, A is read by all blocks, unless B is very large.

    B is read once where there are so many rows of tiles at most, and again by others if there are more.
    """
    if FEW * problem.m > problem.n or problem.right_bytes > MOST_HINTED:
        return "", ""
    is_once = problem.m <= rows * shape.covered[1 if shape.swap_ab else 0]
    found = "evict_last", "evict_first" if is_once else ""
    return (found[1], found[0]) if shape.swap_ab else found


def _tiles(problem: Problem, wide: int) -> Iterator[tuple[int, int, int]]:
    for groups, tall in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1)):
        for columns in sorted({8, problem.columns_for(wide), *range(16, 257, 16)}):
            most = {2: 208, 3: 96}.get(groups, 160)  # accumulators of a thread
            if tall * columns // 2 <= most and columns < wide + max(32, wide // 4):
                yield groups, tall, columns


def _fitted(problem: Problem, shape: Shape, occupancy: int) -> Iterator[Shape]:
    """The variant with so many blocks on an SM, and as many stages and boxes as fit, if it is of use.

    Where blocks have several tiles, there is another one with space for all of a tile of D, and fewer stages.
    """
    registers = 65536 // (occupancy * -(-shape.threads // 64) * 64)  # ptxas counts pairs of warps
    if occupancy > 1 and shape.tall * shape.columns // 2 + 40 > registers:
        return
    layout, parts = problem.layout(shape), shape.parts
    sharers = shape.cluster // shape.beside
    if problem.gated or sharers == 2:
        if layout.right_along_k and shape.columns % (8 * sharers << problem.gated if sharers > 1 else 1):
            return
    elif shape.right_rows(layout) > MOST_PADDED * shape.columns and layout.right_along_k:
        return
    if 2 * parts.count < shape.split_k and shape.columns > 32:
        return
    if problem.gated and shape.split_k > 1 and shape.columns % (2 * CHUNK * shape.split_k):
        return  # each block of a cluster stores the same columns of both products
    steps, tiles = problem.steps, problem.tiles(shape)
    if shape.split_k > 1 and tiles * shape.cluster * shape.split_k > shape.sms * occupancy:
        return
    is_one_each = shape.split_k > 1 or tiles * shape.cluster <= shape.sms
    most = max(3, min(MOST_STAGES, ceil(steps / shape.split_k) if is_one_each else MOST_STAGES))
    boxes, each = problem.boxes(shape), shape.stage_bytes(layout)
    memory = (SHARED + BESIDE) // occupancy - BESIDE
    count, one = shape.tall * boxes.each, boxes.bytes // boxes.kept
    first = shape.stored_from(0)
    found = []
    for buffers in (number for number in (1, 2, 4, count) if count % number == 0):
        stored = buffers * one
        stages = min(most, (memory - (stored if shape.split_k == 1 else 0)) // each)
        if stages >= 3 and first + stored <= memory:
            found.append((min(stages, 6), buffers, stages))
    if not found:
        return
    _, buffers, stages = found[-1] if problem.gated and shape.pingpong else max(found)  # gates take long
    keep = hints(problem, shape)
    yield replace(shape, stages=stages, buffers=buffers, occupancy=occupancy, keep=keep)
    _, whole, stages = found[-1]
    if whole > buffers and not is_one_each and (shape.pingpong or shape.registers):
        yield replace(shape, stages=stages, buffers=whole, occupancy=occupancy, keep=keep)
