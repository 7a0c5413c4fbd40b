"""y = A x for each of a batch, in Python: a warp has some rows of A, and reads each of their bytes once."""

from __future__ import annotations

from typing import Any

from ptxlab.author import b32, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.agreement import WARP, add, over_warp
from ptxlab.kernels.elements import load_bits, place, store, widened

WARPS = 4  # of a block
LOAD_A = ptx.ld.global_.nc["L1::no_allocate"]  # read once: leave the cache to x
LOAD_X = ptx.ld.global_.nc


@kernel(target="sm_89", maxntid=WARP * WARPS)
def gemv(
    a: pointer[b32],
    x: pointer[b32],
    y: pointer[b32],
    m: u32,
    k: u32,
    *,
    TYPE: str,  # noqa: N803
    VECTOR: int,  # noqa: N803
    ROWS: int,  # noqa: N803
    AHEAD: int,  # noqa: N803
) -> None:
    """The products of ROWS rows with x; AHEAD vectors of each are asked for before the first is used."""
    lane = ptx.tid.x & (WARP - 1)
    first = (ptx.ctaid.x * WARPS + (ptx.tid.x >> 5)) * ROWS
    batch = ptx.ctaid.y
    # A row beyond the last one is read as the last one, and its product not written.
    numbers = [ptx.mad.lo.u32(batch, m, ptx.min.u32(first + number, m - 1)) for number in range(ROWS)]
    rows = [row_of(a, number, k, TYPE) for number in numbers]
    vector = row_of(x, batch, k, TYPE)
    sums = [f32(0.0) for _ in range(ROWS)]
    step = WARP * VECTOR
    for column in ptx.range(lane * VECTOR, k, step * AHEAD):
        inside = [None if number == 0 else column + number * step < k for number in range(AHEAD)]
        factors = read(LOAD_X, vector, column, TYPE, VECTOR, inside)
        parts = [read(LOAD_A, row, column, TYPE, VECTOR, inside) for row in rows]
        for number in range(AHEAD):
            wide = widened(factors[number], TYPE)
            for total, part in zip(sums, parts, strict=True):
                for value, factor in zip(widened(part[number], TYPE), wide, strict=True):
                    ptx.fma.rn.f32(value, factor, total, out=total)
    for offset, total in enumerate(sums):
        product = over_warp(total, add)
        with ptx.when((lane == 0) & (first + offset < m)):
            store(place(y, "bf16", 1, numbers[offset]), "bf16", [product])


def row_of(matrix: Any, number: Any, k: Any, type: str) -> Any:
    """Where a row begins."""
    return place(matrix, type, 1, ptx.mul.wide.u32(number, k))


def read(load: Any, row: Any, column: Any, type: str, vector: int, inside: list[Any]) -> list[list[Any]]:
    """Vectors of a row from a column on, a warp apart."""
    source = (row + column).vector(vector)
    return [
        load_bits(load, source + number * WARP, type, vector, inside=within) for number, within in enumerate(inside)
    ]
