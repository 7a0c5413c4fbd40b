"""Approximate sines, logarithms, powers and hyperbolic tangents on patterns, also compiled.

Each is computed in f64, by series of its own and without the host's library, and rounded once: see `approximate`.
"""

from ptxlab.native import bits_float, boolean, f32, f64, float_bits, native, s32, u32, u64
from ptxlab.numbers.approximate import INFINITY, NAN, read, write
from ptxlab.numbers.conversion import nearest, to_f64
from ptxlab.numbers.packing import flush, is_infinite, is_nan
from ptxlab.numbers.parameters import F32, FTZ

_LEAST_NORMAL = 2.0**-126


@native(inline=True)
def _turns(a: u32) -> f64:
    """How often an angle goes around: a product in f32, rounded towards zero, as the hardware computes it.

    Most of the error that the manual allows, and grants more of to large angles, is the error of this product.
    """
    exact: f64 = f64(bits_float(f32, a)) * f64(bits_float(f32, 0x3E22_F983))
    return bits_float(f64, float_bits(f64, exact) & 0xFFFF_FFFF_E000_0000)


@native
def _wave(turns: f64, quarter: s32) -> f64:
    """The sine of so many full turns and `quarter` quarters of one."""
    x: f64 = 0.0
    if -16_777_216.0 < turns < 16_777_216.0:  # beyond that, an f32 is a whole number
        quarters: f64 = turns * 4.0
        count: s32 = s32(quarters + (0.5 if quarters >= 0.0 else -0.5))
        quarter += count
        x = (quarters - f64(count)) * 1.5707963267948966
    y: f64 = x * x
    series: f64 = 0.0
    if quarter & 1 == 0:
        series = -7.647163731819816e-13 * y + 1.6059043836821613e-10
        series = (series * y - 2.505210838544172e-08) * y + 2.7557319223985893e-06
        series = (series * y - 0.0001984126984126984) * y + 0.008333333333333333
        x = (series * y - 0.16666666666666666) * y * x + x
    else:
        series = 4.779477332387385e-14 * y - 1.1470745597729725e-11
        series = (series * y + 2.08767569878681e-09) * y - 2.755731922398589e-07
        series = (series * y + 2.48015873015873e-05) * y - 0.001388888888888889
        series = (series * y + 0.041666666666666664) * y - 0.5
        x = series * y + 1.0
    return -x if quarter & 2 != 0 else x


@native
def sine(a: u32) -> u32:
    """The sine of `a`; of an angle so small that the product is subnormal it is zero, with `.ftz` or without."""
    if a & 0x7FFF_FFFF >= INFINITY:
        return NAN
    turns: f64 = _turns(a)
    if -_LEAST_NORMAL < turns < _LEAST_NORMAL or turns >= 16_777_216.0 or turns <= -16_777_216.0:
        return a & 0x8000_0000
    return write(_wave(turns, 0), True)


@native
def cosine(a: u32) -> u32:
    """The cosine of `a`."""
    if a & 0x7FFF_FFFF >= INFINITY:
        return NAN
    return write(_wave(_turns(a), 1), True)


@native
def logarithm(a: u32, ftz: boolean) -> u32:
    """The logarithm of `a` to base 2."""
    a = read(a, ftz)
    if a & 0x7FFF_FFFF == 0:
        return 0xFF80_0000
    if a >= INFINITY:
        return a if a == INFINITY else NAN
    bits: u64 = float_bits(f64, f64(bits_float(f32, a)))
    # A significand from 0.7 to 1.4, so that near 1 nothing cancels.
    exponent: s32 = s32((bits + 0x0009_5F61_9980_C433) >> 52) - 1023
    number: f64 = bits_float(f64, u64(bits - u64(u64(exponent) << 52)))
    x: f64 = (number - 1.0) / (number + 1.0)
    y: f64 = x * x
    series: f64 = y * 0.1373995277037108 + 0.15186263588304877
    series = (series * y + 0.16972882833987804) * y + 0.19235933878519512
    series = (series * y + 0.22195308321368667) * y + 0.2623081892525388
    series = (series * y + 0.3205988979753252) * y + 0.4121985831111324
    series = (series * y + 0.5770780163555853) * y + 0.9617966939259756
    return write(f64(exponent) + (series * y + 2.8853900817779268) * x, ftz)


@native
def _power(x: f64) -> f64:
    """2 to the power `x`, which counts as no less than -300 and no more than 300."""
    x = 300.0 if x > 300.0 else -300.0 if x < -300.0 else x
    whole: s32 = s32(x + 1000.5) - 1000
    x -= f64(whole)
    series: f64 = 2.5678435993488196e-11 * x + 4.44553827187081e-10
    series = (series * x + 7.054911620801121e-09) * x + 1.0178086009239696e-07
    series = (series * x + 1.3215486790144305e-06) * x + 1.5252733804059838e-05
    series = (series * x + 0.00015403530393381606) * x + 0.0013333558146428441
    series = (series * x + 0.009618129107628477) * x + 0.055504108664821576
    series = (series * x + 0.2402265069591007) * x + 0.6931471805599453
    return (series * x + 1.0) * bits_float(f64, u64(whole + 1023) << 52)


@native
def _tangent(x: f64) -> f64:
    """The hyperbolic tangent of `x`."""
    if -0.75 < x < 0.75:
        y: f64 = x * x
        # A continued fraction, in which nothing cancels.
        return x / (1.0 + y / (3.0 + y / (5.0 + y / (7.0 + y / (9.0 + y / (11.0 + y / 13.0))))))
    return 1.0 - 2.0 / (_power(x * 2.8853900817779268) + 1.0)


@native
def power(a: u32, ftz: boolean) -> u32:
    """2 to the power `a`."""
    if is_nan(a, F32):
        return NAN
    return write(_power(f64(bits_float(f32, a))), ftz)


@native
def tangent(a: u32) -> u32:
    """The hyperbolic tangent of `a`."""
    if is_nan(a, F32):
        return NAN
    return write(_tangent(f64(bits_float(f32, a))), False)


@native
def half_power(a: u32, format: u32, ftz: boolean) -> u32:
    """2 to the power `a`, of an f16 or bf16."""
    if is_nan(a, format):
        return 0x7FFF
    number: f64 = 300.0 if a & 0x8000 == 0 else -300.0
    if not is_infinite(a, format):
        number = to_f64(a, format)
    return u32(flush(nearest(_power(number), format, 0), format, FTZ if ftz else 0))


@native
def half_tangent(a: u32, format: u32) -> u32:
    """The hyperbolic tangent of `a`, an f16 or bf16."""
    if is_nan(a, format):
        return 0x7FFF
    number: f64 = 100.0 if a & 0x8000 == 0 else -100.0
    if not is_infinite(a, format):
        number = to_f64(a, format)
    return u32(nearest(_tangent(number), format, 0))
