"""Values of a recorded launch as C++ has them: results of expressions, and objects with a type and a place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ptxlab.debug.types import CudaType, named, pointer_to

_MOST_ELEMENTS, _MOST_DEEP = 32, 6  # that are shown of an array, and of structures inside each other
_WIDE = 1024  # numbers from here on are shown in hexadecimal, too


class UnknownError(ValueError):
    """What was asked for is not there, or cannot be read."""


class UnwrittenError(UnknownError):
    """It exists, and has no value yet, or none here."""


class ReadableMemory(Protocol):
    """What a thread can read."""

    def read(self, space: str, address: int, size: int) -> bytes:
        """Bytes of a state space; `UnknownError` where there is no memory."""
        ...

    def place(self, space: str, address: int) -> str:
        """What is at an address: `A[3]`, or nothing that has a name."""
        ...


@dataclass(frozen=True)
class Result:
    """A number; without a type, one of any size, as Python has them."""

    value: Any
    type: CudaType | None = None


@dataclass(frozen=True)
class Object:
    """Something of a type: in memory, or as bytes."""

    type: CudaType
    space: str = ""
    address: int = 0
    data: bytes | None = None
    bits: tuple[int, int] | None = None

    def content(self, memory: ReadableMemory) -> bytes:
        """Its bytes."""
        if self.data is not None:
            return self.data[self.address :][: self.type.size]
        return memory.read(self.space, self.address, self.type.size)

    def part(self, type: CudaType, offset: int, bits: tuple[int, int] | None = None) -> Object:
        """A part of it."""
        return replace(self, type=type, address=self.address + offset, bits=bits)


Operand = Result | Object


def load(operand: Operand, memory: ReadableMemory) -> Result:
    """The number that is somewhere; an array is the address of its first element."""
    if isinstance(operand, Result):
        return operand
    operand = resolve(operand, memory)
    type = operand.type
    if type.kind == "array":
        return address_of(operand.part(type.element, 0))
    if type.kind not in ("number", "pointer", "enumeration"):
        raise UnknownError(f"`{type}` is not a number")
    value = type.decode(operand.content(memory))
    if operand.bits is not None:
        first, count = operand.bits
        value = int(value) >> first & (1 << count) - 1
        value -= (value >> count - 1) << count if type.is_signed else 0
    return Result(value, type)


def resolve(object: Object, memory: ReadableMemory) -> Object:
    """What a reference refers to; anything else is itself."""
    if object.type.kind != "reference":
        return object
    address = int.from_bytes(object.content(memory), "little")
    return Object(object.type.element, "generic", address)


def address_of(object: Object) -> Result:
    """A pointer to something in memory."""
    if object.data is not None:
        raise UnknownError("it is in a register, which has no address")
    if object.bits is not None:
        raise UnknownError("it is a bit field, which has no address")
    return Result(object.address, pointer_to(object.type, object.space))


def dereference(operand: Operand, memory: ReadableMemory) -> Object:
    """What a pointer points to."""
    pointer = load(operand, memory)
    if pointer.type is None or pointer.type.kind != "pointer":
        raise UnknownError("only a pointer has something to point to: write `(float *) address`, or `f32[address]`")
    if pointer.type.element.kind == "void":
        raise UnknownError("the pointer is to `void`: say to what, as in `*(float *) p`")
    return Object(pointer.type.element, pointer.type.space, int(pointer.value))


def element(operand: Operand, index: int, memory: ReadableMemory) -> Object:
    """An element of an array, or from a pointer on."""
    if isinstance(operand, Object):
        operand = resolve(operand, memory)
        type = operand.type
        if type.kind == "array":
            if type.count is not None and not 0 <= index < type.count:
                raise UnknownError(f"index {index} is out of bounds of `{type}`")
            return operand.part(type.element, index * type.element.size)
        if type.kind not in ("pointer", "array"):
            raise UnknownError(f"`{type}` has no elements")
    first = dereference(operand, memory)
    return first.part(first.type, index * first.type.size)


def member(operand: Operand, name: str, memory: ReadableMemory) -> Object:
    """A member of a structure."""
    if isinstance(operand, Result):
        raise UnknownError(f"a number has no member `{name}`")
    operand = resolve(operand, memory)
    if operand.type.kind == "pointer":
        operand = dereference(operand, memory)
    found = operand.type.member(name)
    if found is None:
        known = ", ".join(one.name for one in operand.type.members) or "none"
        raise UnknownError(f"`{operand.type}` has no member `{name}`; it has {known}")
    return operand.part(found.type, found.offset, found.bits)


# Arithmetic.


def converted(value: float, type: CudaType | None) -> Result:
    """A number as a type has it: whole numbers wrap around, floats are rounded."""
    if type is None or type.kind == "void":
        return Result(value, type)
    if type.kind in ("pointer", "enumeration") or type.dtype is None:
        return Result(int(value) & (1 << 64) - 1 if type.kind == "pointer" else int(value), type)
    if type.dtype.kind == "b":
        return Result(bool(value), type)
    if type.is_integer:
        if isinstance(value, float) and not math.isfinite(value):
            raise UnknownError(f"{value} is not a whole number")
        bits = 8 * type.size
        wrapped = int(value) & (1 << bits) - 1
        return Result(wrapped - (1 << bits) if type.is_signed and wrapped >> bits - 1 else wrapped, type)
    with np.errstate(over="ignore"):
        return Result(float(np.array(value, np.float64).astype(type.dtype)), type)


def common(one: Result, other: Result) -> CudaType | None:
    """The type in which two numbers are computed with: the usual arithmetic conversions of C++."""
    types = [operand.type for operand in (one, other) if operand.type is not None and operand.type.dtype is not None]
    floats = [type for type in types if not type.is_integer]
    if floats:
        return max(floats, key=lambda one: one.size)
    if any(isinstance(operand.value, float) for operand in (one, other)) or not types:
        return None
    widest = max(types, key=lambda one: (one.size, not one.is_signed))
    if widest.size < 4:
        widest = named("int") or widest
    limit = 1 << 8 * widest.size
    if any(not -limit < int(operand.value) < limit for operand in (one, other) if operand.type is None):
        return None  # a number that is written in full, and does not fit
    return widest


# Text.


def text(operand: Operand, memory: ReadableMemory, style: str = "", depth: int = 0) -> str:
    """An operand as people read it; `style` is a letter of gdb's `print/x`."""
    if isinstance(operand, Object):
        operand = resolve(operand, memory)
        if operand.type.kind == "array":
            return _array_text(operand, memory, style, depth)
        if operand.type.kind == "structure":
            if depth >= _MOST_DEEP:
                return "{…}"
            parts = (
                f"{one.name} = {_member_text(operand, one.name, memory, style, depth)}"
                for one in operand.type.members
                if one.name
            )
            return "{" + ", ".join(parts) + "}"
        if operand.type.kind == "void":
            raise UnknownError("it has no type that can be shown")
        operand = load(operand, memory)
    return number_text(operand, memory, style)


def _member_text(object: Object, name: str, memory: ReadableMemory, style: str, depth: int) -> str:
    return text(member(object, name, memory), memory, style, depth + 1)


def _array_text(object: Object, memory: ReadableMemory, style: str, depth: int) -> str:
    type = object.type
    if type.count is None:
        return f"{type} at {object.space}:{object.address:#x}"
    if type.element.is_character and not style:
        data = object.content(memory).partition(b"\0")[0]
        if data and all(32 <= byte < 127 for byte in data):
            return f'"{data.decode()}"'
    if depth >= _MOST_DEEP:
        return "{…}"
    most = _MOST_ELEMENTS if depth == 0 else 8
    shown = [text(element(object, index, memory), memory, style, depth + 1) for index in range(min(type.count, most))]
    return "{" + ", ".join([*shown, *(["…"] if type.count > most else [])]) + "}"


def number_text(result: Result, memory: ReadableMemory, style: str = "") -> str:
    """A number: whole numbers also in hexadecimal where they are large, pointers with what is there."""
    value, type = result.value, result.type
    styled = _STYLES.get(style)
    if styled is not None:
        return styled(value, type)
    if isinstance(value, bool):
        return str(value).lower()
    if type is not None and type.kind == "pointer":
        place = memory.place(type.space, int(value)) if type.target is not None else ""
        return f"({type}) {int(value):#x}{f' <{place}>' if place else ''}"
    if type is not None and type.kind == "enumeration":
        return type.enumerators.get(int(value), f"({type}) {int(value)}")
    if type is not None and type.is_character and 32 <= int(value) < 127:
        return f"{value} '{chr(int(value))}'"
    if type is not None and type.dtype is not None and not type.is_integer:
        rounded = str(np.array(value).astype(type.dtype)) if type.size < 8 else repr(float(value))
        return f"{rounded}.0" if re.fullmatch(r"-?\d+", rounded) else rounded  # some types of 16 bits leave it out
    if isinstance(value, int):
        return f"{value}" if -_WIDE < value < _WIDE else f"{value} ({value & (1 << 64) - 1:#x})"
    return str(value)


def _pattern(value: Any, type: CudaType | None) -> int:
    """The bits of a number."""
    if isinstance(value, float) and type is not None and type.dtype is not None:
        return int.from_bytes(np.array(value).astype(type.dtype).tobytes(), "little")
    return int(value) & (1 << (64 if type is None else 8 * max(type.size, 1))) - 1


def _as_float(value: object, type: CudaType | None) -> str:
    if isinstance(value, float):
        return repr(value)
    size = 4 if type is None else type.size
    kind = {2: "<f2", 4: "<f4", 8: "<f8"}.get(size)
    return str(np.frombuffer(_pattern(value, type).to_bytes(8, "little")[:size], kind)[0]) if kind else str(value)


_STYLES: dict[str, Callable[[Any, CudaType | None], str]] = {
    "x": lambda value, kind: f"{_pattern(value, kind):#x}",
    "o": lambda value, kind: f"0{_pattern(value, kind):o}",
    "t": lambda value, kind: f"{_pattern(value, kind):b}",
    "u": lambda value, kind: str(_pattern(value, kind)),
    "d": lambda value, kind: str(int(value)),
    "a": lambda value, kind: f"{_pattern(value, kind):#x}",
    "c": lambda value, kind: f"{int(value)} '{chr(int(value) & 0xFF)}'",
    "f": _as_float,
}
STYLES = "".join(_STYLES)


def plain(operand: Operand, memory: ReadableMemory) -> Any:
    """An operand for Python: a number, an array of NumPy, or the object itself, of a structure."""
    if isinstance(operand, Result):
        return operand.value
    operand = resolve(operand, memory)
    shape = list(_shape(operand.type))
    inner = operand.type
    while inner.kind == "array":
        inner = inner.element
    if operand.type.kind == "array" and inner.dtype is not None and None not in shape:
        return np.frombuffer(operand.content(memory), inner.dtype).reshape([one or 0 for one in shape]).copy()
    return load(operand, memory).value if operand.type.kind not in ("array", "structure", "void") else operand


def _shape(type: CudaType) -> Iterator[int | None]:
    while type.kind == "array":
        yield type.count
        type = type.element
