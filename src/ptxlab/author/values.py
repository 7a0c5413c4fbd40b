"""Registers as Python values: one class a type of PTX.

`f32(0.0)` is a fresh register that holds zero, `f32()` one that holds nothing yet. An operator writes the one
instruction that the types of its operands name (see `operators.py`); `x += y` and `x.set(y)` write into the register of
`x` itself, all others make a fresh one.
"""

from __future__ import annotations

from typing import NoReturn, TypeVar

from ptxlab.author import operators
from ptxlab.author.registers import Register
from ptxlab.author.trace import current
from ptxlab.isa import type_named
from ptxlab.isa.types import TYPES

V = TypeVar("V", bound="Scalar")


class Scalar(Register):
    """A register that Python's operators compute with."""

    def __init__(self, value: object = None) -> None:
        self._make(current(f"`{self.type.name}(...)`"))
        if value is not None:
            operators.assign(self, value)

    def set(self, value: object) -> None:
        """Write `value` into this register, by a `mov`."""
        operators.assign(self, value)

    def __pow__(self, other: object) -> NoReturn:
        operators.refuse_operator("**", self, "multiply, or `ptx.ex2.approx.f32` of a product with `ptx.lg2`")

    def __divmod__(self, other: object) -> NoReturn:
        operators.refuse_operator("divmod", self, "two are: `a // b` and `a % b`")

    def _round(self, *_: object) -> NoReturn:
        name = self.type.name
        operators.refuse_operator(
            "round",
            self,
            f"`ptx.cvt.rni.{name}.{name}(x)` rounds to nearest, `rmi` down, `rpi` up, `rzi` toward zero; "
            f"`ptx.cvt.rni.s32.{name}(x)` makes an integer",
        )

    __round__ = __floor__ = __ceil__ = __trunc__ = _round

    # Operators: see operators.py.

    __hash__ = object.__hash__

    def __add__(self: V, other: object) -> V:
        return operators.binary("+", self, other)

    def __radd__(self: V, other: object) -> V:
        return operators.binary("+", other, self)

    def __iadd__(self: V, other: object) -> V:
        return operators.in_place("+", self, other)

    def __sub__(self: V, other: object) -> V:
        return operators.binary("-", self, other)

    def __rsub__(self: V, other: object) -> V:
        return operators.binary("-", other, self)

    def __isub__(self: V, other: object) -> V:
        return operators.in_place("-", self, other)

    def __mul__(self: V, other: object) -> V:
        return operators.binary("*", self, other)

    def __rmul__(self: V, other: object) -> V:
        return operators.binary("*", other, self)

    def __imul__(self: V, other: object) -> V:
        return operators.in_place("*", self, other)

    def __truediv__(self: V, other: object) -> V:
        return operators.binary("/", self, other)

    def __rtruediv__(self: V, other: object) -> V:
        return operators.binary("/", other, self)

    def __floordiv__(self: V, other: object) -> V:
        return operators.binary("//", self, other)

    def __rfloordiv__(self: V, other: object) -> V:
        return operators.binary("//", other, self)

    def __mod__(self: V, other: object) -> V:
        return operators.binary("%", self, other)

    def __rmod__(self: V, other: object) -> V:
        return operators.binary("%", other, self)

    def __and__(self: V, other: object) -> V:
        return operators.binary("&", self, other)

    def __rand__(self: V, other: object) -> V:
        return operators.binary("&", other, self)

    def __iand__(self: V, other: object) -> V:
        return operators.in_place("&", self, other)

    def __or__(self: V, other: object) -> V:
        return operators.binary("|", self, other)

    def __ror__(self: V, other: object) -> V:
        return operators.binary("|", other, self)

    def __ior__(self: V, other: object) -> V:
        return operators.in_place("|", self, other)

    def __xor__(self: V, other: object) -> V:
        return operators.binary("^", self, other)

    def __rxor__(self: V, other: object) -> V:
        return operators.binary("^", other, self)

    def __ixor__(self: V, other: object) -> V:
        return operators.in_place("^", self, other)

    def __lshift__(self: V, other: object) -> V:
        return operators.shift("<<", self, other)

    def __rlshift__(self: V, other: object) -> V:
        return operators.shift("<<", other, self)

    def __rrshift__(self: V, other: object) -> V:
        return operators.shift(">>", other, self)

    def __ilshift__(self: V, other: object) -> V:
        operators.shift("<<", self, other, out=self)
        return self

    def __rshift__(self: V, other: object) -> V:
        return operators.shift(">>", self, other)

    def __irshift__(self: V, other: object) -> V:
        operators.shift(">>", self, other, out=self)
        return self

    def __neg__(self: V) -> V:
        return operators.unary("-", self)

    def __invert__(self: V) -> V:
        return operators.unary("~", self)

    def __abs__(self: V) -> V:
        return operators.unary("abs", self)

    def __lt__(self, other: object) -> pred:
        return operators.compare("lt", self, other)

    def __le__(self, other: object) -> pred:
        return operators.compare("le", self, other)

    def __gt__(self, other: object) -> pred:
        return operators.compare("gt", self, other)

    def __ge__(self, other: object) -> pred:
        return operators.compare("ge", self, other)

    def __eq__(self, other: object) -> pred:  # type: ignore[override]
        return operators.compare("eq", self, other)

    def __ne__(self, other: object) -> pred:  # type: ignore[override]
        return operators.compare("ne", self, other)


class pred(Scalar):  # noqa: N801 - these classes have the manual's names
    """A predicate."""

    type = type_named("pred")


class b8(Scalar):  # noqa: N801
    """8 bits."""

    type = type_named("b8")


class b16(Scalar):  # noqa: N801
    """16 bits."""

    type = type_named("b16")


class b32(Scalar):  # noqa: N801
    """32 bits."""

    type = type_named("b32")


class b64(Scalar):  # noqa: N801
    """64 bits."""

    type = type_named("b64")


class b128(Scalar):  # noqa: N801
    """128 bits."""

    type = type_named("b128")


class u8(Scalar):  # noqa: N801
    """An unsigned integer of 8 bits: only memory holds it, a load of one makes a `u16`."""

    type = type_named("u8")


class u16(Scalar):  # noqa: N801
    """An unsigned integer of 16 bits."""

    type = type_named("u16")


class u32(Scalar):  # noqa: N801
    """An unsigned integer of 32 bits."""

    type = type_named("u32")


class u64(Scalar):  # noqa: N801
    """An unsigned integer of 64 bits."""

    type = type_named("u64")


class s8(Scalar):  # noqa: N801
    """A signed integer of 8 bits: only memory holds it, a load of one makes an `s16`."""

    type = type_named("s8")


class s16(Scalar):  # noqa: N801
    """A signed integer of 16 bits."""

    type = type_named("s16")


class s32(Scalar):  # noqa: N801
    """A signed integer of 32 bits."""

    type = type_named("s32")


class s64(Scalar):  # noqa: N801
    """A signed integer of 64 bits."""

    type = type_named("s64")


class f16(Scalar):  # noqa: N801
    """A half."""

    type = type_named("f16")


class f16x2(Scalar):  # noqa: N801
    """Two halves in a register."""

    type = type_named("f16x2")


class bf16(Scalar):  # noqa: N801
    """A bfloat16."""

    type = type_named("bf16")


class bf16x2(Scalar):  # noqa: N801
    """Two bfloat16 in a register."""

    type = type_named("bf16x2")


class tf32(Scalar):  # noqa: N801
    """A TF32 number, in 32 bits."""

    type = type_named("tf32")


class f32(Scalar):  # noqa: N801
    """A float of single precision."""

    type = type_named("f32")


class f64(Scalar):  # noqa: N801
    """A float of double precision."""

    type = type_named("f64")


for _type in TYPES.values():  # the rarer types: instructions have them, Python has no name for them
    if not any(cls.type is _type for cls in Scalar.__subclasses__()):
        type(_type.name, (Scalar,), {"type": _type})
