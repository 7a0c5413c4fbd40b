"""Lookups of textures: `tex` and `tld4` of one thread."""

from __future__ import annotations

from ptxlab.device.textures import FACES, FILTERS
from ptxlab.emulate.abi.faults import TextureReason
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.textures import SAMPLER, TEXTURE, SamplerState, TextureLevel, TextureLookup, TextureObject
from ptxlab.emulate.runtime.textures.blending import CORNERS, blend, blend_levels, set_weights
from ptxlab.emulate.runtime.textures.coordinates import OUTSIDE, blended, position, signed_offset, texel_index
from ptxlab.emulate.runtime.textures.cubes import neighbor, project, spread_corner
from ptxlab.emulate.runtime.textures.levels import level_of
from ptxlab.emulate.runtime.textures.objects import fail_texture, find_object
from ptxlab.emulate.runtime.textures.texels import border_component, decoded, raw_component
from ptxlab.isa.units.texture_unit import FETCH_LEVEL, GATHER, GEOMETRIES, RESULTS
from ptxlab.native import Pointer, address_of, array, boolean, cast, native, s32, s64, struct, u32, u64
from ptxlab.numbers.conversion import convert
from ptxlab.numbers.parameters import F16, F32, RN

LINEAR = FILTERS.index("linear")
_1D, _2D, _3D, _A1D, _A2D, _CUBE, _ACUBE, _2DMS, _A2DMS = range(len(GEOMETRIES))
_F16, _F16X2 = RESULTS.index("f16"), RESULTS.index("f16x2")


@struct
class Cell:
    """The texels that a lookup reads of one level: two along each dimension, and how far it is to the second."""

    first: s64
    second: s64
    fraction: u32
    unused: u32


@struct
class Reading:
    """Where a lookup reads: its coordinates, and the layer or face."""

    texture: Pointer[TextureObject]
    sampler: Pointer[SamplerState]
    lookup: Pointer[TextureLookup]
    layer: s64
    coordinates: Pointer[u32]
    is_linear: boolean


@native
def look_up_texture(thread: Pointer[Thread], lookup: Pointer[TextureLookup], instruction: u32) -> None:
    """Read a texture, and leave the results in the record."""
    texture = find_object(thread, lookup.texture, TEXTURE, instruction)
    if cast(u64, texture) == 0:
        return
    sampler = address_of(texture.sampler)
    if lookup.sampler != 0:
        other = find_object(thread, lookup.sampler, SAMPLER, instruction)
        if cast(u64, other) == 0:
            return
        sampler = address_of(other.sampler)
    if lookup.geometry != texture.geometry:
        found: u64 = u64(texture.geometry)
        fail_texture(thread, TextureReason.OTHER_GEOMETRY, instruction, lookup.texture, found, u64(lookup.geometry))
        return
    is_fetched: boolean = lookup.is_integer != 0
    if is_fetched != (texture.is_linear != 0) and texture.geometry == _1D:
        fail_texture(thread, TextureReason.NOT_SAMPLED, instruction, lookup.texture, u64(texture.is_linear), 0)
        return
    if is_fetched:
        _fetch(texture, lookup)
    else:
        _sample(texture, sampler, lookup)
    _convert_results(lookup)


@native
def _fetch(texture: Pointer[TextureObject], lookup: Pointer[TextureLookup]) -> None:
    """A texel by whole numbers; zeros where there is none, whatever the address mode."""
    level: u32 = lookup.level if lookup.operation == FETCH_LEVEL else 0
    layer: u64 = u64(lookup.layer)
    at = array(s64, 3)
    first: u32 = 0
    if texture.geometry == _2DMS or texture.geometry == _A2DMS:  # the number of a sample comes first
        first = 1
    for axis in range(3):
        at[axis] = 0
        if axis + first < 3:
            at[axis] = s64(s32(lookup.coordinates[axis + first])) + signed_offset(lookup.offsets[axis])
    for channel in range(4):
        lookup.found[channel] = 0
    if level >= texture.level_count or layer >= u64(texture.layers):
        return
    source = texture.levels + level
    inside: boolean = 0 <= at[0] < s64(source.width) and 0 <= at[1] < s64(source.height)
    if not inside or at[2] < 0 or at[2] >= s64(source.depth):
        return
    for channel in range(texture.channels):
        raw: u32 = raw_component(texture, source, at[2] + s64(layer), at[1], at[0], u32(channel))
        lookup.found[channel] = decoded(texture, raw, u32(channel))


@native
def _sample(texture: Pointer[TextureObject], sampler: Pointer[SamplerState], lookup: Pointer[TextureLookup]) -> None:
    """Texels at coordinates that are floats."""
    coordinates = array(u32, 3)
    for axis in range(3):
        coordinates[axis] = lookup.coordinates[axis]
    layer: s64 = s64(lookup.layer)
    if texture.geometry == _CUBE or texture.geometry == _ACUBE:
        layer = min(layer, s64(texture.layers) // FACES - 1) * FACES
        layer += s64(project(lookup, coordinates))
    reading = array(Reading, 1)
    reading.texture = texture
    reading.sampler = sampler
    reading.lookup = lookup
    reading.layer = min(layer, s64(texture.layers) - 1)
    reading.coordinates = coordinates
    reading.is_linear = sampler.filter == LINEAR
    level: s64 = level_of(texture, sampler, lookup)
    weight: u32 = 0
    number: u32 = u32(level >> 8)
    if sampler.mip_filter == LINEAR:
        weight = u32(level & 255)
    else:
        number = u32(level + 128 >> 8)
    if lookup.operation == GATHER:
        _gather(reading, texture.levels + u32(level + 128 >> 8))
        return
    for channel in range(4):
        lookup.found[channel] = 0
        if u32(channel) < texture.channels:
            lookup.found[channel] = _component(reading, number, weight, u32(channel))


@native
def _component(reading: Pointer[Reading], number: u32, weight: u32, channel: u32) -> u32:
    """One component of a texel, or of those that are blended; `weight` is that of the next level, in 256ths."""
    if weight == 0 or reading.texture.geometry != _3D:
        return _blended_component(reading, number, weight, channel)
    lower: u32 = _blended_component(reading, number, 0, channel)
    return blend_levels(lower, _blended_component(reading, number + 1, 0, channel), weight)


@native
def _blended_component(reading: Pointer[Reading], number: u32, weight: u32, channel: u32) -> u32:
    texture = reading.texture
    level = texture.levels + number
    cells = array(Cell, 3)
    _set_cells(reading, level, cells, reading.is_linear)
    if not reading.is_linear and weight == 0:
        return decoded(texture, _texel(reading, level, cells, 0, channel), channel)
    texels = array(u32, CORNERS)
    weights = array(u32, CORNERS)
    if weight != 0:  # the weights of the next level come from where the position is in that
        _set_cells(reading, level + 1, cells, reading.is_linear)
        set_weights(weights, 1, cells[0].fraction, cells[1].fraction, weight)
        for corner in range(4):
            texels[4 + corner] = _texel(reading, level + 1, cells, u32(corner), channel)
        _set_cells(reading, level, cells, reading.is_linear)
    is_volume: boolean = texture.geometry == _3D
    upper: u32 = cells[2].fraction if is_volume else weight
    set_weights(weights, 0, cells[0].fraction, cells[1].fraction, upper)
    if weight == 0:
        set_weights(weights, 1, cells[0].fraction, cells[1].fraction, upper)
    if texture.is_seamless != 0 and texture.geometry >= _CUBE:
        spread_corner(weights, _outside(cells, level.width), _outside(cells + 1, level.width))
    for corner in range(CORNERS):
        if corner < 4 or is_volume:
            texels[corner] = _texel(reading, level, cells, u32(corner), channel)
        elif weight == 0:
            texels[corner] = 0
    return blend(texture, texels, weights, channel)


@native
def _set_cells(
    reading: Pointer[Reading], level: Pointer[TextureLevel], cells: Pointer[Cell], is_linear: boolean
) -> None:
    """The texels around a position in a level; a texture with one dimension has one row, at 0."""
    is_cube: boolean = reading.texture.geometry == _CUBE or reading.texture.geometry == _ACUBE
    largest: u32 = max(max(level.width, level.height), level.depth)
    for axis in range(3):
        extent: u32 = level.width
        if axis == 1:
            extent = level.height
        if axis == 2:
            extent = level.depth
        cell = cells + axis
        cell.first = 0
        cell.second = 0
        cell.fraction = 0
        if axis < 2 or reading.texture.geometry == _3D:
            mode: u32 = reading.sampler.address[axis]
            is_normalized: boolean = reading.sampler.normalized != 0 or is_cube
            at: s64 = position(reading.coordinates[axis], extent, largest, is_normalized, mode)
            moved: s64 = signed_offset(reading.lookup.offsets[axis])
            if is_linear and is_cube and reading.texture.is_seamless != 0:
                at = blended(at)
                cell.fraction = u32(at & 255)
                cell.first = at >> 8
                cell.second = (at >> 8) + 1
            elif is_linear:
                at = blended(at)
                cell.fraction = u32(at & 255)
                cell.first = texel_index((at >> 8) + moved, extent, mode, is_normalized)
                cell.second = texel_index((at >> 8) + moved + 1, extent, mode, is_normalized)
            else:
                cell.first = texel_index((at >> 9) + moved, extent, mode, is_normalized)


@native
def _outside(cell: Pointer[Cell], extent: u32) -> u32:
    """Which of both texels are outside of the face of a cube: a bit each."""
    first: u32 = u32(cell.first < 0 or cell.first >= s64(extent))
    return first | u32(cell.second < 0 or cell.second >= s64(extent)) << 1


@native
def _texel(
    reading: Pointer[Reading], level: Pointer[TextureLevel], cells: Pointer[Cell], corner: u32, channel: u32
) -> u32:
    """The bits of a component of a texel, or of the border."""
    column: s64 = cells[0].second if corner & 1 != 0 else cells[0].first
    row: s64 = cells[1].second if corner & 2 != 0 else cells[1].first
    slice: s64 = cells[2].second if corner & 4 != 0 else cells[2].first
    if reading.texture.is_seamless != 0 and reading.texture.geometry >= _CUBE:
        size: s64 = s64(level.width)
        if 0 <= column < size and 0 <= row < size:
            return raw_component(reading.texture, level, reading.layer, row, column, channel)
        found: s64 = neighbor(reading.layer % FACES, column, row, size)
        layer: s64 = reading.layer // FACES * FACES + (found >> 40)
        return raw_component(reading.texture, level, layer, found >> 20 & 0xFFFFF, found & 0xFFFFF, channel)
    if column == OUTSIDE or row == OUTSIDE or slice == OUTSIDE:
        return border_component(reading.texture, reading.sampler.border[channel])
    return raw_component(reading.texture, level, reading.layer + slice, row, column, channel)


@native
def _gather(reading: Pointer[Reading], level: Pointer[TextureLevel]) -> None:
    """One component of four texels, counterclockwise from the lower left."""
    cells = array(Cell, 3)
    _set_cells(reading, level, cells, True)
    channel: u32 = reading.lookup.component
    for number in range(4):
        corner: u32 = (3 if number == 1 else 2) if number < 2 else 3 - u32(number)
        reading.lookup.found[number] = 0
        if channel < reading.texture.channels:
            raw: u32 = _texel(reading, level, cells, corner, channel)
            reading.lookup.found[number] = decoded(reading.texture, raw, channel)


@native
def _convert_results(lookup: Pointer[TextureLookup]) -> None:
    """Results of 16 bits are converted from f32."""
    if lookup.result != _F16 and lookup.result != _F16X2:
        return
    for number in range(4):
        lookup.found[number] = u32(convert(u64(lookup.found[number]), F32, F16, RN, 0))
    if lookup.result == _F16X2:
        lookup.found[0] = lookup.found[0] | lookup.found[1] << 16
        lookup.found[1] = lookup.found[2] | lookup.found[3] << 16


CALLED = (look_up_texture,)
