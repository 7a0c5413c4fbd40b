"""What memory holds, as annotations say it: numbers of PTX, pointers, structures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ptxlab.author.lines import refuse
from ptxlab.author.values import Scalar
from ptxlab.isa import Type

_MEMORY_TYPES = frozenset("b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64".split())


@dataclass(frozen=True, slots=True)
class PointerType:
    """`pointer[f32]` in an annotation."""

    element: Any  # a number of PTX, or a structure
    space: str | None = "global"


@dataclass(frozen=True, slots=True)
class StructType:
    """Several bytes; `fields` are offset and annotation by name, `cls` is the class that names them."""

    size: int
    align: int = 8
    fields: Mapping[str, tuple[int, Any]] = field(default_factory=dict)
    cls: type[Structure] | None = None

    def __str__(self) -> str:
        return f"struct[{self.size}, {self.align}]" if self.cls is None else self.cls.__name__


class Structure:
    """The base of `struct`, by which annotations know a structure."""


def element_of(element: object) -> type[Scalar]:
    """The type of an element, where it is one that memory holds."""
    if isinstance(element, type) and issubclass(element, Scalar) and element.type.kind != "p":
        return element
    name = element.__name__ if isinstance(element, type) else f"{element!r:.40}"
    helps = ["an element is a PTX number: `f32`, `u8`, `b64`"]
    return refuse("missing-type", f"`{name}` is not a PTX type that memory holds", helps=helps)


def is_structure(element: object) -> bool:
    """Whether it has several fields: a subclass of `struct`, or `struct[24, 8]`."""
    return isinstance(element, StructType) or (isinstance(element, type) and issubclass(element, Structure))


def spell_element(element: object) -> str:
    """The element type, as an annotation writes it."""
    return str(getattr(element, "__name__", element))


def stores(wanted: Type, given: Type) -> bool:
    """Whether a register can be stored as another type: as untyped bits of its width, and as bytes."""
    return wanted.width <= 8 or given is wanted or ("b" in (given.kind, wanted.kind) and given.width == wanted.width)


def memory_type(element: type[Scalar]) -> str:
    """What `ld` and `st` call a type: itself, or bits of its width."""
    return element.type.name if element.type.name in _MEMORY_TYPES else f"b{element.type.width}"
