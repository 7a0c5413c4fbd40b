"""Linear filtering as an H200 computes it (measured; see `evidence`): weights of 8 bits, sums, one rounding.

The four texels of an image (a slice of a volume, or a level of a mipmap) are summed with a common exponent: that of
the largest texel whose weight is not 0, four bits more than a texel has. The sums of two images are aligned, rounded
down, and added. The result has as many significant bits as a texel; ties are rounded away from 0.
"""

from __future__ import annotations

from ptxlab.emulate.abi.textures import TextureObject
from ptxlab.emulate.runtime.textures.srgb import FIRST_SRGB_EXPONENT, SRGB_STARTS, SRGB_VALUES
from ptxlab.emulate.runtime.textures.texels import FLOAT, HALF, LARGEST, S8, U8
from ptxlab.native import (
    Pointer,
    array,
    bits_float,
    boolean,
    f32,
    f64,
    float_bits,
    leading_zeros,
    native,
    s32,
    s64,
    struct,
    u32,
    u64,
)

CORNERS = 8  # of a cell: bit 0 is the column, bit 1 the row, bit 2 the slice or level
TAKES_PART = 0x200
_WEIGHT = 0x1FF
GUARD = 4  # bits of a texel beyond its own
_NOTHING = -100000  # the exponent of a sum of zeros
_NAN = 0x7FFFFFFF
_HALF_NAN = 0x7FFFE000


@struct
class Sum:
    """Texels of one image, summed: `total` in units of 2 ** (exponent - bits - GUARD - 8)."""

    total: s64
    exponent: s32
    unused: u32


@native
def set_weights(weights: Pointer[u32], image: u32, column: u32, row: u32, slice: u32) -> None:
    """The weights of four of the eight corners of a cell, of all 256, for the fractions of a position in 256ths.

    A corner that is not next to the position has 0, any other one has the bit TAKES_PART, even if its weight is 0.
    """
    for corner in range(4 * image, 4 * image + 4):
        part: u32 = slice if corner & 4 != 0 else 256 - slice
        right: u32 = column * part + 128 >> 8
        if corner & 1 != 0:
            lower: u32 = right * row + 128 >> 8
            weights[corner] = lower if corner & 2 != 0 else right - lower
        else:
            left: u32 = part - right
            upper: u32 = left * (256 - row) + 128 >> 8
            weights[corner] = left - upper if corner & 2 != 0 else upper
        is_next: boolean = (corner & 1 == 0 or column != 0) and (corner & 2 == 0 or row != 0)
        if is_next and part != 0:
            weights[corner] |= TAKES_PART


@native
def blend(texture: Pointer[TextureObject], texels: Pointer[u32], weights: Pointer[u32], channel: u32) -> u32:
    """The weighted mean of the raw components of eight texels, an f32."""
    if texture.format == FLOAT:
        return _blend_floats(texels, weights, 24)
    if texture.format == HALF:
        return _blend_floats(texels, weights, 11)
    if texture.is_srgb != 0 and channel < 3:
        return _blend_srgb(texels, weights)
    total: s64 = 0
    for corner in range(CORNERS):
        total += s64(weights[corner] & _WEIGHT) * s64(s32(texels[corner]))
    return _fraction(total, texture.format)


@native
def blend_levels(lower: u32, upper: u32, weight: u32) -> u32:
    """The weighted mean of two f32, of levels that are volumes: how an H200 does this is not measured."""
    texels = array(u32, CORNERS)
    weights = array(u32, CORNERS)
    for corner in range(CORNERS):
        texels[corner] = upper if corner == 1 else lower
        weights[corner] = 0
    weights[0] = 256 - weight | TAKES_PART
    weights[1] = weight | TAKES_PART
    return _blend_floats(texels, weights, 24)


@native
def _fraction(total: s64, format: u32) -> u32:
    """256 times an integer, as a fraction of the largest, with 16 bits."""
    largest: s64 = 65535
    value: s64 = 0
    if format == U8:
        value = total * 257 + 128 >> 8
    elif format == S8:
        largest = 32767
        value = total + (total + (total >> 12) * 16 + 64 >> 7)
    else:
        largest = s64(LARGEST[format])
        value = total + 128 >> 8
    value = max(value, -largest)
    return float_bits(f32, f32(f64(value) / f64(largest)))


@native
def _blend_floats(texels: Pointer[u32], weights: Pointer[u32], bits: u32) -> u32:
    kind: u32 = _kind_of_sum(texels, weights, bits)
    if kind != 0:
        infinity: u32 = 0x7F800000 if kind == 1 else 0xFF800000
        return infinity if kind < 3 else _NAN if bits == 24 else _HALF_NAN
    sums = array(Sum, 2)
    sign: u32 = 0x80000000
    for image in range(2):
        exponent: s32 = _NOTHING
        total: s64 = 0
        for corner in range(4 * image, 4 * image + 4):
            if weights[corner] & _WEIGHT != 0:
                exponent = max(exponent, _exponent_of(texels[corner], bits))
                sign &= texels[corner] << (0 if bits == 24 else 16)
        for corner in range(4 * image, 4 * image + 4):
            total += _aligned(texels[corner], bits, exponent) * s64(weights[corner] & _WEIGHT)
        sums[image].total = total
        sums[image].exponent = exponent
    found: u32 = _rounded(sums, bits, GUARD)
    return sign if found == 0 else found


@native
def _kind_of_sum(texels: Pointer[u32], weights: Pointer[u32], bits: u32) -> u32:
    """As `_special`, of a sum; a texel whose weight was rounded to 0 still counts."""
    found: u32 = 0
    for corner in range(CORNERS):
        if weights[corner] & TAKES_PART != 0:
            kind: u32 = _special(texels[corner], bits)
            if found != 0 and kind != 0 and kind != found:
                return 3
            found = max(found, kind)
    return found


@native
def _special(texel: u32, bits: u32) -> u32:
    """1 for infinity, 2 for minus infinity, 3 for a NaN, 0 for all others."""
    top: u32 = 0x7F800000 if bits == 24 else 0x7C00
    sign: u32 = 0x80000000 if bits == 24 else 0x8000
    if texel & top != top:
        return 0
    if texel & (sign - 1) != top:
        return 3
    return 2 if texel & sign != 0 else 1


@native
def _exponent_of(texel: u32, bits: u32) -> s32:
    """E of a texel between 2 ** (E - 1) and 2 ** E; an f32 that is subnormal is 0, an f16 is not."""
    if bits == 24:
        exponent: s32 = s32(texel >> 23 & 0xFF)
        return exponent - 126 if exponent != 0 else _NOTHING
    magnitude: u32 = texel & 0x7FFF
    if magnitude >> 10 != 0:
        return s32(magnitude >> 10) - 14
    return 8 - s32(leading_zeros(u32, magnitude)) if magnitude != 0 else _NOTHING


@native
def _aligned(texel: u32, bits: u32, exponent: s32) -> s64:
    """A texel in units of 2 ** (exponent - bits - GUARD), rounded toward 0."""
    own: s32 = _exponent_of(texel, bits)
    if own == _NOTHING:
        return 0
    significand: s64 = s64(texel & 0x7FFFFF | 0x800000)
    is_negative: boolean = texel >> 31 != 0
    if bits != 24:
        magnitude: u32 = texel & 0x7FFF
        is_negative = texel >> 15 & 1 != 0
        significand = s64(magnitude & 0x3FF | 0x400)
        if magnitude >> 10 == 0:
            significand = s64(magnitude) << s64(leading_zeros(u32, magnitude)) - 21
    shift: s64 = min(s64(exponent) - s64(own), 62)
    value: s64 = significand << GUARD >> shift
    return -value if is_negative else value


@native
def _blend_srgb(texels: Pointer[u32], weights: Pointer[u32]) -> u32:
    sums = array(Sum, 2)
    for image in range(2):
        exponent: s32 = _NOTHING
        for corner in range(4 * image, 4 * image + 4):
            if weights[corner] & _WEIGHT != 0:
                exponent = max(exponent, _srgb_exponent(texels[corner]))
        total: s64 = 0
        for corner in range(4 * image, 4 * image + 4):
            if weights[corner] & _WEIGHT != 0:
                total += (s64(SRGB_VALUES[texels[corner]]) >> s64(exponent) + 8) * s64(weights[corner] & _WEIGHT)
        sums[image].total = total
        sums[image].exponent = exponent
    return _rounded(sums, 11, -3)


@native
def _srgb_exponent(code: u32) -> s32:
    exponent: s32 = FIRST_SRGB_EXPONENT
    for step in range(1, len(SRGB_STARTS)):
        if code >= SRGB_STARTS[step]:
            exponent += 1
    return exponent


@native
def _rounded(sums: Pointer[Sum], bits: u32, guard: s32) -> u32:
    """The sum of both images as an f32 with that many significant bits."""
    exponent: s32 = max(sums[0].exponent, sums[1].exponent)
    if exponent == _NOTHING:
        return 0
    total: s64 = 0
    for image in range(2):
        if sums[image].exponent != _NOTHING:
            total += sums[image].total >> min(s64(exponent) - s64(sums[image].exponent), 62)
    if total == 0:
        return 0
    magnitude: u64 = u64(abs(total))
    scale: s32 = exponent - s32(bits) - guard - 8  # of a unit of the total
    surplus: s32 = 64 - s32(leading_zeros(u64, magnitude)) - s32(bits)
    if bits == 11:  # an f16: subnormal ones have fewer bits
        surplus = max(surplus, -24 - scale)
    if surplus > 0:
        magnitude = magnitude + (u64(1) << u64(surplus) >> 1) >> u64(surplus)
        scale += surplus
    found: f64 = f64(magnitude) * _power(scale)
    if bits == 24 and found < _power(-126):
        return 0
    return float_bits(f32, f32(-found if total < 0 else found))


@native(inline=True)
def _power(exponent: s32) -> f64:
    """2 ** exponent."""
    return bits_float(f64, u64(s64(exponent) + 1023) << 52)
