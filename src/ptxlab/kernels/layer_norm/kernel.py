"""Layer norm over rows, in Python: mean and variance from registers, one read and one write of memory."""

from __future__ import annotations

from ptxlab.author import b32, f32, pointer, ptx, u32
from ptxlab.kernels.reductions import add
from ptxlab.kernels.rows import Spread, own_row


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
    part = ptx.rcp.rn.f32(ptx.cvt.rn.f32.u32(columns))
    row = own_row(x, rows, columns, spread)
    total = f32(0.0)
    for piece in row.pieces():
        for value in piece.values:
            total += value
    mean = row.agree(total, add) * part
    # The squares are of distances from the mean: squares of x itself would cancel where the mean is large.
    squares = f32(0.0)
    for piece in row.pieces():
        for distance in piece.with_zeros_outside([value - mean for value in piece.values]):
            ptx.fma.rn.f32(distance, distance, squares, out=squares)
    scale = ptx.rsqrt.approx.f32(ptx.fma.rn.f32(row.agree(squares, add), part, epsilon))
    for vector in row.vectors():
        factors, summands = vector.load(weight), vector.load(bias)
        vector.store(
            y,
            [
                ptx.fma.rn.f32((value - mean) * scale, factor, summand)
                for value, factor, summand in zip(vector.values, factors, summands, strict=True)
            ],
        )
