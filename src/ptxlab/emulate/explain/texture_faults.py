"""Explains faults of textures and surfaces: handles of something else, geometries that differ, coordinates outside."""

from __future__ import annotations

from ptxlab.emulate.abi import textures
from ptxlab.emulate.abi.faults import SurfaceReason, TextureReason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.isa.units.texture_unit import GEOMETRIES
from ptxlab.report import Diagnostic

_KINDS = {
    textures.TEXTURE: ("a texture", "`ptxlab.Texture(array)`"),
    textures.SURFACE: ("a surface", "`ptxlab.Surface(array)`"),
    textures.SAMPLER: ("a sampler", "`ptxlab.Sampler()`"),
}
_ANY = ("a texture or surface", "`ptxlab.Texture(array)` or `ptxlab.Surface(array)`")
_EXTENTS = ("bytes of a row", "rows", "slices", "layers")


def explain_bad_texture(fault: FaultSnapshot) -> Diagnostic:
    """A handle of nothing, of something else, or of a texture that does not fit its instruction."""
    message, notes, helps = _explain(fault)
    return fault.error("bad-texture", message, notes=notes, helps=helps)


def _explain(fault: FaultSnapshot) -> tuple[str, list[str], list[str]]:
    """Message, notes and helps."""
    wanted, made = _KINDS.get(fault.limit, _ANY)
    match TextureReason(fault.reason):
        case TextureReason.NOT_A_HANDLE:
            return f"{fault.address:#x} is not the handle of {wanted}", [], [f"pass {made} as an argument"]
        case TextureReason.UNBOUND:
            name = _variable_of(fault)
            return f"{name} is not bound to {wanted}", [], [f"call `module.set(name, …)` with {made} before the launch"]
        case TextureReason.OTHER_KIND:
            return f"the handle of {_KINDS[fault.value][0]} where {wanted} is needed", [], [f"pass {made} instead"]
        case TextureReason.OTHER_GEOMETRY:
            own, asked = GEOMETRIES[fault.value], GEOMETRIES[fault.limit]
            message = f"`.{asked}` coordinates for a `.{own}` texture or surface"
            return message, ["a GPU returns other texels, or zeros, and reports nothing"], [f"say `geometry={asked!r}`"]
    if fault.value:
        helps = ["give the coordinate as `.s32`, or leave `storage='linear'` out"]
        return "a texture in linear memory is not sampled", ["a GPU returns zeros, and reports nothing"], helps
    helps = ["say `storage='linear'`, or give the coordinate as `.f32`"]
    return "`.1d` with a `.s32` coordinate fetches from linear memory only", ["a GPU returns zeros here"], helps


def _variable_of(fault: FaultSnapshot) -> str:
    """The variable of the module that a handle belongs to."""
    variables = fault.launch.compiled.variables
    for variable in variables.by_name.values():
        start = variables.handles.get(id(variable), 0)
        if start and start <= fault.address < start + 8 * (variable.elements or 1):
            return f"`{variable.name}`"
    return "the variable"


def explain_bad_surface_coordinate(fault: FaultSnapshot) -> Diagnostic:
    """An access to a surface where it has no bytes, or in the middle of an element."""
    if fault.reason == SurfaceReason.MISALIGNED:
        return fault.error(
            "misaligned-access",
            f"access to byte {fault.signed_value} of a surface row, not a multiple of {fault.limit}",
            helps=[f"the first coordinate counts bytes: let it be a multiple of {fault.limit}"],
        )
    unit = _EXTENTS[fault.record.get("dimension")]
    counts = ["the first coordinate of `.b` forms counts bytes, not elements"] if unit == _EXTENTS[0] else []
    return fault.error(
        "out-of-bounds",
        f"access to a surface outside of its {fault.limit} {unit}: the coordinate is {fault.signed_value}",
        notes=counts,
        helps=["`.clamp` or `.zero` instead of `.trap` allow coordinates outside"],
    )
