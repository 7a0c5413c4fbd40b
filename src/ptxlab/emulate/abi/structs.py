"""A structure of the runtime in memory that Python owns: fields are read and written by name."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from ptxlab.native import size_of
from ptxlab.native.checking import share
from ptxlab.native.types import StructType, field_of

T = TypeVar("T")
_LINE = 128  # bytes of memory that cores pass to each other at a time


def zeroed_bytes(size: int) -> ctypes.Array[ctypes.c_char]:
    """Zeroed memory that shares no cache line with anything else, so that cores do not wait for each other."""
    whole = (ctypes.c_char * (max(size, 1) + 2 * _LINE))()
    skipped = -ctypes.addressof(whole) % _LINE
    return share((ctypes.c_char * (max(size, 1) + _LINE)).from_buffer(whole, skipped), size)


class StructArray:
    """One structure, or an array of `count` of them; `address` is where it is."""

    def __init__(self, owner: type, count: int = 1) -> None:
        self.owner = owner
        self.stride = size_of(owner)
        self.capacity = count
        self.memory = zeroed_bytes(self.stride * count)
        self.address = ctypes.addressof(self.memory)

    @classmethod
    def at(cls, owner: type, address: int) -> StructArray:
        """A structure that machine code owns, or the first of an array of them."""
        found = cls.__new__(cls)
        found.owner, found.stride, found.address = owner, size_of(owner), address
        return found

    def part(self, name: str, index: int = 0) -> StructArray:
        """A structure inside one of them."""
        offset, type = field_of(self.owner, name)
        assert isinstance(type, StructType), name
        return StructArray.at(type.owner, self.address + index * self.stride + offset)

    def set(self, index: int = 0, **fields: int) -> None:
        """Write fields of one of them."""
        for name, value in fields.items():
            self._element(name, index).value = value

    def fill(self, name: str, values: Sequence[int], index: int = 0, bytes: int = 4) -> None:
        """Write the elements of a field that is an array of numbers of so many bytes."""
        offset, _ = field_of(self.owner, name)
        start = self.address + index * self.stride + offset
        for number, value in enumerate(values):
            _KINDS[bytes].from_address(start + bytes * number).value = value

    def value(self, owner: type[T], index: int = 0) -> T:
        """One of them as a value of its class, a dataclass of numbers and of other structures."""
        fields: dict[str, Any] = {}
        for name, (_, type) in owner.__dict__["__native__"].fields.items():
            is_part = isinstance(type, StructType)
            fields[name] = self.part(name, index).value(type.owner) if is_part else self.get(name, index)
        return owner(**fields)

    def get(self, name: str, index: int = 0) -> int:
        """Read a field; `a.b` is the field `b` of the part `a`."""
        return int(self._element(name, index).value)

    def _element(self, name: str, index: int) -> Any:
        offset, kind = _element(self.owner, name)
        return kind.from_address(self.address + index * self.stride + offset)


@cache
def _element(owner: type, name: str) -> tuple[int, Any]:
    """The offset of a field, and how Python reads it."""
    offset, type = field_of(owner, name)
    return offset, _KINDS[type.size]


_KINDS = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
