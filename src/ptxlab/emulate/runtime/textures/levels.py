"""Levels of detail: which levels of a mipmap a lookup reads, as an H200 computes them (measured).

A level is fixed point with 8 fraction bits, cut off. That of gradients comes from the longest of four vectors: both
gradients, and about 0.7 times their sum and their difference; lengths have few bits, and so has their logarithm. Of
gradients along one dimension it is exact, of others it differs by a 256th in one of a hundred.
"""

from __future__ import annotations

from ptxlab.emulate.abi.textures import SamplerState, TextureLookup, TextureObject
from ptxlab.emulate.runtime.textures.coordinates import fixed_point
from ptxlab.isa.units.texture_unit import FETCH_LEVEL, FOLLOW_GRADIENTS
from ptxlab.native import Pointer, array, bits_float, f32, f64, float_bits, native, s64, u32, u64

_BITS = 8
_BASE = -32 << _BITS  # what `tex` without a level asks for
_FAR = 1 << 10


# The logarithm to the base 2 of 1 + i/256, in 256ths, as an H200 has it.
LOGARITHMS = (
    0, 2, 4, 5, 6, 8, 9, 11, 12, 13, 15, 16, 18, 19, 20, 22, 23, 24, 26, 27, 28, 30, 31, 32, 34, 35, 36, 38, 39, 40,
    42, 43, 44, 45, 47, 48, 49, 50, 52, 53, 54, 55, 57, 58, 59, 60, 62, 63, 64, 65, 66, 68, 69, 70, 71, 72, 74, 75,
    76, 77, 78, 79, 81, 82, 83, 84, 85, 86, 88, 89, 90, 91, 92, 93, 94, 95, 97, 98, 99, 100, 101, 102, 103, 104, 105,
    106, 107, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129,
    130, 131, 132, 133, 135, 136, 137, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152,
    153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 173,
    174, 175, 176, 177, 178, 179, 180, 181, 181, 182, 183, 184, 185, 186, 187, 188, 188, 189, 190, 191, 192, 193, 194,
    195, 195, 196, 197, 198, 199, 200, 200, 201, 202, 203, 204, 205, 205, 206, 207, 208, 209, 210, 210, 211, 212, 213,
    214, 214, 215, 216, 217, 218, 218, 219, 220, 221, 222, 222, 223, 224, 225, 226, 226, 227, 228, 229, 229, 230, 231,
    232, 233, 233, 234, 235, 236, 236, 237, 238, 239, 239, 240, 241, 242, 242, 243, 244, 245, 245, 246, 247, 248, 248,
    249, 250, 251, 251, 252, 253, 253, 254, 255, 255,
)  # fmt: skip


@native
def level_of(texture: Pointer[TextureObject], sampler: Pointer[SamplerState], lookup: Pointer[TextureLookup]) -> s64:
    """The level of detail of a lookup in 256ths, between those that the sampler and the mipmap have."""
    level: s64 = _BASE
    if lookup.operation == FETCH_LEVEL:
        level = _fixed(lookup.level)
    elif lookup.operation == FOLLOW_GRADIENTS:
        level = _level_of_gradients(texture, lookup)
    level += _fixed(sampler.bias)
    level = min(max(level, _fixed(sampler.low)), _fixed(sampler.high))
    return min(max(level, 0), (s64(texture.level_count) - 1) << _BITS)


@native
def _fixed(bits: u32) -> s64:
    """An f32 in 256ths, rounded toward 0."""
    magnitude: s64 = fixed_point(bits & 0x7FFFFFFF, _BITS, _FAR)
    return -magnitude if bits >> 31 != 0 else magnitude


@native
def _level_of_gradients(texture: Pointer[TextureObject], lookup: Pointer[TextureLookup]) -> s64:
    level = texture.levels
    x = array(f64, 4)
    y = array(f64, 4)
    z = array(f64, 4)
    for number in range(2):
        x[number] = f64(bits_float(f32, lookup.gradients[3 * number])) * f64(level.width)
        y[number] = f64(bits_float(f32, lookup.gradients[3 * number + 1])) * f64(level.height)
        z[number] = f64(bits_float(f32, lookup.gradients[3 * number + 2])) * f64(level.depth)
    for number in range(2):
        sign: f64 = 0.6875 if number == 0 else -0.6875
        x[2 + number] = x[0] * 0.6875 + x[1] * sign
        y[2 + number] = y[0] * 0.6875 + y[1] * sign
        z[2 + number] = z[0] * 0.6875 + z[1] * sign
    longest: f64 = 0.0
    for number in range(4):
        length: f64 = _length(_length(x[number], y[number]), z[number])
        longest = length if length > longest else longest
    return _logarithm(longest)


@native
def _length(a: f64, b: f64) -> f64:
    """About the length of a vector."""
    x: f64 = -a if a < 0.0 else a
    y: f64 = -b if b < 0.0 else b
    larger: f64 = x if x > y else y
    smaller: f64 = y if x > y else x
    return _cut(larger) + _cut(smaller) * 0.34375


@native(inline=True)
def _cut(number: f64) -> f64:
    """A number with 10 significant bits."""
    return bits_float(f64, float_bits(f64, number) >> 43 << 43)


@native
def _logarithm(number: f64) -> s64:
    """The logarithm to the base 2 in 256ths."""
    bits: u64 = float_bits(f64, number)
    exponent: s64 = s64(bits >> 52) - 1023
    exponent = min(max(exponent, -100), 100)
    return (exponent << _BITS) + s64(LOGARITHMS[bits >> 44 & 255])
