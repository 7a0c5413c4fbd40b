"""The product of bf16 matrices on tensor cores by schedules, beside cuBLAS.

    python benchmarks/scheduled_tensor_gemm.py FILE [--sizes 20] [--seconds 300] [--seed 1] [--processes 6]

needs an H200. Each step at 4096 x 4096 x 4096; stream-K where tiles do not come out even; then all tiles at random
sizes, whose extents are drawn log-uniformly from 64 to 8192; n and k are multiples of 8. `choose` says which a product
gets, without measuring; beside it is the best of all. cuBLAS is what torch calls; `by hand` is `ptxlab.kernels.matmul`.
`scheduled_products.py` says how.
"""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

from scheduled_products import Product, Row, measure_all, options, random_rows

from ptxlab.schedule import Schedule, algorithm, bf16, schedule

TOLERANCE = 1e-2  # of the norm of what is expected


@algorithm
def product(a: bf16["m", "k"], b: bf16["n", "k"], c: bf16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[j, x] for x in range(k))


def by_mma(m: int = 128, n: int = 128, stages: int = 3) -> Schedule:
    s = schedule(product)
    s.tile(i=m, j=n).blocks()
    s.tile(i=64, j=32).threads()
    s.tile(x=64).tensorize("mma.sync")
    s.stage("a", "b", in_="shared", swizzle="128B")
    s.vectorize("a", "b", "c", 8)
    return s.pipeline(stages=stages).raster(8)


def by_wgmma(m: int = 128, n: int = 128, stages: int = 4, rows: int = 64, blocks: int = 1, depth: int = 64) -> Schedule:
    s = schedule(product)
    s.tile(i=m, j=n).blocks()
    s.tile(i=rows).threads()
    if blocks > 1:
        s.tile(x=depth * blocks).tile(x=depth).cluster()
    else:
        s.tile(x=depth)
    s.tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="128B")
    s.vectorize("c", 8)
    return s.pipeline(stages=stages, by="tma").raster(8)


def with_roles(
    m: int = 128, n: int = 256, stages: int = 4, rows: int = 64, blocks: int = 1, depth: int = 64
) -> Schedule:
    return by_wgmma(m, n, stages, rows, blocks, depth).specialize()


def persistent(m: int = 128, n: int = 256, stages: int = 4, rows: int = 64) -> Schedule:
    return with_roles(m, n, stages, rows).persistent()


def stream_k(m: int = 128, n: int = 256, stages: int = 4) -> Schedule:
    return with_roles(m, n, stages).stream_k()


STEPS = {
    "mma.sync": by_mma,
    "wgmma, TMA": by_wgmma,
    "roles, 128x128": lambda: with_roles(128, 128, 5),
    "roles, 128x256": with_roles,
    "persistent, 128x256": persistent,
    "persistent, 256x128": lambda: persistent(256, 128, 4, 128),
    "persistent, 128x128": lambda: persistent(128, 128, 6),
}
UNEVEN = {
    "persistent, 128x256": persistent,
    "stream_k, 128x256": stream_k,
    "persistent, 128x128": lambda: persistent(128, 128, 6),
    "stream_k, 128x128": lambda: stream_k(128, 128, 6),
}
UNEVEN_SIZES = ((2048, 2560, 4096), (4096, 4096, 4096), (1024, 2304, 8192), (256, 512, 16384))
TILES = {
    "128x256": (128, 256, 4),
    "256x128": (256, 128, 4),
    "192x192": (192, 192, 4),
    "128x192": (128, 192, 5),
    "128x160": (128, 160, 6),
    "128x128": (128, 128, 7),
    "128x96": (128, 96, 8),
    "128x64": (128, 64, 9),
    "64x192": (64, 192, 7),
    "64x128": (64, 128, 9),
    "64x96": (64, 96, 11),
    "64x64": (64, 64, 12),
    "64x64, 4 stages": (64, 64, 4),
    "64x48": (64, 48, 14),
    "64x32": (64, 32, 16),
}
"""Rows and columns of a tile, and stages of the ring."""
STREAM_K = ("128x256", "192x192", "128x192", "128x128")
SPLIT = (
    ("128x128", 2), ("128x128", 4), ("128x96", 2), ("64x96", 2), ("64x96", 4), ("64x64", 2), ("64x64", 4), ("64x48", 3),
    ("64x32", 2), ("64x32", 4),
)  # fmt: skip
"""Of which so many blocks share a sum."""
PAIRS = {
    "256x192": (256, 192, 3, "b"),
    "128x256": (128, 256, 4, "b"),
    "256x128": (256, 128, 4, "a"),
    "192x192": (192, 192, 4, "b"),
    "128x192": (128, 192, 5, "b"),
    "128x160": (128, 160, 6, "b"),
    "128x128": (128, 128, 7, "b"),
    "128x96": (128, 96, 8, "b"),
    "128x64": (128, 64, 9, "a"),
    "64x192": (64, 192, 7, "b"),
    "64x128": (64, 128, 9, "b"),
}
"""Of which each block of two copies half of an array for both."""
STREAM_K_PAIRS = ("128x256", "192x192", "128x160")
FOURS = (("128x128", "b"), ("128x96", "b"), ("128x64", "a"), ("64x192", "b"), ("64x128", "b"), ("64x96", "b"),
    ("64x64", "b"), ("64x32", "a"))  # fmt: skip
"""The same for four, of which 120 SMs have some at a time: each block has one tile."""
SQUARES = ("128x192", "128x128", "128x96", "64x128", "64x96", "64x64")
"""Of which clusters of four share both arrays, two by two."""


def make(rows: int, columns: int, stages: int) -> Schedule:
    """The schedule for a tile: persistent where an SM has one block."""
    found = with_roles(rows, columns, stages, 128 if rows == 256 else 64)
    return found.persistent() if stages * 128 * (rows + columns) > 100_000 else found


def every() -> dict[str, Schedule]:
    """All schedules for random sizes."""
    found = {name: make(*tile) for name, tile in TILES.items()}
    found |= {f"stream_k, {name}": stream_k(*TILES[name]) for name in STREAM_K}
    found |= {f"{name}, {blocks} blocks": with_roles(*TILES[name], blocks=blocks) for name, blocks in SPLIT}
    for name, (*tile, array) in PAIRS.items():
        found[f"{name}, {array} for 2"] = make(*tile).multicast(array, 2)
    for name in STREAM_K_PAIRS:
        *tile, array = PAIRS[name]
        found[f"stream_k, {name}, {array} for 2"] = stream_k(*tile).multicast(array, 2)
    for name, array in FOURS:
        found[f"{name}, {array} for 4"] = with_roles(*TILES[name]).multicast(array, 4)
    for name in SQUARES:
        found[f"{name}, a and b for 2"] = with_roles(*TILES[name]).multicast("a", 2).multicast("b", 2)
    return found


PRODUCT = Product("bf16", TOLERANCE, 8, every())


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--quick", action="store_true", help="only the last two steps")
    given = parser.parse_args()
    steps = dict(list(STEPS.items())[-2:]) if given.quick else STEPS
    rows = [Row("steps", {name: made() for name, made in steps.items()}, (4096, 4096, 4096))]
    rows += [Row("uneven", {name: made() for name, made in UNEVEN.items()}, size) for size in UNEVEN_SIZES]
    measure_all(given, PRODUCT, [*rows, *random_rows(given, PRODUCT)])


if __name__ == "__main__":
    main()
