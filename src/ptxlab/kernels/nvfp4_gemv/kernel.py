"""y = A x of NVFP4 matrices and vectors, for each of a batch: a warp has a row, a lane reads 32 numbers at a time.

What is read once bypasses L1, x stays there. Numbers become f16 by one instruction for each two; the sum of sixteen
products is exact in f16x2, so that only one factor and one addition a block of sixteen are in f32.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import Pointer, Scalar, b8, b32, f16, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.parts.reductions import add, over_warp

WARPS = 8
LANES = 32
BYTES = 16  # that a lane reads at a time: 32 numbers, with two factors
LOAD_ROW = ptx.ld.global_.nc["L1::no_allocate"]
LOAD_X = ptx.ld.global_.nc


@kernel(target="sm_100a", maxntid=WARPS * LANES)
def nvfp4_gemv(
    a: pointer[b8], a_factors: pointer[b8], x: pointer[b8], x_factors: pointer[b8], y: pointer[f16], m: u32, bytes: u32
) -> None:
    """A has m rows of so many bytes, each with an eighth as many factors; `ctaid.y` is the number in the batch."""
    lane, row, batch = ptx.laneid, ptx.ctaid.x * WARPS + (ptx.tid.x >> 5), ptx.ctaid.y
    with ptx.when(row < m):
        number = ptx.mad.lo.u32(batch, m, row)
        total = f32(0.0)
        for at in ptx.range(lane * BYTES, bytes, LANES * BYTES):
            products = multiply(words(LOAD_ROW, a, number, bytes, at), words(LOAD_X, x, batch, bytes, at))
            scales = (
                scale_factors(LOAD_ROW, a_factors, number, bytes, at),
                scale_factors(LOAD_X, x_factors, batch, bytes, at),
            )
            for product, left, right in zip(products, *scales, strict=True):
                ptx.fma.rn.f32(ptx.mul.rn.f32(left, right), product, total, out=total)
        total = over_warp(total, add)
        with ptx.when(lane == 0):
            y[number] = ptx.cvt.rn.f16.f32(total)


def words(load: Any, source: Pointer, row: u32, bytes: u32, at: u32) -> Any:
    """Sixteen bytes of a row, as four words."""
    return load.v4.b32(source.at(ptx.mul.wide.u32(row, bytes)) + at)


def scale_factors(load: Any, source: Pointer, row: u32, bytes: u32, at: u32) -> list[f32]:
    """The two factors of 32 numbers, in f32."""
    pair = load.b16(source.at(ptx.mul.wide.u32(row, bytes // 8)) + at // 8)
    return halves(ptx.cvt.rn.f16x2.e4m3x2(pair))


def halves(pair: Scalar | None) -> list[f32]:
    """The two numbers of an f16x2, in f32."""
    return [ptx.cvt.f32.f16(half) for half in ptx.mov.b32(pair, out=(f16(), f16()))]


def multiply(left: Any, right: Any) -> list[f32]:
    """The sums of the products of two times sixteen numbers, exact, in f32."""
    found = []
    for block in range(2):
        total = None
        for word in range(2 * block, 2 * block + 2):
            for one, other in zip(bytes_of(left[word]), bytes_of(right[word]), strict=True):
                one, other = (ptx.cvt.rn.f16x2.e2m1x2(byte) for byte in (one, other))
                total = ptx.mul.rn.f16x2(one, other) if total is None else ptx.fma.rn.f16x2(one, other, total)
        low, high = halves(total)
        found.append(ptx.add.rn.f32(low, high))
    return found


def bytes_of(word: b32) -> Any:
    """The four bytes of a word."""
    return ptx.mov.b32(word, out=tuple(b8() for _ in range(4)))
