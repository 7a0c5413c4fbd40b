"""The product of f32 matrices by schedules: each adds a step to the one before, beside cuBLAS.

    python benchmarks/scheduled_gemm.py FILE [--sizes 20] [--seconds 300] [--seed 1] [--processes 6] [--variants]

needs an H200. All schedules at 4096 x 4096 x 4096; the last, with several tiles, at random sizes, of which extents are
drawn log-uniformly from 64 to 8192. cuBLAS is what torch calls, without TF32. `scheduled_products.py` says how.
"""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

from scheduled_products import Product, Row, measure_all, options, random_rows

from ptxlab.schedule import Schedule, algorithm, f32, schedule

TOLERANCE = 1e-5  # of the norm of what is expected
CUBE = (4096, 4096, 4096)


@algorithm
def matmul(a: f32["m", "k"], b: f32["k", "n"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[x, j] for x in range(k))


def naive() -> Schedule:
    s = schedule(matmul)
    return s.tile(i=32, j=32).blocks().threads("j", "i")


def coalesced() -> Schedule:
    s = schedule(matmul)
    return s.tile(i=32, j=32).blocks().threads("i", "j")


def shared_memory() -> Schedule:
    s = coalesced()
    return s.tile(x=32).stage("a", "b", in_="shared").unroll("x.1")


def rows_of_threads() -> Schedule:
    s = schedule(matmul)
    s.tile(i=64, j=64).blocks()
    s.tile(i=8).threads().threads("j")
    s.tile(x=8).reorder("x", "i").unroll("x.1")
    return s.stage("a", "b", in_="shared").stage("a", "b", in_="registers")


def squares_of_threads() -> Schedule:
    s = schedule(matmul)
    s.tile(i=128, j=128).blocks()
    s.tile(i=8, j=8).threads()
    s.tile(x=8).reorder("x", "i", "j").unroll("x.1")
    return s.stage("a", "b", in_="shared").stage("a", "b", in_="registers")


def vectorized() -> Schedule:
    s = schedule(matmul)
    s.tile(i=128, j=128).blocks()
    s.tile(i=8, j=8).threads()
    s.tile(x=8).reorder("x", "i", "j").unroll("x.1")
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    return s.vectorize("a", "b", "c", 4)


def warp_tiles() -> Schedule:
    s = schedule(matmul)
    tiles_of_warps(s, 128, 128, 8)
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    return s.vectorize("a", "b", "c", 4)


def tiles_of_warps(s: Schedule, m: int, n: int, k: int, blocks: int = 1) -> Schedule:
    """32 x 64 for a warp; lanes that differ in bit 0 read the same of B, such that differ in bits 1 to 3 of A."""
    s.tile(i=m, j=n).blocks()
    s.tile(i=32, j=64).threads()
    s.tile(i=16, j=32)
    s.tile(i=8).threads().tile(j=4).threads().tile(i=4).threads()
    if blocks > 1:
        s.tile(x=k * blocks).tile(x=k).cluster()
    else:
        s.tile(x=k)
    return s.reorder("x", "i.2", "j.2", "i.5", "j.4").unroll(f"x.{2 if blocks > 1 else 1}")


def pipelined(m: int = 64, n: int = 256, k: int = 32, stages: int = 2, group: int = 8, blocks: int = 1) -> Schedule:
    s = tiles_of_warps(schedule(matmul), m, n, k, blocks)
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    s.vectorize("a", "b", "c", 4).pipeline(stages=stages)
    return s.raster(group).resident(max(1, 2 * 256 // s.state.thread_count))


def prefetched(m: int = 64, n: int = 256, k: int = 32, stages: int = 2, group: int = 8, blocks: int = 1) -> Schedule:
    return pipelined(m, n, k, stages, group, blocks).prefetch()


def by_sixteens(m: int, n: int, k: int = 16, stages: int = 4, blocks: int = 1) -> Schedule:
    """More warps for a tile: 16 x 32 for a warp, 4 x 4 for a thread."""
    s = schedule(matmul)
    s.tile(i=m, j=n).blocks()
    s.tile(i=16, j=32).threads()
    s.tile(i=8).threads().tile(j=4).threads().tile(i=4).threads()
    if blocks > 1:
        s.tile(x=k * blocks).tile(x=k).cluster()
    else:
        s.tile(x=k)
    s.reorder("x", "i.4", "j.3").unroll(f"x.{2 if blocks > 1 else 1}")
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    s.vectorize("a", "b", "c", 4).pipeline(stages=stages)
    return s.raster(8).prefetch()


STEPS = {
    "naive": naive,
    "coalesced": coalesced,
    "shared memory": shared_memory,
    "1-D tiling": rows_of_threads,
    "2-D tiling": squares_of_threads,
    "vectorized": vectorized,
    "warp tiling": warp_tiles,
    "pipelined": pipelined,
}
VARIANTS = {
    "64x256x16, 4 stages": lambda: prefetched(k=16, stages=4),
    "64x256x16, 3 stages": lambda: prefetched(k=16, stages=3),
    "64x256x32, 2 stages": prefetched,
    "64x256x32, 2 stages, raster 16": lambda: prefetched(group=16),
    "128x128x32, 2 stages": lambda: prefetched(128, 128),
    "64x256x32, 2 stages, not prefetched": pipelined,
}
TILES = {
    "64x256": prefetched,
    "64x128": lambda: prefetched(64, 128, 16, 4),
    "64x64": lambda: prefetched(64, 64, 16, 4),
    "64x128, 2 blocks": lambda: prefetched(64, 128, 16, 4, blocks=2),
    "64x64, 2 blocks": lambda: prefetched(64, 64, 16, 4, blocks=2),
    "64x64, 4 blocks": lambda: prefetched(64, 64, 16, 4, blocks=4),
    "64x64, by 16": lambda: by_sixteens(64, 64),
    "32x64, by 16": lambda: by_sixteens(32, 64),
    "32x64, by 16, 2 blocks": lambda: by_sixteens(32, 64, blocks=2),
    "32x64, by 16, 4 blocks": lambda: by_sixteens(32, 64, blocks=4),
    "64x64, by 16, 4 blocks": lambda: by_sixteens(64, 64, blocks=4),
    "64x64, by 16, 8 blocks": lambda: by_sixteens(64, 64, blocks=8),
}
"""Tiles of blocks, which share a sum in clusters; a thread has 64 elements, or 16 where few blocks have a long sum."""


PRODUCT = Product("f32", TOLERANCE, 1, {name: make() for name, make in TILES.items()})


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--quick", action="store_true", help="only the last two steps")
    given = parser.parse_args()
    steps = dict(list(STEPS.items())[-2:]) if given.quick else STEPS
    rows = [Row("steps", {name: make() for name, make in steps.items()}, CUBE)]
    if given.variants:
        rows.append(Row("variants", {name: make() for name, make in VARIANTS.items()}, CUBE))
    measure_all(given, PRODUCT, [*rows, *random_rows(given, PRODUCT)])


if __name__ == "__main__":
    main()
