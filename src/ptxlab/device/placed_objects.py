"""Textures, surfaces and samplers that a launch is given, with the handles that its kernel knows them by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.textures import HANDLE_BYTES, HANDLES, Sampler, Surface, Texture
from ptxlab.values import dataclass

_ROOM = 1 << 32  # addresses that are left for a surface and what is around it
SURFACES = 0x6000_0000_0000  # where surfaces start in the generic address space; arrays are above
_KINDS = {Texture: "texref", Surface: "surfref", Sampler: "samplerref"}


@dataclass(frozen=True)
class PlacedObject:
    """A texture, surface or sampler, the handle of it, and the address where a surface has its memory."""

    value: Any
    handle: int
    address: int
    name: str


@dataclass
class PlacedObjects:
    """Those of a launch: first those of variables of the module, which have the first handles, then arguments."""

    count: int = 0
    variables: int = 0
    placed: list[PlacedObject] = field(default_factory=list)

    def add(self, value: object, type: str, bytes: int, name: str) -> int:
        """The handle of an object that is given for a parameter of that type and that many bytes."""
        wanted = _KINDS[value.__class__]
        if bytes != HANDLE_BYTES or (type not in ("u64", "s64", "b64") and type != wanted):
            raise ValueError(f"a {value.__class__.__name__.lower()} needs a 64-bit parameter or a `.{wanted}`, "
                             f"this one is `.{type}`")  # fmt: skip
        self.count += 1
        return self.place(value, self.count - 1, name)

    def place(self, value: object, number: int, name: str) -> int:
        """The handle of an object of that number."""
        handle = HANDLES + HANDLE_BYTES * number
        self.placed.append(PlacedObject(value, handle, SURFACES + _ROOM * number, name))
        return handle


def objects_of(module: ir.Module, given: Mapping[str, Any]) -> PlacedObjects:
    """The objects of a module's variables: what the host has set them to, and samplers that PTX describes."""
    found = PlacedObjects()
    if not any(map(layout.is_opaque, module.variables)):
        return found
    variables = layout.Variables(module, [])
    for variable in variables.by_name.values():
        handle = variables.handles.get(id(variable))
        if handle is None:
            continue
        number = (handle - HANDLES) // HANDLE_BYTES
        elements = variable.elements or 1
        found.count = found.variables = number + elements
        values = given.get(variable.name)
        if values is None and variable.type.name == "samplerref":
            values = [_described(variable)] * elements
        for at, value in enumerate(values or ()):
            found.place(value, number + at, f"`{variable.name}`")
    return found


def kind_of(variable: ir.Variable) -> str:
    """`texref`, `surfref` or `samplerref`, for a variable that holds a handle."""
    return variable.type.name if variable.type.kind == "o" else "texref"


def fits(value: object, kind: str) -> bool:
    """Whether an object can be what a variable of that type refers to."""
    return _KINDS.get(value.__class__) == kind


_MODES = {"wrap": "wrap", "mirror": "mirror", "clamp_to_edge": "clamp", "clamp_to_border": "border",
          "clamp_ogl": "border"}  # fmt: skip


def _described(variable: ir.Variable) -> Sampler:
    """The sampler that an initial value describes: `{ addr_mode_0 = clamp_to_edge, filter_mode = linear }`."""
    initial = variable.initializer
    parts = initial.elements if isinstance(initial, ir.InitializerList) else ()
    fields = {part.name: part.value for part in parts if isinstance(part, ir.Field)}
    modes = tuple(_MODES.get(str(fields.get(f"addr_mode_{number}", "wrap")), "wrap") for number in range(3))
    filter = "linear" if fields.get("filter_mode") == "linear" else "point"
    forced = fields.get("force_unnormalized_coords")
    normalized = not (isinstance(forced, ir.Immediate) and forced.value)
    return Sampler(filter, modes, normalized)
