"""Layer norm over rows, in Python: mean and variance in one exchange, one read and one write of memory."""

from __future__ import annotations

from typing import Any

from ptxlab.author import b32, f32, pointer, ptx, u32
from ptxlab.kernels.parts.rows import Row, own_row
from ptxlab.kernels.parts.spreads import Spread


def layer_norm(
    x: pointer[b32],
    weight: pointer[b32],
    bias: pointer[b32],
    y: pointer[b32],
    rows: u32,
    columns: u32,
    epsilon: f32,
    *,
    spread: Spread,
) -> None:
    """y = (x - mean) / √(variance + ε) · weight + bias for each row."""
    row = own_row(x, rows, columns, spread)
    _, mean, squares, _ = row.agree(moments(row), together)
    part = ptx.rcp.rn.f32(ptx.cvt.rn.f32.u32(columns))
    scale = ptx.rsqrt.approx.f32(ptx.fma.rn.f32(squares, part, epsilon))
    for vector in row.vectors():
        factors, summands = vector.load(weight), vector.load(bias)
        vector.store(
            y,
            [
                ptx.fma.rn.f32((value - mean) * scale, factor, summand)
                for value, factor, summand in zip(vector.values, factors, summands, strict=True)
            ],
        )


def moments(row: Row) -> tuple[Any, ...]:
    """How many elements this thread has, their mean, and the sum of squares of their distances from that.

    Squares of x itself would cancel where the mean is large. The fourth number fills 16 bytes.
    """
    count, total = f32(0.0), f32(0.0)
    for piece in row.pieces():
        count += piece.count
        for value in piece.values:
            total += value
    mean = total * inverse_of(count)
    squares = f32(0.0)
    for piece in row.pieces():
        for distance in piece.with_zeros_outside([value - mean for value in piece.values]):
            ptx.fma.rn.f32(distance, distance, squares, out=squares)
    return count, mean, squares, f32(0.0)


def together(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Those of two sets of elements as those of both; which of them is `one` changes no bit."""
    count = one[0] + other[0]
    inverse = inverse_of(count)
    mean = (one[0] * one[1] + other[0] * other[1]) * inverse
    distance = other[1] - one[1]
    between = distance * distance * (one[0] * other[0] * inverse)
    return count, mean, one[2] + other[2] + between, one[3]


def inverse_of(count: Any) -> Any:
    """1 / count, and 1 where that is 0."""
    return ptx.rcp.approx.f32(ptx.max.f32(count, 1.0))
