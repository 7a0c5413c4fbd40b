"""Textures, surfaces and samplers as machine code reads them, and what instructions ask of them."""

from __future__ import annotations

from ptxlab.native import Array, Pointer, struct, u8, u32, u64

# What a handle refers to.
NOTHING = 0
TEXTURE = 1
SURFACE = 2
SAMPLER = 3


@struct
class TextureLevel:
    """One level of a mipmap, or all of a texture without levels."""

    data: Pointer[u8]
    width: u32
    height: u32
    depth: u32
    row: u32  # bytes from one row to the next
    image: u64  # bytes from one layer, or one slice of a volume, to the next


@struct
class SamplerState:
    """How a texture is read."""

    filter: u32
    address: Array[u32, 3]  # modes, from the innermost dimension on
    normalized: u32  # whether coordinates are
    mip_filter: u32
    bias: u32  # of the level of detail, an f32
    low: u32  # the first level of detail, an f32
    high: u32  # the last level of detail, an f32
    border: Array[u32, 4]  # the color outside, f32


@struct
class TextureObject:
    """What a handle refers to."""

    kind: u32
    geometry: u32
    format: u32
    channels: u32
    level_count: u32
    layers: u32
    is_normalized: u32  # whether integers are read as fractions of their largest
    is_srgb: u32
    is_linear: u32  # whether it is in linear memory, where nothing but elements can be fetched
    is_seamless: u32  # whether filtering goes across the edges of a cube
    address: u64  # of a surface, in global memory
    levels: Pointer[TextureLevel]
    sampler: SamplerState


@struct
class TextureLookup:
    """A `tex` or `tld4` of a thread, and what it finds."""

    texture: u64
    sampler: u64  # 0: that of the texture
    operation: u32
    geometry: u32
    component: u32  # of a gather
    result: u32  # the type of the results
    is_integer: u32  # whether coordinates are
    layer: u32
    has_depth: u32
    depth: u32  # to compare with, an f32
    level: u32  # an f32, or an integer as the coordinates are
    coordinates: Array[u32, 3]
    gradients: Array[u32, 6]
    offsets: Array[u32, 3]
    found: Array[u32, 4]


@struct
class SurfaceAccess:
    """A `suld`, `sust` or `sured` of a thread."""

    surface: u64
    geometry: u32
    mode: u32  # what happens out of bounds
    bytes: u32  # of the access; 0: a texel
    unit: u32  # bytes that the first coordinate counts; 0: those of a texel
    access: u32  # LOAD, STORE or ATOMIC
    layer: u32
    coordinates: Array[u32, 3]
