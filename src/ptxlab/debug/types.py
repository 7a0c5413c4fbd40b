"""Types of C++ as debug information has them, and of PTX and NumPy as the closest of C++."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import ml_dtypes
import numpy as np

from ptxlab.ir.dwarf import Data, DwarfReader, Entry

Kind = Literal["number", "pointer", "reference", "array", "structure", "enumeration", "void"]
_ENCODINGS = {2: "?", 4: "f", 5: "i", 6: "i", 7: "u", 8: "u", 0x10: "u"}  # of a base type
_QUALIFIERS = ("const", "volatile", "restrict")
# Structures of CUDA that are numbers to people.
_FLOATS: dict[str, Any] = {
    "__half": np.float16, "__nv_bfloat16": ml_dtypes.bfloat16, "__nv_fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "__nv_fp8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
_NAMES = {
    "bool": "?", "char": "i1", "signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2",
    "int": "i4", "unsigned int": "u4", "long": "i8", "unsigned long": "u8", "long long": "i8",
    "unsigned long long": "u8", "float": "f4", "double": "f8",
}  # fmt: skip
_ALIASES = {
    "unsigned": "unsigned int", "signed": "int", "short int": "short", "long int": "long", "size_t": "unsigned long",
    "int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short", "uint16_t": "unsigned short",
    "int32_t": "int", "uint32_t": "unsigned int", "int64_t": "long", "uint64_t": "unsigned long",
    "half": "__half", "__nv_bfloat16": "__nv_bfloat16", "__half": "__half",
}  # fmt: skip
_VECTOR = re.compile(r"(u?char|u?short|u?int|u?long|u?longlong|float|double)([1-4])")
_VECTORS = {
    "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long",
    "longlong": "long long", "ulonglong": "unsigned long long",
}  # fmt: skip


@dataclass(eq=False, slots=True)
class CudaType:
    """A type; what it points to or is an array of is its `target`."""

    kind: Kind
    name: str = ""
    size: int = 0
    dtype: np.dtype[Any] | None = None
    """Of a number or an enumeration."""
    target: CudaType | None = None
    count: int | None = None
    """Of the elements of an array; None if it is not known."""
    members: tuple[Member, ...] = ()
    enumerators: dict[int, str] = field(default_factory=dict)
    space: str = "generic"
    """Of a pointer: the state space of its addresses."""

    @property
    def is_integer(self) -> bool:
        return self.dtype is not None and self.dtype.kind in "iub?"

    @property
    def is_signed(self) -> bool:
        return self.dtype is not None and self.dtype.kind == "i"

    @property
    def is_character(self) -> bool:
        return self.name in ("char", "signed char", "unsigned char")

    @property
    def element(self) -> CudaType:
        """What it points to, or is an array of."""
        assert self.target is not None
        return self.target

    def member(self, name: str) -> Member | None:
        """A member of a structure, or of one that it inherits from, or that has no name."""
        for one in self.members:
            if one.name == name:
                return one
            inner = one.type.member(name) if one.name == "" or one.is_base else None
            if inner is not None:
                return Member(name, inner.type, one.offset + inner.offset, inner.bits)
        return None

    def decode(self, data: bytes) -> Any:
        """A number, an address, or the number of an enumerator."""
        if self.dtype is None:
            return int.from_bytes(data[: self.size], "little")
        if self.dtype.kind == "b":
            return bool(data[0])
        found = np.frombuffer(data[: self.size].ljust(self.size, b"\0"), self.dtype)[0]
        return int(found) if self.dtype.kind in "iu" else float(found)

    def __str__(self) -> str:
        if self.kind in ("pointer", "reference"):
            mark, inner = "*" if self.kind == "pointer" else "&", self.element
            if inner.kind == "array":
                return str(inner).replace(" [", f" ({mark})[", 1)
            return f"{inner}{'' if inner.kind == 'pointer' else ' '}{mark}"
        if self.kind == "array":
            inner, extents = self, ""
            while inner.kind == "array":
                extents += f"[{'' if inner.count is None else inner.count}]"
                inner = inner.element
            return f"{inner} {extents}"
        return self.name

    def declaring(self, name: str) -> str:
        """A declaration of a variable: `float As[4][4]`, `float *p`."""
        inner = self.element if self.kind in ("pointer", "reference") else self
        if inner.kind != "array":
            return f"{self}{'' if self.kind in ('pointer', 'reference') else ' '}{name}"
        return re.sub(
            r"\((\S+)\)| (?=\[)", lambda found: f"({found[1]}{name})" if found[1] else f" {name}", str(self), count=1
        )


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a structure; `bits` are the first bit and the number of them, of a bit field."""

    name: str
    type: CudaType
    offset: int
    bits: tuple[int, int] | None = None
    is_base: bool = False


VOID = CudaType("void", "void")


@cache
def named(name: str) -> CudaType | None:
    """A type that every program has."""
    name = _ALIASES.get(name, name)
    if name in _FLOATS:
        kind = np.dtype(_FLOATS[name])
        return CudaType("number", name, kind.itemsize, kind)
    if name == "void":
        return VOID
    found = _NAMES.get(name)
    several = _VECTOR.fullmatch(name)
    if several is not None:
        return vector(name, "xyzw"[: int(several[2])], _VECTORS.get(several[1], several[1]))
    return None if found is None else CudaType("number", name, np.dtype(found).itemsize, np.dtype(found))


@cache
def of_dtype(dtype: np.dtype[Any]) -> CudaType:
    """The type of the elements of an array of NumPy."""
    name = next((name for name, known in _NAMES.items() if np.dtype(known) == dtype), dtype.name)
    return CudaType("number", name, dtype.itemsize, dtype)


def array_of(element: CudaType, shape: Sequence[int | None]) -> CudaType:
    """An array with an extent for each dimension; the first may not be known."""
    for count in reversed(shape):
        element = CudaType("array", size=element.size * (count or 0), target=element, count=count)
    return element


def pointer_to(target: CudaType, space: str = "generic") -> CudaType:
    """An address of a type."""
    return CudaType("pointer", size=8, target=target, space=space)


def vector(name: str, fields: str = "xyz", element: str = "unsigned int") -> CudaType:
    """`dim3`, `float4`, and what else has numbers called x, y, z, w."""
    number = named(element)
    assert number is not None
    members = tuple(Member(one, number, number.size * at) for at, one in enumerate(fields))
    return CudaType("structure", name, number.size * len(members), members=members)


class Types:
    """The types of debug information, by the offsets of their entries."""

    def __init__(self, entries: Mapping[int, Entry]) -> None:
        self._entries = entries
        self._known: dict[int, CudaType] = {}

    def of(self, entry: Entry) -> CudaType:
        """The type of what an entry declares; nothing means `void`."""
        at = entry.number("type")
        return VOID if at is None else self.at(at)

    def named(self, name: str) -> CudaType | None:
        """A type by its name, of the program or of every program."""
        for offset, entry in self._entries.items():
            is_type = entry.tag in ("structure", "class", "union", "enumeration", "typedef")
            if is_type and entry.text("name") == name and ("byte_size" in entry.attributes or entry.tag == "typedef"):
                return self.at(offset)
        return named(name)

    def at(self, offset: int) -> CudaType:
        """The type that an entry describes."""
        if offset in self._known:
            return self._known[offset]
        entry = self._entries.get(offset)
        if entry is None:
            return VOID
        if entry.tag in _QUALIFIERS or entry.tag == "typedef":
            self._known[offset] = VOID  # of a type that is made of itself
            found = self.of(entry)
            if entry.tag == "typedef" and found.kind == "structure" and not found.name:
                found.name = entry.text("name")
            self._known[offset] = found
            return found
        found = self._known[offset] = CudaType("void", entry.text("name") or "void", entry.number("byte_size") or 0)
        self._fill(found, entry)
        return found

    def _fill(self, found: CudaType, entry: Entry) -> None:
        match entry.tag:
            case "base":
                kind = _ENCODINGS.get(entry.number("encoding") or 0, "u")
                if found.size in (1, 2, 4, 8):
                    found.kind, found.dtype = "number", np.dtype(f"{kind}{found.size}" if kind != "?" else "?")
            case "pointer" | "reference" | "subroutine":
                found.kind, found.size = "reference" if entry.tag == "reference" else "pointer", 8
                found.target = self.of(entry)
            case "array":
                shape = list(map(_extent, [one for one in entry.children if one.tag == "subrange"])) or [None]
                whole = array_of(self.of(entry), shape)
                found.kind, found.target, found.count, found.size = "array", whole.target, whole.count, whole.size
            case "enumeration":
                found.kind, found.dtype = "enumeration", np.dtype(f"i{found.size or 4}")
                numbers = ((one.number("const_value") or 0, one.text("name")) for one in entry.children)
                found.enumerators = dict(numbers)
            case "structure" | "class" | "union":
                if found.name in _FLOATS and found.size == np.dtype(_FLOATS[found.name]).itemsize:
                    found.kind, found.dtype = "number", np.dtype(_FLOATS[found.name])
                    return
                found.kind, found.name = "structure", entry.text("name")
                found.members = tuple(self._members(entry))

    def _members(self, entry: Entry) -> Iterator[Member]:
        for one in entry.children:
            at = one.attributes.get("member_location", 0)
            offset = _offset(at) if isinstance(at, Data) else at
            if one.tag not in ("member", "inheritance") or not isinstance(offset, int):
                continue
            if one.tag == "member" and "member_location" not in one.attributes and entry.tag != "union":
                continue  # a static one is a variable
            type = self.of(one)
            count, size = one.number("bit_size"), one.number("byte_size") or type.size
            first = 8 * size - (one.number("bit_offset") or 0) - (count or 0)  # counted from the highest bit
            yield Member(one.text("name"), type, offset, (first, count) if count else None, one.tag == "inheritance")


def _extent(entry: Entry) -> int | None:
    """The number of elements in a dimension; None of an array that is open, as `extern __shared__` ones are."""
    upper = entry.number("upper_bound")
    count = entry.number("count") if upper is None else upper + 1
    return count or None


def _offset(location: Data) -> int | None:
    """The bytes that `DW_OP_plus_uconst` adds."""
    reader = DwarfReader(location)
    return reader.leb() if not reader.is_done and reader.number(1) == 0x23 else None
