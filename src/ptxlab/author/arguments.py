"""Arguments of a launch, by the annotations of their parameters: what PTX's own types do not say.

A structure becomes its bytes, a tuple in its place its fields by their offsets, and a number for a `bf16` its bits. An
array whose elements are larger than those that the pointer points to is refused: the kernel would read halves of
numbers, as of NumPy's doubles for `pointer[f32]`. Smaller ones may be packed into words, or else the array is too
short, which the emulator reports; a pair is two floats or one word. Pointers to bytes and to untyped bits take memory
of any kind.
"""

from __future__ import annotations

import operator
import struct as bytes_of
from collections.abc import Iterator, Sequence
from typing import Any

from ptxlab.author.constants import fits, float_bits, is_number
from ptxlab.author.elements import PointerType, StructType, is_structure
from ptxlab.author.lines import here
from ptxlab.author.parameters import Parameter
from ptxlab.author.structures import struct, structure_of
from ptxlab.author.values import bf16
from ptxlab.isa import Type


def passed(parameter: Parameter, value: Any) -> Any:
    """An argument as the program takes it; raises a `ValueError` that says what is wrong with it."""
    annotation = parameter.annotation
    if isinstance(annotation, PointerType):
        _check_pointed(annotation, value)
    elif value is None and isinstance(annotation, type):
        raise ValueError(f"`None` is a null pointer, and the parameter is a `{annotation.__name__}`")
    elif isinstance(annotation, StructType) and isinstance(value, struct):
        return _structure(annotation, value)
    elif isinstance(annotation, StructType) and annotation.fields and isinstance(value, (tuple, list)):
        return dict(_placed(annotation, value, 0))
    elif annotation is bf16 and is_number(value) and not hasattr(value, "__index__"):
        return float_bits(float(value), "bf16")
    return value


def _check_pointed(annotation: PointerType, array: object) -> None:
    """Refuse an array whose elements are not those that a pointer points to."""
    if is_structure(annotation.element):
        _check_structures(structure_of(annotation.element, here()), array)
    else:
        _check_elements(annotation.element.type, array)


def _check_elements(wanted: Type, array: object) -> None:
    dtype = getattr(array, "dtype", None)
    size = getattr(dtype, "itemsize", 1)
    kind = getattr(dtype, "kind", "")
    bytes = wanted.width // (wanted.lanes if kind == "f" else 1) // 8
    if kind in ("f", "i", "u") and wanted.kind in "usf" and size > bytes > 1:
        raise ValueError(f"elements of {dtype} have {size} bytes, those of `pointer[{wanted.name}]` have {bytes}")


def _check_structures(wanted: StructType, array: object) -> None:
    dtype = getattr(array, "dtype", None)
    size = getattr(dtype, "itemsize", wanted.size)
    if getattr(dtype, "names", None) and size != wanted.size:  # other arrays may hold what they are made of
        raise ValueError(f"elements of {dtype} have {size} bytes, those of `pointer[{wanted}]` have {wanted.size}")


def _structure(type: StructType, value: object) -> bytes:
    if type.cls is not value.__class__:
        raise ValueError(f"a `{value.__class__.__name__}` is given, expected a `{type}`")
    data = bytearray(type.size)
    for name, (offset, annotation) in type.fields.items():
        part = getattr(value, name)
        if isinstance(annotation, PointerType):
            raise ValueError(f"the field `{name}` is a pointer, and only the launch knows addresses: give a tuple")
        found = (
            _structure(annotation, part) if isinstance(annotation, StructType) else _number(annotation.type, name, part)
        )
        data[offset : offset + len(found)] = found
    return bytes(data)


def _placed(type: StructType, values: Sequence[object], start: int) -> Iterator[tuple[int, object]]:
    """The values of a tuple, each at the offset of its field; arrays and tensor maps as they are."""
    if len(values) != len(type.fields):
        names = ", ".join(f"`{name}`" for name in type.fields)
        raise ValueError(f"{len(values)} value{'s' * (len(values) != 1)} for the fields {names} of `{type}`")
    for (name, (offset, annotation)), value in zip(type.fields.items(), values, strict=True):
        if isinstance(annotation, StructType) and annotation.fields and isinstance(value, (tuple, list)):
            yield from _placed(annotation, value, start + offset)
        elif isinstance(annotation, StructType):
            yield start + offset, _structure(annotation, value) if isinstance(value, struct) else value
        elif isinstance(annotation, PointerType):
            _check_pointed(annotation, value)
            yield start + offset, value
        else:
            yield start + offset, _number(annotation.type, name, value)


def _number(type: Type, name: str, value: Any) -> bytes:
    if not is_number(value) or (type.kind != "f" and not hasattr(value, "__index__")):
        raise ValueError(f"the field `{name}` is {value!r:.40}, expected a number of `{type.name}`")
    if type.name in ("f32", "f64"):
        return bytes_of.pack("<f" if type.name == "f32" else "<d", value)
    bits = float_bits(float(value), type.name) if type.kind == "f" else operator.index(value)
    if not fits(bits, type):
        raise ValueError(f"the field `{name}` is {value}, which does not fit into `{type.name}`")
    return (bits % (1 << type.width)).to_bytes(type.width // 8, "little")
