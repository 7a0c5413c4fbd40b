"""Textures and surfaces that variables of a module refer to: `.global .texref image;`.

The driver has references to them by name, which it calls deprecated and serves still: an H200 reads by them what it
reads by texture objects. It loads no module with a `.samplerref` (CUDA_ERROR_NOT_FOUND, driver 580): samplers apart
from textures are for OpenCL, and CUDA has no function that makes one.
"""

from __future__ import annotations

from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.placed_objects import kind_of
from ptxlab.gpu.driver import bindings, call
from ptxlab.gpu.loading import GpuState
from ptxlab.report import KernelError, error

_OVERRIDE_FORMAT = 1
_DIMENSIONS = 3


def references_of(module: ir.Module, state: GpuState) -> list[tuple[str, object]]:
    """The variables that refer to a texture or surface, and to which; `KernelError` for what no GPU has."""
    found = []
    for variable in filter(layout.is_opaque, module.variables):
        values = state.host.objects.get(variable.name, ())
        if kind_of(variable) == "samplerref":
            message = f"`{variable.name}` is a `.samplerref`: CUDA's driver loads no module that has one"
            help = (
                "take it out, with `texmode_independent`, and give the texture its own: `ptxlab.Texture(a, filter=…)`"
            )
        elif values and variable.dimensions:
            message = (
                f"`{variable.name}` is an array: CUDA's driver has references to single textures and surfaces only"
            )
            help = "take textures as parameters of the kernel, `.param .u64`, and pass them as arguments"
        else:
            found += [(variable.name, value) for value in values]
            continue
        raise KernelError([error("bad-argument", message, module.span(variable), "declared here", helps=[help])])
    return found


def bind_texture(handle: object, name: str, resource: Any, sampling: Any) -> None:
    """Let a variable of a loaded module refer to a texture: texels as the driver describes them, and how to sample."""
    driver = bindings()
    kinds, reference = driver.CUresourcetype, call("cuModuleGetTexRef", handle, name.encode())
    if resource.resType == kinds.CU_RESOURCE_TYPE_ARRAY:
        call("cuTexRefSetArray", reference, resource.res.array.hArray, _OVERRIDE_FORMAT)
    elif resource.resType == kinds.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        call("cuTexRefSetMipmappedArray", reference, resource.res.mipmap.hMipmappedArray, _OVERRIDE_FORMAT)
    elif resource.resType == kinds.CU_RESOURCE_TYPE_LINEAR:
        part = resource.res.linear
        call("cuTexRefSetFormat", reference, part.format, part.numChannels)
        call("cuTexRefSetAddress", reference, part.devPtr, part.sizeInBytes)
    else:
        part, shape = resource.res.pitch2D, driver.CUDA_ARRAY_DESCRIPTOR()
        shape.Width, shape.Height, shape.Format, shape.NumChannels = (
            part.width, part.height, part.format, part.numChannels,
        )  # fmt: skip
        call("cuTexRefSetFormat", reference, part.format, part.numChannels)
        call("cuTexRefSetAddress2D", reference, shape, part.devPtr, part.pitchInBytes)
    for dimension in range(_DIMENSIONS):
        call("cuTexRefSetAddressMode", reference, dimension, sampling.addressMode[dimension])
    call("cuTexRefSetFilterMode", reference, sampling.filterMode)
    call("cuTexRefSetMipmapFilterMode", reference, sampling.mipmapFilterMode)
    call("cuTexRefSetMipmapLevelBias", reference, sampling.mipmapLevelBias)
    call("cuTexRefSetMipmapLevelClamp", reference, sampling.minMipmapLevelClamp, sampling.maxMipmapLevelClamp)
    if any(sampling.borderColor):  # the driver's Python bindings take one number for the four
        raise ValueError(
            f"`{name}`: a texture with a border color is a parameter of the kernel on a GPU, not a variable"
        )
    call("cuTexRefSetFlags", reference, sampling.flags)


def bind_surface(handle: object, name: str, array: object) -> None:
    """Let a variable of a loaded module refer to an array of CUDA."""
    call("cuSurfRefSetArray", call("cuModuleGetSurfRef", handle, name.encode()), array, 0)
