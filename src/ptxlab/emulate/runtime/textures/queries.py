"""Properties of textures, surfaces and samplers, for `txq` and `suq`.

An H200 answers for extents; its driver loads no module that asks for anything else. Those answers are the numbers that
the PTX manual has, which are OpenCL's.
"""

from __future__ import annotations

from ptxlab.device.textures import FACES
from ptxlab.emulate.abi.faults import TextureReason
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.textures import NOTHING, TEXTURE, TextureObject
from ptxlab.emulate.runtime.textures.objects import fail_texture, object_of
from ptxlab.isa.units.texture_unit import GEOMETRIES, QUERIES
from ptxlab.native import Pointer, cast, native, u32, u64

_WIDTH, _HEIGHT, _DEPTH, _DATA_TYPE, _ORDER, _NORMALIZED, _ARRAY_SIZE, _LEVELS, _SAMPLES, _LAYOUT, _FILTER = range(11)
_FIRST_MODE, _UNNORMALIZED = 11, 14
assert QUERIES[_FILTER] == "filter_mode"
assert QUERIES[_UNNORMALIZED] == "force_unnormalized_coords"
_1D, _2D, _3D, _A1D, _A2D, _CUBE, _ACUBE = range(7)
assert GEOMETRIES[_ACUBE] == "acube"
# By format: as integers, then as fractions.
_DATA_TYPES = (0x10DA, 0x10DB, 0x10DC, 0x10D7, 0x10D8, 0x10D9, 0x10DD, 0x10DE)
_FRACTIONS = (0x10D2, 0x10D3, 0x10DC, 0x10D0, 0x10D1, 0x10D9, 0x10DD, 0x10DE)
_ORDERS = (0, 0x10B0, 0x10B2, 0, 0x10B5)  # by channels: R, RG, RGBA
_MODES = (0, 1, 3, 4)  # of wrap, mirror, clamp and border among wrap, mirror, clamp_ogl, clamp_to_edge and the border
_LAYERED = tuple(int(name in ("a1d", "a2d", "acube", "a2dms")) for name in GEOMETRIES)


@native
def query_texture(thread: Pointer[Thread], handle: u64, query: u32, level: u32, instruction: u32) -> u32:
    """A property of what a handle refers to."""
    found = object_of(thread, handle)
    if cast(u64, found) == 0:
        fail_texture(thread, TextureReason.NOT_A_HANDLE, instruction, handle, 0, 0)
        return 0
    if found.kind == NOTHING:
        fail_texture(thread, TextureReason.UNBOUND, instruction, handle, 0, 0)
        return 0
    if query <= _DEPTH:
        return _extent(found, query, level) if level < found.level_count else 0
    if query == _DATA_TYPE:
        return _FRACTIONS[found.format] if found.is_normalized != 0 else _DATA_TYPES[found.format]
    if query == _ORDER:
        return _ORDERS[found.channels]
    if query == _ARRAY_SIZE:
        return found.layers * _LAYERED[found.geometry]
    if query == _LEVELS:
        return found.level_count
    if query == _SAMPLES:
        return 0
    if query == _LAYOUT:
        return found.is_linear
    return _sampling(found, query)


@native
def _extent(found: Pointer[TextureObject], query: u32, level: u32) -> u32:
    """An extent in texels; layers are the one after those of a layer, and what a geometry does not have is 0."""
    if query == _WIDTH:
        return found.levels[level].width
    if query == _HEIGHT:
        if found.geometry == _1D:
            return u32(found.kind == TEXTURE and found.is_linear == 0)
        return found.layers if found.geometry == _A1D else found.levels[level].height
    if found.geometry == _3D:
        return found.levels[level].depth
    if found.geometry == _ACUBE:
        return found.layers // FACES
    return found.layers if found.geometry == _A2D else 0


@native
def _sampling(found: Pointer[TextureObject], query: u32) -> u32:
    if query == _NORMALIZED:
        return found.sampler.normalized
    if query == _UNNORMALIZED:
        return 1 - found.sampler.normalized
    if query == _FILTER:
        return found.sampler.filter
    return _MODES[found.sampler.address[query - _FIRST_MODE]]


CALLED = (query_texture,)
