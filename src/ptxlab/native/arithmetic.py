"""Arithmetic of native functions, as LLVM IR: `a + b` on integers, floats and pointers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .inference import Constant, Untyped, pointee
from .types import Boolean, Float, Integer, PointerType, Type

if TYPE_CHECKING:
    from .expressions import Expressions

_INTEGER_OPERATIONS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_FLOAT_OPERATIONS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}


def binary(e: Expressions, node: ast.BinOp, type: Type) -> str:
    emit = e.builder.value
    if isinstance(type, PointerType):
        return _move_pointer(e, node, type)
    if isinstance(e.infer(node.left), PointerType):
        return _pointer_difference(e, node)
    if isinstance(node.op, ast.LShift | ast.RShift):
        return _shift(e, node, type)
    left, right = e.operand(node.left, type), e.operand(node.right, type)
    if isinstance(type, Float):
        if isinstance(node.op, ast.Div | ast.Add | ast.Sub | ast.Mult):
            return emit(f"{_FLOAT_OPERATIONS[node.op.__class__]} {type.llvm} {left}, {right}")
        raise e.error(node, f"`{ast.unparse(node)}`: floats have + - * /")
    operation = _INTEGER_OPERATIONS.get(node.op.__class__)
    if isinstance(type, Boolean) and not isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        raise e.error(node, f"`{ast.unparse(node)}` is arithmetic on booleans: convert them, `u32(…)`")
    if operation is not None:
        return emit(f"{operation} {type.llvm} {left}, {right}")
    if isinstance(type, Integer) and isinstance(node.op, ast.FloorDiv | ast.Mod):
        return _divide(e, node, type, left, right)
    hint = "; integers divide with //" if isinstance(node.op, ast.Div) else ""
    raise e.error(node, f"`{ast.unparse(node)}`: integers have + - * // % & | ^ << >>{hint}")


def _divide(e: Expressions, node: ast.BinOp, type: Integer, left: str, right: str) -> str:
    """`//` and `%`, which round down, as Python's do."""
    emit = e.builder.value
    llvm = type.llvm
    if type.bits == 128:
        raise e.error(node, "128-bit integers are not divided: shift and subtract")
    # LLVM may turn a wide computation back into a narrow one, so a type of another sign does no harm here.
    inferred = e.infer(node)
    signed = inferred.signed if isinstance(inferred, Integer) else type.signed
    if not signed:
        return emit(f"{'udiv' if isinstance(node.op, ast.FloorDiv) else 'urem'} {llvm} {left}, {right}")
    # The least integer divided by -1 is beyond the type: some processors stop there, so nothing is divided by -1.
    minus = emit(f"icmp eq {llvm} {right}, -1")
    divisor = emit(f"select i1 {minus}, {llvm} 1, {llvm} {right}")
    quotient, rest = emit(f"sdiv {llvm} {left}, {divisor}"), emit(f"srem {llvm} {left}, {divisor}")
    quotient = emit(f"select i1 {minus}, {llvm} {emit(f'sub {llvm} 0, {left}')}, {llvm} {quotient}")
    opposite = emit(f"icmp slt {llvm} {emit(f'xor {llvm} {rest}, {right}')}, 0")
    down = emit(f"and i1 {opposite}, {emit(f'icmp ne {llvm} {rest}, 0')}")
    if isinstance(node.op, ast.FloorDiv):
        return emit(f"select i1 {down}, {llvm} {emit(f'sub {llvm} {quotient}, 1')}, {llvm} {quotient}")
    return emit(f"select i1 {down}, {llvm} {emit(f'add {llvm} {rest}, {right}')}, {llvm} {rest}")


def _shift(e: Expressions, node: ast.BinOp, type: Type) -> str:
    """`<<` and `>>`. Counts at or above the width shift everything out, as in Python."""
    if not isinstance(type, Integer):
        raise e.error(node, f"`{ast.unparse(node)}` shifts a {type}: integers can be shifted")
    emit = e.builder.value
    llvm = type.llvm
    left = e.operand(node.left, type)
    inferred = e.infer(node)
    arithmetic = inferred.signed if isinstance(inferred, Integer) else type.signed
    operation = "shl" if isinstance(node.op, ast.LShift) else "ashr" if arithmetic else "lshr"
    count = e.infer(node.right)
    if isinstance(count, Constant):
        if not isinstance(count.value, int) or count.value < 0:
            raise e.error(node, f"{count.value} is not a count")
        if count.value >= type.bits and operation != "ashr":
            return "0"
        return emit(f"{operation} {llvm} {left}, {min(count.value, type.bits - 1)}")
    counts = count if isinstance(count, Integer) and count.bits > type.bits else type
    right = e.cast(node.right, counts) if isinstance(count, Untyped) else e.raw(node.right)
    if isinstance(count, Type):
        right = e.convert(node, right, count, counts)
    if operation == "ashr":
        most = emit(
            f"call {counts.llvm} @llvm.umin.{counts.llvm}({counts.llvm} {right}, {counts.llvm} {type.bits - 1})"
        )
        return emit(f"ashr {llvm} {left}, {e.convert(node, most, counts, type)}")
    inside = emit(f"icmp ult {counts.llvm} {right}, {type.bits}")
    shifted = emit(f"{operation} {llvm} {left}, {e.convert(node, right, counts, type)}")
    return emit(f"select i1 {inside}, {llvm} {shifted}, {llvm} 0")


def _move_pointer(e: Expressions, node: ast.BinOp, type: PointerType) -> str:
    base, count = e.raw(node.left), e.index(node.right)
    if isinstance(node.op, ast.Sub):
        count = e.builder.value(f"sub i64 0, {count}")
    return e.element(base, type.element, count)


def _pointer_difference(e: Expressions, node: ast.BinOp) -> str:
    emit = e.builder.value
    left, right = (emit(f"ptrtoint ptr {e.raw(side)} to i64") for side in (node.left, node.right))
    element = pointee(e.infer(node.left))
    assert element is not None
    return emit(f"sdiv exact i64 {emit(f'sub i64 {left}, {right}')}, {element.stride}")
