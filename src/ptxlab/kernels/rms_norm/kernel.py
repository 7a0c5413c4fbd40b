"""RMS norm over rows, in Python: one sum of squares, one read and one write of memory."""

from __future__ import annotations

from ptxlab.author import b32, f32, pointer, ptx, u32
from ptxlab.kernels.reductions import add
from ptxlab.kernels.rows import Spread, own_row


def rms_norm(
    x: pointer[b32], weight: pointer[b32], y: pointer[b32], rows: u32, columns: u32, epsilon: f32, *, spread: Spread
) -> None:
    """y = x / √(mean of squares + ε) · weight for each row."""
    row = own_row(x, rows, columns, spread)
    squares = f32(0.0)
    for piece in row.pieces():
        for value in piece.values:
            ptx.fma.rn.f32(value, value, squares, out=squares)
    mean = row.agree(squares, add) * ptx.rcp.rn.f32(ptx.cvt.rn.f32.u32(columns))
    scale = ptx.rsqrt.approx.f32(mean + epsilon)
    for vector in row.vectors():
        factors = vector.load(weight)
        vector.store(y, [value * scale * factor for value, factor in zip(vector.values, factors, strict=True)])
