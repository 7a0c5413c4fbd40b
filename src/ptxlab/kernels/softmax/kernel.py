"""Softmax over rows, in Python: a row is read once, and its threads agree on two numbers."""

from __future__ import annotations

import math
import struct
from typing import Any

from ptxlab.author import b32, f32, pointer, ptx, u32
from ptxlab.kernels.parts.reductions import Combine, add, larger, over_lanes
from ptxlab.kernels.parts.rows import Row, own_row
from ptxlab.kernels.parts.spreads import Spread

LN_2 = math.log(2)
LOG2_E = struct.unpack("f", struct.pack("f", math.log2(math.e)))[0]  # as f32, and what is left of it
REST_OF_LOG2_E = math.log2(math.e) - LOG2_E
LEAST = -200.0  # whose power is 0
LOWEST = -(2.0**127)  # of which another such can be taken away


def softmax(x: pointer[b32], y: pointer[b32], rows: u32, columns: u32, *, spread: Spread) -> None:
    """y = exp(x - maximum) / Σ exp(x - maximum) for each row."""
    row = own_row(x, rows, columns, spread, neutral=-math.inf)
    common, total = row.agree(sum_powers(row), Together())
    inverse = ptx.rcp.rn.f32(total)
    for vector in row.vectors():
        vector.store(y, [power(value - common, spread.type == "f32") * inverse for value in vector.values])


def sum_powers(row: Row) -> tuple[Any, Any]:
    """The largest element that this thread has of a row, and Σ exp(x - that).

    A thread that has met nothing but -inf takes a number that is low enough instead: -inf - -inf would be NaN.
    """
    highest, total = f32(LOWEST), f32(0.0)
    for piece in row.pieces():
        before = ptx.mov.f32(highest)
        ptx.max.f32(highest, piece.largest, out=highest)
        if row.spread.where == "global":
            total *= power(before - highest)
        for value in piece.values:
            total += power(value - highest, row.spread.type == "f32")
    return highest, total


class Together(Combine):
    """Sums that are relative to different maxima, relative to one."""

    def __call__(self, one: Any, other: Any) -> tuple[Any, Any]:
        """Those of two."""
        common = ptx.max.f32(one[0], other[0])
        return common, one[1] * power(one[0] - common) + other[1] * power(other[0] - common)

    def over_lanes(self, value: Any, lanes: int) -> tuple[Any, Any]:
        """Those of many lanes: the maximum first, so that each sum is scaled and rounded once."""
        highest, total = value
        common = over_lanes(highest, larger, lanes)
        return common, over_lanes(total * power(highest - common), add, lanes)


def power(exponent: Any, is_exact: bool = True) -> Any:
    """exp(x) of a number that is not above 0, as a power of 2, which is what the hardware has.

    x · log2 e is rounded, and that counts as much as the exponent is large. An exact one adds what was lost, to first
    order; results of 16 bits do not show it.
    """
    if not is_exact:
        return ptx.ex2.approx.ftz.f32(exponent * LOG2_E)
    exponent = ptx.max.NaN.f32(exponent, LEAST)  # -inf would leave no rest to add
    rounded = exponent * LOG2_E
    rest = ptx.fma.rn.f32(exponent, LOG2_E, ptx.neg.f32(rounded))
    rest = ptx.fma.rn.f32(exponent, REST_OF_LOG2_E, rest)
    found = ptx.ex2.approx.ftz.f32(rounded)
    return ptx.fma.rn.f32(found * LN_2, rest, found)
