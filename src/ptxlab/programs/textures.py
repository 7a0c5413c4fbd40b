"""Texture and surface objects of a program, as the emulator takes them: views of device memory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from numpy.lib.stride_tricks import as_strided

from ptxlab.device.textures import ADDRESSES, FILTERS, READS, Surface, Texture
from ptxlab.programs.messages import MessageReader

_LAYERED, _CUBE = 1, 4  # flags of arrays
_ARRAY, _LINEAR, _PITCH = 0, 2, 3  # `cudaResourceType`
_KINDS = {0: "i", 1: "u", 2: "f"}  # `cudaChannelFormatKind`


def object_of(given: MessageReader, bytes_at: Callable[[int, int], Any]) -> Texture | Surface:
    """The texture or surface that a request describes; what the emulator can't have is a `ValueError`."""
    kind, base, pitch, width, height, depth = (given.number() for _ in range(6))
    number_kind, bits, channels, flags, is_texture = (given.number() for _ in range(5))
    modes = [given.number() for _ in range(3)]
    filter, read, srgb, normalized = (given.number() for _ in range(4))
    border = struct.unpack("<4f", given.take(16))
    if number_kind not in _KINDS or bits % 8:
        raise ValueError("a texture of a compressed or packed format")
    type = f"{_KINDS[number_kind]}{bits // 8}"
    shape = [extent for extent in (depth, height, width) if extent]
    texels = tuple(shape) + ((channels,) if channels > 1 else ())
    row = width * channels * bits // 8
    rows = (height or 1) * (depth or 1)
    if kind == _PITCH:
        steps = (pitch, channels * bits // 8) + ((bits // 8,) if channels > 1 else ())
        array = as_strided(bytes_at(base, pitch * (height - 1) + row).view(type), texels, steps)
    else:
        array = bytes_at(base, row * rows).view(type).reshape(texels)
    geometry = _geometry(len(shape), flags)
    if not is_texture:
        return Surface(array, geometry=geometry)
    return Texture(
        array,
        geometry=geometry,
        filter=FILTERS[filter],
        address=[ADDRESSES[_MODES[mode]] for mode in modes[: max(1, len(shape))]],
        normalized=bool(normalized),
        read=READS[read],
        srgb=bool(srgb),
        border=border,
        storage={_ARRAY: "array", _LINEAR: "linear", _PITCH: "pitch"}[kind],
    )


_MODES = {number: ADDRESSES.index(name) for number, name in enumerate(("wrap", "clamp", "mirror", "border"))}


def _geometry(rank: int, flags: int) -> str:
    if flags & _CUBE:
        return "acube" if flags & _LAYERED else "cube"
    if flags & _LAYERED:
        return "a2d" if rank == 3 else "a1d"
    return f"{rank}d"
