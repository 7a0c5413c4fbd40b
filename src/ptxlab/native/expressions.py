"""Expressions of native functions, as LLVM IR.

An expression is asked for its value in some type: `value` where it must fit, `cast` where it is cut or extended, `raw`
in its own type. Arithmetic is done in the type of its operands, whatever becomes of it: `u64(a * b)` of two `u32` is
refused, since Python would compute the whole product; `u64(a) * u64(b)` is that. Only an index is always an `s64`.
"""

from __future__ import annotations

import ast
import struct
from typing import Any

from .arithmetic import binary
from .bounds import GUARD
from .calls import raw_call
from .functions import Signature, passed
from .guarding import Guard
from .inference import MISSING, S64, U32, Constant, Inference, Inferred, Untyped, named, pointee
from .operations import Table
from .text import Builder
from .types import ArrayType, Boolean, Float, Integer, StructType, Type, memory_name

_COMPARISONS = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "eq",
    ast.IsNot: "ne",
}


class Expressions(Inference):
    """The expressions of one function; statements are added by `translate`."""

    def __init__(self, signature: Signature, file: str) -> None:
        super().__init__(signature, file)
        self.builder = Builder()
        self.allocations: list[str] = []
        self.callees: dict[Any, None] = {}
        self.tables: dict[str, Table | tuple[int, ...]] = {}
        self.guard = Guard(self)

    def value(self, node: ast.expr, to: Type) -> str:
        """The value where a `to` is needed; nothing may be lost on the way."""
        found = self.infer(node)
        if isinstance(found, Constant):
            value = found.value
            if isinstance(to, Integer) and not (isinstance(value, int) and to.holds(value)):
                raise self.error(node, f"{value} does not fit {to}; `{to}({value})` cuts it")
            if isinstance(to, Float) and to(value) != value == value:
                raise self.error(node, f"{value} is not an {to}; `{to}({value})` rounds it")
        elif found is not to and not (isinstance(found, Untyped) and isinstance(to, Integer | Float)):
            fits = isinstance(found, Type) and (
                (
                    isinstance(found, Integer)
                    and isinstance(to, Integer)
                    and found.bits < to.bits
                    and (to.signed or not found.signed)
                )
                or (isinstance(found, Boolean) and isinstance(to, Integer))
                or (isinstance(found, Float) and isinstance(to, Float) and found.bits < to.bits)
                or (pointee(found) is not None and pointee(found) is pointee(to))
            )
            if not fits:
                convert = f"cast({to}, …)" if to.llvm == "ptr" else f"{to}(…)"
                raise self.error(
                    node, f"`{ast.unparse(node)}` is {named(found)}, and {to} is needed: `{convert}` converts"
                )
        return self.cast(node, to)

    def cast(self, node: ast.expr, to: Type) -> str:
        """The value as `to`, cut or extended after it is computed in its own type."""
        found = self.infer(node)
        if _is_wider(to, found) and self._may_wrap(node):
            raise self.error(
                node, f"`{ast.unparse(node)}` is computed in {found} and may leave it: convert its operands to {to}"
            )
        if isinstance(found, Constant):
            return self.literal(node, found.value, to)
        if isinstance(found, Untyped):
            if not isinstance(to, Integer | Float):
                raise self.error(node, f"`{ast.unparse(node)}` has no type here: write `u32(…)`, or another type")
            return self._compute(node, to)
        if found is None:
            raise self.error(node, f"`{ast.unparse(node)}` has no result")
        return self.convert(node, self.raw(node), found, to)

    def index(self, node: ast.expr) -> str:
        """What is added to a pointer: an `s64`, and so is all arithmetic in it."""
        return self.operand(node, S64)

    def operand(self, node: ast.expr, type: Type) -> str:
        """An operand of arithmetic in `type`. That is wider than the operand's own only in an index."""
        is_arithmetic = isinstance(node, ast.BinOp | ast.UnaryOp | ast.IfExp)
        return (
            self._compute(node, type) if is_arithmetic and _is_wider(type, self.infer(node)) else self.cast(node, type)
        )

    def _may_wrap(self, node: ast.expr) -> bool:
        """Whether an expression does arithmetic whose result may not fit its type."""
        if isinstance(self.infer(node), Constant | Untyped):
            return False
        if isinstance(node, ast.BinOp):
            wraps = isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.LShift | ast.Div)
            if isinstance(node.op, ast.FloorDiv):  # the least integer divided by -1
                wraps = getattr(self.infer(node), "signed", False) and not isinstance(self.infer(node.right), Constant)
            return wraps or self._may_wrap(node.left) or self._may_wrap(node.right)
        if isinstance(node, ast.IfExp):
            return self._may_wrap(node.body) or self._may_wrap(node.orelse)
        return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert)

    def raw(self, node: ast.expr) -> str:
        """The value in its own type."""
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.IfExp) and not isinstance(getattr(node, "op", None), ast.Not):
            return self._compute(node, self.type_of(node))
        method = _RAW[type(node)]
        text: str = method(self, node)
        return text

    def literal(self, node: ast.AST, value: float, to: Type) -> str:
        """A constant as it is written for LLVM."""
        if isinstance(to, Integer):
            return str(to(value))
        if isinstance(to, Float):
            return f"0x{struct.unpack('<Q', struct.pack('<d', to(value)))[0]:016X}"
        if isinstance(to, Boolean):
            return "true" if value else "false"
        if value == 0:
            return "null"
        raise self.error(
            node, f"{value} is not an address: only 0 is, the null pointer; `cast({to}, u64({value}))` makes one"
        )

    def convert(self, node: ast.AST, text: str, source: Type, to: Type) -> str:
        """A value of one type as another."""
        if source is to or (source.llvm == to.llvm and not isinstance(source, Boolean)):
            return text
        emit = self.builder.value
        if isinstance(to, Integer) and isinstance(source, Integer):
            how = "trunc" if to.bits < source.bits else "sext" if source.signed else "zext"
            return emit(f"{how} {source.llvm} {text} to {to.llvm}")
        if isinstance(to, Integer) and isinstance(source, Boolean):
            return emit(f"zext i1 {text} to {to.llvm}")
        if isinstance(to, Float) and isinstance(source, Float):
            return emit(f"{'fpext' if to.bits > source.bits else 'fptrunc'} {source.llvm} {text} to {to.llvm}")
        if 128 in (getattr(to, "bits", 0), getattr(source, "bits", 0)):
            raise self.error(node, "128-bit integers are not converted to or from floats")
        if isinstance(to, Float) and isinstance(source, Integer):
            return emit(f"{'sitofp' if source.signed else 'uitofp'} {source.llvm} {text} to {to.llvm}")
        if isinstance(to, Integer) and isinstance(source, Float):
            how = "fptosi" if to.signed else "fptoui"
            name = f"llvm.{how}.sat.{to.llvm}.f{source.bits}"
            return emit(f"call {to.llvm} @{name}({source.llvm} {text})")
        if isinstance(to, Boolean):
            return self._nonzero(text, source)
        raise self.error(
            node, f"{source} cannot be converted to {to}" + ("; `cast` can" if "ptr" in (source.llvm, to.llvm) else "")
        )

    def _compute(self, node: ast.expr, type: Type) -> str:
        """Arithmetic, done in `type`."""
        if isinstance(node, ast.BinOp):
            return binary(self, node, type)
        if isinstance(node, ast.UnaryOp):
            operand = self.operand(node.operand, type)
            if isinstance(node.op, ast.UAdd):
                return operand
            if isinstance(type, Float):
                return self.builder.value(f"fneg {type.llvm} {operand}")
            if isinstance(node.op, ast.Invert):
                return self.builder.value(f"xor {type.llvm} {operand}, -1")
            return self.builder.value(f"sub {type.llvm} 0, {operand}")
        if isinstance(node, ast.IfExp):
            pointer = self.temporary(type.llvm)
            yes, no, after = (self.builder.new_label(hint) for hint in ("yes", "no", "chosen"))
            self.branch_on(node.test, yes, no)
            for label, chosen in ((yes, node.body), (no, node.orelse)):
                self.builder.label(label)
                self.builder.emit(f"store {type.llvm} {self.operand(chosen, type)}, ptr {pointer}")
                self.builder.jump(after)
            self.builder.label(after)
            return self.builder.value(f"load {type.llvm}, ptr {pointer}")
        raise self.error(node, f"`{ast.unparse(node)}` has no type here: write `u32(…)`, or another type")

    def temporary(self, llvm: str) -> str:
        """A slot on the stack."""
        pointer = self.builder.fresh()
        self.allocations.append(f"  {pointer} = alloca {llvm}")
        return pointer

    # Memory.

    def element(self, base: str, element: Type, index: str) -> str:
        unit = f"[{element.stride} x i8]" if isinstance(element, StructType) else memory_name(element)
        return self.builder.value(f"getelementptr {unit}, ptr {base}, i64 {index}")

    def address(self, node: ast.expr) -> tuple[str, Type]:
        """The address of `p[i]` or `p.field`, and the type of what is there."""
        if isinstance(node, ast.Subscript):
            type = self.infer(node)
            assert isinstance(type, Type)
            base, index = self.raw(node.value), self.index(node.slice)
            self.guard.index(node, index)
            return self.element(base, type, index), type
        if isinstance(node, ast.Attribute):
            offset, type = self.field(node)
            base = self.raw(node.value)
            return (self.builder.value(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base), type
        raise self.error(node, f"`{ast.unparse(node)}` has no address: `p[i]` and `p.field` have")

    def load(self, pointer: str, type: Type) -> str:
        if isinstance(type, StructType | ArrayType):
            return pointer
        text = self.builder.value(f"load {memory_name(type)}, ptr {pointer}, align {type.size}")
        return self.builder.value(f"trunc i8 {text} to i1") if isinstance(type, Boolean) else text

    def store(self, pointer: str, type: Type, text: str) -> None:
        if isinstance(type, Boolean):
            text = self.builder.value(f"zext i1 {text} to i8")
        self.builder.emit(f"store {memory_name(type)} {text}, ptr {pointer}, align {type.size}")

    def stack(self, size: int) -> str:
        """Bytes on the stack, which are gone when the function returns."""
        pointer = self.builder.fresh()
        if self.guard.is_on:
            whole = self.builder.fresh()
            self.allocations.append(f"  {whole} = alloca [{size + 2 * GUARD} x i8], align 16")
            self.allocations.append(f"  {pointer} = getelementptr i8, ptr {whole}, i64 {GUARD}")
        else:
            self.allocations.append(f"  {pointer} = alloca [{size} x i8], align 16")
        self.guard.allocate(pointer, size)
        return pointer

    def _raw_name(self, node: ast.Name) -> str:
        if self.is_local(node.id):
            return self.builder.value(f"load {self.locals[node.id].llvm}, ptr %{node.id}")
        return self._raw_outer(node)

    def _raw_outer(self, node: ast.expr) -> str:
        value = self.resolve(node)
        if isinstance(value, bool):
            return "true" if value else "false"
        assert isinstance(value, tuple)
        return self._table(node, value)

    def _table(self, node: ast.expr, values: tuple[int, ...]) -> str:
        type: Integer = getattr(values, "type", U32)
        for value in values:
            if not isinstance(value, int) or not type.holds(value):
                raise self.error(
                    node, f"{value!r} in `{ast.unparse(node)}` does not fit {type}: `table(u64, (…))` makes others"
                )
        name = plain = f"{self.signature.function.__module__}.{ast.unparse(node)}"
        count = 0
        while _TABLES.setdefault(name, values) is not values:
            count += 1
            name = f"{plain}.{count}"
        self.tables[name] = values
        self.guard.table(name, type.size * len(values))
        return f'@"{name}"'

    def _raw_address(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute) and self.resolve(node) is not MISSING:
            return self._raw_outer(node)
        pointer, type = self.address(node)
        self.guard.access("load", node, pointer, type)
        return self.load(pointer, type)

    def _raw_call(self, node: ast.Call) -> str:
        return raw_call(self, node)

    def call(self, result: Type | None, target: str, arguments: list[str], external: bool) -> str:
        """Call a function; the text of its result is empty where it has none."""
        attribute = passed(result, external).removeprefix(result.llvm if result else "void").strip()
        line = f"call {attribute} {result.llvm if result else 'void'} {target}({', '.join(arguments)})"
        if result is None:
            self.builder.emit(line)
            return ""
        return self.builder.value(line)

    # Conditions.

    def _nonzero(self, text: str, type: Type) -> str:
        if isinstance(type, Boolean):
            return text
        if isinstance(type, Float):
            return self.builder.value(f"fcmp une {type.llvm} {text}, 0x0000000000000000")
        return self.builder.value(f"icmp ne {type.llvm} {text}, {'null' if type.llvm == 'ptr' else 0}")

    def condition(self, node: ast.expr) -> str:
        """Whether an expression holds: an `i1`."""
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return self._raw_boolean(node)
        found = self.infer(node)
        if isinstance(found, Constant):
            return "true" if found.value else "false"
        return self._nonzero(self.raw(node), self.type_of(node))

    def branch_on(self, node: ast.expr, yes: str, no: str) -> None:
        """Go to one of two blocks; `and` and `or` evaluate their right side only if they need to."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch_on(node.operand, no, yes)
        elif isinstance(node, ast.BoolOp):
            for part in node.values[:-1]:
                further = self.builder.new_label("further")
                if isinstance(node.op, ast.And):
                    self.branch_on(part, further, no)
                else:
                    self.branch_on(part, yes, further)
                self.builder.label(further)
            self.branch_on(node.values[-1], yes, no)
        else:
            self.builder.branch(self.condition(node), yes, no)

    def _raw_boolean(self, node: ast.expr) -> str:
        if isinstance(node, ast.UnaryOp):
            return self.builder.value(f"xor i1 {self.condition(node.operand)}, true")
        assert isinstance(node, ast.BoolOp)
        for part in node.values:
            if not isinstance(self.infer(part), Boolean):
                raise self.error(part, f"`{ast.unparse(part)}` is not a boolean: compare it, as with `!= 0`")
        pointer = self.temporary("i1")
        yes, no, after = (self.builder.new_label(hint) for hint in ("yes", "no", "known"))
        self.branch_on(node, yes, no)
        for label, text in ((yes, "true"), (no, "false")):
            self.builder.label(label)
            self.builder.emit(f"store i1 {text}, ptr {pointer}")
            self.builder.jump(after)
        self.builder.label(after)
        return self.builder.value(f"load i1, ptr {pointer}")

    def _raw_compare(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        found_types = [self.infer(side) for side in sides]
        texts: list[str | None] = [None] * len(sides)
        if len(sides) > 2:  # the middle of `a < b < c` is evaluated once
            texts = [self.raw(side) if isinstance(self.infer(side), Type) else None for side in sides]
        found = "true"
        for index, op in enumerate(node.ops):
            type = self.join(node, found_types[index], found_types[index + 1])
            if not isinstance(type, Type):
                raise self.error(
                    node, f"`{ast.unparse(node)}` has no type: write `u32(…)` on one side, or another type"
                )
            name = _COMPARISONS.get(op.__class__)
            if name is None:
                raise self.error(node, f"`{ast.unparse(node)}`: compare with == != < <= > >=")
            pair = []
            for side in (index, index + 1):
                text, inferred = texts[side], found_types[side]
                if text is None:
                    pair.append(self.cast(sides[side], type))
                else:
                    assert isinstance(inferred, Type)
                    pair.append(self.convert(node, text, inferred, type))
            result = self._comparison(name, type, *pair)
            found = result if found == "true" else self.builder.value(f"and i1 {found}, {result}")
        return found

    def _comparison(self, name: str, type: Type, left: str, right: str) -> str:
        if isinstance(type, Float):
            how = "fcmp une" if name == "ne" else f"fcmp o{name}"
        elif name in ("eq", "ne"):
            how = f"icmp {name}"
        else:
            how = f"icmp {'s' if isinstance(type, Integer) and type.signed else 'u'}{name}"
        return self.builder.value(f"{how} {type.llvm} {left}, {right}")


def _is_wider(to: Type, found: Inferred) -> bool:
    return isinstance(to, Integer | Float) and type(found) is type(to) and to.size > found.size


_TABLES: dict[str, Any] = {}
_RAW: dict[type, Any] = {
    ast.Name: Expressions._raw_name,
    ast.Constant: Expressions._raw_outer,
    ast.Attribute: Expressions._raw_address,
    ast.Subscript: Expressions._raw_address,
    ast.BoolOp: Expressions._raw_boolean,
    ast.UnaryOp: Expressions._raw_boolean,
    ast.Compare: Expressions._raw_compare,
    ast.Call: Expressions._raw_call,
}
