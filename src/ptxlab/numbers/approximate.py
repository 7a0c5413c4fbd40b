"""The approximate instructions on patterns, bit for bit as an H200 has them, also compiled.

Each is a function of the function unit, and around it what ptxas puts there: a factor where operands or results would
be subnormal, which the unit does not know, or where a reciprocal would; the product with 1/2π that makes turns of an
angle; a step of Newton's method in f64.
"""

from ptxlab.native import bits_float, boolean, f64, float_bits, fma, native, u32, u64
from ptxlab.numbers import function_unit, soft
from ptxlab.numbers.conversion import convert, widen
from ptxlab.numbers.function_unit import INFINITY
from ptxlab.numbers.packing import is_nan
from ptxlab.numbers.parameters import F16, F32, F64, FTZ, RN, RZ

_LEAST_NORMAL = 0x0080_0000
_SUBNORMAL_REACH = 0x7E80_0000  # 2**126: the reciprocals of what is above are subnormal
_QUARTER = 0x3E80_0000
_TWO_TO_24 = 0x4B80_0000
_TWO_TO_12 = 0x4580_0000
_TWO_TO_MINUS_12 = 0x3980_0000
_MINUS_24 = 0xC1C0_0000
_MINUS_126 = 0xC2FC_0000
_HALF = 0x3F00_0000
_ONE = 0x3F80_0000
_TURNS_OF_RADIAN = 0x3E22_F983
_MAGNITUDE_F64 = 0x7FFF_FFFF_FFFF_FFFF
_INFINITY_F64 = 0x7FF0_0000_0000_0000


@native(inline=True)
def _times(a: u32, b: u32, ftz: boolean) -> u32:
    """A product in f32."""
    return u32(soft.mul(a, b, F32, RN, FTZ if ftz else 0))


@native(inline=True)
def _is_small(a: u32) -> boolean:
    """Whether a number is subnormal or zero."""
    return a & 0x7FFF_FFFF < _LEAST_NORMAL


@native(inline=True)
def _is_large(a: u32) -> boolean:
    """Whether a number, not a NaN, is so large that its reciprocal is subnormal."""
    return _SUBNORMAL_REACH < a & 0x7FFF_FFFF <= INFINITY


@native
def reciprocal(a: u32, ftz: boolean) -> u32:
    """1 / `a`."""
    if not ftz and (_is_small(a) or _is_large(a)):
        factor: u32 = _TWO_TO_24 if _is_small(a) else _QUARTER
        return _times(function_unit.reciprocal(_times(a, factor, False)), factor, False)
    return function_unit.reciprocal(a)


@native
def square_root(a: u32, ftz: boolean) -> u32:
    """The square root of `a`."""
    if not ftz and _is_small(a):
        return _times(function_unit.root(_times(a, _TWO_TO_24, False)), _TWO_TO_MINUS_12, False)
    return function_unit.root(a)


@native
def reciprocal_root(a: u32, ftz: boolean) -> u32:
    """1 / the square root of `a`."""
    if not ftz and _is_small(a):
        return _times(function_unit.reciprocal_root(_times(a, _TWO_TO_24, False)), _TWO_TO_12, False)
    return function_unit.reciprocal_root(a)


@native
def quotient(a: u32, b: u32, ftz: boolean, full: boolean) -> u32:
    """`a` / `b`; unless in `full` range, a divisor above 2**126 has no reciprocal but zero."""
    if full and _is_large(b):
        a = _times(a, _QUARTER, ftz)
        b = _times(b, _QUARTER, ftz)
    elif not ftz and _is_small(b):
        a = _times(a, _TWO_TO_24, False)
        b = _times(b, _TWO_TO_24, False)
    return _times(a, function_unit.reciprocal(b), ftz)


@native
def quotient_factor(b: u32, ftz: boolean, full: boolean) -> u32:
    """What both operands of a quotient are multiplied by before the reciprocal is taken."""
    if full and _is_large(b):
        return _QUARTER
    if not ftz and _is_small(b):
        return _TWO_TO_24
    return _ONE


@native
def scaled_reciprocal(b: u32, factor: u32, ftz: boolean) -> u32:
    """1 / (`b` * `factor`): what a quotient is the product of its dividend, times `factor`, with."""
    return function_unit.reciprocal(_times(b, factor, ftz))


@native
def logarithm(a: u32, ftz: boolean) -> u32:
    """The logarithm of `a` to base 2."""
    if not ftz and _is_small(a):
        return u32(soft.add(function_unit.logarithm(_times(a, _TWO_TO_24, False)), _MINUS_24, F32, RN, 0))
    return function_unit.logarithm(a)


@native
def power(a: u32, ftz: boolean) -> u32:
    """2 to the power `a`."""
    if not ftz and _MINUS_126 < a <= INFINITY | 0x8000_0000:
        half: u32 = function_unit.power(_times(a, _HALF, False))
        return _times(half, half, False)
    return function_unit.power(a)


@native
def sine(a: u32) -> u32:
    """The sine of `a`."""
    return function_unit.wave(_turns(a), 0)


@native
def cosine(a: u32) -> u32:
    """The cosine of `a`."""
    return function_unit.wave(_turns(a), 1)


@native(inline=True)
def _turns(a: u32) -> u32:
    """How often an angle goes around, rounded towards zero; most of the error that the manual allows is made here."""
    return u32(soft.mul(a, _TURNS_OF_RADIAN, F32, RZ, 0))


@native
def tangent(a: u32) -> u32:
    """The hyperbolic tangent of `a`."""
    return function_unit.tangent(a)


@native
def half_power(a: u32, format: u32) -> u32:
    """2 to the power `a`, of an f16 or bf16."""
    return _narrow(function_unit.power(widen(a, format)), format)


@native
def half_tangent(a: u32, format: u32) -> u32:
    """The hyperbolic tangent of `a`, an f16 or bf16."""
    return _narrow(function_unit.tangent(widen(a, format)), format)


@native(inline=True)
def _narrow(a: u32, format: u32) -> u32:
    """A result in f32 without its last bits; what is beyond the largest f16 is infinite."""
    if format == F16 and 0x4780_0000 <= a < INFINITY:
        return 0x7C00
    return u32(convert(a, F32, format, RZ, 0))


@native
def high_reciprocal(a: u64) -> u64:
    """1 / `a`, of the upper half of an f64, as the upper half of one."""
    return u64(function_unit.high_reciprocal(u32(a >> 32))) << 32


@native
def high_reciprocal_root(a: u64) -> u64:
    """1 / the square root of `a`, of the upper half of an f64, as the upper half of one."""
    return u64(function_unit.high_reciprocal_root(u32(a >> 32))) << 32


@native
def reciprocal_root_f64(a: u64) -> u64:
    """1 / the square root of `a`."""
    if is_nan(a, F64):
        return a | 0x0008_0000_0000_0000
    if a & _MAGNITUDE_F64 == 0:
        return a | _INFINITY_F64
    if a >= _INFINITY_F64:
        return 0 if a == _INFINITY_F64 else 0xFFF8_0000_0000_0000
    number: f64 = bits_float(f64, a)
    if a >> 52 == 0:
        return float_bits(f64, _refined_root(number * 2.0**54) * 2.0**27)
    return float_bits(f64, _refined_root(number))


@native(inline=True)
def _refined_root(number: f64) -> f64:
    """1 / the square root of a normal number, made more exact once."""
    first: f64 = bits_float(f64, high_reciprocal_root(float_bits(f64, number)))
    error: f64 = fma(f64, number, -(first * first), 1.0)
    return fma(f64, fma(f64, error, 0.375, 0.5), first * error, first)
