"""Approximate reciprocals, roots and quotients on patterns, also compiled.

Each is computed in f64 and rounded once, so that results are the same on every host, nearly always the correctly
rounded ones, and within the bounds that the manual states. A GPU's own results lie within the same bounds, but are
others in the last bits.
"""

from ptxlab.native import bits_float, boolean, f32, f64, float_bits, native, sqrt, u32, u64
from ptxlab.numbers.packing import flush, is_nan
from ptxlab.numbers.parameters import F32, F64, FTZ

NAN = 0x7FFF_FFFF
INFINITY = 0x7F80_0000
_HIGH_NAN = 0x7FFF_FFFF_0000_0000
_MAGNITUDE_F64 = 0x7FFF_FFFF_FFFF_FFFF
_INFINITY_F64 = 0x7FF0_0000_0000_0000


@native(inline=True)
def read(a: u32, ftz: boolean) -> u32:
    """An f32 operand."""
    return u32(flush(a, F32, FTZ if ftz else 0))


@native(inline=True)
def write(number: f64, ftz: boolean) -> u32:
    """The f32 nearest to a result that is no NaN."""
    return u32(flush(float_bits(f32, f32(number)), F32, FTZ if ftz else 0))


@native
def reciprocal(a: u32, ftz: boolean) -> u32:
    """1 / `a`."""
    a = read(a, ftz)
    if is_nan(a, F32):
        return NAN
    if a & 0x7FFF_FFFF == 0:
        return a | INFINITY
    return write(1.0 / f64(bits_float(f32, a)), ftz)


@native
def square_root(a: u32, ftz: boolean) -> u32:
    """The square root of `a`."""
    a = read(a, ftz)
    if a == 0x8000_0000:
        return a
    if a > INFINITY:
        return NAN
    return write(sqrt(f64(bits_float(f32, a))), ftz)


@native
def reciprocal_root(a: u32, ftz: boolean) -> u32:
    """1 / the square root of `a`."""
    a = read(a, ftz)
    if a & 0x7FFF_FFFF == 0:
        return a | INFINITY
    if a > INFINITY:
        return NAN
    return write(1.0 / sqrt(f64(bits_float(f32, a))), ftz)


@native
def quotient(a: u32, b: u32, ftz: boolean, full: boolean) -> u32:
    """`a` / `b`; unless in `full` range, a divisor above 2**126 has no reciprocal but zero."""
    a = read(a, ftz)
    b = read(b, ftz)
    sign: u32 = (a ^ b) & 0x8000_0000
    dividend: u32 = a & 0x7FFF_FFFF
    divisor: u32 = b & 0x7FFF_FFFF
    if not full and 0x7E80_0000 < divisor < INFINITY:
        divisor = INFINITY
    if dividend > INFINITY or divisor > INFINITY or (dividend == divisor and (divisor == 0 or divisor >= INFINITY)):
        return NAN
    if divisor == 0:
        return sign | INFINITY
    return sign | write(f64(bits_float(f32, dividend)) / f64(bits_float(f32, divisor)), ftz)


@native
def high_reciprocal(a: u64) -> u64:
    """1 / `a`, of the upper half of an f64, as the upper half of one."""
    a = flush(a & 0xFFFF_FFFF_0000_0000, F64, FTZ)
    if is_nan(a, F64):
        return _HIGH_NAN
    if a & _MAGNITUDE_F64 == 0:
        return a | _INFINITY_F64
    return _high(1.0 / bits_float(f64, a))


@native
def high_reciprocal_root(a: u64) -> u64:
    """1 / the square root of `a`, of the upper half of an f64, as the upper half of one."""
    a = flush(a & 0xFFFF_FFFF_0000_0000, F64, FTZ)
    if a & _MAGNITUDE_F64 == 0:
        return a | _INFINITY_F64
    if a > _INFINITY_F64:
        return _HIGH_NAN
    return _high(1.0 / sqrt(bits_float(f64, a)))


@native(inline=True)
def _high(number: f64) -> u64:
    """The nearest number whose lower half is zero."""
    return flush((float_bits(f64, number) + 0x8000_0000) & 0xFFFF_FFFF_0000_0000, F64, FTZ)


@native
def reciprocal_root_f64(a: u64) -> u64:
    """1 / the square root of `a`."""
    if is_nan(a, F64):
        return a | 0x0008_0000_0000_0000
    if a & _MAGNITUDE_F64 == 0:
        return a | _INFINITY_F64
    if a > _INFINITY_F64:
        return 0xFFF8_0000_0000_0000
    return float_bits(f64, 1.0 / sqrt(bits_float(f64, a)))
