"""Structures in memory: each of their fields is one load, and where memory is written, one store.

A parameter of that type is in parameter memory; `pointer[Ray]` points to structures elsewhere, `rays[i].size`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxlab.author.elements import PointerType, StructType
from ptxlab.author.emit import emit
from ptxlab.author.lines import NoSuchName, here, refuse
from ptxlab.author.pointers import Pointer, address_class, pointing
from ptxlab.author.registers import class_of
from ptxlab.author.structures import InMemory, check_given, lay_out, structure_of
from ptxlab.author.values import Scalar, b8, u64
from ptxlab.isa import type_named


def in_parameter(name: str, offset: int = 0) -> Pointer:
    """A position in a parameter."""
    return Pointer(b8, "param", symbol=name, offset=offset)


class Struct(Pointer, InMemory):
    """Bytes without names."""

    def __init__(self, root: Pointer, type: StructType) -> None:
        super().__init__(b8, root.space, root.register, root.symbol, root.offset)
        self._type, self._root = type, root

    def field(self, cls: type[Scalar], offset: int) -> Any:
        """Load a number from that byte on."""
        return self.part(cls, offset).load()


class Fields(InMemory):
    """A structure with names: each of its fields is an access. It has no other names, which fields could have."""

    def __init__(self, root: Pointer, type: StructType) -> None:
        vars(self).update(_root=root, _type=type)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return load(*_field(self, name), in_place=True)

    def __setattr__(self, name: str, value: object) -> None:
        annotation, root = _field(self, name)
        if root.space in ("param", "const"):
            memory = {"param": "parameter", "const": "constant"}[root.space]
            refuse(
                "read-only-parameter",
                f"`{name}` of `{self._type}` is in {memory} memory, which is read-only",
                helps=[f"make another: `{self._type}({name}=..., ...)`"],
            )
        check_given(f"`{name}` of `{self._type}`", annotation, value)
        store(annotation, root, value)


def _field(fields: Fields, name: str) -> tuple[Any, Pointer]:
    """The type of a field and its offset."""
    known = fields._type.fields
    if name not in known:
        listed = ", ".join(f"`{name}`" for name in known)
        refuse("unknown-name", f"`{fields._type}` has no field `{name}`", helps=[f"it has {listed}"], raises=NoSuchName)
    offset, annotation = known[name]
    return annotation, fields._root.part(b8, offset)


class Structures(Pointer, to_structures=True):
    """A pointer to structures: `rays[i].size` is one load, `rays[i].size = x` one store, `rays[i] = ray` several."""

    def __init__(
        self,
        element: type[Scalar],
        space: str | None,
        register: Scalar | None = None,
        symbol: str | None = None,
        offset: int = 0,
    ) -> None:
        super().__init__(element, space, register, symbol, offset)
        self.type: StructType = structure_of(element, here())

    def _elsewhere(
        self, space: str | None, register: Scalar | None, symbol: str | None = None, offset: int = 0
    ) -> Pointer:
        return Structures(self.element, space, register, symbol, offset)

    @property
    def size(self) -> int:
        """Bytes of one structure."""
        return self.type.size

    def __getitem__(self, index: object) -> Any:
        return self.at(*(index if isinstance(index, tuple) else (index,))).load()  # it counts from the same register

    def load(self) -> Any:
        """The structure that this points to, in place."""
        return load(self.type, self, in_place=True)

    def store(self, value: object) -> None:
        """Write the structure that this points to, field by field."""
        check_given("what is stored", self.type, value)
        store(self.type, self, value)

    def vector(self, lanes: int) -> Pointer:
        """There are no vectors of structures."""
        refuse("vector-size", f"no instruction has vectors of `{self.type}`", helps=["`x.view(f32)` has of numbers"])


def load(annotation: Any, root: Pointer, in_place: bool = False) -> Any:
    """A number, pointer or structure of memory; with `in_place` a structure stays there."""
    if isinstance(annotation, PointerType):
        return load_pointer(annotation, root.part(u64, 0))
    if not isinstance(annotation, StructType):
        return root.part(annotation, 0).load()
    if annotation.cls is None:
        return Struct(root, annotation)
    if in_place:
        return Fields(root, annotation)
    return annotation.cls(*(load(part, root.part(b8, start)) for start, part in annotation.fields.values()))


def store(annotation: Any, root: Pointer, value: Any) -> None:
    """Write a number, pointer or structure to memory."""
    if isinstance(annotation, PointerType):
        root.part(u64, 0).store(_generic(value))
    elif not isinstance(annotation, StructType):
        root.part(annotation, 0).store(value)
    elif isinstance(value, InMemory):
        for start, size in _pieces(value._type):
            bits = class_of(type_named(f"b{8 * size}"))
            root.part(bits, start).store(value._root.part(bits, start).load())
    else:
        for name, (start, part) in structure_of(type(value), here()).fields.items():
            store(part, root.part(b8, start), getattr(value, name))


def _pieces(type: StructType) -> Iterator[tuple[int, int]]:
    """Where the fields are and their bytes, without the padding; without fields, the widest words there can be."""
    for start, part in type.fields.values():
        if isinstance(part, StructType):
            yield from ((start + inner, size) for inner, size in _pieces(part))
        else:
            yield start, lay_out([part])[1]
    start = type.size if type.fields else 0
    while start < type.size:
        size = min(8, type.align, (start & -start) or 8)
        while start + size > type.size:
            size //= 2
        yield start, size
        start += size


def load_pointer(type: PointerType, root: Pointer) -> Pointer:
    """A pointer from the host or out of a structure: it is generic, and `cvta` makes it one into its space."""
    address = root.load()
    if type.space is not None:
        wide = emit(f"cvta.to.{type.space}.u64", [address], out=u64())
        narrow = address_class(type.space) is not u64
        address = emit("cvt.u32.u64", [wide], out=address_class(type.space)()) if narrow else wide
    return pointing(type.element, type.space, address)


def _generic(pointer: Pointer) -> Scalar:
    """The address of a pointer as a structure holds it: a generic one."""
    address = pointer.address
    if pointer.space is None:
        return address
    if address.type.width == 32:
        address = emit("cvt.u64.u32", [address])
    value: Scalar = emit(f"cvta.{pointer.space}.u64", [address])
    return value
