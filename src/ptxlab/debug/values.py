"""What a user asks a debugger about: registers, elements of arrays, memory, and what Python makes of them.

`%r5 + 1`, `%tid.x == 3`, `c[3, 5]` of an argument, `tile[7]` of a `.shared` variable, `shared.f32[%rd4 + 8]`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxlab.device.layout import shared_variables, size_of_variable
from ptxlab.isa.types import TYPES, Type
from ptxlab.trace import Trace
from ptxlab.trace import registers as registers_of
from ptxlab.trace.accesses import NAMES, SPACES
from ptxlab.trace.program import Value, typed

_NAME = re.compile(r"%[A-Za-z_$][\w$]*(?:\.[xyzw]\b)?|[A-Za-z_$][\w$]*")
_IN_WARP = ("%laneid", "%warpid")

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARED: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip


class UnknownError(ValueError):
    """What was asked for is not there, or cannot be read."""


@dataclass(frozen=True)
class Scope:
    """A thread of the grid at a position of a recorded launch."""

    trace: Trace
    thread: int
    position: int

    @property
    def block(self) -> int:
        return self.thread // self.trace.accesses.threads_in_block

    @property
    def own(self) -> int:
        """The number of the thread in its block."""
        return self.thread % self.trace.accesses.threads_in_block

    def registers(self) -> dict[str, Value]:
        """The registers that are known, by name."""
        found = registers_of.last_writes(self.trace.columns, self.thread, self._key)
        return {name: self.trace.value_of(found[name]) for name in sorted(found, key=registers_of.by_number)}

    @property
    def _key(self) -> int:
        """Up to where what was written counts: with what a call or a wait has returned before the next step."""
        return 2 * self.position + 1

    @property
    def index(self) -> tuple[int, ...]:
        """The index of the thread in its block."""
        return _index_of(self.own, self.trace.block)

    @property
    def block_index(self) -> tuple[int, ...]:
        """The index of its block in the grid."""
        return _index_of(self.block, self.trace.grid)

    @property
    def lane(self) -> int:
        return self.own % 32

    @property
    def warp(self) -> int:
        """The number of its warp in the block."""
        return self.own // 32

    def special(self) -> dict[str, int]:
        """What the thread is among others, by the special registers that say so."""
        vectors = {"tid": self.index, "ntid": self.trace.block, "ctaid": self.block_index, "nctaid": self.trace.grid}
        found = {
            f"%{name}.{axis}": at for name, index in vectors.items() for axis, at in zip("xyz", index, strict=True)
        }
        return {**found, **dict(zip(_IN_WARP, (self.lane, self.warp), strict=True))}

    def register(self, name: str) -> Value:
        """One register, or an element of a vector."""
        special = self.special()
        if name in special:
            return special[name]
        written = registers_of.last_write(self.trace.columns, self.thread, name, self._key)
        if written is None:
            known = any(name in names for names in self.trace.program.registers)
            raise UnknownError(f"`{name}` is not written yet" if known else f"there is no register `{name}`")
        return self.trace.value_of(written)

    def array(self, name: str) -> Any:
        """An argument or variable of global memory, or a variable of shared memory, as elements of its type."""
        for variable, start in shared_variables(self.trace.program.variables):
            if name in (variable.name, variable.title):
                return _elements(self.memory("shared")[start:][: size_of_variable(variable) or None], variable.type)
        for region in self.trace.accesses.regions:
            if region.short == name:
                return self.memory("global")[name]
        raise UnknownError(f"there is nothing called `{name}`: registers start with %")

    def memory(self, space: str) -> Any:
        """All of a state space, as `Trace.memory` has it."""
        return self.trace.memory(space, block=self.block, thread=self.own, step=self.position - 1)

    def load(self, space: str, type: Type, address: int) -> Value:
        """One value of a type at an address."""
        accesses = self.trace.accesses
        codes, _, addresses = accesses.resolve(space, np.array([address]), np.array([self.thread]))
        at, size = int(addresses[0]), max(type.width // 8, 1)
        named = NAMES[int(codes[0])]
        if named in ("global", "const"):
            region = accesses.region_at(at)
            if region is None or at + size > region.base + region.size:
                raise UnknownError(f"there is no memory at {address:#x}")
            content = np.frombuffer(region.data, np.uint8).copy()
            accesses.image(int(codes[0]), 0, region.base, content, 2 * self.position)
            at -= region.base
        else:
            content = self.memory(named)
        if at < 0 or at + size > len(content):
            raise UnknownError(f"there is no {named} memory at {address:#x}")
        return typed(type, content[at : at + size].tobytes())

    def address_of(self, text: str) -> tuple[int, int, int]:
        """The state space, the address and the size of an element such as `c[3, 5]` or `shared.f32[8]`."""
        tree, names = _parse(text)
        if isinstance(tree, ast.Subscript):
            name, index = ast.unparse(tree.value), _index(tree.slice, self, names)
            for variable, start in shared_variables(self.trace.program.variables):
                if name in (variable.name, variable.title):
                    size = variable.type.width // 8
                    return SPACES["shared"], start + int(index) * size, size
            for region in self.trace.accesses.regions:
                if region.short == name:
                    at = index if isinstance(index, tuple) else (index,)
                    size = region.array(np.frombuffer(region.data, np.uint8)).itemsize
                    return SPACES["global"], self.trace.address(name, *at), size
            space, _, kind = name.rpartition(".")
            if kind in TYPES:
                found = self.trace.accesses.resolve(
                    space.rstrip("_") or "generic", np.array([int(index)]), np.array([self.thread])
                )
                return int(found[0][0]), int(found[2][0]), max(TYPES[kind].width // 8, 1)
        raise UnknownError(f"`{text}` is not an element: write `c[3, 5]`, or `shared.f32[address]`")

    def evaluate(self, text: str) -> Any:
        """The value of an expression; raises `UnknownError` where there is none."""
        tree, names = _parse(text)
        try:
            return _value(tree, self, names)
        except (ZeroDivisionError, TypeError, IndexError, OverflowError, KeyError) as wrong:
            raise UnknownError(f"`{text}`: {wrong}") from None


def _parse(text: str) -> tuple[ast.AST, dict[str, str]]:
    """An expression as a tree, and the registers that names in it replace."""
    names: dict[str, str] = {}

    def hide(found: re.Match[str]) -> str:
        if found[0] == "global":  # a Python keyword
            return "global_"
        return found[0] if found[0][0] != "%" else names.setdefault(found[0], f"register_{len(names)}")

    hidden = _NAME.sub(hide, text.replace("&&", " and ").replace("||", " or "))
    try:
        tree = ast.parse(hidden.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise UnknownError(f"`{text}` cannot be read: write it as in Python, registers as in PTX") from None
    return tree, {hidden: name for name, hidden in names.items()}


def _value(node: ast.AST, scope: Scope, names: dict[str, str]) -> Any:
    def of(one: ast.AST) -> Any:
        return _value(one, scope, names)

    match node:
        case ast.Constant(value=value) if isinstance(value, int | float | bool):
            return value
        case ast.Name(id=name):
            return scope.register(names[name]) if name in names else scope.array(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](of(left), of(right))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](of(operand))
        case ast.BoolOp(op=op, values=values):
            return any(map(of, values)) if isinstance(op, ast.Or) else all(map(of, values))
        case ast.Compare(left=left, ops=ops, comparators=others):
            chain = [of(one) for one in (left, *others)]
            return all(_COMPARED[type(op)](a, b) for op, a, b in zip(ops, chain, chain[1:], strict=False))
        case ast.Subscript(value=value, slice=index):
            return _element(value, _index(index, scope, names), scope)
        case _:
            raise UnknownError("only registers, elements and arithmetic can be asked for")


def _index(node: ast.AST, scope: Scope, names: dict[str, str]) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_value(one, scope, names) for one in node.elts)
    return _value(node, scope, names)


def _element(node: ast.AST, index: Any, scope: Scope) -> Any:
    """`c[3, 5]`, `f32[address]` in a generic address, or `shared.f32[address]`."""
    space, name = "generic", ""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        space, name = node.value.id.rstrip("_"), node.attr
    elif isinstance(node, ast.Name):
        name = node.id
    type = TYPES.get(name)
    if space != "generic" and space not in SPACES:
        raise UnknownError(f"there is no state space `{space}`")
    if type is not None:
        return scope.load(space, type, int(index))
    if space != "generic" or not name:
        raise UnknownError(f"`{name}` is not a type: write `{space}.f32[…]`")
    return scope.array(name)[index]


def _elements(content: Any, type: Type) -> Any:
    """Bytes as elements of a type, where NumPy has it."""
    kinds = {"f": "f", "s": "i", "u": "u", "b": "u"}
    if type.kind not in kinds or (type.kind == "f" and type.width < 16):
        return content
    size = type.width // 8
    return content[: len(content) // size * size].view(f"<{kinds[type.kind]}{size}")


def _index_of(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    x, y, _ = extents
    return number % x, number // x % y, number // x // y


def shown(value: Any) -> str:
    """A value as text: whole numbers also in hexadecimal where they are large."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return f"{int(value)}" if -1024 < value < 1024 else f"{int(value)} ({int(value) & (1 << 64) - 1:#x})"
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=32, edgeitems=4)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(shown, value))
    return str(value)
