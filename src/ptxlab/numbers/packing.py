"""Patterns taken apart and put together, in a form that is also compiled: the basis of `soft`, `convert`.

A finite number other than zero is held as a sign, an exponent and a significand of 64 bits, the highest of which is
set and has the value 2**exponent. Whatever is below the lowest bit is kept as a one in that bit, "jammed": it is far
below the last bit of every format, so it decides what is a tie and what is exact as the lost bits would.
"""

from ptxlab.native import boolean, leading_zeros, native, s32, s64, u32, u64, u128
from ptxlab.numbers.parameters import (
    BEYOND,
    BIAS,
    F64,
    FTZ,
    INFINITY,
    LARGEST,
    LEAST,
    MANTISSA,
    NAN,
    ONE,
    RELU,
    RM,
    RN,
    RNA,
    RP,
    RS,
    RZ,
    SAT,
    SATFINITE,
    SIGN,
)

NO_EXPONENT = -100_000  # of zero: below every exponent


@native(inline=True)
def is_nan(a: u64, format: u32) -> boolean:
    """Whether a pattern is a NaN."""
    magnitude: u64 = a & (SIGN[format] ^ 0xFFFF_FFFF_FFFF_FFFF)
    return magnitude > LARGEST[format] and magnitude != INFINITY[format]


@native(inline=True)
def is_infinite(a: u64, format: u32) -> boolean:
    """Whether a pattern is an infinity."""
    magnitude: u64 = a & (SIGN[format] ^ 0xFFFF_FFFF_FFFF_FFFF)
    return magnitude == INFINITY[format] and INFINITY[format] != 0


@native(inline=True)
def is_zero(a: u64, format: u32) -> boolean:
    """Whether a pattern is a zero."""
    return a & (SIGN[format] ^ 0xFFFF_FFFF_FFFF_FFFF) == 0 and MANTISSA[format] != 0


@native(inline=True)
def flush(a: u64, format: u32, modifiers: u32) -> u64:
    """An operand as `.ftz` reads it: a subnormal number is a zero of its sign."""
    magnitude: u64 = a & (SIGN[format] ^ 0xFFFF_FFFF_FFFF_FFFF)
    if modifiers & FTZ != 0 and magnitude >> MANTISSA[format] == 0:
        return a & SIGN[format]
    return a


@native(inline=True)
def significand_of(a: u64, format: u32) -> u64:
    """The significand of a finite pattern; 0 of a zero."""
    magnitude: u64 = a & (SIGN[format] ^ 0xFFFF_FFFF_FFFF_FFFF)
    hidden: u64 = u64(1) << MANTISSA[format]
    fraction: u64 = magnitude & (hidden - 1)
    if magnitude != fraction or hidden == 1:
        return (fraction | hidden) << (63 - MANTISSA[format])
    if fraction == 0:
        return 0
    return u64(fraction << leading_zeros(u64, fraction))


@native(inline=True)
def exponent_of(a: u64, format: u32) -> s32:
    """The exponent of a finite pattern; far below all others of a zero."""
    magnitude: u64 = a & (SIGN[format] ^ 0xFFFF_FFFF_FFFF_FFFF)
    hidden: u64 = u64(1) << MANTISSA[format]
    fraction: u64 = magnitude & (hidden - 1)
    if magnitude != fraction or hidden == 1:
        return s32(magnitude >> MANTISSA[format]) - BIAS[format]
    if fraction == 0:
        return NO_EXPONENT
    return LEAST[format] - s32(MANTISSA[format]) + 63 - s32(leading_zeros(u64, fraction))


@native
def shift_right_jamming(a: u64, count: u32) -> u64:
    """`a` shifted right; what falls out is jammed."""
    if count > 63:
        return u64(a != 0)
    lost: u64 = a & ((u64(1) << count) - 1)
    return a >> count | u64(lost != 0)


@native
def shift_right_jamming_128(a: u128, count: u32) -> u128:
    """`a` shifted right; what falls out is jammed."""
    if count > 127:
        return u128(a != 0)
    lost: u128 = a & ((u128(1) << count) - 1)
    return a >> count | u128(lost != 0)


@native
def is_rounded_up(
    negative: boolean, kept: u64, rest: u64, shift: u32, rounding: u32, random: u32, count: u32
) -> boolean:
    """Whether a magnitude of `kept` and `rest` / 2**`shift` (1 to 63) becomes `kept` + 1."""
    half: u64 = u64(1) << (shift - 1)
    if rounding == RN:
        return rest > half or (rest == half and kept & 1 != 0)
    if rounding == RNA:
        return rest >= half
    if rounding == RM:
        return negative and rest != 0
    if rounding == RP:
        return not negative and rest != 0
    if rounding == RS:
        # PTX ISA 9.7.9.21: away from zero when the discarded bits plus the random bits carry out.
        return rest + (u64(random) << (shift - count)) >> shift != 0
    return False


@native(inline=True)
def beyond(negative: boolean, format: u32, rounding: u32, modifiers: u32) -> u64:
    """The magnitude of a finite result that is too large for the format."""
    toward_zero: boolean = rounding == RZ or (rounding == RM and not negative) or (rounding == RP and negative)
    return LARGEST[format] if toward_zero or modifiers & SATFINITE != 0 else BEYOND[format]


@native(inline=True)
def finish(a: u64, format: u32, modifiers: u32) -> u64:
    """A result as `.sat` and `.relu` leave it."""
    if modifiers & SAT != 0:
        if a & SIGN[format] != 0 or is_nan(a, format):
            return 0
        return ONE[format] if a > ONE[format] else a
    if modifiers & RELU != 0 and a & SIGN[format] != 0 and not is_nan(a, format):
        return 0
    return a


@native
def pack(
    negative: boolean,
    exponent: s32,
    significand: u64,
    format: u32,
    rounding: u32,
    modifiers: u32,
    random: u32,
    count: u32,
) -> u64:
    """The pattern that a number rounds to; `random` has `count` bits, for `.rs`."""
    negative = negative and SIGN[format] != 0  # an unsigned format takes the magnitude
    if negative and modifiers & (SAT | RELU) != 0:
        return 0
    sign: u64 = SIGN[format] if negative else 0
    if significand == 0:
        return sign
    if exponent > BIAS[format] + 2:  # beyond every number of every format, perhaps beyond 64 bits
        return finish(sign | beyond(negative, format, rounding, modifiers), format, modifiers)
    rounded: u64 = significand >> 1 | significand & 1
    shift: u32 = 62 - MANTISSA[format]
    field: s32 = exponent + BIAS[format] - 1
    if exponent < LEAST[format]:
        if modifiers & FTZ != 0:
            # Tiny is what would be so if there were no least exponent: it must not round up to the least normal number.
            kept: u64 = rounded >> shift
            rest: u64 = rounded & ((u64(1) << shift) - 1)
            carries: boolean = is_rounded_up(negative, kept, rest, shift, rounding, random, count)
            if exponent != LEAST[format] - 1 or not carries or kept + 1 != u64(2) << MANTISSA[format]:
                return sign
        field = LEAST[format] + BIAS[format] - 1
        shift += u32(LEAST[format] - exponent)
        if shift > 63:
            rounded = shift_right_jamming(rounded, shift - 63)
            shift = 63
    kept_bits: u64 = rounded >> shift
    rest_bits: u64 = rounded & ((u64(1) << shift) - 1)
    if is_rounded_up(negative, kept_bits, rest_bits, shift, rounding, random, count):
        kept_bits += 1
    # The hidden bit of the significand counts the exponent field up by one.
    hidden: u64 = u64(1) << MANTISSA[format]
    magnitude: u64 = (u64(s64(field) + 1) << MANTISSA[format]) + kept_bits
    magnitude = magnitude - hidden if magnitude > hidden else 0
    if magnitude > LARGEST[format]:
        magnitude = beyond(negative, format, rounding, modifiers)
    return finish(sign | magnitude, format, modifiers)


@native(inline=True)
def result_nan(first: u64, second: u64, third: u64, format: u32, modifiers: u32) -> u64:
    """The NaN of an operation: in f64 the first operand that is one, made quiet, else the canonical one."""
    if modifiers & SAT != 0:
        return 0
    if format != F64:
        return NAN[format]
    quiet: u64 = 0x0008_0000_0000_0000
    if is_nan(first, format):
        return first | quiet
    if is_nan(second, format):
        return second | quiet
    return third | quiet if is_nan(third, format) else NAN[format]
