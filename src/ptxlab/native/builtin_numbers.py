"""Operations on numbers: counts of bits, patterns of floats, extremes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import operations, types
from .builtin import Builtin, fixed, intrinsic, of_argument, type_argument
from .inference import BOOLEAN, U32, U64, Constant, Inference, Inferred
from .types import Float, Integer

if TYPE_CHECKING:
    from .expressions import Expressions


def _infer_extreme(e: Inference, node: ast.Call) -> Inferred:
    found = e.join(node, e.infer(node.args[0]), e.infer(node.args[1]))
    if not isinstance(found, Integer):
        raise e.error(node, "`min` and `max` take integers, at least one with a type")
    return found


def _extreme(name: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        type = e.type_of(node)
        assert isinstance(type, Integer)
        left, right = (f"{type.llvm} {e.cast(argument, type)}" for argument in node.args)
        return e.builder.value(intrinsic(f"{'s' if type.signed else 'u'}{name}", type, left, right))

    return raw


def _absolute(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    text = f"{type.llvm} {e.raw(node.args[0])}"
    if isinstance(type, Float):
        return e.builder.value(intrinsic("fabs", type, text))
    if isinstance(type, Integer) and type.signed:
        return e.builder.value(intrinsic("abs", type, text, "i1 false"))
    return e.raw(node.args[0])


def _infer_length(e: Inference, node: ast.Call) -> Inferred:
    found = e.resolve(node.args[0])
    if not isinstance(found, tuple):
        raise e.error(node, "`len` is of a constant table")
    return Constant(len(found))


def _infer_layout(e: Inference, node: ast.Call) -> Inferred:
    function, arguments = e.resolve(node.func), [e.resolve(argument) for argument in node.args]
    return Constant(function(*arguments))


def _never(e: Expressions, node: ast.Call) -> str:
    raise AssertionError("constants are written where they are used")


def _count_ones(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node.args[0])
    count = e.builder.value(intrinsic("ctpop", type, f"{type.llvm} {e.raw(node.args[0])}"))
    return e.convert(node, count, type, U32)


def _infer_given(e: Inference, node: ast.Call) -> Inferred:
    """The type that comes first."""
    found = type_argument(e, node)
    if not isinstance(found, Integer | Float):
        raise e.error(node, f"`{ast.unparse(node.func)}` is of integers or floats, not of {found}")
    return found


def _of_bits(name: str, *more: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        type = _infer_given(e, node)
        if not isinstance(type, Integer) or type.signed:
            raise e.error(node, "the type is an unsigned integer")
        text = e.builder.value(intrinsic(name, type, f"{type.llvm} {e.value(node.args[1], type)}", *more))
        return e.convert(node, text, type, e.type_of(node))

    return raw


def _fused(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    arguments = (f"{type.llvm} {e.value(argument, type)}" for argument in node.args[1:])
    return e.builder.value(intrinsic("fma", type, *arguments))


def _truncate(e: Expressions, node: ast.Call) -> str:
    source, to = e.type_of(node.args[1]), e.type_of(node)
    if not isinstance(source, Float) or not isinstance(to, Integer):
        raise e.error(node, f"`truncate` makes an integer of a float, not {to} of {source}")
    how = "fptosi" if to.signed else "fptoui"
    return e.builder.value(f"{how} {source.llvm} {e.raw(node.args[1])} to {to.llvm}")


def _root(e: Expressions, node: ast.Call) -> str:
    type = e.type_of(node)
    return e.builder.value(intrinsic("sqrt", type, f"{type.llvm} {e.raw(node.args[0])}"))


def _infer_pattern(e: Inference, node: ast.Call) -> Inferred:
    return U64 if getattr(_infer_given(e, node), "bits", 0) == 64 else U32


def _pattern(e: Expressions, node: ast.Call) -> str:
    source, to = _infer_given(e, node), e.type_of(node)
    assert isinstance(source, Float)
    return e.builder.value(f"bitcast {source.llvm} {e.value(node.args[1], source)} to {to.llvm}")


def _from_pattern(e: Expressions, node: ast.Call) -> str:
    to = e.type_of(node)
    source = U64 if to.size == 8 else U32
    return e.builder.value(f"bitcast {source.llvm} {e.value(node.args[1], source)} to {to.llvm}")


def _expect(usual: str) -> Callable[[Expressions, ast.Call], str]:
    def raw(e: Expressions, node: ast.Call) -> str:
        return e.builder.value(f"call i1 @llvm.expect.i1(i1 {e.condition(node.args[0])}, i1 {usual})")

    return raw


def _trap(e: Expressions, node: ast.Call) -> str:
    e.builder.emit("call void @llvm.trap()")
    return ""


OPERATIONS: dict[Any, Builtin] = {
    builtins.min: Builtin(_infer_extreme, _extreme("min")),
    builtins.max: Builtin(_infer_extreme, _extreme("max")),
    builtins.abs: Builtin(of_argument(0), _absolute),
    builtins.len: Builtin(_infer_length, _never),
    types.size_of: Builtin(_infer_layout, _never),
    types.offset_of: Builtin(_infer_layout, _never),
    operations.count_ones: Builtin(fixed(U32), _count_ones),
    operations.leading_zeros: Builtin(fixed(U32), _of_bits("ctlz", "i1 false")),
    operations.trailing_zeros: Builtin(fixed(U32), _of_bits("cttz", "i1 false")),
    operations.reverse_bits: Builtin(_infer_given, _of_bits("bitreverse")),
    operations.float_bits: Builtin(_infer_pattern, _pattern),
    operations.bits_float: Builtin(_infer_given, _from_pattern),
    operations.truncate: Builtin(_infer_given, _truncate),
    operations.sqrt: Builtin(of_argument(0), _root),
    operations.fma: Builtin(_infer_given, _fused),
    operations.likely: Builtin(fixed(BOOLEAN), _expect("true")),
    operations.unlikely: Builtin(fixed(BOOLEAN), _expect("false")),
    operations.trap: Builtin(fixed(None), _trap),
}
