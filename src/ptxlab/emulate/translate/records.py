"""Structures that the code of a kernel passes by address: filled on the stack, or constants beside the code.

`OperationRecord` names a structure of the runtime and gives its fields; those that are left out are zero. All calls of
one function share the memory `%record`: the callee reads it before it returns, and may leave results in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.translate.values import LlvmValue, resize
from ptxlab.isa.types import type_named
from ptxlab.native.types import ArrayType, Integer, PointerType, StructType, Type, type_of
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

Given = LlvmValue | int | Sequence[LlvmValue | int]


@dataclass(frozen=True, init=False)
class OperationRecord:
    """A structure to be filled and passed: its class, and what each field gets; a sequence fills an array."""

    owner: type
    fields: Mapping[str, Given]

    def __init__(self, owner: type, **fields: Given) -> None:
        object.__setattr__(self, "owner", owner)
        object.__setattr__(self, "fields", fields)


def struct_of(owner: type) -> StructType:
    """The layout of a structure."""
    found = type_of(owner, {})
    assert isinstance(found, StructType), owner
    return found


def fill(function: Function, record: OperationRecord) -> str:
    """Write a record to the stack; the text of its address."""
    layout = struct_of(record.owner)
    function.record_size = max(function.record_size, layout.stride)
    unknown = record.fields.keys() - layout.fields.keys()
    assert not unknown, f"{layout} has no {unknown}"
    for name, (offset, type) in layout.fields.items():
        given = record.fields.get(name, 0)
        element = type.element if isinstance(type, ArrayType) else type
        values = [*given] if isinstance(given, Sequence) else [given]
        values += [0] * (_count(type) - len(values))
        for value in values:
            _store(function, offset, element, value)
            offset += element.stride
    return "%record"


def read_field(function: Function, owner: type, name: str, index: int = 0) -> LlvmValue:
    """What the last call has left in a field of its record, or in an element of it."""
    offset, type = struct_of(owner).fields[name]
    element = type.element if isinstance(type, ArrayType) else type
    assert isinstance(element, Integer), type
    at = function.builder.value(f"getelementptr i8, ptr %record, i64 {offset + index * element.stride}")
    return LlvmValue(function, type_named(f"u{element.bits}"), function.builder.value(f"load {element.llvm}, ptr {at}"))


def _count(type: Type) -> int:
    return type.length if isinstance(type, ArrayType) else 1


def _store(function: Function, offset: int, type: Type, value: LlvmValue | int) -> None:
    assert isinstance(type, Integer), type
    text = str(value) if isinstance(value, int) else resize(value, type.bits, value.is_signed)
    at = function.builder.value(f"getelementptr i8, ptr %record, i64 {offset}")
    function.builder.emit(f"store {type.llvm} {text}, ptr {at}")


def constant_record(record: object, table: Callable[[tuple[int, ...]], str]) -> tuple[str, str]:
    """A record of constants as LLVM writes it: its type and its value; `table` gives the name of a table of words."""
    types: list[str] = []
    values: list[str] = []
    past = 0

    def add(kind: str, text: str) -> None:
        types.append(kind)
        values.append(f"{kind} {text}")

    def skip(bytes: int) -> None:
        if bytes:
            add(f"[{bytes} x i8]", "zeroinitializer")

    layout = struct_of(type(record))
    for name, (offset, field) in layout.fields.items():
        given = getattr(record, name)
        skip(offset - past)
        past = offset + field.stride
        if isinstance(field, StructType):
            add(*constant_record(given, table))
        elif isinstance(field, PointerType):
            add("ptr", table(given))
        else:
            assert isinstance(field, Integer), field
            add(field.llvm, str(given))
    skip(layout.stride - past)
    return f"<{{ {', '.join(types)} }}>", f"<{{ {', '.join(values)} }}>"
