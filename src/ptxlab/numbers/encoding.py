"""Values to bit patterns: rounding, overflow, saturation, flushing and clamping as `cvt` defines them."""

from fractions import Fraction

from ptxlab.numbers.formats import FixedPoint, Format, Special, Value, power_of_two
from ptxlab.numbers.rounding import RandomBits, Rounding, round_to_integer


def is_negative(value: Value) -> bool:
    """Whether `value` has a minus sign; a NaN has none."""
    if isinstance(value, Special):
        return value in (Special.NEGATIVE_INFINITY, Special.NEGATIVE_ZERO)
    return value < 0


def encode(
    format: Format | FixedPoint,
    value: Value,
    rounding: Rounding = "rn",
    *,
    saturate: bool = False,
    flush: bool = False,
    random: RandomBits | None = None,
) -> int:
    """The bit pattern `value` rounds to; `saturate` is `.satfinite`, `flush` the `.ftz` of results.

    Beyond the largest finite value is infinity, or NaN in formats that have no infinity, or the largest finite value
    in formats that have neither. An unsigned format takes the magnitude.

    >>> from ptxlab.numbers import E4M3
    >>> hex(encode(E4M3, Fraction(1000)))
    '0x7f'
    >>> hex(encode(E4M3, Fraction(-1000), saturate=True))
    '0xfe'
    """
    if isinstance(format, FixedPoint):
        return _encode_fixed_point(format, value, rounding, random)
    if value is Special.NAN:
        # PTX ISA 9.7.9.21, `.satfinite`: NaN becomes positive MAX_NORM in formats without NaN.
        return format.largest if format.nan is None else format.nan
    negative = is_negative(value)
    sign = format.sign_bit if negative else 0
    if value is Special.NEGATIVE_ZERO:
        return sign
    if isinstance(value, Special):
        return sign | _beyond(format, saturate)
    if not format.signed:
        value = abs(value)
    if flush and _is_tiny(format, value, rounding, random):
        return sign
    return sign | _magnitude(format, value, rounding, saturate, random)


def _is_tiny(format: Format, value: Fraction, rounding: Rounding, random: RandomBits | None) -> bool:
    """Whether `value`, rounded as if there were no least exponent, is below every normal number.

    The hardware decides so: (1 - 2**-46) * 2**-126 is not an f32 result to flush, (1 - 2**-24) * 2**-126 is one.
    """
    unit = power_of_two(_exponent(value) - format.mantissa_bits) if value else Fraction(1)
    rounded = round_to_integer(value / unit, rounding, random) * unit
    return abs(rounded) < power_of_two(format.least_exponent)


def _magnitude(format: Format, value: Fraction, rounding: Rounding, saturate: bool, random: RandomBits | None) -> int:
    """The pattern of a finite value, without its sign."""
    exponent = max(_exponent(value), format.least_exponent) if value else format.least_exponent
    # Counted in units of the last mantissa bit, and rounded with its sign, as `.rm` and `.rp` ask.
    scaled = value / power_of_two(exponent - format.mantissa_bits)
    significand = abs(round_to_integer(scaled, rounding, random))
    # The hidden bit brings the exponent field to its value, a significand rounded up to a power of two to the next.
    field = exponent + format.bias - 1
    pattern = max(0, (field << format.mantissa_bits) + significand) << format.padding
    if pattern <= format.largest:
        return pattern
    toward_zero = rounding in ("rz", "rm" if value > 0 else "rp")
    return format.largest if toward_zero else _beyond(format, saturate)


def _exponent(value: Fraction) -> int:
    """The exponent of the highest bit of `value`, which is not zero."""
    numerator, denominator = abs(value.numerator), value.denominator
    exponent = numerator.bit_length() - denominator.bit_length()
    return exponent if abs(value) >= power_of_two(exponent) else exponent - 1


def _beyond(format: Format, saturate: bool) -> int:
    """The pattern of a magnitude beyond the largest finite one."""
    if saturate or (not format.infinities and format.nan is None):
        return format.largest
    if format.infinities:
        return format.infinity
    assert format.nan is not None
    return format.nan


def _encode_fixed_point(format: FixedPoint, value: Value, rounding: Rounding, random: RandomBits | None) -> int:
    """The pattern of the nearest fixed-point number; what does not fit becomes the limit on its side, NaN the upper."""
    limit = 1 << (format.width - 1)
    if isinstance(value, Special):
        scaled = {Special.NEGATIVE_ZERO: 0, Special.NEGATIVE_INFINITY: -limit}.get(value, limit)
    else:
        scaled = round_to_integer(value * (1 << format.fraction_bits), rounding, random)
    return max(-limit, min(scaled, limit - 1)) % (1 << format.width)


def clamp_negative(value: Value) -> Value:
    """`.relu`: zero for what is negative; NaN stays NaN."""
    return Fraction(0) if is_negative(value) else value


def clamp_unit(value: Value) -> Value:
    """`.sat`: the nearest of [0.0, 1.0], and +0.0 for NaN."""
    if value is Special.NAN or is_negative(value):
        return Fraction(0)
    return Fraction(1) if isinstance(value, Special) else min(value, Fraction(1))
