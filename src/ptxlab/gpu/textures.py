"""Textures and surfaces on a GPU: arrays of CUDA with copies of their texels, and objects that refer to them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ptxlab.device.placed_objects import PlacedObject
from ptxlab.device.textures import FACES, LAYERED, Surface, Texels, Texture
from ptxlab.gpu.driver import bindings, broken, call
from ptxlab.gpu.references import bind_surface, bind_texture

_FORMATS = {
    "u8": "UNSIGNED_INT8", "u16": "UNSIGNED_INT16", "u32": "UNSIGNED_INT32", "s8": "SIGNED_INT8",
    "s16": "SIGNED_INT16", "s32": "SIGNED_INT32", "f16": "HALF", "f32": "FLOAT",
}  # fmt: skip
_LAYERED, _SURFACE, _CUBE, _GATHER = 1, 2, 4, 8  # flags of an array
_AS_INTEGER, _NORMALIZED, _SRGB, _SEAMLESS = 1, 2, 0x10, 0x40  # flags of a texture


class TextureObjects:
    """The textures and surfaces of a launch, as long as it takes."""

    def __init__(self, placed: Sequence[PlacedObject] = ()) -> None:
        self.placed = placed
        self.bound: Sequence[tuple[str, Texture | Surface]] = ()
        """Variables of the module, and what they refer to."""
        self.handles: dict[int, int] = {}
        """Those of the GPU by those of `pack`."""
        self._undo: list[tuple[str, Any]] = []
        self._arrays: list[tuple[Surface, Any]] = []

    def create(self) -> None:
        """Make arrays, fill them, and make objects of them."""
        for one in self.placed:
            made = self._texture(one.value) if isinstance(one.value, Texture) else self._surface(one.value)
            self.handles[one.handle] = int(made)

    def bind(self, module: ModuleType) -> None:
        """Make arrays, fill them, and let the variables of a loaded module refer to them."""
        for name, value in self.bound:
            if isinstance(value, Texture):
                bind_texture(module, name, self._resource(value), _sampling(value))
            else:
                bind_surface(module, name, self._surface_array(value))

    def copy_out(self, kept: dict[int, bytearray] | None) -> None:
        """Bring surfaces back to their arrays, or into `kept`, by the addresses of these."""
        for surface, array in self._arrays:
            memory = _texels(surface.array, surface.texels, 0)
            _copy(array, memory, is_back=True)
            if kept is not None:
                kept[int(surface.array.ctypes.data)] = bytearray(memory.tobytes())
            else:
                surface.array[...] = memory.reshape(surface.array.shape)

    def free(self) -> None:
        """Destroy all of them, unless the context is gone."""
        while self._undo and broken() is None:
            name, argument = self._undo.pop()
            getattr(bindings(), name)(argument)

    def _surface(self, surface: Surface) -> Any:
        made = call("cuSurfObjectCreate", _array_resource(self._surface_array(surface)))
        self._undo.append(("cuSurfObjectDestroy", made))
        return made

    def _surface_array(self, surface: Surface) -> Any:
        array = call("cuArray3DCreate", _description(surface.texels, _SURFACE))
        self._undo.append(("cuArrayDestroy", array))
        _copy(array, _texels(surface.array, surface.texels, 0))
        self._arrays.append((surface, array))
        return array

    def _texture(self, texture: Texture) -> Any:
        made = call("cuTexObjectCreate", self._resource(texture), _sampling(texture), None)
        self._undo.append(("cuTexObjectDestroy", made))
        return made

    def _resource(self, texture: Texture) -> Any:
        return self._array(texture) if texture.storage == "array" else self._memory(texture)

    def _array(self, texture: Texture) -> Any:
        """Texels in an array of CUDA, or one for each level."""
        texels, count = texture.texels, len(texture.levels)
        flags = _GATHER if texels.geometry == "2d" and count == 1 else 0
        if count == 1:
            array = call("cuArray3DCreate", _description(texels, flags))
            self._undo.append(("cuArrayDestroy", array))
            _copy(array, _texels(texture.levels[0], texels, 0))
            return _array_resource(array)
        mipmap = call("cuMipmappedArrayCreate", _description(texels, flags), count)
        self._undo.append(("cuMipmappedArrayDestroy", mipmap))
        for number, level in enumerate(texture.levels):
            _copy(call("cuMipmappedArrayGetLevel", mipmap, number), _texels(level, texels, number))
        driver = bindings()
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        resource.res.mipmap.hMipmappedArray = mipmap
        return resource

    def _memory(self, texture: Texture) -> Any:
        """Texels in ordinary memory: one row, or rows of one pitch."""
        driver, texels = bindings(), texture.texels
        memory = _texels(texture.levels[0], texels, 0)
        pitch = -(-texels.width * texels.texel_bytes // 512) * 512  # what every GPU takes
        rows = memory.reshape(texels.height, -1).view("u1")
        allocated = call("cuMemAlloc", pitch * texels.height)
        self._undo.append(("cuMemFree", allocated))
        for number, row in enumerate(rows):
            call("cuMemcpyHtoD", int(allocated) + pitch * number, row.ctypes.data, row.nbytes)
        resource = driver.CUDA_RESOURCE_DESC()
        is_row = texture.storage == "linear"
        kind = driver.CUresourcetype
        resource.resType = kind.CU_RESOURCE_TYPE_LINEAR if is_row else kind.CU_RESOURCE_TYPE_PITCH2D
        part = resource.res.linear if is_row else resource.res.pitch2D
        part.devPtr, part.format, part.numChannels = allocated, _format(texels), texels.channels
        if is_row:
            part.sizeInBytes = memory.nbytes
        else:
            part.width, part.height, part.pitchInBytes = texels.width, texels.height, pitch
        return resource


def _texels(array: object, texels: Texels, level: int) -> Any:
    """A copy of an array with four dimensions: images, rows, columns, channels."""
    import numpy

    height, width = (max(1, extent >> level) for extent in (texels.height, texels.width))
    return numpy.array(array, order="C").reshape(-1, height, width, texels.channels)


def _format(texels: Texels) -> Any:
    return getattr(bindings().CUarray_format, f"CU_AD_FORMAT_{_FORMATS[texels.format]}")


def _description(texels: Texels, flags: int) -> Any:
    """What the driver makes an array by."""
    found = bindings().CUDA_ARRAY3D_DESCRIPTOR()
    found.Width = texels.width
    found.Height = 0 if texels.geometry in ("1d", "a1d") else texels.height
    found.Depth = texels.depth if texels.geometry == "3d" else texels.layers if texels.geometry in LAYERED else 0
    found.Format, found.NumChannels = _format(texels), texels.channels
    is_cube = texels.geometry in ("cube", "acube")
    is_layered = texels.geometry in LAYERED and not (is_cube and texels.layers == FACES and texels.geometry == "cube")
    found.Flags = flags | (_LAYERED if is_layered else 0) | (_CUBE if is_cube else 0)
    return found


def _array_resource(array: object) -> Any:
    driver = bindings()
    found = driver.CUDA_RESOURCE_DESC()
    found.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    found.res.array.hArray = array
    return found


def _copy(array: object, memory: Any, is_back: bool = False) -> None:
    """Copy texels to an array of CUDA, or back."""
    driver = bindings()
    images, height, width, channels = memory.shape
    row = width * channels * memory.itemsize
    copy = driver.CUDA_MEMCPY3D()
    host, there = driver.CUmemorytype.CU_MEMORYTYPE_HOST, driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
    address = ctypes.c_void_p(memory.ctypes.data).value or 0
    if is_back:
        copy.srcMemoryType, copy.srcArray, copy.dstMemoryType, copy.dstHost = there, array, host, address
        copy.dstPitch, copy.dstHeight = row, height
    else:
        copy.srcMemoryType, copy.srcHost, copy.dstMemoryType, copy.dstArray = host, address, there, array
        copy.srcPitch, copy.srcHeight = row, height
    copy.WidthInBytes, copy.Height, copy.Depth = row, height, images
    call("cuMemcpy3D", copy)


def _sampling(texture: Texture) -> Any:
    """How a texture of the driver is sampled."""
    driver, sampler = bindings(), texture.sampler
    found = driver.CUDA_TEXTURE_DESC()
    modes = driver.CUaddress_mode
    found.addressMode = [getattr(modes, f"CU_TR_ADDRESS_MODE_{mode.upper()}") for mode in sampler.addresses]
    filters = driver.CUfilter_mode
    found.filterMode = getattr(filters, f"CU_TR_FILTER_MODE_{sampler.filter.upper()}")
    found.mipmapFilterMode = getattr(filters, f"CU_TR_FILTER_MODE_{sampler.mip_filter.upper()}")
    found.mipmapLevelBias = sampler.level_bias
    found.minMipmapLevelClamp, found.maxMipmapLevelClamp = sampler.level_clamp
    found.borderColor = list(sampler.border)
    found.flags = (
        (_AS_INTEGER if texture.read == "element" else 0)
        | (_NORMALIZED if sampler.normalized else 0)
        | (_SRGB if texture.srgb else 0)
        | (_SEAMLESS if texture.seamless else 0)
    )
    return found
