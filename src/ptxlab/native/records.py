"""`Step(fraction=25, …)` in a native function: a structure on the stack, filled field by field.

The class is a structure and a dataclass, so that plain Python makes the same of the call. As with `array`, the memory
is gone when the function returns, and a line that runs again uses the same memory again. A structure inside is copied.
"""

from __future__ import annotations

import ast
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING

from .inference import Inference
from .types import ArrayType, StructType

if TYPE_CHECKING:
    from .expressions import Expressions


def record_type(function: object) -> StructType | None:
    """The structure that a call makes; None where it calls something else."""
    found = function.__dict__.get("__native__") if isinstance(function, type) else None
    return found if isinstance(found, StructType) else None


def check_record(e: Inference, node: ast.Call, type: StructType) -> StructType:
    """The type of the call, which names each field of the structure once, or leaves out one that has a default."""
    if not is_dataclass(type.owner):
        raise e.error(node, f"`{type}` cannot be made here: put `@dataclass` under its `@struct`")
    _values(e, node, type)
    return type


def _values(e: Inference, node: ast.Call, type: StructType) -> dict[str, ast.expr]:
    """What the call gives each field, in their order; what it leaves out has its default."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    expected = fields(type.owner)
    for field in expected:
        if field.name not in given and field.default is not MISSING:
            given[field.name] = ast.copy_location(ast.Constant(field.default), node)
    names = [field.name for field in expected]
    if node.args or set(given) != set(names):
        raise e.error(node, f"`{type}` takes each field by its name: {', '.join(names)}")
    return {name: given[name] for name in names}


def make_record(e: Expressions, node: ast.Call, type: StructType) -> str:
    """Fill a structure on the stack; its address."""
    pointer = e.stack(type.stride)
    for name, value in _values(e, node, type).items():
        offset, wanted = type.fields[name]
        at = e.builder.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        if isinstance(wanted, ArrayType):
            raise e.error(value, f"`{name}` is an array: fill it element by element")
        text = e.value(value, wanted)
        if isinstance(wanted, StructType):
            e.builder.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {at}, ptr {text}, i64 {wanted.stride}, i1 false)")
        else:
            e.store(at, wanted, text)
    return pointer
