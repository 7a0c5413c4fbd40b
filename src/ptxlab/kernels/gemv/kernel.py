"""y = A x for each of a batch, in Python: a block has a row of A, and reads each of its bytes once."""

from __future__ import annotations

from typing import Any

from ptxlab.author import Pointer, Scalar, b32, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.parts.elements import element_pointer, load_bits, store, widened
from ptxlab.kernels.parts.reductions import add, over_block

THREADS = 128
LOAD_A = ptx.ld.global_.nc["L1::no_allocate"]  # read once: leave the cache to x
LOAD_X = ptx.ld.global_.nc


@kernel(target="sm_89", maxntid=THREADS, minnctapersm=8)
def gemv(
    a: pointer[b32],
    x: pointer[b32],
    y: pointer[b32],
    m: u32,
    k: u32,
    *,
    TYPE: str,  # noqa: N803
    VECTOR: int,  # noqa: N803
    AHEAD: int,  # noqa: N803
) -> None:
    """The product of one row with x; AHEAD vectors of each are asked for before the first is used."""
    thread, batch = ptx.tid.x, ptx.ctaid.y
    number = ptx.mad.lo.u32(batch, m, ptx.ctaid.x)
    row, vector = row_of(a, number, k, TYPE), row_of(x, batch, k, TYPE)
    total = f32(0.0)
    step = THREADS * VECTOR
    for column in ptx.range(thread * VECTOR, k, step * AHEAD):
        inside = [None if number == 0 else column + number * step < k for number in range(AHEAD)]
        factors = read(LOAD_X, vector, column, TYPE, VECTOR, inside)
        values = read(LOAD_A, row, column, TYPE, VECTOR, inside)
        for value, factor in zip(values, factors, strict=True):
            for one, other in zip(widened(value, TYPE), widened(factor, TYPE), strict=True):
                ptx.fma.rn.f32(one, other, total, out=total)
    product = over_block(total, add, THREADS)
    with ptx.when(thread == 0):
        store(element_pointer(y, "bf16", 1, number), "bf16", [product])


def row_of(matrix: Pointer, number: u32, k: u32, type: str) -> Any:
    """Where a row starts."""
    return element_pointer(matrix, type, 1, ptx.mul.wide.u32(number, k))


def read(load: object, row: Pointer, column: u32, type: str, vector: int, inside: list[object]) -> list[list[Scalar]]:
    """Vectors of a row from a column on, as far apart as the block has threads."""
    source = (row + column).vector(vector)
    return [
        load_bits(load, source + number * THREADS, type, vector, inside=within) for number, within in enumerate(inside)
    ]
