"""Exact operations on values, with the IEEE 754 rules for NaN, infinities and the sign of zero."""

from fractions import Fraction
from math import isqrt

from ptxlab.numbers.encoding import is_negative
from ptxlab.numbers.formats import Special, Value
from ptxlab.numbers.rounding import Rounding

_ROOT_BITS = 64  # more than the 53 bits of f64 plus one to round by


def is_infinite(value: Value) -> bool:
    """Whether `value` is one of the infinities."""
    return value in (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY)


def is_zero(value: Value) -> bool:
    """Whether `value` is a zero of either sign."""
    return value is Special.NEGATIVE_ZERO or value == 0


def infinity(negative: bool) -> Special:
    """Infinity of that sign."""
    return Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY


def zero(negative: bool) -> Value:
    """Zero of that sign."""
    return Special.NEGATIVE_ZERO if negative else Fraction(0)


def negate(value: Value) -> Value:
    """`value` with the other sign; NaN stays NaN."""
    if value is Special.NAN:
        return value
    if is_zero(value):
        return zero(not is_negative(value))
    return infinity(not is_negative(value)) if isinstance(value, Special) else -value


def absolute(value: Value) -> Value:
    """`value` without its minus sign."""
    return negate(value) if is_negative(value) else value


def add_exactly(a: Value, b: Value, rounding: Rounding) -> Value:
    """`a` plus `b`; the rounding mode decides the sign of a zero that cancellation leaves."""
    if Special.NAN in (a, b) or (is_infinite(a) and is_infinite(b) and a is not b):
        return Special.NAN
    if is_infinite(a) or is_infinite(b):
        return a if is_infinite(a) else b
    total = _fraction(a) + _fraction(b)
    if total != 0:
        return total
    if is_zero(a) and is_negative(a) == is_negative(b):
        return a
    return zero(rounding == "rm")


def multiply_exactly(a: Value, b: Value) -> Value:
    """`a` times `b`."""
    if Special.NAN in (a, b) or (is_infinite(a) and is_zero(b)) or (is_zero(a) and is_infinite(b)):
        return Special.NAN
    negative = is_negative(a) != is_negative(b)
    if is_infinite(a) or is_infinite(b):
        return infinity(negative)
    if is_zero(a) or is_zero(b):
        return zero(negative)
    return _fraction(a) * _fraction(b)


def divide_exactly(a: Value, b: Value) -> Value:
    """`a` divided by `b`."""
    if Special.NAN in (a, b) or (is_infinite(a) and is_infinite(b)) or (is_zero(a) and is_zero(b)):
        return Special.NAN
    negative = is_negative(a) != is_negative(b)
    if is_infinite(a) or is_zero(b):
        return infinity(negative)
    if is_zero(a) or is_infinite(b):
        return zero(negative)
    return _fraction(a) / _fraction(b)


def root_for_rounding(value: Value) -> Value:
    """A value that rounds as the square root of `value` does, in every mode and to every format of up to 53 bits."""
    if is_zero(value) or value in (Special.NAN, Special.POSITIVE_INFINITY):
        return value
    if is_negative(value):
        return Special.NAN
    fraction = _fraction(value)
    # Scaled by an even power of two, the integer root has at least _ROOT_BITS bits.
    shift = max(0, _ROOT_BITS - (fraction.numerator.bit_length() - fraction.denominator.bit_length()) // 2)
    scaled = fraction * (1 << 2 * shift)
    root = isqrt(scaled.numerator // scaled.denominator)
    # An inexact root is strictly between two integers, where no pattern and no tie can be: any point there will do.
    inexact = Fraction(0) if root * root == scaled else Fraction(1, 2)
    return (root + inexact) / (1 << shift)


def less(a: Value, b: Value) -> bool:
    """Whether `a` is less than `b`, with -0.0 less than +0.0; neither is a NaN."""
    order = (_order(a), not is_negative(a)), (_order(b), not is_negative(b))
    return order[0] < order[1]


def _order(value: Value) -> Fraction | float:
    """A number that compares as `value` does."""
    return float("-inf" if is_negative(value) else "inf") if is_infinite(value) else _fraction(value)


def _fraction(value: Value) -> Fraction:
    """A finite value as a fraction; zero loses its sign."""
    if value is Special.NEGATIVE_ZERO:
        return Fraction(0)
    assert isinstance(value, Fraction)
    return value
