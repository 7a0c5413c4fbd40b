"""Textures, surfaces and samplers of a launch: the table that machine code reads, and memory of their own.

A texture is what its arrays held when the launch started. A surface is copied to memory whose rows are as aligned as
those of a GPU, and back to its array when the kernel has ended.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from ptxlab.device.placed_objects import PlacedObject, PlacedObjects
from ptxlab.device.regions import Region
from ptxlab.device.textures import ADDRESSES, FILTERS, HANDLE_BYTES, HANDLES, Sampler, Surface, Texels, Texture
from ptxlab.emulate.abi import textures
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.isa.units.texture_unit import FORMATS, GEOMETRIES
from ptxlab.native.checking import share

_ROW = 32  # bytes that rows of a surface are multiples of


class TextureTable:
    """All objects that the handles of a launch refer to, by number."""

    def __init__(self, objects: PlacedObjects) -> None:
        count, placed = objects.count, objects.placed
        self.count, self.variables = count, objects.variables
        self.address = 0
        self.regions: list[Region] = []
        self.addresses: dict[int, int] = {}
        """Where the memory of a surface starts, by its handle."""
        self._surfaces: list[tuple[Surface, Any]] = []
        self._kept: list[Any] = []
        if count:
            self.table = StructArray(textures.TextureObject, count)
            self.address = self.table.address
        for one in placed:
            number = (one.handle - HANDLES) // HANDLE_BYTES
            if isinstance(one.value, Sampler):
                self.table.set(number, kind=textures.SAMPLER)
                self._set_sampler(number, one.value)
            elif isinstance(one.value, Texture):
                self._set_texture(number, one.value)
            else:
                self._set_surface(number, one)

    def write_back(self) -> None:
        """Copy surfaces to the arrays that they are of."""
        for surface, memory in self._surfaces:
            surface.array[...] = memory[..., : surface.texels.width, :].reshape(surface.array.shape)

    def _set_texture(self, number: int, texture: Texture) -> None:
        levels = StructArray(textures.TextureLevel, len(texture.levels))
        for at, array in enumerate(texture.levels):
            self._set_level(levels, at, _texels(array, texture.texels, at))
        self._set_texels(number, texture.texels, levels, len(texture.levels))
        self.table.set(
            number,
            kind=textures.TEXTURE,
            is_normalized=int(texture.read == "normalized"),
            is_srgb=int(texture.srgb),
            is_linear=int(texture.storage == "linear"),
            is_seamless=int(texture.seamless),
        )
        self._set_sampler(number, texture.sampler)

    def _set_surface(self, number: int, placed: PlacedObject) -> None:
        import numpy

        surface: Surface = placed.value
        texels = surface.texels
        given = _texels(surface.array, texels, 0)
        step = texels.texel_bytes
        width = next(width for width in range(texels.width, texels.width + _ROW) if width * step % _ROW == 0)
        memory = numpy.zeros((*given.shape[:2], width, given.shape[3]), given.dtype)
        memory[:, :, : texels.width] = given
        levels = StructArray(textures.TextureLevel)
        self._set_level(levels, 0, memory, texels.width)
        self._set_texels(number, texels, levels, 1)
        self.table.set(number, kind=textures.SURFACE, address=placed.address)
        self._surfaces.append((surface, memory))
        self.addresses[placed.handle] = placed.address
        self.regions.append(Region(placed.address, memory.nbytes, memory.ctypes.data, placed.name, True, memory))

    def _set_level(self, levels: StructArray, at: int, memory: Any, width: int | None = None) -> None:
        """Describe the memory of texels: images, rows, columns and channels."""
        _, height, columns, channels = memory.shape
        row = columns * channels * memory.itemsize
        self._kept.append(share((ctypes.c_char * memory.nbytes).from_buffer(memory)))
        levels.set(
            at,
            data=memory.ctypes.data,
            width=columns if width is None else width,
            height=height,
            row=row,
            image=row * height,
        )

    def _set_texels(self, number: int, texels: Texels, levels: StructArray, count: int) -> None:
        self._kept.append(levels)
        for at in range(count):
            levels.set(at, depth=max(1, texels.depth >> at))
        self.table.set(
            number,
            geometry=GEOMETRIES.index(texels.geometry),
            format=FORMATS.index(texels.format),
            channels=texels.channels,
            level_count=count,
            layers=texels.layers,
            levels=levels.address,
        )

    def _set_sampler(self, number: int, sampler: Sampler) -> None:
        part = self.table.part("sampler", number)
        low, high = sampler.level_clamp
        part.set(
            filter=FILTERS.index(sampler.filter),
            normalized=int(sampler.normalized),
            mip_filter=FILTERS.index(sampler.mip_filter),
            bias=_bits(sampler.level_bias),
            low=_bits(low),
            high=_bits(high),
        )
        part.fill("address", [ADDRESSES.index(mode) for mode in sampler.addresses])
        part.fill("border", [_bits(number) for number in sampler.border])


def _texels(array: object, texels: Texels, level: int) -> Any:
    """A copy of an array with four dimensions: images, rows, columns, channels."""
    import numpy

    height, width = (max(1, extent >> level) for extent in (texels.height, texels.width))
    return numpy.array(array, order="C").reshape(-1, height, width, texels.channels)


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("<f", number), "little")
