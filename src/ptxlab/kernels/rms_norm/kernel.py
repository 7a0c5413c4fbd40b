"""RMS norm over rows, in Python: one sum of squares, one read and one write of memory.

On the way a residual may be added to the row, and the result may be rounded to e4m3, by a scale that the host gives or
that each row has for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import Pointer, b32, f32, pointer, ptx, u32
from ptxlab.kernels.parts.elements import inverse_root
from ptxlab.kernels.parts.reductions import add
from ptxlab.kernels.parts.rows import Row, Rows, go_over
from ptxlab.kernels.parts.spreads import Spread

LARGEST = 448.0  # of e4m3


@dataclass(frozen=True)
class Form:
    """What is done beside the norm: a compile-time argument."""

    residual: bool = False
    """Whether another matrix is added first; the sum is a second result."""
    scale: str = ""
    """How the result is scaled to be e4m3: for each `row`, or by one number of the `tensor`; else it is not."""

    def __str__(self) -> str:
        return "_".join(word for word in ("residual" if self.residual else "", self.scale) if word) or "plain"


def rms_norm(
    x: pointer[b32],
    weight: pointer[b32],
    y: pointer[b32],
    residual: pointer[b32],
    summed: pointer[b32],
    scales: pointer[f32],
    rows: u32,
    columns: u32,
    epsilon: f32,
    *,
    spread: Spread,
    form: Form,
) -> None:
    """y = x / √(mean of squares + ε) · weight for each row."""
    by_row, written = form.scale == "row", "e4m3" if form.scale else spread.type

    def measure(row: Row) -> Any:
        if form.residual:
            row.add(residual, summed)
        return squares_of(row, weight if by_row else None)

    def finish(row: Row, agreed: object) -> None:
        scale = scale_of(row, agreed)
        for vector in row.vectors():
            pairs = zip(vector.values, vector.load(weight), strict=True)
            vector.store(y, [value * scale * factor for value, factor in pairs], written)

    def scale_of(row: Row, agreed: Any) -> f32:
        """What a row is multiplied by; its own scale is written."""
        squares, highest = agreed if by_row else (agreed, None)
        scale = inverse_root(squares * ptx.rcp.rn.f32(ptx.cvt.rn.f32.u32(columns)) + epsilon)
        if form.scale == "tensor":
            return ptx.div.rn.f32(scale, scales[0])
        if not by_row:
            return scale
        largest = highest * scale
        is_zero = largest == 0.0
        with ptx.when(row.is_first):
            scales[row.number] = ptx.selp.f32(1.0, largest * (1 / LARGEST), is_zero)
        return ptx.selp.f32(0.0, scale * ptx.div.rn.f32(LARGEST, largest), is_zero)

    shared = () if by_row and spread.cluster == 1 else (weight,)
    given = Rows(x, rows, columns, spread, of_columns=shared, result=y, type=written)
    go_over(given, measure, sum_and_maximum if by_row else add, finish)


def squares_of(row: Row, weight: Pointer | None) -> f32 | tuple[f32, f32]:
    """The sum of squares of what this thread has of a row, and, by the weights, its largest magnitude in the result."""
    squares, highest = f32(0.0), f32(0.0)
    for piece in row.pieces():
        for value in piece.values:
            ptx.fma.rn.f32(value, value, squares, out=squares)
        if weight is not None:
            for value, factor in zip(piece.values, piece.load(weight), strict=True):
                ptx.max.NaN.f32(highest, ptx.abs.f32(value * factor), out=highest)
    return squares if weight is None else (squares, highest)


def sum_and_maximum(one: tuple[f32, f32], other: tuple[f32, f32]) -> tuple[f32, f32]:
    """The sum of the first numbers, and the larger of the second ones, or NaN."""
    return one[0] + other[0], ptx.max.NaN.f32(one[1], other[1])
