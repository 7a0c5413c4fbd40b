"""Conversions on patterns that are also compiled: between formats, to and from integers, to whole numbers.

Formats, rounding modes and modifiers are integers of `parameters`. What a NaN becomes, and what `.ftz` flushes, is as
an H200 has it where the manual is silent.
"""

from ptxlab.native import bits_float, boolean, f32, f64, float_bits, leading_zeros, native, s32, s64, u32, u64
from ptxlab.numbers.packing import (
    exponent_of,
    finish,
    flush,
    is_infinite,
    is_nan,
    is_rounded_up,
    pack,
    result_nan,
    shift_right_jamming,
    significand_of,
)
from ptxlab.numbers.parameters import (
    BEYOND,
    BF16,
    BIAS,
    F16,
    F32,
    F64,
    FTZ,
    LARGEST,
    LEAST,
    MANTISSA,
    NAN,
    RELU,
    RM,
    RN,
    RP,
    RZ,
    SAT,
    SATFINITE,
    SIGN,
)


@native(inline=True)
def widen(a: u32, format: u32) -> u32:
    """The f32 of an f16 or bf16; infinities stay what they are, and a NaN some NaN."""
    if format == BF16:
        return a << 16
    magnitude: u32 = (a & 0x7FFF) << 13
    result: u32 = magnitude + 0x3800_0000  # the exponent counts from 127 instead of 15
    if magnitude >= 0x0F80_0000:
        result = magnitude + 0x7000_0000
    if magnitude < 0x0080_0000:  # subnormal: one more, and subtract its value
        result = float_bits(f32, bits_float(f32, magnitude + 0x3880_0000) - bits_float(f32, 0x3880_0000))
    return result | (a & 0x8000) << 16


@native(inline=True)
def to_f64(a: u64, format: u32) -> f64:
    """The value of a finite pattern, or infinity from 16 bits up; every format but ue8m0 is a part of f64."""
    if format == F64:
        return bits_float(f64, a)
    if format == F32:
        return f64(bits_float(f32, u32(a)))
    if F16 <= format <= BF16:
        return f64(bits_float(f32, widen(u32(a), format)))
    # With its fields where f64 has them, the number is too small by the difference of the biases.
    magnitude: u64 = a & (SIGN[format] - 1)
    small: f64 = bits_float(f64, magnitude << (52 - MANTISSA[format]))
    number: f64 = small * bits_float(f64, u64(2046 - s64(BIAS[format])) << 52)
    return -number if a & SIGN[format] != 0 else number


@native(inline=True)
def nearest(number: f64, format: u32, modifiers: u32) -> u64:
    """The pattern of the nearest number of a format that is narrower than f64; `number` may be infinite."""
    bits: u64 = float_bits(f64, number)
    magnitude: u64 = bits & 0x7FFF_FFFF_FFFF_FFFF
    drop: u32 = 52 - MANTISSA[format]
    pattern: u64 = 0
    if magnitude < u64(s64(LEAST[format]) + 1023) << 52:
        # Added to a power of two whose last bit is the least subnormal number, what is smaller is rounded away.
        anchor: u64 = u64(s64(LEAST[format]) + 1023 + s64(s32(drop))) << 52
        pattern = float_bits(f64, bits_float(f64, magnitude) + bits_float(f64, anchor)) - anchor
    else:
        rebias: u64 = u64(1023 - s64(BIAS[format])) << 52
        pattern = magnitude - rebias + ((u64(1) << (drop - 1)) - 1) + (magnitude >> drop & 1) >> drop
    if pattern > LARGEST[format]:
        pattern = LARGEST[format] if modifiers & SATFINITE != 0 else BEYOND[format]
    if bits >> 63 == 0:
        return finish(pattern, format, modifiers)
    return 0 if modifiers & (SAT | RELU) != 0 else pattern | SIGN[format]


@native(inline=True)
def converted_nan(a: u64, source: u32, destination: u32, modifiers: u32) -> u64:
    """The NaN that `cvt` makes of a NaN: f64 keeps payloads, and bf16 to f32 is a shift unless something is flushed."""
    if modifiers & SAT != 0:
        return 0
    if source == BF16 and destination == F32 and modifiers & FTZ == 0:
        return a << 16
    if source != F64 and destination != F64:
        return NAN[destination]
    if source == F32 and modifiers & FTZ != 0:
        a = NAN[F32]
    mantissa: u64 = a & ((u64(1) << MANTISSA[source]) - 1)
    if source == F64:
        mantissa >>= 52 - MANTISSA[destination]
    else:
        mantissa <<= 52 - MANTISSA[source]
    quiet: u64 = u64(1) << (MANTISSA[destination] - 1)
    return (SIGN[destination] if a & SIGN[source] != 0 else 0) | LARGEST[destination] + 1 | mantissa | quiet


@native(inline=True)
def convert(a: u64, source: u32, destination: u32, rounding: u32, modifiers: u32) -> u64:
    """A number of one format in another. `.ftz` is about f32 alone."""
    if is_nan(a, source):
        return converted_nan(a, source, destination, modifiers)
    if destination == F32 and F16 <= source <= BF16 and modifiers == 0:
        return widen(u32(a), source)
    if rounding == RN and source <= BF16 and destination != F64 and modifiers & FTZ == 0:  # the usual way, and short
        return nearest(to_f64(a, source), destination, modifiers)
    if is_infinite(a, source):
        magnitude: u64 = LARGEST[destination] if modifiers & SATFINITE != 0 else BEYOND[destination]
        return finish(magnitude | (SIGN[destination] if a & SIGN[source] != 0 else 0), destination, modifiers)
    # An H200 does not flush what it rounds up or down to f16.
    if source == F32 and not (destination == F16 and RM <= rounding <= RP):
        a = flush(a, source, modifiers)
    if destination != F32:
        modifiers &= ~u32(FTZ)
    if destination == F64:
        return finish(float_bits(f64, to_f64(a, source)), destination, modifiers)
    if rounding == RN and modifiers & FTZ == 0 and MANTISSA[source] != 0:
        return nearest(to_f64(a, source), destination, modifiers)
    return convert_bits(a, source, destination, rounding, modifiers, 0, 0)


@native
def convert_bits(a: u64, source: u32, destination: u32, rounding: u32, modifiers: u32, random: u32, count: u32) -> u64:
    """A finite number of one format in another, in any rounding mode; `random` has `count` bits, for `.rs`."""
    negative: boolean = a & SIGN[source] != 0
    exponent: s32 = exponent_of(a, source)
    return pack(negative, exponent, significand_of(a, source), destination, rounding, modifiers, random, count)


@native
def convert_randomly(a: u64, destination: u32, rounding: u32, modifiers: u32, random: u32, count: u32) -> u64:
    """An f32 in a narrower format, rounded by the low `count` bits of `random`."""
    if is_nan(a, F32) or is_infinite(a, F32):
        return convert(a, F32, destination, RN, modifiers)
    return convert_bits(a, F32, destination, rounding, modifiers, random & ((u32(1) << count) - 1), count)


@native(inline=True)
def whole(negative: boolean, exponent: s32, significand: u64, rounding: u32) -> u64:
    """The magnitude of a number, below 2**64, rounded to an integer."""
    if exponent > 62:
        return significand
    shift: u32 = u32(63 - exponent)
    if shift > 63:
        significand = shift_right_jamming(significand, shift - 63)
        shift = 63
    kept: u64 = significand >> shift
    rest: u64 = significand & ((u64(1) << shift) - 1)
    return kept + u64(is_rounded_up(negative, kept, rest, shift, rounding, 0, 0))


@native(inline=True)
def to_integer(a: u64, source: u32, rounding: u32, modifiers: u32, bits: u32, signed: boolean) -> u64:
    """A float as an integer of `bits` bits, the nearest there is if it does not fit."""
    # PTX ISA 9.7.9.21, integer notes.
    if is_nan(a, source):
        return u64(1) << (bits - 1) if source == F64 or bits == 64 else 0
    if rounding != RZ or source == F64 or bits == 64:
        return to_integer_bits(flush(a, source, modifiers), source, rounding, bits, signed)
    number: f64 = to_f64(a, source)
    least: f64 = -bits_float(f64, (u64(bits) + 1022) << 52) if signed else 0.0
    greatest: f64 = bits_float(f64, (u64(bits) + (1022 if signed else 1023)) << 52) - 1.0
    number = number if number > least else least
    return u64(s64(number if number < greatest else greatest))


@native
def to_integer_bits(a: u64, source: u32, rounding: u32, bits: u32, signed: boolean) -> u64:
    """A float that is not a NaN as an integer of `bits` bits, the nearest there is if it does not fit."""
    limit: u64 = u64(1) << (bits - 1)
    negative: boolean = a & SIGN[source] != 0
    greatest: u64 = limit if negative else limit - 1
    if not signed:
        greatest = 0 if negative else limit - 1 + limit
    exponent: s32 = exponent_of(a, source)
    magnitude: u64 = greatest
    if not is_infinite(a, source) and exponent < 64:
        magnitude = min(whole(negative, exponent, significand_of(a, source), rounding), greatest)
    return u64(-s64(magnitude)) if negative else magnitude


@native(inline=True)
def from_unsigned(a: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """An unsigned integer as a float."""
    return from_magnitude(False, a, format, rounding, modifiers)


@native(inline=True)
def from_signed(a: s64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """A signed integer as a float."""
    return from_magnitude(a < 0, u64(-a) if a < 0 else u64(a), format, rounding, modifiers)


@native(inline=True)
def from_magnitude(negative: boolean, magnitude: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """An integer of that sign as a float."""
    if format == F32 and rounding == RN and magnitude >> 53 == 0:
        sign: u64 = SIGN[F32] if negative and magnitude != 0 else 0
        return finish(u64(float_bits(f32, f32(f64(magnitude)))) | sign, format, modifiers)
    if magnitude == 0:
        return 0
    zeros: u32 = leading_zeros(u64, magnitude)
    return pack(negative, 63 - s32(zeros), u64(magnitude << zeros), format, rounding, modifiers, 0, 0)


@native
def to_whole(a: u64, format: u32, rounding: u32, modifiers: u32) -> u64:
    """A float rounded to a whole number, which stays a float."""
    if is_nan(a, format):
        return result_nan(a, a, a, format, modifiers)
    a = flush(a, format, modifiers)
    exponent: s32 = exponent_of(a, format)
    if is_infinite(a, format) or exponent >= s32(MANTISSA[format]):
        return finish(a, format, modifiers)
    negative: boolean = a & SIGN[format] != 0
    magnitude: u64 = whole(negative, exponent, significand_of(a, format), rounding)
    if magnitude == 0:
        return finish(a & SIGN[format], format, modifiers)
    zeros: u32 = leading_zeros(u64, magnitude)
    return pack(negative, 63 - s32(zeros), u64(magnitude << zeros), format, RN, modifiers, 0, 0)


@native
def scale(a: u64, factor: u32, format: u32, modifiers: u32) -> u64:
    """A number times a power of two, which is given as ue8m0."""
    if is_nan(a, format) or factor == 255:
        return NAN[format]
    if is_infinite(a, format):
        return convert(a, format, format, RN, modifiers)
    negative: boolean = a & SIGN[format] != 0
    exponent: s32 = exponent_of(a, format) + s32(factor) - 127
    return pack(negative, exponent, significand_of(a, format), format, RN, modifiers, 0, 0)


@native
def convert_divided(a: u64, factor: u32, source: u32, destination: u32, rounding: u32, modifiers: u32) -> u64:
    """A number divided by a power of two, given as ue8m0, in another format; a subnormal number is a zero."""
    if is_nan(a, source) or factor == 255:
        return NAN[destination]
    if is_infinite(a, source):
        return convert(a, source, destination, rounding, modifiers)
    a = flush(a, source, FTZ)
    negative: boolean = a & SIGN[source] != 0
    exponent: s32 = exponent_of(a, source) + 127 - s32(factor)
    return pack(negative, exponent, significand_of(a, source), destination, rounding, modifiers, 0, 0)


@native(inline=True)
def positive_zero(a: u64, format: u32) -> u64:
    """A number as `.pzo` leaves it: a zero has no sign."""
    return 0 if a == SIGN[format] else a


@native
def to_s2f6(a: u64, format: u32, factor: u32, rounding: u32, modifiers: u32) -> u32:
    """A number divided by a power of two, given as ue8m0, and counted in 64ths; a NaN is the greatest."""
    if is_nan(a, format) or factor == 255:
        return 127
    negative: boolean = a & SIGN[format] != 0
    if negative and modifiers & RELU != 0:
        return 0
    magnitude: u64 = 128
    exponent: s32 = exponent_of(a, format) + 133 - s32(factor)
    if not is_infinite(a, format) and exponent < 8:
        magnitude = whole(negative, exponent, significand_of(a, format), rounding)
    if negative:
        return u32(256 - (magnitude if magnitude < 128 else 128)) & 255
    return u32(magnitude if magnitude < 127 else 127)


@native
def from_s2f6(a: u32, factor: u32, modifiers: u32) -> u64:
    """A number of 64ths times a power of two, given as ue8m0, as a bf16."""
    if factor == 255:
        return NAN[BF16]
    negative: boolean = a & 128 != 0
    magnitude: u64 = 256 - u64(a) if negative else u64(a)
    if magnitude == 0:
        return 0
    zeros: u32 = leading_zeros(u64, magnitude)
    exponent: s32 = s32(factor) - 70 - s32(zeros)
    return pack(negative, exponent, u64(magnitude << zeros), BF16, RN, modifiers, 0, 0)
