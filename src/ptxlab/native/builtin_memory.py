"""Operations on memory: addresses, blocks of bytes, atomic operations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import operations
from .builtin import Builtin, fixed, type_argument
from .functions import Signature
from .inference import U8, U64, Constant, Inference, Inferred, pointee
from .types import Integer, PointerType, Type, memory_name, pointer_to

if TYPE_CHECKING:
    from .expressions import Expressions


def _of_element(e: Inference, node: ast.Call) -> Inferred:
    """The type of what the first argument points to."""
    found = pointee(e.infer(node.args[0]))
    if found is None:
        raise e.error(node, f"`{ast.unparse(node.args[0])}` is not a pointer")
    if not isinstance(found, Integer | PointerType):
        raise e.error(node, f"atomic operations are on integers and pointers, not on {found}")
    return found


def _infer_array(e: Inference, node: ast.Call) -> Inferred:
    element = type_argument(e, node)
    assert element is not None
    return pointer_to(element)


def _scratch(e: Expressions, node: ast.Call) -> str:
    return e.stack(_bytes(e, node))


def _bytes(e: Expressions, node: ast.Call) -> int:
    """The size of an array."""
    type = e.type_of(node)
    length = e.infer(node.args[1])
    if not isinstance(length, Constant) or not isinstance(length.value, int):
        raise e.error(node, "the length of an array is a constant")
    assert isinstance(type, PointerType)
    return type.element.stride * length.value


def _array(e: Expressions, node: ast.Call) -> str:
    pointer, bytes = _scratch(e, node), _bytes(e, node)
    e.builder.emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {bytes}, i1 false)")
    return pointer


def _infer_cast(e: Inference, node: ast.Call) -> Inferred:
    return type_argument(e, node)


def _cast(e: Expressions, node: ast.Call) -> str:
    to = e.type_of(node)
    if isinstance(e.infer(node.args[1]), Constant):
        return e.cast(node.args[1], to)
    source, text = e.type_of(node.args[1]), e.raw(node.args[1])
    if to.llvm == source.llvm:
        return text
    if to.llvm == "ptr" and isinstance(source, Integer):
        return e.builder.value(f"inttoptr {source.llvm} {text} to ptr")
    if source.llvm == "ptr" and isinstance(to, Integer):
        return e.builder.value(f"ptrtoint ptr {text} to {to.llvm}")
    raise e.error(node, f"`cast` is between pointers and integers; `{to}(…)` converts numbers")


def _infer_address(e: Inference, node: ast.Call) -> Inferred:
    return pointer_to(e.type_of(node.args[0]))


def _address(e: Expressions, node: ast.Call) -> str:
    return e.address(node.args[0])[0]


def _function_pointer(e: Expressions, node: ast.Call) -> str:
    function = e.resolve(node.args[0])
    found = getattr(function, "__native__", None)
    if not isinstance(found, Signature):
        raise e.error(node, f"`{ast.unparse(node.args[0])}` is not native: put `@native` above it")
    e.callees[function] = None
    return f'@"{found.symbol}"'


def _call(e: Expressions, node: ast.Call) -> str:
    result = type_argument(e, node)
    target = e.raw(node.args[1])
    arguments = [f"{e.type_of(argument).llvm} {e.raw(argument)}" for argument in node.args[2:]]
    return e.call(result, target, arguments, external=False)


def _pointer(e: Expressions, node: ast.expr) -> str:
    if pointee(e.infer(node)) is None:
        raise e.error(node, f"`{ast.unparse(node)}` is not a pointer")
    return e.raw(node)


def _copy(e: Expressions, node: ast.Call) -> str:
    to, source, count = _pointer(e, node.args[0]), _pointer(e, node.args[1]), e.value(node.args[2], U64)
    e.guard.bytes("copy", node.args[0], to, count)
    e.guard.bytes("copy", node.args[1], source, count)
    e.builder.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {count}, i1 false)")
    return ""


def _fill(e: Expressions, node: ast.Call) -> str:
    to, byte, count = _pointer(e, node.args[0]), e.value(node.args[1], U8), e.value(node.args[2], U64)
    e.guard.bytes("fill", node.args[0], to, count)
    e.builder.emit(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {byte}, i64 {count}, i1 false)")
    return ""


def _atomic_load(e: Expressions, node: ast.Call) -> str:
    type, pointer = e.type_of(node), e.raw(node.args[0])
    e.guard.pointed("atomic load", node.args[0], pointer)
    return e.builder.value(f"load atomic {memory_name(type)}, ptr {pointer} seq_cst, align {type.size}")


def _atomic_store(e: Expressions, node: ast.Call) -> str:
    type = _of_element(e, node)
    assert isinstance(type, Type)
    pointer, text = e.raw(node.args[0]), e.value(node.args[1], type)
    e.guard.pointed("atomic store", node.args[0], pointer)
    e.builder.emit(f"store atomic {memory_name(type)} {text}, ptr {pointer} seq_cst, align {type.size}")
    return ""


def _atomic(operation: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        type = e.type_of(node)
        pointer, text = e.raw(node.args[0]), e.value(node.args[1], type)
        e.guard.pointed("atomic operation", node.args[0], pointer)
        return e.builder.value(f"atomicrmw {operation} ptr {pointer}, {type.llvm} {text} seq_cst")

    return raw


def _compare_exchange(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    pointer, expected, text = e.raw(node.args[0]), e.value(node.args[1], type), e.value(node.args[2], type)
    e.guard.pointed("atomic operation", node.args[0], pointer)
    pair = e.builder.value(f"cmpxchg ptr {pointer}, {type.llvm} {expected}, {type.llvm} {text} seq_cst seq_cst")
    return e.builder.value(f"extractvalue {{ {type.llvm}, i1 }} {pair}, 0")


OPERATIONS: dict[Any, Builtin] = {
    operations.array: Builtin(_infer_array, _array),
    operations.scratch: Builtin(_infer_array, _scratch),
    operations.cast: Builtin(_infer_cast, _cast),
    operations.address_of: Builtin(_infer_address, _address),
    operations.function_pointer: Builtin(fixed(pointer_to(U8)), _function_pointer),
    operations.call: Builtin(_infer_cast, _call),
    operations.copy_bytes: Builtin(fixed(None), _copy),
    operations.fill_bytes: Builtin(fixed(None), _fill),
    operations.atomic_load: Builtin(_of_element, _atomic_load),
    operations.atomic_store: Builtin(fixed(None), _atomic_store),
    operations.atomic_add: Builtin(_of_element, _atomic("add")),
    operations.atomic_and: Builtin(_of_element, _atomic("and")),
    operations.atomic_or: Builtin(_of_element, _atomic("or")),
    operations.atomic_exchange: Builtin(_of_element, _atomic("xchg")),
    operations.atomic_compare_exchange: Builtin(_of_element, _compare_exchange),
}
