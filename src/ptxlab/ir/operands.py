"""Operands of instructions.

Operands are values: they are shared between instructions and never change. A register is one object for all its uses
inside the scope that declares it, so `is` distinguishes registers that have one name in different scopes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeAlias

from ptxlab.ir.node import Immutable
from ptxlab.isa.special_registers import SPECIAL_REGISTERS, SpecialKind

if TYPE_CHECKING:
    from ptxlab.ir.declarations import Variable
    from ptxlab.ir.items import Function
    from ptxlab.isa.types import Type


_ELEMENTS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}


class Register(Immutable):
    """A declared register; `index` numbers the registers of a function densely, for tables and bit sets."""

    __slots__ = ("index", "name", "type", "variable", "vector")
    fields = ("name", "type", "vector")

    def __init__(
        self, name: str, type: Type, vector: int = 1, variable: Variable | None = None, index: int = -1
    ) -> None:
        self.name = name
        self.type = type
        self.vector = vector
        self.variable = variable
        self.index = index

    def __hash__(self) -> int:
        return hash(self.name)


class VectorElement(Immutable):
    """One element of a vector register: `%v.x`; color names stay as written."""

    __slots__ = ("element", "register")
    fields = ("register", "element")

    def __init__(self, register: Register | Unresolved, element: str) -> None:
        self.register = register
        self.element = element

    @property
    def position(self) -> int | None:
        """Which element it is, from 0 on; None if its register has no such element."""
        at = _ELEMENTS.get(self.element, 4)
        return at if isinstance(self.register, Register) and 1 < self.register.vector > at else None


class Selection(Immutable):
    """Bytes or halves chosen from a register by a video instruction: `%r1.b0`, `%r1.h1`, `%r1.b3210`."""

    __slots__ = ("register", "selector")
    fields = ("register", "selector")

    def __init__(self, register: Register | Unresolved, selector: str) -> None:
        self.register = register
        self.selector = selector


class SpecialRegister(Immutable):
    """A predefined, read-only register such as `%tid.x`; `component` is None where it has none."""

    __slots__ = ("component", "name")
    fields = ("name", "component")

    def __init__(self, name: str, component: str | None = None) -> None:
        self.name = name
        self.component = component

    @property
    def kind(self) -> SpecialKind:
        """What it holds."""
        return SPECIAL_REGISTERS[self.name].kind


class Immediate(Immutable):
    """A constant of kind `s64`, `u64`, `f32` or `f64`; the value of a floating-point constant is its bits.

    `base` is how the source wrote it (10, 16 or 2) and says how it prints; it is not a part of the value.
    """

    __slots__ = ("base", "kind", "value")
    fields = ("value", "kind")

    def __init__(self, value: int, kind: str = "s64", base: int = 10) -> None:
        self.value = value
        self.kind = kind
        self.base = base

    @property
    def is_float(self) -> bool:
        """Whether the constant is a floating-point one."""
        return self.kind[0] == "f"

    @property
    def number(self) -> int | float:
        """The constant as a Python number."""
        if self.kind == "f64":
            return float(struct.unpack("<d", self.value.to_bytes(8, "little"))[0])
        if self.kind == "f32":
            return float(struct.unpack("<f", self.value.to_bytes(4, "little"))[0])
        return self.value


class Sink(Immutable):
    """`_`: a result that is discarded, or a parameter without a name."""

    __slots__ = ()


class VariableReference(Immutable):
    """A variable or parameter by name, or `name+offset`: its address, or the texture, surface or sampler it is."""

    __slots__ = ("name", "offset", "variable")
    fields = ("name", "offset")

    def __init__(self, name: str, variable: Variable, offset: int = 0) -> None:
        self.name = name
        self.variable = variable
        self.offset = offset


class FunctionReference(Immutable):
    """A function or kernel by name; `function` is its declaration that came first."""

    __slots__ = ("function", "name")
    fields = ("name",)

    def __init__(self, name: str, function: Function) -> None:
        self.name = name
        self.function = function


class LabelReference(Immutable):
    """A label of this function, whether of an instruction or of `.branchtargets` and its like."""

    __slots__ = ("name",)
    fields = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Unresolved(Immutable):
    """A name that nothing in scope declares; the checker reports it."""

    __slots__ = ("name",)
    fields = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Sum(Immutable):
    """`%r1+4` outside of brackets, which `mov` adds up; the sum of a variable and a constant is a reference to it."""

    __slots__ = ("base", "offset")
    fields = ("base", "offset")

    def __init__(self, base: Operand, offset: int) -> None:
        self.base = base
        self.offset = offset


class Element(Immutable):
    """An element of an array variable, `table[3]` or `table[%r1+1]`: `index` counts elements, `register` adds to it."""

    __slots__ = ("base", "index", "register")
    fields = ("base", "register", "index")

    def __init__(
        self,
        base: VariableReference | Unresolved | Register,
        register: Register | VariableReference | Unresolved | None,
        index: int,
    ) -> None:
        self.base = base
        self.register = register
        self.index = index


class Address(Immutable):
    """`[base+offset]`; `arguments` are what follows a comma: a sampler, coordinates.

    `plus_zero` is true where the source writes `+0`. It is not a part of the value, but ptxas without optimization
    makes an addition of it, so it is printed again.
    """

    __slots__ = ("arguments", "base", "offset", "plus_zero", "unified")
    fields = ("base", "offset", "arguments", "unified")

    def __init__(
        self,
        base: Operand,
        offset: int = 0,
        arguments: tuple[Operand, ...] = (),
        unified: bool = False,
        plus_zero: bool = False,
    ) -> None:
        self.base = base
        self.offset = offset
        self.arguments = arguments
        self.unified = unified
        self.plus_zero = plus_zero


class Vector(Immutable):
    """`{a, b, _, d}`: several registers or constants as one operand."""

    __slots__ = ("elements",)
    fields = ("elements",)

    def __init__(self, elements: tuple[Operand, ...]) -> None:
        self.elements = elements


class Arguments(Immutable):
    """`(a, b)`: the results or the arguments of a call."""

    __slots__ = ("elements",)
    fields = ("elements",)

    def __init__(self, elements: tuple[Operand, ...]) -> None:
        self.elements = elements


class Pair(Immutable):
    """`p|q`: a result and a second result."""

    __slots__ = ("first", "second")
    fields = ("first", "second")

    def __init__(self, first: Operand, second: Operand) -> None:
        self.first = first
        self.second = second


class Negated(Immutable):
    """`!p`: the opposite of a predicate."""

    __slots__ = ("operand",)
    fields = ("operand",)

    def __init__(self, operand: Operand) -> None:
        self.operand = operand


class Minus(Immutable):
    """`-a`: a source with its sign changed, as `vmad` takes it."""

    __slots__ = ("operand",)
    fields = ("operand",)

    def __init__(self, operand: Operand) -> None:
        self.operand = operand


Operand: TypeAlias = (
    Register | Immediate | Address | Vector | SpecialRegister | VariableReference | FunctionReference | LabelReference
    | Unresolved | Sink | VectorElement | Selection | Element | Sum | Arguments | Pair | Negated | Minus
)  # fmt: skip
