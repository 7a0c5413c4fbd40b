"""Structures: several fields that are passed as one, laid out as C lays them out.

A subclass of `struct` names the fields. An object of it, `Ray(x, 1.0)`, holds them in registers, and writes nothing
until it is passed, returned or stored; `fields.py` has structures in memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ptxlab.author.elements import PointerType, StructType, Structure, spell_element, stores
from ptxlab.author.lines import SourcePosition, here, refuse
from ptxlab.author.operand import describe
from ptxlab.author.operators import conversion
from ptxlab.author.pointers import Pointer
from ptxlab.author.values import Scalar


class struct(Structure):  # noqa: N801 - used in annotations beside `f32`
    """`struct[24, 8]` has 24 bytes, aligned to 8; a subclass names its fields, laid out as in C."""

    def __class_getitem__(cls, item: object) -> StructType:
        size, align = item if isinstance(item, tuple) else (item, 8)
        return StructType(size, align)

    def __init__(self, *values: object, **named: object) -> None:
        cls = type(self)
        fields = structure_of(cls, here()).fields
        given = dict(zip(fields, values, strict=False))
        known = f"it has {', '.join(f'`{name}`' for name in fields)}"
        if len(values) > len(fields):
            refuse("operand-count", f"`{cls.__name__}` has {len(fields)} fields, {len(values)} given", helps=[known])
        for name, value in named.items():
            if name not in fields or name in given:
                wrong = "is given twice" if name in given else f"is not a field of `{cls.__name__}`"
                refuse("unknown-argument", f"`{name}` {wrong}", helps=[known])
            given[name] = value
        missing = [f"`{name}`" for name in fields if name not in given]
        if missing:
            refuse("operand-count", f"`{cls.__name__}` lacks {', '.join(missing)}", helps=[known])
        for name, (_, annotation) in fields.items():
            check_given(f"`{name}` of `{cls.__name__}`", annotation, given[name])
            setattr(self, name, given[name])


if TYPE_CHECKING:

    class tensor_map(Pointer):  # noqa: N801 - used in annotations beside `struct`
        """What `ptxlab.tensor_map` makes: a parameter that tensor copies are given by its address, `map.generic`."""
else:
    tensor_map = struct[128, 64]


def tensor_maps(count: int) -> StructType:
    """The annotation of one parameter with several tensor maps: each is 128 bytes after the one before."""
    return StructType(128 * count, 64)


def structure_of(annotation: object, position: SourcePosition) -> Any:
    """What an annotation means: a subclass of `struct` is its layout, all others are themselves."""
    if not (isinstance(annotation, type) and issubclass(annotation, struct)):
        return annotation
    annotations = inspect.get_annotations(annotation, eval_str=True)
    parts = {name: structure_of(part, position) for name, part in annotations.items()}
    for name, part in parts.items():
        if not (isinstance(part, (PointerType, StructType)) or is_number(part)):
            refuse(
                "missing-type",
                f"the field `{name}` of `{annotation.__name__}` is not of a PTX type: {part!r:.60}",
                helps=["a field is a number, a pointer or a structure: `f32`, `pointer[f32]`"],
                position=position,
            )
    if not parts:
        refuse(
            "missing-type",
            f"`{annotation.__name__}` has no fields",
            helps=["annotate them: `x: f32`"],
            position=position,
        )
    offsets, size, align = lay_out(parts.values())
    return StructType(size, align, dict(zip(parts, zip(offsets, parts.values(), strict=True), strict=True)), annotation)


def is_number(annotation: object) -> bool:
    """Whether an annotation is a type that memory can hold."""
    return isinstance(annotation, type) and issubclass(annotation, Scalar) and annotation.type.kind != "p"


def lay_out(annotations: Iterable[Any]) -> tuple[list[int], int, int]:
    """The offset of each of several values, as in a structure of C, and the size and alignment of all."""
    offsets, size, largest = [], 0, 1
    for annotation in annotations:
        if isinstance(annotation, StructType):
            width, align = annotation.size, annotation.align
        else:
            width = align = 8 if isinstance(annotation, PointerType) else annotation.type.width // 8
        offsets.append(-(-size // align) * align)
        size, largest = offsets[-1] + width, max(largest, align)
    return offsets, -(-size // largest) * largest, largest


class InMemory:
    """A structure in memory, and its address."""

    _type: StructType
    _root: Pointer


def check_given(what: str, annotation: Any, value: Any) -> None:
    """Refuse a pointer that points elsewhere, another structure than the one wanted, and a number of another type."""
    helps: list[str] = []
    if isinstance(annotation, PointerType):
        element = spell_element(annotation.element)
        fits = isinstance(value, Pointer) and value.space == annotation.space and value.element == annotation.element
        wanted = f"pointer[{element}, {annotation.space or 'generic'}]"
        if isinstance(value, Pointer):
            is_other = value.element != annotation.element
            helps += [f"`x.view({element})` points to other elements"] * is_other
            helps += ["`x.generic` may point anywhere"] * (annotation.space is None is not value.space)
        elif not isinstance(value, Scalar):
            helps += ["as an argument of a launch, give the fields as a tuple: `(array, 2.0)`"]
    elif isinstance(annotation, StructType):
        given = value._type if isinstance(value, InMemory) else structure_of(type(value), here())
        fits = isinstance(given, StructType) and given.cls is annotation.cls
        if annotation.cls is None and isinstance(given, StructType):
            fits = given.size == annotation.size and given.align >= annotation.align
        wanted = f"a `{annotation}`"
    else:
        is_other = isinstance(value, Scalar) and not stores(annotation.type, value.type)
        fits = (
            not isinstance(value, (Pointer, struct, InMemory, tuple, list, str)) and value is not None and not is_other
        )
        wanted = f"a `{annotation.type.name}`"
        helps = [f"convert it: {conversion(annotation.type, value.type)}"] if is_other else []
    if not fits:
        refuse("operand-type", f"{what} is {_described(value)}, expected {wanted}", helps=helps)


def _described(value: object) -> str:
    if isinstance(value, InMemory):
        return f"a `{value._type}`"
    return f"a `{type(value).__name__}`" if isinstance(value, struct) else describe(value)


def has_fields(annotation: object) -> bool:
    """Whether every byte of a value has a name and a type, so that registers can hold it."""
    if not isinstance(annotation, StructType):
        return True
    return annotation.cls is not None and all(has_fields(part) for _, part in annotation.fields.values())
