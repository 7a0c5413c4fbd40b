"""What a tensor core adds up, to the bit: a few products and an accumulator in one step, cut to a common exponent.

A step takes the products `a * b` exactly, aligns them and the accumulator to the largest exponent among them, cuts what
is below a number of fraction bits that differs between architectures, adds up without loss, and brings the sum back
to the format of the result. Products are not normalized before they are aligned: the exponent of a product is the sum
of its factors' exponents. How many products make a step, and how many bits are kept, is in `tensor_core_models`.

The model is that of MMA-Sim (arXiv 2511.10909); what it says of sm_90 was found again on an H200, bit for bit.

Factors are first brought into one word each, `unpack`: the significand as a signed integer in the low 16 bits, the
exponent above it. Exponents out of range mark zeros, infinities and NaNs, so that the loop over products only needs the
largest exponent.
"""

from ptxlab.native import Pointer, leading_zeros, native, s16, s32, s64, struct, table, u32, u64
from ptxlab.values import dataclass

# Exponents that no number has. A zero, or an element that is not there, never decides the alignment; whatever is
# multiplied with infinity or NaN still has an exponent above SPECIAL // 2, unless it is not there.
SPECIAL = 0x4000
ZERO = -0x1000
ABSENT = -0x7000
NOTHING = 0x90000000  # an unpacked element that is not there: 0, with the exponent ABSENT

# The format of the accumulator and of the result.
F32 = 0
F16 = 1
F32_SHORT = 2  # f32 of which 13 fraction bits are kept, as Ada has for fp8

# Nothing is aligned to less than this: seven below the least exponent of the result. As if the accumulator were there
# even where it is zero; found on an H200, and taken to hold elsewhere.
LOWEST_F32 = -126 - 7
LOWEST_F16 = -14 - 7

NAN_F32 = 0x7FFFFFFF
NAN_F16 = 0x7FFF

# What a format spends its highest exponent on.
NUMBERS = 0
INFINITIES = 1
ONE_NAN = 2

# Formats of factors: bits of the exponent and of the mantissa, use of the highest exponent, least exponent to which
# subnormal numbers are normalized. Where an architecture converts fp8 to f16 before it multiplies, they become normal.
FORMATS = {
    "f16": (5, 10, INFINITIES, -14),
    "bf16": (8, 7, INFINITIES, -126),
    "tf32": (8, 10, INFINITIES, -126),
    "e5m2": (5, 2, INFINITIES, -14),
    "e4m3": (4, 3, ONE_NAN, -6),
    "e3m2": (3, 2, NUMBERS, -2),
    "e2m3": (2, 3, NUMBERS, 0),
    "e2m1": (2, 1, NUMBERS, 0),
    "e5m2 as f16": (5, 2, INFINITIES, -14),
    "e4m3 as f16": (4, 3, ONE_NAN, -14),
}
NUMBER_OF = {name: number for number, name in enumerate(FORMATS)}
EXPONENT_BITS = tuple(format[0] for format in FORMATS.values())
MANTISSA_BITS = tuple(format[1] for format in FORMATS.values())
SPECIALS = tuple(format[2] for format in FORMATS.values())
LEAST_EXPONENT = table(s32, [format[3] for format in FORMATS.values()])


@native
def unpack(pattern: u32, format: u32) -> u32:
    """A factor as significand and exponent. Bits above those of the format are ignored."""
    exponent_bits: u32 = EXPONENT_BITS[format]
    mantissa_bits: u32 = MANTISSA_BITS[format]
    specials: u32 = SPECIALS[format]
    hidden: s32 = s32(1) << s32(mantissa_bits)
    significand: s32 = s32(pattern) & (hidden - 1)
    top: u32 = (u32(1) << exponent_bits) - 1
    field: u32 = (pattern >> mantissa_bits) & top
    exponent: s32 = s32(field) - s32(top >> 1)
    if field == top and specials == INFINITIES:
        exponent = SPECIAL
        significand = 1 if significand == 0 else 0
    elif field == top and specials == ONE_NAN and significand == hidden - 1:
        exponent = SPECIAL
        significand = 0
    elif field != 0:
        significand = significand + hidden
    elif significand == 0:
        exponent = ZERO
    else:
        exponent = exponent + 1
        while exponent > LEAST_EXPONENT[format] and significand < hidden:
            significand = significand << 1
            exponent = exponent - 1
    if pattern >> (mantissa_bits + exponent_bits) & 1 != 0:
        significand = -significand
    return u32((u32(exponent) << 16) | (u32(significand) & 0xFFFF))


@native
def round_to_f32(sum: s64, unit: s32, kept: s32) -> u32:
    """`sum * 2**unit` as f32, cut to `kept` fraction bits towards zero; infinity from 2**128 on."""
    if sum == 0:
        return 0
    sign: u32 = 0x80000000 if sum < 0 else 0
    magnitude: u64 = u64(-sum) if sum < 0 else u64(sum)
    exponent: s32 = 63 - s32(leading_zeros(u64, magnitude)) + unit
    if exponent > 127:
        return sign | 0x7F800000
    least: s32 = exponent - kept if exponent > -126 else -126 - kept
    shift: s32 = least - unit
    significand: u64 = magnitude >> u64(min(shift, 63)) if shift >= 0 else magnitude << u64(-s64(shift))
    if significand == 0:
        return 0  # what is cut to nothing loses its sign, too
    significand = significand << u64(23 - s64(kept))
    if exponent > -126:
        return u32(sign + (u32(exponent + 126) << 23) + u32(significand))
    return sign | u32(significand)


@native
def round_to_f16(sum: s64, unit: s32) -> u32:
    """`sum * 2**unit` as f16, to the nearest, ties to even."""
    if sum == 0:
        return 0
    sign: u32 = 0x8000 if sum < 0 else 0
    magnitude: u64 = u64(-sum) if sum < 0 else u64(sum)
    exponent: s32 = 63 - s32(leading_zeros(u64, magnitude)) + unit
    if exponent > 15:
        return sign | 0x7C00
    least: s32 = exponent - 10 if exponent > -14 else -24
    shift: s32 = least - unit
    if shift > 63:
        return 0
    significand: u64 = 0
    if shift <= 0:
        significand = magnitude << u64(-s64(shift))
    else:
        significand = magnitude >> u64(shift)
        rest: u64 = magnitude - (significand << u64(shift))
        half: u64 = u64(1) << u64(s64(shift) - 1)
        if rest > half or (rest == half and significand & 1 == 1):
            significand = significand + 1
    if significand == 0:
        return 0
    # A carry out of the significand raises the exponent by itself, up to infinity.
    return sign + (u32(exponent + 14) << 10 if exponent > -14 else u32(0)) + u32(significand)


@native
def add_specials(
    a: Pointer[u32], a_first: u64, b: Pointer[u32], b_first: u64, count: u64, addend: u32, result: u32
) -> u32:
    """One step where a factor or the addend is infinite or NaN: infinity or NaN."""
    infinity: u32 = 0x7C00 if result == F16 else 0x7F800000
    sign: u32 = 0x8000 if result == F16 else 0x80000000
    magnitude: u32 = addend & (sign - 1)
    nan: u32 = 1 if magnitude > infinity else 0
    negative: u32 = 1 if magnitude == infinity and addend & sign != 0 else 0
    positive: u32 = 1 if magnitude == infinity and addend & sign == 0 else 0
    for i in range(count):
        left: u32 = a[a_first + i]
        right: u32 = b[b_first + i]
        if (s32(left) >> 16) + (s32(right) >> 16) >= SPECIAL // 2:
            product: s32 = s32(s16(left)) * s32(s16(right))
            if product == 0:  # NaN has the significand 0, and so has a zero
                nan = 1
            elif product < 0:
                negative = 1
            else:
                positive = 1
    if nan != 0 or (positive != 0 and negative != 0):
        return NAN_F16 if result == F16 else NAN_F32
    return infinity + (sign if negative != 0 else 0)


@struct
@dataclass(frozen=True)
class Accumulation:
    """How a step adds up."""

    fraction: s32  # bits that are kept below the largest exponent
    lacking: s32  # the bits by which the product of two significands falls short of `fraction`
    result: u32  # the format of the addend and of the sum: F32, F16 or F32_SHORT


@native
def add_products(
    a: Pointer[u32], a_first: u64, b: Pointer[u32], b_first: u64, count: u64, addend: u32, how: Accumulation
) -> u32:
    """One step: `addend + a[a_first] * b[b_first] + ...`, aligned below the largest exponent."""
    fraction: s32 = how.fraction
    lacking: s32 = how.lacking
    result: u32 = how.result
    mantissa_bits: u32 = 10 if result == F16 else 23
    top: s32 = 0x1F if result == F16 else 0xFF
    significand: u32 = addend & ((u32(1) << mantissa_bits) - 1)
    field: s32 = s32(addend >> mantissa_bits) & top
    exponent: s32 = field - (top >> 1)
    if field == top:
        exponent = SPECIAL
    elif field != 0:
        significand = significand | (u32(1) << mantissa_bits)
    elif significand == 0:
        exponent = ABSENT
    else:
        exponent = exponent + 1

    highest: s32 = max(exponent, LOWEST_F16 if result == F16 else LOWEST_F32)
    for i in range(count):
        highest = max(highest, (s32(a[a_first + i]) >> 16) + (s32(b[b_first + i]) >> 16))
    if highest >= SPECIAL // 2:
        return add_specials(a, a_first, b, b_first, count, addend, result)

    aligned: u64 = (u64(significand) << u64(fraction)) >> u64(mantissa_bits)
    sum: s64 = s64(aligned >> u64(min(highest - exponent, 63)))
    if addend >> (15 if result == F16 else 31) & 1 != 0:
        sum = -sum
    for j in range(count):
        left: u32 = a[a_first + j]
        right: u32 = b[b_first + j]
        product: s32 = s32(s16(left)) * s32(s16(right))
        below: s32 = min(highest - ((s32(left) >> 16) + (s32(right) >> 16)), 31)
        magnitude: s32 = (abs(product) << lacking) >> below
        sum = sum + (-s64(magnitude) if product < 0 else s64(magnitude))
    if result == F16:
        return round_to_f16(sum, highest - fraction)
    return round_to_f32(sum, highest - fraction, 13 if result == F32_SHORT else 23)


@native
def widen_f16(pattern: u32) -> u32:
    """An f16 as f32. A NaN stays one."""
    sign: u32 = (pattern & 0x8000) << 16
    magnitude: u32 = pattern & 0x7FFF
    if magnitude >= 0x7C00:
        return sign | 0x7F800000 | (magnitude & 0x3FF) << 13
    if magnitude >= 0x400:
        return sign | (magnitude + (112 << 10)) << 13
    return sign | round_to_f32(s64(magnitude), -24, 23)
