"""The functions of the hardware's function unit on patterns, bit for bit as an H200 computes them, also compiled.

The unit interpolates: the highest bits of a number choose three coefficients, the 17 bits below them are `x`, and the
result is c0 + c1·x + c2·x² in fixed point, with 40 bits after the point, cut off where the format ends. Subnormal
numbers count as zero, and become zero, except in `tangent`. `function_table` says where the coefficients come from.

Only the H200 was measured. Every target is emulated as it is.
"""

from ptxlab.native import leading_zeros, native, s32, s64, u32, u64
from ptxlab.numbers.function_table import (
    COEFFICIENTS,
    LOGARITHM,
    POWER,
    RECIPROCAL,
    RECIPROCAL_ROOT,
    ROOT,
    SINE,
    TANGENT,
)

NAN = 0x7FFF_FFFF
INFINITY = 0x7F80_0000
ONE = 0x3F80_0000
_SIGN = 0x8000_0000
_HIDDEN = 0x0080_0000
_INFINITY_HIGH = 0x7FF0_0000
_HIDDEN_HIGH = 0x0010_0000
# Of numbers from 2**-8 to 8, by exponent: the first interval of their hyperbolic tangent, and how many bits choose one.
_FIRST = (0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 43)
_CHOOSING = (0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3)


@native(inline=True)
def square(x: u32) -> u32:
    """The square of 17 bits in units of 2**19; products of two bits that are worth less than that are left out.

    So the upper eight bits are squared, but for the lowest of them by itself, and each lower bit meets those upper ones
    that lift it to 2**19.
    """
    upper: u32 = x >> 9
    sum: u32 = upper * upper >> 1
    for bit in range(2, 9):
        sum += (x >> u32(bit) & 1) * (x >> u32(18 - bit))
    return sum


@native(inline=True)
def interpolate(interval: u32, x: u32) -> u64:
    """The function of an interval, at `x` of its 2**17 parts, with 40 bits after the point."""
    row: u32 = interval * 3
    linear: s64 = COEFFICIENTS[row] + COEFFICIENTS[row + 1] * s64(x)
    return u64(linear + COEFFICIENTS[row + 2] * s64(square(x)))


@native(inline=True)
def _of_64(first: u32, fraction: u32) -> u64:
    """The function of 64 intervals at a fraction of 23 bits."""
    return interpolate(first + (fraction >> 17), fraction & 0x1_FFFF)


@native(inline=True)
def _cut(fixed: u64, point: s32) -> u32:
    """The f32 that begins as a number with `point` bits after the point does."""
    if fixed == 0:
        return 0
    zeros: u32 = leading_zeros(u64, fixed)
    return u32(fixed << zeros >> 40) + (u32(189 - point - s32(zeros)) << 23)


@native(inline=True)
def _whole(fixed: u64, sign: u32) -> u32:
    """A result, unless it is subnormal."""
    return u32(fixed) | sign if fixed >= _HIDDEN else sign


@native
def reciprocal(a: u32) -> u32:
    """1 / `a`: MUFU.RCP."""
    sign: u32 = a & _SIGN
    magnitude: u32 = a ^ sign
    if magnitude > INFINITY:
        return NAN
    if magnitude < _HIDDEN:
        return sign | INFINITY
    exponent: u32 = magnitude >> 23
    if exponent > 253:
        return sign
    result: u64 = interpolate(RECIPROCAL + (magnitude >> 16 & 127), (magnitude & 0xFFFF) << 1) >> 16
    return _whole(result - _HIDDEN + (u64(253 - u64(exponent)) << 23), sign)


@native
def root(a: u32) -> u32:
    """The square root of `a`: MUFU.SQRT."""
    if a & 0x7FFF_FFFF < _HIDDEN:
        return a & _SIGN
    if a >= INFINITY:
        return INFINITY if a == INFINITY else NAN
    result: u64 = _of_64(ROOT + (a >> 23 & 1 ^ 1) * 64, a & 0x7F_FFFF) >> 17
    return u32(result) - _HIDDEN + ((a >> 23) + 127 >> 1 << 23)


@native
def reciprocal_root(a: u32) -> u32:
    """1 / the square root of `a`: MUFU.RSQ."""
    if a & 0x7FFF_FFFF < _HIDDEN:
        return a & _SIGN | INFINITY
    if a >= INFINITY:
        return 0 if a == INFINITY else NAN
    result: u64 = u64(_HIDDEN) << 1
    if a & 0xFF_FFFF != _HIDDEN:  # of a power of four it is exact
        result = _of_64(RECIPROCAL_ROOT + (a >> 23 & 1 ^ 1) * 64, a & 0x7F_FFFF) >> 16
    return u32(result) - _HIDDEN + (190 - ((a >> 23) + 1 >> 1) << 23)


@native
def high_reciprocal(a: u32) -> u32:
    """The upper half of 1 / an f64, from the upper half of that: MUFU.RCP64H."""
    sign: u32 = a & _SIGN
    magnitude: u32 = a ^ sign
    if magnitude > _INFINITY_HIGH:
        return NAN
    if magnitude < _HIDDEN_HIGH:
        return sign | _INFINITY_HIGH
    exponent: u32 = magnitude >> 20
    if exponent > 2045:
        return sign
    result: u64 = interpolate(RECIPROCAL + (magnitude >> 13 & 127), (magnitude & 0x1FFF) << 4) >> 19
    result += (u64(2045 - u64(exponent)) << 20) - _HIDDEN_HIGH
    return u32(result) | sign if result >= _HIDDEN_HIGH else sign


@native
def high_reciprocal_root(a: u32) -> u32:
    """The upper half of 1 / the square root of an f64, from the upper half of that: MUFU.RSQ64H."""
    if a & 0x7FFF_FFFF < _HIDDEN_HIGH:
        return a & _SIGN | _INFINITY_HIGH
    if a >= _INFINITY_HIGH:
        return 0 if a == _INFINITY_HIGH else NAN
    result: u64 = u64(_HIDDEN_HIGH) << 1
    if a & 0x1F_FFFF != _HIDDEN_HIGH:
        result = _of_64(RECIPROCAL_ROOT + (a >> 20 & 1 ^ 1) * 64, (a & 0xF_FFFF) << 3) >> 19
    return u32(result) - _HIDDEN_HIGH + (1534 - ((a >> 20) + 1 >> 1) << 20)


@native
def logarithm(a: u32) -> u32:
    """The logarithm of `a` to base 2: MUFU.LG2. For its magnitude, a negative one is complemented."""
    if a & 0x7FFF_FFFF < _HIDDEN:
        return _SIGN | INFINITY
    if a >= INFINITY:
        return INFINITY if a == INFINITY else NAN
    if a == ONE:
        return 0
    sum: s64 = (s64(a >> 23) - 127 << 36) + s64(_of_64(LOGARITHM, a & 0x7F_FFFF) >> 4)
    if sum < 0:
        return _cut(u64(-1 - sum), 36) | _SIGN
    return _cut(u64(sum), 36)


@native
def power(a: u32) -> u32:
    """2 to the power `a`, of which 2**-23 is the least part: MUFU.EX2.

    For its negative, a number that is not whole is complemented.
    """
    magnitude: u32 = a & 0x7FFF_FFFF
    if magnitude > INFINITY:
        return NAN
    if magnitude < _HIDDEN:
        return ONE
    exponent: s32 = s32(magnitude >> 23) - 127
    if exponent > 7:
        return INFINITY if a == magnitude else 0
    fixed: s64 = s64(magnitude & 0x7F_FFFF | _HIDDEN)
    fixed = fixed << u32(exponent) if exponent >= 0 else fixed >> u32(-exponent)
    if a != magnitude:
        fixed = -fixed if fixed & 0x7F_FFFF == 0 else -1 - fixed
    whole: s64 = fixed >> 23
    if whole > 127:
        return INFINITY
    if whole < -126:
        return 0
    return u32((_of_64(POWER, u32(fixed & 0x7F_FFFF)) >> 17) - _HIDDEN + (u64(whole + 127) << 23))


@native
def wave(turns: u32, quarters: u32) -> u32:
    """The sine of so many full turns, of which 2**-25 is the least part, and `quarters` more: MUFU.SIN and MUFU.COS."""
    magnitude: u32 = turns & 0x7FFF_FFFF
    if magnitude >= INFINITY:
        return NAN
    sign: u32 = turns & _SIGN if quarters & 1 == 0 else 0
    exponent: s32 = s32(magnitude >> 23) - 125
    fixed: u32 = magnitude & 0x7F_FFFF | _HIDDEN
    fixed = u32(fixed << u32(exponent)) if exponent >= 0 else fixed >> u32(-exponent)
    quarters += fixed >> 23
    if quarters & 2 != 0:
        sign ^= _SIGN
    if quarters & 1 != 0:
        fixed ^= 0x7F_FFFF
    return _cut(_of_64(SINE, fixed & 0x7F_FFFF), 40) | sign


@native
def tangent(a: u32) -> u32:
    """The hyperbolic tangent of `a`: MUFU.TANH. Of small numbers, subnormal ones too, it is the number."""
    sign: u32 = a & _SIGN
    magnitude: u32 = a ^ sign
    if magnitude > INFINITY:
        return NAN
    if magnitude >= 0x4100_0000:
        return sign | ONE
    if magnitude < 0x3B80_0000:
        return a
    row: u32 = (magnitude >> 23) - 119
    fraction: u32 = magnitude & 0x7F_FFFF
    rest: u32 = 23 - _CHOOSING[row]
    interval: u32 = TANGENT + _FIRST[row] + (fraction >> rest)
    return _cut(interpolate(interval, fraction >> (rest - 17) & 0x1_FFFF), 40) | sign
