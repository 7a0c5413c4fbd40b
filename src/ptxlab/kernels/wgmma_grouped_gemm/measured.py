"""What is measured: groups of rows as experts of a mixture have them, and by which libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.kernels.parts.formats import bytes_of
from ptxlab.launch.launches import Arrays, UnsuitedError
from ptxlab.measure import Draw, Work
from ptxlab.measure.checking import as_float64

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

GROUPS: Sequence[tuple[int, int, int, int, float]] = (  # how many, m, n, k and how unlike they are
    (128, 512, 1536, 2048, 0.5), (32, 512, 4096, 7168, 0.5), (32, 4096, 4096, 7168, 0.5), (256, 32768, 2048, 2048, 1),
    (128, 65536, 1536, 2048, 0.5), (64, 16384, 4096, 7168, 0), (64, 16384, 4096, 7168, 1), (8, 16384, 4096, 14336, 0.5),
    (8, 16384, 14336, 4096, 0.5),
)  # fmt: skip
SIZES: list[dict[str, Any]] = [
    {"type": type, "groups": groups, "m": m, "n": n, "k": k, "skew": skew}
    for type, sizes in (("e4m3", [GROUPS[number] for number in (1, 2, 3, 4, 6, 8)]), ("bf16", GROUPS))
    for groups, m, n, k, skew in sizes
]


def rows_of(groups: int, m: int, skew: float) -> list[int]:
    """The rows of each group: all alike, or the more unlike the larger the skew, and then each eighth has none."""
    shares = [(1 + number * 37 % groups) ** -skew for number in range(groups)]
    if skew:
        shares[3::8] = [0.0] * len(shares[3::8])
    found = [int(m * share / sum(shares)) for share in shares]
    found[0] += m - sum(found)
    return found


def arrays(draw: Draw, type: str, groups: int, m: int, n: int, k: int, skew: float = 0.0) -> Arrays:
    """A, the matrices of B by columns, where groups end, and space for D."""
    offsets = draw.integers(groups, "s32", 0, 1)
    for number, end in enumerate(np.cumsum(rows_of(groups, m, skew)).tolist()):
        offsets[number] = end
    found = {"a": draw.normal((m, k), type), "b": draw.normal((groups, n, k), type), "offsets": offsets}
    if type == "e4m3":
        found["scales"] = tuple(draw.uniform(shape, "f32", 0.5, 2) for shape in (m, (groups, n)))
    return {**found, "d": draw.empty((m, n), "bf16" if type == "e4m3" else type)}


def parts_of(offsets: Array) -> list[tuple[int, slice]]:
    """Each group that is not empty: its number and its rows."""
    ends = [int(end) for end in offsets]
    rows = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    return [(number, part) for number, part in enumerate(rows) if part.stop > part.start]


def reference(xp: ModuleType, a: Any, b: Any, offsets: Array, d: Any, scales: Any = None) -> Arrays:
    """The same in float64."""
    for number, rows in parts_of(offsets):
        d[rows] = a[rows] @ b[number].T
        if scales is not None:
            d[rows] *= as_float64(xp, scales[0])[rows, None] * as_float64(xp, scales[1])[number]
    return {"d": d}


def by_torch(torch: ModuleType, a: Array, b: Any, offsets: Any, d: Any, scales: Any = None) -> Callable[[], object]:
    """torch's own kernel, from CUTLASS."""
    matrices = b.transpose(1, 2)
    if scales is None:
        return lambda: {"d": torch._grouped_mm(a, matrices, offs=offsets)}
    how = {"offs": offsets, "out_dtype": d.dtype, "use_fast_accum": True}
    return lambda: {"d": torch._scaled_grouped_mm(a, matrices, *scales, **how)}


def by_cublas(torch: ModuleType, a: Array, b: Array, offsets: Any, d: Any, scales: Any = None) -> Callable[[], object]:
    """A call of cuBLAS for each group; it has to know their sizes."""
    if scales is not None:
        raise UnsuitedError("only in 16 bits")
    parts = [(a[rows], b[number].T, d[rows]) for number, rows in parts_of(offsets)]

    def run() -> None:
        for left, right, out in parts:
            torch.mm(left, right, out=out)

    return run


def work(type: str, groups: int, m: int, n: int, k: int, skew: float = 0.0) -> Work:
    """A multiplication and an addition for each of m·n·k; matrices of groups that are not empty are read."""
    used = sum(rows > 0 for rows in rows_of(groups, m, skew))
    return Work(flops=2 * m * n * k, bytes=bytes_of(type) * (m + used * n) * k + 2 * m * n, rate=type)


def tolerance(type: str, **_: object) -> float:
    """Half a unit in the last place of what comes out; sums of e4m3 have 14 bits on a GPU."""
    return {"f16": 5e-4, "bf16": 4e-3, "e4m3": 1e-2}[type]
