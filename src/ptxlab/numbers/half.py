"""Arithmetic of f16 and bf16 by the host's f64, also compiled: faster than `soft`, to nearest, and the same to the bit.

Sums and products are exact in f64, or inexact so far below the last bit of the result that it only matters on which
side of a tie they lie: an inexact sum is therefore rounded to odd, so that it is no tie and stays on its side.
"""

from ptxlab.native import bits_float, f64, float_bits, native, u32, u64
from ptxlab.numbers.conversion import convert_bits, nearest, to_f64
from ptxlab.numbers.packing import flush, is_infinite, is_nan, result_nan
from ptxlab.numbers.parameters import F64, FTZ, NAN, RN, SIGN


@native(inline=True)
def add(a: u32, b: u32, format: u32, modifiers: u32) -> u32:
    """`a + b`."""
    a = _read(a, format, modifiers)
    b = _read(b, format, modifiers)
    return _write(_sum(_value(a, format), _value(b, format)), format, modifiers)


@native(inline=True)
def sub(a: u32, b: u32, format: u32, modifiers: u32) -> u32:
    """`a - b`."""
    a = _read(a, format, modifiers)
    b = _read(b, format, modifiers)
    return _write(_sum(_value(a, format), -_value(b, format)), format, modifiers)


@native(inline=True)
def mul(a: u32, b: u32, format: u32, modifiers: u32) -> u32:
    """`a * b`."""
    a = _read(a, format, modifiers)
    b = _read(b, format, modifiers)
    return _write(_value(a, format) * _value(b, format), format, modifiers)


@native(inline=True)
def fma(a: u32, b: u32, c: u32, format: u32, modifiers: u32) -> u32:
    """`a * b + c`, rounded once."""
    a = _read(a, format, modifiers)
    b = _read(b, format, modifiers)
    c = _read(c, format, modifiers)
    return _write(_sum(_value(a, format) * _value(b, format), _value(c, format)), format, modifiers)


@native(inline=True)
def _read(a: u32, format: u32, modifiers: u32) -> u32:
    return u32(flush(a, format, modifiers))


@native(inline=True)
def _value(a: u32, format: u32) -> f64:
    """The value of a pattern; infinities and NaNs are those of f64."""
    if is_nan(a, format) or is_infinite(a, format):
        sign: u64 = SIGN[F64] if a & 0x8000 != 0 else 0
        return bits_float(f64, sign | (0x7FF8_0000_0000_0000 if is_nan(a, format) else 0x7FF0_0000_0000_0000))
    return to_f64(a, format)


@native(inline=True)
def _sum(a: f64, b: f64) -> f64:
    """`a + b`, rounded to odd."""
    total: f64 = a + b
    # What the addition lost; it is no number where the sum is none or infinite.
    second: f64 = total - a
    lost: f64 = (a - (total - second)) + (b - second)
    bits: u64 = float_bits(f64, total)
    if bits & 1 == 0 and (lost < 0.0 or lost > 0.0):
        bits = bits + 1 if (lost > 0.0) == (total > 0.0) else bits - 1
    return bits_float(f64, bits)


@native(inline=True)
def _write(number: f64, format: u32, modifiers: u32) -> u32:
    """The pattern of a result."""
    if number != number:
        return u32(result_nan(NAN[format], NAN[format], NAN[format], format, modifiers))
    if modifiers & FTZ == 0 or is_infinite(float_bits(f64, number), F64):
        return u32(nearest(number, format, modifiers))
    return u32(convert_bits(float_bits(f64, number), F64, format, RN, modifiers, 0, 0))
