"""Softmax over rows, in Python: a row is read once, and its threads agree on two numbers."""

from __future__ import annotations

import math
from typing import Any

from ptxlab.author import b32, f32, pointer, ptx, u32
from ptxlab.kernels.rows import Row, own_row
from ptxlab.kernels.spreads import Spread

LOG2_E = math.log2(math.e)
LOWEST = -(2.0**127)  # of which another such can be taken away


def softmax(x: pointer[b32], y: pointer[b32], rows: u32, columns: u32, *, spread: Spread) -> None:
    """y = exp(x - maximum) / Σ exp(x - maximum) for each row."""
    row = own_row(x, rows, columns, spread, neutral=-math.inf)
    common, total = row.agree(sum_powers(row), together)
    inverse = ptx.rcp.approx.f32(total)
    for vector in row.vectors():
        vector.store(y, [power(value - common) * inverse for value in vector.values])


def sum_powers(row: Row) -> tuple[Any, Any]:
    """The largest element that this thread has of a row, and Σ exp(x - that).

    A thread that has met nothing but -inf takes a number that is low enough instead: -inf - -inf would be NaN.
    """
    highest, total = f32(LOWEST), f32(0.0)
    for piece in row.pieces():
        before = ptx.mov.f32(highest)
        for value in piece.values:
            ptx.max.f32(highest, value, out=highest)
        if row.spread.where == "global":
            total *= power(before - highest)
        for value in piece.values:
            total += power(value - highest)
    return highest, total


def together(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two sums that are relative to two maxima, relative to one."""
    common = ptx.max.f32(one[0], other[0])
    scaled = other[1] * power(other[0] - common)
    return common, ptx.fma.rn.f32(one[1], power(one[0] - common), scaled)


def power(exponent: Any) -> Any:
    """exp(x) as a power of 2, which is what the hardware has."""
    return ptx.ex2.approx.ftz.f32(exponent * LOG2_E)
