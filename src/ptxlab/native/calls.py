"""What a call means in a native function: a conversion, another native function, or an operation of the language."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

from . import operations, types
from .expressions import Expressions, memory
from .functions import Signature
from .inference import BOOLEAN, FLEXIBLE, U8, U32, U64, Constant, Natural, Naturals, pointee
from .types import Float, Integer, PointerType, StructType, Type, pointer_to, type_of


class Operation:
    """How an operation is translated: its type, and its text."""

    __slots__ = ("natural", "raw")

    def __init__(
        self, natural: Callable[[Naturals, ast.Call], Natural], raw: Callable[[Expressions, ast.Call], str]
    ) -> None:
        self.natural = natural
        self.raw = raw


def natural_call(e: Naturals, node: ast.Call) -> Natural:
    """The type of a call's result; None where it has none."""
    function = e.resolve(node.func)
    if isinstance(function, Type):
        if len(node.args) != 1:
            raise e.error(node, f"`{function}(…)` converts one value")
        return function
    operation = _OPERATIONS.get(function) if callable(function) else None
    if operation is not None:
        _check_count(e, node, function)
        return operation.natural(e, node)
    return _signature(e, node, function).result


def raw_call(e: Expressions, node: ast.Call) -> str:
    """The text of a call's result; empty where it has none."""
    function = e.resolve(node.func)
    if isinstance(function, Type):
        return _conversion(e, node.args[0], function)
    operation = _OPERATIONS.get(function)
    if operation is not None:
        return operation.raw(e, node)
    signature = _signature(e, node, function)
    e.callees[function] = None
    arguments = []
    for argument, (_, type) in zip(node.args, signature.parameters, strict=True):
        arguments.append(f"{passed(type, signature.external)} {e.value(argument, type)}")
    return _emit_call(e, signature.result, f'@"{signature.symbol}"', arguments, signature.external)


def _check_count(e: Naturals, node: ast.Call, function: Any) -> None:
    """Refuse an operation with too few or too many arguments."""
    code = getattr(function, "__code__", None)
    expected = code.co_argcount if code is not None else 2 if function in (builtins.min, builtins.max) else 1
    more = function is operations.call and len(node.args) > expected
    if node.keywords or (len(node.args) != expected and not more):
        raise e.error(node, f"`{ast.unparse(node.func)}` takes {expected} arguments, all by position")


def passed(type: Type | None, external: bool) -> str:
    """A parameter's or result's type. The C library expects small integers extended; native functions do not."""
    if type is None:
        return "void"
    if not external or not isinstance(type, Integer) or type.bits >= 32:
        return type.llvm
    return f"{type.llvm} {'signext' if type.signed else 'zeroext'}"


def _emit_call(e: Expressions, result: Type | None, target: str, arguments: list[str], external: bool) -> str:
    attribute = passed(result, external).removeprefix(result.llvm if result else "void").strip()
    line = f"call {attribute} {result.llvm if result else 'void'} {target}({', '.join(arguments)})"
    if result is None:
        e.builder.emit(line)
        return ""
    return e.builder.value(line)


def _signature(e: Naturals, node: ast.Call, function: Any) -> Signature:
    found = getattr(function, "__native__", None)
    if not isinstance(found, Signature):
        raise e.error(node, f"`{ast.unparse(node.func)}` is not native: put `@native` above it")
    if node.keywords or len(node.args) != len(found.parameters):
        names = ", ".join(name for name, _ in found.parameters)
        raise e.error(
            node, f"`{ast.unparse(node.func)}` takes {len(found.parameters)} arguments, all by position: ({names})"
        )
    return found


def _conversion(e: Expressions, argument: ast.expr, to: Type) -> str:
    if isinstance(to, PointerType | StructType):
        raise e.error(argument, f"`cast({to}, …)` makes a pointer")
    if to is BOOLEAN:
        return e.truth(argument)
    source = e.natural(argument)
    # Python computes `u8(a + b)` on whole numbers: where the type is narrow, so does a register.
    if source is FLEXIBLE and isinstance(to, Integer) and to.bits < 32:
        return e.convert(argument, e.cast(argument, U32), U32, to)
    return e.cast(argument, to)


def _type_argument(e: Naturals, node: ast.Call, index: int = 0) -> Type | None:
    try:
        return type_of(e.resolve(node.args[index]), e.names)
    except TypeError:
        name = ast.unparse(node.func)
        raise e.error(node, f"`{name}` begins with a type: `{name}(u32, …)`") from None


def _fixed(type: Any) -> Callable[[Naturals, ast.Call], Natural]:
    return lambda e, node: type


def _of_argument(index: int) -> Callable[[Naturals, ast.Call], Natural]:
    return lambda e, node: e.type_of(node.args[index])


def _of_element(e: Naturals, node: ast.Call) -> Natural:
    """The type of what the first argument points to."""
    found = pointee(e.natural(node.args[0]))
    if found is None:
        raise e.error(node, f"`{ast.unparse(node.args[0])}` is no pointer")
    if not isinstance(found, Integer | PointerType):
        raise e.error(node, f"atomic operations are on integers and pointers, not on {found}")
    return found


def _intrinsic(name: str, type: Type, *arguments: str) -> str:
    suffix = f"f{type.bits}" if isinstance(type, Float) else type.llvm
    return f"call {type.llvm} @llvm.{name}.{suffix}({', '.join(arguments)})"


# Numbers.


def _natural_extreme(e: Naturals, node: ast.Call) -> Natural:
    found = e.join(node, e.natural(node.args[0]), e.natural(node.args[1]))
    if not isinstance(found, Integer):
        raise e.error(node, "`min` and `max` take integers, at least one with a type")
    return found


def _extreme(name: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        type = e.type_of(node)
        assert isinstance(type, Integer)
        left, right = (f"{type.llvm} {e.cast(argument, type)}" for argument in node.args)
        return e.builder.value(_intrinsic(f"{'s' if type.signed else 'u'}{name}", type, left, right))

    return raw


def _absolute(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    text = f"{type.llvm} {e.raw(node.args[0])}"
    if isinstance(type, Float):
        return e.builder.value(_intrinsic("fabs", type, text))
    if isinstance(type, Integer) and type.signed:
        return e.builder.value(_intrinsic("abs", type, text, "i1 false"))
    return e.raw(node.args[0])


def _natural_length(e: Naturals, node: ast.Call) -> Natural:
    found = e.resolve(node.args[0])
    if not isinstance(found, tuple):
        raise e.error(node, "`len` is of a constant table")
    return Constant(len(found))


def _natural_layout(e: Naturals, node: ast.Call) -> Natural:
    function, arguments = e.resolve(node.func), [e.resolve(argument) for argument in node.args]
    return Constant(function(*arguments))


def _never(e: Expressions, node: ast.Call) -> str:
    raise AssertionError("constants are written where they are used")


def _count_ones(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node.args[0])
    count = e.builder.value(_intrinsic("ctpop", type, f"{type.llvm} {e.raw(node.args[0])}"))
    return e.convert(node, count, type, U32)


def _natural_given(e: Naturals, node: ast.Call) -> Natural:
    """The type that comes first."""
    found = _type_argument(e, node)
    if not isinstance(found, Integer | Float):
        raise e.error(node, f"`{ast.unparse(node.func)}` is of integers or floats, not of {found}")
    return found


def _of_bits(name: str, *more: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        type = _natural_given(e, node)
        if not isinstance(type, Integer) or type.signed:
            raise e.error(node, "the type is an unsigned integer")
        text = e.builder.value(_intrinsic(name, type, f"{type.llvm} {e.value(node.args[1], type)}", *more))
        return e.convert(node, text, type, e.type_of(node))

    return raw


def _fused(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    arguments = (f"{type.llvm} {e.value(argument, type)}" for argument in node.args[1:])
    return e.builder.value(_intrinsic("fma", type, *arguments))


def _root(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    return e.builder.value(_intrinsic("sqrt", type, f"{type.llvm} {e.raw(node.args[0])}"))


def _natural_pattern(e: Naturals, node: ast.Call) -> Natural:
    return U64 if getattr(_natural_given(e, node), "bits", 0) == 64 else U32


def _pattern(e: Expressions, node: ast.Call) -> str:
    source, to = _natural_given(e, node), e.type_of(node)
    assert isinstance(source, Float)
    return e.builder.value(f"bitcast {source.llvm} {e.value(node.args[1], source)} to {to.llvm}")


def _from_pattern(e: Expressions, node: ast.Call) -> str:
    to = e.type_of(node)
    source = U64 if to.size == 8 else U32
    return e.builder.value(f"bitcast {source.llvm} {e.value(node.args[1], source)} to {to.llvm}")


def _expect(usual: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        return e.builder.value(f"call i1 @llvm.expect.i1(i1 {e.truth(node.args[0])}, i1 {usual})")

    return raw


def _trap(e: Expressions, node: ast.Call) -> str:
    e.builder.emit("call void @llvm.trap()")
    return ""


# Memory.


def _natural_array(e: Naturals, node: ast.Call) -> Natural:
    element = _type_argument(e, node)
    assert element is not None
    return pointer_to(element)


def _array(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    length = e.natural(node.args[1])
    if not isinstance(length, Constant) or not isinstance(length.value, int):
        raise e.error(node, "the length of an array is a constant")
    assert isinstance(type, PointerType)
    bytes = type.element.stride * length.value
    place = e.builder.fresh()
    e.allocations.append(f"  {place} = alloca [{bytes} x i8], align 16")
    e.builder.emit(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {bytes}, i1 false)")
    return place


def _natural_cast(e: Naturals, node: ast.Call) -> Natural:
    return _type_argument(e, node)


def _cast(e: Expressions, node: ast.Call) -> str:
    to = e.type_of(node)
    if isinstance(e.natural(node.args[1]), Constant):
        return e.cast(node.args[1], to)
    source, text = e.type_of(node.args[1]), e.raw(node.args[1])
    if to.llvm == source.llvm:
        return text
    if to.llvm == "ptr" and isinstance(source, Integer):
        return e.builder.value(f"inttoptr {source.llvm} {text} to ptr")
    if source.llvm == "ptr" and isinstance(to, Integer):
        return e.builder.value(f"ptrtoint ptr {text} to {to.llvm}")
    raise e.error(node, f"`cast` is between pointers and integers; `{to}(…)` converts numbers")


def _natural_address(e: Naturals, node: ast.Call) -> Natural:
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
    result = _type_argument(e, node)
    target = e.raw(node.args[1])
    arguments = [f"{e.type_of(argument).llvm} {e.raw(argument)}" for argument in node.args[2:]]
    return _emit_call(e, result, target, arguments, external=False)


def _pointer(e: Expressions, node: ast.expr) -> str:
    if pointee(e.natural(node)) is None:
        raise e.error(node, f"`{ast.unparse(node)}` is no pointer")
    return e.raw(node)


def _copy(e: Expressions, node: ast.Call) -> str:
    to, source, count = _pointer(e, node.args[0]), _pointer(e, node.args[1]), e.value(node.args[2], U64)
    e.builder.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {count}, i1 false)")
    return ""


def _fill(e: Expressions, node: ast.Call) -> str:
    to, byte, count = _pointer(e, node.args[0]), e.value(node.args[1], U8), e.value(node.args[2], U64)
    e.builder.emit(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {byte}, i64 {count}, i1 false)")
    return ""


def _atomic_load(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    return e.builder.value(f"load atomic {memory(type)}, ptr {e.raw(node.args[0])} seq_cst, align {type.size}")


def _atomic_store(e: Expressions, node: ast.Call) -> str:
    type = _of_element(e, node)
    assert isinstance(type, Type)
    place, text = e.raw(node.args[0]), e.value(node.args[1], type)
    e.builder.emit(f"store atomic {memory(type)} {text}, ptr {place} seq_cst, align {type.size}")
    return ""


def _atomic(operation: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        type = e.type_of(node)
        place, text = e.raw(node.args[0]), e.value(node.args[1], type)
        return e.builder.value(f"atomicrmw {operation} ptr {place}, {type.llvm} {text} seq_cst")

    return raw


def _compare_exchange(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    place, expected, text = e.raw(node.args[0]), e.value(node.args[1], type), e.value(node.args[2], type)
    pair = e.builder.value(f"cmpxchg ptr {place}, {type.llvm} {expected}, {type.llvm} {text} seq_cst seq_cst")
    return e.builder.value(f"extractvalue {{ {type.llvm}, i1 }} {pair}, 0")


_OPERATIONS: dict[Any, Operation] = {
    builtins.min: Operation(_natural_extreme, _extreme("min")),
    builtins.max: Operation(_natural_extreme, _extreme("max")),
    builtins.abs: Operation(_of_argument(0), _absolute),
    builtins.len: Operation(_natural_length, _never),
    types.size_of: Operation(_natural_layout, _never),
    types.offset_of: Operation(_natural_layout, _never),
    operations.count_ones: Operation(_fixed(U32), _count_ones),
    operations.leading_zeros: Operation(_fixed(U32), _of_bits("ctlz", "i1 false")),
    operations.trailing_zeros: Operation(_fixed(U32), _of_bits("cttz", "i1 false")),
    operations.reverse_bits: Operation(_natural_given, _of_bits("bitreverse")),
    operations.float_bits: Operation(_natural_pattern, _pattern),
    operations.bits_float: Operation(_natural_given, _from_pattern),
    operations.sqrt: Operation(_of_argument(0), _root),
    operations.fma: Operation(_natural_given, _fused),
    operations.likely: Operation(_fixed(BOOLEAN), _expect("true")),
    operations.unlikely: Operation(_fixed(BOOLEAN), _expect("false")),
    operations.trap: Operation(_fixed(None), _trap),
    operations.array: Operation(_natural_array, _array),
    operations.cast: Operation(_natural_cast, _cast),
    operations.address_of: Operation(_natural_address, _address),
    operations.function_pointer: Operation(_fixed(pointer_to(U8)), _function_pointer),
    operations.call: Operation(_natural_cast, _call),
    operations.copy_bytes: Operation(_fixed(None), _copy),
    operations.fill_bytes: Operation(_fixed(None), _fill),
    operations.atomic_load: Operation(_of_element, _atomic_load),
    operations.atomic_store: Operation(_fixed(None), _atomic_store),
    operations.atomic_add: Operation(_of_element, _atomic("add")),
    operations.atomic_and: Operation(_of_element, _atomic("and")),
    operations.atomic_or: Operation(_of_element, _atomic("or")),
    operations.atomic_exchange: Operation(_of_element, _atomic("xchg")),
    operations.atomic_compare_exchange: Operation(_of_element, _compare_exchange),
}
