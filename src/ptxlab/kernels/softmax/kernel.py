"""Softmax over rows, in Python: a row is read once, and its threads agree on two numbers."""

from __future__ import annotations

import math
import struct

from ptxlab.author import b32, f32, f64, pointer, ptx, u32
from ptxlab.kernels.parts.reductions import EVERY_LANE, Combine, add, larger, over_lanes
from ptxlab.kernels.parts.rows import Row, Rows, go_over
from ptxlab.kernels.parts.spreads import Spread

LOG2_E = struct.unpack("f", struct.pack("f", math.log2(math.e)))[0]  # as f32, and what is left of it
REST_OF_LOG2_E = math.log2(math.e) - LOG2_E
ONES = 3.0 * 2**22  # of numbers near it, the last digit is 1
LOWEST = -(2.0**127)  # of which another such can be taken away


def softmax(x: pointer[b32], y: pointer[b32], rows: u32, columns: u32, *, spread: Spread) -> None:
    """y = exp(x - maximum) / Σ exp(x - maximum) for each row."""
    is_exact = spread.type == "f32"

    def finish(row: Row, agreed: tuple[f32, f32]) -> None:
        common, total = agreed
        inverse = ptx.rcp.rn.f32(total)
        lost = ptx.fma.rn.f32(ptx.neg.f32(total), inverse, 1.0) * inverse  # by rounding the inverse
        for vector in row.vectors():
            powers = [power(value - common, is_exact) for value in vector.values]
            vector.store(y, [ptx.fma.rn.f32(p, inverse, p * lost) if is_exact else p * inverse for p in powers])

    go_over(Rows(x, rows, columns, spread, -math.inf, result=y), sum_powers, Together(is_exact), finish)


def sum_powers(row: Row) -> tuple[f32, f32]:
    """The largest element that this thread has of a row, and Σ exp(x - that).

    A thread that has met nothing but -inf takes a number that is low enough instead: -inf - -inf would be NaN.
    """
    highest, total = f32(LOWEST), f32(0.0)
    for piece in row.pieces():
        before = ptx.mov.f32(highest)
        ptx.max.f32(highest, piece.largest, out=highest)
        if not row.spread.is_kept:
            total *= power(before - highest)
        for value in piece.values:
            total += power(value - highest, row.spread.type == "f32")
    return highest, total


class Together(Combine):
    """Sums that are relative to different maxima, relative to one."""

    def __init__(self, is_exact: bool = False) -> None:
        self.is_exact = is_exact

    def __call__(self, one: tuple[f32, f32], other: tuple[f32, f32]) -> tuple[f32, f32]:
        """Those of two."""
        common = ptx.max.f32(one[0], other[0])
        return common, one[1] * power(one[0] - common) + other[1] * power(other[0] - common)

    def over_lanes(self, value: tuple[f32, f32], lanes: int) -> tuple[f32, f32]:
        """Those of many lanes: the maximum first, so that each sum is scaled and rounded once."""
        highest, total = value
        common = over_lanes(highest, larger, lanes)
        scaled = total * power(highest - common)
        return common, sum_in_f64(scaled, lanes) if self.is_exact else over_lanes(scaled, add, lanes)


def sum_in_f64(value: f32, lanes: int) -> f32:
    """The sum over lanes, which is rounded to f32 once."""
    total = ptx.cvt.f64.f32(value)
    distance = lanes // 2
    while distance:
        words = ptx.mov.b64(total, out=(b32(), b32()))
        other = tuple(ptx.shfl.sync.bfly.b32(word, distance, 31, EVERY_LANE) for word in words)
        total = total + ptx.mov.b64(other, out=f64())
        distance //= 2
    return ptx.cvt.rn.f32.f64(total)


def power(exponent: f32, is_exact: bool = True) -> f32:
    """exp(x) of a number that is not above 0, as a power of 2, which is what the hardware has.

    x · log2 e is rounded, and that counts as much as the exponent is large. An exact one is split: the whole number
    below becomes the exponent of the result, and `ex2` gets the rest, from 0 to 1, to which what log2 e lost is added.
    There `ex2` errs to both sides, and of numbers below -1 all its results are too small, by 0.4 of a last digit.
    Results of 16 bits do not show it.
    """
    if not is_exact:
        return ptx.ex2.approx.ftz.f32(exponent * LOG2_E)
    share = ptx.fma.rn.sat.f32(exponent, LOG2_E / 252, 0.5)  # n + 126 in 252, as it is from 0 to 1
    biased = ptx.fma.rm.f32(share, 252.0, ONES + 1)  # in the last digits is n + 127
    rest = ptx.fma.rn.f32(exponent, LOG2_E, ptx.neg.f32(biased - (ONES + 127)))
    rest = ptx.fma.rn.f32(exponent, REST_OF_LOG2_E, rest)
    return ptx.ex2.approx.ftz.f32(rest) * ptx.shl.b32(biased.view(b32), 23, out=f32())
