"""Arithmetic of f16 and bf16 by the host's f64, also compiled: faster than `soft`, to nearest, and the same to the bit.

A sum or product in f64 has more than twice the bits of the result and two more, so rounding it again does no harm. The
sum of a product and a number may need more bits than that: it is rounded to odd, so that it is not a tie and is on the
side of a tie where the exact sum is.
"""

from ptxlab.native import bits_float, f32, f64, float_bits, native, u32, u64
from ptxlab.numbers.conversion import convert_bits, nearest, widen
from ptxlab.numbers.packing import flush, is_infinite
from ptxlab.numbers.parameters import F64, FTZ, NAN, RN, SAT


@native(inline=True)
def add(a: u32, b: u32, format: u32, modifiers: u32) -> u32:
    """`a + b`."""
    return _write(_read(a, format, modifiers) + _read(b, format, modifiers), format, modifiers)


@native(inline=True)
def sub(a: u32, b: u32, format: u32, modifiers: u32) -> u32:
    """`a - b`."""
    return _write(_read(a, format, modifiers) - _read(b, format, modifiers), format, modifiers)


@native(inline=True)
def mul(a: u32, b: u32, format: u32, modifiers: u32) -> u32:
    """`a * b`."""
    return _write(_read(a, format, modifiers) * _read(b, format, modifiers), format, modifiers)


@native(inline=True)
def fma(a: u32, b: u32, c: u32, format: u32, modifiers: u32) -> u32:
    """`a * b + c`, rounded once."""
    product: f64 = _read(a, format, modifiers) * _read(b, format, modifiers)
    addend: f64 = _read(c, format, modifiers)
    total: f64 = product + addend
    # What the addition lost; it is a NaN where the sum is a NaN or infinite.
    second: f64 = total - product
    lost: f64 = (product - (total - second)) + (addend - second)
    pattern: u64 = float_bits(f64, total)
    if pattern & 1 == 0 and (lost < 0.0 or lost > 0.0):
        pattern = pattern + 1 if (lost > 0.0) == (total > 0.0) else pattern - 1
    return _write(bits_float(f64, pattern), format, modifiers)


@native(inline=True)
def _read(a: u32, format: u32, modifiers: u32) -> f64:
    """The value of an operand."""
    return f64(bits_float(f32, widen(u32(flush(a, format, modifiers)), format)))


@native(inline=True)
def _write(number: f64, format: u32, modifiers: u32) -> u32:
    """The pattern of a result."""
    if number != number:
        return 0 if modifiers & SAT != 0 else u32(NAN[format])
    if modifiers & FTZ == 0 or is_infinite(float_bits(f64, number), F64):
        return u32(nearest(number, format, modifiers))
    return u32(convert_bits(float_bits(f64, number), F64, format, RN, modifiers, 0, 0))
