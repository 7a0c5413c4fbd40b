"""The types of native functions: integers, floats, booleans, pointers, and structures laid out as C does.

A type is called to convert: `u32(x)` wraps around, in Python as in machine code. A structure is a class of annotated
fields; a field that is a structure is inside, as in C, and so is one that is an `Array[u32, 16]`. Variables and
parameters of a structure's type refer to one, as in Python; `Pointer[Node]` is the address of the first of several.
To mypy, integers are `int`, floats are `float`, and an array is as its elements are.
"""

from __future__ import annotations

import struct as packing
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, get_origin, overload

T = TypeVar("T")


class Type:
    """A type of values: `llvm` is its name in LLVM, `size` its bytes in memory, which are also its alignment."""

    __slots__ = ("llvm", "name", "size")

    def __init__(self, name: str, llvm: str, size: int) -> None:
        self.name = name
        self.llvm = llvm
        self.size = size

    @property
    def stride(self) -> int:
        """The bytes from one to the next in an array."""
        return self.size

    def __repr__(self) -> str:
        return self.name

    def __or__(self, other: object) -> Type:
        return self  # `Pointer[u8] | None`: any pointer may be null


class Integer(Type):
    """An integer of a fixed width."""

    __slots__ = ("_half", "_mask", "bits", "signed")

    def __init__(self, name: str, bits: int, signed: bool) -> None:
        super().__init__(name, f"i{bits}", bits // 8)
        self.bits = bits
        self.signed = signed
        self._mask = (1 << bits) - 1
        self._half = 1 << (bits - 1) if signed else 0

    def __call__(self, value: float) -> int:
        """The value, wrapped around to the width; a float is cut to an integer first."""
        return ((int(value) + self._half) & self._mask) - self._half

    def holds(self, value: int) -> bool:
        return -self._half <= value <= self._mask - self._half


class Float(Type):
    """An IEEE 754 number of 32 or 64 bits."""

    __slots__ = ("bits",)

    def __init__(self, name: str, llvm: str, bits: int) -> None:
        super().__init__(name, llvm, bits // 8)
        self.bits = bits

    def __call__(self, value: float) -> float:
        """The value, rounded to the nearest of this type."""
        if self.bits == 64 or value != value:
            return float(value)
        try:
            return float(packing.unpack("f", packing.pack("f", value))[0])
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")


class Boolean(Type):
    """True or false: one bit in a register, a byte in memory."""

    __slots__ = ()

    def __call__(self, value: object) -> bool:
        return bool(value)


class PointerType(Type):
    """The address of elements of one type; `Pointer[u8]` makes one."""

    __slots__ = ("element",)

    def __init__(self, element: Type) -> None:
        super().__init__(f"Pointer[{element.name}]", "ptr", 8)
        self.element = element


def memory_name(type: Type) -> str:
    """LLVM's name of a type in memory."""
    return "i8" if isinstance(type, Boolean) else type.llvm


class ArrayType(Type):
    """A field of a structure that is several elements; `Array[u32, 16]` makes one."""

    __slots__ = ("element", "length")

    def __init__(self, element: Any, length: int) -> None:
        super().__init__(f"Array[{getattr(element, 'name', element)}, {length}]", "ptr", 0)
        self.element = element
        self.length = length


class StructType(Type):
    """A reference to a structure. Its fields are laid out when they are first asked for, so that they may name it.

    `arguments` are the types of a generic structure's parameters, by name.
    """

    __slots__ = ("_alignment", "_extent", "_fields", "arguments", "owner")

    def __init__(self, owner: type, arguments: Mapping[str, Type] | None = None) -> None:
        self.arguments = arguments or {}
        names = ", ".join(argument.name for argument in self.arguments.values())
        super().__init__(f"{owner.__name__}[{names}]" if names else owner.__name__, "ptr", 8)
        self.owner = owner
        self._fields: dict[str, tuple[int, Type]] = {}
        self._extent = 0
        self._alignment = 1

    @property
    def fields(self) -> Mapping[str, tuple[int, Type]]:
        """The offset and the type of each."""
        if not self._fields:
            self._lay_out()
        return self._fields

    @property
    def stride(self) -> int:
        """The bytes that one structure takes."""
        return len(self.fields) and self._extent

    def _lay_out(self) -> None:
        namespace = {**vars(sys.modules[self.owner.__module__]), self.owner.__name__: self.owner, **self.arguments}
        offset = 0
        for name, annotation in self.owner.__annotations__.items():
            type = type_of(annotation, namespace)
            assert type is not None, f"{name}: a field has a type"
            size, alignment = _extent_of(type)
            offset = (offset + alignment - 1) // alignment * alignment
            self._fields[name] = (offset, type)
            offset += size
            self._alignment = max(self._alignment, alignment)
        self._extent = (offset + self._alignment - 1) // self._alignment * self._alignment


def _extent_of(type: Type) -> tuple[int, int]:
    """The size and the alignment of a field."""
    if isinstance(type, StructType):
        return type.stride, type._alignment
    if isinstance(type, ArrayType):
        size, alignment = _extent_of(type.element)
        return size * type.length, alignment
    return type.size, type.size


class TupleType(Type):
    """Several results of one function, taken apart by the caller: `-> tuple[u32, u64]`."""

    __slots__ = ("elements",)

    def __init__(self, elements: tuple[Type, ...]) -> None:
        names = ", ".join(element.name for element in elements)
        super().__init__(f"tuple[{names}]", "{ " + ", ".join(element.llvm for element in elements) + " }", 0)
        self.elements = elements


class TypeParameter(Type):
    """The `T` of a generic function or structure, before its type is known."""

    __slots__ = ()


_PARAMETERS: dict[Any, TypeParameter] = {}
_POINTERS: dict[Type, PointerType] = {}


def pointer_to(element: Type) -> PointerType:
    """The one type of pointers to `element`."""
    found = _POINTERS.get(element)
    if found is None:
        found = _POINTERS[element] = PointerType(element)
    return found


_STRUCTS: dict[tuple[type, tuple[Type, ...]], StructType] = {}


def _generic_struct(alias: Any, namespace: Mapping[str, Any]) -> StructType:
    """The one structure of `Growable[u32]`."""
    owner = alias.__origin__
    arguments: Any = tuple(type_of(argument, namespace) for argument in alias.__args__)
    found = _STRUCTS.get((owner, arguments))
    if found is None:
        names = [parameter.__name__ for parameter in owner.__parameters__]
        found = _STRUCTS[owner, arguments] = StructType(owner, dict(zip(names, arguments, strict=True)))
    return found


class _Later:
    """`Pointer["Node"]`, before there is a `Node`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def type_of(annotation: Any, namespace: Mapping[str, Any]) -> Type | None:
    """The type that an annotation means, names looked up in `namespace`; None where it is None. Or a TypeError."""
    if isinstance(annotation, str):
        annotation = eval(annotation, dict(namespace))
    if isinstance(annotation, ArrayType):
        return ArrayType(type_of(annotation.element, namespace), annotation.length)
    if isinstance(annotation, Type):
        return annotation
    if annotation is None or annotation is NoneType:
        return None
    if isinstance(annotation, _Later):
        element = type_of(annotation.name, namespace)
        assert element is not None
        return pointer_to(element)
    if isinstance(annotation, type) and isinstance(found := annotation.__dict__.get("__native__"), StructType):
        return found
    if isinstance(annotation, TypeVar):
        return _PARAMETERS.setdefault(annotation, TypeParameter(annotation.__name__, "ptr", 0))
    if hasattr(get_origin(annotation), "__native__"):
        return _generic_struct(annotation, namespace)
    if isinstance(annotation, UnionType):  # `Node | None`
        (annotation,) = (part for part in annotation.__args__ if part is not NoneType)
        return type_of(annotation, namespace)
    if isinstance(annotation, GenericAlias) and annotation.__origin__ is tuple:
        elements = [type_of(part, namespace) for part in annotation.__args__]
        return TupleType(tuple(element for element in elements if element is not None))
    raise TypeError(
        f"`{annotation!r}` is not a native type; there are u8 to u128, s8 to s64, f32, f64, boolean, Pointer[…]"
    )


def struct(owner: type[T]) -> type[T]:
    """Make a class of annotated fields a structure."""
    owner.__native__ = StructType(owner)  # type: ignore[attr-defined]
    return owner


@cache
def size_of(type: Any) -> int:
    """The bytes that one value takes in memory; of a structure, all of it."""
    found = type_of(type, {})
    assert found is not None
    return found.stride


def offset_of(owner: type, field: str) -> int:
    """The bytes from the start of a structure to one of its fields; `a.b` is the field `b` of the part `a`."""
    return field_of(owner, field)[0]


@cache
def field_of(owner: type, field: str) -> tuple[int, Type]:
    """The offset and the type of a field of a structure; `a.b` is the field `b` of the part `a`."""
    offset, found = 0, type_of(owner, {})
    for name in field.split("."):
        assert isinstance(found, StructType), f"{owner.__name__} has no field {field}"
        at, found = found.fields[name]
        offset += at
    assert found is not None
    return offset, found


if TYPE_CHECKING:
    u8: TypeAlias = int
    u16: TypeAlias = int
    u32: TypeAlias = int
    u64: TypeAlias = int
    u128: TypeAlias = int
    s8: TypeAlias = int
    s16: TypeAlias = int
    s32: TypeAlias = int
    s64: TypeAlias = int
    f32: TypeAlias = float
    f64: TypeAlias = float
    boolean: TypeAlias = bool

    class Pointer(Generic[T]):
        """The address of values of one type. Fields of a structure can be reached through it, unchecked by mypy."""

        def __getitem__(self, index: int) -> T: ...
        def __setitem__(self, index: int, value: T) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...
        def __add__(self, count: int) -> Pointer[T]: ...
        @overload
        def __sub__(self, other: int) -> Pointer[T]: ...
        @overload
        def __sub__(self, other: Pointer[T]) -> int: ...
        def __sub__(self, other: Any) -> Any: ...
        def __lt__(self, other: Pointer[T]) -> bool: ...
        def __le__(self, other: Pointer[T]) -> bool: ...
        def __gt__(self, other: Pointer[T]) -> bool: ...
        def __ge__(self, other: Pointer[T]) -> bool: ...
        def __iter__(self) -> Iterator[T]: ...
else:
    u8 = Integer("u8", 8, False)
    u16 = Integer("u16", 16, False)
    u32 = Integer("u32", 32, False)
    u64 = Integer("u64", 64, False)
    u128 = Integer("u128", 128, False)
    s8 = Integer("s8", 8, True)
    s16 = Integer("s16", 16, True)
    s32 = Integer("s32", 32, True)
    s64 = Integer("s64", 64, True)
    f32 = Float("f32", "float", 32)
    f64 = Float("f64", "double", 64)
    boolean = Boolean("boolean", "i1", 1)

    class Pointer(Generic[T]):
        """The address of values of one type. In plain Python a list takes its place."""

        def __class_getitem__(cls, element: Any) -> Any:
            if isinstance(element, str):
                return _Later(element)
            return pointer_to(type_of(element, {}))

    class Array:
        """Elements inside a structure, one after the other."""

        def __class_getitem__(cls, parts: tuple[Any, int]) -> ArrayType:
            return ArrayType(*parts)
