"""Layer norm over rows, in Python: mean and variance in one exchange, one read and one write of memory."""

from __future__ import annotations

from ptxlab.author import b32, f32, pointer, ptx, u32
from ptxlab.kernels.parts.elements import inverse_root
from ptxlab.kernels.parts.reductions import Combine, add, over_lanes
from ptxlab.kernels.parts.row_vectors import Piece
from ptxlab.kernels.parts.rows import Row, Rows, go_over
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

    def finish(row: Row, agreed: tuple[f32, ...]) -> None:
        _, mean, squares, _ = agreed
        scale = inverse_root(ptx.fma.rn.f32(squares, ptx.rcp.rn.f32(ptx.cvt.rn.f32.u32(columns)), epsilon))
        for vector in row.vectors():
            normal = [(value - mean) * scale for value in vector.values]
            each = zip(normal, vector.load(weight), vector.load(bias), strict=True)
            vector.store(y, [ptx.fma.rn.f32(*one) for one in each])

    go_over(Rows(x, rows, columns, spread, of_columns=(weight, bias), result=y), moments, Together(), finish)


def moments(row: Row) -> tuple[f32, ...]:
    """How many elements this thread has, their mean, and the sum of squares of their distances from that."""
    if row.whole is not None:
        return moments_of(row.whole)
    found = tuple(f32(0.0) for _ in range(4))
    for piece in row.pieces():
        for one, value in zip(found, Together()(found, moments_of(piece)), strict=True):
            one.set(value)
    return found


def moments_of(piece: Piece) -> tuple[f32, ...]:
    """The same for a piece, which is gone over once; the fourth number fills 16 bytes.

    Squares of x itself would cancel where the mean is large, so they are of the distance from one element. It is
    one of those whose variance is wanted: what cancels is never more than the variance times their number.
    """
    origin = piece.origin
    total, squares = f32(0.0), f32(0.0)
    for distance in piece.with_zeros_outside([value - origin for value in piece.values]):
        total += distance
        ptx.fma.rn.f32(distance, distance, squares, out=squares)
    further = total * inverse_of(piece.count)
    return piece.count, origin + further, ptx.max.NaN.f32(squares - total * further, 0.0), f32(0.0)


class Together(Combine):
    """Those of several sets of elements as those of all of them; their order changes no bit."""

    def __call__(self, one: tuple[f32, ...], other: tuple[f32, ...]) -> tuple[f32, ...]:
        """Those of two."""
        count = one[0] + other[0]
        inverse = inverse_of(count)
        mean = (one[0] * one[1] + other[0] * other[1]) * inverse
        distance = other[1] - one[1]
        between = distance * distance * (one[0] * other[0] * inverse)
        return count, mean, one[2] + other[2] + between, one[3]

    def over_lanes(self, value: tuple[f32, ...], lanes: int) -> tuple[f32, ...]:
        """Those of many lanes: the mean first, so that what is exchanged are sums."""
        count = over_lanes(value[0], add, lanes)
        mean = over_lanes(value[0] * value[1], add, lanes) * inverse_of(count)
        distance = value[1] - mean
        return count, mean, over_lanes(value[2] + value[0] * distance * distance, add, lanes), value[3]


def inverse_of(count: f32) -> f32:
    """1 / count, and 1 where that is 0."""
    return ptx.rcp.approx.f32(ptx.max.f32(count, 1.0))
