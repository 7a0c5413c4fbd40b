"""The type that an expression of a native function has: that of its operands, whatever it is used for.

A literal has none of its own and takes that of the other operand. Two operands with types have the same one.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any

from .functions import Signature, namespace
from .types import (
    ArrayType,
    Boolean,
    Float,
    Integer,
    PointerType,
    StructType,
    Type,
    boolean,
    f64,
    pointer_to,
    s64,
    u8,
    u32,
    u64,
)

# To mypy these are Python's own.
BOOLEAN: Boolean = boolean  # type: ignore[assignment]
F64: Float = f64  # type: ignore[assignment]
S64: Integer = s64  # type: ignore[assignment]
U8: Integer = u8  # type: ignore[assignment]
U32: Integer = u32  # type: ignore[assignment]
U64: Integer = u64  # type: ignore[assignment]


class TranslationError(Exception):
    """A native function says what cannot be translated: where, what, and what to write instead."""


class Constant:
    """An untyped constant: it takes the type of the other operand, or of the variable that it is assigned to."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


class Untyped:
    """One of several untyped constants, chosen at run time: `0.5 if up else -0.5`."""

    __slots__ = ()


UNTYPED = Untyped()
Inferred = Type | Constant | Untyped | None

MISSING = object()
_FOLD: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Pow: operator.pow,
}


def pointee(type: Inferred) -> Type | None:
    """What a pointer or a reference leads to."""
    return type.element if isinstance(type, PointerType) else type if isinstance(type, StructType) else None


def named(type: Inferred) -> str:
    if isinstance(type, Type):
        return type.name
    return "nothing" if type is None else "a number"


class Inference:
    """The names and types of one function; what they compute is in `expressions`."""

    def __init__(self, signature: Signature, file: str) -> None:
        self.signature = signature
        self.file = file
        self.locals: dict[str, Type] = {}
        self.names = namespace(signature.function)
        self._local_names = frozenset(signature.function.__code__.co_varnames + signature.function.__code__.co_cellvars)
        self._inferred: dict[ast.expr, Inferred] = {}

    def error(self, node: ast.AST, message: str) -> TranslationError:
        return TranslationError(f"{self.file}:{getattr(node, 'lineno', 0)}: {message}")

    def is_local(self, name: str) -> bool:
        return name in self._local_names

    def resolve(self, node: ast.expr) -> Any:
        """The Python object that a name outside the function means; `MISSING` for anything of the function itself."""
        if isinstance(node, ast.Name):
            if self.is_local(node.id):
                return MISSING
            if node.id in self.names:
                return self.names[node.id]
            found = getattr(builtins, node.id, MISSING)
            if found is MISSING:
                raise self.error(node, f"there is no `{node.id}`")
            return found
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            if owner is MISSING:
                return MISSING
            found = getattr(owner, node.attr, MISSING)
            if found is MISSING:
                raise self.error(node, f"there is no `{ast.unparse(node)}`")
            return found
        if isinstance(node, ast.Subscript) and self.resolve(node.value) is not MISSING:  # `Pointer[u8]`, `TABLE[2]`
            index = self.resolve(node.slice)
            return MISSING if index is MISSING else self.resolve(node.value)[index]
        if isinstance(node, ast.Constant):
            return node.value
        return MISSING

    def infer(self, node: ast.expr) -> Inferred:
        """The type that an expression has by itself."""
        if node in self._inferred:
            return self._inferred[node]
        method: Any = _INFER.get(type(node))
        if method is None:
            raise self.error(node, f"`{ast.unparse(node)}` is not part of the native language")
        found: Inferred = method(self, node)
        self._inferred[node] = found
        return found

    def type_of(self, node: ast.expr) -> Type:
        """The type of an expression that must have one."""
        found = self.infer(node)
        if isinstance(found, Constant | Untyped):
            raise self.error(
                node, f"`{ast.unparse(node)}` has no type here: write `u32({ast.unparse(node)})`, or another type"
            )
        if found is None:
            raise self.error(node, f"`{ast.unparse(node)}` has no result")
        return found

    def outer(self, node: ast.expr, value: Any) -> Inferred:
        """The type of something that Python knows."""
        if isinstance(value, bool):
            return BOOLEAN
        if isinstance(value, int | float):
            return Constant(value)
        if isinstance(value, tuple):
            return pointer_to(getattr(value, "type", U32))
        if value is None:
            return Constant(0)
        raise self.error(node, f"`{ast.unparse(node)}` is neither a number nor a tuple of integers")

    def _infer_name(self, node: ast.Name) -> Inferred:
        if self.is_local(node.id):
            found = self.locals.get(node.id)
            if found is None:
                raise self.error(node, f"`{node.id}` is read before it is assigned")
            return found
        return self.outer(node, self.resolve(node))

    def _infer_constant(self, node: ast.Constant) -> Inferred:
        return self.outer(node, node.value)

    def _infer_attribute(self, node: ast.Attribute) -> Inferred:
        value = self.resolve(node)
        if value is not MISSING:
            return self.outer(node, value)
        type = self.field(node)[1]
        return pointer_to(type.element) if isinstance(type, ArrayType) else type

    def field(self, node: ast.Attribute) -> tuple[int, Type]:
        owner = pointee(self.infer(node.value))
        if not isinstance(owner, StructType):
            raise self.error(node, f"`{ast.unparse(node.value)}` is not a structure: it has no `{node.attr}`")
        if node.attr not in owner.fields:
            raise self.error(node, f"`{owner.name}` has no field `{node.attr}`")
        return owner.fields[node.attr]

    def _infer_subscript(self, node: ast.Subscript) -> Inferred:
        base = self.infer(node.value)
        if not isinstance(base, PointerType):
            raise self.error(node, f"`{ast.unparse(node.value)}` is not a pointer: it cannot be indexed")
        return base.element

    def _infer_binary(self, node: ast.BinOp) -> Inferred:
        left, right = self.infer(node.left), self.infer(node.right)
        if isinstance(left, Constant) and isinstance(right, Constant):
            try:
                return Constant(_FOLD[type(node.op)](left.value, right.value))
            except (KeyError, ArithmeticError, ValueError, TypeError) as error:
                raise self.error(node, f"`{ast.unparse(node)}` cannot be computed: {error}") from None
        if isinstance(left, PointerType) and isinstance(node.op, ast.Add | ast.Sub):
            return S64 if isinstance(right, PointerType) else left
        if isinstance(node.op, ast.LShift | ast.RShift):
            if not isinstance(right, Integer | Constant | Untyped | Boolean):
                raise self.error(node, "a shift counts in integers")
            if isinstance(left, Constant | Untyped):
                text = ast.unparse(node.left)
                raise self.error(node, f"`{ast.unparse(node)}`: {text} has no type; write `u32({text})`, or another")
            return left
        found = self.join(node, left, right, node.op)
        if isinstance(found, Untyped):
            raise self.error(node, f"`{ast.unparse(node)}` has no type: write `u32(…)` on one side, or another type")
        return found

    def join(self, node: ast.expr, left: Inferred, right: Inferred, op: ast.AST | None = None) -> Inferred:
        """The type of two operands: both have the same, or one is an untyped constant."""
        if left is right:
            return left
        if isinstance(left, Constant | Untyped):
            left, right = right, left
        if isinstance(right, Untyped | Constant) and isinstance(left, Untyped | Constant):
            return UNTYPED
        if isinstance(right, Untyped) and isinstance(left, Integer | Float):
            return left
        if isinstance(right, Constant) and isinstance(left, Type):
            return self._meet_constant(node, left, right.value, op)
        if isinstance(left, Integer | Float | Boolean) and isinstance(right, Integer | Float | Boolean):
            raise self.error(
                node, f"`{ast.unparse(node)}` mixes {left} and {right}: convert one, `{left}(…)` or `{right}(…)`"
            )
        if isinstance(left, Type) and pointee(left) is not None and pointee(left) is pointee(right):
            return left
        raise self.error(node, f"`{ast.unparse(node)}` mixes {named(left)} and {named(right)}: convert one")

    def _meet_constant(self, node: ast.expr, type: Type, value: float, op: ast.AST | None) -> Inferred:
        if isinstance(type, Integer) and isinstance(value, int):
            wraps = isinstance(op, ast.BitAnd | ast.Add) and value < 0  # `x & ~7` and `x + -1` are right modulo 2**n
            if type.holds(value) or wraps:
                return type
            raise self.error(node, f"`{ast.unparse(node)}`: {value} does not fit {type}; convert the other side first")
        if isinstance(type, Float):
            if type(value) == value or value != value:
                return type
            raise self.error(node, f"`{ast.unparse(node)}`: {value} is not an {type}; `{type}({value})` rounds it")
        if isinstance(type, Boolean) and value in (0, 1):
            return type
        if pointee(type) is not None and value == 0:
            return type
        raise self.error(node, f"`{ast.unparse(node)}` mixes {type} and the number {value}: convert one")

    def _infer_unary(self, node: ast.UnaryOp) -> Inferred:
        if isinstance(node.op, ast.Not):
            return BOOLEAN
        operand = self.infer(node.operand)
        if isinstance(operand, Constant):
            value: Any = operand.value
            return Constant(
                ~value if isinstance(node.op, ast.Invert) else -value if isinstance(node.op, ast.USub) else value
            )
        if isinstance(operand, Integer) or (isinstance(operand, Float) and not isinstance(node.op, ast.Invert)):
            return operand
        raise self.error(node, f"`{ast.unparse(node)}` needs a number: {named(operand)} is not one")

    def _infer_choice(self, node: ast.IfExp) -> Inferred:
        yes, no = self.infer(node.body), self.infer(node.orelse)
        if isinstance(yes, Constant) and isinstance(no, Constant):
            return UNTYPED
        return self.join(node, yes, no)

    def _infer_boolean(self, node: ast.expr) -> Inferred:
        return BOOLEAN

    def _infer_call(self, node: ast.Call) -> Inferred:
        from .calls import infer_call

        return infer_call(self, node)


_INFER: dict[type, Any] = {
    ast.Name: Inference._infer_name,
    ast.Constant: Inference._infer_constant,
    ast.Attribute: Inference._infer_attribute,
    ast.Subscript: Inference._infer_subscript,
    ast.BinOp: Inference._infer_binary,
    ast.UnaryOp: Inference._infer_unary,
    ast.IfExp: Inference._infer_choice,
    ast.BoolOp: Inference._infer_boolean,
    ast.Compare: Inference._infer_boolean,
    ast.Call: Inference._infer_call,
}
