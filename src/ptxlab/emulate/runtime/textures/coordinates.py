"""Coordinates of textures: from floats to texels and weights, as an H200 computes them (measured; see `evidence`).

A coordinate becomes fixed point first: a normalized one is cut to 21 fraction bits, to 22 or 23 where a texture has
more than 8192 or 65536 texels along a dimension; others are rounded to 256ths of a texel. All that follows is exact.
"""

from __future__ import annotations

from ptxlab.device.textures import ADDRESSES
from ptxlab.native import boolean, native, s64, u32

WRAP = ADDRESSES.index("wrap")
MIRROR = ADDRESSES.index("mirror")
CLAMP = ADDRESSES.index("clamp")
assert WRAP < MIRROR < CLAMP  # of which comparisons make use
OUTSIDE = -1  # no texel: the border is there
_UNNORMALIZED_BITS = 9  # one more than weights have, to round
_FAR = 1 << 20  # texels: what is further out is as far out
_FAR_NORMALIZED = 1 << 10


@native
def fixed_point(bits: u32, fraction: u32, limit: s64) -> s64:
    """An f32 as fixed point, rounded down; what is beyond `limit` is there, and a NaN or subnormal is 0."""
    exponent: u32 = bits >> 23 & 0xFF
    if exponent == 0 or (exponent == 255 and bits & 0x7FFFFF != 0):
        return 0
    is_negative: boolean = bits >> 31 != 0
    if exponent >= 127 + 30:
        return -(limit << s64(fraction)) if is_negative else limit << s64(fraction)
    significand: s64 = s64(bits & 0x7FFFFF | 0x800000)
    shift: s64 = s64(exponent) - 150 + s64(fraction)
    value: s64 = 0
    if shift >= 0:
        value = -(significand << shift) if is_negative else significand << shift
    elif shift > -40:
        value = (-significand if is_negative else significand) >> -shift
    else:
        value = -1 if is_negative else 0
    return min(max(value, -(limit << s64(fraction))), limit << s64(fraction))


@native
def position(bits: u32, extent: u32, largest: u32, is_normalized: boolean, mode: u32) -> s64:
    """Where a coordinate is in a texture whose largest extent is `largest`, in 512ths of a texel, rounded down."""
    if not is_normalized:
        return fixed_point(bits, _UNNORMALIZED_BITS, _FAR)
    fraction: u32 = 21 + u32(largest > 8192) + u32(largest > 65536)
    is_periodic: boolean = mode <= MIRROR
    if is_periodic and bits >> 23 & 0xFF >= 127 + 24:  # an even number, or infinity
        return 0
    value: s64 = fixed_point(bits, fraction, (1 << 24) if is_periodic else _FAR_NORMALIZED)
    if is_periodic:
        value &= (s64(2) << s64(fraction)) - 1
    return value * s64(extent) >> s64(fraction) - _UNNORMALIZED_BITS


@native
def texel_index(index: s64, extent: u32, mode: u32, is_normalized: boolean) -> s64:
    """The texel that an index refers to; OUTSIDE where the border is."""
    size: s64 = s64(extent)
    if 0 <= index < size:
        return index
    if mode == WRAP and is_normalized:
        return index % size
    if mode == MIRROR and is_normalized:
        turned: s64 = index % (2 * size)
        return 2 * size - 1 - turned if turned >= size else turned
    if mode <= CLAMP:
        return 0 if index < 0 else size - 1
    return OUTSIDE


@native(inline=True)
def blended(position: s64) -> s64:
    """The first of two texels that are blended, and the weight of the second, in 256ths: half a texel before."""
    return (position + 1 >> 1) - 128


@native(inline=True)
def signed_offset(offset: u32) -> s64:
    """An offset of texels: hardware has four bits for it."""
    return (s64(offset & 15) ^ 8) - 8
