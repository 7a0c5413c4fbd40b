"""Texels: what they are in memory, and as the values that instructions get or give."""

from __future__ import annotations

from ptxlab.emulate.abi.textures import TextureLevel, TextureObject
from ptxlab.emulate.runtime.textures.srgb import SRGB_VALUES
from ptxlab.isa.units.texture_unit import FORMATS
from ptxlab.native import Pointer, bits_float, cast, f32, f64, float_bits, native, s32, s64, table, u16, u32, u64
from ptxlab.numbers.conversion import convert, widen
from ptxlab.numbers.parameters import F16, F32, RZ

U8, U16, U32, S8, S16, S32, HALF, FLOAT = range(len(FORMATS))
FORMAT_BYTES = tuple(int(name[1:]) // 8 for name in FORMATS)
# The largest integer of a format, which is 1 where integers are fractions.
LARGEST = table(u32, (255, 65535, 0xFFFFFFFF, 127, 32767, 0x7FFFFFFF, 1, 1))


@native
def raw_component(
    texture: Pointer[TextureObject], level: Pointer[TextureLevel], image: s64, row: s64, column: s64, channel: u32
) -> u32:
    """The bits of a component of a texel; those of a signed integer are extended."""
    width: u32 = FORMAT_BYTES[texture.format]
    at: s64 = (
        image * s64(level.image) + row * s64(level.row) + (column * s64(texture.channels) + s64(channel)) * s64(width)
    )
    data = level.data + at
    if width == 1:
        byte: u32 = u32(data[0])
        return u32(s32(byte << 24) >> 24) if texture.format == S8 else byte
    if width == 2:
        half: u32 = u32(cast(Pointer[u16], data)[0])
        return u32(s32(half << 16) >> 16) if texture.format == S16 else half
    return cast(Pointer[u32], data)[0]


@native
def decoded(texture: Pointer[TextureObject], raw: u32, channel: u32) -> u32:
    """What an instruction gets for the bits of a component: an f32, or the integer itself."""
    if texture.format == HALF:
        return widen(raw, F16)
    if texture.is_normalized == 0:
        return raw
    if texture.is_srgb != 0 and channel < 3:
        return float_bits(f32, f32(f64(SRGB_VALUES[raw]) / 65536.0))
    value: f64 = f64(s32(raw)) / f64(LARGEST[texture.format])
    return float_bits(f32, f32(-1.0 if value < -1.0 else value))


@native
def border_component(texture: Pointer[TextureObject], border: u32) -> u32:
    """The border color, an f32, as the bits of a component: of an integer, its own bits, as many as there are."""
    if texture.format == HALF:
        return half_of(border)
    if texture.is_normalized == 0:
        bits: u32 = 32 - 8 * FORMAT_BYTES[texture.format]
        return u32(s32(border << bits) >> s32(bits)) if texture.format >= S8 else border << bits >> bits
    number: f32 = bits_float(f32, border)
    if number != number:
        return 0
    low: f32 = -1.0 if texture.format >= S8 else 0.0
    number = low if number < low else 1.0 if number > 1.0 else number
    scaled: f32 = number * f32(LARGEST[texture.format])
    whole: s32 = s32(scaled)
    rest: f32 = scaled - f32(whole)  # a tie is rounded toward 0
    return u32(whole + s32(rest > 0.5) - s32(rest < -0.5))


@native
def encode_component(value: u32, format: u32) -> u32:
    """A component of 32 bits in the format of a texel: integers are saturated, an f32 is rounded toward 0."""
    if format == HALF:
        return half_of(value)
    if FORMAT_BYTES[format] == 4:
        return value
    largest: s32 = s32(LARGEST[format])
    if format < S8:
        return min(value, u32(largest))
    return u32(min(max(s32(value), -largest - 1), largest)) & (0xFF if format == S8 else 0xFFFF)


@native
def half_of(value: u32) -> u32:
    """An f32 as an f16, rounded toward 0; of a NaN the first bits are kept."""
    if value & 0x7FFFFFFF > 0x7F800000:
        return value >> 16 & 0x8000 | 0x7C00 | max(value >> 13 & 0x3FF, 1)
    return u32(convert(u64(value), F32, F16, RZ, 0))
