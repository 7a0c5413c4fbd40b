"""Arithmetic on patterns that is also compiled: f16, bf16, f32 and f64, in every rounding mode.

What `arithmetic` computes on exact values, these functions compute on integers of fixed width, to the same bits. The
format, the rounding mode and the modifiers are integers of `parameters`.
"""

from ptxlab.native import boolean, leading_zeros, native, s32, u32, u64, u128
from ptxlab.numbers.packing import (
    exponent_of,
    finish,
    flush,
    is_infinite,
    is_nan,
    is_zero,
    pack,
    result_nan,
    shift_right_jamming_128,
    significand_of,
)
from ptxlab.numbers.parameters import INFINITY, RM, SIGN


@native
def add(a: u64, b: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """`a + b`."""
    if is_nan(a, format) or is_nan(b, format):
        return result_nan(b, a, a, format, modifiers)
    return _sum(flush(a, format, modifiers), flush(b, format, modifiers), format, rounding, modifiers)


@native
def sub(a: u64, b: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """`a - b`."""
    if is_nan(a, format) or is_nan(b, format):
        return result_nan(b, a, a, format, modifiers)
    minus: u64 = flush(b, format, modifiers) ^ SIGN[format]
    return _sum(flush(a, format, modifiers), minus, format, rounding, modifiers)


@native
def mul(a: u64, b: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """`a * b`."""
    a = flush(a, format, modifiers)
    b = flush(b, format, modifiers)
    if _is_invalid_product(a, b, format):
        return result_nan(b, a, a, format, modifiers)
    sign: u64 = (a ^ b) & SIGN[format]
    if is_infinite(a, format) or is_infinite(b, format):
        return finish(sign | INFINITY[format], format, modifiers)
    product: u128 = u128(significand_of(a, format)) * u128(significand_of(b, format))
    exponent: s32 = exponent_of(a, format) + exponent_of(b, format) + 1
    return _pack_128(sign != 0, exponent, product, format, rounding, modifiers)


@native
def fma(a: u64, b: u64, c: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """`a * b + c`, rounded once."""
    a = flush(a, format, modifiers)
    b = flush(b, format, modifiers)
    c = flush(c, format, modifiers)
    sign: u64 = (a ^ b) & SIGN[format]
    infinite: boolean = is_infinite(a, format) or is_infinite(b, format)
    opposite: boolean = is_infinite(c, format) and (c & SIGN[format]) != sign
    if is_nan(c, format) or _is_invalid_product(a, b, format) or (infinite and opposite):
        return result_nan(b, c, a, format, modifiers)
    if infinite:
        return finish(sign | INFINITY[format], format, modifiers)
    if is_infinite(c, format):
        return finish(c, format, modifiers)
    product: u128 = u128(significand_of(a, format)) * u128(significand_of(b, format))
    exponent: s32 = exponent_of(a, format) + exponent_of(b, format) + 1
    addend: u128 = u128(significand_of(c, format)) << 64
    sign, exponent, sum = _add_128(
        sign, exponent, product, c & SIGN[format], exponent_of(c, format), addend, format, rounding
    )
    return _pack_128(sign != 0, exponent, sum, format, rounding, modifiers)


@native
def div(a: u64, b: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """`a / b`."""
    a = flush(a, format, modifiers)
    b = flush(b, format, modifiers)
    zeros: boolean = is_zero(a, format) and is_zero(b, format)
    infinities: boolean = is_infinite(a, format) and is_infinite(b, format)
    if is_nan(a, format) or is_nan(b, format) or zeros or infinities:
        return result_nan(a, b, b, format, modifiers)
    sign: u64 = (a ^ b) & SIGN[format]
    if is_infinite(a, format) or is_zero(b, format):
        return finish(sign | INFINITY[format], format, modifiers)
    if is_zero(a, format) or is_infinite(b, format):
        return finish(sign, format, modifiers)
    rest: u64 = significand_of(a, format) >> 1
    divisor: u64 = significand_of(b, format) >> 1
    exponent: s32 = exponent_of(a, format) - exponent_of(b, format)
    if rest < divisor:
        rest <<= 1
        exponent -= 1
    quotient: u64 = 0
    for _ in range(63):
        quotient <<= 1
        if rest >= divisor:
            rest -= divisor
            quotient |= 1
        rest <<= 1
    return pack(sign != 0, exponent, quotient << 1 | u64(rest != 0), format, rounding, modifiers, 0, 0)


@native
def sqrt(a: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """The square root of `a`."""
    a = flush(a, format, modifiers)
    if is_zero(a, format):
        return finish(a, format, modifiers)
    if is_nan(a, format) or a & SIGN[format] != 0:
        return result_nan(a, a, a, format, modifiers)
    if is_infinite(a, format):
        return finish(a, format, modifiers)
    exponent: s32 = exponent_of(a, format)
    # Scaled to an even exponent; the 64 bits of the root are found one by one from the top.
    radicand: u128 = u128(significand_of(a, format)) << (63 if exponent & 1 == 0 else 64)
    root: u64 = 0
    square: u128 = 0
    bit: u64 = 0x8000_0000_0000_0000
    while bit != 0:
        # (root + bit)² = square + 2 root bit + bit²
        trial: u128 = square + (u128(root) * u128(bit) << 1) + u128(bit) * u128(bit)
        if trial <= radicand:
            root |= bit
            square = trial
        bit >>= 1
    jam: u64 = u64(square != radicand)
    return pack(False, exponent >> 1, root | jam, format, rounding, modifiers, 0, 0)


@native(inline=True)
def _is_invalid_product(a: u64, b: u64, format: u32) -> boolean:
    """Whether a product is a NaN: of a NaN, or of zero and infinity."""
    if is_nan(a, format) or is_nan(b, format):
        return True
    return (is_infinite(a, format) and is_zero(b, format)) or (is_zero(a, format) and is_infinite(b, format))


@native
def _sum(a: u64, b: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """`a + b`, none of them a NaN."""
    sign: u64 = a & SIGN[format]
    other: u64 = b & SIGN[format]
    if is_infinite(a, format) and is_infinite(b, format) and sign != other:
        return result_nan(a, a, a, format, modifiers)
    if is_infinite(a, format) or is_infinite(b, format):
        return finish(a if is_infinite(a, format) else b, format, modifiers)
    first: u128 = u128(significand_of(a, format)) << 64
    second: u128 = u128(significand_of(b, format)) << 64
    sign, exponent, sum = _add_128(
        sign, exponent_of(a, format), first, other, exponent_of(b, format), second, format, rounding
    )
    return _pack_128(sign != 0, exponent, sum, format, rounding, modifiers)


@native
def _add_128(
    sign: u64,
    exponent: s32,
    significand: u128,
    other_sign: u64,
    other_exponent: s32,
    other: u128,
    format: u32,
    rounding: u32,
) -> tuple[u64, s32, u128]:
    """The sign, exponent and significand of the sum of two numbers, to be rounded by `_pack_128`.

    Bit 127 of a significand is 2**exponent and need not be set. At least 20 low bits of each are zero: if the
    exponents are so far apart that bits are lost in jamming, then no more than one bit cancels, and what is jammed
    stays far below the last bit of the result.
    """
    first: u128 = significand >> 2
    second: u128 = other >> 2
    if exponent > other_exponent:
        second = shift_right_jamming_128(second, u32(exponent - other_exponent))
    else:
        first = shift_right_jamming_128(first, u32(other_exponent - exponent))
        exponent = other_exponent
    if sign == other_sign:
        first += second
    elif first >= second:
        first -= second
    else:
        first = second - first
        sign = other_sign
    if first == 0 and sign != other_sign:
        sign = SIGN[format] if rounding == RM else 0
    return sign, exponent + 2, first


@native
def _pack_128(negative: boolean, exponent: s32, significand: u128, format: u32, rounding: u32, modifiers: u32) -> u64:
    """The pattern that a number rounds to; bit 127 of the significand is 2**exponent and need not be set."""
    high: u64 = u64(significand >> 64)
    if high == 0:
        high = u64(significand)
        significand = 0
        exponent -= 64
    low: u64 = u64(significand)
    if high == 0:
        return pack(negative, 0, 0, format, rounding, modifiers, 0, 0)
    shift: u32 = leading_zeros(u64, high)
    if shift != 0:
        high = u64(high << shift) | low >> (64 - shift)
        low = u64(low << shift)
    return pack(negative, exponent - s32(shift), high | u64(low != 0), format, rounding, modifiers, 0, 0)
