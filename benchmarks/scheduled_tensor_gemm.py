"""The product of bf16 matrices on tensor cores by schedules, beside cuBLAS.

    python benchmarks/scheduled_tensor_gemm.py FILE [--sizes 20] [--seconds 300] [--seed 1] [--processes 6]

needs an H200. Each step at 4096 x 4096 x 4096; stream-K where tiles do not come out even; then all tiles at random
sizes, whose extents are drawn log-uniformly from 64 to 8192; n and k are multiples of 8. `choose` says which a product
gets, without measuring; beside it is the best of all. cuBLAS is what torch calls; `by hand` is `ptxlab.kernels.matmul`.
`scheduled_products.py` says how.
"""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithm

from __future__ import annotations

from typing import NamedTuple

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


def by_wgmma(m: int = 128, n: int = 128, stages: int = 4, rows: int = 64) -> Schedule:
    s = schedule(product)
    s.tile(i=m, j=n).blocks()
    s.tile(i=rows).threads()
    s.tile(x=64).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="128B")
    s.vectorize("c", 8)
    return s.pipeline(stages=stages, by="tma").raster(8)


def with_roles(m: int = 128, n: int = 256, stages: int = 4, rows: int = 64) -> Schedule:
    return by_wgmma(m, n, stages, rows).specialize()


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
    "stored by TMA, 128x256": lambda: Tile(False, 2, 1, 256).schedule(),
}
UNEVEN = {
    "persistent, 128x256": persistent,
    "stream_k, 128x256": stream_k,
    "persistent, 128x128": lambda: persistent(128, 128, 6),
    "stream_k, 128x128": lambda: stream_k(128, 128, 6),
}
UNEVEN_SIZES = ((2048, 2560, 4096), (4096, 4096, 4096), (1024, 2304, 8192), (256, 512, 16384))


class Tile(NamedTuple):
    """A tile of the result, and who computes it."""

    turned: bool
    """Whether rows of the instruction are columns of the result."""
    warpgroups: int
    tall: int
    """Times 64 rows of the instruction, of a warpgroup."""
    columns: int
    """Of the instruction."""
    beside: int = 1
    """Blocks of a cluster that share the operand of its rows."""
    below: int = 1
    """Those that share the operand of its columns."""
    split: int = 1
    """Those that share the sum."""
    resident: int = 1
    """Blocks on an SM."""
    hinted: bool = False
    """Whether the L2 cache keeps few rows, and gives up the other operand, which is read once."""

    @property
    def rows(self) -> int:
        """Of the instruction."""
        return 64 * self.tall * self.warpgroups

    @property
    def name(self) -> str:
        """As `192x144, a for 2, b for 2`."""
        i, j = (self.columns, self.rows) if self.turned else (self.rows, self.columns)
        a, b = (self.below, self.beside) if self.turned else (self.beside, self.below)
        parts = [f"{i}x{j}", *(["by columns"] if self.turned else []), *(["128 a warpgroup"] if self.tall > 1 else [])]
        parts += [f"{array} for {blocks}" for array, blocks in (("a", a), ("b", b)) if blocks > 1]
        parts += [f"{self.split} blocks"] if self.split > 1 else []
        parts += [f"{self.resident} on an SM"] if self.resident > 1 else []
        return ", ".join(parts + (["hinted"] if self.hinted else []))

    def memory(self) -> tuple[str, int, int]:
        """How results are swizzled, boxes of them that a warpgroup has memory for, and stages of the ring."""
        wide = next((n for n in (64, 32, 16) if self.columns // self.split % n == 0), 0)
        swizzle = f"{2 * wide}B" if wide else ""
        boxes = self.tall * (1 if self.turned else self.columns // self.split // (wide or self.columns // self.split))
        each = 128 * self.warpgroups * self.tall * self.columns // self.split // boxes
        stage, found = 128 * (self.rows + self.columns), []
        for kept in (n for n in (1, 2, 4, boxes) if boxes % n == 0):
            stages = (SHARED // self.resident - 2048 - kept * each) // stage
            found.append((min(stages, 6), kept, min(stages, 14)))
        _, kept, stages = max(found)
        return "128B" if self.turned else swizzle, kept if kept < boxes else 0, stages

    def schedule(self, stream_k: bool = False) -> Schedule:
        """Its schedule: tile after tile where an SM has one block, of which each computes whole sums."""
        rows, columns, left, right = ("j", "i", "b", "a") if self.turned else ("i", "j", "a", "b")
        swizzle, slots, stages = self.memory()
        s = schedule(product)
        s.tile(**{"i": self.rows, "j": self.columns, rows: self.rows, columns: self.columns}).blocks()
        s.tile(**{rows: 64 * self.tall}).threads()
        if self.split > 1:
            s.tile(x=64 * self.split).tile(x=64).cluster()
        else:
            s.tile(x=64)
        s.tensorize("wgmma", rows=rows)
        s.stage("a", "b", in_="shared", swizzle="128B")
        s.stage("c", in_="shared", swizzle=swizzle, slots=slots)
        s.pipeline(stages=stages, by="tma").raster(8).specialize()
        for array, blocks in ((left, self.beside), (right, self.below)):
            if blocks > 1:
                s.multicast(array, blocks)
        if self.hinted:
            s.evict_last(right).evict_first(left)
        if self.resident > 1:
            return s.resident(self.resident)
        return s if self.split > 1 else s.stream_k() if stream_k else s.persistent()


SHARED = 232_448  # bytes of an SM that blocks have, with what the system takes of each
TILES = [
    Tile(bool(turned), *rest)
    for turned, *rest in (
        (0, 1, 1, 16, 1, 1, 1, 2), (0, 1, 1, 16, 1, 1, 2, 2), (0, 1, 1, 16, 2, 2, 1, 2), (0, 1, 1, 32, 1, 1, 1, 2),
        (0, 1, 1, 32, 1, 1, 4, 1), (0, 1, 1, 48, 1, 1, 2, 2), (0, 1, 1, 48, 1, 1, 3, 2), (0, 1, 1, 48, 2, 2, 1, 1),
        (0, 1, 1, 72, 1, 1, 3, 1), (0, 1, 1, 72, 1, 1, 3, 2), (0, 1, 1, 80, 2, 2, 1, 1), (0, 1, 1, 96, 1, 1, 4, 2),
        (0, 1, 1, 96, 1, 4, 1, 1), (0, 1, 1, 96, 2, 2, 1, 1), (0, 1, 1, 96, 4, 1, 1, 2), (0, 1, 1, 128, 1, 1, 1, 2),
        (0, 1, 1, 128, 1, 4, 1, 1), (0, 1, 1, 144, 2, 2, 1, 1), (0, 1, 2, 112, 1, 1, 1, 1), (0, 1, 2, 112, 2, 1, 1, 1),
        (0, 1, 2, 112, 2, 2, 1, 1), (0, 2, 1, 80, 2, 2, 1, 1), (0, 2, 1, 96, 1, 4, 1, 1), (0, 2, 1, 96, 2, 2, 1, 1),
        (0, 2, 1, 112, 2, 2, 1, 1), (0, 2, 1, 112, 4, 1, 1, 1), (0, 2, 1, 128, 2, 2, 1, 1), (0, 2, 1, 144, 1, 1, 3, 1),
        (0, 2, 1, 144, 2, 2, 1, 1), (0, 2, 1, 176, 1, 1, 1, 1), (0, 2, 1, 192, 1, 4, 1, 1), (0, 2, 1, 208, 2, 2, 1, 1),
        (0, 2, 1, 224, 1, 1, 1, 1), (0, 2, 1, 224, 1, 4, 1, 1), (0, 2, 1, 256, 1, 2, 1, 1), (0, 2, 1, 256, 2, 2, 1, 1),
        (0, 2, 2, 128, 1, 1, 1, 1), (0, 2, 2, 160, 1, 1, 1, 1), (0, 2, 2, 160, 2, 1, 1, 1), (0, 2, 2, 176, 2, 1, 1, 1),
        (0, 3, 1, 80, 2, 2, 1, 1), (0, 3, 1, 128, 4, 1, 1, 1), (0, 3, 1, 144, 2, 1, 1, 1), (0, 3, 1, 160, 2, 1, 1, 1),
        (0, 3, 1, 192, 1, 1, 1, 1), (0, 3, 1, 192, 1, 2, 1, 1), (0, 3, 1, 192, 2, 1, 1, 1), (1, 1, 1, 8, 4, 1, 1, 2),
        (1, 1, 1, 16, 1, 1, 1, 2), (1, 1, 1, 16, 1, 1, 2, 2), (1, 1, 1, 16, 2, 2, 1, 2), (1, 1, 1, 16, 4, 1, 1, 2),
        (1, 1, 1, 32, 1, 1, 1, 2), (1, 1, 1, 32, 1, 1, 4, 1), (1, 1, 1, 32, 1, 1, 4, 2), (1, 1, 1, 32, 2, 2, 1, 2),
        (1, 1, 1, 32, 4, 1, 1, 2), (1, 1, 1, 48, 1, 1, 1, 2), (1, 1, 1, 48, 1, 1, 2, 2), (1, 1, 1, 48, 1, 1, 3, 2),
        (1, 1, 1, 48, 2, 2, 1, 2), (1, 1, 1, 64, 1, 1, 1, 2), (1, 1, 1, 64, 1, 1, 4, 1), (1, 1, 1, 64, 1, 1, 4, 2),
        (1, 1, 1, 64, 2, 2, 1, 1), (1, 1, 1, 64, 2, 2, 1, 2), (1, 1, 1, 80, 1, 1, 1, 2), (1, 1, 1, 80, 2, 2, 1, 1),
        (1, 1, 1, 96, 1, 1, 1, 2), (1, 1, 1, 96, 1, 4, 1, 1), (1, 1, 1, 96, 2, 1, 1, 2), (1, 1, 1, 112, 1, 1, 1, 1),
        (1, 1, 1, 112, 1, 1, 2, 1), (1, 1, 1, 128, 1, 1, 1, 1), (1, 1, 1, 144, 1, 1, 1, 1), (1, 1, 1, 176, 1, 1, 1, 1),
        (1, 1, 1, 192, 1, 1, 1, 1), (1, 1, 1, 192, 1, 1, 4, 1), (1, 1, 2, 48, 4, 1, 1, 1), (1, 1, 2, 80, 1, 1, 1, 1),
        (1, 1, 2, 96, 2, 2, 1, 1), (1, 1, 2, 144, 1, 1, 1, 1), (1, 1, 2, 144, 2, 2, 1, 1), (1, 2, 1, 32, 4, 1, 1, 1),
        (1, 2, 1, 64, 2, 1, 1, 1), (1, 2, 1, 96, 1, 1, 4, 1), (1, 2, 1, 96, 1, 4, 1, 1), (1, 2, 1, 96, 4, 1, 1, 1),
        (1, 2, 1, 112, 2, 2, 1, 1), (1, 2, 1, 112, 4, 1, 1, 1), (1, 2, 1, 128, 1, 1, 1, 1), (1, 2, 1, 128, 1, 2, 1, 1),
        (1, 2, 1, 128, 2, 2, 1, 1), (1, 2, 1, 128, 4, 1, 1, 1), (1, 2, 1, 144, 1, 2, 1, 1), (1, 2, 1, 144, 2, 2, 1, 1),
        (1, 2, 1, 160, 1, 1, 1, 1), (1, 2, 1, 160, 2, 2, 1, 1), (1, 2, 1, 160, 4, 1, 1, 1), (1, 2, 1, 176, 1, 1, 1, 1),
        (1, 2, 1, 192, 1, 1, 1, 1), (1, 2, 1, 192, 1, 2, 1, 1), (1, 2, 1, 208, 1, 1, 1, 1), (1, 2, 1, 208, 1, 2, 1, 1),
        (1, 2, 2, 128, 4, 1, 1, 1), (1, 2, 2, 176, 2, 1, 1, 1), (1, 3, 1, 80, 1, 1, 1, 1), (1, 3, 1, 96, 1, 1, 4, 1),
        (1, 3, 1, 96, 1, 2, 1, 1), (1, 3, 1, 96, 4, 1, 1, 1), (1, 3, 1, 144, 1, 2, 1, 1), (1, 3, 1, 144, 2, 1, 1, 1),
    )
]  # fmt: skip
"""Those that variants of the kernel written by hand are estimated to be fastest with, at other random sizes."""
STREAM_K = [
    Tile(False, 2, 1, 256), Tile(False, 3, 1, 192), Tile(False, 2, 1, 192), Tile(False, 2, 1, 128),
    Tile(False, 2, 1, 256, 1, 2), Tile(False, 3, 1, 192, 1, 2), Tile(False, 2, 1, 160, 1, 2),
    Tile(True, 2, 1, 160, 1, 2),
]  # fmt: skip


def every() -> dict[str, Schedule]:
    """All schedules for random sizes."""
    few = [one._replace(hinted=True) for one in TILES if one.turned and one.columns <= 128]
    found = {one.name: one.schedule() for one in (*TILES, *few)}
    return found | {f"stream_k, {one.name}": one.schedule(stream_k=True) for one in STREAM_K}


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
