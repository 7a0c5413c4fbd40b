"""Arithmetic on bit patterns, exact to the last bit: the slow reference for the floating-point instructions.

Each function takes the format and the patterns of its operands, works on exact values and rounds once. `ftz`, `sat`
and `relu` are the manual's modifiers. A NaN result is the format's canonical NaN, or in f64 a NaN operand; which of
several is what `sm_90` does.
"""

from ptxlab.numbers.encoding import clamp_negative, clamp_unit, encode, is_negative
from ptxlab.numbers.exact import (
    absolute,
    add_exactly,
    divide_exactly,
    less,
    multiply_exactly,
    negate,
    root_for_rounding,
    zero,
)
from ptxlab.numbers.formats import Format, Special, Value, decode
from ptxlab.numbers.nan import result_nan
from ptxlab.numbers.rounding import Rounding


def read(format: Format, bits: int, *, ftz: bool = False) -> Value:
    """The value of an operand; `ftz` takes a subnormal one as a zero of its sign."""
    value = decode(format, bits)
    magnitude = bits & ~format.sign_bit
    subnormal = magnitude >> format.padding < 1 << format.mantissa_bits
    return zero(is_negative(value)) if ftz and subnormal else value


def write(
    format: Format,
    value: Value,
    rounding: Rounding = "rn",
    *,
    nans: tuple[int, ...] = (),
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> int:
    """The pattern of a result; `nans` are the operands that it may be a NaN of, the first choice first."""
    if sat:
        value = clamp_unit(value)
    if relu:
        value = clamp_negative(value)
    if value is Special.NAN:
        return result_nan(format, *nans)
    return encode(format, value, rounding, flush=ftz)


def add(format: Format, a: int, b: int, rounding: Rounding = "rn", *, ftz: bool = False, sat: bool = False) -> int:
    """`a + b`.

    >>> from ptxlab.numbers import F16
    >>> hex(add(F16, 0x3C00, 0x4000))
    '0x4200'
    """
    value = add_exactly(read(format, a, ftz=ftz), read(format, b, ftz=ftz), rounding)
    return write(format, value, rounding, nans=(b, a), ftz=ftz, sat=sat)


def sub(format: Format, a: int, b: int, rounding: Rounding = "rn", *, ftz: bool = False, sat: bool = False) -> int:
    """`a - b`."""
    value = add_exactly(read(format, a, ftz=ftz), negate(read(format, b, ftz=ftz)), rounding)
    return write(format, value, rounding, nans=(b, a), ftz=ftz, sat=sat)


def mul(format: Format, a: int, b: int, rounding: Rounding = "rn", *, ftz: bool = False, sat: bool = False) -> int:
    """`a * b`."""
    value = multiply_exactly(read(format, a, ftz=ftz), read(format, b, ftz=ftz))
    return write(format, value, rounding, nans=(b, a), ftz=ftz, sat=sat)


def fma(
    format: Format,
    a: int,
    b: int,
    c: int,
    rounding: Rounding = "rn",
    *,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> int:
    """`a * b + c`, rounded once."""
    product = multiply_exactly(read(format, a, ftz=ftz), read(format, b, ftz=ftz))
    value = add_exactly(product, read(format, c, ftz=ftz), rounding)
    return write(format, value, rounding, nans=(b, c, a), ftz=ftz, sat=sat, relu=relu)


def div(format: Format, a: int, b: int, rounding: Rounding = "rn", *, ftz: bool = False) -> int:
    """`a / b`."""
    value = divide_exactly(read(format, a, ftz=ftz), read(format, b, ftz=ftz))
    return write(format, value, rounding, nans=(a, b), ftz=ftz)


def sqrt(format: Format, a: int, rounding: Rounding = "rn", *, ftz: bool = False) -> int:
    """The square root of `a`."""
    return write(format, root_for_rounding(read(format, a, ftz=ftz)), rounding, nans=(a,), ftz=ftz)


def min(format: Format, *operands: int, ftz: bool = False, nan: bool = False, abs: bool = False) -> int:
    """The least operand, -0.0 below +0.0; a NaN is left out, or wins with `nan`, the manual's `.NaN`."""
    value = _select([read(format, bits, ftz=ftz) for bits in operands], nan, abs, largest=False)
    return write(format, value, nans=operands[::-1])


def max(format: Format, *operands: int, ftz: bool = False, nan: bool = False, abs: bool = False) -> int:
    """The greatest operand, +0.0 above -0.0; a NaN is left out, or wins with `nan`, the manual's `.NaN`."""
    value = _select([read(format, bits, ftz=ftz) for bits in operands], nan, abs, largest=True)
    return write(format, value, nans=operands[::-1])


def _select(values: list[Value], nan: bool, abs: bool, largest: bool) -> Value:
    """The least or the greatest of `values`."""
    numbers = [absolute(value) if abs else value for value in values if value is not Special.NAN]
    if not numbers or (nan and len(numbers) < len(values)):
        return Special.NAN
    best = numbers[0]
    for value in numbers[1:]:
        if less(best, value) if largest else less(value, best):
            best = value
    return best
