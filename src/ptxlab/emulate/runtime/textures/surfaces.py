"""Surfaces: where an access goes, and texels in the format of a surface."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import BAD_SURFACE_COORDINATE, SurfaceReason, TextureReason
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.textures import SURFACE, SurfaceAccess, TextureLevel, TextureObject
from ptxlab.emulate.runtime.memory.memory import fail_because
from ptxlab.emulate.runtime.textures.objects import fail_texture, find_object, object_of
from ptxlab.emulate.runtime.textures.texels import FORMAT_BYTES, S8, S32, encode_component
from ptxlab.isa.units.texture_unit import BOUNDARIES
from ptxlab.native import Pointer, boolean, cast, native, s32, s64, u32, u64

TRAP = BOUNDARIES.index("trap")
CLAMP = BOUNDARIES.index("clamp")


@native
def locate_in_surface(thread: Pointer[Thread], access: Pointer[SurfaceAccess], instruction: u32) -> u64:
    """The address in global memory of an access to a surface; 0 where it is out of bounds and left out, or failed."""
    surface = find_object(thread, access.surface, SURFACE, instruction)
    if cast(u64, surface) == 0:
        return 0
    if surface.geometry != access.geometry:
        geometry: u64 = u64(surface.geometry)
        fail_texture(thread, TextureReason.OTHER_GEOMETRY, instruction, access.surface, geometry, u64(access.geometry))
        return 0
    level = surface.levels
    texel: u32 = FORMAT_BYTES[surface.format] * surface.channels
    bytes: u32 = access.bytes if access.bytes != 0 else texel
    column: s64 = s64(s32(access.coordinates[0])) * s64(access.unit if access.unit != 0 else texel)
    if column % s64(bytes) != 0:
        fail_coordinate(thread, SurfaceReason.MISALIGNED, instruction, 0, column, s64(bytes))
        return 0
    row: s64 = s64(s32(access.coordinates[1]))
    slice: s64 = s64(s32(access.coordinates[2]))
    layer: s64 = s64(access.layer)  # unsigned: a negative one is clamped to the last, too
    width: s64 = s64(level.width) * s64(texel) - s64(bytes) + 1
    is_inside: boolean = (
        0 <= column < width and 0 <= row < s64(level.height) and 0 <= slice < s64(level.depth)
    ) and layer < s64(surface.layers)
    if not is_inside:
        if access.mode == TRAP:
            fail_outside(thread, surface, access, column, instruction)
            return 0
        if access.mode != CLAMP:
            return 0
        column = min(max(column, 0), max((width - 1) // s64(bytes) * s64(bytes), 0))
        row = min(max(row, 0), s64(level.height) - 1)
        slice = min(max(slice, 0), s64(level.depth) - 1)
        layer = min(layer, s64(surface.layers) - 1)
        if width <= 0:
            return 0
    return surface.address + u64(column + row * s64(level.row) + (slice + layer) * s64(level.image))


@native
def fail_outside(
    thread: Pointer[Thread],
    surface: Pointer[TextureObject],
    access: Pointer[SurfaceAccess],
    column: s64,
    instruction: u32,
) -> None:
    """Note the first coordinate that is out of bounds."""
    level: Pointer[TextureLevel] = surface.levels
    texel: u32 = FORMAT_BYTES[surface.format] * surface.channels
    size: s64 = s64(level.width) * s64(texel)
    bytes: s64 = s64(access.bytes) if access.bytes != 0 else s64(texel)
    if column < 0 or column + bytes > size:
        fail_coordinate(thread, SurfaceReason.OUTSIDE, instruction, 0, column, size)
    elif s32(access.coordinates[1]) < 0 or access.coordinates[1] >= level.height:
        fail_coordinate(
            thread, SurfaceReason.OUTSIDE, instruction, 1, s64(s32(access.coordinates[1])), s64(level.height)
        )
    elif s32(access.coordinates[2]) < 0 or access.coordinates[2] >= level.depth:
        fail_coordinate(
            thread, SurfaceReason.OUTSIDE, instruction, 2, s64(s32(access.coordinates[2])), s64(level.depth)
        )
    else:
        fail_coordinate(thread, SurfaceReason.OUTSIDE, instruction, 3, s64(s32(access.layer)), s64(surface.layers))


@native
def fail_coordinate(
    thread: Pointer[Thread], reason: u32, instruction: u32, dimension: u32, value: s64, limit: s64
) -> None:
    """Note a coordinate of a surface that is wrong."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.dimension = dimension
        thread.worker.fault.limit = u64(limit)
    fail_because(thread, BAD_SURFACE_COORDINATE, reason, instruction, u64(value))


@native
def has_signed_texels(thread: Pointer[Thread], handle: u64) -> u32:
    """Whether texels of a surface are signed integers."""
    surface = object_of(thread, handle)
    if cast(u64, surface) == 0:
        return 0
    return u32(S8 <= surface.format <= S32)


@native
def texel_bytes(thread: Pointer[Thread], handle: u64) -> u32:
    """Bytes of a texel of a surface; 0 where there is none."""
    surface = object_of(thread, handle)
    if cast(u64, surface) == 0:
        return 0
    return FORMAT_BYTES[surface.format] * surface.channels


@native
def texel_word(thread: Pointer[Thread], handle: u64, red: u32, green: u32, blue: u32, alpha: u32, word: u32) -> u32:
    """A word of a texel of a surface, in its format, made of these components."""
    surface = object_of(thread, handle)
    if cast(u64, surface) == 0:
        return 0
    width: u32 = FORMAT_BYTES[surface.format]
    found: u32 = 0
    for channel in range(surface.channels):
        at: u32 = u32(channel) * width
        if at // 4 == word:
            value: u32 = red
            if channel == 1:
                value = green
            if channel == 2:
                value = blue
            if channel == 3:
                value = alpha
            found |= encode_component(value, surface.format) << (at % 4 * 8)
    return found


CALLED = (locate_in_surface, has_signed_texels, texel_bytes, texel_word)
