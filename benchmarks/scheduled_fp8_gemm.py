"""The product of matrices of e4m3 on tensor cores by schedules, beside cuBLAS.

    python benchmarks/scheduled_fp8_gemm.py FILE [--sizes 20] [--seconds 300] [--seed 1] [--most 6]

needs an H200. Tiles at random sizes, whose extents are drawn log-uniformly from 64 to 8192; n and k are multiples
of 16. cuBLAS is `torch._scaled_mm` with scales of one and fast accumulation, as tensor cores add by themselves.
`scheduled_products.py` says how.
"""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

from scheduled_products import Product, Row, measure_all, options, random_rows

from ptxlab.schedule import Schedule, algorithm, bf16, e4m3, schedule

TOLERANCE = 2e-2  # of the norm of what is expected


@algorithm
def product(a: e4m3["m", "k"], b: e4m3["n", "k"], c: bf16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[j, x] for x in range(k))


def make(rows: int, columns: int, stages: int) -> Schedule:
    s = schedule(product)
    s.tile(i=rows, j=columns).blocks()
    s.tile(i=128 if rows == 256 else 64).threads()
    s.tile(x=128).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="128B")
    s.vectorize("c", 8)
    return s.pipeline(stages=stages, by="tma").raster(8).specialize().persistent()


TILES = {
    "128x256": (128, 256, 4),
    "256x128": (256, 128, 4),
    "192x192": (192, 192, 4),
    "128x192": (128, 192, 5),
    "128x128": (128, 128, 7),
    "128x64": (128, 64, 9),
    "64x128": (64, 128, 9),
    "64x64": (64, 64, 12),
    "64x32": (64, 32, 16),
}


PRODUCT = Product("e4m3", TOLERANCE, 16, {name: make(*tile) for name, tile in TILES.items()})


def main() -> None:
    given = options(__doc__).parse_args()
    measure_all(given, PRODUCT, [Row("large", PRODUCT.tiles, (4096, 4096, 4096)), *random_rows(given, PRODUCT)])


if __name__ == "__main__":
    main()
